"""The caller, as answered."""

from __future__ import annotations

from marshmallow import fields

from school_service.features.classes.subject_teachers.schemas import SubjectTeacherSchema
from school_service.features.people.guardians.schemas import GuardianSchema
from school_service.features.people.models import REACHES
from school_service.features.people.students.schemas import StudentSchema
from school_service.features.people.users.schemas import SchoolSchema, UserSchema
from school_service.web.schemas import NamedSchema, RecordSchema, described, list_of, record_of, text_of

_REACH = "SCHOOL: the whole school's records; OWN: records that the caller is related to."


class MyRoleSchema(NamedSchema):
    """A role of the caller."""

    reach = text_of(REACHES, _REACH)


class MyPermissionSchema(RecordSchema):
    """A permission of the caller, and its reach."""

    permission = described(fields.String, "Such as write:gradebooks.")
    reach = text_of(REACHES, _REACH)


class MyClassSchema(RecordSchema):
    """A batch looked after by the caller."""

    batch = fields.UUID()
    batch_name = described(fields.String, "The arm's name.")
    cohort = fields.UUID()
    classroom = described(fields.String, "The classroom's name.")
    session = described(fields.String, "The id of the academic session.")


class MyChildSchema(RecordSchema):
    """A student with the caller as a guardian."""

    student = described(fields.UUID, "The id of the student.")
    admission_number = fields.String()
    first_name = fields.String()
    last_name = fields.String()
    relationship = fields.String(allow_none=True)
    batch = fields.UUID(allow_none=True)
    batch_name = described(fields.String, "The arm's name.", allow_none=True)
    classroom = described(fields.String, "The classroom's name.", allow_none=True)


class MyEmployeeSchema(RecordSchema):
    """The caller as an employee."""

    id = fields.UUID()
    title = fields.String(allow_none=True)
    position = described(fields.String, "The name of the position.", allow_none=True)


class MeSchema(RecordSchema):
    """The caller, with their permissions and relations.

    While the password must be changed, only `user`, `school` and `must_change_password` say something.
    """

    user = record_of(UserSchema, "The user; null for a machine client.", allow_none=True)
    client = described(fields.String, "The id of the machine client; null for a user.", allow_none=True)
    school = fields.Nested(SchoolSchema)
    roles = list_of(MyRoleSchema, "By name.")
    permissions = list_of(MyPermissionSchema, "The permissions of the token, by name.")
    classes = list_of(MyClassSchema, "The batches that the caller looks after.")
    subjects = list_of(SubjectTeacherSchema, "The subjects that the caller teaches today.")
    children = list_of(MyChildSchema, "The students whose guardian the caller is.")
    student = record_of(StudentSchema, "The student that the caller is, if any.", allow_none=True)
    employee = record_of(MyEmployeeSchema, "The employee that the caller is, if any.", allow_none=True)
    guardian = record_of(GuardianSchema, "The guardian that the caller is, if any.", allow_none=True)
    must_change_password = described(
        fields.Boolean, "Whether everything else is refused until the user has set another password."
    )
