"""Installing: the registry, and a login that may read it and nothing else; again, and two at once."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
from dataclasses import replace
from uuid import uuid4

import psycopg2
import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, event, text, update

from tenants.connections.binding import SchoolBinding
from tenants.connections.engines import quote_identifier, registry_url, serving_engine
from tenants.exceptions import AlreadyExists, NotInstalled, UnfitLogin
from tenants.migrations.migration_sql import head, history, registry_head
from tenants.provisioning.create import create_school
from tenants.registry import installation as installing
from tenants.registry.clients import check_secret, create_client, revoke_client, token_claims
from tenants.registry.installation import check_installed, install
from tenants.registry.schools import clients, installation_id, password_policy
from tests.postgres import at_schools, on_citus
from tests.tenants.installations import (
    ADMINISTRATOR,
    binding_options,
    bound_sessions,
    drop_login,
    execute,
    installation,
    served_by,
    working,
)
from tests.tenants.migrations.histories import few_rows
from tests.threads import run_concurrently

ODD_NAMES = ('odd "quoted" it\'s %s %(x)s 100% :x \\y;--', "Odd Ọmọ 学校")
ODD_PASSWORDS = ("it's quo\"te 100% %s %(x)s co:lon back\\slash pass/word@host?x=1", " Ünï 学校 ")


@pytest.fixture
def bare(server, few_tables):
    """A database without a registry."""
    with installation(server, installed=False, history=few_tables, seed=few_rows) as tenancy:
        yield tenancy


@pytest.fixture(scope="module")
def mine(server):
    """An installation of this module's own: its tests leave it as it was."""
    with installation(server) as tenancy:
        yield tenancy


@pytest.fixture
def login(bare):
    """Names logins for the test; they are gone after it."""
    named = []

    def name(start):
        named.append(f"{start} {uuid4().hex[:8]}")
        return served_by(bare, bare.serving_url.set(username=named[-1]))

    yield name
    for role in named:
        drop_login(bare.admin_url, role)


def role_of(tenancy):
    """Read the attributes of the serving login."""
    columns = "rolcanlogin, rolinherit, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls"
    return execute(
        tenancy.admin_url, f"SELECT {columns} FROM pg_roles WHERE rolname = %s", (tenancy.placement.login,)
    )


def password_fits(tenancy, password):
    """Compute the verifier that PostgreSQL keeps of a password (RFC 5803), and compare."""
    ((verifier,),) = execute(
        tenancy.admin_url, "SELECT rolpassword FROM pg_authid WHERE rolname = %s", (tenancy.placement.login,)
    )
    rounds, salt, keys = verifier.removeprefix("SCRAM-SHA-256$").replace("$", ":").split(":", 2)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), int(rounds))
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return base64.b64decode(keys.split(":")[0]) == hashlib.sha256(client_key).digest()


def what_is_there(tenancy):
    """Read everything that installing makes, except for the hash of the password with its salt."""
    return {
        query: execute(tenancy.admin_url, query)
        for query in (
            "SELECT oid, nspacl::text FROM pg_namespace WHERE nspname = 'registry'",
            "SELECT oid, relacl::text FROM pg_class WHERE relnamespace = 'registry'::regnamespace ORDER BY 1",
            # But for a function that is made anew each time, on Citus.
            "SELECT oid, proacl::text FROM pg_proc WHERE pronamespace = 'registry'::regnamespace"
            " AND proname <> 'client_grant' ORDER BY 1",
            "SELECT * FROM registry.revision",
            "SELECT count(*) FROM registry.nationalities",
            "SELECT count(*) FROM registry.lgas",
            # But for settings of other tests at the same time.
            "SELECT * FROM pg_db_role_setting WHERE setrole NOT IN (SELECT oid FROM pg_roles"
            " WHERE starts_with(rolname, 'school_') AND NOT starts_with(rolname, current_database()))"
            " ORDER BY 1, 2",
            f"SELECT rolinherit, rolcanlogin FROM pg_roles WHERE rolname = '{tenancy.placement.login}'",
        )
    }


