"""The stored data of a person, as answered: a record for each row, with the columns of its table.

The columns are read off the models: a column added to a table is in the document. Beside the ids in them are the names
of the records they refer to, for people to read.
"""

from __future__ import annotations

from typing import Any

import marshmallow as ma
from marshmallow import fields
from sqlalchemy import ARRAY, Boolean, Date, DateTime, Integer, LargeBinary, Numeric, String, Time, Uuid
from sqlalchemy.dialects.postgresql import INET, JSONB
from sqlalchemy.types import TypeEngine

from school_service.features.attendance.models import Mark
from school_service.features.audit.models import AuditEntry
from school_service.features.classes.models import SubjectEnrollment, SubjectTeacher
from school_service.features.people.models import (
    BankAccount,
    Contact,
    Employee,
    FormTeacher,
    Guardian,
    Invitation,
    NextOfKin,
    Student,
    StudentGuardian,
    User,
    UserIdentity,
    UserPhoto,
    UserRole,
    UserSession,
)
from school_service.features.personal_data.stored import OF_THE_ACTOR, told_columns
from school_service.features.results.models import (
    Graduate,
    IssuedTranscript,
    LeftOut,
    Metric,
    MetricScore,
    PromotionAmendment,
    PromotionDecision,
    ReportCard,
)
from school_service.features.results.promotions.schemas import PromotionReasonSchema
from school_service.features.school.models import Enrollment
from school_service.features.scores.models import Absence, GradebookEntry
from school_service.features.year.models import TermComment
from school_service.web.schemas import RecordSchema, described, list_of

Field = fields.Field[Any]

_FIELDS: list[tuple[type[TypeEngine[Any]], type[Field]]] = [
    (Uuid, fields.UUID),
    (String, fields.String),
    (LargeBinary, fields.String),
    (INET, fields.String),
    (Boolean, fields.Boolean),
    (Integer, fields.Integer),
    (Numeric, fields.Decimal),
    (DateTime, fields.AwareDateTime),
    (Date, fields.Date),
    (Time, fields.Time),
    (JSONB, fields.Dict),
    (ARRAY, fields.Raw),
]


def _field(kind: TypeEngine[Any], *, nullable: bool) -> Field:
    """Make the field of a column; a type not listed above stops the start."""
    made = next(field for of, field in _FIELDS if isinstance(kind, of))
    return made(allow_none=nullable)


def _rows_of(
    model: type[Any], *, nullable: frozenset[str] = frozenset(), called: str | None = None, **names: Field
) -> type[ma.Schema]:
    """Make the schema of a table's rows: a field for each column, and for each name told with them.

    It is `called` after the model, unless another name is given.
    """
    columns = {
        column.name: _field(column.type, nullable=bool(column.nullable) or column.name in nullable)
        for column in map(model.__table__.c.get, [told.name for told in told_columns(model)])
    }
    schema = RecordSchema.from_dict({**columns, **names}, name=f"Stored{called or model.__name__}Schema")
    _TABLES[schema] = model.__table__.name
    return schema


_TABLES: dict[type[ma.Schema], str] = {}


def tables_of(schema: type[ma.Schema]) -> list[str]:
    """Name the tables with rows in a document of this schema, by itself and by the schemas nested in it."""
    tables = [_TABLES[schema]] if schema in _TABLES else []
    for field in schema().fields.values():
        inner = field.inner if isinstance(field, fields.List) else field
        if isinstance(inner, fields.Nested):
            tables += tables_of(type(inner.schema))
    return tables


def _name(*, allow_none: bool = False) -> Field:
    return fields.String(allow_none=allow_none)


