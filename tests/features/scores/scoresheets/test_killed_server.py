"""A server that is killed while it stores a score sheet."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import urllib3
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from tenants.connections.engines import registry_url
from tenants.distribution.nodes import locate_school
from tests.cli.program import serving, wait_for
from tests.features.scores.scoresheets.sheets import counts, scores, sheet_of, upload
from tests.postgres import addresses, at_schools, on_citus

pytestmark = pytest.mark.program

# The work of the database for one school, seen from outside.
WAITING = text(
    "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    " AND query LIKE 'WITH given AS %'"
)
GONE = text("SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = :pid")


def test_leaves_nothing_of_it(committing, tenancy, settings, tmp_path):
    taught = committing.taught(0)
    students = [committing.student() for _ in range(5)]
    committing.enrolled(taught.cohort, *students)
    assessment = committing.assessment(taught.subject, taught.term)
    content = sheet_of(*((student["admission_number"], None, None, 7) for student in students))
    committing.entry(assessment, students[0]["id"], taught.cohort["id"], score=1)
    entries = f"school_{committing.api.school.hex}.gradebook_entries"

    with (
        serving(cwd=tmp_path, settings=environment(settings)) as service,
        ThreadPoolExecutor() as threads,
        watching_schools(tenancy) as watching,
    ):
        with tenancy.admin.begin() as locking:
            # New scores are written before the one that changes, where the upload now has to wait.
            locking.execute(text(f"SELECT FROM {entries} FOR UPDATE"))
            answer = threads.submit(send, service, assessment, content, committing.api)

            def blocked():
                assert not answer.done(), answer.result()
                return read_value(watching, WAITING)

            pid = wait_for(blocked, "the upload at the score that changes")
            service.process.kill()
            service.process.wait()
        wait_for(lambda: read_value(watching, GONE, pid=pid), "the end of the server's transaction")
        assert answer.result() is None

    assert committing.api.ok(committing.api.get("/gradebooks"))["total"] == 1
    assert committing.api.ok(committing.api.get("/audit", query_string={"entity": "gradebook"}))["total"] == 1
    assert counts(upload(committing.api, assessment, content)) == (5, 4, 1, 0, 0)
    assert set(map(tuple, scores(committing.api, taught.subject).values())) == {(7,)}


def environment(settings):
    return {
        **addresses(settings.admin_database_url, settings.database_url),
        "SIGNING_KEY": settings.signing_key,
        "SERVING_LOGINS": str(settings.serving_logins),
    }


@contextmanager
def watching_schools(tenancy):
    """Lend a superuser's connection to the server that has the schools."""
    url = registry_url(at_schools(tenancy.admin_url))
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection


@contextmanager
def tables_locked(tenancy, school_id, *tables):
    """Keep every other transaction from writing to tables of a school, on the server that has it."""
    with tenancy.admin.connect() as connection:
        location = locate_school(connection, school_id) if on_citus() else None
    names = tables if location is None else location.shards.names(tables).values()
    with watching_schools(tenancy) as connection:
        connection.execute(text("BEGIN"))
        if location is not None:
            connection.execute(text("SET LOCAL citus.enable_manual_changes_to_shards TO on"))
        for name in names:
            connection.execute(text(f"LOCK TABLE school_{school_id.hex}.{name} IN SHARE MODE"))
        yield
        connection.execute(text("ROLLBACK"))


def send(service, assessment, content, api):
    """Upload a sheet; return the answer, None where there was none."""
    try:
        return urllib3.request(
            "POST",
            f"{service.base_url}/assessments/{assessment['id']}/scoresheet",
            headers={"Authorization": f"Bearer {api.token}", "X-SCHOOL-ID": str(api.school)},
            fields={"scoresheet": ("scores.xlsx", content)},
            retries=False,
        ).data
    except urllib3.exceptions.HTTPError:
        return None


def read_value(connection, statement, **values):
    value = connection.execute(statement, values).scalar()
    connection.rollback()
    return value
