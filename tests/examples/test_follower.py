"""The example of a follower keeps a copy that is equal to the export of the end, with writes meanwhile."""

from __future__ import annotations

import io
import json
import signal
import threading
import time
from importlib.util import module_from_spec, spec_from_file_location
from multiprocessing import get_context
from pathlib import Path
from random import Random
from urllib.error import HTTPError

import pytest

from school_service.app import create_app
from tenants.distribution.moving import move_school
from tenants.distribution.nodes import list_nodes, locate_school
from tests.client import ApiClient, Document
from tests.conftest import Way
from tests.features.exchange.copies.copies import changes, export
from tests.postgres import on_citus_alone, with_one_server

SCRIPT = Path(__file__).parents[2] / "examples" / "follower.py"
ENOUGH = 100  # changes
TAKES_SCHOOLS = "SELECT citus_set_node_property(%s, %s, 'shouldhaveshards', %s)"
BEHIND_PGBOUNCER = Way(logins=2, pgbouncer=True)


def script():
    spec = spec_from_file_location("follower", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def asking(api):
    """Ask the application as the script asks a service."""

    def ask(path, *query):
        response = api.get(path, query_string=list(query))
        if response.status_code != 200:
            raise HTTPError(
                path, response.status_code, response.get_data(as_text=True), response.headers, None
            )
        return io.BytesIO(response.data)

    return ask


class Writer:
    """Writes at random until it is told to end or killed; some requests are refused."""

    def __init__(self, api, seed, shared):
        self.api, self.random, self.shared = api, Random(seed), shared
        self.number, self.ended = seed % 1000, False
        self.acts = (
            self.room,
            self.student,
            self.rename,
            self.score,
            self.absence,
            self.take,
            self.erase,
            self.hide,
        )

    def end(self, *_):
        self.ended = True

    def write(self):
        while not self.ended:
            self.number += 1000
            student, assessment = map(
                self.random.choice, (self.shared["students"], self.shared["assessments"])
            )
            response = self.random.choice(self.acts)(student, assessment)
            if response is not None and response.status_code >= 500 and response.status_code != 503:
                raise AssertionError(response.get_data(as_text=True))

    def room(self, _student, _assessment):
        response = self.api.post("/classrooms", {"name": f"Room {self.number % 50}", "level": "Junior"})
        if response.status_code == 200 and self.random.random() < 0.7:
            return self.api.delete(f"/classrooms/{response.json['id']}")
        return response

    def student(self, _student, _assessment):
        body = {"first_name": "A", "last_name": "B", "admission_number": f"S/{self.number}"}
        response = self.api.post("/students", body)
        if response.status_code == 200 and self.random.random() < 0.5:
            return self.api.delete(f"/students/{response.json['id']}")
        return response

    def rename(self, student, _assessment):
        return self.api.patch(f"/students/{student}", {"last_name": f"B{self.number}"})

    def score(self, student, assessment):
        scores = [{"student": student, "score": self.random.choice((None, 1, 2))}]
        return self.api.put(f"/assessments/{assessment}/scores", scores)

    def absence(self, student, assessment):
        body = {"absences": [{"student": student, "status": "ABSENT"}]}
        if self.random.random() < 0.5:
            return self.api.delete(f"/assessments/{assessment}/absences/{student}")
        return self.api.put(f"/assessments/{assessment}/absences", body)

    def take(self, student, _assessment):
        cohort = self.shared["cohort"]
        if self.random.random() < 0.5:
            return self.api.patch(f"/cohorts/{cohort}/remove_students", {"student_ids": [student]})
        return self.api.post(f"/cohorts/{cohort}/enrollment", {"students": [student], "batch": cohort})

    def erase(self, student, _assessment):
        return self.api.delete(f"/students/{student}/data") if self.random.random() < 0.05 else None

    def hide(self, _student, assessment):
        if self.random.random() < 0.02:
            return self.api.delete(f"/assessments/{assessment}")
        user = self.random.choice(self.shared["users"])
        if self.random.random() < 0.5:
            return self.api.delete(f"/users/{user}/delete")
        return self.api.put(f"/users/{user}/restore")


def write_in_process(ready, settings, spec, token, school, seed, shared):
    """Write in a process of its own, with an application of its own; says when it begins."""
    writer = Writer(ApiClient(create_app(settings), Document(spec=spec), token, school), seed, shared)
    signal.signal(signal.SIGTERM, writer.end)
    ready.send(None)
    writer.write()


def start_writer(api, seed, shared):
    """Start a writer; gives its process, and the pipe that tells when it begins.

    It is forked of a process that has imported this module and has no threads, whose locks it would copy.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    told, ready = context.Pipe(duplex=False)
    settings = api.app.extensions["school-service"].settings
    arguments = (ready, settings, api.document.spec, api.token, api.school, seed, shared)
    process = context.Process(target=write_in_process, args=arguments, daemon=True)
    process.start()
    ready.close()
    return process, told


def follow_writers(make, seed, seconds, pairs=4, meanwhile=lambda: None):
    """Let pairs of writers write, kill one of each, and let as many followers follow, from random moments on.

    In the end each copy has to be the export.
    """
    random, follow = Random(seed), script().follow
    taught, users = make.taught(6), [make.user()["user"] for _ in range(3)]
    for user in users:
        make.contact(user)
    shared = {
        "students": taught.students,
        "users": [user["id"] for user in users],
        "cohort": taught.cohort["id"],
        "assessments": [make.assessment(taught.subject, taught.term)["id"] for _ in range(3)],
    }
    started = [start_writer(make.api, seed * 1000 + number, shared) for number in range(2 * pairs)]
    for _, told in started:
        told.recv()
    writers = [process for process, _ in started]
    ended, copies, broken = threading.Event(), [], []

    def follower(delay):
        ask, records, place = asking(make.api.using()), {}, {}
        copies.append((records, place, ask))
        ended.wait(delay)
        while not ended.is_set():
            try:
                follow(records, place, ask)
            except HTTPError as error:
                if error.code != 503:
                    broken.append(error.reason)
                    return

    followers = [
        threading.Thread(target=follower, args=(random.random() * seconds / 2,)) for _ in range(pairs)
    ]
    for thread in followers:
        thread.start()
    try:
        for writer in writers[:pairs]:
            time.sleep(random.random() * seconds * 2 / pairs)
            writer.kill()
        meanwhile()
        while len(changes(make.api, "start")[0]) <= ENOUGH:  # as the machine is slow
            time.sleep(0.1)
    finally:
        for writer in writers[pairs:]:
            writer.terminate()
        for writer in writers:
            writer.join()
        ended.set()
        for thread in followers:
            thread.join()
    assert [writer.exitcode for writer in writers] == [-signal.SIGKILL] * pairs + [0] * pairs
    assert broken == []
    time.sleep(0.2)  # a COMMIT that came before the kill is done
    for records, place, ask in copies:
        while follow(records, place, ask):
            pass
    expected, _ = export(make.api)
    for records, _, _ in copies:
        assert sorted(comparable(records), key=str) == sorted(comparable(expected), key=str)


def comparable(records):
    """Read numbers as the script reads them."""
    return json.loads(json.dumps([[*key, record] for key, record in records.items()], default=float))


def test_a_copy_is_the_export_of_the_end(committing):
    follow_writers(committing, seed=int(time.time()), seconds=2, pairs=2)


@pytest.mark.release
@pytest.mark.parametrize("seed", range(20))
def test_a_copy_is_the_export_of_the_end_of_each_seed(seed, committing):
    follow_writers(committing, seed, seconds=10)


@pytest.mark.operate
@pytest.mark.parametrize("settings", [pytest.param(BEHIND_PGBOUNCER, marks=with_one_server)], indirect=True)
def test_a_copy_is_the_export_of_the_end_through_pgbouncer(committing):
    follow_writers(committing, seed=int(time.time()), seconds=2, pairs=2)


@on_citus_alone
def test_a_copy_is_the_export_of_the_end_where_the_school_is_moved_meanwhile(committing, tenancy):
    school = committing.api.school
    with tenancy.admin.begin() as connection:
        place = locate_school(connection, school).node
        target = next(each.node for each in list_nodes(connection)[1:] if each.node != place)
        connection.exec_driver_sql(TAKES_SCHOOLS, (target.host, target.port, True))

    follow_writers(
        committing, int(time.time()), 10, meanwhile=lambda: move_school(tenancy, school, str(target))
    )

    with tenancy.admin.begin() as connection:
        assert locate_school(connection, school).node == target
        connection.exec_driver_sql(TAKES_SCHOOLS, (target.host, target.port, False))


def test_the_script_is_short():
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) <= 40
