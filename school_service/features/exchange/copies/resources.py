"""The one table of resources: the kinds of records that an export has and changes tell of.

A record is stored facts, with ids for other records. `without` names the members of a GET that are not in a record,
since they are another record's, of an actor, computed, or of the day or the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import ARRAY, Text, Uuid, bindparam, case, cast, exists, func, literal_column, select
from sqlalchemy.orm import aliased

from school_service.core.permissions import Permission
from school_service.core.read_models import CompiledStatement, Query, array_of, json_object
from school_service.core.records import one_of
from school_service.features.attendance.codes.service import attendance_codes
from school_service.features.attendance.models import Mark, Register, SchoolDay
from school_service.features.attendance.settings.service import attendance_settings
from school_service.features.classes.cohort_subjects.reads import cohort_subjects
from school_service.features.classes.models import CohortSubject, SubjectEnrollment, SubjectTeacher
from school_service.features.observations.metrics.reads import definitions
from school_service.features.people.contacts.service import contacts
from school_service.features.people.employees.reads import bank_account, employees, next_of_kin
from school_service.features.people.guardians.reads import guardians
from school_service.features.people.models import (
    Contact,
    Employee,
    FormTeacher,
    Guardian,
    NextOfKin,
    Student,
    StudentGuardian,
    User,
)
from school_service.features.people.roles.reads import roles
from school_service.features.people.students.reads import students
from school_service.features.people.users.reads import users
from school_service.features.results.graduates.reads import graduates
from school_service.features.results.models import (
    Graduate,
    Metric,
    MetricScore,
    Promotion,
    PromotionAmendment,
    PromotionBatch,
    PromotionDecision,
    Publication,
    ReportCard,
)
from school_service.features.results.promotions.reads import promotion_rules
from school_service.features.results.publications.reads import publications
from school_service.features.school.cohorts.reads import batches
from school_service.features.school.letterheads.reads import stored_letterhead
from school_service.features.school.models import (
    LETTERHEAD_TEXTS,
    Classroom,
    Cohort,
    Enrollment,
    Subject,
    Term,
    TermCalendar,
)
from school_service.features.school.sessions.service import sessions, terms
from school_service.features.school.settings.service import (
    departments,
    employee_categories,
    positions,
    school_settings,
)
from school_service.features.scores.assessments.reads import assessments
from school_service.features.scores.grade_configs.service import grade_configurations
from school_service.features.scores.gradebooks.reads import entries
from school_service.features.scores.models import (
    OF_LEVEL,
    Absence,
    Assessment,
    GradebookEntry,
    GradeScale,
    LevelSettings,
    Submission,
)
from school_service.features.scores.result_settings.reads import result_settings
from school_service.features.year.models import TermComment
from school_service.features.year.term_calendars.service import CALENDAR

KEY, RECORD = "key", "record"
SETTINGS = "settings"


@dataclass(frozen=True)
class Resource:
    """A kind of record: its public name, the permission to read it, and a select of its records.

    The key of a record is the column `key`, else `id`; all others are its members, but those `without`. Entries of
    `entity` in the audit log tell of the record with their id as its key. A key is a uuid, unless it `is_text`. With
    `only` it is one record of the resource, of this key: settings are several, objects or arrays (`listed`).
    """

    name: str
    permission: Permission
    entity: str | None
    select: Callable[[], Query]
    without: tuple[str, ...] = ()
    only: str | None = None
    listed: bool = False
    is_text: bool = False

    @cached_property
    def rows(self) -> Any:
        """The rows, as a subquery with the columns `key` and `record`."""
        query = self.select()
        if self.only is not None:
            record = json_object(**dict(query.subquery("setting").c))
            shown = array_of(record) if self.listed else record
            return select(literal_column(f"'{self.only}'").label(KEY), shown.label(RECORD)).subquery("found")
        members = {str(column.key): column for column in query.selected_columns}
        key: Any = members.pop(KEY, members.get("id"))
        record = json_object(**{name: members[name] for name in members if name not in self.without})
        listing = query.with_only_columns(key.label(KEY), record.label(RECORD), maintain_column_froms=True)
        return listing.order_by(None).subquery("found")

    @cached_property
    def lines(self) -> CompiledStatement:
        """The statement of all records, each a line of JSON."""
        return CompiledStatement(select(self._line))

    @cached_property
    def some(self) -> CompiledStatement:
        """The statement of the records with the keys `ids`: one text of lines."""
        kind = Text() if self.is_text else Uuid()
        ids = bindparam("ids", type_=ARRAY(Text), required=True)
        lines = func.string_agg(self._line.op("||")(literal_column("chr(10)")), literal_column("''"))
        text = func.coalesce(lines, literal_column("''")).label("body")
        return CompiledStatement(select(text).where(self.rows.c[KEY] == one_of(ids, kind)))

    @cached_property
    def there(self) -> CompiledStatement:
        """The statement whether there is a record of the key `t.id`."""
        key: Any = literal_column("t.id") if self.is_text else literal_column("t.id::uuid")
        return CompiledStatement(select(exists().where(self.rows.c[KEY] == key)))

    @property
    def _line(self) -> Any:
        # A line feed in JSON stands between values alone: those within texts are escaped.
        line = json_object(
            resource=literal_column(f"'{self.name}'"), id=self.rows.c[KEY], record=self.rows.c[RECORD]
        )
        return func.replace(cast(line, Text), literal_column("chr(10)"), literal_column("' '")).label("line")


def _members(model: Any, *without: str) -> dict[str, Any]:
    """Name the columns of a table as members: `user_id` as `user`; actors are left out."""
    return {
        "createdAt" if column.key == "created_at" else column.key.removesuffix("_id"): column
        for column in model.__table__.c
        if column.key not in without and not column.key.endswith(("_by", "_by_name"))
    }


def _records(members: Mapping[str, Any], key: Any = None) -> Query:
    keys = [] if key is None else [key.label(KEY)]
    return select(*keys, *(column.label(name) for name, column in members.items()))


def _lists(key: Any, name: str, rows: Mapping[str, Any], *order: Any) -> Query:
    """Select lists: one of each key, with its id as a member, and its rows as the member `name`."""
    members = {key.key.removesuffix("_id"): key, name: array_of(json_object(**rows), *order)}
    return _records(members, key).group_by(key)


def _there(student_id: Any) -> Any:
    """Tell whether a student's data are there: not erased."""
    student, user = aliased(Student), aliased(User)
    return exists().where(student.id == student_id, user.id == student.user_id, user.erased_at.is_(None))


