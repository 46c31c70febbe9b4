"""Subjects over HTTP, under the path `/templates`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView
from marshmallow import fields

from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING
from school_service.features.school.subjects import service
from school_service.web.blueprint import Blueprint
from school_service.web.fields import Text
from school_service.web.schemas import RecordSchema, Schema


class SubjectSchema(RecordSchema):
    """A subject of a school."""

    id = fields.UUID()
    name = fields.String()
    code = fields.String()
    school = fields.UUID()


class NewSubjectSchema(Schema):
    """A subject to create."""

    name = Text()
    code = Text(metadata={"description": "Short and unique in the school, such as MTH."})


blp = Blueprint(
    "subjects", __name__, description="Subjects such as Mathematics, under the path `/templates`."
)


@blp.route("/templates")
class Subjects(MethodView):
    """The school's subjects."""

    @blp.requires(Permission.SUBJECTS_READ, own=EVERYTHING)
    @blp.returns_list(SubjectSchema)
    def get(self) -> Any:
        """List the school's subjects."""
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

    @blp.requires(Permission.SUBJECTS_DELETE)
    @blp.returns_deleted()
    def delete(self, id: UUID) -> Any:
        """Delete a subject that no cohort is taught."""
        return service.delete_subject(subject_id=id)
