"""The faults of roles and their rights on a server: of schools, their owner, the serving logins.

Roles belong to the server, so a server is asked once for the roles of all schools.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, text

from tenants.catalogue import OWNER, SCHEMA, read_catalogue
from tenants.registry.installation import POWERS, READ_OF_CLIENTS
from tenants.registry.schools import School
from tenants.tenancy import Tenancy
from tenants.wording import some

_SCHOOL = re.compile("school_[0-9a-f]{32}")
_ROLES = text("SELECT *, rolvaliduntil < now() AS expired FROM pg_roles WHERE rolname = ANY (:names)")
# The members of our roles, and the roles that ours come to by any number of memberships.
_MEMBERSHIPS = text(
    f"""
    WITH RECURSIVE ours AS (SELECT oid FROM pg_roles WHERE rolname = ANY (:names)), reached (member, role) AS (
        SELECT m.member, m.roleid FROM pg_auth_members m JOIN ours ON ours.oid = m.member
        UNION
        SELECT r.member, m.roleid FROM reached r JOIN pg_auth_members m ON m.member = r.role
    ), found AS (
        SELECT member, role FROM reached
        UNION SELECT m.member, m.roleid FROM pg_auth_members m JOIN ours ON ours.oid = m.roleid
    )
    SELECT role.rolname AS role, member.rolname AS member, member.rolsuper AS member_is_superuser,
        bool_or({" OR ".join(f"role.{column}" for column in POWERS)}) AS is_powerful,
        bool_or(m.inherit_option) AS inherits, bool_or(m.set_option) AS serves, bool_or(m.admin_option) AS administers
    FROM found f JOIN pg_roles role ON role.oid = f.role JOIN pg_roles member ON member.oid = f.member
    LEFT JOIN pg_auth_members m ON m.roleid = f.role AND m.member = f.member
    GROUP BY role.rolname, member.rolname, member.rolsuper
    """  # noqa: S608 -- a text of our own
)
_ON_DATABASE = text(
    """
    SELECT CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(acl.grantee) END AS grantee,
        acl.privilege_type AS privilege, pg_has_role(d.datdba, 'USAGE') AS is_ours
    FROM pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) acl
    WHERE d.datname = current_database() AND acl.grantee <> d.datdba
    """
)
_DEFAULT_RIGHTS = text(
    """
    SELECT pg_get_userbyid(d.defaclrole) AS role, d.defaclacl::text AS rights
    FROM pg_default_acl d WHERE d.defaclnamespace = 0 AND pg_get_userbyid(d.defaclrole) = ANY (:names)
    """
)


@dataclass
class RoleFindings:
    """The faults on a server: by the role of its school, and of no school alone; notes may be no faults."""

    of_schools: dict[str, list[str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def find_role_faults(tenancy: Tenancy, connection: Connection, schools: Mapping[str, School]) -> RoleFindings:
    """Look at the attributes and memberships of a server's roles; `schools` are by schema."""
    findings = RoleFindings({schema: [] for schema in schools})
    admin = tenancy.admin_url.username or ""
    names = [*schools, *_logins(tenancy), *({tenancy.owner} - {admin})]
    roles = {row.rolname: row for row in connection.execute(_ROLES, {"names": [*names, admin]})}
    for name, fault in (
        *_faults_of_attributes(tenancy, names, roles),
        *_faults_of_members(tenancy, connection, schools, roles, findings.notes),
    ):
        findings.of_schools.get(name, findings.faults).append(fault)
    if tenancy.one_login and roles[admin].rolsuper:
        findings.notes.append(f"the login {admin} serves, and is a superuser")
    return findings


def find_right_faults(tenancy: Tenancy, connection: Connection, schemas: Collection[str]) -> RoleFindings:
    """Look at the rights on the database and the registry, and at those that new tables would get."""
    findings = RoleFindings()
    ours = {*schemas, *_logins(tenancy), tenancy.owner} - {tenancy.admin_url.username}
    findings.faults += _faults_on_database(tenancy, connection, ours, findings.notes)
    findings.faults += _faults_on_registry(tenancy, connection)
    findings.faults += [
        f"default privileges of {row.role} give rights on all that it makes: {row.rights}"
        for row in connection.execute(_DEFAULT_RIGHTS, {"names": [tenancy.owner, tenancy.admin_url.username]})
    ]
    return findings


def _logins(tenancy: Tenancy) -> tuple[str, ...]:
    """Name the logins that serve and do nothing else."""
    return () if tenancy.one_login else tenancy.placement.all_logins