def can_work(tenancy, school):
    """Tell whether the serving login reaches a school as a request does."""
    engine = serving_engine(at_schools(tenancy.serving_url), pool_size=1)
    try:
        with working(bound_sessions(engine, binding_options(tenancy)), SchoolBinding(school.id)) as session:
            return session.scalars(text("SELECT username FROM users")).all() == ["admin"]
    finally:
        engine.dispose()


# The registry.


def test_again_changes_nothing(mine):
    before = what_is_there(mine)

    install(mine)

    assert what_is_there(mine) == before
    assert before["SELECT count(*) FROM registry.lgas"] == [(774,)]


def test_the_password_policy_is_set_when_the_registry_is_made(bare):
    def policy():
        with bare.admin.connect() as connection:
            return password_policy(connection)

    assert install(bare, password_policy="strict") is True
    assert policy() == "strict"
    assert install(bare, password_policy="any") is False
    assert install(bare) is False
    assert policy() == "strict"


def test_a_registry_that_says_nothing_of_passwords_takes_any(bare):
    install(bare)

    with bare.admin.connect() as connection:
        assert password_policy(connection) == "any"


def test_four_installations_at_once_are_one(bare):
    others = [replace(bare) for _ in range(4)]
    run_concurrently(4, lambda number: install(others[number]))
    for other in others:
        other.admin.dispose()

    assert execute(bare.admin_url, "SELECT count(*) FROM registry.revision") == [(1,)]
    assert can_work(bare, create_school(bare, name="x", administrator=ADMINISTRATOR))


def test_reference_data_is_brought_up_to_date(mine):
    execute(mine.admin_url, "UPDATE registry.states SET name = 'Old name' WHERE code = 'LA'")
    execute(mine.admin_url, "DELETE FROM registry.lgas WHERE name = 'Bakassi'")

    install(mine)

    assert execute(mine.admin_url, "SELECT name FROM registry.states WHERE code = 'LA'") == [("Lagos",)]
    assert execute(mine.admin_url, "SELECT count(*) FROM registry.lgas") == [(774,)]


def test_a_registry_of_a_later_version_is_left_alone(bare):
    install(bare)
    execute(bare.admin_url, "UPDATE registry.revision SET version_num = 'r9999'")

    execute(bare.admin_url, "UPDATE registry.installation SET release = '7.8.9'")
    needed = r"at the revision r9999, and this program knows r\d{4} and older ones\. Use release 7\.8\.9 or a newer one"

    with pytest.raises(NotInstalled, match=needed):
        install(bare)
    for url in (bare.admin_url, bare.serving_url):
        with pytest.raises(NotInstalled, match=needed):
            check(url)
    assert execute(bare.admin_url, "SELECT version_num FROM registry.revision") == [("r9999",)]

    # It only adds: programs of now go on, and can be started.
    execute(bare.admin_url, f"INSERT INTO registry.also_served VALUES ('r9999', '{registry_head()}')")
    check(bare.serving_url)
    # But they do not know the steps by which it gives its logins their rights.
    with pytest.raises(NotInstalled, match="r9999"):
        install(bare)


def test_a_registry_says_which_release_led_it_to_its_revision_and_which_others_go_on(bare, monkeypatch):
    release = "SELECT release FROM registry.installation"
    pairs = "SELECT * FROM registry.also_served ORDER BY revision"
    monkeypatch.setattr("migrations.tenant.SERVED_BY_EARLIER", ())
    install(replace(bare, release="1.0.0"))
    assert (execute(bare.admin_url, release), execute(bare.admin_url, pairs)) == ([("1.0.0",)], [])

    # A later one without migrations changes nothing of that.
    monkeypatch.setattr("migrations.tenant.SERVED_BY_EARLIER", ("t0001",))
    monkeypatch.setattr("migrations.registry.SERVED_BY_EARLIER", ("r0001",))
    for _ in range(2):
        install(replace(bare, release="1.0.1"))
    assert execute(bare.admin_url, release) == [("1.0.0",)]
    assert execute(bare.admin_url, pairs) == [(registry_head(), "r0001"), (head(), "t0001")]


def test_a_fault_leaves_nothing_behind(bare):
    def fail(_connection):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        install(replace(bare, reference=fail))

    assert execute(bare.admin_url, "SELECT FROM pg_namespace WHERE nspname = 'registry'") == []
    assert role_of(bare) == []


