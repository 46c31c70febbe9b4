"""The sign-in page, as a browser speaks with it."""

from __future__ import annotations

import html
import io
import json
import logging
import re
import time
from contextlib import contextmanager
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
import psycopg2
import pytest
from sqlalchemy import event, update

from school_service.auth.id_tokens import issue_id_token
from school_service.core.database import db
from school_service.features.auth_provider.service import TOKEN_CLIENTS
from school_service.features.sign_in.pages.answers import KNOWN_CLIENTS
from school_service.features.sign_in.pages.clients import KnownClients
from school_service.features.sign_in.pages.requests import MOST_BYTES
from school_service.web.pages import FORM
from school_service.web.request_log import JsonFormatter
from tenants.exceptions import RegistrySilent
from tenants.registry.clients import revoke_client
from tenants.registry.schools import schools
from tests.conftest import make_place
from tests.features.sign_in.conftest import ISSUER, PUBLIC_URL, REDIRECT
from tests.features.sign_in.test_grants import sent as sent
from tests.printing.pictures import png
from tests.threads import run_concurrently

OWN = {"Sec-Fetch-Site": "same-origin"}
NEW = "seven green bicycles"


@pytest.fixture(autouse=True)
def _nothing_remembered(entrance):
    entrance.app.extensions[KNOWN_CLIENTS] = KnownClients()


@pytest.fixture
def browser(entrance):
    return entrance.app.test_client()


@pytest.fixture
def app_of_people(entrance):
    return entrance.client(name="Parents' portal")


@pytest.fixture
def person(entrance):
    return entrance.person()


def fields_of(page):
    """The names of the fields of a page, and their values."""
    fields = {}
    for tag in re.findall(r"<input [^>]*>", page.get_data(as_text=True)):
        given = dict(re.findall(r'(\S+)="([^"]*)"', tag))
        fields[given["name"]] = html.unescape(given.get("value", ""))
    return fields


def text_of(page):
    return html.unescape(
        re.sub(r"<style.*?</style>|<[^>]+>", " ", page.get_data(as_text=True), flags=re.DOTALL)
    )


def action_of(page):
    return html.unescape(re.search(r'<form method="post" action="([^"]*)"', page.get_data(as_text=True))[1])


def send(browser, address, **fields):
    return browser.post(address, data=fields, headers=OWN)


def signed_in(browser, address, person, password=None):
    return send(browser, address, username=person.username, password=password or person.password)


def check_page(page, status=200):
    """Hold a page against the rules of all: whole, small, without script, cookie, frame and foreign things."""
    assert page.status_code == status, text_of(page)
    assert page.mimetype == "text/html"
    policy = page.headers["Content-Security-Policy"]
    nonce = re.search(r"'nonce-([\w-]+)'", policy)[1]
    assert policy == (
        f"default-src 'none'; img-src 'self'; style-src 'nonce-{nonce}'; base-uri 'none'; frame-ancestors 'none'"
    )
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["X-Robots-Tag"] == "noindex"
    assert page.headers["Referrer-Policy"] == "same-origin"
    assert not {"Set-Cookie", "Location", "Cross-Origin-Opener-Policy"} & set(page.headers.keys())
    text = page.get_data(as_text=True)
    assert f'<style nonce="{nonce}">' in text
    assert len(page.data) <= 15 * 1024
    assert text.count("<h1>") == 1
    assert "<script" not in text
    assert not re.search(r"""\b(src|href|action)="(https?:)?//""", text)
    # Each field has a label, and each error is said of a field that knows it.
    for tag in re.findall(r"<input [^>]*>", text):
        given = dict(re.findall(r'(\S+)="([^"]*)"', tag))
        if given.get("type") == "hidden":
            continue
        assert f'<label for="{given["id"]}">' in text
        for described in given.get("aria-describedby", "").split():
            assert f'id="{described}"' in text
        if given["type"] == "password":
            assert "value" not in given
    assert text.count(" autofocus") <= 1
    # There is a way on, or a sentence of advice of its own.
    assert "<form " in text or "<a " in text or re.search(r'<p class="advice">[A-Z][^<]+\.</p>', text)
    return text


def test_the_page_asks_for_username_and_password(entrance, browser, app_of_people):
    address, _ = app_of_people.ask(login_hint='ada"><b>')
    page = browser.get(address)

    text = check_page(page)
    assert "Sign in" in text_of(page)
    assert entrance.place.name in text_of(page)
    assert "Parents' portal" in text_of(page)
    assert "<b>" not in text
    assert fields_of(page) == {"username": 'ada"><b>', "password": ""}
    assert 'autocomplete="username"' in text
    assert 'autocomplete="current-password"' in text
    assert f'src="{entrance.place.id}/logo"' in text
    assert browser.head(address).status_code == 200


