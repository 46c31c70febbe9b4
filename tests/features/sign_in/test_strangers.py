"""Texts that PostgreSQL can't take, from strangers: an unknown client, school or code, and no work."""

from __future__ import annotations

import base64
import logging
import re
from urllib.parse import parse_qsl, quote, urlencode

import pytest
from limits import RateLimitItemPerMinute

from school_service.auth import login_throttle
from school_service.features.auth_provider.token_form import PARAMETERS as TOKEN_PARAMETERS
from school_service.features.sign_in.pages.answers import KNOWN_CLIENTS
from school_service.features.sign_in.pages.clients import KnownClients
from school_service.features.sign_in.pages.requests import PARAMETERS
from tests.features.sign_in.conftest import REDIRECT
from tests.features.sign_in.pages.test_sign_in_page import changed
from tests.features.sign_in.test_grants import sent as sent

FORM = "application/x-www-form-urlencoded"
OWN = {"Sec-Fetch-Site": "same-origin"}
# NUL, bytes that are no UTF-8, and half of a surrogate pair in UTF-8.
NOT_TAKEN = ["%00", "a%00b", "%FF%FE", "%ED%A0%80", "ab%C3"]
VERIFIER = "v" * 43


@pytest.fixture
def browser(entrance):
    entrance.app.extensions[KNOWN_CLIENTS] = KnownClients()
    return entrance.app.test_client()


def post(browser, path, body, **headers):
    return browser.post(path, data=body, content_type=FORM, headers=headers)


def basic(text):
    return f"Basic {base64.b64encode(text.encode()).decode()}"


GRANTS = {
    "authorization_code": f"code=ssc_x&code_verifier={VERIFIER}",
    "refresh_token": "refresh_token=ssr_x",
    "client_credentials": "",
}


@pytest.mark.parametrize("text", NOT_TAKEN)
@pytest.mark.parametrize("grant", GRANTS)
@pytest.mark.parametrize("secret", ["", "&client_secret=x"])
def test_a_client_id_that_cannot_be_stored_is_an_unknown_client(browser, sent, caplog, grant, text, secret):
    sent.clear()
    body = f"grant_type={grant}&{GRANTS[grant]}&client_id={text}{secret}"
    answer = post(browser, "/auth/oauth/token", body)

    assert (answer.status_code, answer.json["error"]) == (401, "invalid_client"), answer.json
    # Of a form, bytes that are no UTF-8 are read as they are written, %FF: a client could be called so.
    assert len(sent) <= 2 * ("%FF" in text or "%ED" in text or "%C3" in text)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("text", NOT_TAKEN)
def test_a_client_id_of_http_basic_or_a_revocation_that_cannot_be_stored_is_unknown(browser, sent, text):
    headers = {"Authorization": basic(f"{text}:secret")}
    for path, body in (
        ("/auth/oauth/token", f"grant_type=refresh_token&{GRANTS['refresh_token']}"),
        ("/auth/oauth/token", "grant_type=client_credentials"),
        ("/auth/oauth/revoke", "token=ssr_x"),
    ):
        answer = post(browser, path, body, **headers)
        assert (answer.status_code, answer.json["error"]) == (401, "invalid_client"), answer.json
    assert post(browser, "/auth/oauth/revoke", f"token=ssr_x&client_id={text}").status_code == 401
    raw = {"Authorization": f"Basic {base64.b64encode(bytes([0, 255, 58, 0])).decode()}"}
    assert post(browser, "/auth/oauth/token", "grant_type=client_credentials", **raw).status_code == 401


