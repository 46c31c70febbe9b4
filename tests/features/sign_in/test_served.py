"""Signing in at the program itself, by waitress, with metrics and a PUBLIC_URL, as it is deployed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import urllib3
from prometheus_client.parser import text_string_to_metric_families

from school_service.config import Settings
from tests.cli.program import Running, serving
from tests.features.scores.scoresheets.test_killed_server import environment
from tests.features.sign_in.conftest import PUBLIC_URL, Client, Entrance

OWN = {"Sec-Fetch-Site": "same-origin"}
NEW = "seven green bicycles"

pytestmark = pytest.mark.program


@pytest.fixture(scope="module", params=[(), ("--workers", "2")], ids=["one process", "two workers"])
def service(
    request: pytest.FixtureRequest, settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("served")
    given = {
        **environment(settings),
        "METRICS_ADDRESS": "0.0.0.0",
        "METRICS_PORT": "0",
        "PASSWORD_POLICY": "strict",
        "POOL_SIZE": "4",
        "PUBLIC_URL": PUBLIC_URL,
        "TRUSTED_PROXIES": "127.0.0.1",
    }
    for secret in ("ADMIN_DATABASE_URL", "DATABASE_URL", "SIGNING_KEY"):
        file = folder / secret
        file.write_text(given.pop(secret), encoding="utf-8")
        file.chmod(0o600)
        given[f"{secret}_FILE"] = str(file)
    with serving(*request.param, cwd=folder, settings=given) as service:
        yield service


def send_form(service: Running, address: str, **fields: str) -> urllib3.BaseHTTPResponse:
    """Send a form as a browser does, and follow nothing."""
    return urllib3.request(
        "POST",
        f"{service.base_url}{address}",
        body=urlencode(fields),
        headers={**OWN, "Content-Type": "application/x-www-form-urlencoded"},
        redirect=False,
        timeout=60,
    )


def exchange(service: Running, client: Client, path: str = "/auth/oauth/token", **fields: str) -> Any:
    """Send a form as a client; answers status and JSON."""
    answer = send_form(service, path, client_id=client.id, **fields)
    return answer.status, answer.json()


def sign_ins(service: Running) -> Mapping[tuple[str, ...], float]:
    """Read how many attempts of users there were, by their outcome."""
    address = service.wait_for_log("serving metrics")["address"]
    text = urllib3.request("GET", address, timeout=60).data.decode()
    families = text_string_to_metric_families(text)
    (counter,) = [family for family in families if family.name == "school_service_sign_ins"]
    return {
        sample.labels["outcome"]: sample.value for sample in counter.samples if sample.labels["of"] == "user"
    }


def test_each_way_of_signing_in_answers_as_without_metrics(service: Running, entrance: Entrance) -> None:
    client, person = entrance.client(), entrance.person("read:classrooms")
    before = sign_ins(service)
    address, verifier = client.ask()

    assert urllib3.request("GET", f"{service.base_url}{address}", timeout=60).status == 200
    assert send_form(service, address, username=person.username, password="wrong").status == 422
    led_back = send_form(service, address, username=person.username, password=person.password)
    assert led_back.status == 303
    code = parse_qs(urlsplit(led_back.headers["Location"]).query)["code"][0]

    status, first = exchange(
        service, client, grant_type="authorization_code", code=code, code_verifier=verifier
    )
    assert status == 200, first
    status, second = exchange(
        service, client, grant_type="refresh_token", refresh_token=first["refresh_token"]
    )
    assert status == 200, second
    token, school = second["access_token"], str(entrance.place.id)
    assert service.request("GET", "/classrooms", token=token, school=school).status == 200
    assert exchange(service, client, "/auth/oauth/revoke", token=second["refresh_token"]) == (200, {})
    assert service.request("GET", "/classrooms", token=token, school=school).status == 401

    (invitation,) = entrance.admin.ok(
        entrance.admin.post("/invitations", {"users": [person.id], "everybody": True})
    )
    page = urlsplit(invitation["url"]).path
    assert urllib3.request("GET", f"{service.base_url}{page}", timeout=60).status == 200
    assert send_form(service, page, new_password=NEW, again=NEW).status == 200

    after = sign_ins(service)
    added = {outcome: count - before[outcome] for outcome, count in after.items() if count > before[outcome]}
    assert added == {"succeeded": 1, "wrong": 1}
    assert [line for line in service.log if line["level"] not in {"INFO", "WARNING"}] == []


@pytest.fixture
def _passwords_are_to_be_changed(entrance: Entrance) -> Iterator[None]:
    entrance.admin.ok(entrance.admin.patch("/settings", {"must_change_password": True}))
    yield
    entrance.admin.ok(entrance.admin.patch("/settings", {"must_change_password": False}))


@pytest.mark.usefixtures("_passwords_are_to_be_changed")
def test_a_person_with_a_given_password_signs_in_and_changes_it(service: Running, entrance: Entrance) -> None:
    client, person = entrance.client(), entrance.person()
    address, _ = client.ask()

    asked = send_form(service, address, username=person.username, password=person.password)
    assert asked.status == 200
    (step,) = re.findall(r'name="step" value="([^"]+)"', asked.data.decode())
    changed = send_form(service, address, step=step, username=person.username, new_password=NEW, again=NEW)

    assert changed.status == 303


def test_a_signed_in_person_signs_out(service: Running, entrance: Entrance) -> None:
    client, person = entrance.client(), entrance.person()
    got = client.sign_in(person, scope="openid")
    address = f"{service.base_url}/auth/logout?id_token_hint={got['id_token']}"

    assert urllib3.request("GET", address, timeout=60).status == 200
    assert entrance.with_token(got["access_token"]).get("/me").status_code == 401