StoredStudentSchema = _rows_of(Student)
StoredEmployeeSchema = _rows_of(
    Employee, department=_name(allow_none=True), category=_name(), position=_name(allow_none=True)
)
StoredUserSchema = _rows_of(User)
StoredGuardianSchema = _rows_of(Guardian)
StoredStudentGuardianSchema = _rows_of(StudentGuardian, full_name=_name())
StoredChildSchema = _rows_of(
    StudentGuardian, called="Child", admission_number=_name(), first_name=_name(), last_name=_name()
)
StoredUserRoleSchema = _rows_of(UserRole, role=_name())
StoredContactSchema = _rows_of(Contact)
StoredUserSessionSchema = _rows_of(UserSession, permissions=fields.List(fields.String(), allow_none=True))
StoredUserIdentitySchema = _rows_of(UserIdentity)
StoredInvitationSchema = _rows_of(Invitation)
StoredUserPhotoSchema = _rows_of(UserPhoto)
StoredEnrollmentSchema = _rows_of(Enrollment, batch=_name(), classroom=_name(), session=_name())
StoredSubjectEnrollmentSchema = _rows_of(
    SubjectEnrollment, subject=_name(), classroom=_name(), session=_name()
)
StoredGradebookEntrySchema = _rows_of(
    GradebookEntry,
    assessment=_name(),
    total_points=fields.Decimal(),
    subject=_name(),
    session=_name(),
    term=_name(),
)
StoredAbsenceSchema = _rows_of(Absence, assessment=_name(), subject=_name(), session=_name(), term=_name())
StoredMarkSchema = _rows_of(
    Mark,
    batch=_name(),
    classroom=_name(),
    subject=described(fields.String, "Of a lesson.", allow_none=True),
    session=_name(),
    term=_name(),
    date=fields.Date(),
    part=_name(),
    period=described(fields.Integer, "Of a lesson.", allow_none=True),
    state=_name(),
)
StoredTermCommentSchema = _rows_of(TermComment, session=_name(), term=_name())
StoredReportCardSchema = _rows_of(
    ReportCard, session=_name(), term=_name(), version=fields.Integer(), state=_name()
)
StoredIssuedTranscriptSchema = _rows_of(IssuedTranscript, card_ids=fields.List(fields.UUID()))
StoredLeftOutSchema = _rows_of(LeftOut, session=_name(), term=_name())
StoredPromotionAmendmentSchema = _rows_of(PromotionAmendment)
StoredPromotionDecisionSchema = _rows_of(
    PromotionDecision,
    reasons=list_of(PromotionReasonSchema),
    session=_name(),
    amended=list_of(StoredPromotionAmendmentSchema),
)
StoredMetricScoreSchema = _rows_of(MetricScore, trait=_name())
StoredMetricSchema = _rows_of(Metric, session=_name(), term=_name(), scores=list_of(StoredMetricScoreSchema))
StoredGraduateSchema = _rows_of(Graduate)
StoredBankAccountSchema = _rows_of(BankAccount)
StoredNextOfKinSchema = _rows_of(NextOfKin)
StoredFormTeacherSchema = _rows_of(FormTeacher, batch=_name(), classroom=_name(), session=_name())
StoredSubjectTeacherSchema = _rows_of(
    SubjectTeacher,
    subject=_name(),
    batch=described(fields.String, "The arm's name; null: all arms.", allow_none=True),
    classroom=_name(),
    session=_name(),
)
StoredAuditEntrySchema = _rows_of(AuditEntry, nullable=OF_THE_ACTOR)


class AccountDataSchema(RecordSchema):
    """The stored data of the holder of an account; the account without its password."""

    user = fields.Nested(StoredUserSchema)
    roles = list_of(StoredUserRoleSchema)
    contacts = list_of(StoredContactSchema)
    sessions = list_of(StoredUserSessionSchema, "Where they have signed in by a client.")
    identities = list_of(StoredUserIdentitySchema, "The outside sign-ins that open the account.")
    invitations = list_of(StoredInvitationSchema, "The open one, without its code; or none.")
    photos = list_of(StoredUserPhotoSchema, "The one that is kept, or none; `image` is in base64.")
    audit = list_of(
        StoredAuditEntrySchema,
        "Changes of these records, the oldest first. The author is told where it was the person.",
    )


class StudentDataSchema(AccountDataSchema):
    """All stored data of a student."""

    student = fields.Nested(StoredStudentSchema)
    guardians = list_of(StoredStudentGuardianSchema, "The student's guardians.")
    enrollments = list_of(StoredEnrollmentSchema)
    subject_enrollments = list_of(StoredSubjectEnrollmentSchema)
    gradebook_entries = list_of(StoredGradebookEntrySchema)
    absences = list_of(StoredAbsenceSchema)
    marks = list_of(StoredMarkSchema, "Of attendance, in every register.")
    metrics = list_of(StoredMetricSchema)
    term_comments = list_of(StoredTermCommentSchema)
    report_cards = list_of(StoredReportCardSchema)
    issued_transcripts = list_of(StoredIssuedTranscriptSchema)
    left_out_students = list_of(StoredLeftOutSchema)
    promotion_decisions = list_of(StoredPromotionDecisionSchema)
    graduate = fields.Nested(StoredGraduateSchema, allow_none=True)


class EmployeeDataSchema(AccountDataSchema):
    """All stored data of an employee, also of a deleted one."""

    employee = fields.Nested(StoredEmployeeSchema)
    bank_account = fields.Nested(StoredBankAccountSchema, allow_none=True)
    next_of_kin = fields.Nested(StoredNextOfKinSchema, allow_none=True)
    form_teachers = list_of(StoredFormTeacherSchema)
    subject_teachers = list_of(StoredSubjectTeacherSchema, "The subjects that they teach or taught.")


class GuardianDataSchema(AccountDataSchema):
    """All stored data of a guardian; the account is null without one."""

    user = fields.Nested(StoredUserSchema, allow_none=True)
    guardian = fields.Nested(StoredGuardianSchema)
    children = list_of(StoredChildSchema, "The students whose guardian it is.")
