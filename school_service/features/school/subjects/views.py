"""Subjects over HTTP, under the path `/templates`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView
from marshmallow import fields

from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING
from school_service.core.statements import row_lock
from school_service.features.school.models import Subject
from school_service.features.school.subjects import service
from school_service.web.blueprint import Blueprint
from school_service.web.fields import StrictInteger, Text
from school_service.web.schemas import NamedSchema, Schema, described

MOST = 9_999
_POSITION = "The place in lists and on papers, the lowest first, then by name; subjects with null stand last."


class SubjectSchema(NamedSchema):
    """A subject of a school."""

    code = fields.String()
    position = described(fields.Integer, _POSITION, allow_none=True)
    school = fields.UUID()


class NewSubjectSchema(Schema):
    """A subject to create."""

    name = Text()
    code = described(Text, "Short and unique in the school, such as MTH.")
    position = described(StrictInteger, _POSITION, 0, MOST, required=False, allow_none=True)


class SubjectChangesSchema(NewSubjectSchema):
    """The changes of a subject: any of its members."""


blp = Blueprint(
    "subjects", __name__, description="Subjects such as Mathematics, under the path `/templates`."
)


@blp.route("/templates")
class Subjects(MethodView):
    """The school's subjects."""

    @blp.requires(Permission.SUBJECTS_READ, own=EVERYTHING)
    @blp.returns_list(SubjectSchema)
    def get(self) -> Any:
        """List the school's subjects, by position, then by name."""
        return service.subjects()

    @blp.requires(Permission.SUBJECTS_WRITE)
    @blp.arguments(NewSubjectSchema)
    @blp.returns(SubjectSchema)
    def post(self, subject: dict[str, Any]) -> Any:
        """Create a subject."""
        return service.subject(service.create_subject(**subject).id)


@blp.route("/templates/<uuid:id>")
class OneSubject(MethodView):
    """A subject."""

    @blp.requires(Permission.SUBJECTS_READ, own=EVERYTHING)
    @blp.returns(SubjectSchema)
    def get(self, id: UUID) -> Any:
        """Show a subject."""
        return service.subject(id)

    @blp.requires(Permission.SUBJECTS_WRITE)
    @blp.arguments(SubjectChangesSchema(partial=True))
    @blp.returns(SubjectSchema)
    @blp.if_match(service.subject, row_lock(Subject))
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Change the given members of a subject; published results keep its old name."""
        return service.subject(service.change_subject(subject_id=id, **changes))

    @blp.requires(Permission.SUBJECTS_DELETE)
    @blp.returns_deleted()
    @blp.if_match(service.subject, service.DELETION.row_lock)
    def delete(self, id: UUID) -> Any:
        """Delete a subject that no cohort is taught and no promotion rule requires."""
        return service.delete_subject(subject_id=id)
