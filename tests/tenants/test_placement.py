"""Schools divided over several logins: each reaches its own alone, and their number can change under way."""

from __future__ import annotations

import logging
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from school_service.app import create_app
from school_service.auth.signing_key import SigningKey
from school_service.config import Settings
from school_service.core.database import db
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.connections.engines import quote_identifier, serving_engine
from tenants.connections.sessions import transaction
from tenants.exceptions import NoSchool, NotInstalled, SchoolUpgrading, UnfitLogin
from tenants.placement import Placement
from tenants.provisioning.create import create_school
from tenants.registry import installation as installing
from tenants.registry.installation import install, revoke_unused_memberships
from tests.conftest import dispose
from tests.postgres import at_schools, on_citus
from tests.tenants.conftest import tagged_school
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

# The login of a school.


def test_one_login_serves_every_school():
    placement = Placement("school")

    assert placement.all_logins == placement.school_logins == ("school",)
    assert {placement.login_of(uuid4()) for _ in range(20)} == {"school"}


def test_of_several_logins_a_school_always_has_the_same():
    placement = Placement("school", 16)
    ids = [uuid4() for _ in range(1600)]

    served = [placement.login_of(school_id) for school_id in ids]

    assert served == [Placement("school", 16).login_of(UUID(str(school_id))) for school_id in ids]
    assert set(served) == {f"school_{number:02}" for number in range(1, 17)}
    assert max(map(served.count, set(served))) < 200
    # Memberships have been granted by this rule: it may not change from version to version.
    assert placement.login_of(UUID("01234567-89ab-4def-8123-456789abcdef")) == "school_16"
    assert placement.login_of(UUID("01234567-89ab-4def-8123-456789abcde0")) == "school_01"


def test_with_several_logins_the_registrys_has_no_school():
    placement = Placement("school", 2)

    assert placement.all_logins == ("school", "school_01", "school_02")
    assert placement.school_logins == ("school_01", "school_02")


@pytest.mark.parametrize(
    ("name", "was"),
    [
        ("school", True),
        ("school_01", True),
        ("school_99", True),
        ("school_1", False),
        ("school_100", False),
        ("school_1x", False),
        ("school_", False),
        ("school_\u0660\u0661", False),
        ("schools_01", False),
        ("other", False),
    ],
)
def test_a_placements_logins_are_told_from_others(name, was):
    assert Placement("school", 2).was_login(name) is was


def test_too_many_schools_for_the_logins_are_said():
    assert Placement("school").advice(1000) is None
    assert Placement("school", 10).advice(10_000) is None
    assert "1001 schools share 1 serving login," in Placement("school").advice(1001)
    assert "SERVING_LOGINS to 2 " in Placement("school").advice(1001)
    assert "10001 schools share 10 serving logins," in Placement("school", 10).advice(10_001)
    # There are no more.
    assert Placement("school", 99).advice(200_000) is None


def test_a_pool_keeps_its_share_and_one_more():
    assert Placement("school").idle_connections(10) == 10
    assert Placement("school", 2).idle_connections(10) == 6
    assert Placement("school", 16).idle_connections(10) == 2
    assert Placement("school", 16).idle_connections(1) == 1


# Installing.


@pytest.fixture(scope="module")
def shared(server):
    """An installation whose one login serves three schools."""
    with installation(server) as tenancy:
        for _ in range(3):
            create_school(tenancy, name="x", administrator=ADMINISTRATOR)
        yield tenancy


@pytest.fixture
def single_login(shared):
    """The installation of one login; after the test that login serves all schools again."""
    yield shared
    login = shared.placement.login
    names = "SELECT rolname FROM pg_roles WHERE starts_with(rolname, %s) AND rolname NOT IN (%s, %s)"
    for (name,) in execute(shared.admin_url, names, (login, login, shared.owner)):
        drop_login(shared.admin_url, name)
    if members(shared) != {login: {*schools_of(shared)}}:
        install(shared)


def schools_of(tenancy):
    return [UUID(row[0]) for row in execute(tenancy.admin_url, "SELECT id::text FROM registry.schools")]