@pytest.mark.parametrize("text", [*NOT_TAKEN, "a" * 5000, "%CC%81" * 500])
def test_a_school_that_cannot_be_stored_is_an_unknown_school(entrance, browser, sent, caplog, text):
    client = entrance.client()
    asked = client.ask(school="")[0].replace("school=", f"school={text}")
    code = "K7QM-4TZ9-XDR2"
    sent.clear()
    for path in (f"/auth/invitation?school={text}", f"/auth/{text}/invitation/{code}"):
        assert browser.get(path).status_code == 404, path
        assert post(browser, path, f"code={code}", **OWN).status_code == 404, path
    assert post(browser, "/auth/invitation", f"code={code}&short_name={text}", **OWN).status_code == 404
    assert sent == []
    # Of a client the registry is asked, for the client alone.
    assert browser.get(asked).status_code == 404
    assert browser.get(asked.replace("/authorize", "/invitation")).status_code == 404
    assert post(browser, client.ask(school="")[0], f"short_name={text}", **OWN).status_code == 404
    assert browser.get(f"/auth/{text}/logo").status_code == 404
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("text", [*NOT_TAKEN, "a" * 5000, "%CC%81" * 500])
def test_a_code_that_can_be_none_is_not_looked_for(entrance, browser, sent, text):
    school = entrance.place.id
    sent.clear()
    answers = [
        browser.get(f"/auth/{school}/invitation/{text}"),
        post(browser, f"/auth/{school}/invitation/{text}", "new_password=abc&again=abc", **OWN),
        post(browser, f"/auth/invitation?school={school}", f"code={text}", **OWN),
    ]
    assert [answer.status_code for answer in answers] == [404, 422, 422]
    # The school, and nothing in it.
    assert all("registry.schools" in batch for batch in sent), sent
    public = entrance.client()
    for body in (
        f"grant_type=authorization_code&code={text}&code_verifier={VERIFIER}",
        f"grant_type=authorization_code&code=ssc_{text}&code_verifier={VERIFIER}",
        f"grant_type=refresh_token&refresh_token=ssr_{text}",
    ):
        answer = post(browser, "/auth/oauth/token", f"{body}&client_id={public.id}")
        assert (answer.status_code, answer.json["error"]) == (400, "invalid_grant")


def test_an_authorization_request_with_such_texts_is_answered(entrance, browser):
    client = entrance.client()
    for text in NOT_TAKEN:
        page = browser.get(f"/auth/authorize?client_id={text}&redirect_uri={quote(REDIRECT)}")
        assert page.status_code == 400
        for name in ("state", "nonce", "scope", "login_hint", "prompt", "redirect_uri", "id_token_hint"):
            answer = browser.get(f"{client.ask()[0]}&{name}={text}")
            assert answer.status_code in {200, 303, 400}, (name, text)
        for path in ("/auth/logout", "/auth/userinfo"):
            assert browser.get(f"{path}?id_token_hint={text}&client_id={text}").status_code < 500


# All parameters that a stranger's form or query may have, of any operation.
NAMES = sorted(
    {*PARAMETERS, *TOKEN_PARAMETERS, *("code", "code_verifier", "refresh_token", "token", "token_type_hint")}
    | {"short_name", "username", "password", "step", "new_password", "again", "post_logout_redirect_uri", "v"}
)


@pytest.mark.parametrize("text", NOT_TAKEN)
def test_no_operation_without_a_token_fails_by_such_a_text(entrance, browser, caplog, text):
    """A new one is found by its address: all below /auth and /verify, and their parts and parameters."""
    rules = [
        rule
        for rule in entrance.app.url_map.iter_rules()
        if rule.rule.startswith(("/auth/", "/verify", "/.well-known/"))
    ]
    assert len(rules) > 12
    everything = "&".join(f"{name}={text}" for name in NAMES)
    for rule in rules:
        path = re.sub(r"<[^>]+>", text, rule.rule)
        for query, form in ((everything, ""), ("", everything), (everything, everything)):
            asked = browser.get(f"{path}?{query}", headers={"Accept": "text/html"})
            sent = post(browser, f"{path}?{query}" if query else path, form, **OWN)
            assert max(asked.status_code, sent.status_code) < 500, (path, text)
    address_of_client = entrance.client().ask()[0]
    # Alone each is sent one of the texts.
    for name in NAMES[NOT_TAKEN.index(text) :: len(NOT_TAKEN)]:
        for address in (address_of_client, "/auth/oauth/token?", "/auth/invitation?"):
            assert browser.get(f"{address}&{name}={text}").status_code < 500, name
            assert post(browser, address, f"{name}={text}", **OWN).status_code < 500, name
        for grant, others in GRANTS.items():
            form = dict(parse_qsl(f"grant_type={grant}&client_id=x&client_secret=x&{others}"))
            form.pop(name, None)
            answer = post(browser, "/auth/oauth/token", f"{urlencode(form)}&{name}={text}")
            assert answer.status_code < 500, (grant, name)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.fixture
