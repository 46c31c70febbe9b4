"""Gaining accounts, the credentials others made for them, and the makers with all of the account's permissions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    CTE,
    JSON,
    DateTime,
    Select,
    Text,
    Uuid,
    and_,
    bindparam,
    case,
    cast,
    column,
    delete,
    exists,
    false,
    func,
    literal,
    null,
    or_,
    select,
    union,
    union_all,
    update,
)
from sqlalchemy.orm import aliased

from school_service.core.columns import Enumeration
from school_service.core.narrowing import judged_before
from school_service.core.permissions import Permission
from school_service.core.read_models import Query, array_of, json_object
from school_service.core.records import lock_in_order, one_of
from school_service.core.statements import statement
from school_service.features.people.models import (
    BY_ADMINISTRATOR,
    CREATED,
    SCHOOL,
    Guardian,
    Invitation,
    Role,
    RolePermission,
    StoredPermission,
    Student,
    User,
    UserIdentity,
    UserRole,
)
from tenants.clock import now

PASSWORD, INVITATION, LINK = KINDS = Enumeration("CredentialKind", "PASSWORD", "INVITATION", "LINK")
"""The kinds of ways into an account made by others. A link of the way PASSWORD was made by the password."""

MOST_SHOWN = 200

_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


@statement
def lock_accounts(user_ids: list[UUID]) -> Any:
    """Lock accounts FOR NO KEY UPDATE, in the order of their ids: nobody invites, links or gives a password now."""
    return lock_in_order(User, User.id == one_of(user_ids))


@statement
def lock_bearers(role_ids: list[UUID]) -> Any:
    """Lock the accounts with one of these roles FOR NO KEY UPDATE, in the order of their ids."""
    return lock_in_order(
        User, User.id.in_(select(UserRole.user_id).where(UserRole.role_id == one_of(role_ids)))
    )


@statement
def end_creation_tokens_of_bearers(role_ids: list[UUID]) -> Any:
    """End the tokens returned at the creation of bearers of the roles, locked before."""
    return _ending(User.id.in_(select(UserRole.user_id).where(UserRole.role_id == one_of(role_ids))))


@statement
def end_creation_tokens(user_ids: list[UUID]) -> Any:
    """End the tokens returned at the creation of accounts, locked before."""
    return _ending(User.id == one_of(user_ids))


def _ending(condition: Any) -> Any:
    created = update(User).where(condition, User.session_number == CREATED)
    return created.values(session_number=CREATED + 1)


@judged_before
def credentials_of_others(user_ids: list[UUID], grants: str) -> Query:
    """Select the credentials others made for gaining accounts; see `_planted`."""
    return _planted(select(User.id.label("user_id")).where(User.id == one_of(user_ids)), grants)


@judged_before
def planted_in_restored(user_id: UUID, grants: str) -> Query:
    """Select the credentials others made for an account brought back, if it may do something; see `_planted`."""
    may_something = or_(
        exists()
        .where(UserRole.user_id == User.id, UserRole.role_id == Role.id, Role.given_to.is_(None))
        .where(RolePermission.role_id == Role.id),
        _is_guardian(User.id),
    )
    return _planted(select(User.id.label("user_id")).where(User.id == user_id, may_something), grants)


@judged_before
def planted_in_bearers(
    role_ids: list[UUID],
    grants: str,
    permission_ids: list[UUID] | None = None,
    user_id: UUID | None = None,
    widened: list[UUID] | None = None,
    narrowed: list[UUID] | None = None,
) -> Query:
    """Select the credentials others made for the accounts gaining by roles; see `_planted`.

    The gain is the permissions of the roles, or `permission_ids` of them alone, new to their bearers, or to one of
    them: neither held by another role nor, if the roles reach the whole school, held with this reach. Roles `widened`
    count as such, and roles `narrowed` did so before, whether the change is written yet or not.
    """
    reach = _Reaches(widened, narrowed)
    other_role, other_bearer, other_permission = aliased(Role), aliased(UserRole), aliased(RolePermission)
    had = (
        exists()
        .where(
            other_bearer.user_id == UserRole.user_id,
            other_bearer.role_id == other_role.id,
            other_role.id != func.all(cast(role_ids, ARRAY(Uuid))),
            other_permission.role_id == other_role.id,
            other_permission.permission_id == RolePermission.permission_id,
            or_(reach.was_school(other_role), ~reach.is_school(Role)),
        )
        .correlate(UserRole, RolePermission, Role)
    )
    gained = (
        select(UserRole.user_id)
        .distinct()
        .join(Role, Role.id == UserRole.role_id)
        .join(RolePermission, RolePermission.role_id == Role.id)
        .where(Role.id == one_of(role_ids), Role.given_to.is_(None), ~had)
    )
    if permission_ids is not None:
        gained = gained.where(RolePermission.permission_id == one_of(permission_ids))
    if user_id is not None:
        gained = gained.where(UserRole.user_id == user_id)
    return _planted(gained, grants, reach)


@dataclass(frozen=True, slots=True)
class _Reaches:
    """The roles reaching the whole school, now and before, with some widened and others narrowed, both by their ids."""

    widened: Any = None
    narrowed: Any = None

    def is_school(self, role: Any) -> Any:
        """Tell of a row of roles whether it reaches the whole school once the change is written."""
        return or_(_is_among(role, self.widened), and_(role.reach == SCHOOL, ~_is_among(role, self.narrowed)))

    def was_school(self, role: Any) -> Any:
        """Tell of a row of roles whether it did before."""
        return or_(_is_among(role, self.narrowed), and_(role.reach == SCHOOL, ~_is_among(role, self.widened)))


def _is_among(role: Any, role_ids: Any) -> Any:
    return false() if role_ids is None else role.id == one_of(role_ids)


def _planted(gained: Select[Any], grants: Any, reach: _Reaches | None = None) -> Query:
    """Select the credentials others made for gaining accounts, with their makers' permissions now; in one row.

    A credential ends if its maker may not do all the account may: by roles alone, with reach SCHOOL, and alive; for a
    student's or a guardian's account read:results is needed, too. The operator may do all; a password with an unknown
    giver stays. `grants` are the clients', an array in JSON of `{client, permission}`, null being all.

    `gained` tells whether an account gains at all. `numbers` counts by kind, `shown` are MOST_SHOWN, the remaining ones
    first, `ends` all the ending ones, and `clients` the makers other than users, in JSON each.
    """
    alive = select(User.id).where(User.id.in_(gained), User.deleted_at.is_(None))
    accounts = select(alive.subquery("alive").c.id.label("user_id")).cte("gained")
    made = _credentials(accounts)
    lacks = _lacks(made, _needed_permissions(accounts), _abilities(made, grants, reach or _Reaches()))
    ended = and_(made.c.made_by.is_not(None), lacks)
    judged = select(made, ended.label("ended")).cte("judged")
    shown = (
        select(
            User.username,
            judged.c.kind,
            judged.c.made_by_name,
            judged.c.made_at,
            judged.c.ended,
            User.username_sort_key,
            judged.c.id,
        )
        .join(User, User.id == judged.c.user_id)
        .order_by(judged.c.ended, User.username_sort_key, judged.c.kind, judged.c.made_at, judged.c.id)
        .limit(MOST_SHOWN)
        .subquery("shown")
    )
    row = json_object(
        **{name: shown.c[name] for name in ("username", "kind", "made_by_name", "made_at", "ended")}
    )
    in_order = (shown.c.ended, shown.c.username_sort_key, shown.c.kind, shown.c.made_at, shown.c.id)
    counted = json_object(**{kind: func.count().filter(judged.c.kind == kind) for kind in KINDS})
    ends = json_object(**{name: judged.c[name] for name in ("kind", "id", "user_id", "issuer")})
    no_user = ~exists().where(User.id == _as_user(made.c.made_by)).correlate(made)
    makers = select(made.c.made_by).distinct().where(made.c.made_by.is_not(None), no_user).subquery("makers")
    return select(
        select(accounts.c.user_id).exists().label("gained"),
        _text(select(counted).select_from(judged)).label("numbers"),
        _text(select(array_of(row, *in_order))).label("shown"),
        _text(select(array_of(ends)).where(judged.c.ended)).label("ends"),
        _text(select(array_of(makers.c.made_by))).label("clients"),
    )


def _credentials(accounts: CTE) -> CTE:
    """Give the credentials others made for the accounts: one's own are left out.

    A password by its giver, null for the operator and for an unknown giver.
    """
    theirs = select(accounts.c.user_id).scalar_subquery()
    known = User.password_given_by_name.is_not(None)
    passwords = _making(
        PASSWORD,
        User.id,
        User.id,
        User.password_given_by,
        User.password_given_by_name,
        case((known, User.password_given_at)),
    ).where(User.id.in_(theirs), User.password_hash.is_not(None), User.password_given_at.is_not(None))
    moment = bindparam("the_moment", callable_=now, type_=DateTime(timezone=True))
    invitations = _making(
        INVITATION,
        Invitation.id,
        Invitation.user_id,
        Invitation.created_by,
        Invitation.created_by_name,
        Invitation.created_at,
    ).where(Invitation.user_id.in_(theirs), Invitation.expires_at > moment)
    links = _making(
        LINK,
        UserIdentity.id,
        UserIdentity.user_id,
        UserIdentity.created_by,
        UserIdentity.created_by_name,
        UserIdentity.created_at,
        UserIdentity.issuer,
    ).where(UserIdentity.user_id.in_(theirs), UserIdentity.way == BY_ADMINISTRATOR)
    everything = union_all(passwords, invitations, links).subquery("everything")
    by_somebody_else = everything.c.made_by.is_distinct_from(cast(everything.c.user_id, Text))
    return select(everything).where(by_somebody_else).cte("made")


def _making(kind: str, id_: Any, user: Any, by: Any, name: Any, at: Any, issuer: Any = None) -> Select[Any]:
    return select(
        literal(kind, Text).label("kind"),
        id_.label("id"),
        user.label("user_id"),
        cast(by, Text).label("made_by"),
        cast(name, Text).label("made_by_name"),
        at.label("made_at"),
        cast(null() if issuer is None else issuer, Text).label("issuer"),
    )


def _needed_permissions(accounts: CTE) -> CTE:
    """Give the permissions needed for each account: its roles', and for a student's or guardian's read:results."""
    held = (
        select(accounts.c.user_id, RolePermission.permission_id)
        .join(UserRole, UserRole.user_id == accounts.c.user_id)
        .join(Role, (Role.id == UserRole.role_id) & Role.given_to.is_(None))
        .join(RolePermission, RolePermission.role_id == Role.id)
    )
    of_kin = (
        select(accounts.c.user_id, StoredPermission.id)
        .join(StoredPermission, _name() == literal(str(Permission.RESULTS_READ), Text))
        .where(
            or_(
                _is_guardian(accounts.c.user_id),
                exists().where(Student.user_id == accounts.c.user_id).correlate(accounts),
            )
        )
    )
    return union(held, of_kin).cte("needed")