def _teaches(employee_id: Any) -> Any:
    """Tell whether an employee is there: neither deleted nor their account."""
    employee, user = aliased(Employee), aliased(User)
    return exists().where(
        employee.id == employee_id,
        employee.deleted_at.is_(None),
        user.id == employee.user_id,
        user.deleted_at.is_(None),
    )


def _users() -> Query:
    return users.query().add_columns(User.photo.label("photo_digest"))


_ANY_EMPLOYEE: Any = Employee.id  # in place of an id


def _terms() -> Query:
    query = terms.query().outerjoin(TermCalendar, TermCalendar.term_id == Term.id)
    return query.add_columns(*CALENDAR)


def _letterhead() -> Query:
    chosen = stored_letterhead.query().subquery("chosen").c
    pictures = (chosen[name].label(f"{name}_digest") for name in ("logo", "signature"))
    return select(*(chosen[name] for name in LETTERHEAD_TEXTS), *pictures)


def _next_of_kin() -> Query:
    return next_of_kin.query(_ANY_EMPLOYEE).add_columns(NextOfKin.employee_id.label("employee"))


def _student_guardians() -> Query:
    link = StudentGuardian
    row = {
        "guardian": link.guardian_id,
        "relationship": link.relationship,
        "primary": link.is_primary,
        "receives_reports": link.receives_reports & link.stopped_at.is_(None),
        "stopped_at": link.stopped_at,
        "stop_reason": link.stop_reason,
    }
    return _lists(link.student_id, "guardians", row, link.guardian_id).where(_there(link.student_id))


def _contacts() -> Query:
    query = contacts.query().join(User, User.id == Contact.owner_id).where(User.deleted_at.is_(None))
    return query.add_columns(Contact.created_at.label("createdAt"))


def _subject_teachers() -> Query:
    of = SubjectTeacher
    row = _members(of, "cohort_subject_id", "cohort_id")
    return _lists(of.cohort_subject_id, "teachers", row, of.id).where(_teaches(of.employee_id))


def _form_teachers() -> Query:
    of = FormTeacher
    row = {"teacher_id": of.employee_id, "createdAt": of.created_at}
    return _lists(of.batch_id, "teachers", row, of.created_at, of.employee_id).where(_teaches(of.employee_id))


def _enrollments() -> Query:
    of = Enrollment
    row = _members(of, "student_id")
    return _lists(of.student_id, "enrollments", row, of.started_at, of.id).where(_there(of.student_id))


def _subject_enrollments() -> Query:
    of = SubjectEnrollment
    row = _members(of, "student_id")
    return _lists(of.student_id, "subjects", row, of.cohort_subject_id).where(_there(of.student_id))


def _assessments() -> Query:
    created = Assessment.created_at.label("createdAt")
    return assessments.query().add_columns(Assessment.description, created, Assessment.submitted_batches)