def three(monkeypatch):
    """Three refused grants a minute, and no more."""
    monkeypatch.setattr(login_throttle, "GRANT_FAILURES", RateLimitItemPerMinute(3, namespace="few-grants"))


REFUSED = {
    "a client id with NUL": "grant_type=refresh_token&refresh_token=x&client_id=%00",
    "an unknown client": "grant_type=refresh_token&refresh_token=x&client_id=nobody",
    "a parameter that is missing": "grant_type=authorization_code&client_id={id}",
    "a parameter that is there twice": "grant_type=refresh_token&refresh_token=a&refresh_token=b&client_id={id}",
    "a client that is there twice": "grant_type=refresh_token&refresh_token=a&client_id={id}&client_id={id}",
    "a verifier that can be none": "grant_type=authorization_code&code=x&code_verifier=x&client_id={id}",
    "no client": "grant_type=refresh_token&refresh_token=x",
    "a secret of a public client": "grant_type=refresh_token&refresh_token=x&client_id={id}&client_secret=x",
    "an unknown token": "grant_type=refresh_token&refresh_token=ssr_x&client_id={id}",
    "another grant": "grant_type=password&client_id={id}",
    "a client without a secret": "grant_type=client_credentials&client_id=nobody",
    "a public client": "grant_type=client_credentials&client_id={id}",
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_grant_refused_for_any_reason_counts(entrance, browser, three, why):
    client = entrance.client()
    body = REFUSED[why].format(id=client.id)
    answers = [post(browser, "/auth/oauth/token", body) for _ in range(4)]

    assert [answer.status_code for answer in answers[:3]].count(429) == 0
    assert (answers[3].status_code, answers[3].json["error"]) == (429, "temporarily_unavailable")
    assert int(answers[3].headers["Retry-After"]) > 0
    assert client.refresh("ssr_x").status_code == 429


def test_too_much_scope_and_a_suspended_school_count(entrance, three):
    client = entrance.client()
    got = client.sign_in(entrance.person())
    for _ in range(2):
        answer = client.refresh(got["refresh_token"], scope="openid")
        assert (answer.status_code, answer.json["error"]) == (400, "invalid_scope")
    with changed(entrance, status="suspended"):
        answer = client.refresh(got["refresh_token"])
    assert (answer.status_code, answer.json["error"]) == (400, "temporarily_unavailable")
    assert client.refresh(got["refresh_token"]).status_code == 429


def test_a_wrong_request_of_a_client_with_its_secret_does_not_count(entrance, three):
    client, person = entrance.client(secret=True), entrance.person()
    code, verifier = client.begin(person)
    for _ in range(5):
        for wrong in (
            {"grant_type": "authorization_code"},
            {"grant_type": "authorization_code", "code": code, "code_verifier": "short"},
            {"grant_type": "refresh_token", "refresh_token": ["a", "b"]},
        ):
            answer = client.form(**wrong)
            assert (answer.status_code, answer.json["error"]) == (400, "invalid_request"), answer.json
    assert client.exchange(code, verifier).status_code == 200
    # Without it, it does.
    for _ in range(3):
        assert client.form(grant_type="authorization_code", client_secret="guessed").status_code == 401
    assert client.form(grant_type="authorization_code").status_code == 429


def test_a_stranger_without_a_secret_asks_nothing_of_the_registry_beyond_the_limit(browser, three, sent):
    body = urlencode({"grant_type": "client_credentials", "client_id": "nobody"})
    for _ in range(3):
        assert post(browser, "/auth/oauth/token", body).status_code == 401
    sent.clear()
    assert post(browser, "/auth/oauth/token", body).status_code == 429
    assert sent == []
