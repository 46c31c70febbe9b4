"""Creating a school: all of it or nothing, with any provisioning login and any name."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError

from tenants.connections.binding import SchoolBinding
from tenants.connections.engines import execute_script, serving_engine
from tenants.exceptions import AlreadyExists, NotInstalled
from tenants.migrations.migration_sql import head
from tenants.provisioning.create import create_school, creation_statements
from tenants.registry.installation import install
from tenants.registry.schools import find_school, list_schools, schema_name
from tenants.tenancy import Administrator
from tests.postgres import at_schools, on_citus
from tests.tenants.installations import (
    ADMINISTRATOR,
    binding_options,
    bound_sessions,
    execute,
    installation,
    working,
)
from tests.tenants.migrations.histories import few_rows
from tests.threads import run_concurrently

NAMES = (
    "Queen's College, Yaba",
    'St. "Mary"',
    "100% Academy",
    "%s %(x)s %d %%",
    "Back\\slash \\' E'\\n",
    "Co:lon :name ::text",
    "Ọmọ Ọba Ilé-Ìwé 学校 🏫",
    "$1 $$ {0} {x}",
    "a; DROP SCHEMA registry CASCADE; --",
    "line\nbreak;\n\nand another",
    "x" * 120,
)


def create(tenancy, name="A school", school_id=None):
    return create_school(tenancy, name=name, administrator=ADMINISTRATOR, school_id=school_id)


def traces(tenancy, school_id):
    """List the traces of a school in the catalogues and in the registry."""
    with tenancy.admin.connect() as connection:
        return connection.exec_driver_sql(
            """
            SELECT 'role' FROM pg_roles WHERE rolname = %(name)s
            UNION ALL SELECT 'schema' FROM pg_namespace WHERE nspname = %(name)s
            UNION ALL SELECT 'membership' FROM pg_auth_members WHERE roleid = to_regrole(%(name)s)
            UNION ALL SELECT 'row' FROM registry.schools WHERE id = %(id)s
            """,
            {"name": f"school_{school_id.hex}", "id": school_id},
        ).all()


def users_seen(tenancy, school):
    """List the users of a school, as the serving login sees them in a transaction of the school."""
    engine = serving_engine(at_schools(tenancy.serving_url), pool_size=1)
    try:
        with working(bound_sessions(engine, binding_options(tenancy)), SchoolBinding(school.id)) as session:
            return session.execute(text("SELECT username, current_user FROM users")).all()
    finally:
        engine.dispose()


def test_a_school_is_ready_to_use(tenancy):
    school = create(tenancy, "Queen's College")

    assert (school.name, school.status, school.revision) == ("Queen's College", "active", head())
    assert users_seen(tenancy, school) == [("admin", school.schema)]


def test_the_id_may_be_given(few):
    school_id = uuid4()

    assert create(few, school_id=school_id).id == school_id


@pytest.mark.parametrize("name", [" ".join(NAMES[:6]), " ".join(NAMES[6:10]), NAMES[-1]])
def test_any_name_is_kept_as_it_is(few, name):
    school = create_school(few, name=name, administrator=Administrator(name, name))

    with few.admin.connect() as connection:
        assert find_school(connection, school.id).name == name
    assert users_seen(few, school) == [(name, school.schema)]


def test_creating_is_one_message_between_looks_at_the_registry_and_at_the_result(tenancy):
    measured = replace(tenancy)  # with an engine of its own
    sent = []
    event.listen(measured.admin, "before_cursor_execute", lambda *arguments: sent.append(arguments[2]))
    create(measured)
    measured.admin.dispose()

    # On Citus: is it there, is this its coordinator, and has each node the registry's tables?
    looked = ["SELECT"] * 3 if on_citus() else []
    assert [statement.split()[0] for statement in sent] == [*looked, "SELECT", "SELECT", "INSERT", "SELECT"]


# All or nothing.


def test_a_fault_after_a_statement_leaves_nothing_behind(few):
    """Of a school with few tables: all tables are one statement more, and so is the control."""
    school_id = uuid4()
    rows = [("classrooms", [{"id": uuid4(), "name": "JSS 1", "level": "1"}])]
    with few.admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        statements = creation_statements(few, connection, school_id=school_id, name="x", rows=rows)
        # Of each kind of statement the first and the last one, and every eighth.
        kinds = [tuple(each.split()[:2]) for each in statements]
        last = {kind: place for place, kind in enumerate(kinds, 1)}
        first = {kind: place for place, kind in reversed([*enumerate(kinds, 1)])}
        for place in sorted({*first.values(), *last.values(), *range(8, len(statements) + 1, 8)}):
            faulty = [*statements[:place], "SELECT 1/0", *statements[place:]]
            with pytest.raises(DBAPIError, match="division by zero"):
                execute_script(connection, ";\n".join(faulty))
            assert traces(few, school_id) == [], f"after {statements[place - 1]}"

        # And the same id can be had afterwards, by the same connection.
        execute_script(connection, ";\n".join(statements))
    assert {kind for (kind,) in traces(few, school_id)} == {"role", "schema", "membership", "row"}


def test_a_connection_lost_on_the_way_leaves_nothing_behind(few):
    school_id = uuid4()
    with few.admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        statements = creation_statements(few, connection, school_id=school_id, name="x", rows=())
        with pytest.raises(DBAPIError):
            execute_script(
                connection, ";\n".join([*statements, "SELECT pg_terminate_backend(pg_backend_pid())"])
            )

    assert traces(few, school_id) == []


def test_an_id_that_is_taken_changes_nothing(few):
    school = create(few, "The first")
    before = everything(few, school)

    with pytest.raises(AlreadyExists, match=str(school.id)):
        create_school(few, name="The second", administrator=Administrator("other", "x"), school_id=school.id)

    assert everything(few, school) == before


def everything(tenancy, school):
    return [
        execute(tenancy.admin_url, f"SELECT x::text FROM {table} AS x ORDER BY 1")
        for table in (
            "registry.schools",
            *(f'"{school.schema}".{table}' for table in ("users", "roles", "user_roles")),
        )
    ]


def test_eight_at_once_with_the_same_id_make_one_school(few):
    school_id = uuid4()

    def attempt(number):
        administrator = Administrator(f"user{number}", "x")
        try:
            create_school(few, name=f"{number}", administrator=administrator, school_id=school_id)
        except AlreadyExists:
            return False
        return True

    won = run_concurrently(8, attempt)

    assert won.count(True) == 1
    with few.admin.connect() as connection:
        school = find_school(connection, school_id)
    assert won[int(school.name)]
    assert users_seen(few, school) == [(f"user{school.name}", school.schema)]


def test_many_at_once_are_all_created(few):
    made = run_concurrently(8, lambda _: create(few))

    assert len({school.id for school in made}) == 8
    assert all(users_seen(few, school) for school in made)


def test_a_role_of_another_database_is_named_as_the_obstacle(few, server):
    with installation(server, history=few.history, seed=few_rows) as elsewhere:
        school = create(elsewhere)

        with pytest.raises(AlreadyExists, match=f"role or schema {school.schema} exists already"):
            create(few, school_id=school.id)

        assert ("row",) not in traces(few, school.id)


def test_rows_that_collide_are_not_taken_for_a_school_that_exists(tenancy):
    rows = list(tenancy.seed(ADMINISTRATOR))
    doubled = replace(tenancy, seed=lambda _: [*rows, rows[0]])

    with pytest.raises(DBAPIError, match="pk_permissions"):
        create(doubled)

    doubled.admin.dispose()


@pytest.mark.parametrize("name", ["x" * 121, "NUL \0"])
def test_a_name_that_can_not_be_stored_leaves_nothing_behind(few, name):
    school_id = uuid4()

    with pytest.raises((DBAPIError, ValueError)):
        create(few, name, school_id=school_id)

    assert traces(few, school_id) == []


def test_without_a_registry_the_message_names_init(server):
    with installation(server, installed=False) as bare, pytest.raises(NotInstalled, match="tenants init"):
        create(bare)


def test_before_the_registry_names_the_programs_of_before_no_school_is_created(few, monkeypatch):
    monkeypatch.setattr("migrations.tenant.SERVED_BY_EARLIER", ("t0001",))
    school_id = uuid4()

    with pytest.raises(NotInstalled, match="tenants init"):
        create(few, school_id=school_id)

    assert traces(few, school_id) == []


# The provisioning login.


@pytest.mark.parametrize("one_login", [True, False], ids=["one login", "two logins"])
@pytest.mark.parametrize("superuser", [True, False], ids=["superuser", "creator"])
def test_every_kind_of_installation_creates_and_serves(server, few_tables, one_login, superuser):
    kind = {"one_login": one_login, "superuser": superuser}
    with installation(server, history=few_tables, seed=few_rows, **kind) as tenancy:
        school = create(tenancy)
        install(tenancy)  # a second time, with a school

        assert users_seen(tenancy, school) == [("admin", school.schema)]
        with tenancy.admin.connect() as connection:
            assert [listed.id for listed in list_schools(connection)] == [school.id]

        # And a fault leaves nothing behind, with any provisioning login.
        school_id = uuid4()
        with tenancy.admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            statements = creation_statements(tenancy, connection, school_id=school_id, name="x", rows=())
            with pytest.raises(DBAPIError, match="division by zero"):
                execute_script(connection, ";\n".join([*statements, "SELECT 1/0"]))

        assert traces(tenancy, school_id) == []


def test_a_schools_role_can_do_nothing_by_itself(few):
    school = create(few)

    attributes = execute(
        few.admin_url,
        "SELECT rolcanlogin, rolinherit, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls "
        "FROM pg_roles WHERE rolname = %s",
        (school.schema,),
    )
    grants = execute(
        few.admin_url,
        "SELECT member::regrole::text, inherit_option, set_option, admin_option FROM pg_auth_members "
        "WHERE roleid = %s::regrole AND member = %s::regrole",
        (school.schema, few.placement.login),
    )

    assert attributes == [(False,) * 7]
    assert grants == [(few.placement.login, False, True, False)]


def test_ids_are_uuids_in_the_names_of_schemas():
    assert (
        schema_name(UUID("01234567-89AB-cdef-0123-456789abcdef")) == "school_0123456789abcdef0123456789abcdef"
    )
