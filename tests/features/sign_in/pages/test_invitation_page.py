"""The page that takes an invitation."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest
from sqlalchemy import update

from school_service.features.sign_in.pages.answers import KNOWN_CLIENTS
from school_service.features.sign_in.pages.clients import KnownClients
from tenants.registry.schools import schools
from tests.conftest import make_place
from tests.features.sign_in.pages.test_sign_in_page import (
    NEW,
    action_of,
    check_page,
    fields_of,
    send,
    signed_in,
    text_of,
)
from tests.threads import run_concurrently

SHORT = "ijoba-college"


@pytest.fixture(autouse=True)
def _short_name(entrance):
    row = update(schools).where(schools.c.id == entrance.place.id)
    with entrance.tenancy.admin.begin() as connection:
        connection.execute(row.values(short_name=SHORT))
    entrance.app.extensions[KNOWN_CLIENTS] = KnownClients()


@pytest.fixture
def browser(entrance):
    return entrance.app.test_client()


@pytest.fixture
def person(entrance):
    return entrance.person()


def invite(entrance, person):
    (invitation,) = entrance.admin.ok(
        entrance.admin.post("/invitations", {"users": [person.id], "everybody": True})
    )
    return invitation


def choose(browser, address, code=None, new=NEW, again=None):
    given = {"new_password": new, "again": new if again is None else again}
    return send(browser, address, **given, **({"code": code} if code else {}))


def test_opening_the_address_uses_nothing_up_and_the_form_sets_the_password(entrance, browser, person):
    invitation = invite(entrance, person)
    address = urlsplit(invitation["url"]).path
    for _ in range(3):
        assert browser.head(address).status_code == 200
        page = browser.get(address)
        check_page(page)
        assert person.username in text_of(page)
        assert "Adé Ọláwálé" in text_of(page)
        assert set(fields_of(page)) == {"username", "new_password", "again"}
    # What the password lacks uses nothing up either.
    check_page(choose(browser, address, again="another"), 422)
    check_page(choose(browser, address, new=""), 422)
    check_page(browser.post(address, data={"new_password": NEW, "again": NEW}), 403)
    token = entrance.client().sign_in(person)["access_token"]

    answers = run_concurrently(4, lambda _: choose(entrance.app.test_client(), address))

    assert sorted(answer.status_code for answer in answers) == [200, 422, 422, 422]
    (done,) = [answer for answer in answers if answer.status_code == 200]
    check_page(done)
    assert "Your password is set" in text_of(done)
    assert entrance.with_token(token).get("/me").status_code == 401
    check_page(browser.get(address), 404)
    login = {"username": person.username, "password": NEW}
    assert entrance.admin.post("/users/login", login).status_code == 200
    entries = entrance.sql(
        "SELECT actor, entity, action FROM audit_entries WHERE actor = 'invitation page' AND entity_id = %s",
        person.id,
    )
    assert [(entry.entity, entry.action) for entry in entries] == [("user", "update")]


def test_the_request_that_led_there_goes_on(entrance, browser, person):
    invitation, client = invite(entrance, person), entrance.client()
    address, verifier = client.ask(state="s", school="")
    sign_in = browser.get(address)
    there = next(
        link for link in sign_in.get_data(as_text=True).split('"') if link.startswith("invitation?")
    ).replace("&amp;", "&")

    page = browser.get(f"/auth/{there}")
    check_page(page)
    assert set(fields_of(page)) == {"code"}
    assert "Back to signing in" in text_of(page)
    typed = f" {invitation['code'].lower().replace('-', ' ')} "
    page = send(browser, f"/auth/invitation{action_of(page)}", code=typed)
    check_page(page)
    assert person.username in text_of(page)
    assert fields_of(page)["code"] == typed
    check_page(choose(browser, f"/auth/invitation{action_of(page)}", typed, again="x"), 422)
    answer = choose(browser, f"/auth/invitation{action_of(page)}", typed)

    assert answer.status_code == 303
    given = parse_qs(urlsplit(answer.location).query)
    assert given["state"] == ["s"]
    assert client.exchange(given["code"][0], verifier).status_code == 200
    assert signed_in(browser, address, person, NEW).status_code == 303
    (entry,) = entrance.sql(
        "SELECT new FROM audit_entries WHERE entity_id = %s AND entity = 'sign-in' AND new ? 'session' "
        "ORDER BY at LIMIT 1",
        person.id,
    )
    assert entry.new["client"] == client.id
    # A request that is not right is not led on.
    assert browser.get(f"/auth/{there}".replace("S256", "plain")).status_code == 303
    check_page(browser.get(f"/auth/{there}".replace("redirect_uri=", "redirect_uri=x")), 400)


def test_without_a_client_the_school_is_typed(entrance, browser, person):
    invitation = invite(entrance, person)
    page = browser.get("/auth/invitation")
    check_page(page)
    assert set(fields_of(page)) == {"short_name", "code"}
    unknown = send(browser, "/auth/invitation", short_name="nobody-here", code=invitation["code"])
    check_page(unknown, 404)
    assert fields_of(unknown) == {"short_name": "nobody-here", "code": invitation["code"]}
    page = send(browser, "/auth/invitation", short_name=SHORT, code=invitation["code"])
    check_page(page)
    assert person.username in text_of(page)
    done = choose(browser, f"/auth/invitation{action_of(page)}", invitation["code"])
    check_page(done)
    assert person.username in text_of(done)
    for named in (SHORT, str(entrance.place.id)):
        page = browser.get(f"/auth/invitation?school={named}")
        assert set(fields_of(page)) == {"code"}
        assert entrance.place.name in text_of(page)
    for school in ("nobody-here", str(UUID(int=1)), "x" * 300):
        check_page(browser.get(f"/auth/{school}/invitation/{invitation['code']}"), 404)


def test_every_code_that_is_not_valid_is_refused_alike(entrance, browser, person):
    other = make_place(entrance.app, entrance.tenancy, "Elsewhere")
    first = invite(entrance, person)
    second = invite(entrance, person)
    deleted = entrance.person()
    third = invite(entrance, deleted)
    entrance.admin.ok(entrance.admin.delete(f"/users/{deleted.id}/delete"))
    at = f"/auth/{SHORT}/invitation"
    addresses = [f"{at}/{code}" for code in (first["code"], third["code"], "AAAA-AAAA-AAAA", "x", "%00", "Ọ")]
    addresses.append(f"/auth/{other.id}/invitation/{second['code']}")
    said = set()
    for address in addresses:
        page = browser.get(address)
        check_page(page, 404)
        said.add(text_of(page).split("Code", 2)[-1])
        assert choose(browser, address).status_code == 422
    assert len(said) == 1
    check_page(browser.get(f"{at}/{second['code']}"))


def test_thirty_wrong_codes_a_minute_and_no_more_are_looked_at(entrance, browser, person):
    right = urlsplit(invite(entrance, person)["url"]).path
    for _ in range(30):
        assert browser.get(f"/auth/{SHORT}/invitation/AAAA-AAAA-AAAA").status_code == 404
    for address in (right, f"/auth/{SHORT}/invitation/AAAA-AAAA-AAAA"):
        page = browser.get(address)
        check_page(page, 429)
        assert 0 < int(page.headers["Retry-After"]) <= 60
    elsewhere = browser.get(right, environ_base={"REMOTE_ADDR": "192.0.2.7"})
    check_page(elsewhere)


def test_a_form_of_another_site_is_refused(browser):
    check_page(browser.post("/auth/invitation", data={"code": "x"}), 403)
    check_page(browser.post("/auth/x/invitation/y", data={}, headers={"Origin": "null"}), 403)