def test_the_right_password_leads_back_with_a_code(entrance, browser, app_of_people, person):
    state = "Ọlá é&=+%20\r\n\0 '\"<>#?/\\"
    address, verifier = app_of_people.ask(state=state, nonce="n")
    page = browser.get(address)
    answer = signed_in(browser, f"/auth/authorize{action_of(page)}", person)

    assert answer.status_code == 303
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.location.startswith(f"{REDIRECT}?")
    given = parse_qs(urlsplit(answer.location).query)
    assert list(given) == ["code", "state", "iss"]
    assert (given["state"], given["iss"]) == ([state], [ISSUER])
    assert app_of_people.exchange(given["code"][0], verifier).status_code == 200
    (entry,) = entrance.sql(
        "SELECT actor, new FROM audit_entries WHERE entity_id = %s AND entity = 'sign-in'", person.id
    )
    assert entry.actor == app_of_people.id
    assert {**entry.new, "session": None} == {
        "username": person.username,
        "client": app_of_people.id,
        "session": None,
    }


def test_client_and_redirect_uri_are_judged_first_and_never_redirected(entrance, browser, app_of_people):
    good = {"client_id": app_of_people.id, "redirect_uri": REDIRECT}
    revoked = entrance.client()
    with entrance.tenancy.admin.begin() as connection:
        revoke_client(connection, revoked.id)
    bad = [
        {},
        {"client_id": app_of_people.id},
        {"redirect_uri": REDIRECT},
        {**good, "client_id": ""},
        {**good, "client_id": "nobody"},
        {**good, "client_id": app_of_people.id.upper()},
        {**good, "client_id": "a\0b"},
        {**good, "client_id": "é" * 200},
        {**good, "client_id": revoked.id},
        {**good, "redirect_uri": ""},
        {**good, "redirect_uri": f"{REDIRECT}/"},
        {**good, "redirect_uri": f"{REDIRECT}?x"},
        {**good, "redirect_uri": REDIRECT.replace("/back", "/%62ack")},
        {**good, "redirect_uri": "https://evil.example"},
    ]
    for given in bad:
        address = f"/auth/authorize?{urlencode(given)}"
        for page in (browser.get(address), send(browser, address, username="a", password="b")):
            check_page(page, 400)
    for name in good:
        address = f"/auth/authorize?{urlencode(good)}&{name}={good[name]}"
        check_page(browser.get(address), 400)


def test_a_page_of_an_error_is_no_larger_than_64_kib(browser, app_of_people):
    quotes, long = "'" * 60_000, f"y={'z' * 60_000}"
    address, _ = app_of_people.ask()

    check_page(send(browser, address, username=quotes, password="b"), 413)
    check_page(browser.post(f"{address}&{long}", data={"username": "a"}), 403)
    check_page(send(browser, "/auth/invitation", short_name=quotes, code="a"), 413)
    check_page(send(browser, address, username="'" * 1000, password="b"), 422)


def test_every_other_fault_is_told_to_the_client(browser, app_of_people):
    address, _ = app_of_people.ask(state="x y")
    long = f"{address}&y={'z' * MOST_BYTES}"
    for asked, error in (
        (address.replace("=S256", "=plain"), "invalid_request"),
        (address.replace("response_type=code", "response_type=token"), "unsupported_response_type"),
        (f"{address}&prompt=none", "login_required"),
        (f"{address}&nonce=1&nonce=2", "invalid_request"),
        (long, "invalid_request"),
    ):
        for answer in (browser.get(asked), send(browser, asked)):
            assert answer.status_code == 303
            given = parse_qs(urlsplit(answer.location).query)
            assert (given["error"], given["state"], given["iss"]) == ([error], ["x y"], [ISSUER])
            assert answer.location.startswith(f"{REDIRECT}?error=")
    # Of two states none is the one that was sent.
    twice = browser.get(f"{address}&state=2").location
    assert "state" not in parse_qs(urlsplit(twice).query)


def posted(browser, address, query="", **headers):
    """Send the query of an address as a form in its place."""
    path, _, asked = address.partition("?")
    return browser.post(f"{path}{query}", data=asked, content_type=FORM, headers=headers)