def _faults_of_attributes(
    tenancy: Tenancy, names: list[str], roles: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    for name in names:
        role, is_login = roles.get(name), name in tenancy.placement.all_logins
        if is_login and (role is None or not role.rolcanlogin or role.expired):
            yield name, f"the login {name} is missing, or may not sign in: run school-service tenants init"
        elif role is None:
            advice = (
                "run school-service tenants init"
                if name == tenancy.owner
                else "restore the server's roles (pg_dumpall --roles-only)"
            )
            yield name, f"the role {name} is missing: {advice}"
        if role is None:
            continue
        word = "login" if is_login else "role"
        powers = [power for column, power in POWERS.items() if role._mapping[column]]
        if powers:
            yield name, f"the {word} {name} has {' and '.join(powers)}"
        if role.rolinherit:
            yield name, f"the {word} {name} has INHERIT"
        if role.rolcanlogin and not is_login and not tenancy.placement.roles_sign_in:
            yield name, f"the role {name} may sign in"


def _faults_of_members(
    tenancy: Tenancy,
    connection: Connection,
    schools: Mapping[str, School],
    roles: Mapping[str, Any],
    notes: list[str],
) -> Iterator[tuple[str, str]]:
    """See that the login of a school may become its role, and nobody else; and that no role of ours is any other."""
    placement, admin = tenancy.placement, tenancy.admin_url.username or ""
    names = [name for name in roles if tenancy.one_login or name != admin]
    open_schools, unused = set(), Counter[str]()
    for row in connection.execute(_MEMBERSHIPS, {"names": names}):
        role, member = row.role, row.member
        login = placement.login_of(schools[role].id) if role in schools else None
        if member == login:
            open_schools |= {role} if row.serves else set()
        if member == admin or row.member_is_superuser:
            continue
        if member == login:
            options = [name for name, has in (("INHERIT", row.inherits), ("ADMIN", row.administers)) if has]
            if options:
                yield role, f"the login {member} is a member of {role} with {' and '.join(options)}"
        elif login is not None and placement.was_login(member):
            unused[member] += 1
        elif role in names:
            yield role, f"{member} is a member of {role}, and should not be"
        elif _SCHOOL.fullmatch(role):
            continue  # of a school that is no more, or in another database
        elif member in placement.all_logins and not (
            row.is_powerful or role == admin or role.startswith("pg_")
        ):
            notes.append(f"the login {member} is a member of {role}")
        else:
            yield member, f"{member} is a member of {role}, and should not be"
    notes += [
        f"the login {member} is a member of {number} roles of schools that other logins serve: "
        "run school-service tenants init --withdraw, if no process needs that"
        for member, number in sorted(unused.items())
    ]
    for role in sorted(schools.keys() - open_schools):
        login = placement.login_of(schools[role].id)
        if login in roles and roles[login].rolsuper:
            continue
        yield role, f"the login {login} is no member of the role {role}: run school-service tenants init"


def _faults_on_database(
    tenancy: Tenancy, connection: Connection, ours: Collection[str], notes: list[str]
) -> Iterator[str]:
    """See that everybody has no right on the database, and roles of ours no more than to connect."""
    rows = connection.execute(_ON_DATABASE).all()
    granted = {(row.grantee, row.privilege) for row in rows}
    for row in rows:
        right = f"{row.grantee} has {row.privilege} on the database"
        if row.grantee == "PUBLIC" and not row.is_ours:
            notes.append(f"{right}, whose owner can revoke that")
        elif row.grantee == "PUBLIC" or (row.grantee in ours and row.privilege != "CONNECT"):
            yield f"{right}, and should not"
    for login in _logins(tenancy):
        if not {(login, "CONNECT"), ("PUBLIC", "CONNECT")} & granted:
            yield f"the login {login} may not connect to the database: run school-service tenants init"


def _faults_on_registry(tenancy: Tenancy, connection: Connection) -> Iterator[str]:
    """See that the serving logins read the registry, but the hashes of secrets, and nobody else does."""
    logins, catalogue = _logins(tenancy), read_catalogue(connection, "registry")
    readable = {name: "SELECT" for kind, name in catalogue if kind == "table" and name != "clients"}
    readable |= {f"clients.{column}": "SELECT" for column in READ_OF_CLIENTS} | {SCHEMA: "USAGE"}
    readable |= {name: "EXECUTE" for kind, name in catalogue if kind == "function"}
    wanted = {(login, name): right for login in logins for name, right in readable.items()}
    granted = {
        (kind.removeprefix("rights of ").removesuffix(" on"), name): rights
        for (kind, name), rights in catalogue.items()
        if kind.startswith("rights of ")
    }
    for grantee in sorted({grantee for grantee, _ in granted.keys() | wanted.keys()}):
        if grantee in {OWNER, tenancy.admin_url.username} or (
            grantee not in logins and tenancy.placement.was_login(grantee)
        ):
            continue
        odd = [
            f"{name} ({granted.get((grantee, name), 'none')}, and not {wanted.get((grantee, name), 'none')})"
            for name in sorted({name for who, name in granted.keys() | wanted.keys() if who == grantee})
            if granted.get((grantee, name)) != wanted.get((grantee, name))
        ]
        if odd:
            yield f"{grantee} has other rights on the registry than it should have: {some(odd)}"
