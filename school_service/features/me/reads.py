"""The read models of the caller: one for a user, of their state and its relations, and one for a client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlalchemy import (
    ARRAY,
    JSON,
    Boolean,
    Text,
    bindparam,
    case,
    cast,
    column,
    func,
    literal_column,
    null,
    select,
    table,
)

from school_service.auth.principal import Principal
from school_service.core.database import context_globals
from school_service.core.reach import SCHOOL_REACH, Reach
from school_service.core.read_models import Query, array_of, read_model
from school_service.core.records import one_of
from school_service.features.classes.models import SubjectTeacher
from school_service.features.classes.subject_teachers.reads import subject_teachers
from school_service.features.people.guardians.reads import guardians
from school_service.features.people.models import (
    Employee,
    Role,
    StoredPermission,
    Student,
    StudentGuardian,
    User,
    UserRole,
)
from school_service.features.people.students.reads import students
from school_service.features.people.users.reads import SCHOOL, users
from school_service.features.reach import scopes
from school_service.features.school.models import CURRENT, Batch, Classroom, Cohort, Enrollment, Position

# The row of the user's state, which the statement begins with.
_STATE = table(
    "caller",
    column("account"),
    column("student"),
    column("employee"),
    column("permissions", ARRAY(Text)),
    column("own_permissions", ARRAY(Text)),
    column("must_change_password", Boolean),
)
_EMPTY: Any = literal_column("'[]'::json")
_RELATIONS = "TFSG"


@read_model
def me(own_token: bool, ceiling: list[str] | None = None, reach: Reach | None = None) -> Query:
    """Read model of MeSchema, for a user; with a `ceiling` of the token, the permissions are the ones within it.

    A user due to change their password is shown this demand, their account and the school, and nothing else. With an
    outside provider's token, not given for the password, nobody has to change it.
    """
    reach = reach or Reach(_RELATIONS)
    must_change = _STATE.c.must_change_password & own_token

    def unless(empty: Any, value: Any) -> Any:
        return case((must_change, empty), else_=value)

    return select(
        _object(users.query().where(User.id == _of_caller("account"))).label("user"),
        null().label("client"),
        SCHOOL,
        unless(_EMPTY, _array(_roles())).label("roles"),
        unless(_EMPTY, _array(_permissions(ceiling))).label("permissions"),
        unless(_EMPTY, _array(_classes(reach)) if reach.by("F") else _EMPTY).label("classes"),
        unless(_EMPTY, _array(_subjects(reach)) if reach.by("T") else _EMPTY).label("subjects"),
        unless(_EMPTY, _array(_children(reach)) if reach.by("G") else _EMPTY).label("children"),
        unless(null(), _object(_student(reach)) if reach.by("S") else null()).label("student"),
        unless(null(), _object(_employee())).label("employee"),
        unless(null(), _object(_guardian(reach))).label("guardian"),
        must_change.label("must_change_password"),
    ).select_from(_STATE)


@read_model
def client_me() -> Query:
    """Read model of MeSchema, for a client: it has permissions, and no relations."""
    named = cast(_of_principal("names", lambda principal: sorted(principal.permissions)), ARRAY(Text))
    permission = _permission_name(StoredPermission)
    every = select(permission.label("permission")).where(
        _of_principal("all_permissions", lambda principal: principal.all_permissions, Boolean())
    )
    held = select(func.unnest(named).label("permission")).union(every).subquery("held")
    permissions = select(held.c.permission, literal_column(f"'{SCHOOL_REACH}'").label("reach")).order_by(
        held.c.permission
    )
    nothing = cast(null(), JSON)
    return select(
        nothing.label("user"),
        _of_principal("client", lambda principal: principal.actor).label("client"),
        SCHOOL,
        _EMPTY.label("roles"),
        _array(permissions).label("permissions"),
        _EMPTY.label("classes"),
        _EMPTY.label("subjects"),
        _EMPTY.label("children"),
        nothing.label("student"),
        nothing.label("employee"),
        nothing.label("guardian"),
        literal_column("false").label("must_change_password"),
    )


def _roles() -> Query:
    return (
        select(Role.id, Role.name, Role.reach)
        .join(UserRole, UserRole.role_id == Role.id)
        .where(UserRole.user_id == _of_caller("account"))
        .order_by(Role.name, Role.id)
    )


def _permissions(ceiling: list[str] | None) -> Query:
    held = (
        select(
            func.unnest(_of_caller("permissions")).label("permission"),
            literal_column(f"'{SCHOOL_REACH}'").label("reach"),
        )
        .union_all(
            select(func.unnest(_of_caller("own_permissions")), literal_column("'OWN'")),
        )
        .subquery("held")
    )
    left = select(held).order_by(held.c.permission)
    return left if ceiling is None else left.where(held.c.permission == one_of(ceiling, Text))


def _classes(reach: Reach) -> Query:
    """Select the batches looked after by the caller."""
    return (
        select(
            Batch.id.label("batch"),
            Batch.name.label("batch_name"),
            Batch.cohort_id.label("cohort"),
            Classroom.name.label("classroom"),
            Cohort.session_id.label("session"),
        )
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .where(scopes.is_form_batch(reach, Batch.id))
        .order_by(Classroom.name, Batch.name, Batch.id)
    )


def _subjects(reach: Reach) -> Query:
    """Select the assignments of the caller in force today."""
    return subject_teachers.query().where(
        SubjectTeacher.employee_id == _of_caller("employee"),
        scopes.is_taught(reach, SubjectTeacher.cohort_subject_id),
        scopes.holds_today(SubjectTeacher),
    )


def _children(reach: Reach) -> Query:
    """Select the students with the caller as a guardian, each with their batch now."""
    link = StudentGuardian
    now_in = (
        select(Enrollment.batch_id)
        .where(Enrollment.student_id == Student.id, CURRENT)
        .order_by(Enrollment.started_at.desc(), Enrollment.id.desc())
        .limit(1)
        .correlate(Student)
        .scalar_subquery()
    )
    own = scopes.guardianships_in_reach(
        replace(reach, relations="G"), link.student_id, link.guardian_id, link.stopped_at
    )
    return (
        select(
            Student.id.label("student"),
            Student.admission_number,
            User.first_name,
            User.last_name,
            link.relationship,
            Batch.id.label("batch"),
            Batch.name.label("batch_name"),
            Classroom.name.label("classroom"),
        )
        .select_from(link)
        .join(Student, Student.id == link.student_id)
        .join(User, User.id == Student.user_id)
        .outerjoin(Batch, Batch.id == now_in)
        .outerjoin(Cohort, Cohort.id == Batch.cohort_id)
        .outerjoin(Classroom, Classroom.id == Cohort.classroom_id)
        .where(own)
        .order_by(User.name_sort_key, Student.id)
    )


def _guardian(reach: Reach) -> Query:
    return guardians.query(reach=replace(reach, relations="G"))


def _student(reach: Reach) -> Query:
    return students.query(reach=replace(reach, relations="S"))


def _employee() -> Query:
    return (
        select(Employee.id, func.nullif(Employee.title, "").label("title"), Position.name.label("position"))
        .outerjoin(Position, Position.id == Employee.position_id)
        .where(Employee.id == _of_caller("employee"))
    )


def _of_caller(name: str) -> Any:
    return select(_STATE.c[name]).correlate(None).scalar_subquery()


def _of_principal(name: str, value: Callable[[Principal], Any], kind: Any = None) -> Any:
    """A value of the request's principal, read when the statement is sent."""
    return bindparam(name, callable_=lambda: value(context_globals().principal), type_=kind or Text())


def _permission_name(permission: Any) -> Any:
    return permission.access + ":" + permission.section


def _object(query: Query) -> Any:
    table = query.subquery("one")
    return select(func.row_to_json(literal_column("one"))).select_from(table).scalar_subquery()


def _array(query: Query) -> Any:
    table = query.subquery("each")
    rows = array_of(func.row_to_json(literal_column('"each"')))
    return select(rows).select_from(table).scalar_subquery()