@pytest.mark.parametrize("headers", [{}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}, OWN])
def test_a_request_that_is_posted_is_asked_for_as_a_page(entrance, browser, app_of_people, person, headers):
    state = "Ọlá é&=+%20\r\n\0 '\"<>#?/\\"
    address, verifier = app_of_people.ask(state=state, nonce="n", scope="openid")
    own = (
        "&username=ada&password=secret&step=x&new_password=a&again=a&short_name=b&code=c&client_secret=d&x=y"
    )

    answer = posted(browser, f"{address}{own}", **headers)

    assert answer.status_code == 303
    there = urlsplit(answer.location)
    assert f"{there.scheme}://{there.netloc}{there.path}" == f"{ISSUER}/authorize"
    # The same request, and nothing of the page's own fields.
    assert parse_qs(there.query) == parse_qs(urlsplit(address).query)
    page = browser.get(answer.location)
    check_page(page)
    assert fields_of(page) == {"username": "", "password": ""}
    led_back = signed_in(browser, f"/auth/authorize{action_of(page)}", person)
    given = parse_qs(urlsplit(led_back.location).query)
    assert given["state"] == [state]
    assert app_of_people.exchange(given["code"][0], verifier).status_code == 200


def test_a_request_that_is_posted_is_judged_as_one_that_is_asked_for(browser, app_of_people, person):
    address, _ = app_of_people.ask(state="x y")
    for wrong in (
        address.replace("client_id=", "client_id=x"),
        address.replace("client_id=", "client_id=%00"),
        address.replace("redirect_uri=", "redirect_uri=x"),
        f"{address}&client_id={app_of_people.id}",
        "/auth/authorize?client_id=",
    ):
        check_page(posted(browser, wrong), 400)
    for wrong, error in (
        (address.replace("=S256", "=plain"), "invalid_request"),
        (f"{address}&prompt=none", "login_required"),
        (f"{address}&nonce=1&nonce=2", "invalid_request"),
        (f"{address}&nonce={'n' * 501}", "invalid_request"),
    ):
        answer = posted(browser, wrong)
        assert answer.status_code == 303
        assert answer.location.startswith(f"{REDIRECT}?error={error}&")
        assert answer.location == browser.get(wrong).location
    # Bytes that are no UTF-8 come as they are, and characters that can't stand in an address are escaped.
    plain, _ = app_of_people.ask()
    odd = posted(browser, f"{plain.replace('school=', 'school=%FF')}&state=\r\nX: y\xff'\"<>").location
    assert odd.endswith("&state=%0D%0AX:%20y%C3%BF'%22%3C%3E")
    assert "school=%FF" in odd
    check_page(browser.get(odd), 404)
    check_page(posted(browser, f"{address}&y={'z' * 65 * 1024}"), 413)
    # With a query it is the page's own form, and another's is refused.
    both = f"{address}&username={person.username}&password={person.password}"
    check_page(posted(browser, both, query="?school=x"), 403)
    check_page(posted(browser, both, query="?school=x", **OWN), 400)
    # Without a client in it, it is no request.
    check_page(posted(browser, "/auth/authorize?username=a&password=b"), 403)
    check_page(browser.post("/auth/authorize", json={"client_id": app_of_people.id}), 403)


