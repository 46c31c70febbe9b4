"""The caller, as answered."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.features.classes.subject_teachers.schemas import SubjectTeacherSchema
from school_service.features.people.guardians.schemas import GuardianSchema
from school_service.features.people.models import REACHES
from school_service.features.people.students.schemas import StudentSchema
from school_service.features.people.users.schemas import SchoolSchema, UserSchema
from school_service.web.schemas import RecordSchema

_REACH = "SCHOOL: the whole school's records; OWN: those that the caller is related to."


class MyRoleSchema(RecordSchema):
    """A role of the caller."""

    id = fields.UUID()
    name = fields.String()
    reach = fields.String(validate=validate.OneOf(REACHES), metadata={"description": _REACH})


class MyPermissionSchema(RecordSchema):
    """A permission of the caller, and its reach."""

    permission = fields.String(metadata={"description": "Such as write:gradebooks."})
    reach = fields.String(validate=validate.OneOf(REACHES), metadata={"description": _REACH})


class MyClassSchema(RecordSchema):
    """A batch looked after by the caller."""

    batch = fields.UUID()
    batch_name = fields.String(metadata={"description": "The arm's name."})
    cohort = fields.UUID()
    classroom = fields.String(metadata={"description": "The classroom's name."})
    session = fields.String(metadata={"description": "The id of the academic session."})


class MyChildSchema(RecordSchema):
    """A student with the caller as a guardian."""

    student = fields.UUID(metadata={"description": "The id of the student."})
    admission_number = fields.String()
    first_name = fields.String()
    last_name = fields.String()
    relationship = fields.String(allow_none=True)
    batch = fields.UUID(allow_none=True)
    batch_name = fields.String(allow_none=True, metadata={"description": "The arm's name."})
    classroom = fields.String(allow_none=True, metadata={"description": "The classroom's name."})


class MyEmployeeSchema(RecordSchema):
    """The caller as an employee."""

    id = fields.UUID()
    title = fields.String(allow_none=True)
    position = fields.String(allow_none=True, metadata={"description": "The name of the position."})


class MeSchema(RecordSchema):
    """The caller, with their permissions and relations.

    While the password must be changed, only `user`, `school` and `must_change_password` say something.
    """

    user = fields.Nested(
        UserSchema, allow_none=True, metadata={"description": "The user; null for a machine client."}
    )
    client = fields.String(
        allow_none=True, metadata={"description": "The id of the machine client; null for a user."}
    )
    school = fields.Nested(SchoolSchema)
    roles = fields.List(fields.Nested(MyRoleSchema), metadata={"description": "By name."})
    permissions = fields.List(
        fields.Nested(MyPermissionSchema), metadata={"description": "Those of the token, by name."}
    )
    classes = fields.List(
        fields.Nested(MyClassSchema), metadata={"description": "The batches that the caller looks after."}
    )
    subjects = fields.List(
        fields.Nested(SubjectTeacherSchema), metadata={"description": "What the caller teaches today."}
    )
    children = fields.List(
        fields.Nested(MyChildSchema),
        metadata={"description": "The students of whom the caller is a guardian."},
    )
    student = fields.Nested(
        StudentSchema, allow_none=True, metadata={"description": "The student that the caller is, if any."}
    )
    employee = fields.Nested(
        MyEmployeeSchema,
        allow_none=True,
        metadata={"description": "The employee that the caller is, if any."},
    )
    guardian = fields.Nested(
        GuardianSchema,
        allow_none=True,
        metadata={"description": "The guardian that the caller is, if any."},
    )
    must_change_password = fields.Boolean(
        metadata={
            "description": "Whether everything else is refused until the user has set another password."
        }
    )