def test_an_older_registry_is_led_to_the_newest_revision(bare, tmp_path, monkeypatch):
    install(bare)
    school = create_school(bare, name="x", administrator=ADMINISTRATOR)
    longer = shutil.copytree(history("registry"), tmp_path / "registry")
    newest = ScriptDirectory(str(longer)).get_current_head()
    (longer / "versions" / "r9998_added.py").write_text(
        "from alembic import op\n"
        f"revision, down_revision = 'r9998', '{newest}'\n"
        "def upgrade():\n"
        "    op.execute('CREATE TABLE registry.added (id uuid)')\n"
    )
    monkeypatch.setattr(installing, "history", lambda name: tmp_path / name)

    install(bare)

    assert execute(bare.admin_url, "SELECT version_num FROM registry.revision") == [("r9998",)]
    assert execute(bare.serving_url, "SELECT * FROM registry.added") == []
    assert can_work(bare, school)


def let_connect(tenancy, address):
    database, name = quote_identifier(tenancy.admin_url.database), quote_identifier(address.username)
    execute(tenancy.admin_url, f"GRANT CONNECT ON DATABASE {database} TO {name}")


def check(url):
    engine = create_engine(registry_url(url))
    try:
        with engine.connect() as connection:
            check_installed(connection)
    finally:
        engine.dispose()


def test_a_registry_that_is_missing_hidden_or_old_is_refused(bare, server, login):
    with pytest.raises(NotInstalled, match="tenants init"):
        check(bare.admin_url)

    install(bare)
    check(bare.serving_url)

    stranger = login("stranger").serving_url
    execute(server, f"CREATE ROLE {quote_identifier(stranger.username)} LOGIN PASSWORD 'a password'")
    let_connect(bare, stranger)
    with pytest.raises(NotInstalled, match="tenants init"):
        check(stranger)

    execute(bare.admin_url, "UPDATE registry.revision SET version_num = 'r0001'")
    with pytest.raises(NotInstalled, match="tenants init"):
        check(bare.serving_url)


# The login.


def test_the_login_can_sign_in_and_nothing_more(tenancy):
    assert role_of(tenancy) == [(True, False, False, False, False, False, False)]


def rights_of(tenancy):
    """List the rights of the serving login on the registry."""
    return execute(
        tenancy.serving_url,
        """
        SELECT 'table', relname::text, right_ FROM pg_class
        CROSS JOIN string_to_table('SELECT INSERT UPDATE DELETE TRUNCATE REFERENCES TRIGGER', ' ') AS right_
        WHERE relnamespace = to_regnamespace('registry') AND relkind = 'r'
            AND has_table_privilege(oid, right_)
        UNION ALL SELECT 'database', 'here', right_ FROM unnest(ARRAY['CONNECT', 'CREATE', 'TEMPORARY']) AS right_
        WHERE has_database_privilege(current_database(), right_)
        UNION ALL SELECT 'schema', 'registry', right_ FROM unnest(ARRAY['USAGE', 'CREATE']) AS right_
        WHERE has_schema_privilege('registry', right_)
        UNION ALL SELECT 'function', proname, 'EXECUTE' FROM pg_proc
        WHERE pronamespace = to_regnamespace('registry') AND has_function_privilege(oid, 'EXECUTE')
        ORDER BY 1, 2
        """,
    )


TABLES = (
    "also_served",
    "backups",
    "client_schools",
    "failed_migrations",
    "installation",
    "lgas",
    "nationalities",
    "revision",
    "schools",
    "states",
)
FUNCTIONS = [
    # It takes a client alone, or with the session number of a token.
    *("refuse_revoked", "refuse_revoked"),
    *("client_secret_matches", "enter", "enter_as_client"),
    *(("client_grant", "enter_node", "read_shards") if on_citus() else ()),
]
RIGHTS = [
    ("database", "here", "CONNECT"),
    *(("function", name, "EXECUTE") for name in sorted(FUNCTIONS)),
    ("schema", "registry", "USAGE"),
    *(("table", table, "SELECT") for table in TABLES),
]


def test_the_login_may_read_the_registry_and_knock_at_its_door(tenancy):
    assert rights_of(tenancy) == RIGHTS


