"""docs/deployment/recovery.md, as its reader pastes it: a dump, a base backup and a moment, a standby."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from school_service.app import tenancy_of
from school_service.auth.signing_key import SigningKey
from school_service.config import Settings
from tenants.backups.backup_all import back_up_all
from tenants.pg_programs import wheel_programs
from tenants.provisioning.create import create_school
from tenants.registry.installation import install
from tests.cli.program import ROOT, environment
from tests.postgres import folder_for_clusters, on_postgresql_alone
from tests.tenants.installations import ADMINISTRATOR

PAGE = ROOT / "docs" / "deployment" / "recovery.md"
BLOCKS = {
    name: block
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    if (name := block.partition("\n")[0].removeprefix("# ")) and block.startswith("# ")
}

pytestmark = [pytest.mark.release, pytest.mark.program, on_postgresql_alone]

# In place of the page's first block: another place, and no systemd. `cluster` names the cluster at work.
PREAMBLE = """
set -eu
KEPT={folder}/kept
cluster() {{ PGDATA={folder}/$1; export PGHOST={folder} PGPORT=$2 PGUSER=postgres; }}
cluster first 5501
PGBIN={bin}
export LD_LIBRARY_PATH={folder}/libraries
as_postgres() {{ {as_postgres} "$@"; }}
start_postgres() {{
    as_postgres $PGBIN/pg_ctl --silent --wait --pgdata=$PGDATA --log=$PGDATA.log \\
        --options="-p $PGPORT -k {folder} -c listen_addresses= -c fsync=off" start
}}
stop_postgres() {{ as_postgres $PGBIN/pg_ctl --silent --wait --mode=fast --pgdata=$PGDATA stop || true; }}
make_cluster() {{
    as_postgres $PGBIN/initdb --auth=trust --encoding=UTF8 --username=postgres --pgdata=$PGDATA > /dev/null
}}
school_service() {{
    DATABASE_URL="postgresql://school_service@/schools?host={folder}&port=$PGPORT" \\
    ADMIN_DATABASE_URL="postgresql://school_operator@/schools?host={folder}&port=$PGPORT" \\
    {python} -P -m school_service "$@"
}}
start_service() {{ :; }}
stop_service() {{ :; }}
sql() {{ as_postgres $PGBIN/psql --quiet --tuples-only --no-align schools; }}
"""


def adapted(name: str, folder: Path, **replaced: str) -> str:
    """A block of the page, with the paths of this test."""
    block = BLOCKS[name].replace("/var/backups/school-service", f"{folder}/backups")
    block = re.sub(r"\bschool-service tenants", "school_service tenants", block)
    # Asked of the service by the test itself.
    block = re.sub(r"^curl .*\n", "", block, flags=re.M)
    for old, new in replaced.items():
        block = re.sub(rf"^{old}=.*$", f"{old}={new}", block, flags=re.M)
    return block


@pytest.fixture(scope="module")
def shell():
    """Run scripts in a folder that PostgreSQL's user may use; clusters that are left are stopped."""
    programs = wheel_programs()
    if shutil.which("runuser") is None or not programs:
        pytest.skip("runuser, or PostgreSQL's programs of the wheel, are not there.")
    made = Path(tempfile.mkdtemp(prefix="school-recovery-", dir=folder_for_clusters())).resolve()
    made.chmod(0o755)
    root = os.geteuid() == 0
    # Where PostgreSQL's user can reach them. Of 16: the pg_verifybackup of the wheel's 18 does not start.
    source = programs[min(programs)].parent
    shutil.copytree(source, made / "programs", symlinks=True)
    shutil.copytree(source.parents[1] / f"{source.parent.name}.libs", made / "libraries")
    (made / "kept" / "wal").mkdir(parents=True)
    (made / "backups").mkdir()
    if root:
        owner = pwd.getpwnam("nobody")
        for path in (made, made / "kept", made / "kept" / "wal"):
            os.chown(path, owner.pw_uid, owner.pw_gid)
    preamble = PREAMBLE.format(
        folder=made,
        bin=made / "programs" / "bin",
        as_postgres="cd / && runuser -u nobody --" if root else "",
        python=sys.executable,
    )
    settings = environment(SIGNING_KEY=SigningKey.generate().to_pem())

    def run(script: str, *, fails: bool = False) -> str:
        done = subprocess.run(
            ["bash", "-c", preamble + script],
            env=settings,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert (done.returncode != 0) == fails, (script, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout + done.stderr

    run.folder = made
    yield run
    for name, port in (("first", 5501), ("second", 5502)):
        run(f"cluster {name} {port}; [ ! -d $PGDATA ] || stop_postgres")
    shutil.rmtree(made, ignore_errors=True)


def renamed(name: str) -> str:
    return f"echo \"UPDATE registry.schools SET name = '{name}' WHERE name <> 'King''s College'\" | sql"


def test_the_blocks_are_found():
    assert {"verify", "dump", "undump", "archive", "base", "recover", "recovered"} <= set(BLOCKS)
    assert {"primary", "standby", "promote"} <= set(BLOCKS)


def test_each_way_back_is_whole(shell):
    folder = shell.folder
    verify = adapted("verify", folder)
    names_now = "echo 'SELECT name FROM registry.schools' | sql"
    count = 'echo "SELECT count(*) FROM \\"$SCHEMA\\".roles" | sql'

    # A server with two schools and their backups.
    shell(
        "make_cluster; start_postgres\n"
        "as_postgres $PGBIN/psql --quiet postgres <<SQL\n"
        "CREATE ROLE school_operator LOGIN CREATEROLE; CREATE DATABASE schools OWNER school_operator;\nSQL"
    )
    address = "postgresql://{}@/schools?host=" + f"{folder}&port=5501"
    tenancy = tenancy_of(
        Settings.load(
            {
                "DATABASE_URL": address.format("school_service"),
                "ADMIN_DATABASE_URL": address.format("school_operator"),
            }
        )
    )
    install(tenancy)
    names = ("Queen's College", "King's College")
    school, _ = (create_school(tenancy, name=name, administrator=ADMINISTRATOR) for name in names)
    assert len(back_up_all(tenancy, folder / "backups").made) == 2
    tenancy.admin.dispose()
    schema = f"SCHEMA={school.schema}\n"
    roles = int(shell(schema + count))
    assert roles > 0

    # The dump, into a server with nothing in it.
    shell(adapted("dump", folder))
    said = shell("cluster second 5502; make_cluster\n" + adapted("undump", folder) + verify)
    assert "2 schools verified, 0 of them wrong." in said
    assert int(shell(f"cluster second 5502\n{schema}{count}")) == roles
    shell("cluster second 5502; stop_postgres; rm -rf $PGDATA")

    # A base backup, a change, a moment, a mistake.
    shell(adapted("archive", folder))
    shell(adapted("base", folder))
    shell(renamed("of yesterday"))
    moment = shell("echo 'SELECT clock_timestamp()' | sql").strip()
    time.sleep(0.01)
    shell(
        schema + 'echo "DELETE FROM \\"$SCHEMA\\".role_permissions" | sql\n'
        "school_service tenants verify --backups $KEPT/../backups && exit 1\n"
        "echo 'SELECT pg_switch_wal()' | sql"
    )
    base = next(path for path in (folder / "kept").iterdir() if path.name.startswith("base-"))
    said = shell(
        f"BASE={base}\n"
        + adapted("recover", folder, MOMENT=f"'{moment}'")
        + adapted("recovered", folder)
        + verify
        + names_now
    )
    assert "2 schools verified, 0 of them wrong." in said
    assert "of yesterday" in said
    assert int(shell(schema + count)) == roles

    # A standby, whose first is lost.
    shell(adapted("primary", folder))
    shell(
        "cluster second 5502\n" + adapted("standby", folder, FIRST=f"'host={folder} port=5501 user=standby'")
    )
    shell(renamed("of today"))
    shell(
        "until [ \"$(echo 'SELECT pg_current_wal_lsn() <= replay_lsn FROM pg_stat_replication' | sql)\" = t ]; do"
        " sleep 0.1; done; stop_postgres"
    )
    said = shell("cluster second 5502\n" + adapted("promote", folder) + verify + names_now)
    assert "2 schools verified, 0 of them wrong." in said
    assert "of today" in said