def _abilities(made: CTE, grants: Any, reach: _Reaches) -> CTE:
    """Give the makers' permissions for the whole school: living users' by their roles, clients' by their grants."""
    by_roles = (
        select(made.c.made_by, RolePermission.permission_id)
        .join(User, User.id == _as_user(made.c.made_by))
        .join(UserRole, UserRole.user_id == User.id)
        .join(Role, (Role.id == UserRole.role_id) & reach.is_school(Role))
        .join(RolePermission, RolePermission.role_id == Role.id)
        .where(User.deleted_at.is_(None))
    )
    granted: Any = (
        func.json_to_recordset(cast(cast(grants, Text), JSON))
        .table_valued(column("client", Text), column("permission", Text))
        .render_derived(name="granted", with_types=True)
    )
    by_grants = select(granted.c.client, StoredPermission.id).join(
        StoredPermission, or_(granted.c.permission.is_(None), granted.c.permission == _name())
    )
    return union(by_roles, by_grants).cte("abilities")


def _lacks(made: CTE, needed: CTE, abilities: CTE) -> Any:
    """Tell of a row of `made` whether its maker lacks a permission needed for the account."""
    lacking = (
        select(made.c.kind, made.c.id)
        .distinct()
        .join(needed, needed.c.user_id == made.c.user_id)
        .where(
            ~exists()
            .where(abilities.c.made_by == made.c.made_by, abilities.c.permission_id == needed.c.permission_id)
            .correlate(made, needed)
        )
        .cte("lacking")
    )
    return exists().where(lacking.c.kind == made.c.kind, lacking.c.id == made.c.id).correlate(made)