def test_rights_that_were_granted_by_hand_are_taken_away(mine):
    login = quote_identifier(mine.placement.login)
    execute(mine.admin_url, f"GRANT ALL ON ALL TABLES IN SCHEMA registry TO {login}")
    execute(mine.admin_url, f"GRANT ALL ON SCHEMA registry TO {login}")
    assert rights_of(mine) != RIGHTS

    install(mine)

    assert rights_of(mine) == RIGHTS


def test_the_login_compares_the_secret_of_a_client_and_cannot_read_it(tenancy):
    name = f"compared {uuid4()}"
    with tenancy.admin.begin() as connection:
        secret = create_client(connection, client_id=name)
    hashed = hashlib.sha256(secret.encode()).hexdigest()

    def matches(*values):
        [(match,)] = execute(tenancy.serving_url, "SELECT registry.client_secret_matches(%s, %s)", values)
        return match

    for column in ("secret_hash", "*", "clients"):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            execute(tenancy.serving_url, f"SELECT {column} FROM registry.clients")
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        execute(tenancy.serving_url, "SELECT FROM registry.clients WHERE starts_with(secret_hash, 'a')")
    assert execute(
        tenancy.serving_url,
        "SELECT all_schools, all_permissions, permissions, revoked_at FROM registry.clients WHERE id = %s",
        (name,),
    ) == [(False, False, [], None)]
    assert matches(name, hashed) is True
    assert matches(name, hashed[:-1]) is matches(name, "") is matches(name, None) is False
    assert matches("unknown", hashed) is matches("unknown", "") is matches(None, None) is False


def test_a_revoked_client_and_one_without_a_secret_match_nothing(tenancy):
    names = [f"revoked {uuid4()}", f"without {uuid4()}"]
    with tenancy.admin.begin() as connection:
        secrets = [create_client(connection, client_id=name) for name in names]
        assert [check_secret(connection, *pair) for pair in zip(names, secrets, strict=True)] == [True, True]
        revoke_client(connection, names[0])
        connection.execute(update(clients).where(clients.c.id == names[1]).values(secret_hash=None))

        assert [check_secret(connection, *pair) for pair in zip(names, secrets, strict=True)] == [
            False,
            False,
        ]
        assert check_secret(connection, names[1], "") is False


def test_of_two_grants_of_a_revoked_id_at_once_one_succeeds(tenancy):
    name = "granted twice"
    with tenancy.admin.begin() as connection:
        create_client(connection, client_id=name)
        revoke_client(connection, name)

    def grant(_number):
        try:
            with tenancy.admin.begin() as connection:
                return create_client(connection, client_id=name)
        except AlreadyExists:
            return None

    (secret,) = filter(None, run_concurrently(2, grant))

    with tenancy.admin.begin() as connection:
        assert check_secret(connection, name, secret)
        assert token_claims(connection, name) == (1, [], [])
        revoke_client(connection, name)


def test_the_function_that_compares_looks_for_nothing_in_a_callers_schemas(tenancy):
    [row] = execute(
        tenancy.admin_url,
        "SELECT prosecdef, proconfig FROM pg_proc WHERE proname = 'client_secret_matches'",
    )

    assert row == (True, ["search_path=pg_catalog, pg_temp"])


def test_no_other_login_connects_to_the_database(bare, server, login):
    stranger = login("stranger").serving_url
    execute(server, f"CREATE ROLE {quote_identifier(stranger.username)} LOGIN PASSWORD 'a password'")
    assert execute(stranger, "SELECT 1") == [(1,)]

    install(bare)

    with pytest.raises(psycopg2.OperationalError, match="permission denied for database"):
        execute(stranger, "SELECT 1")
    assert execute(bare.serving_url, "SELECT 1") == execute(bare.admin_url, "SELECT 1") == [(1,)]
    # Rights that an operator grants by name stay, installed again or not.
    let_connect(bare, stranger)
    install(bare)
    assert execute(stranger, "SELECT 1") == [(1,)]


OF_PEOPLES_CLIENTS = (
    *("name", "is_public", "redirect_uris", "post_logout_uris"),
    *("user_permissions", "idle_days", "session_days"),
)


