"""Guardians over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.core.statements import row_lock
from school_service.features.people.guardians import accounts, reads, service
from school_service.features.people.guardians.schemas import (
    AccountOfGuardianSchema,
    GuardianChangesSchema,
    GuardianFilterSchema,
    GuardianSchema,
    GuardianToAddSchema,
    GuardianWithAccountSchema,
    LinkedGuardianSchema,
    LinkSchema,
    StopSchema,
    StudentGuardianSchema,
)
from school_service.features.people.models import Guardian
from school_service.web.app_state import current_principal
from school_service.web.blueprint import Blueprint

blp = Blueprint(
    "guardians",
    __name__,
    description="Guardians of students, and the stops that end their access to a student.",
)


@blp.route("/guardians")
class Guardians(MethodView):
    """The guardians of the school's students."""

    @blp.requires(Permission.STUDENTS_READ, own=related("FG"))
    @blp.returns_page(GuardianSchema, if_empty=service.check_guardian_filter)
    @blp.arguments(GuardianFilterSchema, location="query")
    def get(self, filters: dict[str, Any]) -> Any:
        """List the guardians by name: all, or those fitting a text, and those of a student."""
        return reads.guardians(**filters | {"search": filters.get("search") or None})

    @blp.requires(Permission.STUDENTS_WRITE)
    @blp.arguments(GuardianToAddSchema)
    @blp.returns(GuardianSchema)
    def post(self, guardian: dict[str, Any]) -> Any:
        """Add a guardian, of up to 20 students. It is always another person: search first for an existing one."""
        return service.create_guardian(**guardian)


@blp.route("/guardians/<uuid:id>")
class OneGuardian(MethodView):
    """A guardian."""

    @blp.requires(Permission.STUDENTS_READ, own=related("FG"))
    @blp.returns(GuardianSchema)
    def get(self, id: UUID) -> Any:
        """Show a guardian."""
        return reads.guardian(id)

    @blp.requires(Permission.STUDENTS_WRITE)
    @blp.arguments(GuardianChangesSchema(partial=True))
    @blp.returns(GuardianSchema)
    @blp.if_match(reads.guardian, row_lock(Guardian))
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Change the given members of a guardian; the names of the account stay."""
        return service.change_guardian(guardian_id=id, **changes)

    @blp.requires(Permission.STUDENTS_DELETE)
    @blp.returns_deleted()
    @blp.if_match(reads.guardian, row_lock(Guardian))
    def delete(self, id: UUID) -> Any:
        """Delete a guardian who has no account, and is stopped for no child."""
        return service.delete_guardian(guardian_id=id)


@blp.route("/guardians/<uuid:id>/account")
class AccountOfGuardian(MethodView):
    """The account of a guardian."""

    @blp.requires(Permission.STUDENTS_WRITE, Permission.USERS_WRITE)
    @blp.arguments(AccountOfGuardianSchema)
    @blp.returns(GuardianWithAccountSchema)
    def put(self, account: dict[str, Any], id: UUID) -> Any:
        """Give a guardian an account: a user who is there, or a new one with the role that guardians get.

        It needs `read:results` too, with or without children; nobody gives their own account. Credentials that others
        had made for the account end, unless their makers may do all that it may, and read results; the answer names
        them.
        """
        return accounts.give_account(guardian_id=id, **account)

    @blp.requires(Permission.STUDENTS_WRITE, Permission.USERS_WRITE)
    @blp.returns(GuardianSchema)
    def delete(self, id: UUID) -> Any:
        """Take a guardian's account away: the role of guardians goes, its sessions end; the user stays.

        Needs every permission that the user has, too; nobody takes their own while there is a stop.
        """
        return accounts.take_account(guardian_id=id, principal=current_principal())


@blp.route("/students/<uuid:id>/guardians")
class GuardiansOfStudent(MethodView):
    """The guardians of a student."""

    @blp.requires(Permission.STUDENTS_READ, own=related("FG"))
    @blp.returns_list(StudentGuardianSchema, if_empty=service.check_student)
    def get(self, id: UUID) -> Any:
        """List the guardians of a student: the primary first, then by name."""
        return reads.guardians_of_student(id)


@blp.route("/students/<uuid:id>/guardians/<uuid:guardian_id>")
class GuardianOfStudent(MethodView):
    """A guardianship of a student."""

    @blp.requires(Permission.STUDENTS_WRITE)
    @blp.arguments(LinkSchema)
    @blp.returns_list(LinkedGuardianSchema)
    def put(self, link: dict[str, Any], id: UUID, guardian_id: UUID) -> Any:
        """Make somebody a guardian of a student, or change how they are; a stop stays.

        A child for an account needs `read:results` too. Credentials that others had made for the account end then,
        unless their makers may do all that it may, and read results; the rows name them.
        """
        return service.put_link(student_id=id, guardian_id=guardian_id, **link)

    @blp.requires(Permission.STUDENTS_DELETE)
    @blp.returns_list(StudentGuardianSchema)
    def delete(self, id: UUID, guardian_id: UUID) -> Any:
        """Take away that somebody is a guardian of a student; not while they are stopped."""
        return service.take_link(student_id=id, guardian_id=guardian_id)


@blp.route("/students/<uuid:id>/guardians/<uuid:guardian_id>/stop")
class StopOfGuardian(MethodView):
    """The stop of a guardian's access to a student."""

    @blp.requires(Permission.STUDENTS_WRITE)
    @blp.arguments(StopSchema)
    @blp.returns_list(StudentGuardianSchema)
    def put(self, body: dict[str, Any], id: UUID, guardian_id: UUID) -> Any:
        """Stop a guardian's access to a student: from the next request on they read nothing of the student."""
        return service.stop(student_id=id, guardian_id=guardian_id, **body)

    @blp.requires(Permission.STUDENTS_WRITE)
    @blp.returns_list(LinkedGuardianSchema)
    def delete(self, id: UUID, guardian_id: UUID) -> Any:
        """Lift a stop, of somebody else. Where the guardian has an account it needs read:results too.

        The account gets a child then, and the rows name credentials that others have made for it.
        """
        return service.lift_stop(student_id=id, guardian_id=guardian_id)
