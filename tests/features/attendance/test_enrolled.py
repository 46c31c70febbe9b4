"""Who is in a class on a day: by the days that the school entered, else by those of entering."""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta

import pytest

from tests.features.attendance.classes import Kept, today


@pytest.fixture(scope="module", autouse=True)
def made(prepared):
    return prepared(Kept)


@pytest.fixture
def kept(rehearsed, made):
    return deepcopy(made)


def ago(days):
    return str(today() - timedelta(days=days))


def begin(kept, *names, back, batch=None):
    """Enter the first day of students in an arm, so many days ago."""
    students = [kept.students[name] for name in names]
    body = {"students": students, "batch": batch or kept.batch, "started_on": ago(back)}
    kept.api.ok(kept.api.post(f"/cohorts/{kept.batch}/enrollment", body))


def remove(kept, name, **days):
    body = {"student_ids": [kept.students[name]], **days}
    kept.api.ok(kept.api.patch(f"/cohorts/{kept.batch}/remove_students", body))


def withdraw(kept, name, back):
    left = {"status": "WITHDRAWN", "left_on": ago(back)}
    kept.api.ok(kept.api.patch(f"/students/{kept.students[name]}", left))


def names(kept, back=0, **key):
    """Who is in a register, and how many are enrolled and unmarked."""
    register = kept.api.ok(kept.get(back, **key))
    return sorted(kept.codes(register)), register["enrolled"], register["unmarked"]


def unmarked(kept, back=0, **body):
    """Whom the handing in of a register without marks names."""
    answer = kept.put(back, submit=True, **body)
    if answer.status_code == 200:
        return []
    assert answer.status_code == 409, answer.get_json()
    ids = answer.get_json()["errors"]["json"]["unmarked"]
    return sorted(name for name, student in kept.students.items() if student in ids)


def test_who_begins_later_is_in_no_earlier_register(kept):
    begin(kept, "R/1", back=5)
    everybody = ["R/1", "R/2", "R/3"]

    # Of the others nobody entered a day: they are listed, and asked for and counted from today on.
    assert names(kept, 6) == (["R/2", "R/3"], 0, 0)
    assert names(kept, 5) == (everybody, 1, 1)
    assert names(kept) == (everybody, 3, 3)
    assert kept.put(6, codes={"R/1": "P"}).status_code == 422
    assert [unmarked(kept, back) for back in (6, 5, 0)] == [[], ["R/1"], everybody]


def test_who_left_is_in_the_registers_up_to_the_last_day(kept):
    begin(kept, "R/1", "R/2", "R/3", back=20)
    remove(kept, "R/1", ended_on=ago(5))
    remove(kept, "R/2")

    assert names(kept, 21) == ([], 0, 0)
    assert names(kept, 5) == (["R/1", "R/2", "R/3"], 3, 3)
    assert names(kept, 4) == (["R/2", "R/3"], 2, 2)
    # The removal is of today.
    assert names(kept) == (["R/2", "R/3"], 2, 2)
    assert unmarked(kept, 5) == ["R/1", "R/2", "R/3"]
    assert unmarked(kept, 5, codes={"R/2": "P", "R/3": "A"}) == ["R/1"]
    assert unmarked(kept, 5, default="P") == []


def test_who_withdrew_is_in_the_registers_up_to_the_date_of_leaving(kept):
    begin(kept, "R/1", "R/2", "R/3", back=20)
    withdraw(kept, "R/1", back=5)
    withdraw(kept, "R/2", back=5)
    remove(kept, "R/2", ended_on=ago(2))

    assert [names(kept, back)[0] for back in (5, 4, 2)] == [["R/1", "R/2", "R/3"], ["R/3"], ["R/3"]]
    kept.api.ok(kept.api.patch(f"/students/{kept.students['R/1']}", {"status": "ACTIVE"}))
    assert names(kept)[0] == ["R/1", "R/3"]


def test_a_mark_that_is_there_stays_and_counts(kept):
    begin(kept, "R/1", "R/2", "R/3", back=20)
    kept.take(3)
    kept.take(2, codes={"R/1": "A"})

    withdraw(kept, "R/1", back=4)
    remove(kept, "R/2", ended_on=ago(3))
    begin(kept, "R/3", back=1)

    assert names(kept, 3) == (["R/1", "R/2", "R/3"], 1, 0)
    assert names(kept, 2) == (["R/1", "R/2", "R/3"], 0, 0)
    assert kept.sums() == {"R/1": (2, 1, 0, 1, 0), "R/2": (2, 2, 0, 0, 0), "R/3": (2, 2, 0, 0, 0)}
    assert kept.api.ok(kept.put(2, codes={"R/1": "P"}, version=1))["present"] == 3