class TestHints:
    @pytest.fixture
    def hint(self, app_of_people, person):
        """The ID token that the client was given of the person."""
        return app_of_people.sign_in(person, scope="openid")["id_token"]

    @staticmethod
    def refused(answer):
        assert answer.status_code == 303
        given = parse_qs(urlsplit(answer.location).query)
        assert (given["error"], given["iss"], "code" in given) == (["login_required"], [ISSUER], False)
        assert given["state"] == ["s"]
        return True

    def test_a_hint_names_the_person_of_the_sign_in(self, entrance, browser, app_of_people, person, hint):
        other = entrance.person()
        address, verifier = app_of_people.ask(state="s", id_token_hint=hint)
        check_page(browser.get(address))

        answer = signed_in(browser, address, person)
        code = parse_qs(urlsplit(answer.location).query)["code"][0]
        assert app_of_people.exchange(code, verifier).status_code == 200
        # Another is told of a wrong password, and led back after the right one.
        check_page(signed_in(browser, address, other, "wrong"), 422)
        assert self.refused(signed_in(browser, address, other))
        assert entrance.sql("SELECT count(*) FROM user_sessions WHERE user_id = %s", other.id) == [(0,)]
        signed = "SELECT count(*) FROM audit_entries WHERE entity = 'sign-in' AND entity_id = %s"
        assert entrance.sql(f"{signed} AND action <> 'refused'", other.id) == [(0,)]

    def test_an_expired_one_does_too(self, entrance, browser, app_of_people, person, hint):
        claims = jwt.decode(hint, options={"verify_signature": False})
        key = entrance.app.extensions["school-service"].verifier.key
        old = issue_id_token(key, claims, issuer=ISSUER, at=int(time.time()) - 86_400)
        address, _ = app_of_people.ask(state="s", id_token_hint=old)

        assert self.refused(signed_in(browser, address, entrance.person()))
        assert "code=" in signed_in(browser, address, person).location

    def test_any_other_hint_is_not_looked_at(self, entrance, browser, app_of_people, person, hint):
        other = entrance.person()
        access = app_of_people.sign_in(person)["access_token"]
        of_another_client = entrance.client().sign_in(person, scope="openid")["id_token"]
        unsigned = jwt.encode(jwt.decode(hint, options={"verify_signature": False}), "a" * 32)
        changed = hint[:-2] + ("AA" if hint[-2:] != "AA" else "BB")
        for bad in ("x", access, of_another_client, unsigned, changed, "\0", "a.b.c", "é", "x" * 5000):
            address, _ = app_of_people.ask(state="s", id_token_hint=bad)
            assert "code=" in signed_in(browser, address, other).location, bad

    def test_a_hint_is_given_once(self, browser, app_of_people, hint):
        address, _ = app_of_people.ask(state="s", id_token_hint=hint)
        answer = browser.get(f"{address}&id_token_hint={hint}")
        assert answer.location.startswith(f"{REDIRECT}?error=invalid_request")

    def test_a_hint_holds_for_a_password_that_has_to_be_changed(self, entrance, browser, app_of_people, hint):
        entrance.admin.ok(entrance.admin.patch("/settings", {"must_change_password": True}))
        try:
            other = entrance.person()
            plain, _ = app_of_people.ask(state="s")
            hinted, _ = app_of_people.ask(state="s", id_token_hint=hint)
            assert self.refused(signed_in(browser, hinted, other))
            step = fields_of(signed_in(browser, plain, other))["step"]
            chosen = {"step": step, "new_password": NEW, "again": NEW}
            assert self.refused(send(browser, hinted, **chosen))
            # Nothing was changed by it.
            assert "code=" in send(browser, plain, **chosen).location
        finally:
            entrance.admin.ok(entrance.admin.patch("/settings", {"must_change_password": False}))

    def test_a_hint_holds_for_an_invitation(self, entrance, browser, app_of_people, hint):
        other = entrance.person()
        [made] = entrance.admin.ok(
            entrance.admin.post("/invitations", {"users": [other.id], "everybody": True})
        )
        plain, hinted = (
            app_of_people.ask(state="s", **more)[0].replace("/authorize", "/invitation")
            for more in ({}, {"id_token_hint": hint})
        )
        chosen = {"code": made["code"], "new_password": NEW, "again": NEW}
        assert self.refused(send(browser, hinted, **chosen))
        assert entrance.sql("SELECT count(*) FROM user_sessions WHERE user_id = %s", other.id) == [(0,)]
        # The code is not used up.
        assert "code=" in send(browser, plain, **chosen).location


def test_a_wrong_password_is_told_beside_the_fields(browser, app_of_people, person):
    address, _ = app_of_people.ask()
    page = signed_in(browser, address, person, "wrong")

    text = check_page(page, 422)
    assert "The username or the password is wrong." in text_of(page)
    assert fields_of(page) == {"username": person.username, "password": ""}
    assert text.count('aria-invalid="true"') == 2
    assert "<title>Error: " in text
    # Nobody else is told anything else.
    other = send(browser, address, username="nobody", password="wrong")
    assert text_of(other) == text_of(page)
    assert other.status_code == 422
    for empty in (
        {},
        {"username": ""},
        {"username": "ada"},
        {"password": "x"},
        {"username": "a\0", "password": "x"},
    ):
        check_page(send(browser, address, **empty), 422)
    twice = browser.post(address, data={"username": ["a", "b"], "password": "c"}, headers=OWN)
    check_page(twice, 422)


def test_wrong_passwords_count_together_with_the_apis(entrance, browser, app_of_people, person):
    address, _ = app_of_people.ask()
    for _ in range(5):
        assert signed_in(browser, address, person, "wrong").status_code == 422
        login = {"username": person.username, "password": "wrong"}
        assert entrance.admin.post("/users/login", login).status_code == 401

    page = signed_in(browser, address, person)
    check_page(page, 429)
    assert 0 < int(page.headers["Retry-After"]) <= 60
    assert f"{page.headers['Retry-After']} seconds" in text_of(page)
    right = {"username": person.username, "password": person.password}
    assert entrance.admin.post("/users/login", right).status_code == 429
    elsewhere = browser.post(address, data=right, headers=OWN, environ_base={"REMOTE_ADDR": "192.0.2.7"})
    assert elsewhere.status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "cross-site", "Origin": PUBLIC_URL},
        {"Origin": "null"},
        {"Origin": "https://evil.example"},
        {"Origin": f"{PUBLIC_URL}.evil.example"},
        {"Origin": f"{PUBLIC_URL}:8443"},
        {"Origin": PUBLIC_URL.replace("https", "http")},
    ],
)
def test_a_form_of_another_site_is_refused_and_counts_no_try(browser, app_of_people, person, headers):
    address, _ = app_of_people.ask()
    both = {"username": person.username, "password": "wrong"}
    for _ in range(11):
        page = browser.post(address, data=both, headers=headers)
        check_page(page, 403)
    again = re.search(r'<a href="(\?[^"]+)">Begin anew', page.get_data(as_text=True))[1]
    assert check_page(browser.get(f"/auth/authorize{html.unescape(again)}"))
    assert signed_in(browser, address, person).status_code == 303


