"""The facts for judging a switch of roles, in one row."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Text, and_, cast, exists, func, literal, literal_column, or_, select
from sqlalchemy.dialects.postgresql import aggregate_order_by

from school_service.core.read_models import Query, array_of, read_model
from school_service.core.records import lock_in_order, one_of
from school_service.features.classes.cohort_subjects.reads import is_taught_today
from school_service.features.classes.models import CohortSubject, SubjectTeacher
from school_service.features.people.models import (
    GUARDIANS,
    IS_THERE,
    NOT_DELETED,
    STUDENTS,
    Employee,
    FormTeacher,
    Guardian,
    Role,
    StoredPermission,
    Student,
    StudentGuardian,
    User,
    UserRole,
)
from school_service.features.people.roles.reads import names_of_permissions
from school_service.features.reach import scopes
from school_service.features.school.models import AcademicSession, Batch, Classroom, Cohort, Subject


@read_model
def lock_roles(role_ids: list[UUID]) -> Query:
    """Lock roles FOR NO KEY UPDATE, in order of id."""
    return lock_in_order(Role, Role.id == one_of(role_ids))


@read_model
def switching(role_ids: list[UUID], kinds: list[str]) -> Query:
    """Select the facts for judging a switch of roles, with the users concerned; each column is an array, as JSON.

    `permissions` are all permissions by `name`, in order, and `roles` all roles, by name. `bearing` has the `roles` of
    one user together, by their ids, the same ones once. `users` are the users with one of the roles, or with an account
    of one of these kinds and without the role given to it, by username. `subjects` and `batches` of the current session
    are the ones without a teacher, or a form teacher.
    """
    name = StoredPermission.access + ":" + StoredPermission.section
    roles = select(Role.id, Role.name, Role.reach, Role.given_to, names_of_permissions().label("permissions"))
    parts = {
        "permissions": select(name.label("name")).order_by(name),
        "roles": roles.order_by(Role.name),
        "bearing": _bearing(),
        "users": _users(role_ids, kinds),
        "subjects": _subjects(),
        "batches": _batches(),
    }
    return select(*(_as_array(rows, part) for part, rows in parts.items()))


def accounts_lacking_theirs() -> Query:
    """Select the accounts of students and of guardians without the role given to their kind: `user_id`, `kind`."""
    students = select(Student.user_id, literal(STUDENTS, Text).label("kind"))
    guardians = select(Guardian.user_id, literal(GUARDIANS, Text)).where(Guardian.user_id.is_not(None))
    accounts = students.union_all(guardians).subquery("accounts")
    has_it = exists().where(
        UserRole.user_id == accounts.c.user_id,
        UserRole.role_id == Role.id,
        Role.given_to == accounts.c.kind,
    )
    return select(accounts.c.user_id, accounts.c.kind).where(~has_it)


def _as_array(rows: Query, part: str) -> Any:
    """Write rows as a JSON array of objects, in their order; the name of the part is the name of the column."""
    written = array_of(func.row_to_json(literal_column(part)))
    return cast(select(written).select_from(rows.subquery(part)).scalar_subquery(), Text).label(part)


def _bearing() -> Query:
    """Select the roles of one user together, without deleted users."""
    roles = func.array_agg(aggregate_order_by(UserRole.role_id, UserRole.role_id)).label("roles")
    bearers = select(roles).join(User, User.id == UserRole.user_id).where(User.deleted_at.is_(None))
    return select(bearers.group_by(UserRole.user_id).subquery("bearers").c.roles).distinct()


def _users(role_ids: Any, kinds: Any) -> Query:
    """Select users with their roles, the kinds of the roles they lack, and the numbers of records of their own."""
    accounts = accounts_lacking_theirs().subquery("lacking_accounts")
    lacking = (
        select(accounts.c.user_id, func.array_agg(accounts.c.kind).label("kinds"))
        .where(accounts.c.kind == one_of(kinds, Text))
        .group_by(accounts.c.user_id)
        .subquery("lacking")
    )
    roles = select(UserRole.role_id).where(UserRole.user_id == User.id).correlate(User)
    numbers = {"subjects": _taught(), "classes": _looked_after(), "children": _children()}
    counts = {name: rows.subquery(f"of_{name}") for name, rows in numbers.items()}
    users = select(
        User.id.label("user"),
        User.username,
        (User.first_name + " " + User.last_name).label("name"),
        func.array(roles.scalar_subquery()).label("roles"),
        lacking.c.kinds,
        *(func.coalesce(rows.c.number, 0).label(name) for name, rows in counts.items()),
    ).outerjoin(lacking, lacking.c.user_id == User.id)
    for rows in counts.values():
        users = users.outerjoin(rows, rows.c.user_id == User.id)
    has_one = roles.where(UserRole.role_id == one_of(role_ids)).exists()
    concerned = and_(User.deleted_at.is_(None), or_(has_one, lacking.c.user_id.is_not(None)))
    return users.where(concerned).order_by(User.username_sort_key, User.id)


def _taught() -> Query:
    """Count the cohort subjects taught today by each user."""
    subjects = func.count(SubjectTeacher.cohort_subject_id.distinct()).label("number")
    teaching = select(Employee.user_id, subjects).join(
        SubjectTeacher, SubjectTeacher.employee_id == Employee.id
    )
    teaching = teaching.join(Cohort, Cohort.id == SubjectTeacher.cohort_id)
    return _in_sessions_that_count(teaching).where(scopes.holds_today(SubjectTeacher))


def _looked_after() -> Query:
    """Count the batches with each user as a form teacher."""
    batches = func.count(FormTeacher.batch_id.distinct()).label("number")
    looking = select(Employee.user_id, batches).join(FormTeacher, FormTeacher.employee_id == Employee.id)
    looking = looking.join(Batch, Batch.id == FormTeacher.batch_id).join(Cohort, Cohort.id == Batch.cohort_id)
    return _in_sessions_that_count(looking)


def _in_sessions_that_count(employees: Query) -> Query:
    """Narrow to cohorts of the current session, and of sessions ended not too long ago."""
    counting = employees.join(AcademicSession, AcademicSession.id == Cohort.session_id)
    return counting.where(NOT_DELETED, scopes.session_counts(AcademicSession)).group_by(Employee.user_id)


def _children() -> Query:
    """Count the students with each user as a guardian, and not stopped."""
    children = select(Guardian.user_id, func.count().label("number"))
    children = children.join(StudentGuardian, StudentGuardian.guardian_id == Guardian.id)
    return children.where(StudentGuardian.stopped_at.is_(None)).group_by(Guardian.user_id)


def _subjects() -> Query:
    """Select the subjects and arms of the current session without a teacher."""
    return (
        select(
            CohortSubject.id.label("cohort_subject"),
            Classroom.name.label("classroom"),
            Subject.name.label("subject"),
            Batch.name.label("batch_name"),
        )
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(Cohort, Cohort.id == CohortSubject.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .join(Batch, Batch.cohort_id == Cohort.id)
        .where(AcademicSession.current, ~is_taught_today())
        .order_by(Classroom.name, Subject.name, Batch.name, CohortSubject.id)
    )


def _batches() -> Query:
    """Select the batches of the current session without a form teacher."""
    looked_after = (
        exists()
        .where(
            FormTeacher.batch_id == Batch.id,
            Employee.id == FormTeacher.employee_id,
            User.id == Employee.user_id,
            IS_THERE,
        )
        .correlate(Batch)
    )
    return (
        select(Batch.id.label("batch"), Classroom.name.label("classroom"), Batch.name.label("batch_name"))
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .where(AcademicSession.current, ~looked_after)
        .order_by(Classroom.name, Batch.name, Batch.id)
    )
