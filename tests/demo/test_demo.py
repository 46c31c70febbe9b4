"""The demo as a person starts it: once, again, killed, by another user, by two at once."""

import json
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.program import postgres_of, run, running, wait_for


@pytest.fixture
def place(tmp_path):
    """A folder to stand in; what a failed test leaves running is stopped."""
    yield tmp_path
    for process in postgres_of(tmp_path / "school-data"):
        process.kill()


@contextmanager
def demo(place, *arguments, command=None, **options):
    """Start the demo on a free port, and wait until it is ready."""
    port = () if "--port" in arguments else ("--port", "0")
    more = {"command": command} if command else {}
    with running("demo", *port, *arguments, cwd=place, **more, **options) as running_demo:
        running_demo.wait_for(lambda: "Ctrl-C stops" in running_demo.printed, "the demo")
        running_demo.kept = json.loads((place / "school-data" / "demo.json").read_text(encoding="utf-8"))
        running_demo.base_url = running_demo.kept["base_url"]
        yield running_demo


def nothing_is_left(place):
    return postgres_of(place / "school-data") == []


def secrets_of(kept):
    return (kept["client_id"], kept["client_secret"], kept["schools"])


def test_a_person_tries_the_demo_and_finds_everything_again(place):
    with demo(place) as first:
        kept = first.kept
        assert stat.S_IMODE((place / "school-data" / "demo.json").stat().st_mode) == 0o600
        assert list(kept) == ["base_url", "auth_url", "audience", "client_id", "client_secret", "schools"]
        assert [set(school) for school in kept["schools"]] == [{"id", "name", "admin"}] * 2
        assert kept["auth_url"] == f"{kept['base_url']}/auth"
        token = first.client_token(kept["client_id"], kept["client_secret"])
        for school in kept["schools"]:
            assert_is_filled(first, token, school)
        assert_is_printed(first)
        assert first.request("GET", "/docs").status == 200
        assert first.err.read_text() == ""

        listed = run("tenants", "list", "--json", "--data-dir", "school-data", cwd=place)
        assert {school["id"] for school in json.loads(listed.stdout)} == {s["id"] for s in kept["schools"]}
        assert first.ok("GET", "/health")["database"] == "ok"

        added = {
            "username": "ìyá",
            "password": "p",
            "first_name": "Ìyá",
            "last_name": "Wa",
            "gender": "FEMALE",
        }
        first.ok("POST", "/users", token=token, school=kept["schools"][0]["id"], body=added)
        assert first.end(signal.SIGTERM) == 0
    assert nothing_is_left(place)

    listed = run("tenants", "list", "--json", cwd=place)
    assert (listed.returncode, len(json.loads(listed.stdout))) == (0, 2)
    assert nothing_is_left(place)

    with demo(place) as second:
        assert secrets_of(second.kept) == secrets_of(kept)
        # The first one's token, too: the key is the same.
        found = second.ok("GET", "/users?search=ìyá", token=token, school=kept["schools"][0]["id"])
        assert [user["username"] for user in found["data"]] == ["ìyá"]
        assert second.end(signal.SIGINT) == 0
    assert nothing_is_left(place)


def assert_is_filled(service, token, school):
    def ask(path):
        return service.ok("GET", path, token=token, school=school["id"])

    sessions = ask("/sessions")
    assert {session["name"]: session["current"] for session in sessions} == {
        "2024/2025": False,
        "2025/2026": True,
    }
    assert all(len(ask(f"/terms?session_id={session['id']}")) == 3 for session in sessions)
    assert [room["name"] for room in ask("/classrooms")] == [
        "JSS 1",
        "JSS 2",
        "JSS 3",
        "SSS 1",
        "SSS 2",
        "SSS 3",
    ]
    assert len(ask("/templates")) == 10
    students = ask("/students?pageSize=1000")
    assert students["total"] >= 60
    assert all(student["guardian"]["full_name"] and student["cohort"] for student in students["data"])
    people = ask("/users?pageSize=1000")["data"]
    assert sum(bool(person["roles"]) for person in people) >= 5
    assert any(not person["last_name"].isascii() for person in people)
    login = service.ok("POST", "/users/login", token=token, school=school["id"], body=school["admin"])
    assert login["user"]["school"]["name"] == school["name"]
    assert login["user"]["school"]["address"]


def assert_is_printed(demo):
    for wanted in (demo.base_url, f"{demo.base_url}/docs", *json_texts(demo.kept["schools"])):
        assert wanted in demo.printed
    line = next(line for line in demo.printed.splitlines() if line.startswith("curl "))
    token = line.partition("Bearer ")[2].partition("'")[0]
    assert token in demo.printed.splitlines()
    if shutil.which("curl"):
        answer = subprocess.run(["sh", "-c", line], capture_output=True, check=True, timeout=60).stdout
        assert json.loads(answer)["total"] >= 60
    else:
        school = line.partition("X-SCHOOL-ID: ")[2].partition("'")[0]
        path = line.rpartition(demo.base_url)[2].strip("'")
        assert demo.ok("GET", path, token=token, school=school)["total"] >= 60


