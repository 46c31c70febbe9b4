"""The students of a class on a day: by the days that the school entered, else by the days of entering."""

from __future__ import annotations

from datetime import timedelta

from tests.features.attendance.classes import Kept, today
from tests.prepared import prepared_for_each

original, class_ = prepared_for_each(Kept)


def ago(days):
    return str(today() - timedelta(days=days))


def begin(class_, *names, back, batch=None):
    """Enter the first day of students in an arm, so many days ago."""
    students = [class_.students[name] for name in names]
    body = {"students": students, "batch": batch or class_.batch, "started_on": ago(back)}
    class_.api.ok(class_.api.post(f"/cohorts/{class_.batch}/enrollment", body))


def remove(class_, name, **days):
    body = {"student_ids": [class_.students[name]], **days}
    class_.api.ok(class_.api.patch(f"/cohorts/{class_.batch}/remove_students", body))


def withdraw(class_, name, back):
    left = {"status": "WITHDRAWN", "left_on": ago(back)}
    class_.api.ok(class_.api.patch(f"/students/{class_.students[name]}", left))


def names(class_, back=0, **key):
    """The students in a register, and how many are enrolled and unmarked."""
    register = class_.api.ok(class_.get(back, **key))
    return sorted(class_.codes(register)), register["enrolled"], register["unmarked"]


def unmarked(class_, back=0, **body):
    """The students named when a register without marks is handed in."""
    answer = class_.put(back, submit=True, **body)
    if answer.status_code == 200:
        return []
    assert answer.status_code == 409, answer.get_json()
    ids = answer.get_json()["errors"]["json"]["unmarked"]
    return sorted(name for name, student in class_.students.items() if student in ids)


def test_a_student_who_begins_later_is_in_no_earlier_register(class_):
    begin(class_, "R/1", back=5)
    everybody = ["R/1", "R/2", "R/3"]

    # Of the others nobody entered a day: they are listed, and asked for and counted from today on.
    assert names(class_, 6) == (["R/2", "R/3"], 0, 0)
    assert names(class_, 5) == (everybody, 1, 1)
    assert names(class_) == (everybody, 3, 3)
    assert class_.put(6, codes={"R/1": "P"}).status_code == 422
    assert [unmarked(class_, back) for back in (6, 5, 0)] == [[], ["R/1"], everybody]


def test_a_student_who_left_is_in_the_registers_up_to_the_last_day(class_):
    begin(class_, "R/1", "R/2", "R/3", back=20)
    remove(class_, "R/1", ended_on=ago(5))
    remove(class_, "R/2")

    assert names(class_, 21) == ([], 0, 0)
    assert names(class_, 5) == (["R/1", "R/2", "R/3"], 3, 3)
    assert names(class_, 4) == (["R/2", "R/3"], 2, 2)
    # The removal is of today.
    assert names(class_) == (["R/2", "R/3"], 2, 2)
    assert unmarked(class_, 5) == ["R/1", "R/2", "R/3"]
    assert unmarked(class_, 5, codes={"R/2": "P", "R/3": "A"}) == ["R/1"]
    assert unmarked(class_, 5, default="P") == []


def test_a_withdrawn_student_is_in_the_registers_up_to_the_date_of_leaving(class_):
    begin(class_, "R/1", "R/2", "R/3", back=20)
    withdraw(class_, "R/1", back=5)
    withdraw(class_, "R/2", back=5)
    remove(class_, "R/2", ended_on=ago(2))

    assert [names(class_, back)[0] for back in (5, 4, 2)] == [["R/1", "R/2", "R/3"], ["R/3"], ["R/3"]]
    class_.api.ok(class_.api.patch(f"/students/{class_.students['R/1']}", {"status": "ACTIVE"}))
    assert names(class_)[0] == ["R/1", "R/3"]


def test_a_mark_that_is_there_stays_and_counts(class_):
    begin(class_, "R/1", "R/2", "R/3", back=20)
    class_.take(3)
    class_.take(2, codes={"R/1": "A"})

    withdraw(class_, "R/1", back=4)
    remove(class_, "R/2", ended_on=ago(3))
    begin(class_, "R/3", back=1)

    assert names(class_, 3) == (["R/1", "R/2", "R/3"], 1, 0)
    assert names(class_, 2) == (["R/1", "R/2", "R/3"], 0, 0)
    assert class_.sums() == {"R/1": (2, 1, 0, 1, 0), "R/2": (2, 2, 0, 0, 0), "R/3": (2, 2, 0, 0, 0)}
    assert class_.api.ok(class_.put(2, codes={"R/1": "P"}, version=1))["present"] == 3


