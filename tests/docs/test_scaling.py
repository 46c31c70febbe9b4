"""docs/scaling.md, "PgBouncer": the blocks as they are pasted, between a service and its PostgreSQL."""

from __future__ import annotations

import json
import re
import secrets

import psycopg2
import pytest

from school_service.auth.signing_key import SigningKey
from tests.cli.program import ROOT, run, serving
from tests.pgbouncer import ADMIN, PORT, configured_pgbouncer
from tests.postgres import addresses, on_postgresql_alone
from tests.postgres import test_database as new_database
from tests.tenants.installations import execute

pytestmark = [pytest.mark.program, pytest.mark.operate, on_postgresql_alone]

PAGE = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## PgBouncer\n")[2].partition("\n## ")[0]
PASSWORD = "s3cret"


def block(kind: str) -> str:
    """The only block of a kind in the section."""
    (text,) = re.findall(rf"^```{kind}\n(.*?)^```", SECTION, re.S | re.M)
    return text


@pytest.fixture
def role(server):
    """A name for PgBouncer's own role, which belongs to the server."""
    name = f"pgbouncer_{secrets.token_hex(4)}"
    yield name
    execute(server, f'DROP ROLE IF EXISTS "{name}"')


def test_the_service_serves_through_a_pgbouncer_of_the_page(server, tmp_path, role):
    with new_database(server) as (admin, serving_login):
        login = serving_login.set(password=PASSWORD)
        settings = {
            **addresses(admin, login),
            "SERVING_LOGINS": "2",
            "SIGNING_KEY": SigningKey.generate().to_pem(),
        }
        for arguments in (("tenants", "init"), ("tenants", "create", "A school", "--json")):
            done = run(*arguments, cwd=tmp_path, settings=settings)
            assert done.returncode == 0, done.stderr
        school = json.loads(done.stdout)
        made = run(
            *("clients", "create", "front-end", "--all-schools", "--all-permissions", "--json"),
            cwd=tmp_path,
            settings=settings,
        )
        client = json.loads(made.stdout)

        script = (
            block("sql").replace("…", PASSWORD).replace("DATABASE schools", f'DATABASE "{admin.database}"')
        )
        script = re.sub(r"\b(ROLE|TO) pgbouncer\b", rf"\1 {role}", script)
        assert script.count(role) == 4
        execute(admin, script.replace("^school_service(", f"^{login.username}("))
        host = str(admin.query.get("host") or admin.host)

        def configuration(folder):
            text = block("ini")
            for old, new in (
                ("schools = host=127.0.0.1 port=5432 dbname=schools", None),
                ("/etc/pgbouncer/userlist", f"{folder}/userlist"),
                ("auth_user = pgbouncer", f"auth_user = {role}"),
                (
                    "listen_addr = 127.0.0.1",
                    f"listen_addr =\nunix_socket_dir = {folder}\npidfile = {folder}/pid\nadmin_users = {ADMIN}",
                ),
                ("listen_port = 6432", f"listen_port = {PORT}\nlogfile = {folder}/pgbouncer.log"),
            ):
                assert text.count(old) == 1, old
                database = f"{admin.database} = host={host} port={admin.port or 5432} dbname={admin.database}"
                text = text.replace(old, database if new is None else new)
            return text

        (line,) = re.findall(r'^"pgbouncer" "…"$', SECTION, re.M)
        users = f'"{role}" "{PASSWORD}"\n"{ADMIN}" "a password"\n'
        assert line.replace("pgbouncer", role).replace("…", PASSWORD) in users
        with configured_pgbouncer(configuration, users, host) as folder:
            behind = login._replace(host=None, port=PORT, query={"host": str(folder)})
            through = {**settings, "DATABASE_URL": behind.render_as_string(hide_password=False)}
            with serving(cwd=tmp_path, settings=through) as service:
                token = service.client_token("front-end", client["client_secret"])
                answer = service.ok("GET", "/users", token=token, school=school["id"])
                assert [user["username"] for user in answer["data"]] == ["admin"]
                assert service.end() == 0
            # A login that serves nothing gets no secret of it, and PgBouncer lets nobody in with a wrong one.
            for wrong in (behind.set(password="wrong"), behind.set(username=str(admin.username))):
                with pytest.raises(psycopg2.OperationalError):
                    psycopg2.connect(wrong.set(drivername="postgresql").render_as_string(hide_password=False))
        execute(admin, f'DROP OWNED BY "{role}"')