def members(tenancy):
    """Map each login of the installation to the schools whose role it may become."""
    rows = execute(
        tenancy.admin_url,
        "SELECT m.member::regrole::text, substr(m.roleid::regrole::text, 8)::uuid::text "
        "FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid "
        "WHERE m.set_option AND NOT m.inherit_option AND starts_with(m.member::regrole::text, %s) "
        "AND starts_with(r.rolname, 'school_') AND r.rolname <> %s",
        (tenancy.placement.login, tenancy.placement.login),
    )
    members = {}
    for login, school in rows:
        members.setdefault(login, set()).add(UUID(school))
    return members


def divided(tenancy):
    """Map each login to the schools that its placement gives it."""
    placement, expected = tenancy.placement, {}
    for school_id in schools_of(tenancy):
        expected.setdefault(placement.login_of(school_id), set()).add(school_id)
    return expected


def works(tenancy, school_id, login=None):
    """Tell whether a school's login, or another, works in it as a request does."""
    url = at_schools(tenancy.serving_url).set(username=login or tenancy.placement.login_of(school_id))
    engine = serving_engine(url, pool_size=1)
    try:
        with working(bound_sessions(engine, binding_options(tenancy)), SchoolBinding(school_id)) as session:
            return session.scalars(text("SELECT username FROM users")).all() == ["admin"]
    except SchoolUpgrading:
        return False
    finally:
        engine.dispose()


def test_more_logins_open_the_schools_that_exist_and_close_none(single_login):
    three = served_by(single_login, logins=3)

    install(three)

    assert members(single_login) == {
        single_login.placement.login: set(schools_of(single_login)),
        **divided(three),
    }
    assert all(
        works(here, school_id) for here in (single_login, three) for school_id in schools_of(single_login)
    )


def test_unused_memberships_are_withdrawn(single_login):
    three = served_by(single_login, logins=3)
    install(three)

    assert revoke_unused_memberships(three) == 3

    assert members(single_login) == divided(three)
    assert all(works(three, school_id) for school_id in schools_of(single_login))
    assert not any(works(single_login, school_id) for school_id in schools_of(single_login))
    assert revoke_unused_memberships(three) == 0


def test_fewer_logins_open_every_school_and_close_the_others_when_withdrawn(single_login):
    three = served_by(single_login, logins=3)
    install(three)
    revoke_unused_memberships(three)

    install(single_login)
    assert all(
        works(here, school_id) for here in (single_login, three) for school_id in schools_of(single_login)
    )

    assert revoke_unused_memberships(single_login) == 3
    assert members(single_login) == {single_login.placement.login: set(schools_of(single_login))}
    can_sign_in = execute(
        single_login.admin_url,
        "SELECT rolname FROM pg_roles WHERE rolcanlogin AND starts_with(rolname, %s)",
        (single_login.placement.login,),
    )
    assert can_sign_in == [(single_login.placement.login,)]

    install(three)
    assert all(works(three, school_id) for school_id in schools_of(single_login))


def test_logins_of_others_are_left_alone(single_login):
    stranger = f"{single_login.placement.login}_copy"
    role = f"school_{schools_of(single_login)[0].hex}"
    execute(single_login.admin_url, f"CREATE ROLE {quote_identifier(stranger)} LOGIN")
    execute(
        single_login.admin_url, f"GRANT {role} TO {quote_identifier(stranger)} WITH INHERIT FALSE, SET TRUE"
    )

    revoke_unused_memberships(served_by(single_login, logins=2))

    assert stranger in members(single_login)


def test_many_schools_are_opened_and_withdrawn_in_batches(single_login, monkeypatch):
    monkeypatch.setattr(installing, "_BATCH_SIZE", 1)
    two = served_by(single_login, logins=2)

    install(two)
    revoke_unused_memberships(two)

    assert members(single_login) == divided(two)


@pytest.fixture(scope="module")
def two(server, few_tables):
    """An installation whose two logins serve a school each."""
    with installation(server, logins=2, history=few_tables, seed=few_rows) as tenancy:
        for login in tenancy.placement.school_logins:
            tagged_school(tenancy, login=login)
        yield tenancy


def test_a_new_school_is_open_to_its_login_alone(two):
    assert members(two) == divided(two)
    assert len(divided(two)) == 2
    assert all(works(two, school_id) for school_id in schools_of(two))


