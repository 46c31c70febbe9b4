"""No page by which people sign in, and no form of their apps, takes long where one of its texts is long."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest

from school_service.auth.login_throttle import limiter
from school_service.serving.parser import HEADER_LIMIT
from school_service.web.pages import FORM, FORM_LIMIT
from tests.features.sign_in.conftest import Client, Entrance
from tests.long_texts import KINDS, SHORT, TEXTS, Stopwatch

OWN = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def client(entrance: Entrance) -> Client:
    return entrance.client()


def sender(entrance: Entrance, method: str) -> Callable[..., Callable[[], None]]:
    """Make senders of a request for a page; no request before counts."""

    def sent(path: str, form: str | None = None) -> Callable[[], None]:
        def send() -> None:
            with entrance.app.app_context():
                limiter.limiter.storage.reset()
            options: dict[str, Any] = {"data": form, "content_type": FORM} if form is not None else {}
            answer = entrance.app.test_client().open(path, method=method, headers=OWN, **options)
            assert answer.status_code < 500, answer.get_data(as_text=True)
            answer.close()

        return send

    return sent


def with_parameter(parameters: dict[str, str], name: str, text: str) -> str:
    """Write parameters, with a text as one of them."""
    others = urlencode({key: value for key, value in parameters.items() if key != name})
    return f"{others}&{name}={in_percent(text)}"


@lru_cache(maxsize=2 * len(TEXTS))
def in_percent(text: str) -> str:
    """Quote all of a text. Each is sent in many places."""
    return quote(text, safe="")


@pytest.mark.parametrize(
    "name",
    [
        *(
            "client_id",
            "redirect_uri",
            "response_type",
            "code_challenge",
            "school",
            "scope",
            "state",
            "nonce",
        ),
        *("login_hint", "prompt", "unknown"),
    ],
)
@pytest.mark.parametrize("kinds", KINDS)
def test_no_parameter_of_the_sign_in_page_is_worked_on_where_it_is_long(
    entrance: Entrance, client: Client, name: str, kinds: Iterable[str]
) -> None:
    address = urlsplit(client.ask()[0])
    given = dict(parse_qsl(address.query))
    sent = sender(entrance, "GET")

    def request_with(text: str) -> Callable[[], None]:
        return sent(f"{address.path}?{with_parameter(given, name, text)}")

    watch = Stopwatch(request_with(SHORT))
    for kind in kinds:
        watch.judge(f"{name}: {kind}", request_with(TEXTS[kind](HEADER_LIMIT // 3)))


@pytest.mark.parametrize(
    "name", ["username", "password", "short_name", "step", "new_password", "again", "unknown"]
)
@pytest.mark.parametrize("kinds", KINDS)
def test_no_field_of_the_sign_in_page_is_worked_on_where_it_is_long(
    entrance: Entrance, client: Client, name: str, kinds: Iterable[str]
) -> None:
    typed = {"username": "a", "password": "b"}
    if name in {"new_password", "again"}:
        typed = {"step": "a", "new_password": "b", "again": "b"}
    _judge_form(entrance, client.ask()[0], typed, name, kinds)


@pytest.mark.parametrize("name", ["code", "short_name", "new_password"])
@pytest.mark.parametrize("kinds", KINDS)
def test_no_field_of_the_invitation_page_is_worked_on_where_it_is_long(
    entrance: Entrance, name: str, kinds: Iterable[str]
) -> None:
    typed = {"code": "a", "new_password": "b", "again": "b"} if name != "short_name" else {}
    query = f"?school={entrance.place.id}" if name != "short_name" else ""
    _judge_form(entrance, f"/auth/invitation{query}", typed, name, kinds)


@pytest.mark.parametrize("kinds", KINDS)
def test_no_address_of_an_invitation_is_worked_on_where_it_is_long(
    entrance: Entrance, kinds: Iterable[str]
) -> None:
    sent = sender(entrance, "GET")
    for before in ("/auth/", f"/auth/{entrance.place.id}/invitation/"):
        after = "/invitation/a" if before == "/auth/" else ""
        watch = Stopwatch(sent(f"{before}{SHORT}{after}"))
        for kind in kinds:
            text = in_percent(TEXTS[kind](HEADER_LIMIT // 3))
            watch.judge(f"{before} {kind}", sent(f"{before}{text}{after}"))


@pytest.mark.parametrize("name", ["id_token_hint", "client_id", "post_logout_redirect_uri", "state"])
@pytest.mark.parametrize("kinds", KINDS)
def test_no_parameter_of_signing_out_is_worked_on_where_it_is_long(
    entrance: Entrance, name: str, kinds: Iterable[str]
) -> None:
    _judge_form(entrance, "/auth/logout", {"id_token_hint": "a", "client_id": "b"}, name, kinds)


@pytest.mark.parametrize(
    ("path", "grant", "name"),
    [
        ("/auth/oauth/token", "authorization_code", "client_id"),
        ("/auth/oauth/token", "authorization_code", "client_secret"),
        ("/auth/oauth/token", "authorization_code", "code"),
        ("/auth/oauth/token", "authorization_code", "code_verifier"),
        ("/auth/oauth/token", "authorization_code", "redirect_uri"),
        ("/auth/oauth/token", "refresh_token", "client_id"),
        ("/auth/oauth/token", "refresh_token", "refresh_token"),
        ("/auth/oauth/token", "refresh_token", "scope"),
        ("/auth/oauth/revoke", "", "client_id"),
        ("/auth/oauth/revoke", "", "token"),
        ("/auth/oauth/revoke", "", "token_type_hint"),
    ],
)
@pytest.mark.parametrize("kinds", KINDS)
def test_no_parameter_of_an_apps_form_is_worked_on_where_it_is_long(
    entrance: Entrance, client: Client, path: str, grant: str, name: str, kinds: Iterable[str]
) -> None:
    code = {"code": f"ssc_{'a' * 64}", "code_verifier": "v" * 43}
    tokens = {"refresh_token": f"ssr_{'a' * 86}", "token": "a.b.c"}
    _judge_form(entrance, path, {"grant_type": grant, "client_id": client.id, **code, **tokens}, name, kinds)


def _judge_form(
    entrance: Entrance, path: str, fields: dict[str, str], name: str, kinds: Iterable[str]
) -> None:
    sent = sender(entrance, "POST")

    def typed(text: str) -> Callable[[], None]:
        return sent(path, with_parameter(fields, name, text))

    watch = Stopwatch(typed(SHORT))
    for kind in kinds:
        write = TEXTS[kind]
        watch.judge(f"{name}: {kind}", typed(write((FORM_LIMIT - 1000) // 3)))
        # Not written in percent, so that three times as much fits.
        raw = "&".join(f"{key}={value}" for key, value in fields.items() if key != name)
        text = write(FORM_LIMIT - 2000).replace("&", "").replace("%", "")
        watch.judge(f"{name}: {kind}, as it is", sent(path, f"{raw}&{name}={text}"))