def test_the_form_is_taken_without_tls_by_its_origin(enter):
    plain = enter(public_url="http://School.local:80")
    person, client = plain.person(), plain.client()
    answer = plain.app.test_client().post(
        client.ask()[0],
        data={"username": person.username, "password": person.password},
        headers={"Origin": "http://school.local"},
    )
    assert answer.status_code == 303


def test_the_school_is_named_chosen_or_typed(entrance, browser):
    short = "ijoba-senior"
    with entrance.tenancy.admin.begin() as connection:
        connection.execute(update(schools).where(schools.c.id == entrance.place.id).values(short_name=short))
    other = make_place(entrance.app, entrance.tenancy, "Another <School>")
    both = [entrance.place.id, other.id]
    several = entrance.client(school_ids=both)
    address, _ = several.ask(school="", state="a\nb")

    page = browser.get(address)
    check_page(page)
    links = re.findall(r'<a href="([^"]+)">([^<]+)</a>', page.get_data(as_text=True))
    assert [html.unescape(name) for _, name in links] == ["Another <School>", entrance.place.name]
    chosen = browser.get(f"/auth/authorize{html.unescape(links[1][0])}")
    check_page(chosen)
    assert entrance.place.name in text_of(chosen)
    assert "Sign in to another school" in text_of(chosen)
    by_name = browser.get(several.ask(school=short.upper())[0])
    assert entrance.place.name in text_of(by_name)

    # One school needs no name; with many its name is typed.
    client = entrance.client()
    alone = browser.get(client.ask(school="")[0])
    assert "Password" in text_of(alone)
    assert "another school" not in text_of(alone)
    every = entrance.client(school_ids=both)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tenants.registry.sign_in.MOST_CHOICES", 1)
        entrance.app.extensions[KNOWN_CLIENTS] = KnownClients()
        asked, _ = every.ask(school="", state="a\nb")
        page = browser.get(asked)
        check_page(page)
        assert fields_of(page) == {"short_name": ""}
        unknown = send(browser, f"/auth/authorize{action_of(page)}", short_name="nobody-here")
        check_page(unknown, 404)
        assert fields_of(unknown) == {"short_name": "nobody-here"}
        typed = send(browser, f"/auth/authorize{action_of(page)}", short_name=f" {short} ")
        check_page(typed)
        person = entrance.person()
        answer = signed_in(browser, f"/auth/authorize{action_of(typed)}", person)
    assert answer.status_code == 303
    assert parse_qs(urlsplit(answer.location).query)["state"] == ["a\nb"]


def test_a_school_that_the_client_has_not_is_unknown(entrance, browser, app_of_people):
    other = make_place(entrance.app, entrance.tenancy, "Not of this client")
    pages = []
    for school in (str(other.id), "nobody-here", "x" * 300, "\0", "ö'\"><script>"):
        page = browser.get(app_of_people.ask(school=school)[0])
        check_page(page, 404)
        pages.append(text_of(page).replace(html.escape(school), ""))
        assert "Not of this client" not in text_of(page)
    for _ in range(55):
        check_page(browser.get(app_of_people.ask(school="nobody-here")[0]), 404)
    page = browser.get(app_of_people.ask(school="nobody-here")[0])
    check_page(page, 429)
    assert int(page.headers["Retry-After"]) > 0
    check_page(browser.get(app_of_people.ask()[0]))