def test_a_movers_first_day_divides_the_registers(make, class_):
    other = make.batch(class_.cohort)["id"]
    begin(class_, "R/1", "R/2", "R/3", back=20)
    begin(class_, "R/1", back=5, batch=other)

    for back, of_old, of_new in ((6, ["R/1", "R/2", "R/3"], []), (5, ["R/2", "R/3"], ["R/1"])):
        assert names(class_, back) == (of_old, len(of_old), len(of_old))
        assert names(class_, back, batch=other) == (of_new, len(of_new), len(of_new))
    assert unmarked(class_, 6, codes={"R/2": "P", "R/3": "P"}) == ["R/1"]
    assert unmarked(class_, 5, default="P") == []
    assert unmarked(class_, 5, batch=other) == ["R/1"]


def test_a_mover_without_a_day_is_in_the_new_arm_from_the_day_of_the_move(make, class_):
    other = make.batch(class_.cohort)["id"]
    begin(class_, "R/1", "R/2", "R/3", back=20)
    make.enrolled(class_.cohort, {"id": class_.students["R/1"]}, batch=other)

    assert names(class_, 1) == (["R/1", "R/2", "R/3"], 3, 3)
    assert names(class_) == (["R/2", "R/3"], 2, 2)
    assert unmarked(class_, default="P") == []
    # In the registers of before they are listed, as all students of the class are, and not asked for.
    assert names(class_, 1, batch=other) == (["R/1"], 0, 0)
    assert names(class_, batch=other) == (["R/1"], 1, 1)
    assert unmarked(class_, batch=other) == ["R/1"]


def test_a_student_who_moved_on_and_back_is_in_one_arm_a_day(make, class_):
    other = make.batch(class_.cohort)["id"]
    begin(class_, "R/1", back=20)
    begin(class_, "R/1", back=10, batch=other)
    begin(class_, "R/1", back=5)

    def arm(back):
        arms = [batch for batch in (class_.batch, other) if "R/1" in names(class_, back, batch=batch)[0]]
        return [class_.batch, other].index(*arms)

    assert [arm(back) for back in (20, 11, 10, 6, 5, 0)] == [0, 0, 1, 1, 0, 0]


def test_a_mover_takes_the_lessons_of_the_arm_of_the_day(make, class_):
    other, subject = make.batch(class_.cohort)["id"], make.cohort_subject(class_.cohort)["id"]
    begin(class_, "R/1", "R/2", back=20)
    begin(class_, "R/1", back=5, batch=other)
    remove(class_, "R/3")
    lesson = {"cohort_subject": subject, "period": 1}

    assert names(class_, 6, **lesson)[0] == ["R/1", "R/2"]
    assert names(class_, 5, **lesson)[0] == ["R/2"]
    assert names(class_, 5, batch=other, **lesson)[0] == ["R/1"]


def test_a_day_of_the_school_counts_the_students_enrolled_then(api, class_):
    begin(class_, "R/1", "R/2", back=5)
    begin(class_, "R/3", back=3)
    withdraw(class_, "R/1", back=4)
    class_.take(4)

    def day(back):
        days = api.ok(api.get("/attendance/days", query_string={"date": ago(back)}))
        return [(day["enrolled"], day["present"], day["unmarked"]) for day in days]

    assert [day(back) for back in (6, 5, 4, 3)] == [[], [(2, 0, 2)], [(2, 2, 0)], [(2, 0, 2)]]


def test_a_register_is_missing_from_the_first_day_of_somebody_on(api, class_):
    begin(class_, "R/1", "R/2", "R/3", back=3)
    for name in class_.students:
        remove(class_, name, ended_on=ago(2))

    registers = api.ok(api.get("/registers/missing", query_string={"from": ago(5), "to": ago(0)}))

    assert [register["date"] for register in registers] == [ago(3), ago(2)]


def test_an_erased_student_is_in_no_register_without_a_mark(api, class_):
    begin(class_, "R/1", back=20)
    class_.take(3)
    withdraw(class_, "R/1", back=2)
    remove(class_, "R/1")
    api.ok(api.delete(f"/students/{class_.students['R/1']}/data"))

    assert names(class_, 3)[1] == 0
    assert len(names(class_, 3)[0]) == 3
    assert names(class_, 4)[0] == ["R/2", "R/3"]


def test_registers_cost_as_many_messages_with_days_as_without(class_, messages):
    def sent(back):
        with messages() as statements:
            class_.api.ok(class_.get(back))
        return len(statements)

    before = sent(3)
    begin(class_, "R/1", "R/2", "R/3", back=20)
    remove(class_, "R/2", ended_on=ago(3))

    assert sent(3) == before == 1
