"""The conditions of reach: records within a caller's permission of reach OWN; no other module writes one.

Each is made for the relations of an operation (`Reach.relations`) over the one row of the table `caller`: the relations
found by `caller_state` of the school's schema. The place of a student *now* is the open enrollment. A subject teacher
(T) reaches students taking the subject and now in an arm taught by the teacher, a form teacher (F) students now in the
batch, a student (S) themselves, a guardian (G) their children.

Tables are taken from the metadata by their names, since this module is below all models.
"""

from __future__ import annotations

from datetime import date
from functools import reduce
from operator import add
from typing import Any

from sqlalchemy import (
    ARRAY,
    Boolean,
    ColumnElement,
    Date,
    DateTime,
    FromClause,
    Select,
    Uuid,
    bindparam,
    cast,
    column,
    false,
    func,
    literal_column,
    null,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import array

from school_service.core.database import Model
from school_service.core.reach import Reach, scope_of
from school_service.core.records import one_of
from tenants.clock import now

Condition = ColumnElement[bool]

DAYS_OF_ENDED_SESSIONS = 60
"""For as long relations of teachers hold in a session after its end; `caller_state` has the same."""

# Unlike false() it stays one of several conditions, whose tables a statement needs.
_NOTHING: Condition = literal_column("false", Boolean())

# Tables that every caller who is let in may read, since they are of the school and of no person.
_EVERYBODYS = (
    "classrooms",
    "departments",
    "employee_categories",
    "positions",
    "sessions",
    "subjects",
    "terms",
)


def _table(name: str) -> FromClause:
    """A table under a name of its own, never taken for one of the statement around."""
    return Model.metadata.tables[name].alias()


def _value(reach: Reach, name: str) -> Any:
    """A column of the caller's row."""
    return select(reach.caller.c[name]).correlate(None).scalar_subquery()


def _is_one_of(value: Any, array: Any) -> Condition:
    """Whether a value is in an array made once by the statement.

    An array in place of a subselect: PostgreSQL plans it apart, and begins with it if the value has an index.
    """
    condition: Condition = value == one_of(array)
    return condition


def _is_in(reach: Reach, expression: Any, name: str) -> Condition:
    """Whether a value is in an array of the caller's row."""
    return _is_one_of(expression, _value(reach, name))


def _array_of(query: Select[Any]) -> Any:
    """Make an array of the rows of a query of one column."""
    return func.array(query.correlate(None).scalar_subquery(), type_=ARRAY(Uuid))


def _taught(reach: Reach) -> FromClause:
    """The caller's pairs of a subject and an arm, as a table beside `caller`."""
    pairs = func.unnest(reach.caller.c.taught_subjects, reach.caller.c.taught_arms)
    return pairs.table_valued(
        column("subject", Uuid), column("arm", Uuid), joins_implicitly=True
    ).render_derived()


def _any_of(*conditions: Condition) -> Condition:
    return or_(false(), *conditions) if conditions else _NOTHING


def _is_taught_in(reach: Reach, subject_id: Any, arm: Any) -> Condition:
    """Whether the caller teaches a subject in an arm, a column of the query around."""
    taught = _taught(reach)
    subjects = (
        select(taught.c.subject).select_from(reach.caller.join(taught, true())).where(taught.c.arm == arm)
    )
    return _is_one_of(
        subject_id, func.array(subjects.correlate_except(reach.caller, taught).scalar_subquery())
    )


def _now_in_arms(reach: Reach) -> FromClause:
    """The students now in an arm taught (T) or looked after (F) by the caller, each with the arm."""
    enrollments, caller = _table("enrollments"), reach.caller.c
    staff = "".join(filter(reach.by, "TF"))
    arms = {"T": caller.taught_arms, "F": caller.form_batches}
    batches = select(reduce(add, map(arms.__getitem__, staff))).select_from(reach.caller).correlate(None)

    def make() -> Select[Any]:
        return select(enrollments.c.student_id, enrollments.c.batch_id).where(
            enrollments.c.ended_at.is_(None), _is_one_of(enrollments.c.batch_id, batches.scalar_subquery())
        )

    return reach.once(f"now_in_arms_{staff.lower()}", make)


def _taught_takers(reach: Reach) -> Select[Any]:
    """Select each pair of a subject taught by the caller and a student taking it, now in an arm of the caller's."""
    takers, now_in = _table("subject_enrollments"), _now_in_arms(reach)

    def make() -> Select[Any]:
        return (
            select(takers.c.cohort_subject_id, takers.c.student_id)
            .join(now_in, now_in.c.student_id == takers.c.student_id)
            .where(
                _is_in(reach, takers.c.cohort_subject_id, "taught_subjects"),
                _is_taught_in(reach, takers.c.cohort_subject_id, now_in.c.batch_id),
            )
        )

    table = reach.once("taught_takers", make)
    return select(table.c.cohort_subject_id, table.c.student_id).correlate(None)


def _of_staff(reach: Reach, relations: str) -> Select[Any]:
    """Select the students now in a batch of the caller's (F), or in an arm and taught there by the caller (T)."""
    takers, now_in = _table("subject_enrollments"), _now_in_arms(reach).alias()
    conditions = []
    if "F" in relations:
        conditions.append(_is_in(reach, now_in.c.batch_id, "form_batches"))
    if "T" in relations:
        # Not EXISTS, for which PostgreSQL would read all who take any subject.
        takes_one = (
            select(true())
            .where(
                takers.c.student_id == now_in.c.student_id,
                _is_taught_in(reach, takers.c.cohort_subject_id, now_in.c.batch_id),
            )
            .limit(1)
            .correlate(now_in)
            .scalar_subquery()
        )
        conditions.append(takes_one)
    return select(now_in.c.student_id).where(_any_of(*conditions))


def _kin(reach: Reach) -> Any:
    """The ids of the caller as a student (S), and of their children (G)."""
    caller = reach.caller.c
    if not reach.by("S"):
        return caller.children
    children = caller.children if reach.by("G") else cast(array([]), ARRAY(Uuid))
    return func.array_remove(func.array_append(children, caller.student), null(), type_=ARRAY(Uuid))


def _ids_of_students(reach: Reach, relations: str) -> Any:
    """The ids of the students reached by some relations, made once for all of a statement; None without any."""
    letters = "".join(filter(reach.by, relations))
    if not letters:
        return None

    def make() -> Select[Any]:
        parts = []
        if set(letters) & set("TF"):
            parts.append(_array_of(_of_staff(reach, letters)))
        if set(letters) & set("SG"):
            parts.append(_kin(reach))
        return select(reduce(add, parts).label("ids")).select_from(reach.caller)

    table = reach.once(f"students_{letters.lower()}", make)
    return select(table.c.ids).correlate(None).scalar_subquery()


def is_student_by(reach: Reach, student_id: Any, relations: str) -> Condition:
    """Whether some relations lead to a student, by their id."""
    students = _ids_of_students(reach, relations)
    return _NOTHING if students is None else _is_one_of(student_id, students)


def students_in_reach(reach: Reach, student_id: Any) -> Condition:
    """Whether a student, by their id, is in reach."""
    return is_student_by(reach, student_id, "TFSG")


def is_kin(reach: Reach, student_id: Any) -> Condition:
    """Whether a student, by their id, is the caller or a child of theirs."""
    return is_student_by(reach, student_id, "SG")


def is_form_student(reach: Reach, student_id: Any) -> Condition:
    """Whether a student, by their id, is now in a batch looked after by the caller."""
    return is_student_by(reach, student_id, "F")


def is_reached_as_staff(reach: Reach, student_id: Any) -> Condition:
    """Whether a student, by their id, is in reach of the caller as a teacher, of a subject or of a class."""
    return is_student_by(reach, student_id, "TF")


def scores_in_reach(reach: Reach, cohort_subject_id: Any, student_id: Any) -> Condition:
    """Whether a student's record in a cohort subject, such as a score, is in reach.

    T: of a student taking the subject, now in an arm with the caller as its teacher; F: of a student in the batch.
    """
    if not reach.by("T"):
        return is_form_student(reach, student_id)
    # By the students alone PostgreSQL finds rows that may be in reach, such as scores, by an index.
    may_be = _is_one_of(student_id, _array_of(select(_now_in_arms(reach).c.student_id)))
    return may_be & _any_of(
        is_form_student(reach, student_id), _is_taker(reach, cohort_subject_id, student_id)
    )


def scores_to_fill_in(reach: Reach, cohort_subject_id: Any, student_id: Any) -> Condition:
    """Whether a student's record in a cohort subject is in the sheet to fill in: as `scores_in_reach`.

    To a teacher of the subject a student of theirs as form teacher alone is none, since they enter nothing for them.
    """
    in_reach = scores_in_reach(reach, cohort_subject_id, student_id)
    if not reach.by("T"):
        return in_reach
    is_taker = _is_taker(reach, cohort_subject_id, student_id)
    return in_reach & _any_of(is_taker, ~is_taught(reach, cohort_subject_id))


def _is_taker(reach: Reach, cohort_subject_id: Any, student_id: Any) -> Condition:
    """Whether the caller teaches a cohort subject to a student who takes it."""
    return tuple_(cohort_subject_id, student_id).in_(_taught_takers(reach))


def is_form_batch(reach: Reach, batch_id: Any) -> Condition:
    """Whether the caller looks after a batch, by its id."""
    return _is_in(reach, batch_id, "form_batches") if reach.by("F") else _NOTHING


def is_form_cohort_of(reach: Reach, batch_id: Any) -> Condition:
    """Whether the caller looks after a batch of the cohort of a batch, by its id."""
    if not reach.by("F"):
        return _NOTHING
    mine, batches = _table("batches"), _table("batches")
    of_cohort = (
        select(batches.c.id)
        .join(mine, mine.c.cohort_id == batches.c.cohort_id)
        .where(is_form_batch(reach, mine.c.id))
    )
    return _is_one_of(batch_id, _array_of(of_cohort))


def is_taught_arm(reach: Reach, cohort_subject_id: Any, batch_id: Any) -> Condition:
    """Whether the caller teaches a cohort subject to a batch."""
    if not reach.by("T"):
        return _NOTHING
    taught = _taught(reach)
    pairs = (
        select(taught.c.subject, taught.c.arm).select_from(reach.caller.join(taught, true())).correlate(None)
    )
    return tuple_(cohort_subject_id, batch_id).in_(pairs)


def arms_in_reach(reach: Reach, batch_id: Any) -> Condition:
    """Whether a batch, by its id, is in reach: taught in, looked after, or of an open enrollment (S, G)."""
    caller, enrollments = reach.caller.c, _table("enrollments")
    parts = []
    if reach.by("T"):
        parts.append(caller.taught_arms)
    if reach.by("F"):
        parts.append(caller.form_batches)
    if (kin := _ids_of_students(reach, "SG")) is not None:
        now_in = select(enrollments.c.batch_id).where(
            enrollments.c.ended_at.is_(None), _is_one_of(enrollments.c.student_id, kin)
        )
        parts.append(_array_of(now_in))
    if not parts:
        return _NOTHING
    arms = select(reduce(add, parts)).select_from(reach.caller).correlate(None)
    return _is_one_of(batch_id, arms.scalar_subquery())


def results_in_reach(reach: Reach, cohort_subject_id: Any, batch_id: Any) -> Condition:
    """Whether a student's results in a cohort subject are in reach, by the student's batch in its term."""
    return _any_of(is_taught_arm(reach, cohort_subject_id, batch_id), is_form_batch(reach, batch_id))


def cohorts_in_reach(reach: Reach, cohort_id: Any) -> Condition:
    """Whether a cohort, by its id, has an arm in reach."""
    batches = _table("batches")
    return _is_one_of(
        cohort_id, _array_of(select(batches.c.cohort_id).where(arms_in_reach(reach, batches.c.id)))
    )


def subjects_in_reach(reach: Reach, cohort_subject_id: Any, cohort_id: Any) -> Condition:
    """Whether a cohort subject, by its id and its cohort's, is in reach.

    T: taught; F: of the batch's cohort; S, G: taken.
    """
    conditions = []
    if reach.by("T"):
        conditions.append(_is_in(reach, cohort_subject_id, "taught_subjects"))
    if reach.by("F"):
        batches = _table("batches")
        cohorts = select(batches.c.cohort_id).where(is_form_batch(reach, batches.c.id))
        conditions.append(_is_one_of(cohort_id, _array_of(cohorts)))
    if (kin := _ids_of_students(reach, "SG")) is not None:
        takers = _table("subject_enrollments")
        taken = select(takers.c.cohort_subject_id).where(_is_one_of(takers.c.student_id, kin))
        conditions.append(_is_one_of(cohort_subject_id, _array_of(taken)))
    return _any_of(*conditions)


def is_taught(reach: Reach, cohort_subject_id: Any) -> Condition:
    """Whether the caller teaches a cohort subject in some arm."""
    return _is_in(reach, cohort_subject_id, "taught_subjects") if reach.by("T") else _NOTHING


def is_taught_to_all(reach: Reach, cohort_subject_id: Any, cohort_id: Any) -> Condition:
    """Whether the caller teaches a cohort subject to every arm of its cohort."""
    batches = _table("batches")
    other = (
        select(batches.c.id)
        .where(batches.c.cohort_id == cohort_id, ~is_taught_arm(reach, cohort_subject_id, batches.c.id))
        .correlate_except(batches)
    )
    return is_taught(reach, cohort_subject_id) & ~other.exists()


def guardianships_in_reach(reach: Reach, student_id: Any, guardian_id: Any, stopped_at: Any) -> Condition:
    """Whether a guardianship of a student is in reach; never while the guardian is stopped.

    F: of a student in the batch; G: one's own.
    """
    conditions = []
    if reach.by("F"):
        conditions.append(is_form_student(reach, student_id))
    if reach.by("G"):
        guardians = _table("guardians")
        own = select(guardians.c.id).where(guardians.c.user_id == _value(reach, "account"))
        conditions.append(guardian_id.in_(own.correlate(None)))
    not_stopped: Condition = stopped_at.is_(None)
    return not_stopped & _any_of(*conditions)


def guardians_in_reach(reach: Reach, guardian_id: Any, user_id: Any) -> Condition:
    """Whether a guardian is in reach. F: of a student in the batch, and not stopped; G: oneself."""
    conditions = []
    if reach.by("F"):
        links = _table("student_guardians")
        in_form = is_form_student(reach, links.c.student_id) & links.c.stopped_at.is_(None)
        conditions.append(guardian_id.in_(select(links.c.guardian_id).where(in_form).correlate(None)))
    conditions.append(user_id == _value(reach, "account"))  # G, also without a child
    return _any_of(*conditions)


def today() -> ColumnElement[date]:
    """The school's day, by its time zone, when the statement is sent."""
    # The clock is asked by its name each time: a test may set another.
    moment = bindparam("the_moment", callable_=lambda: now(), type_=DateTime(timezone=True))
    settings = _table("school_settings")
    return cast(func.timezone(select(settings.c.time_zone).scalar_subquery(), moment), Date)


def session_counts(session: Any) -> Condition:
    """Whether relations of teachers hold in an academic session: it is current, or ended not too long ago."""
    recent = session.end_date >= today() - DAYS_OF_ENDED_SESSIONS
    return or_(session.current, recent)


def holds_today(row: Any) -> Condition:
    """Whether an assignment holds today, by its dates."""
    day = today()
    begun = or_(row.starts_on.is_(None), row.starts_on <= day)
    return begun & or_(row.ends_on.is_(None), row.ends_on >= day)


def accounts_in_reach(reach: Reach, user_id: Any) -> Condition:
    """Whether an account, by its id, is the caller's own (M), or of a student in a batch of theirs (F)."""
    conditions = []
    if reach.by("M"):
        conditions.append(user_id == _value(reach, "account"))
    if reach.by("F"):
        students = _table("students")
        accounts = select(students.c.user_id).where(is_form_student(reach, students.c.id))
        conditions.append(_is_one_of(user_id, _array_of(accounts)))
    return _any_of(*conditions)


def photos_in_reach(reach: Reach, user_id: Any) -> Condition:
    """Whether the photo of an account, by its id, is in reach.

    It is the caller's own (M), or of a student in reach, or of a form teacher of an arm in reach.
    """
    students, employees, form_teachers = map(_table, ("students", "employees", "form_teachers"))
    of_students = select(students.c.user_id).where(students_in_reach(reach, students.c.id))
    of_form_teachers = (
        select(employees.c.user_id)
        .join(form_teachers, form_teachers.c.employee_id == employees.c.id)
        .where(employees.c.deleted_at.is_(None), arms_in_reach(reach, form_teachers.c.batch_id))
    )
    return _any_of(
        *([user_id == _value(reach, "account")] if reach.by("M") else []),
        user_id.in_(of_students.correlate(None)),
        user_id.in_(of_form_teachers.correlate(None)),
    )


def is_employee(reach: Reach, employee_id: Any) -> Condition:
    """Whether an employee, by their id, is the caller."""
    condition: Condition = employee_id == _value(reach, "employee")
    return condition if reach.by("M") else _NOTHING


@scope_of("students")
def _students(reach: Reach, row: Any) -> Condition:
    return students_in_reach(reach, row.id)


@scope_of("batches")
def _batches(reach: Reach, row: Any) -> Condition:
    return arms_in_reach(reach, row.id)


@scope_of("cohorts")
def _cohorts(reach: Reach, row: Any) -> Condition:
    return cohorts_in_reach(reach, row.id)


@scope_of("cohort_subjects")
def _cohort_subjects(reach: Reach, row: Any) -> Condition:
    return subjects_in_reach(reach, row.id, row.cohort_id)


@scope_of("assessments")
def _assessments(reach: Reach, row: Any) -> Condition:
    return subjects_in_reach(reach, row.cohort_subject_id, row.cohort_id)


def assignments_in_reach(reach: Reach, row: Any) -> Condition:
    """Whether an assignment is of a subject in reach, and of an arm in reach or of all."""
    of_arm = or_(row.batch_id.is_(None), arms_in_reach(reach, row.batch_id))
    return subjects_in_reach(reach, row.cohort_subject_id, row.cohort_id) & of_arm


@scope_of("users")
def _users(reach: Reach, row: Any) -> Condition:
    return accounts_in_reach(reach, row.id)


@scope_of("employees")
def _employees(reach: Reach, row: Any) -> Condition:
    return is_employee(reach, row.id)


@scope_of("publications")
def _publications(reach: Reach, row: Any) -> Condition:
    return is_form_batch(reach, row.batch_id)


def _everybodys(_reach: Reach, _row: Any) -> Condition:
    return true()


for _name in _EVERYBODYS:
    scope_of(_name)(_everybodys)
