"""An installation that release 0.3.0 made with TENANT_ROLES=off, its update as docs/deployment/update.md has it."""

from __future__ import annotations

import json

import pytest

from school_service.app import tenancy_of
from school_service.config import Settings
from tests.cli.program import PROGRAM, ROOT, run
from tests.postgres import addresses, on_postgresql_alone
from tests.postgres import test_database as new_database
from tests.tenants.without_roles import everything, turn_roles_on

pytestmark = [pytest.mark.release, pytest.mark.program, on_postgresql_alone]


@pytest.mark.parametrize("one_login", [True, False], ids=["one login", "two logins"])
def test_nothing_is_lost(server, release_0_3, tmp_path, one_login):
    with new_database(server) as (admin, serving):
        serving = admin if one_login else serving
        settings = addresses(admin, serving)

        def verb(tree, *arguments, **changed):
            environment = {**settings, **changed, "PYTHONPATH": str(tree)}
            return run("tenants", *arguments, cwd=tmp_path, settings=environment, command=PROGRAM)

        for arguments in (("init",), ("create", "A school"), ("create", "Another")):
            assert verb(release_0_3, *arguments, TENANT_ROLES="off").returncode == 0
        tenancy = tenancy_of(Settings.load(settings))
        before = everything(tenancy)

        refused = verb(ROOT, "init", TENANT_ROLES="off")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "Turn roles on before the update, with the release before" in refused.stderr
        assert everything(tenancy) == before

        turn_roles_on(admin, serving)
        assert verb(release_0_3, "init").returncode == 0
        report = json.loads(verb(release_0_3, "verify", "--json").stdout)
        assert report["good"], report
        assert everything(tenancy)[-1] == before[-1]
        for arguments in (("init",), ("migrate",), ("verify",)):
            assert verb(ROOT, *arguments).returncode == 0
        tenancy.admin.dispose()