def test_a_password_that_was_given_is_changed_on_the_way(entrance, browser, app_of_people):
    entrance.admin.ok(entrance.admin.patch("/settings", {"must_change_password": True}))
    try:
        person, other = entrance.person(), entrance.person()
        address, verifier = app_of_people.ask(state="s")
        page = signed_in(browser, address, person)
        check_page(page)
        fields = fields_of(page)
        assert set(fields) == {"step", "username", "new_password", "again"}
        assert fields["username"] == person.username
        [shown] = re.findall(r'<input id="username"[^>]*>', page.get_data(as_text=True))
        assert all(part in shown for part in ('type="text"', 'autocomplete="username"', " readonly"))
        step = {"step": fields["step"], "username": person.username}

        def choose(new, again=None, **others):
            return send(browser, address, **{**step, "new_password": new, "again": again or new, **others})

        for new, again, words in (
            ("", None, "Enter a new password."),
            (NEW, "another one entirely", "The two are not the same."),
            (person.password, None, "Must be another than the current one."),
            ("a\0b", None, "characters"),
        ):
            page = choose(new, again)
            text = check_page(page, 422)
            assert words in text_of(page)
            assert text.count('aria-invalid="true"') == 1
            assert fields_of(page)["step"] == step["step"]
        # It is of its user, school and client, and of nobody else.
        elsewhere = entrance.client()
        page = send(browser, elsewhere.ask()[0], **step, new_password=NEW, again=NEW)
        check_page(page, 422)
        assert "Sign in once more" in text_of(page)
        for value in ("", "x", f"{step['step']}0"):
            check_page(choose(NEW, step=value), 422)
        assert entrance.with_token(step["step"]).get("/me").status_code == 401

        answers = run_concurrently(
            4,
            lambda _: entrance.app.test_client().post(
                address, data={**step, "new_password": NEW, "again": NEW}, headers=OWN
            ),
        )
        assert sorted(answer.status_code for answer in answers) == [303, 422, 422, 422]
        (answer,) = [answer for answer in answers if answer.status_code == 303]
        code = parse_qs(urlsplit(answer.location).query)["code"][0]
        assert app_of_people.exchange(code, verifier).status_code == 200
        check_page(choose("yet another password"), 422)
        assert signed_in(browser, address, person, NEW).status_code == 303
        assert "New password" in text_of(signed_in(browser, address, other))
    finally:
        entrance.admin.ok(entrance.admin.patch("/settings", {"must_change_password": False}))


def test_a_fault_of_the_policy_stands_beside_the_field(enter):
    strict = enter(password_policy="strict")
    strict.admin.ok(strict.admin.patch("/settings", {"must_change_password": True}))
    try:
        person, client = strict.person(), strict.client()
        browser, (address, _) = strict.app.test_client(), client.ask()
        page = signed_in(browser, address, person)
        assert "At least 10 characters" in text_of(page)
        step = fields_of(page)["step"]
        page = send(browser, address, step=step, new_password="short", again="short")
        check_page(page, 422)
        assert "Must have at least 10 characters." in text_of(page)
    finally:
        strict.admin.ok(strict.admin.patch("/settings", {"must_change_password": False}))


def test_names_are_printed_as_text(entrance, browser):
    client = entrance.client(name="<script>alert(1)</script>")
    page = browser.get(client.ask(login_hint="</style><script>", school=str(entrance.place.id))[0])
    check_page(page)
    assert "<script>alert(1)</script>" in text_of(page)
    assert entrance.place.name in text_of(page)


@contextmanager
def changed(entrance, **values):
    row = update(schools).where(schools.c.id == entrance.place.id)
    with entrance.tenancy.admin.begin() as connection:
        before = connection.exec_driver_sql(
            "SELECT status, revision FROM registry.schools WHERE id = %s", (entrance.place.id,)
        ).one()
        connection.execute(row.values(**values))
    entrance.app.extensions[KNOWN_CLIENTS] = KnownClients()
    try:
        yield
    finally:
        with entrance.tenancy.admin.begin() as connection:
            connection.execute(row.values(**before._mapping))
        entrance.app.extensions[KNOWN_CLIENTS] = KnownClients()


def test_a_school_that_is_not_open_has_a_page_and_comes_back_by_itself(
    entrance, browser, app_of_people, person
):
    address, _ = app_of_people.ask()
    for values, status, retry in (({"status": "suspended"}, 403, None), ({"revision": "t0001"}, 503, "30")):
        with changed(entrance, **values):
            for page in (browser.get(address), signed_in(browser, address, person)):
                check_page(page, status)
                assert page.headers.get("Retry-After") == retry
            assert browser.get(f"/auth/{entrance.place.id}/logo").status_code == 404
    assert signed_in(browser, address, person).status_code == 303


def test_while_the_database_is_away_there_is_a_page(entrance, browser, app_of_people, person):
    address, _ = app_of_people.ask()

    def fail(*_):
        raise psycopg2.OperationalError("connection refused: 10.0.0.1, role secret")

    with entrance.app.app_context():
        engine = db.engines["registry"]
    event.listen(engine, "before_cursor_execute", fail)
    try:
        for page in (browser.get(address), signed_in(browser, address, person)):
            text = check_page(page, 503)
            assert int(page.headers["Retry-After"]) > 0
            assert "refused" not in text
    finally:
        event.remove(engine, "before_cursor_execute", fail)
    assert signed_in(browser, address, person).status_code == 303


