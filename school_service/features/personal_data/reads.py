"""Read models of all stored data of a person: one statement, however much there is."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    and_,
    any_,
    case,
    cast,
    func,
    literal_column,
    or_,
    select,
    union_all,
)

from school_service.core.read_models import Query, array_of, read_model
from school_service.features.attendance.models import Mark, Register
from school_service.features.audit.models import AuditEntry
from school_service.features.classes.models import CohortSubject, SubjectEnrollment, SubjectTeacher
from school_service.features.invitations.taking import ENTITY as INVITATION
from school_service.features.people.gains.service import IDENTITY_ENTITY
from school_service.features.people.guardians.service import LINK
from school_service.features.people.models import (
    BankAccount,
    Contact,
    Employee,
    FormTeacher,
    Guardian,
    Invitation,
    NextOfKin,
    Role,
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
    MetricDefinition,
    MetricScore,
    Promotion,
    PromotionAmendment,
    PromotionDecision,
    Publication,
    ReportCard,
)
from school_service.features.school.models import (
    AcademicSession,
    Batch,
    Classroom,
    Cohort,
    Department,
    EmployeeCategory,
    Enrollment,
    Position,
    Subject,
    Term,
)
from school_service.features.scores.assessments.service import ABSENCE_ENTITY
from school_service.features.scores.models import Absence, Assessment, GradebookEntry
from school_service.features.year.models import TermComment

Rows = Select[*tuple[Any, ...]]

_BATCH, _CLASSROOM = Batch.name.label("batch"), Classroom.name.label("classroom")
_SUBJECT, _SESSION = Subject.name.label("subject"), AcademicSession.name.label("session")
_TERM = Term.display_name.label("term")


@read_model
def student_data(student_id: UUID) -> Query:
    """Read model of StudentDataSchema, for one."""
    user_id = select(Student.user_id).where(Student.id == student_id).scalar_subquery()
    records = [
        select(Student.id).where(Student.id == student_id),
        *_records_of_account(user_id),
        *(
            select(model.id).where(model.student_id == student_id)
            for model in (Enrollment, GradebookEntry, Metric, Graduate)
        ),
    ]
    return select(
        *_account(user_id, records, _absence_entries(student_id)),
        _only_row(_stored(Student, Student.id == student_id), "student"),
        _many(_guardians(student_id), "guardians"),
        _many(_enrollments(student_id), "enrollments"),
        _many(_subject_enrollments(student_id), "subject_enrollments"),
        _many(_gradebook_entries(student_id), "gradebook_entries"),
        _many(_absences(student_id), "absences"),
        _many(_marks(student_id), "marks"),
        _many(_metrics(student_id), "metrics"),
        _many(_term_comments(student_id), "term_comments"),
        _many(_report_cards(student_id), "report_cards"),
        _many(_issued_transcripts(student_id), "issued_transcripts"),
        _many(_left_out(student_id), "left_out_students"),
        _many(_promotion_decisions(student_id), "promotion_decisions"),
        _only_row(_stored(Graduate, Graduate.student_id == student_id), "graduate"),
    ).where(Student.id == student_id)


@read_model
def employee_data(employee_id: UUID) -> Query:
    """Read model of EmployeeDataSchema, for one, deleted or not."""
    user_id = select(Employee.user_id).where(Employee.id == employee_id).scalar_subquery()
    records = [
        select(Employee.id).where(Employee.id == employee_id),
        *_records_of_account(user_id),
        *(select(model.id).where(model.employee_id == employee_id) for model in (BankAccount, NextOfKin)),
    ]
    return select(
        *_account(user_id, records),
        _only_row(_employee(employee_id), "employee"),
        _only_row(_stored(BankAccount, BankAccount.employee_id == employee_id), "bank_account"),
        _only_row(_stored(NextOfKin, NextOfKin.employee_id == employee_id), "next_of_kin"),
        _many(_form_teachers(employee_id), "form_teachers"),
        _many(_subject_teachers(employee_id), "subject_teachers"),
    ).where(Employee.id == employee_id)


@read_model
def guardian_data(guardian_id: UUID) -> Query:
    """Read model of GuardianDataSchema, for one."""
    user_id = select(Guardian.user_id).where(Guardian.id == guardian_id).scalar_subquery()
    of_guardian = Guardian.id == guardian_id
    records = [select(Guardian.id).where(of_guardian), *_records_of_account(user_id)]
    return select(
        *_account(user_id, records, _link_entries(guardian_id)),
        _only_row(_stored(Guardian, of_guardian), "guardian"),
        _many(_children(guardian_id), "children"),
    ).where(of_guardian)


# The stored data of accounts.


def _account(user_id: Any, records: list[Any], *entries: Any) -> list[Any]:
    roles = (
        select(*told_columns(UserRole), Role.name.label("role"))
        .join(Role, Role.id == UserRole.role_id)
        .where(UserRole.user_id == user_id)
        .order_by(UserRole.created_at, UserRole.role_id)
    )
    return [
        _only_row(_stored(User, User.id == user_id), "user"),
        _many(roles, "roles"),
        _many(_of_account(Contact, Contact.owner_id == user_id), "contacts"),
        *(_many(_of_account(model, model.user_id == user_id), name) for name, model in _SIGNING_IN.items()),
        _many(_audit(user_id, records, _account_entries(user_id), *entries), "audit"),
    ]


_SIGNING_IN: dict[str, Any] = {
    "sessions": UserSession,
    "identities": UserIdentity,
    "invitations": Invitation,
    "photos": UserPhoto,
}


def _of_account(model: Any, theirs: Any) -> Rows:
    return _stored(model, theirs).order_by(model.created_at, *model.__table__.primary_key)


def _account_entries(user_id: Any) -> Any:
    """Find the log's entries on invitations and identities of an account, also on deleted ones."""
    whose = func.coalesce(AuditEntry.new["user"].astext, AuditEntry.old["user"].astext)
    return and_(
        or_(AuditEntry.entity == INVITATION, AuditEntry.entity == IDENTITY_ENTITY),
        whose == cast(user_id, Text),
    )