def _scores() -> Query:
    of = GradebookEntry
    query = entries.query().add_columns(of.sheet, of.created_at.label("createdAt"), of.updated_at)
    return query.where(_there(of.student_id))


def _absences() -> Query:
    of = Absence
    listed = _lists(of.assessment_id, "absences", _members(of, "assessment_id"), of.student_id)
    is_there = exists().where(Assessment.id == of.assessment_id, Assessment.deleted_at.is_(None))
    return listed.where(is_there, _there(of.student_id))


def _submissions() -> Query:
    of = Submission
    row = json_object(batch=of.batch_id, submitted_at=of.submitted_at)
    members = {
        "cohort_subject": of.cohort_subject_id,
        "term": of.term_id,
        "batches": array_of(row, of.batch_id),
    }
    key = func.concat(of.cohort_subject_id, ":", of.term_id)
    return _records(members, key).group_by(of.cohort_subject_id, of.term_id)


def _registers() -> Query:
    correction = json_object(
        code=Mark.correction_code, kind=Mark.correction_kind, reason=Mark.reason, at=Mark.corrected_at
    )
    mark = json_object(
        student=Mark.student_id,
        code=Mark.code,
        kind=Mark.kind,
        note=Mark.note,
        arrived=func.to_char(Mark.arrived, literal_column("'HH24:MI'")),
        correction=case((Mark.correction_code.is_not(None), correction)),
    )
    marks = select(array_of(mark, Mark.student_id)).where(
        Mark.register_id == Register.id, _there(Mark.student_id)
    )
    return _records({**_members(Register), "marks": marks.correlate(Register).scalar_subquery()})


def _metrics() -> Query:
    scores = select(func.json_object_agg(MetricScore.definition_id, MetricScore.score)).where(
        MetricScore.metric_id == Metric.id
    )
    members = {**_members(Metric), "metric_scores": scores.correlate(Metric).scalar_subquery()}
    return _records(members).where(_there(Metric.student_id))


def _comments() -> Query:
    of = TermComment
    key = func.concat(of.student_id, ":", of.term_id)
    return _records(_members(of), key).where(_there(of.student_id))


def _publications() -> Query:
    student = func.jsonb_array_elements_text(
        func.coalesce(Publication.rules["left"], literal_column("'[]'::jsonb"))
    ).column_valued("student")
    left = select(array_of(student, student)).where(_there(cast(student, Uuid)))
    return publications.query().add_columns(
        Publication.session_id.label("session"),
        Publication.term_id.label("term"),
        left.correlate(Publication).scalar_subquery().label("left"),
    )


def _report_cards() -> Query:
    return _records(_members(ReportCard, "code")).where(_there(ReportCard.student_id))


def _promotions() -> Query:
    of, later = PromotionDecision, PromotionAmendment
    told = {
        "outcome": later.outcome,
        "to_batch": later.to_batch_id,
        "reason": later.reason,
        "at": later.amended_at,
    }
    amended = (
        select(array_of(json_object(**told), later.amended_at, later.id))
        .where(later.promotion_id == of.promotion_id, later.student_id == of.student_id)
        .correlate(of)
    )
    decided = {
        **_members(of, "promotion_id", "enrollment_id", "before"),
        "amended": amended.scalar_subquery(),
    }
    decisions = select(array_of(json_object(**decided), of.student_id)).where(
        of.promotion_id == Promotion.id, _there(of.student_id)
    )
    moved = json_object(**_members(PromotionBatch, "promotion_id", "number", "live"))
    moves = select(array_of(moved, PromotionBatch.number)).where(PromotionBatch.promotion_id == Promotion.id)
    parts = {"batches": moves, "decisions": decisions}
    shown = {name: part.correlate(Promotion).scalar_subquery() for name, part in parts.items()}
    return _records({**_members(Promotion), **shown})


def _graduates() -> Query:
    of = Graduate
    created = of.created_at.label("createdAt")
    query = graduates.query().add_columns(of.id.label(KEY), of.student_id.label("student"), created)
    return query.where(_there(of.student_id))


_READ = Permission
_OF_VERSION = ("batch_name", "published_by", "published_by_name", "reopened_by_name", "students")
_OF_CARDS = ("changed", "class_figures_changed")


def _settings(name: str, query: Callable[[], Query], *, listed: bool = True) -> Resource:
    return Resource(SETTINGS, _READ.SETTINGS_READ, None, query, only=name, listed=listed, is_text=True)


