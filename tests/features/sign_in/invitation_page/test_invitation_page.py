"""The page that takes an invitation."""

from __future__ import annotations

import html
import re
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest
from sqlalchemy import text, update

from school_service.features.sign_in.pages.answers import KNOWN_CLIENTS
from school_service.features.sign_in.pages.clients import KnownClients
from tenants.registry.schools import schema_name, schools
from tests.cli.program import wait_for
from tests.conftest import make_place
from tests.features.scores.scoresheets.test_killed_server import read_value, watching_schools
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


def choose(browser, address, code=None, new=NEW, again=None, step=None):
    given = {"new_password": new, "again": new if again is None else again, "code": code, "step": step}
    return send(browser, address, **{name: value for name, value in given.items() if value is not None})


def check_username(page, person):
    """A password manager reads the username from a field that shows it, and that nobody changes."""
    [field] = re.findall(r'<input id="username"[^>]*>', page.get_data(as_text=True))
    assert 'type="text"' in field
    assert 'autocomplete="username"' in field
    assert " readonly" in field
    assert fields_of(page)["username"] == person.username


def test_opening_the_address_uses_nothing_up_and_the_form_sets_the_password(entrance, browser, person):
    invitation = invite(entrance, person)
    address = urlsplit(invitation["url"]).path
    for _ in range(3):
        assert browser.head(address).status_code == 200
        page = browser.get(address)
        check_page(page)
        assert person.username in text_of(page)
        assert "Adé Ọláwálé" in text_of(page)
        assert set(fields_of(page)) == {"step", "username", "new_password", "again"}
        check_username(page, person)
    # A refused password uses nothing up either.
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


def test_thirty_wrong_codes_a_minute_and_no_more_are_answered(entrance, browser, person):
    right = urlsplit(invite(entrance, person)["url"]).path
    for _ in range(30):
        assert browser.get(f"/auth/{SHORT}/invitation/AAAA-AAAA-AAAA").status_code == 404
    for code in ("AAAA-AAAA-AAAA", "none"):
        page = browser.get(f"/auth/{SHORT}/invitation/{code}")
        check_page(page, 429)
        assert 0 < int(page.headers["Retry-After"]) <= 60
    # A right one is let in all the same.
    check_page(browser.get(right))
    check_page(choose(browser, right))


SET_ALREADY = "It may be set already: try to sign in"


def wrong_codes(browser):
    """Count how many wrong codes are left of the thirty."""
    left = 0
    while browser.get(f"/auth/{SHORT}/invitation/AAAA-AAAA-AAAA").status_code == 404:
        left += 1
    return left


def test_a_form_that_is_sent_twice_is_no_wrong_code(entrance, browser, person):
    address = urlsplit(invite(entrance, person)["url"]).path
    step = fields_of(browser.get(address))["step"]
    answers = run_concurrently(4, lambda _: choose(entrance.app.test_client(), address, step=step))

    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    for page in (
        *(answer for answer in answers if answer.status_code == 409),
        choose(browser, address, step=step),
    ):
        check_page(page, 409)
        assert SET_ALREADY in text_of(page)
        assert "ask your school" in text_of(page)
        assert f'href="../../invitation?school={SHORT}"' in page.get_data(as_text=True)
    # With any other fields of the form.
    assert SET_ALREADY in text_of(choose(browser, address, step=step, again="another"))
    assert SET_ALREADY in text_of(choose(browser, address, step=step, new="another password"))
    login = {"username": person.username, "password": NEW}
    assert entrance.admin.post("/users/login", login).status_code == 200
    assert wrong_codes(browser) == 30