def _records_of_account(user_id: Any) -> list[Any]:
    return [select(User.id).where(User.id == user_id), select(Contact.id).where(Contact.owner_id == user_id)]


def _audit(user_id: Any, records: list[Any], *entries: Any) -> Rows:
    """Select the log's entries on records by their ids, and further entries by conditions of their own."""
    by_the_person = AuditEntry.actor == cast(user_id, Text)
    columns: list[ColumnElement[Any]] = [
        case((by_the_person, column)).label(column.name) if column.name in OF_THE_ACTOR else column
        for column in told_columns(AuditEntry)
    ]
    return (
        select(*columns)
        # The ids are one array, so that each is looked up in the index, however long the log is.
        .where(or_(AuditEntry.entity_id == any_(func.array(union_all(*records).scalar_subquery())), *entries))
        .order_by(AuditEntry.at, AuditEntry.id)
    )


# The stored data of a guardian.


def _children(guardian_id: UUID) -> Rows:
    return (
        select(*told_columns(StudentGuardian), Student.admission_number, User.first_name, User.last_name)
        .join(Student, Student.id == StudentGuardian.student_id)
        .join(User, User.id == Student.user_id)
        .where(StudentGuardian.guardian_id == guardian_id)
        .order_by(StudentGuardian.created_at, StudentGuardian.student_id)
    )


def _link_entries(guardian_id: UUID) -> Any:
    """Find the log's entries on the guardianships of somebody: by the ids of the children."""
    children = select(StudentGuardian.student_id).where(StudentGuardian.guardian_id == guardian_id)
    whose = func.coalesce(AuditEntry.new["guardian"].astext, AuditEntry.old["guardian"].astext)
    return and_(
        AuditEntry.entity_id == any_(func.array(children.scalar_subquery())),
        AuditEntry.entity == LINK,
        whose == cast(guardian_id, Text),
    )


# The stored data of a student.


def _guardians(student_id: UUID) -> Rows:
    return (
        select(*told_columns(StudentGuardian), Guardian.full_name)
        .join(Guardian, Guardian.id == StudentGuardian.guardian_id)
        .where(StudentGuardian.student_id == student_id)
        .order_by(StudentGuardian.created_at, StudentGuardian.guardian_id)
    )


def _enrollments(student_id: UUID) -> Rows:
    return (
        select(*told_columns(Enrollment), _BATCH, _CLASSROOM, _SESSION)
        .join(Batch, Batch.id == Enrollment.batch_id)
        .join(Cohort, Cohort.id == Enrollment.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Enrollment.session_id)
        .where(Enrollment.student_id == student_id)
        .order_by(Enrollment.started_at, Enrollment.id)
    )


