"""Registers written by many at once, in a school whose requests commit; and a server that is killed."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
import urllib3
from sqlalchemy import text

from tests.cli.program import serving, wait_for
from tests.features.attendance.classes import Kept
from tests.features.scores.scoresheets.test_killed_server import (
    GONE,
    environment,
    read_value,
    watching_schools,
)
from tests.threads import run_concurrently

REQUESTS = 8  # of each thread in the storm


def test_the_same_register_from_twenty_clients_is_one(committing):
    kept = Kept(committing, 10)

    answers = run_concurrently(
        20, lambda _: kept.put(api=kept.api.using(), codes={"R/2": "A"}, default="P", submit=True)
    )

    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.get_data() for answer in answers}) == 1
    assert answers[0].get_json()["version"] == 1
    assert len(kept.log()) == 1


def test_of_two_devices_with_different_marks_one_is_refused(committing):
    kept = Kept(committing, 3)

    answers = run_concurrently(2, lambda number: kept.put(api=kept.api.using(), codes={"R/1": "PA"[number]}))

    assert sorted(answer.status_code for answer in answers) == [200, 409]
    (won,) = [answer.get_json() for answer in answers if answer.status_code == 200]
    assert kept.api.ok(kept.get()) == won


def test_a_day_that_closes_has_no_register(committing):
    kept = Kept(committing, 2)
    for back in range(8):
        closing = {"days": [{"date": kept.key(back)["date"], "status": "CLOSED"}]}

        def work(number, back=back, closing=closing):
            api = kept.api.using()
            return api.put("/school-days", closing) if number else kept.put(back, api=api, default="P")

        marked, closed = run_concurrently(2, work)

        assert sorted([marked.status_code, closed.status_code]) == [200, 409]


def test_a_storm_of_devices_ends_without_a_deadlock(committing):
    kept = Kept(committing, 5)
    key = kept.key()
    names = list(kept.students)

    def storm(number):
        random, api, seen_statuses = Random(number), kept.api.using(), Counter()
        for _ in range(REQUESTS):
            codes = {name: random.choice("PLAE") for name in random.sample(names, 3)}
            match random.randrange(8):
                case 0:
                    answer = kept.correct(codes=codes, api=api)
                case 1:
                    register_id = api.ok(kept.get(api=api))["id"]
                    if register_id is None:
                        continue
                    answer = api.delete(f"/registers/{register_id}")
                case 2:
                    status = random.choice(["CLOSED", "USUAL"])
                    answer = api.put("/school-days", {"days": [{"date": key["date"], "status": status}]})
                case 3:
                    answer = kept.correct(codes=dict.fromkeys(codes), api=api)
                case _:
                    answer = kept.put(
                        codes=codes, api=api, default="P", version=random.randrange(3), submit=True
                    )
            seen_statuses[answer.status_code] += 1
            assert answer.status_code in {200, 404, 409}, answer.get_data(as_text=True)
        return seen_statuses

    with ThreadPoolExecutor(20) as threads:
        seen_by_all = sum(threads.map(storm, range(20)), Counter())

    assert seen_by_all[200] > 20, seen_by_all
    kept.say({"date": key["date"], "status": "USUAL"})
    register = kept.take(force=True)
    assert register["present"] + register["absent"] == 5
    assert all(sums[0] == sums[1] + sums[3] for sums in kept.sums().values())


WAITING = text(
    "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    " AND query LIKE '%INSERT INTO%marks%'"
)


@pytest.mark.program
def test_a_server_that_is_killed_leaves_nothing_of_a_register(committing, tenancy, settings, tmp_path):
    kept = Kept(committing, 3)
    before = kept.take(codes={"R/1": "A"})
    body = {
        **kept.key(),
        "version": 1,
        "marks": [{"student": each, "code": "L"} for each in kept.students.values()],
    }
    last = max(kept.students.values())
    with (
        serving(cwd=tmp_path, settings=environment(settings)) as service,
        ThreadPoolExecutor() as threads,
        watching_schools(tenancy) as watching,
    ):
        with tenancy.admin.begin() as locking:
            # The first marks are written before the one that has to wait.
            marks = f"school_{committing.api.school.hex}.marks"
            locking.execute(text(f"SELECT FROM {marks} WHERE student_id = '{last}' FOR UPDATE"))
            answer = threads.submit(send, service, committing.api, body)

            def blocked():
                assert not answer.done(), answer.result()
                return read_value(watching, WAITING)

            pid = wait_for(blocked, "the marks at the one that is locked")
            service.process.kill()
            service.process.wait()
        wait_for(lambda: read_value(watching, GONE, pid=pid), "the end of the server's transaction")
        assert answer.result() is None

    assert kept.api.ok(kept.get()) == before
    assert len(kept.log()) == 1
    again = kept.api.ok(kept.api.put("/registers", body))
    assert (set(kept.codes(again).values()), again["version"]) == ({"L"}, 2)


def send(service, api, body):
    """Mark a register; return the answer, None where there was none."""
    try:
        return urllib3.request(
            "PUT",
            f"{service.base_url}/registers",
            headers={
                "Authorization": f"Bearer {api.token}",
                "X-SCHOOL-ID": str(api.school),
                "Content-Type": "application/json",
            },
            body=json.dumps(body),
            retries=False,
        ).data
    except urllib3.exceptions.HTTPError:
        return None
