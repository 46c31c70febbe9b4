"""Hashing passwords: no connection waits for it, few are hashed at once, and rows read before are read again."""

from __future__ import annotations

import os
import runpy
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import argon2
import pytest

from school_service.auth import passwords
from school_service.core import priority
from school_service.core.database import db, outside_transaction
from school_service.core.shares import Shares
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.client import ApiClient
from tests.conftest import PASSWORD, make_place
from tests.factories import Factory
from tests.features.classes.student_imports.test_import import LEAST, people, upload
from tests.features.classes.student_imports.test_import import sheet as students_sheet
from tests.postgres import on_postgresql_alone
from tests.threads import run_concurrently

NEW = {
    "username": "ada",
    "gender": "FEMALE",
    "first_name": "Ada",
    "last_name": "Obi",
    "password": "a first password",
}


class WatchedHasher(argon2.PasswordHasher):
    """A hasher that does something of the test's each time."""

    def __init__(self, during):
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)
        self.during = during

    def hash(self, *arguments, **options):
        self.during()
        return super().hash(*arguments, **options)

    def verify(self, *arguments, **options):
        self.during()
        return super().verify(*arguments, **options)


PASSWORDS = [*LEAST, "password"]


def two_with_passwords():
    return [[*person, "a password"] for person in people(2)]


@pytest.fixture
def school(app, document, tenancy):
    place = make_place(app, tenancy, "Hope Waddell Training Institution")
    return place, ApiClient(app, document, place.admin_token, place.id)


@pytest.fixture
def during(monkeypatch):
    """Let something happen each time that a password is hashed."""

    def watch(happens):
        monkeypatch.setattr(passwords, "hasher", WatchedHasher(happens))

    return watch