# In this order an export has them: a record comes behind all that it refers to.
RESOURCES: tuple[Resource, ...] = (
    Resource("roles", _READ.ROLES_READ, "role", roles.query),
    Resource("users", _READ.USERS_READ, "user", _users, ("photo", "school", "student")),
    Resource("sessions", _READ.TERMS_READ, "session", sessions.query),
    Resource("terms", _READ.TERMS_READ, "term", _terms),
    Resource("school-days", _READ.TERMS_READ, "school-day", lambda: _records(_members(SchoolDay))),
    Resource("classrooms", _READ.CLASSROOMS_READ, "classroom", lambda: _records(_members(Classroom))),
    Resource("subjects", _READ.SUBJECTS_READ, "subject", lambda: _records(_members(Subject))),
    _settings("settings", school_settings.query, listed=False),
    _settings("result-settings", result_settings.query, listed=False),
    _settings(
        "level-settings",
        lambda: select(LevelSettings.level, *(getattr(LevelSettings, name) for name in OF_LEVEL)).order_by(
            LevelSettings.level
        ),
    ),
    _settings("attendance-settings", attendance_settings.query, listed=False),
    _settings("attendance-codes", attendance_codes.query),
    _settings("promotion-rules", promotion_rules.query),
    _settings("letterhead", _letterhead, listed=False),
    _settings("grade-configs", grade_configurations.query),
    _settings("grade-scales", lambda: select(GradeScale.level, GradeScale.bands).order_by(GradeScale.level)),
    _settings("departments", departments.query),
    _settings("employee-categories", employee_categories.query),
    _settings("positions", positions.query),
    Resource("cohorts", _READ.COHORTS_READ, "cohort", lambda: _records(_members(Cohort))),
    Resource("batches", _READ.COHORTS_READ, "batch", batches.query),
    Resource(
        "cohort-subjects",
        _READ.COHORT_SUBJECTS_READ,
        "cohort-subject",
        lambda: cohort_subjects.query().add_columns(CohortSubject.subject_id.label("base")),
        ("subject", "code"),
    ),
    Resource(
        "students",
        _READ.STUDENTS_READ,
        "student",
        lambda: students.query().where(User.erased_at.is_(None)),
        ("batch", "cohort", "guardian", "photo"),
    ),
    Resource(
        "guardians",
        _READ.STUDENTS_READ,
        "guardian",
        lambda: guardians.query().where(Guardian.erased_at.is_(None)),
        ("children",),
    ),
    Resource("student-guardians", _READ.STUDENTS_READ, None, _student_guardians),
    Resource("contacts", _READ.CONTACTS_READ, "contact", _contacts),
    Resource(
        "employees",
        _READ.EMPLOYEES_READ,
        "employee",
        employees.query,
        ("bank_details", "next_of_kin", "username", "role"),
    ),
    Resource(
        "bank-accounts", _READ.EMPLOYEES_READ, "bank-account", lambda: bank_account.query(_ANY_EMPLOYEE)
    ),
    Resource("next-of-kin", _READ.EMPLOYEES_READ, "next-of-kin", _next_of_kin),
    Resource("form-teachers", _READ.TEACHERS_READ, None, _form_teachers),
    Resource("subject-teachers", _READ.TEACHERS_READ, None, _subject_teachers),
    Resource("enrollments", _READ.COHORTS_READ, None, _enrollments),
    Resource("subject-enrollments", _READ.COHORT_SUBJECTS_READ, None, _subject_enrollments),
    Resource("assessments", _READ.ASSESSMENTS_READ, "assessment", _assessments),
    Resource("scores", _READ.GRADEBOOKS_READ, "gradebook", _scores, ("assessment_category", "subject")),
    Resource("absences", _READ.GRADEBOOKS_READ, None, _absences),
    Resource("submissions", _READ.GRADEBOOKS_READ, None, _submissions, is_text=True),
    Resource("registers", _READ.ATTENDANCE_READ, "register", _registers),
    Resource("metric-definitions", _READ.METRICS_READ, "metric-definition", definitions.query),
    Resource("metrics", _READ.METRICS_READ, "metric", _metrics),
    Resource("comments", _READ.RESULTS_READ, None, _comments, is_text=True),
    Resource("publications", _READ.RESULTS_READ, None, _publications, (*_OF_VERSION, *_OF_CARDS)),
    Resource("report-cards", _READ.RESULTS_READ, None, _report_cards),
    Resource("promotions", _READ.RESULTS_READ, None, _promotions),
    Resource("graduates", _READ.GRADUATES_READ, "graduate", _graduates, ("school",)),
)

PERMISSIONS = {resource.name: resource.permission for resource in RESOURCES}
"""By its public name, the permission to read a resource."""
NAMES = tuple(dict.fromkeys(resource.name for resource in RESOURCES))
"""The public names of the resources."""