def test_an_installation_of_the_release_before_is_upgraded(server):
    with installation(server, logins=3) as tenancy:
        school = create_school(tenancy, name="x", administrator=ADMINISTRATOR)
        with tenancy.admin.begin() as connection:
            secret = create_client(connection, client_id="before")
        # As the release before left it.
        for statement in (
            "DROP TABLE registry.backups",
            "DROP TABLE registry.installation",
            "DROP TABLE registry.also_served",
            "DROP FUNCTION registry.client_secret_matches",
            "DROP FUNCTION registry.enter_as_client",
            "ALTER TABLE registry.schools DROP COLUMN website",
            "ALTER TABLE registry.clients DROP COLUMN session_number",
            "ALTER TABLE registry.clients DROP COLUMN tells_addresses",
            "DROP FUNCTION registry.refuse_revoked(text, integer)",
            "ALTER TABLE registry.schools DROP COLUMN short_name",
            *(f"ALTER TABLE registry.clients DROP COLUMN {name}" for name in OF_PEOPLES_CLIENTS),
            "UPDATE registry.revision SET version_num = 'r0004'",
            f'GRANT CONNECT ON DATABASE "{tenancy.admin_url.database}" TO PUBLIC',
            *(f'GRANT SELECT ON registry.clients TO "{login}"' for login in tenancy.placement.all_logins),
        ):
            execute(tenancy.admin_url, statement)

        install(tenancy)

        login = tenancy.placement.login_of(school.id)
        assert can_work(replace(tenancy, serving_url=tenancy.serving_url.set(username=login)), school)
        engine = create_engine(registry_url(tenancy.serving_url))
        with engine.connect() as connection:
            assert check_secret(connection, "before", secret)
            assert not check_secret(connection, "before", "another")
            identifier = installation_id(connection)
        engine.dispose()
        install(tenancy)
        assert execute(tenancy.admin_url, "SELECT id FROM registry.installation") == [(identifier,)]
        for login in tenancy.placement.all_logins:
            with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                execute(tenancy.serving_url.set(username=login), "SELECT secret_hash FROM registry.clients")


def test_two_installations_have_two_ids(bare, tenancy):
    with tenancy.admin.connect() as connection:
        ours = installation_id(connection)
    with pytest.raises(NotInstalled), bare.admin.connect() as connection:
        installation_id(connection)

    install(bare)

    with bare.admin.connect() as connection:
        assert installation_id(connection) != ours


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO registry.clients VALUES ('x', null, true, true, '{}', '2026-01-01', null)",
        "UPDATE registry.schools SET status = 'active'",
        "UPDATE registry.installation SET id = '00000000-0000-4000-8000-000000000000'",
        "DELETE FROM registry.schools",
        "TRUNCATE registry.client_schools",
        "CREATE TABLE registry.mine (id int)",
        "CREATE OR REPLACE FUNCTION registry.enter(school uuid, serves text[], client text) RETURNS void "
        "LANGUAGE sql AS ''",
        "DROP SCHEMA registry CASCADE",
        "CREATE TABLE public.mine (id int)",
        "CREATE TEMPORARY TABLE mine (id int)",
        "CREATE SCHEMA mine",
        "CREATE ROLE mine",
        "CREATE DATABASE mine",
        "ALTER SYSTEM SET work_mem = '1GB'",
        "SELECT * FROM pg_authid",
    ],
)
def test_the_login_writes_and_creates_nothing(tenancy, statement):
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        execute(tenancy.serving_url, statement)


def test_nobody_else_reaches_the_registry(bare, server, login):
    install(bare)
    stranger = login("stranger").serving_url
    execute(server, f"CREATE ROLE {quote_identifier(stranger.username)} LOGIN PASSWORD 'a password'")
    let_connect(bare, stranger)

    for statement in (
        "SELECT * FROM registry.schools",
        f"SELECT registry.enter('{uuid4()}', '{{}}', null)",
        "SELECT registry.client_secret_matches('a', 'b')",
        "CREATE TEMPORARY TABLE mine (id int)",
    ):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            execute(stranger, statement)


def test_the_door_is_closed_to_all_by_its_own_rights_too(tenancy):
    (rights,) = execute(tenancy.admin_url, "SELECT proacl::text FROM pg_proc WHERE proname = 'enter'")

    # An entry without a name before the sign would be for all roles.
    assert "{=" not in rights[0]
    assert ",=" not in rights[0]


