"""npm's openid-client signs people in: it discovers, verifies, refreshes, reads who it is, signs out and revokes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.features.sign_in.conftest import AFTER_LOGOUT, REDIRECT
from tests.features.sign_in.conftest import enter as enter
from tests.features.sign_in.conftest import shared_entrance as shared_entrance
from tests.features.sign_in.test_others_clients import served as served

HERE = Path(__file__).parent
SCRIPT = HERE / "sign_in.mjs"

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(
        shutil.which("node") is None or not (HERE / "node_modules" / "openid-client").exists(),
        reason="npm's openid-client is not installed: tox -e openapi installs it, and runs this.",
    ),
]


@pytest.mark.parametrize("secret", [False, True], ids=["public", "confidential"])
def test_openid_client(served, shared_entrance, secret):
    entrance, _ = served
    person = shared_entrance.person("read:classrooms")
    client = entrance.client(secret=secret)
    given = {
        "base": entrance.app.extensions["school-service"].settings.public_url,
        "id": client.id,
        "secret": client.secret,
        "redirectUri": REDIRECT,
        "afterLogout": AFTER_LOGOUT,
        "school": str(entrance.place.id),
        "username": person.username,
        "password": person.password,
    }

    done = subprocess.run(
        ["node", SCRIPT],
        env={**os.environ, "GIVEN": json.dumps(given)},
        capture_output=True,
        text=True,
        timeout=180,
    )

    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert (got["status"], got["rotated"], got["left"], got["refused"]) == (303, True, True, "invalid_grant")
    assert got["claims"]["sub"] == got["told"]["sub"] == got["toldAgain"]["sub"] == person.id
    assert got["told"]["preferred_username"] == person.username
