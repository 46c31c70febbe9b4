"""Refusals and warnings of `serve` about a database, before it lets requests in."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import text

from school_service.app import create_app
from school_service.auth.signing_key import SigningKey
from school_service.config import Settings
from school_service.serving import ServingError
from school_service.serving.checks import check_database
from tenants.migrations.migration_sql import head, revisions
from tenants.provisioning.create import create_school
from tenants.registry.clients import PeoplesOptions, change_client, create_client, revoke_client
from tests.conftest import dispose
from tests.postgres import addresses, on_citus, on_postgresql_alone
from tests.tenants.installations import ADMINISTRATOR, execute, installation
from tests.tenants.without_roles import take_roles_away


@pytest.fixture(scope="module")
def without_roles(server):
    """The settings of an installation whose school has no role."""
    with installation(server) as tenancy:
        create_school(tenancy, name="x", administrator=ADMINISTRATOR)
        take_roles_away(tenancy)
        yield Settings.load(
            {
                **addresses(tenancy.admin_url, tenancy.serving_url),
                "SIGNING_KEY": SigningKey.generate().to_pem(),
            }
        )


def check(settings):
    app = create_app(settings)
    try:
        check_database(app, settings, threads=2)
    finally:
        dispose(app)


@on_postgresql_alone
def test_schools_without_roles_are_not_served(without_roles):
    with pytest.raises(ServingError, match="restored without the server's roles\\? Restore them first"):
        check(without_roles)


def test_schools_with_roles_and_none_at_all_are_served(settings, tenancy, place):
    check(settings)


@on_postgresql_alone
def test_where_citus_is_to_place_the_schools_the_registry_is_on_the_nodes(settings, tenancy):
    with pytest.raises(ServingError, match="the registry is not on the nodes"):
        check(replace(settings, tenant_distributed=True))


def test_where_citus_has_placed_the_schools_the_settings_say_so(settings, tenancy):
    told = replace(settings, tenant_distributed=True)
    apart = replace(settings, tenant_distributed=False)
    function = "FUNCTION registry.enter_node(first_shard bigint)"
    if not on_citus():
        check(apart)
        execute(tenancy.admin_url, f"CREATE {function} RETURNS void LANGUAGE sql AS ''")
    try:
        with pytest.raises(ServingError, match="Citus places the schools of this database"):
            check(apart)
        if on_citus():
            check(told)
    finally:
        if not on_citus():
            execute(tenancy.admin_url, f"DROP {function}")


THREADS = 8


@pytest.fixture
def warnings(app, settings, place, caplog) -> Callable[[], list[str]]:
    """Answers the warnings where the serving process has DATABASE_URL alone."""
    alone = replace(settings, admin_database_url=settings.database_url)

    def warned() -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="school_service.serving.checks"):
            check_database(app, alone, THREADS)
        return [record.getMessage() for record in caplog.records]

    return warned


@contextmanager
def may_create(tenancy, login: str) -> Iterator[None]:
    """Let a login create schemas for a while, as the provisioning login does."""
    with tenancy.admin.begin() as connection:
        database = connection.scalar(text("SELECT quote_ident(current_database())"))
        connection.execute(text(f'GRANT CREATE ON DATABASE {database} TO "{login}"'))
    try:
        yield
    finally:
        with tenancy.admin.begin() as connection:
            connection.execute(text(f'REVOKE CREATE ON DATABASE {database} FROM "{login}"'))


def test_a_login_that_serves_and_provisions_is_warned_of_and_one_that_only_serves_is_not(
    warnings, tenancy, settings
):
    told = [warning for warning in warnings() if warning.startswith("the same login")]
    with may_create(tenancy, settings.database_url.username):
        told_of_both = [warning for warning in warnings() if warning.startswith("the same login")]

    assert (len(told), len(told_of_both)) == (0, 1)


def test_schools_at_a_revision_that_is_still_served_are_not_warned_of(warnings, tenancy, place, monkeypatch):
    """They are served (`ALSO_SERVED`); those at any other answer 503."""
    earlier, said = (
        revisions()[-2],
        "schools are at a revision that this version does not serve: they answer 503",
    )
    with tenancy.admin.begin() as connection:
        connection.execute(text("UPDATE registry.schools SET revision = :earlier"), {"earlier": earlier})
    try:
        assert said in warnings()
        monkeypatch.setattr("tenants.migrations.migration_sql.ALSO_SERVED", (earlier,))
        assert said not in warnings()
    finally:
        with tenancy.admin.begin() as connection:
            connection.execute(text("UPDATE registry.schools SET revision = :head"), {"head": head()})


def test_a_redirect_uri_with_a_parameter_of_the_answer_is_warned_of(warnings, tenancy, caplog):
    said = "redirect URIs have a parameter of our answer in their own query"
    made = PeoplesOptions(is_public=True, redirect_uris=("https://app.example.com/back",))
    with tenancy.admin.begin() as connection:
        create_client(connection, client_id="led astray", all_schools=True, of_people=made)
    try:
        assert not any(warning.startswith(said) for warning in warnings())
        uri = "https://app.example.com/back?%63ode=1"
        with tenancy.admin.begin() as connection:
            change_client(connection, "led astray", of_people={"redirect_uris": (uri,)})
        assert sum(warning.startswith(said) for warning in warnings()) == 1
        (record,) = [record for record in caplog.records if record.getMessage().startswith(said)]
        assert record.redirect_uris == [f"led astray: {uri}"]
    finally:
        with tenancy.admin.begin() as connection:
            revoke_client(connection, "led astray")
    assert not any(warning.startswith(said) for warning in warnings())


@pytest.mark.parametrize(
    ("public_url", "said"),
    [
        (None, [(logging.INFO, "PUBLIC_URL is not set")]),
        ("https://schools.example.org", []),
        ("http://127.0.0.1:8000", []),
        ("http://[::1]:8000", []),
        ("http://school.lan", [(logging.WARNING, "PUBLIC_URL is not https")]),
    ],
)
def test_whether_people_can_sign_in_is_said_once(settings, tenancy, place, caplog, public_url, said):
    with caplog.at_level(logging.INFO):
        check(replace(settings, public_url=public_url))

    messages = [
        (record.levelno, record.getMessage())
        for record in caplog.records
        if "PUBLIC_URL" in record.getMessage()
    ]
    assert [(level, message.split(":")[0]) for level, message in messages] == said
