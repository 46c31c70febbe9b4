"""What decides whether roles may be switched, and what that changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    CTE,
    CompoundSelect,
    String,
    Text,
    and_,
    any_,
    cast,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by

from school_service.core.read_models import Query, read_model
from school_service.core.records import unnest_rows
from school_service.features.classes.models import CohortSubject, SubjectTeacher
from school_service.features.people.models import (
    GUARDIANS,
    NOT_DELETED,
    OWN,
    SCHOOL,
    STUDENTS,
    Employee,
    FormTeacher,
    Guardian,
    Role,
    RolePermission,
    StoredPermission,
    Student,
    StudentGuardian,
    User,
    UserRole,
)
from school_service.features.reach import scopes
from school_service.features.school.models import AcademicSession, Batch, Classroom, Cohort, Subject

MOST = 1000  # of a list of the preview
_NONE = "NONE"


@read_model
def locked(role_ids: list[UUID]) -> Query:
    """Lock roles FOR NO KEY UPDATE, in order of id."""
    return (
        select(Role.id)
        .where(Role.id == any_(cast(role_ids, ARRAY(Role.id.type))))
        .order_by(Role.id)
        .with_for_update(key_share=True)
    )


@read_model
def roles() -> Query:
    """Select all roles as JSON, each with its reach and the names of its permissions."""
    permissions = (
        select(
            func.coalesce(func.json_agg(aggregate_order_by(_name(), _name())), literal_column("'[]'::json"))
        )
        .select_from(RolePermission)
        .join(StoredPermission, StoredPermission.id == RolePermission.permission_id)
        .where(RolePermission.role_id == Role.id)
        .correlate(Role)
        .scalar_subquery()
    )
    row = func.json_build_object(
        "id", Role.id, "name", Role.name, "reach", Role.reach, "given_to", Role.given_to,
        "permissions", permissions,
    )  # fmt: skip
    return select(cast(func.json_agg(aggregate_order_by(row, Role.name)), Text).label("roles"))


@read_model
def preview(
    role_ids: list[UUID], reaches: list[str], kinds: list[str], given: list[str], moment_days: int
) -> Query:
    """Select what changes where roles get these reaches, and accounts of these kinds these permissions, as OWN.

    `users`, `subjects` and `batches` are JSON, each of MOST rows at most, with the number of all; of `users` those who
    lose something come first, and all of them, `users_losing` in number. `fingerprint` is of
    roles, of who has them, and of what they hold. `administrated` tells whether anybody has every permission for the
    whole school, before and after. `moment_days` are the days for which a session that ended counts.
    """
    effective = _effective(role_ids, reaches, kinds, given)
    every = select(func.count()).select_from(StoredPermission).scalar_subquery()

    def somebody(column: Any) -> Any:
        having = (
            select(effective.c.user_id)
            .group_by(effective.c.user_id)
            .having(func.count().filter(column) == every)
        )
        return having.exists()

    changed = _changed(effective)
    losing = select(func.count()).select_from(changed).where(changed.c.losing).scalar_subquery()
    users = _users(changed, moment_days).subquery("users_changed")
    subjects, batches = _subjects().subquery("open_subjects"), _batches().subquery("open_batches")
    return select(
        _fingerprint().label("fingerprint"),
        somebody(effective.c.before_school).label("administrated_before"),
        somebody(effective.c.after_school).label("administrated_after"),
        losing.label("users_losing"),
        *(
            column
            for name, found, most in (
                ("users", users, func.greatest(MOST, losing)),
                ("subjects", subjects, MOST),
                ("batches", batches, MOST),
            )
            for column in (_first(found, most).label(name), _count(found).label(f"{name}_total"))
        ),
    )


def accounts_of_a_kind() -> CompoundSelect[Any, Any]:
    """Select the accounts of students and of guardians, each with the kind that a role may be given to."""
    students = select(Student.user_id, literal(STUDENTS, Text).label("kind"))
    guardians = select(Guardian.user_id, literal(GUARDIANS, Text)).where(Guardian.user_id.is_not(None))
    return students.union_all(guardians)


def _effective(role_ids: Any, reaches: Any, kinds: Any, given: Any) -> CTE:
    """Give each permission of each user who is not deleted: whether it reached the whole school, and will."""
    target = unnest_rows("target", role_id=(Role.id.type, role_ids), reach=(String(), reaches))
    held = (
        select(
            UserRole.user_id,
            _name().label("permission"),
            cast(Role.reach, Text).label("before"),
            cast(func.coalesce(target.c.reach, Role.reach), Text).label("after"),
        )
        .join(Role, Role.id == UserRole.role_id)
        .join(RolePermission, RolePermission.role_id == Role.id)
        .join(StoredPermission, StoredPermission.id == RolePermission.permission_id)
        .outerjoin(target, target.c.role_id == Role.id)
    )
    accounts = accounts_of_a_kind().subquery("accounts")
    has_it = exists().where(
        UserRole.user_id == accounts.c.user_id,
        UserRole.role_id == Role.id,
        Role.given_to == accounts.c.kind,
    )
    permissions = unnest_rows("given", kind=(Text(), kinds), permission=(Text(), given))
    new = (
        select(accounts.c.user_id, permissions.c.permission, literal(_NONE, Text), literal(OWN, Text))
        .join(permissions, permissions.c.kind == accounts.c.kind)
        .where(~has_it)
    )
    both = held.union_all(new).subquery("held")
    return (
        select(
            both.c.user_id,
            both.c.permission,
            func.bool_or(both.c.before == SCHOOL).label("before_school"),
            func.bool_or(both.c.before != _NONE).label("before_any"),
            func.bool_or(both.c.after == SCHOOL).label("after_school"),
        )
        .join(User, User.id == both.c.user_id)
        .where(User.deleted_at.is_(None))
        .group_by(both.c.user_id, both.c.permission)
        .cte("effective")
    )


def _changed(effective: CTE) -> CTE:
    """Give the users whose answers change: which permissions are narrowed and widened, and whether they lose any."""
    narrowed = and_(effective.c.before_school, ~effective.c.after_school)
    widened = or_(and_(effective.c.after_school, ~effective.c.before_school), ~effective.c.before_any)

    def names(condition: Any) -> Any:
        found = func.json_agg(aggregate_order_by(effective.c.permission, effective.c.permission)).filter(
            condition
        )
        return func.coalesce(found, literal_column("'[]'::json"))

    return (
        select(
            effective.c.user_id,
            names(narrowed).label("narrowed"),
            names(widened).label("widened"),
            func.bool_or(narrowed).label("losing"),
        )
        .where(or_(narrowed, widened))
        .group_by(effective.c.user_id)
        .cte("changed")
    )


def _users(changed: CTE, days: Any) -> Query:
    """Select whose answers change, who loses something first, then by username, with their relations."""
    return (
        select(
            User.id.label("user"),
            User.username,
            (User.first_name + " " + User.last_name).label("name"),
            changed.c.narrowed,
            changed.c.widened,
            _number_of(SubjectTeacher.cohort_subject_id, SubjectTeacher, days).label("subjects"),
            _number_of(FormTeacher.batch_id, FormTeacher, days).label("classes"),
            _number_of_children().label("children"),
        )
        .join(changed, changed.c.user_id == User.id)
        .order_by(changed.c.losing.desc(), User.username_sort_key, User.id)
    )


def _number_of_children() -> Any:
    """Count the students of whom a user is a guardian, and not stopped."""
    return (
        select(func.count())
        .select_from(StudentGuardian)
        .join(Guardian, Guardian.id == StudentGuardian.guardian_id)
        .where(Guardian.user_id == User.id, StudentGuardian.stopped_at.is_(None))
        .correlate(User)
        .scalar_subquery()
    )


def _number_of(column: Any, teaching: Any, days: Any) -> Any:
    """Count what a user teaches, or looks after, in sessions that count."""
    found = (
        select(func.count(column.distinct()))
        .select_from(teaching)
        .join(Employee, Employee.id == teaching.employee_id)
    )
    if teaching is SubjectTeacher:
        found = found.join(Cohort, Cohort.id == SubjectTeacher.cohort_id).where(
            scopes.holds_today(SubjectTeacher)
        )
    else:
        found = found.join(Batch, Batch.id == FormTeacher.batch_id).join(Cohort, Cohort.id == Batch.cohort_id)
    counts = or_(AcademicSession.current, AcademicSession.end_date >= scopes.today() - days)
    return (
        found.join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .where(Employee.user_id == User.id, NOT_DELETED, counts)
        .correlate(User)
        .scalar_subquery()
    )


def _subjects() -> Query:
    """Select the subjects and arms of the current session that nobody teaches."""
    taught = (
        exists()
        .where(
            SubjectTeacher.cohort_subject_id == CohortSubject.id,
            or_(SubjectTeacher.batch_id.is_(None), SubjectTeacher.batch_id == Batch.id),
            scopes.holds_today(SubjectTeacher),
            Employee.id == SubjectTeacher.employee_id,
            NOT_DELETED,
        )
        .correlate(CohortSubject, Batch)
    )
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
        .where(AcademicSession.current, ~taught)
        .order_by(Classroom.name, Subject.name, Batch.name, CohortSubject.id)
    )


def _batches() -> Query:
    """Select the batches of the current session that nobody looks after."""
    looked_after = (
        exists()
        .where(FormTeacher.batch_id == Batch.id, Employee.id == FormTeacher.employee_id, NOT_DELETED)
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


def _fingerprint() -> Any:
    """Write what a switch rests on as one hash: roles, what they hold, who has them, and which users there are."""

    def of(text: Any, *order: Any, where: Any = None) -> Any:
        found = select(func.string_agg(text, aggregate_order_by(literal_column("','"), *order)))
        return (found if where is None else found.where(where)).scalar_subquery()

    def joined(*columns: Any) -> Any:
        return func.concat_ws(":", *(cast(column, Text) for column in columns))

    parts = (
        of(joined(Role.id, Role.name, Role.reach, Role.given_to), Role.id),
        of(
            joined(RolePermission.role_id, RolePermission.permission_id),
            RolePermission.role_id,
            RolePermission.permission_id,
        ),
        of(joined(UserRole.user_id, UserRole.role_id), UserRole.user_id, UserRole.role_id),
        of(joined(User.id), User.id, where=User.deleted_at.is_(None)),
    )
    return func.md5(func.concat_ws("|", *parts))


def _name() -> Any:
    return StoredPermission.access + ":" + StoredPermission.section


def _first(found: Any, most: Any) -> Any:
    first = select(found).limit(most).subquery("first_of_them")
    rows = func.json_agg(func.row_to_json(literal_column("first_of_them")))
    return (
        select(cast(func.coalesce(rows, literal_column("'[]'::json")), Text))
        .select_from(first)
        .scalar_subquery()
    )


def _count(found: Any) -> Any:
    return select(func.count()).select_from(found).scalar_subquery()


DAYS_OF_ENDED_SESSIONS = timedelta(days=60).days