def test_an_operator_without_superuser_divides_schools_too(server, few_tables):
    with installation(server, superuser=False, history=few_tables, seed=few_rows) as tenancy:
        create_school(tenancy, name="x", administrator=ADMINISTRATOR)
        two = served_by(tenancy, logins=2)

        install(two)
        create_school(two, name="y", administrator=ADMINISTRATOR)
        revoke_unused_memberships(two)

        assert members(tenancy) == divided(two)
        assert all(works(two, school_id) for school_id in schools_of(tenancy))


def test_a_school_of_a_login_that_is_not_made_yet_is_refused(single_login):
    before = schools_of(single_login)

    with pytest.raises(NotInstalled, match="tenants init"):
        create_school(served_by(single_login, logins=2), name="x", administrator=ADMINISTRATOR)

    assert schools_of(single_login) == before


def test_each_login_has_no_power_and_the_same_settings(two):
    rows = execute(
        two.admin_url,
        "SELECT rolname, rolcanlogin, rolinherit, rolsuper, rolcreaterole, rolcreatedb, rolreplication, "
        "rolbypassrls FROM pg_roles WHERE starts_with(rolname, %s) ORDER BY 1",
        (two.placement.login,),
    )
    paths = {
        execute(two.serving_url.set(username=login), "SHOW search_path")[0][0]
        for login in two.placement.all_logins
    }

    roles = {name: powers for name, *powers in rows}
    if not on_citus():  # where the superuser owns the schools
        assert roles.pop(two.owner) == [False] * 7
    assert roles == {login: [True, *[False] * 6] for login in two.placement.all_logins}
    assert paths == {'""'}


def test_a_login_with_powers_is_refused_whichever_it_is(single_login):
    login = f"{single_login.placement.login}_02"
    execute(single_login.admin_url, f"CREATE ROLE {quote_identifier(login)} LOGIN CREATEROLE")

    with pytest.raises(UnfitLogin, match="_02 has CREATEROLE"):
        install(served_by(single_login, logins=2))


def test_one_login_that_does_everything_is_not_divided(single_login):
    with pytest.raises(UnfitLogin, match="SERVING_LOGINS"):
        install(served_by(single_login, single_login.admin_url, logins=2))


# Serving.


@pytest.fixture
def make_app(single_login):
    """Makes applications on the installation, with so many logins."""
    made = []

    def make(logins, **environment):
        app = create_app(
            Settings.load(
                {
                    "DATABASE_URL": single_login.serving_url.render_as_string(hide_password=False),
                    "SIGNING_KEY": SigningKey.generate().to_pem(),
                    "SERVING_LOGINS": str(logins),
                    **environment,
                }
            )
        )
        made.append(app)
        return app

    yield make
    for app in made:
        dispose(app)


def test_an_application_takes_each_school_to_its_login(single_login, make_app):
    three = served_by(single_login, logins=3)
    install(three)
    revoke_unused_memberships(three)
    app = make_app(3)

    with app.app_context():
        for school_id in schools_of(single_login):
            with in_transaction(SchoolBinding(school_id)):
                served = db.session.scalars(text("SELECT session_user")).one()
            assert served == three.placement.login_of(school_id)


def test_without_a_school_there_is_no_engine(make_app):
    for logins in (1, 2):
        app = make_app(logins)
        with app.app_context():
            with pytest.raises(NoSchool):
                db.session.execute(text("SELECT 1"))
            with pytest.raises(NoSchool):
                db.session.get_bind()
            db.session.rollback()


def test_each_logins_pool_keeps_a_share_and_opens_more_in_passing(make_app):
    with make_app(4, POOL_SIZE="6").app_context():
        pools = {
            name: engine.pool for name, engine in db.engines.items() if name not in {"registry", "health"}
        }

        assert len(pools) == 4
        assert {(pool.connections.size, pool.connections.max_overflow) for pool in pools.values()} == {(3, 3)}


def test_a_school_that_is_closed_to_its_login_answers_not_now(single_login, caplog):
    school_id = schools_of(single_login)[0]
    two = served_by(single_login, logins=2)
    install(two)
    revoke_unused_memberships(two)
    engine = serving_engine(at_schools(single_login.serving_url), pool_size=1)
    sessions = bound_sessions(engine, binding_options(single_login))

    with caplog.at_level(logging.WARNING), sessions() as session:
        with pytest.raises(SchoolUpgrading, match="just now"):
            transaction(session, SchoolBinding(school_id))
        assert not session.in_transaction()
    engine.dispose()

    assert "school-service tenants init" in caplog.text