def in_a_thread(work):
    """Do work as another request would: with a session of its own."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(work).result()


@on_postgresql_alone
def test_no_connection_is_taken_while_a_password_is_hashed(school, app, during):
    place, api = school
    taken = []
    with app.app_context():
        pool = db.engine.pool
    during(lambda: taken.append(pool.checkedout()))

    user = api.ok(api.post("/users", NEW))["user"]["id"]
    api.ok(api.post("/users/login", {"username": "ada", "password": NEW["password"]}))
    assert api.post("/users/login", {"username": "ada", "password": "wrong"}).status_code == 401
    assert api.post("/users/login", {"username": "nobody", "password": "wrong"}).status_code == 401
    api.ok(api.put(f"/users/{user}/password", {"password": "another password"}))
    student = {"first_name": "A", "last_name": "B", "admission_number": "QC/1", "password": "x"}
    api.ok(api.post("/students", student))
    api.ok(upload(api, students_sheet(*two_with_passwords(), columns=PASSWORDS)))
    own = {"password": "the newest", "current_password": PASSWORD}
    api.ok(api.put(f"/users/{place.admin_id}/password", own))

    assert len(taken) >= 10
    assert set(taken) == {0}


def test_a_password_set_while_a_sign_in_is_checked_decides(school, during, monkeypatch):
    monkeypatch.setattr(passwords, "_turns", Shares(2, waiting=0, patience=0))
    _, api = school
    user = api.ok(api.post("/users", NEW))["user"]["id"]
    other, changed = api.using(), []

    def change():
        other.ok(other.put(f"/users/{user}/password", {"password": "another password"}))

    def change_once():
        if not changed:
            changed.append(True)
            in_a_thread(change)

    during(change_once)
    assert api.post("/users/login", {"username": "ada", "password": NEW["password"]}).status_code == 401
    api.ok(api.post("/users/login", {"username": "ada", "password": "another password"}))


def test_a_caller_who_loses_the_permission_meanwhile_sets_no_password(school, during):
    _, api = school
    user = api.ok(api.post("/users", NEW))["user"]["id"]
    made = api.ok(api.post("/users", {**NEW, "username": "clerk"}))
    role = api.ok(api.post("/roles", {"name": "Clerk", "avatar": 1}))["id"]
    listed = {f"{each['access']}:{each['section']}": each["id"] for each in api.ok(api.get("/permissions"))}
    permissions = [listed["write:users"]]
    api.ok(api.patch(f"/roles/{role}/permissions", {"permissionIds": permissions}))
    clerk = made["user"]["id"]
    api.ok(api.put(f"/users/{clerk}/roles", {"role": role}))
    signed_in = api.ok(api.post("/users/login", {"username": "clerk", "password": NEW["password"]}))
    caller = api.using(token=signed_in["access_token"]["access_token"])
    other = api.using()

    caller.ok(caller.put(f"/users/{user}/password", {"password": "by the clerk"}))
    during(lambda: in_a_thread(lambda: other.ok(other.delete(f"/users/{clerk}/roles/{role}"))))
    assert caller.put(f"/users/{user}/password", {"password": "by a stranger"}).status_code == 403

    during(lambda: None)
    api.ok(api.post("/users/login", {"username": "ada", "password": "by the clerk"}))


def test_a_clerk_who_may_enroll_nobody_any_more_imports_nobody_into_a_class(school, during):
    _, api = school
    make = Factory(api)
    make.cohort(make.classroom(name="JSS 1"), make.session(current=True))
    clerk = make.caller("write:students", "read:results")
    role = make.role("write:cohorts")["id"]
    api.ok(api.put(f"/users/{clerk.user['id']}/roles", {"role": role}))
    other = api.using()

    def withdraw():
        in_a_thread(lambda: other.ok(other.delete(f"/users/{clerk.user['id']}/roles/{role}")))

    first, second = ([*row, "JSS 1"] for row in two_with_passwords())
    columns = [*PASSWORDS, "class"]
    assert clerk.ok(upload(clerk, students_sheet(first, columns=columns)))["enrolled"] == 1
    during(withdraw)
    refused = upload(clerk, students_sheet(second, columns=columns))

    assert (refused.status_code, "write:cohorts" in refused.get_json()["message"]) == (403, True)
    assert [student["admission_number"] for student in api.ok(api.get("/students"))["data"]] == [first[2]]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has a priority of each thread")
def test_hashing_gives_way_to_short_requests(school, during):
    _, api = school
    priorities = []
    during(lambda: priorities.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id())))
    api.ok(api.post("/users/login", {"username": "admin", "password": PASSWORD}))
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    assert priorities == [own + priority.NICENESS]


def test_no_more_than_the_turns_are_hashed_at_once(school, during, monkeypatch):
    _, api = school
    monkeypatch.setattr(passwords, "_turns", Shares(1, waiting=50, patience=30))
    running, most, lock = 0, 0, threading.Lock()

    def count():
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.01)
        with lock:
            running -= 1

    during(count)
    sign_in = {"username": "admin", "password": PASSWORD}
    statuses = run_concurrently(8, lambda _: api.using().post("/users/login", sign_in).status_code)

    assert (statuses, most) == ([200] * 8, 1)


def test_beyond_them_it_is_503_with_retry_after(school, monkeypatch):
    _, api = school
    turns = Shares(1, waiting=0, patience=0)
    monkeypatch.setattr(passwords, "_turns", turns)
    sign_in = {"username": "admin", "password": PASSWORD}

    with turns.of("hash"):
        refused = api.post("/users/login", sign_in)

    assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (503, True)
    assert api.post("/users/login", sign_in).status_code == 200


def test_work_outside_of_a_transaction_must_not_follow_a_write(app, school):
    from school_service.features.people.models import User

    place, _ = school
    with app.app_context(), in_transaction(SchoolBinding(place.id)):
        db.session.add(User(username="x", first_name="x", last_name="x", gender=""))
        with pytest.raises(RuntimeError):
            outside_transaction(lambda: None)
        db.session.rollback()
        db.session.expunge_all()


def test_where_the_system_forbids_another_priority_passwords_are_hashed_all_the_same(monkeypatch):
    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refused)
    with ThreadPoolExecutor(1, initializer=priority._stand_back) as threads:
        monkeypatch.setattr(priority, "_threads", threads)
        stored = passwords.hash_password("a password of hers")

    assert passwords.hasher.verify(stored, "a password of hers")


def test_a_password_costs_46_mebibytes_one_pass_and_one_lane():
    # The suite's own hasher takes no time: this is the one that the module makes.
    hasher = runpy.run_path(passwords.__file__)["hasher"]

    assert argon2.extract_parameters(hasher.hash("a password")) == argon2.Parameters(
        type=argon2.Type.ID,
        version=19,
        salt_len=16,
        hash_len=32,
        time_cost=1,
        memory_cost=46 * 1024,
        parallelism=1,
    )
