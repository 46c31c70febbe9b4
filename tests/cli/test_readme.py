"""The README's steps for running the service for real, line by line."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from urllib.parse import urlsplit

import pytest

from tests import postgres
from tests.cli.program import run, serving
from tests.docs.readme import blocks

pytestmark = pytest.mark.program


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed.")
def test_a_database_becomes_a_service_as_the_readme_says(server, tmp_path):
    (block,) = [block for block in blocks("Running it for real") if block.kind == "sh"]
    *lines, last = [shlex.split(line, comments=True) for line in block.text.splitlines()]
    exported = [word.split("=", 1) for words in lines if words[0] == "export" for word in words[1:]]
    settings = {name: value.replace("$PWD", str(tmp_path)) for name, value in exported}
    assert settings.keys() == {
        *("DATABASE_URL", "ADMIN_DATABASE_URL", "SIGNING_KEY_FILE", "PASSWORD_POLICY"),
    }
    for name in ("DATABASE_URL", "ADMIN_DATABASE_URL"):
        assert urlsplit(settings[name]).path == "/schools"
    printed = ""
    with postgres.test_database(server) as (admin, login):
        settings.update(postgres.addresses(admin, login))
        for words in lines:
            if words[0] == "openssl":
                subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, timeout=180)
            elif words[0] != "export":
                assert words[0] == ".venv/bin/school-service"
                done = run(*words[1:], cwd=tmp_path, settings=settings)
                assert (done.returncode, done.stderr) == (0, ""), done
                printed += done.stdout
        assert last == [".venv/bin/school-service", "serve"]
        details = dict(re.findall(r"^(\w+) +(\S+)$", printed, re.M))
        with serving(cwd=tmp_path, settings=settings) as service:
            token = service.client_token(details["client_id"], details["client_secret"])
            account = {"username": details["admin"], "password": details["password"]}
            answer = service.ok("POST", "/users/login", token=token, school=details["id"], body=account)
            warnings = [line["message"] for line in service.log if line["level"] == "WARNING"]
            assert service.end() == 0

    assert answer["user"]["school"]["name"] == "Queen's College, Yaba"
    assert warnings == []