def test_a_movers_first_day_divides_the_registers(make, kept):
    other = make.batch(kept.cohort)["id"]
    begin(kept, "R/1", "R/2", "R/3", back=20)
    begin(kept, "R/1", back=5, batch=other)

    for back, of_old, of_new in ((6, ["R/1", "R/2", "R/3"], []), (5, ["R/2", "R/3"], ["R/1"])):
        assert names(kept, back) == (of_old, len(of_old), len(of_old))
        assert names(kept, back, batch=other) == (of_new, len(of_new), len(of_new))
    assert unmarked(kept, 6, codes={"R/2": "P", "R/3": "P"}) == ["R/1"]
    assert unmarked(kept, 5, default="P") == []
    assert unmarked(kept, 5, batch=other) == ["R/1"]


def test_a_mover_without_a_day_is_in_the_new_arm_from_the_day_of_the_move(make, kept):
    other = make.batch(kept.cohort)["id"]
    begin(kept, "R/1", "R/2", "R/3", back=20)
    make.enrolled(kept.cohort, {"id": kept.students["R/1"]}, batch=other)

    assert names(kept, 1) == (["R/1", "R/2", "R/3"], 3, 3)
    assert names(kept) == (["R/2", "R/3"], 2, 2)
    assert unmarked(kept, default="P") == []
    # In the registers of before they are listed, as all are who are in the class, and not asked for.
    assert names(kept, 1, batch=other) == (["R/1"], 0, 0)
    assert names(kept, batch=other) == (["R/1"], 1, 1)
    assert unmarked(kept, batch=other) == ["R/1"]


def test_who_moved_on_and_back_is_in_one_arm_a_day(make, kept):
    other = make.batch(kept.cohort)["id"]
    begin(kept, "R/1", back=20)
    begin(kept, "R/1", back=10, batch=other)
    begin(kept, "R/1", back=5)

    def arm(back):
        arms = [one for one in (kept.batch, other) if "R/1" in names(kept, back, batch=one)[0]]
        return [kept.batch, other].index(*arms)

    assert [arm(back) for back in (20, 11, 10, 6, 5, 0)] == [0, 0, 1, 1, 0, 0]


def test_a_mover_takes_the_lessons_of_the_arm_of_the_day(make, kept):
    other, subject = make.batch(kept.cohort)["id"], make.cohort_subject(kept.cohort)["id"]
    begin(kept, "R/1", "R/2", back=20)
    begin(kept, "R/1", back=5, batch=other)
    remove(kept, "R/3")
    lesson = {"cohort_subject": subject, "period": 1}

    assert names(kept, 6, **lesson)[0] == ["R/1", "R/2"]
    assert names(kept, 5, **lesson)[0] == ["R/2"]
    assert names(kept, 5, batch=other, **lesson)[0] == ["R/1"]


def test_a_day_of_the_school_counts_who_was_enrolled_then(api, kept):
    begin(kept, "R/1", "R/2", back=5)
    begin(kept, "R/3", back=3)
    withdraw(kept, "R/1", back=4)
    kept.take(4)

    def day(back):
        found = api.ok(api.get("/attendance/days", query_string={"date": ago(back)}))
        return [(one["enrolled"], one["present"], one["unmarked"]) for one in found]

    assert [day(back) for back in (6, 5, 4, 3)] == [[], [(2, 0, 2)], [(2, 2, 0)], [(2, 0, 2)]]


def test_a_register_is_missing_from_the_first_day_of_somebody_on(api, kept):
    begin(kept, "R/1", "R/2", "R/3", back=3)
    for name in kept.students:
        remove(kept, name, ended_on=ago(2))

    found = api.ok(api.get("/registers/missing", query_string={"from": ago(5), "to": ago(0)}))

    assert [one["date"] for one in found] == [ago(3), ago(2)]


def test_who_is_erased_is_in_no_register_without_a_mark(api, kept):
    begin(kept, "R/1", back=20)
    kept.take(3)
    withdraw(kept, "R/1", back=2)
    remove(kept, "R/1")
    api.ok(api.delete(f"/students/{kept.students['R/1']}/data"))

    assert names(kept, 3)[1] == 0
    assert len(names(kept, 3)[0]) == 3
    assert names(kept, 4)[0] == ["R/2", "R/3"]


def test_registers_cost_as_many_messages_with_days_as_without(kept, messages):
    def sent(back):
        with messages() as found:
            kept.api.ok(kept.get(back))
        return len(found)

    before = sent(3)
    begin(kept, "R/1", "R/2", "R/3", back=20)
    remove(kept, "R/2", ended_on=ago(3))

    assert sent(3) == before == 1