def test_the_logins_own_settings(tenancy):
    for setting, value in {
        "search_path": '""',
        "timezone": "UTC",
        "statement_timeout": "1min",
        "idle_in_transaction_session_timeout": "1min",
    }.items():
        assert execute(tenancy.serving_url, f"SHOW {setting}") == [(value,)]


def test_a_login_of_any_name(login):
    for name in ODD_NAMES:
        tenancy = login(name)
        install(tenancy)
        install(tenancy)

        assert role_of(tenancy) == [(True, False, False, False, False, False, False)]
        assert password_fits(tenancy, "a password")
        assert can_work(tenancy, create_school(tenancy, name="x", administrator=ADMINISTRATOR))
        tenancy.admin.dispose()


def test_a_password_of_any_kind_and_a_changed_one(mine):
    for password in (*ODD_PASSWORDS, "a password"):
        changed = replace(mine, serving_url=mine.serving_url.set(password=password))
        assert not password_fits(mine, password)
        install(changed)
        changed.admin.dispose()

        assert password_fits(mine, password)


def test_without_a_password_the_kept_one_stays(mine):
    # URL.set() can't take a password away.
    silent = replace(mine, serving_url=mine.serving_url._replace(password=None))

    install(silent)

    assert password_fits(mine, "a password")
    silent.admin.dispose()


def test_no_password_reaches_the_server_in_the_clear(bare):
    sent = []
    event.listen(
        bare.admin, "before_cursor_execute", lambda *arguments: sent.append(f"{arguments[2]} {arguments[3]}")
    )
    install(bare)

    assert any("PASSWORD" in statement for statement in sent)
    assert not any("a password" in statement for statement in sent)


def test_a_login_that_exists_is_made_fit(bare):
    execute(bare.admin_url, f"CREATE ROLE {quote_identifier(bare.placement.login)} NOLOGIN INHERIT")

    install(bare)

    assert role_of(bare) == [(True, False, False, False, False, False, False)]
    assert can_work(bare, create_school(bare, name="x", administrator=ADMINISTRATOR))


def test_a_login_with_powers_is_refused_and_left_alone(bare, server):
    powers = ("SUPERUSER", "CREATEROLE", "CREATEDB", "REPLICATION", "BYPASSRLS")
    for held in (powers, ("BYPASSRLS",)):
        execute(server, f"CREATE ROLE {quote_identifier(bare.placement.login)} LOGIN {' '.join(held)}")
        before = role_of(bare)

        with pytest.raises(UnfitLogin, match=f"has {' and '.join(held)},"):
            install(bare)

        assert role_of(bare) == before
        assert execute(bare.admin_url, "SELECT FROM pg_namespace WHERE nspname = 'registry'") == []
        execute(server, f"DROP ROLE {quote_identifier(bare.placement.login)}")


def test_a_login_of_another_name_is_let_into_the_schools_that_exist(bare, login):
    install(bare)
    schools = [create_school(bare, name="x", administrator=ADMINISTRATOR) for _ in range(2)]
    newcomer = login("newcomer")

    install(newcomer)

    assert all(can_work(newcomer, school) for school in schools)
    assert all(can_work(bare, school) for school in schools)
    for tenancy in (bare, newcomer):
        tenancy.admin.dispose()


def test_from_one_login_to_two(bare):
    alone = served_by(bare, bare.admin_url)
    install(alone)
    school = create_school(alone, name="x", administrator=ADMINISTRATOR)
    assert can_work(alone, school)

    install(bare)

    assert can_work(bare, school)
    alone.admin.dispose()


def test_one_login_is_left_as_it_is(bare):
    # All roles, but for roles of other tests at the same time.
    roles = (
        "SELECT rolname, rolinherit, rolconfig FROM pg_roles"
        " WHERE NOT starts_with(rolname, 'school_') OR starts_with(rolname, current_database()) ORDER BY 1"
    )
    before = execute(bare.admin_url, roles)
    alone = served_by(bare, bare.admin_url)

    install(alone)

    assert execute(bare.admin_url, roles) == before
    alone.admin.dispose()
