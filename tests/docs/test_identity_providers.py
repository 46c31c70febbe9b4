"""docs/deployment/identity-providers.md: its settings take the tokens that it shows, and no others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.auth.conftest import grant as grant
from tests.auth.conftest import load as load
from tests.auth.conftest import outside_with as outside_with
from tests.auth.conftest import provider as provider
from tests.auth.conftest import trusting as trusting
from tests.client import ApiClient

PAGE = (Path(__file__).parents[2] / "docs/deployment/identity-providers.md").read_text(encoding="utf-8")
SECTIONS = {
    section.partition("\n")[0]: section
    for section in PAGE.split("\n## ")[1:]
    if "```ini" in section and "```json" in section
}


def block(name: str, kind: str) -> str:
    """The only block of a kind in a provider's section."""
    (text,) = re.findall(rf"```{kind}\n(.*?)```", SECTIONS[name], re.S)
    return text


@pytest.fixture(params=sorted(SECTIONS))
def example(
    request, outside_with, load, provider, place
) -> tuple[ApiClient, dict[str, Any], Callable[..., str]]:
    """A caller of an application with the settings of a section, the claims shown there, a function that signs them."""
    lines = dict(line.split("=", 1) for line in block(request.param, "ini").split())
    text = block(request.param, "json")
    claims = json.loads(text)
    # A client of this test's own: grants of others to a client of its name are none of ours.
    claims = json.loads(text.replace(claims.get("azp", claims["sub"]), f"client-{uuid4()}"))
    assert lines["AUTH_URL"] == claims["iss"]
    lines["AUTH_URL"] = claims["iss"] = provider.url
    settings = load(**lines)
    assert claims.pop(settings.auth_school_claim)
    claims[settings.auth_school_claim] = [str(place.id)]
    return outside_with(**lines), claims, provider.token


def status(api: ApiClient, token: str, path: str, **using: Any) -> int:
    return api.using(token=token, **using).get(path).status_code


def test_each_provider_is_there():
    assert sorted(SECTIONS) == ["Auth0", "Keycloak", "oidc-provider"]


def test_the_token_has_its_own_permissions_in_its_school_and_no_more(example, other_place):
    api, claims, sign = example
    token = sign(**claims)

    assert status(api, token, "/users?pageSize=1") == 200
    assert status(api, token, "/roles") == 403
    assert status(api, token, "/users?pageSize=1", school=other_place.id) == 403
    assert status(api, sign(**claims, name="stolen"), "/users?pageSize=1") == 401
    assert status(api, sign(**{**claims, "aud": "another"}), "/users?pageSize=1") == 401


def test_where_it_names_no_school_the_grant_here_decides(example, grant, place, other_place):
    api, claims, sign = example
    client = claims.get("azp", claims["sub"])
    grant(client_id=client, school_ids=[place.id])
    token = sign(**{name: value for name, value in claims.items() if not name.endswith("school_id")})

    assert status(api, token, "/users?pageSize=1") == 200
    assert status(api, token, "/users?pageSize=1", school=other_place.id) == 403


def test_a_person_signed_in_through_the_client_has_nothing_of_its_grant(example, grant, place):
    api, claims, sign = example
    client = claims.get("azp", claims["sub"])
    grant(client_id=client, school_ids=[place.id], all_permissions=True)
    # The provider's claims of people, of the same client: without its claims of the client itself.
    own = {
        "gty",
        "client_id",
        "school_id",
        "https://school-service/school_id",
        "resource_access",
        "permissions",
    }
    person = {name: value for name, value in claims.items() if name not in own}
    person |= {"sub": "auth|5f7c8ec7c33c6c004bbafe82", "azp": client, "scope": "openid profile"}

    assert status(api, sign(**person), "/users?pageSize=1") == 403