def _subject_enrollments(student_id: UUID) -> Rows:
    return (
        select(*told_columns(SubjectEnrollment), _SUBJECT, _CLASSROOM, _SESSION)
        .join(CohortSubject, CohortSubject.id == SubjectEnrollment.cohort_subject_id)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(Cohort, Cohort.id == CohortSubject.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .where(SubjectEnrollment.student_id == student_id)
        .order_by(SubjectEnrollment.created_at, SubjectEnrollment.cohort_subject_id)
    )


def _of_assessments(model: type[GradebookEntry | Absence], *columns: Any) -> Rows:
    """Write records with their assessment, subject, session and term."""
    return (
        select(*told_columns(model), Assessment.name.label("assessment"), *columns, _SUBJECT, _SESSION, _TERM)
        .join(Assessment, Assessment.id == model.assessment_id)
        .join(CohortSubject, CohortSubject.id == Assessment.cohort_subject_id)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(AcademicSession, AcademicSession.id == Assessment.session_id)
        .join(Term, Term.id == Assessment.term_id)
    )


def _gradebook_entries(student_id: UUID) -> Rows:
    """Write all scores, those of deleted assessments too."""
    return (
        _of_assessments(GradebookEntry, Assessment.total_points)
        .where(GradebookEntry.student_id == student_id)
        .order_by(GradebookEntry.created_at, GradebookEntry.id)
    )


def _absences(student_id: UUID) -> Rows:
    """Write all absences, those from deleted assessments too."""
    return (
        _of_assessments(Absence)
        .where(Absence.student_id == student_id)
        .order_by(Absence.created_at, Absence.assessment_id)
    )


def _absence_entries(student_id: UUID) -> Any:
    """Find the log's entries on a student's absences, also on deleted ones: by the ids of the assessments."""
    cohorts = select(Enrollment.cohort_id).where(Enrollment.student_id == student_id)
    assessments = select(Assessment.id).where(Assessment.cohort_id.in_(cohorts))
    whose = func.coalesce(AuditEntry.new["student"].astext, AuditEntry.old["student"].astext)
    return and_(
        AuditEntry.entity_id == any_(func.array(assessments.scalar_subquery())),
        AuditEntry.entity == ABSENCE_ENTITY,
        whose == cast(student_id, Text),
    )


def _marks(student_id: UUID) -> Rows:
    """Write all marks, of each register, submitted or not, with its class and its time."""
    return (
        select(
            *told_columns(Mark),
            _BATCH,
            _CLASSROOM,
            _SUBJECT,
            _SESSION,
            _TERM,
            Register.date,
            Register.part,
            Register.period,
            Register.state,
        )
        .join(Register, Register.id == Mark.register_id)
        .join(Batch, Batch.id == Register.batch_id)
        .join(Cohort, Cohort.id == Register.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Register.session_id)
        .join(Term, Term.id == Register.term_id)
        .outerjoin(CohortSubject, CohortSubject.id == Register.cohort_subject_id)
        .outerjoin(Subject, Subject.id == CohortSubject.subject_id)
        .where(Mark.student_id == student_id)
        .order_by(Register.date, Register.part, Register.period, Register.id)
    )


def _term_comments(student_id: UUID) -> Rows:
    return (
        select(*told_columns(TermComment), _SESSION, _TERM)
        .join(AcademicSession, AcademicSession.id == TermComment.session_id)
        .join(Term, Term.id == TermComment.term_id)
        .where(TermComment.student_id == student_id)
        .order_by(TermComment.created_at, TermComment.term_id)
    )


def _report_cards(student_id: UUID) -> Rows:
    """Write all cards, also of earlier versions and withdrawn ones."""
    return (
        select(*told_columns(ReportCard), _SESSION, _TERM, Publication.version, Publication.state)
        .join(Publication, Publication.id == ReportCard.publication_id)
        .join(AcademicSession, AcademicSession.id == Publication.session_id)
        .join(Term, Term.id == Publication.term_id)
        .where(ReportCard.student_id == student_id)
        .order_by(Publication.published_at, ReportCard.id)
    )


def _issued_transcripts(student_id: UUID) -> Rows:
    transcripts = _stored(IssuedTranscript, IssuedTranscript.student_id == student_id)
    return transcripts.order_by(IssuedTranscript.issued_at, IssuedTranscript.id)


def _left_out(student_id: UUID) -> Rows:
    """Write the results leaving the student out."""
    return (
        select(*told_columns(LeftOut), _SESSION, _TERM)
        .join(Term, Term.id == LeftOut.term_id)
        .join(AcademicSession, AcademicSession.id == Term.session_id)
        .where(LeftOut.student_id == student_id)
        .order_by(AcademicSession.start_date, Term.term, LeftOut.batch_id)
    )


def _promotion_decisions(student_id: UUID) -> Rows:
    """Write all decisions, also of undone promotions, each with its amendments."""
    amended = (
        select(*told_columns(PromotionAmendment))
        .where(
            PromotionAmendment.promotion_id == PromotionDecision.promotion_id,
            PromotionAmendment.student_id == PromotionDecision.student_id,
        )
        .order_by(PromotionAmendment.amended_at, PromotionAmendment.id)
        .correlate(PromotionDecision)
    )
    return (
        select(*told_columns(PromotionDecision), _SESSION, _many(amended, "amended"))
        .join(Promotion, Promotion.id == PromotionDecision.promotion_id)
        .join(AcademicSession, AcademicSession.id == Promotion.session_id)
        .where(PromotionDecision.student_id == student_id)
        .order_by(Promotion.committed_at, Promotion.id)
    )


def _metrics(student_id: UUID) -> Rows:
    scores = (
        select(*told_columns(MetricScore), MetricDefinition.name.label("trait"))
        .join(MetricDefinition, MetricDefinition.id == MetricScore.definition_id)
        .where(MetricScore.metric_id == Metric.id)
        .order_by(MetricDefinition.position, MetricDefinition.id)
        .correlate(Metric)
    )
    return (
        select(*told_columns(Metric), _SESSION, _TERM, _many(scores, "scores"))
        .join(AcademicSession, AcademicSession.id == Metric.session_id)
        .join(Term, Term.id == Metric.term_id)
        .where(Metric.student_id == student_id)
        .order_by(Metric.created_at, Metric.id)
    )


# The stored data of an employee.


def _employee(employee_id: UUID) -> Rows:
    return (
        select(
            *told_columns(Employee),
            Department.name.label("department"),
            EmployeeCategory.name.label("category"),
            Position.name.label("position"),
        )
        .outerjoin(Department, Department.id == Employee.department_id)
        .join(EmployeeCategory, EmployeeCategory.id == Employee.category_id)
        .outerjoin(Position, Position.id == Employee.position_id)
        .where(Employee.id == employee_id)
    )


def _form_teachers(employee_id: UUID) -> Rows:
    return (
        select(*told_columns(FormTeacher), _BATCH, _CLASSROOM, _SESSION)
        .join(Batch, Batch.id == FormTeacher.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .where(FormTeacher.employee_id == employee_id)
        .order_by(FormTeacher.created_at, FormTeacher.batch_id)
    )


def _subject_teachers(employee_id: UUID) -> Rows:
    return (
        select(*told_columns(SubjectTeacher), _SUBJECT, _BATCH, _CLASSROOM, _SESSION)
        .join(CohortSubject, CohortSubject.id == SubjectTeacher.cohort_subject_id)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .outerjoin(Batch, Batch.id == SubjectTeacher.batch_id)
        .join(Cohort, Cohort.id == SubjectTeacher.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .where(SubjectTeacher.employee_id == employee_id)
        .order_by(SubjectTeacher.created_at, SubjectTeacher.id)
    )


# Rows within a row.


def _stored(model: Any, condition: Any) -> Rows:
    return select(*told_columns(model)).where(condition)


def _only_row(rows: Rows, name: str) -> Any:
    """Make the column of the only row, as a JSON object; null without one."""
    row = func.row_to_json(literal_column(f"of_{name}"))
    return select(row).select_from(rows.subquery(f"of_{name}")).scalar_subquery().label(name)


def _many(rows: Rows, name: str) -> Any:
    """Make the column of the rows, as a JSON array."""
    objects = array_of(func.row_to_json(literal_column(f"of_{name}")))
    return select(objects).select_from(rows.subquery(f"of_{name}")).scalar_subquery().label(name)
