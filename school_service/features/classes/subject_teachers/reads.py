"""Read models of subject teachers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    Text,
    Uuid,
    and_,
    any_,
    case,
    cast,
    exists,
    func,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by
from sqlalchemy.orm import aliased

from school_service.core.reach import Reach
from school_service.core.read_models import Query, json_object, read_model
from school_service.core.records import lock_in_order, one_of, unnest_rows
from school_service.features.classes.models import UNCOPIED, CohortSubject, SubjectTeacher
from school_service.features.people.employees.reads import TITLED_NAME
from school_service.features.people.models import IS_THERE, Employee, FormTeacher, User
from school_service.features.reach import scopes
from school_service.features.school.cohorts.reads import session_by_id_or_name
from school_service.features.school.models import IN_ORDER, AcademicSession, Batch, Classroom, Cohort, Subject

NOBODY: Any = literal_column("'[]'::jsonb", JSONB)
"""The names of the teachers, if there are none."""

# OFFSET 0 lets PostgreSQL plan each of the two by itself: a join of all nine tables takes it longer than to read them.
_CLASSES = (
    select(Cohort.id, Cohort.session_id, Classroom.name, AcademicSession.start_date)
    .join(Classroom, Classroom.id == Cohort.classroom_id)
    .join(AcademicSession, AcademicSession.id == Cohort.session_id)
    .offset(literal_column("0"))
    .subquery("classes")
)
_NAMED = select(Employee.id, Employee.title, User.first_name, User.last_name, User.name_sort_key).join(
    User, User.id == Employee.user_id
)
_TEACHERS = _NAMED.where(IS_THERE).offset(literal_column("0")).subquery("teachers")
_AND_FORMER = _NAMED.offset(literal_column("0")).subquery("teachers")


@read_model
def subject_teachers(
    cohort_subject: UUID | None = None,
    batch: UUID | None = None,
    employee: UUID | None = None,
    session: str | None = None,
    reach: Reach | None = None,
) -> Query:
    """Read model of SubjectTeacherSchema, by class, subject, arm and name, without those of deleted employees.

    All, or those of a cohort subject, for an arm, of an employee, deleted or not, of a session (its id or name).
    """
    teachers = _TEACHERS if employee is None else _AND_FORMER
    query = (
        select(
            SubjectTeacher.id,
            SubjectTeacher.cohort_subject_id.label("cohort_subject"),
            CohortSubject.subject_id.label("base"),
            Subject.name.label("subject"),
            Subject.code,
            SubjectTeacher.cohort_id.label("cohort"),
            _CLASSES.c.name.label("classroom"),
            _CLASSES.c.session_id.label("session"),
            SubjectTeacher.batch_id.label("batch"),
            Batch.name.label("batch_name"),
            SubjectTeacher.employee_id.label("employee"),
            teachers.c.title,
            teachers.c.first_name,
            teachers.c.last_name,
            SubjectTeacher.starts_on,
            SubjectTeacher.ends_on,
            SubjectTeacher.created_at.label("createdAt"),
        )
        .join(CohortSubject, CohortSubject.id == SubjectTeacher.cohort_subject_id)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(_CLASSES, _CLASSES.c.id == SubjectTeacher.cohort_id)
        .outerjoin(Batch, Batch.id == SubjectTeacher.batch_id)
        .join(teachers, teachers.c.id == SubjectTeacher.employee_id)
        .order_by(
            _CLASSES.c.name,
            _CLASSES.c.start_date.desc(),
            _CLASSES.c.session_id,
            *IN_ORDER,
            CohortSubject.id,
            Batch.name.nulls_first(),
            teachers.c.name_sort_key,
            SubjectTeacher.id,
        )
    )
    if reach is not None:
        query = query.where(scopes.assignments_in_reach(reach, SubjectTeacher))
        if batch is not None:
            query = query.where(scopes.arms_in_reach(reach, batch))
    if cohort_subject is not None:
        query = query.where(SubjectTeacher.cohort_subject_id == cohort_subject)
    if batch is not None:
        cohort = select(Batch.cohort_id).where(Batch.id == batch).correlate(None).scalar_subquery()
        of_all = and_(SubjectTeacher.batch_id.is_(None), SubjectTeacher.cohort_id == cohort)
        query = query.where(or_(SubjectTeacher.batch_id == batch, of_all))
    if employee is not None:
        query = query.where(SubjectTeacher.employee_id == employee)
    if session is not None:
        query = query.where(_CLASSES.c.session_id == session_by_id_or_name(session).scalar_subquery())
    return query


@read_model
def assignments_of(cohort_subjects: list[UUID], employees: list[UUID], batches: list[UUID]) -> Query:
    """Read model of SubjectTeacherSchema, of these cohort subjects, employees and batches, taken together."""
    keys = unnest_rows(
        cohort_subject_id=(Uuid, cohort_subjects), employee_id=(Uuid, employees), batch_id=(Uuid, batches)
    )
    return subject_teachers.query().where(
        select(keys.c.employee_id)
        .where(
            keys.c.cohort_subject_id == SubjectTeacher.cohort_subject_id,
            keys.c.employee_id == SubjectTeacher.employee_id,
            keys.c.batch_id.is_not_distinct_from(SubjectTeacher.batch_id),
        )
        .correlate(SubjectTeacher)
        .exists()
    )


@read_model
def lock_batches(batches: list[UUID]) -> Query:
    """Lock batches FOR KEY SHARE, in order of id: none is deleted meanwhile."""
    return (
        select(Batch.id)
        .where(Batch.id == one_of(batches))
        .order_by(Batch.id)
        .with_for_update(read=True, key_share=True)
    )


@read_model
def lock_batches_of_session(session_id: UUID) -> Query:
    """Lock the batches of a session FOR KEY SHARE, in order of id: none is deleted meanwhile."""
    return (
        select(Batch.id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .where(Cohort.session_id == session_id)
        .order_by(Batch.id)
        .with_for_update(read=True, key_share=True, of=Batch)
    )


@read_model
def lock_subjects(cohort_subjects: list[UUID]) -> Query:
    """Lock cohort subjects FOR SHARE, in order of id."""
    return lock_in_order(CohortSubject, CohortSubject.id == one_of(cohort_subjects), shared=True)


@read_model
def lock_subjects_of_session(session_id: UUID) -> Query:
    """Lock the cohort subjects of a session FOR SHARE, in order of id."""
    return (
        select(CohortSubject.id)
        .join(Cohort, Cohort.id == CohortSubject.cohort_id)
        .where(Cohort.session_id == session_id)
        .order_by(CohortSubject.id)
        .with_for_update(read=True, of=CohortSubject)
    )


@read_model
def lock_employees(employees: list[UUID]) -> Query:
    """Lock employees FOR SHARE, in order of id."""
    return lock_in_order(Employee, Employee.id == one_of(employees), shared=True)


@read_model
def lock_employees_of_session(session_id: UUID) -> Query:
    """Lock the employees teaching a subject in a session FOR SHARE, in order of id."""
    teaching = (
        select(SubjectTeacher.employee_id)
        .join(Cohort, Cohort.id == SubjectTeacher.cohort_id)
        .where(Cohort.session_id == session_id)
    )
    return lock_in_order(Employee, Employee.id.in_(teaching), shared=True)


@read_model
def facts_of_assignments(cohort_subjects: list[UUID], employees: list[UUID], batches: list[UUID]) -> Query:
    """Select the facts for and against assignments, each as JSON; to be read once their records are locked.

    `subjects` and `batches` are the cohorts of the existing ones, by id; `employees` the ids of those allowed to teach,
    `known` the existing assignments of these cohort subjects and employees.
    """
    known = (
        select(
            _array_of(
                "id", SubjectTeacher.id, "cohort_subject", SubjectTeacher.cohort_subject_id,
                "employee", SubjectTeacher.employee_id, "batch", SubjectTeacher.batch_id,
                "starts_on", SubjectTeacher.starts_on, "ends_on", SubjectTeacher.ends_on,
            )
        )
        .where(
            SubjectTeacher.cohort_subject_id == one_of(cohort_subjects),
            SubjectTeacher.employee_id == one_of(employees),
        )
    )  # fmt: skip
    there = (
        select(_or_empty(func.json_agg(Employee.id)))
        .join(User, User.id == Employee.user_id)
        .where(Employee.id == one_of(employees), IS_THERE)
    )
    subjects = select(_cohorts(CohortSubject.id, CohortSubject.cohort_id)).where(
        CohortSubject.id == one_of(cohort_subjects)
    )
    arms = select(_cohorts(Batch.id, Batch.cohort_id)).where(Batch.id == one_of(batches))
    return select(
        subjects.scalar_subquery().label("subjects"),
        arms.scalar_subquery().label("batches"),
        there.scalar_subquery().label("employees"),
        known.scalar_subquery().label("known"),
    )


@read_model
def names(cohort_subjects: list[UUID], employees: list[UUID]) -> Query:
    """Select the ids and the names of cohort subjects and employees."""
    subjects = (
        select(CohortSubject.id, Subject.name.label("name"))
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .where(CohortSubject.id == one_of(cohort_subjects))
    )
    full_name = User.first_name.concat(" ").concat(User.last_name)
    people = (
        select(Employee.id, full_name.label("name"))
        .join(User, User.id == Employee.user_id)
        .where(Employee.id == one_of(employees))
    )
    named = subjects.union_all(people).subquery("named")
    return select(named.c.id, named.c.name)


@read_model
def sessions(source: str, target: str) -> Query:
    """Select the ids of two sessions, each by its id or name; null for an unknown one."""
    return select(
        cast(session_by_id_or_name(source).scalar_subquery(), Text).label("source"),
        cast(session_by_id_or_name(target).scalar_subquery(), Text).label("target"),
    )


@read_model
def copying(from_session: UUID, to_session: UUID) -> Query:
    """Select the assignments of a session, as JSON `rows`, each with its counterpart in another session.

    `code` says why it can't be there. `there` is the id of an existing assignment there.
    """
    cohort, subject, batch = aliased(Cohort), aliased(CohortSubject), aliased(Batch)
    there, arm = aliased(SubjectTeacher), aliased(Batch)
    no_cohort, no_subject, no_arm, left, ended = UNCOPIED
    ends_on = SubjectTeacher.ends_on
    code = case(
        (~IS_THERE, left),
        (and_(ends_on < scopes.today(), ends_on < AcademicSession.end_date), ended),
        (cohort.id.is_(None), no_cohort),
        (subject.id.is_(None), no_subject),
        (SubjectTeacher.batch_id.is_not(None) & batch.id.is_(None), no_arm),
    )
    rows = (
        select(
            _array_of(
                "classroom", Classroom.name, "subject", Subject.name, "batch_name", arm.name,
                "employee_name", User.first_name + " " + User.last_name, "code", code,
                "cohort_subject", subject.id, "cohort", subject.cohort_id, "batch", batch.id,
                "employee", SubjectTeacher.employee_id, "there", there.id,
            )
        )
        .select_from(SubjectTeacher)
        .join(Cohort, Cohort.id == SubjectTeacher.cohort_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(CohortSubject, CohortSubject.id == SubjectTeacher.cohort_subject_id)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .outerjoin(arm, arm.id == SubjectTeacher.batch_id)
        .join(Employee, Employee.id == SubjectTeacher.employee_id)
        .join(User, User.id == Employee.user_id)
        .outerjoin(cohort, and_(cohort.session_id == to_session, cohort.classroom_id == Cohort.classroom_id))
        .outerjoin(subject, and_(subject.cohort_id == cohort.id, subject.subject_id == CohortSubject.subject_id))
        .outerjoin(batch, and_(batch.cohort_id == cohort.id, batch.name == arm.name))
        .outerjoin(
            there,
            and_(
                there.cohort_subject_id == subject.id,
                there.employee_id == SubjectTeacher.employee_id,
                there.batch_id.is_not_distinct_from(batch.id),
            ),
        )
        .where(Cohort.session_id == from_session)
    )  # fmt: skip
    return select(rows.scalar_subquery().label("rows"))


# An employee who leaves


@read_model
def lock_subjects_of(employee_id: UUID) -> Query:
    """Lock the cohort subjects taught by an employee FOR SHARE, in order of id."""
    taught = select(SubjectTeacher.cohort_subject_id).where(SubjectTeacher.employee_id == employee_id)
    return lock_in_order(CohortSubject, CohortSubject.id.in_(taught), shared=True)


@read_model
def lock_batches_of(employee_id: UUID) -> Query:
    """Lock the batches taught or looked after by an employee FOR KEY SHARE, in order of id."""
    taught = select(SubjectTeacher.batch_id).where(SubjectTeacher.employee_id == employee_id)
    looked_after = select(FormTeacher.batch_id).where(FormTeacher.employee_id == employee_id)
    return (
        select(Batch.id)
        .where(or_(Batch.id.in_(taught), Batch.id.in_(looked_after)))
        .order_by(Batch.id)
        .with_for_update(read=True, key_share=True)
    )


@read_model
def lock_leaver(employee_id: UUID, heir_id: UUID | None = None) -> Query:
    """Lock an employee who leaves, and the heir, FOR NO KEY UPDATE, in order of id: neither gets another subject."""
    return lock_in_order(Employee, or_(Employee.id == employee_id, Employee.id == heir_id))


@read_model
def left_behind(employee_id: UUID, heir_id: UUID | None = None) -> Query:
    """Select the work of an employee in sessions that count, to be read once all of it is locked; the rest is past.

    As JSON: `assignments` to hold after today, and `batches` looked after, each by name, and with whether the `heir`
    has it already; an assignment has `begun` or not. `day` is the school's, `heir` tells whether the heir may teach.
    """
    of_heir, form_of_heir = aliased(SubjectTeacher), aliased(FormTeacher)
    has_subject = (
        exists()
        .where(
            of_heir.employee_id == heir_id,
            of_heir.cohort_subject_id == SubjectTeacher.cohort_subject_id,
            of_heir.batch_id.is_not_distinct_from(SubjectTeacher.batch_id),
        )
        .correlate(SubjectTeacher)
    )
    has_batch = (
        exists()
        .where(form_of_heir.employee_id == heir_id, form_of_heir.batch_id == FormTeacher.batch_id)
        .correlate(FormTeacher)
    )
    name = func.concat_ws(" ", Classroom.name, Batch.name)
    begun = func.coalesce(SubjectTeacher.starts_on <= scopes.today(), true())
    assignment = json_object(
        id=SubjectTeacher.id,
        cohort_subject=SubjectTeacher.cohort_subject_id,
        cohort=SubjectTeacher.cohort_id,
        employee=SubjectTeacher.employee_id,
        batch=SubjectTeacher.batch_id,
        starts_on=SubjectTeacher.starts_on,
        ends_on=SubjectTeacher.ends_on,
        begun=begun,
        heir=has_subject,
        name=func.concat(Subject.name, " in ", name, ", ", AcademicSession.name),
    )
    batch = json_object(id=Batch.id, heir=has_batch, name=func.concat(name, ", ", AcademicSession.name))
    session = AcademicSession.start_date.desc()
    assignments = (
        select(_listed(assignment, session, Classroom.name, Subject.name, Batch.name, SubjectTeacher.id))
        .select_from(SubjectTeacher)
        .join(Cohort, Cohort.id == SubjectTeacher.cohort_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(CohortSubject, CohortSubject.id == SubjectTeacher.cohort_subject_id)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .outerjoin(Batch, Batch.id == SubjectTeacher.batch_id)
        .where(
            SubjectTeacher.employee_id == employee_id,
            scopes.session_counts(AcademicSession),
            or_(SubjectTeacher.ends_on.is_(None), SubjectTeacher.ends_on > scopes.today()),
        )
    )
    batches = (
        select(_listed(batch, session, Classroom.name, Batch.name, Batch.id))
        .select_from(FormTeacher)
        .join(Batch, Batch.id == FormTeacher.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .where(FormTeacher.employee_id == employee_id, scopes.session_counts(AcademicSession))
    )
    is_there = exists().where(Employee.id == heir_id, User.id == Employee.user_id, IS_THERE)
    return select(
        assignments.scalar_subquery().label("assignments"),
        batches.scalar_subquery().label("batches"),
        cast(scopes.today(), Text).label("day"),
        is_there.label("heir"),
    )


def _listed(row: Any, *order: Any) -> Any:
    return _or_empty(func.json_agg(aggregate_order_by(row, *order)))


# Who teaches today, as it is shown beside a subject


def teachers_of(cohort_subject_id: Any, batch_id: Any = None) -> Any:
    """A column: the names of a cohort subject's teachers today in a batch, by last name, an array of JSON.

    They are those assigned to the batch or, without any, to all of them. Without a batch they are the teachers of it in
    any.
    """
    if batch_id is None:
        return _names_of_all(cohort_subject_id)
    assigned = (
        _assigned(
            SubjectTeacher.cohort_subject_id == cohort_subject_id,
            or_(SubjectTeacher.batch_id == batch_id, SubjectTeacher.batch_id.is_(None)),
        )
        .add_columns(func.rank().over(order_by=SubjectTeacher.batch_id.is_(None)).label("place"))
        .subquery("shown")
    )
    return _names(assigned, assigned.c.place == 1)


def teachers_by_arm(cohort_id: Any) -> Any:
    """A column: the names of the teachers of each subject and batch of a cohort, or null.

    It is an object by the ids of the cohort subject and of the batch, one behind the other.
    """
    batch = aliased(Batch)
    arm = and_(
        batch.cohort_id == SubjectTeacher.cohort_id,
        or_(batch.id == SubjectTeacher.batch_id, SubjectTeacher.batch_id.is_(None)),
    )
    of_arm = (SubjectTeacher.cohort_subject_id, batch.id)
    assigned = (
        _assigned(SubjectTeacher.cohort_id == cohort_id)
        .join(batch, arm)
        .correlate_except(batch)
        .add_columns(
            _key(*of_arm).label("arm"),
            func.rank().over(partition_by=of_arm, order_by=SubjectTeacher.batch_id.is_(None)).label("place"),
        )
        .subquery("assigned")
    )
    names = func.jsonb_agg(aggregate_order_by(assigned.c.name, assigned.c.in_order, assigned.c.id))
    by_arm = (
        select(assigned.c.arm, names.label("names"))
        .where(assigned.c.place == 1)
        .group_by(assigned.c.arm)
        .subquery("by_arm")
    )
    return select(func.jsonb_object_agg(by_arm.c.arm, by_arm.c.names, type_=JSONB)).scalar_subquery()


def _key(cohort_subject_id: Any, batch_id: Any) -> Any:
    return func.concat(cohort_subject_id, batch_id)


def _assigned(*conditions: Any) -> Query:
    """Select present employees teaching today, of assignments meeting conditions: id and name, and their sort key."""
    return (
        select(Employee.id, TITLED_NAME.label("name"), User.name_sort_key.label("in_order"))
        .select_from(SubjectTeacher)
        .join(Employee, Employee.id == SubjectTeacher.employee_id)
        .join(User, User.id == Employee.user_id)
        .where(*conditions, IS_THERE, scopes.holds_today(SubjectTeacher))
        .correlate_except(SubjectTeacher, Employee, User)
    )


def _names_of_all(cohort_subject_id: Any) -> Any:
    """The names of a cohort subject's teachers in any arm."""
    # An array of ids: a join of the three tables takes PostgreSQL longer to plan than all of this, and needs DISTINCT.
    assigned = func.array(
        select(SubjectTeacher.employee_id)
        .where(SubjectTeacher.cohort_subject_id == cohort_subject_id, scopes.holds_today(SubjectTeacher))
        .correlate_except(SubjectTeacher)
        .scalar_subquery(),
        type_=ARRAY(Uuid),
    )
    names = func.jsonb_agg(aggregate_order_by(TITLED_NAME, User.name_sort_key, Employee.id))
    return (
        select(func.coalesce(names, NOBODY))
        .select_from(Employee)
        .join(User, User.id == Employee.user_id)
        .where(Employee.id == any_(assigned), IS_THERE)
        .correlate_except(Employee, User)
        .scalar_subquery()
    )


def _names(assigned: Any, *conditions: Any) -> Any:
    names = func.jsonb_agg(aggregate_order_by(assigned.c.name, assigned.c.in_order, assigned.c.id))
    query = select(func.coalesce(names, NOBODY)).where(*conditions)
    return query.correlate_except(assigned).scalar_subquery()


def _cohorts(record_id: Any, cohort_id: Any) -> Any:
    return func.coalesce(cast(func.json_object_agg(record_id, cohort_id), Text), "{}")


def _array_of(*members: Any) -> Any:
    return _or_empty(func.json_agg(func.json_build_object(*members)))


def _or_empty(array: Any) -> Any:
    return func.coalesce(cast(array, Text), "[]")