@pytest.mark.parametrize("why", ["set by another", "ended", "replaced", "taken back", "deleted"])
def test_the_form_changes_nothing_after_any_change_of_account_or_invitation(entrance, browser, person, why):
    made = invite(entrance, person)
    address = urlsplit(made["url"]).path
    step = fields_of(browser.get(address))["step"]
    admin, user = entrance.admin, f"/users/{person.id}"
    admin.ok(
        {
            "set by another": lambda: admin.put(f"{user}/password", {"password": "chosen by another"}),
            "ended": lambda: admin.delete(f"{user}/sessions"),
            "replaced": lambda: admin.post("/invitations", {"users": [person.id], "everybody": True}),
            "taken back": lambda: admin.delete(f"/invitations/{made['id']}"),
            "deleted": lambda: admin.delete(f"{user}/delete"),
        }[why]()
    )
    before = entrance.sql("SELECT password_hash, session_number FROM users WHERE id = %s", person.id)

    page = choose(browser, address, step=step)

    check_page(page, 409)
    assert SET_ALREADY in text_of(page)
    assert entrance.sql("SELECT password_hash, session_number FROM users WHERE id = %s", person.id) == before
    # Without the value it is a code like any other.
    if why == "ended":
        check_page(choose(browser, address))
    else:
        check_page(choose(browser, address), 422)


def test_without_a_good_value_it_is_a_wrong_code(entrance, browser, person, monkeypatch):
    other = entrance.person()
    address = urlsplit(invite(entrance, person)["url"]).path
    others = fields_of(browser.get(urlsplit(invite(entrance, other)["url"]).path))["step"]
    step = fields_of(browser.get(address))["step"]
    signed = entrance.client()
    entrance.admin.ok(entrance.admin.patch("/settings", {"must_change_password": True}))
    try:
        of_sign_in = fields_of(signed_in(browser, signed.ask()[0], entrance.person()))["step"]
    finally:
        entrance.admin.ok(entrance.admin.patch("/settings", {"must_change_password": False}))
    # While the code is right, the value does not matter; nor is a value of the code one of signing in.
    begun = send(browser, signed.ask()[0], step=step, username="x", new_password=NEW, again=NEW)
    assert "Sign in once more" in text_of(begun)
    check_page(choose(browser, address, step=others))

    for bad in ("", "x", others, of_sign_in, f"{step}0"):
        page = choose(browser, address, step=bad)
        check_page(page, 422)
        assert "not valid" in text_of(page)
    later = time.time() + 601
    monkeypatch.setattr("time.time", lambda: later)
    check_page(choose(browser, address, step=step), 422)


def test_the_way_back_to_signing_in_is_there_where_a_client_led_there(entrance, browser, person):
    made, client = invite(entrance, person), entrance.client()
    asked = client.ask(state="s")[0].replace("/authorize", "/invitation")
    page = send(browser, asked, code=made["code"])
    step = fields_of(page)["step"]
    check_username(page, person)
    assert choose(browser, asked, made["code"], step=step).status_code == 303

    page = choose(browser, asked, made["code"], step=step)

    check_page(page, 409)
    assert SET_ALREADY in text_of(page)
    back = html.unescape(re.search(r'<a href="(authorize[^"]+)"', page.get_data(as_text=True))[1])
    assert signed_in(browser, f"/auth/{back}", person, NEW).status_code == 303


def test_a_code_that_is_taken_waits_for_the_account_and_is_judged_anew(entrance, browser, person):
    """The account is locked before the invitation, as by everybody: no deadlock, and the first decision holds."""
    address = urlsplit(invite(entrance, person)["url"]).path
    schema = schema_name(entrance.place.id)
    waiting = text(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        " AND query LIKE '%invitations%'"
    )
    with ThreadPoolExecutor() as threads, entrance.tenancy.admin.connect() as other:
        other.execute(text(f"SELECT FROM {schema}.users WHERE id = '{person.id}' FOR NO KEY UPDATE"))
        taking = threads.submit(choose, entrance.app.test_client(), address)
        with watching_schools(entrance.tenancy) as watching:
            wait_for(lambda: read_value(watching, waiting), "the taker of the invitation")
        # The holder of the account's lock has the invitation, too.
        other.execute(text("SET LOCAL lock_timeout TO '2s'"))
        other.execute(text(f"DELETE FROM {schema}.invitations WHERE user_id = '{person.id}'"))
        other.commit()
        assert taking.result().status_code == 422


def test_a_form_of_another_site_is_refused(browser):
    check_page(browser.post("/auth/invitation", data={"code": "x"}), 403)
    check_page(browser.post("/auth/x/invitation/y", data={}, headers={"Origin": "null"}), 403)