def _as_user(actor: Any) -> Any:
    """Read an actor as a user's id; null for a client's."""
    return cast(case((actor.regexp_match(_UUID), actor)), Uuid)


def _is_guardian(user_id: Any) -> Any:
    return exists().where(Guardian.user_id == user_id).correlate_except(Guardian)


def _name() -> Any:
    return StoredPermission.access + ":" + StoredPermission.section


def _text(query: Select[Any]) -> Any:
    return cast(query.scalar_subquery(), Text)


# Ending it.


@statement
def end_passwords(user_ids: list[UUID]) -> Any:
    """Take the passwords of accounts away."""
    ending = update(User).where(User.id == one_of(user_ids))
    return ending.values(password_hash=None, password_given_by=None, password_given_by_name=None)


@statement
def end_links_by_password(user_ids: list[UUID]) -> Any:
    """Take away the links made by the passwords of accounts."""
    return delete(UserIdentity).where(UserIdentity.user_id == one_of(user_ids), UserIdentity.way == PASSWORD)


@statement
def end_invitations(ids: list[UUID]) -> Any:
    """Delete invitations."""
    return delete(Invitation).where(Invitation.id == one_of(ids))


@statement
def end_links(ids: list[UUID]) -> Any:
    """Delete links."""
    return delete(UserIdentity).where(UserIdentity.id == one_of(ids))


@statement
def end_sessions(user_ids: list[UUID]) -> Any:
    """End the sessions of accounts: every token issued to them is refused from now on."""
    ending = update(User).where(User.id == one_of(user_ids))
    return ending.values(session_number=User.session_number + 1)