def test_sign_ins_have_a_share_of_their_own(entrance, browser, app_of_people, person):
    address, _ = app_of_people.ask()
    shares = entrance.app.extensions["school-service"].shares
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shares, "patience", 0.01)
        taken = [shares.of(("not signed in", entrance.place.id)) for _ in range(shares.limit)]
        for turn in taken:
            turn.__enter__()
        try:
            page = signed_in(browser, address, person)
            check_page(page, 503)
            assert int(page.headers["Retry-After"]) > 0
            assert entrance.admin.get("/classrooms").status_code == 200
            check_page(browser.get(address))
        finally:
            for turn in taken:
                turn.__exit__()
    assert signed_in(browser, address, person).status_code == 303


def test_too_large_a_form_is_refused(browser, app_of_people):
    address, _ = app_of_people.ask()
    check_page(send(browser, address, username="a" * 65 * 1024, password="b"), 413)
    check_page(browser.post(address, json={"username": "a"}, headers=OWN), 422)


def test_no_log_has_a_query_or_a_code(enter):
    chatty = enter(log_level="INFO")
    person, client = chatty.person(), chatty.client()
    stream, log = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(stream), log.level
    handler.setFormatter(JsonFormatter())
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        code, verifier = client.begin(person, state="5tate", login_hint="h1nt", nonce="n0nce")
        chatty.app.test_client().get(client.ask(state="5tate", prompt="none")[0])
        chatty.app.test_client().get(f"/auth/{chatty.place.id}/invitation/K7QM-4TZ9-XDR2")
        chatty.app.test_client().get(f"/AUTH/{chatty.place.id}/Invitation/K7QM-4TZ9-XDR2")
        client.exchange(code, verifier)
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
    lines = stream.getvalue()
    for secret in (code, verifier, "5tate", "h1nt", "n0nce", person.password, "K7QM", "code_challenge", "?"):
        assert secret not in lines, secret
    line = next(line for line in map(json.loads, lines.splitlines()) if line.get("status") == 303)
    assert (line["path"], line["client"]) == ("/auth/authorize", client.id)
    assert line["school"] == str(chatty.place.id)


def test_scripts_of_other_origins_read_all_but_the_pages(enter):
    open_to = enter(cors_origins=("https://app.example.com",))
    browser, client = open_to.app.test_client(), open_to.client()
    origin = {"Origin": "https://app.example.com"}
    paths = (
        client.ask()[0],
        "/auth/invitation",
        f"/auth/{open_to.place.id}/invitation/K7QM-4TZ9-XDR2",
        "/auth/logout",
    )
    for path in paths:
        assert "Access-Control-Allow-Origin" not in browser.get(path, headers=origin).headers
    for path in ("/auth/.well-known/openid-configuration", f"/auth/{open_to.place.id}/logo", "/health"):
        assert browser.get(path, headers=origin).headers["Access-Control-Allow-Origin"] == origin["Origin"]


def test_without_public_url_there_are_no_pages(enter):
    closed = enter(public_url=None).app.test_client()
    for path in ("/auth/authorize", "/auth/invitation", "/auth/x/invitation/y", "/auth/x/logo"):
        answer = closed.get(path)
        assert (answer.status_code, answer.mimetype) == (404, "application/json"), path


BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def test_an_unknown_address_below_auth_is_a_page_to_a_client_that_prefers_one(browser, enter):
    closed = enter(public_url=None).app.test_client()
    for path in ("/auth/", "/auth/authorise", "/auth/x/invitation/", "/auth/a/b/c", "/auth/%00"):
        page = browser.get(path, headers=BROWSER)
        check_page(page, 404)
        assert "There is nothing at this address" in text_of(page)
        assert "Open the app again" in text_of(page)
        check_page(browser.post(path, headers=BROWSER), 404)
        for accept in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
            answer = browser.get(path, headers=accept)
            assert (answer.status_code, answer.mimetype) == (404, "application/json"), path
        assert closed.get(path, headers=BROWSER).mimetype == "application/json", path
    for elsewhere in ("/authorise", "/nothing", "/users/x"):
        assert browser.get(elsewhere, headers=BROWSER).mimetype == "application/json"
    assert browser.get("/auth/oauth/token", headers=BROWSER).status_code == 405