def json_texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from json_texts(member)


def test_a_killed_demo_is_taken_up_by_the_next_and_two_at_once_are_not(place):
    with demo(place) as killed:
        second = run("demo", "--port", "0", cwd=place)
        assert (second.returncode, second.stdout) == (1, "")
        assert second.stderr == (
            f"Error: A demo of the data folder {place}/school-data is running already, at {killed.base_url}. "
            "Stop that one first, or name another folder with --data-dir.\n"
        )
        killed.process.kill()
        killed.process.wait()
        assert postgres_of(place / "school-data")

    with demo(place) as next_one:
        assert secrets_of(next_one.kept) == secrets_of(killed.kept)
        assert next_one.end() == 0
    assert nothing_is_left(place)


def test_a_first_start_that_was_killed_is_completed_by_the_second(place):
    folder = place / "school-data"
    # The first school has been created by then, the second not yet filled; nothing has been written of it.
    with running("demo", "--port", "0", cwd=place) as first:
        first.wait_for(lambda: list(folder.glob("postgres/base/*")), "the database")
        listing = ("tenants", "list", "--json")
        first.wait_for(lambda: "Queen Amina" in run(*listing, cwd=place).stdout, "the first school")
        first.process.kill()
        first.process.wait()

    with demo(place) as second:
        token = second.client_token(second.kept["client_id"], second.kept["client_secret"])
        for school in second.kept["schools"]:
            assert_is_filled(second, token, school)
        assert second.end() == 0


def test_lost_secrets_are_made_anew(place):
    with demo(place) as first:
        assert first.end() == 0
    (place / "school-data" / "demo.json").unlink()

    with demo(place) as second:
        old, new = first.kept, second.kept
        assert [s["id"] for s in new["schools"]] == [s["id"] for s in old["schools"]]
        assert new["client_secret"] != old["client_secret"]
        asked = {
            "client_id": old["client_id"],
            "client_secret": old["client_secret"],
            "audience": old["audience"],
            "grant_type": "client_credentials",
        }
        assert second.request("POST", "/auth/oauth/token", body=asked).status == 401
        token = second.client_token(new["client_id"], new["client_secret"])
        for before, after in zip(old["schools"], new["schools"], strict=True):
            sign_in = {"token": token, "school": after["id"]}
            assert second.request("POST", "/users/login", body=before["admin"], **sign_in).status == 401
            assert second.request("POST", "/users/login", body=after["admin"], **sign_in).status == 200
        assert second.end() == 0


def test_with_an_outside_provider_the_administrators_token_is_printed(place):
    settings = {"AUTH_URL": "https://provider.example.org"}
    with demo(place, settings=settings) as running_demo:
        kept = running_demo.kept
        assert (kept["auth_url"], kept["client_id"], kept["client_secret"]) == (
            settings["AUTH_URL"],
            None,
            None,
        )
        line = next(line for line in running_demo.printed.splitlines() if line.startswith("curl "))
        token = line.partition("Bearer ")[2].partition("'")[0]
        assert (
            running_demo.ok("GET", "/students", token=token, school=kept["schools"][0]["id"])["total"] >= 60
        )
        assert running_demo.request("GET", "/auth/.well-known/jwks.json").status == 404
        assert running_demo.end() == 0


def test_a_taken_port_is_said_before_anything_is_made(place):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("demo", "--port", str(taken.getsockname()[1]), cwd=place)

    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert not (place / "school-data").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start it as another user")
def test_an_ordinary_user_runs_it_in_a_deep_folder_of_theirs(tmp_path_factory):
    nobody = pwd.getpwnam("nobody")
    place = Path(tmp_path_factory.mktemp("nobodys"))
    for parent in place.parents[:2]:
        parent.chmod(parent.stat().st_mode | 0o001)
    os.chown(place, nobody.pw_uid, nobody.pw_gid)
    deep = f"{'d' * 120}/schools, and more"

    as_nobody = {"user": "nobody", "group": nobody.pw_gid, "extra_groups": []}
    made = run("tenants", "init", "--data-dir", deep, cwd=place, **as_nobody)

    assert (made.returncode, made.stderr) == (0, "")
    assert (place / deep).stat().st_uid == nobody.pw_uid
    assert stat.S_IMODE((place / deep).stat().st_mode) == 0o700
    assert stat.S_IMODE((place / deep / "postgres").stat().st_mode) == 0o700
    # And root works on it as well, without taking it away.
    listed = run("tenants", "list", "--json", "--data-dir", deep, cwd=place)
    assert (listed.returncode, listed.stdout) == (0, "[]\n")
    again = run("tenants", "list", "--json", "--data-dir", deep, cwd=place, **as_nobody)
    assert (again.returncode, again.stdout) == (0, "[]\n")
    wait_for(lambda: postgres_of(place / deep) == [], "the end of PostgreSQL")
