"""Classrooms over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView
from marshmallow import fields

from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING
from school_service.core.statements import row_lock
from school_service.features.school.classrooms import service
from school_service.features.school.models import Classroom
from school_service.web.blueprint import Blueprint
from school_service.web.fields import Text
from school_service.web.schemas import NamedSchema, Schema, described


class ClassroomSchema(NamedSchema):
    """A classroom of a school."""

    school = fields.UUID()


class NewClassroomSchema(Schema):
    """A classroom to create."""

    name = Text()
    level = described(Text, "Education level, such as Junior Secondary.")


class ClassroomChangesSchema(NewClassroomSchema):
    """The changes of a classroom: any of its members."""


blp = Blueprint("classrooms", __name__, description="The structure of the school, such as JSS 1.")


@blp.route("/classrooms")
class Classrooms(MethodView):
    """The school's classrooms."""

    @blp.requires(Permission.CLASSROOMS_READ, own=EVERYTHING)
    @blp.returns_list(ClassroomSchema)
    def get(self) -> Any:
        """List the school's classrooms."""
        return service.classrooms()

    @blp.requires(Permission.CLASSROOMS_WRITE)
    @blp.arguments(NewClassroomSchema)
    @blp.returns(ClassroomSchema)
    def post(self, classroom: dict[str, Any]) -> Any:
        """Create a classroom."""
        return service.classroom(service.create_classroom(**classroom).id)


@blp.route("/classrooms/<uuid:id>")
class OneClassroom(MethodView):
    """A classroom."""

    @blp.requires(Permission.CLASSROOMS_READ, own=EVERYTHING)
    @blp.returns(ClassroomSchema)
    def get(self, id: UUID) -> Any:
        """Show a classroom."""
        return service.classroom(id)

    @blp.requires(Permission.CLASSROOMS_WRITE)
    @blp.arguments(ClassroomChangesSchema(partial=True))
    @blp.returns(ClassroomSchema)
    @blp.if_match(service.classroom, row_lock(Classroom))
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Change the given members of a classroom; its cohorts show the new name."""
        return service.classroom(service.change_classroom(classroom_id=id, **changes))

    @blp.requires(Permission.CLASSROOMS_DELETE)
    @blp.returns_deleted()
    @blp.if_match(service.classroom, service.DELETION.row_lock)
    def delete(self, id: UUID) -> Any:
        """Delete a classroom that no cohort is of."""
        return service.delete_classroom(classroom_id=id)
