"""Read models of subject teachers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Text, Uuid, and_, any_, case, cast, func, or_, select
from sqlalchemy.orm import aliased

from school_service.core.reach import Reach
from school_service.core.read_models import Query, read_model
from school_service.core.records import unnest_rows
from school_service.features.classes.models import UNCOPIED, CohortSubject, SubjectTeacher
from school_service.features.people.models import NOT_DELETED, Employee, User
from school_service.features.reach import scopes
from school_service.features.school.cohorts.reads import session_by_id_or_name
from school_service.features.school.models import AcademicSession, Batch, Classroom, Cohort, Subject

IS_THERE = and_(NOT_DELETED, User.deleted_at.is_(None))
"""Whether an employee may teach: neither they nor their account is deleted."""


@read_model
def subject_teachers(
    cohort_subject: UUID | None = None,
    batch: UUID | None = None,
    employee: UUID | None = None,
    session: str | None = None,
    reach: Reach | None = None,
) -> Query:
    """Read model of SubjectTeacherSchema, by class, subject, arm and name, without those of deleted employees.

    All, or those of a cohort subject, for an arm, of an employee, of a session (its id or name).
    """
    found = (
        select(
            SubjectTeacher.id,
            SubjectTeacher.cohort_subject_id.label("cohort_subject"),
            CohortSubject.subject_id.label("base"),
            Subject.name.label("subject"),
            Subject.code,
            SubjectTeacher.cohort_id.label("cohort"),
            Classroom.name.label("classroom"),
            Cohort.session_id.label("session"),
            SubjectTeacher.batch_id.label("batch"),
            Batch.name.label("batch_name"),
            SubjectTeacher.employee_id.label("employee"),
            Employee.title,
            User.first_name,
            User.last_name,
            SubjectTeacher.starts_on,
            SubjectTeacher.ends_on,
            SubjectTeacher.created_at.label("createdAt"),
        )
        .join(CohortSubject, CohortSubject.id == SubjectTeacher.cohort_subject_id)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(Cohort, Cohort.id == SubjectTeacher.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .outerjoin(Batch, Batch.id == SubjectTeacher.batch_id)
        .join(Employee, Employee.id == SubjectTeacher.employee_id)
        .join(User, User.id == Employee.user_id)
        .where(IS_THERE)
        .order_by(
            Classroom.name,
            AcademicSession.start_date.desc(),
            AcademicSession.id,
            Subject.name,
            CohortSubject.id,
            Batch.name.nulls_first(),
            User.name_sort_key,
            SubjectTeacher.id,
        )
    )
    if reach is not None:
        found = found.where(scopes.assignments_in_reach(reach, SubjectTeacher))
        if batch is not None:
            found = found.where(scopes.arms_in_reach(reach, batch))
    if cohort_subject is not None:
        found = found.where(SubjectTeacher.cohort_subject_id == cohort_subject)
    if batch is not None:
        cohort = select(Batch.cohort_id).where(Batch.id == batch).correlate(None).scalar_subquery()
        of_all = and_(SubjectTeacher.batch_id.is_(None), SubjectTeacher.cohort_id == cohort)
        found = found.where(or_(SubjectTeacher.batch_id == batch, of_all))
    if employee is not None:
        found = found.where(SubjectTeacher.employee_id == employee)
    if session is not None:
        found = found.where(Cohort.session_id == session_by_id_or_name(session).scalar_subquery())
    return found


@read_model
def named(
    cohort_subjects: list[UUID], employees: list[UUID], batches: list[UUID], reach: Reach | None = None
) -> Query:
    """Read model of SubjectTeacherSchema, of these cohort subjects, employees and batches, taken together."""
    keys = unnest_rows(
        cohort_subject_id=(Uuid, cohort_subjects), employee_id=(Uuid, employees), batch_id=(Uuid, batches)
    )
    return subject_teachers.query(reach=reach).where(
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
def lock_subjects(cohort_subjects: list[UUID]) -> Query:
    """Lock cohort subjects FOR SHARE, in order of id."""
    return (
        select(CohortSubject.id)
        .where(CohortSubject.id == _one_of(cohort_subjects))
        .order_by(CohortSubject.id)
        .with_for_update(read=True)
    )


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
    return (
        select(Employee.id)
        .where(Employee.id == _one_of(employees))
        .order_by(Employee.id)
        .with_for_update(read=True)
    )


@read_model
def lock_employees_of_session(session_id: UUID) -> Query:
    """Lock the employees who teach a subject in a session FOR SHARE, in order of id."""
    teaching = (
        select(SubjectTeacher.employee_id)
        .join(Cohort, Cohort.id == SubjectTeacher.cohort_id)
        .where(Cohort.session_id == session_id)
    )
    return (
        select(Employee.id).where(Employee.id.in_(teaching)).order_by(Employee.id).with_for_update(read=True)
    )


@read_model
def judged(cohort_subjects: list[UUID], employees: list[UUID], batches: list[UUID]) -> Query:
    """Select what decides whether assignments may be made, each as JSON; to be read once their records are locked.

    `subjects` and `batches` are the cohorts of those that there are, by id; `employees` the ids of those who may teach,
    `known` the assignments that there are of these cohort subjects and employees.
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
            SubjectTeacher.cohort_subject_id == _one_of(cohort_subjects),
            SubjectTeacher.employee_id == _one_of(employees),
        )
    )  # fmt: skip
    there = (
        select(_or_empty(func.json_agg(Employee.id)))
        .join(User, User.id == Employee.user_id)
        .where(Employee.id == _one_of(employees), IS_THERE)
    )
    subjects = select(_cohorts(CohortSubject.id, CohortSubject.cohort_id)).where(
        CohortSubject.id == _one_of(cohort_subjects)
    )
    arms = select(_cohorts(Batch.id, Batch.cohort_id)).where(Batch.id == _one_of(batches))
    return select(
        subjects.scalar_subquery().label("subjects"),
        arms.scalar_subquery().label("batches"),
        there.scalar_subquery().label("employees"),
        known.scalar_subquery().label("known"),
    )


@read_model
def sessions(source: str, target: str) -> Query:
    """Select the ids of two sessions, each by its id or name; null where there is none."""
    return select(
        cast(session_by_id_or_name(source).scalar_subquery(), Text).label("source"),
        cast(session_by_id_or_name(target).scalar_subquery(), Text).label("target"),
    )


@read_model
def copying(from_session: UUID, to_session: UUID) -> Query:
    """Select the assignments of a session, as JSON `rows`, each with what it is in another session.

    `code` says why it can't be there. `there` is the id of the assignment that is there already.
    """
    cohort, subject, batch = aliased(Cohort), aliased(CohortSubject), aliased(Batch)
    there, arm = aliased(SubjectTeacher), aliased(Batch)
    no_cohort, no_subject, no_arm, left = UNCOPIED
    code = case(
        (~IS_THERE, left),
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


def _one_of(ids: Any) -> Any:
    return any_(cast(ids, ARRAY(Uuid)))


def _cohorts(record_id: Any, cohort_id: Any) -> Any:
    return func.coalesce(cast(func.json_object_agg(record_id, cohort_id), Text), "{}")


def _array_of(*members: Any) -> Any:
    return _or_empty(func.json_agg(func.json_build_object(*members)))


def _or_empty(array: Any) -> Any:
    return func.coalesce(cast(array, Text), "[]")
