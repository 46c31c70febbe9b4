"""docs/deployment/oidc-provider.mjs, run by Node as its page says; the service takes its tokens."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
import urllib3

from tests.auth.conftest import load as load
from tests.auth.conftest import start as start
from tests.client import ApiClient, Document

HERE = Path(__file__).parent
SCRIPT = HERE.parents[1] / "docs" / "deployment" / "oidc-provider.mjs"
SECRET = "of-the-front-end"
DEADLINE = 60.0  # seconds that Node may take to start

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(
        shutil.which("node") is None or not (HERE / "node_modules" / "oidc-provider").exists(),
        reason="npm's oidc-provider is not installed: tox -e openapi installs it, and runs this.",
    ),
]


@pytest.fixture
def issuer(tmp_path, place):
    """The address of the provider, whose client may list the users of the school."""
    (tmp_path / "node_modules").symlink_to(HERE / "node_modules", target_is_directory=True)
    shutil.copy(SCRIPT, tmp_path)
    client = {
        "id": "front-end",
        "secret": SECRET,
        "schools": [str(place.id)],
        "permissions": ["read:users"],
    }
    (tmp_path / "clients.json").write_text(json.dumps([client]), encoding="utf-8")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    running = subprocess.Popen(
        ["node", SCRIPT.name],
        cwd=tmp_path,
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + DEADLINE
        with socket.socket() as probe:
            while probe.connect_ex(("127.0.0.1", port)):
                assert running.poll() is None, running.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.communicate(timeout=DEADLINE)


def ask(issuer: str, secret: str) -> urllib3.BaseHTTPResponse:
    return urllib3.PoolManager().request(
        "POST",
        f"{issuer}/token",
        fields={"grant_type": "client_credentials"},
        encode_multipart=False,
        headers=urllib3.make_headers(basic_auth=f"front-end:{secret}"),
    )


def test_the_service_takes_the_tokens_of_the_provider_of_the_page(issuer, start, place, other_place):
    app = start(AUTH_URL=issuer)
    api = ApiClient(app, Document(app), ask(issuer, SECRET).json()["access_token"], place.id)

    assert api.get("/users?pageSize=1").status_code == 200
    assert api.get("/roles").status_code == 403
    assert api.using(school=other_place.id).get("/users").status_code == 403
    assert ask(issuer, "of-another").status == 401