def test_the_logo_is_public_and_everything_else_is_one_404(entrance, browser):
    picture = png()
    answers = [browser.get(f"/auth/{school}/logo") for school in (entrance.place.id, "x", "x" * 36)]
    unknown = "00000000-0000-4000-8000-000000000000"
    answers.append(browser.get(f"/auth/{unknown}/logo"))
    for answer in answers:
        assert answer.status_code == 404
        assert text_of(answer) == text_of(answers[0])
    form = {"image": (io.BytesIO(picture), "logo.png")}
    entrance.admin.ok(entrance.admin.request("PUT", "/letterhead/logo", data=form))
    try:
        answer = browser.get(f"/auth/{entrance.place.id}/logo")
        assert (answer.status_code, answer.data, answer.mimetype) == (200, picture, "image/png")
        assert answer.headers["Cache-Control"] == "public, max-age=3600"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    finally:
        entrance.admin.ok(entrance.admin.delete("/letterhead/logo"))


def test_a_page_is_one_message_and_its_form_as_many_as_signing_in_over_the_api(
    entrance, browser, app_of_people, person, sent
):
    address, _ = app_of_people.ask()
    send(browser, address, username=person.username, password=person.password)
    entrance.app.extensions[KNOWN_CLIENTS] = KnownClients()
    for path, most in ((address, 1), (address, 0)):
        sent.clear()
        check_page(browser.get(path))
        assert len(sent) == most, sent
    login = {"username": person.username, "password": person.password}
    sent.clear()
    assert entrance.admin.post("/users/login", login).status_code == 200
    of_login = len(sent)
    sent.clear()
    assert signed_in(browser, address, person).status_code == 303
    assert len(sent) <= of_login, sent
    assert sum("registry.clients" in statement for statement in sent) >= 1


def test_the_document_has_the_way_in_where_people_sign_in(entrance, enter):
    spec = entrance.document.spec
    flow = spec["components"]["securitySchemes"]["oauth2"]["flows"]["authorizationCode"]
    assert (flow["authorizationUrl"], flow["tokenUrl"]) == ("auth/authorize", "auth/oauth/token")
    needs = [
        operation["security"]
        for operation in entrance.document.operations().values()
        if operation.get("security")
    ]
    assert len(needs) > 100
    assert all(need == [{"bearer": []}, {"oauth2": []}] for need in needs)
    assert not any(path.startswith(("/auth/authorize", "/auth/invitation")) for path in spec["paths"])
    closed = enter(public_url=None).document
    assert "oauth2" not in closed.spec["components"]["securitySchemes"]
    assert [{"bearer": []}] in [operation["security"] for operation in closed.operations().values()]


def test_the_docs_page_is_led_back_to_under_its_policy(browser):
    page = browser.get("/docs")
    for name, kind in (("oauth2-redirect.html", "text/html"), ("oauth2-redirect.js", "text/javascript")):
        answer = browser.get(f"/docs/{name}")
        assert (answer.status_code, answer.mimetype) == (200, kind)
        assert answer.headers["Content-Security-Policy"] == page.headers["Content-Security-Policy"]
    assert browser.get("/docs/swagger-ui.css").status_code == 404


# The registry is away


@pytest.fixture
def no_registry(entrance, monkeypatch):
    """Takes the registry away, and lets its clients grow old."""

    def away():
        raise RegistrySilent

    def take():
        monkeypatch.setattr(entrance.app.extensions["registry"], "connect", away)
        for clients in (entrance.app.extensions[KNOWN_CLIENTS], entrance.app.extensions[TOKEN_CLIENTS]):
            clients._known._fresh._values.clear()

    return take


def test_people_sign_in_by_a_public_client_that_is_known_while_the_registry_is_away(entrance, no_registry):
    client, stranger, secret_one = entrance.client(), entrance.client(), entrance.client(secret=True)
    person = entrance.person("read:classrooms")
    client.sign_in(person)
    code = secret_one.begin(person)
    no_registry()

    token = client.sign_in(person)["access_token"]

    assert entrance.with_token(token).get("/classrooms").status_code == 200
    browser = entrance.app.test_client()
    assert browser.get(client.ask()[0]).status_code == 200
    unknown = browser.get(stranger.ask()[0])
    assert (unknown.status_code, unknown.mimetype) == (503, "text/html")
    # A secret is compared by the registry alone.
    assert secret_one.exchange(*code).status_code == 503


def test_a_client_that_was_revoked_signs_nobody_in_while_the_registry_is_away(entrance, no_registry):
    client, person = entrance.client(), entrance.person("read:classrooms")
    client.sign_in(person)
    with entrance.tenancy.admin.begin() as connection:
        revoke_client(connection, client.id)
    no_registry()

    answer = entrance.app.test_client().post(
        client.ask()[0],
        data={"username": person.username, "password": person.password},
        headers={"Sec-Fetch-Site": "same-origin"},
    )

    assert "code=" not in answer.headers.get("Location", "")
