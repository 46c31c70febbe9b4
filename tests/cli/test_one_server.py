"""The modules imported where all schools are on one server."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from school_service.auth.signing_key import SigningKey
from tests import postgres
from tests.cli.program import environment
from tests.postgres import addresses, on_postgresql_alone

pytestmark = [pytest.mark.program, on_postgresql_alone]


def test_no_verb_and_no_request_imports_modules_for_several_servers(server, tmp_path):
    with postgres.test_database(server) as (admin, serving):
        settings = {**addresses(admin, serving), "SIGNING_KEY": SigningKey.generate().to_pem()}
        done = subprocess.run(
            [sys.executable, "-m", "tests.cli.one_server", str(tmp_path)],
            env=environment(**settings),
            capture_output=True,
            text=True,
            check=False,
        )

    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["not run"] == []
    assert {"school_service.app", "tenants.placement", "tenants.backups.restore"} <= set(report["modules"])
    assert [name for name in report["modules"] if name.startswith("tenants.distribution")] == []
    # METRICS_PORT is not set.
    assert "prometheus_client" not in report["modules"]
