"""debian.md, backups.md and lost-administrator.md, as they are pasted: an empty PostgreSQL becomes a school, and on.

Shell functions stand in for apt-get, systemd and the accounts of the machine; the program is the tested one.
"""

from __future__ import annotations

import re
import sys

import pytest
from pyrage import x25519

from tests.cli.program import ROOT
from tests.docs.test_deployment import FOLDER, UNITS, blocks
from tests.docs.test_recovery import shell as shell
from tests.postgres import on_postgresql_alone

pytestmark = [pytest.mark.release, pytest.mark.program, on_postgresql_alone]

STANDING_IN = """
unset SIGNING_KEY
apt-get() {{ :; }}
chgrp() {{ :; }}
curl() {{ :; }}
journalctl() {{ :; }}
runuser() {{ [ "$1 $2 $3" = "-u postgres --" ]; shift 3; "$PGBIN/$@"; }}
install() {{
    words=()
    while [ $# -gt 0 ]; do case $1 in -o|-g) shift ;; *) words+=("$1") ;; esac; shift; done
    command install "${{words[@]}}"
}}
systemctl() {{
    [ "$*" != "start school-service-backup" ] || school-service {backup}
}}
school-service() {{ PATH={root}/bin:$PATH sh {root}/usr/local/sbin/school-service "$@"; }}
cd {root}/source
"""
# In place of the program's environment and of setpriv: the tested program, as the user of the tests.
SETPRIV = """#!/bin/sh
[ "$1 $2 $3" = "--reuid=school --regid=school --clear-groups" ] || exit 1
shift 4
exec {python} -P -m school_service "$@"
"""


@pytest.fixture
def server(shell):
    """The folders of a server below one of the tests, with a PostgreSQL that is empty."""
    root = shell.folder / "server"
    for folder in ("etc/systemd/system", "usr/local/sbin", "var/backups", "bin", "run"):
        (root / folder).mkdir(parents=True)
    (root / "source").symlink_to(ROOT)
    setpriv = root / "bin/setpriv"
    setpriv.write_text(SETPRIV.format(python=sys.executable), encoding="utf-8")
    setpriv.chmod(0o755)
    shell("make_cluster; start_postgres")
    return root


def test_an_empty_server_becomes_a_school_that_is_backed_up_and_has_an_administrator_again(shell, server):
    command = server / "usr/local/sbin/school-service"
    unit = (UNITS / "school-service-backup.service").read_text(encoding="utf-8")
    backup = re.search(r"^ExecStart=/opt/school-service/bin/school-service (.*)$", unit, re.M)[1]
    functions = STANDING_IN.format(root=server, backup=here(backup, server))

    def paste(page: str, *which: str, **values: str) -> str:
        script = ""
        for beginning in which:
            (block,) = [text for text in blocks(FOLDER / page) if beginning in text]
            script += here(block, server)
            if "/usr/local/sbin" in block:
                # The operator's command, with the folders of this server.
                script += f"sed -i 's#/etc/#{server}/etc/#' {command}\n"
        for name, value in values.items():
            assert name in script
            script = re.sub(rf"(?<![\w$]){re.escape(name)}(?!\w)", value, script)
        return shell(functions + script)

    said = paste("debian.md", "CREATE DATABASE schools", "/etc/school-service/env <<", "tenants create")
    details = dict(re.findall(r"^(\w+) +(\S+)$", said, re.M))
    assert (server / "etc/school-service/env").stat().st_mode & 0o777 == 0o600
    assert (server / "etc/school-service/key.pem").stat().st_mode & 0o777 == 0o640
    paste("debian.md", "daemon-reload\nschool-service check")

    key = x25519.Identity.generate()
    (server / "run/school-backups.key").write_text(f"{key}\n", encoding="utf-8")
    (server / "run/school-backups.key").chmod(0o600)
    said = paste(
        "backups.md",
        "BACKUP_RECIPIENT",
        "school-service-backup.timer",
        "systemctl start",
        **{"age1…": str(key.to_public())},
    )
    (file,) = re.findall(r"^\S+\.zip\S*$", said, re.M)
    copy = server / "run/school-backups.key"
    block = next(text for text in blocks(FOLDER / "backups.md") if "tenants restore" in text)
    restore = re.search(r"^school-service tenants restore.*\n.*$", here(block, server), re.M)[0]
    shell(functions + restore.replace(" FILE ", f" {file} "))
    assert "2 schools" in shell(functions + "school-service tenants init; school-service tenants verify")
    assert copy.exists()

    said = paste("lost-administrator.md", "tenants list", ID=details["id"])
    assert "On trial" in said
    assert re.search(r"^password +\S+$", said, re.M)
    paste("lost-administrator.md", "tenants end-sessions", ID=details["id"])


def here(script: str, root) -> str:
    """A script with the folders and the database of this server."""
    script = re.sub(r"(?<![\w.])/(etc|usr/local/sbin|var/backups|run)/", rf"{root}/\1/", script)
    address = f"host={root.parent}&port=5501"
    script = re.sub(
        r"^(\w*DATABASE_URL)=(\S+)@127\.0\.0\.1/schools$", rf"\1='\2@/schools?{address}'", script, flags=re.M
    )
    return script.replace("cd /usr/local/src/school-service\n", f"cd {root}/source\n")
