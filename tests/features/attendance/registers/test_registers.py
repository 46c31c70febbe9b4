"""Registers: taken, submitted, corrected, deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.factories import UNKNOWN_ID
from tests.features.attendance.classes import Kept, today
from tests.features.reach.conftest import Own
from tests.prepared import prepared_for_each

original, class_ = prepared_for_each(Kept)


def test_a_register_that_nobody_took_shows_the_class(api, class_):
    register = api.ok(class_.get())

    assert register["id"] is None
    assert (register["state"], register["version"], register["part"]) == ("NOT_TAKEN", 0, "DAY")
    assert class_.codes(register) == {"R/1": None, "R/2": None, "R/3": None}
    assert (register["enrolled"], register["unmarked"], register["present"]) == (3, 3, 0)
    assert register["term"] == {"id": class_.term["id"], "term": "FIRST"}


def test_a_class_with_one_absent_is_a_short_request(api, class_):
    register = class_.take(codes={"R/2": "A"})

    assert register == api.ok(class_.get())
    assert class_.codes(register) == {"R/1": "P", "R/2": "A", "R/3": "P"}
    assert (register["state"], register["version"]) == ("SUBMITTED", 1)
    assert [register[name] for name in ("enrolled", "present", "late", "absent", "excused", "unmarked")] == [
        3, 2, 0, 1, 0, 0,
    ]  # fmt: skip
    ((action, old, new),) = class_.log()
    assert (action, old) == ("create", None)
    assert new == {
        "part": "DAY",
        "date": register["date"],
        "state": "SUBMITTED",
        "source": "hand",
        "changed": dict(zip(class_.students.values(), "PAP", strict=True)),
    }


def test_the_same_again_changes_nothing(api, class_):
    first = class_.take(codes={"R/2": "A"})

    for _ in range(9):
        assert class_.take(codes={"R/2": "A"}) == first

    assert len(class_.log()) == 1


def test_two_devices_that_marked_alike_end_alike(class_):
    codes = {"R/1": "P", "R/2": "A", "R/3": "L"}

    first, second = (class_.put(codes=codes, version=0) for _ in range(2))

    assert (first.status_code, second.status_code) == (200, 200)
    assert first.get_json() == second.get_json()


def test_where_two_devices_differ_a_person_decides(api, class_):
    class_.api.ok(class_.put(codes={"R/1": "P", "R/2": "A"}))

    refused = class_.put(codes={"R/1": "P", "R/2": "L", "R/3": "A"})

    assert refused.status_code == 409
    told = refused.get_json()["errors"]["json"]
    assert told["marks"] == [
        {
            "student": class_.students["R/2"],
            "admission_number": "R/2",
            "stored": {"code": "A", "note": None, "arrived": None},
            "given": {"code": "L", "note": None, "arrived": None},
        }
    ]
    assert (told["version"], told["changed_by_name"]) == (1, "School Administrator")
    assert class_.codes(api.ok(class_.get())) == {"R/1": "P", "R/2": "A", "R/3": None}
    forced = api.ok(class_.put(codes={"R/1": "P", "R/2": "L", "R/3": "A"}, force=True))
    assert (class_.codes(forced), forced["version"]) == ({"R/1": "P", "R/2": "L", "R/3": "A"}, 2)
    assert class_.log()[-1][2]["forced"] is True
    # A caller who saw that version changes its marks.
    assert class_.codes(api.ok(class_.put(codes={"R/2": "E"}, version=2)))["R/2"] == "E"


def test_marks_of_other_students_are_taken_of_an_old_version(api, class_):
    api.ok(class_.put(codes={"R/1": "P"}))
    api.ok(class_.put(codes={"R/2": "A"}, version=1))

    register = api.ok(class_.put(codes={"R/3": "L"}, version=1))

    assert (class_.codes(register), register["version"]) == ({"R/1": "P", "R/2": "A", "R/3": "L"}, 3)


def test_a_default_fills_empty_marks_and_replaces_none(api, class_):
    api.ok(class_.put(codes={"R/1": "A"}))

    register = api.ok(class_.put(default="p", submit=True))

    assert class_.codes(register) == {"R/1": "A", "R/2": "P", "R/3": "P"}
    assert api.ok(class_.put(default="A")) == register


def test_a_default_marks_students_who_came_after_the_day_too(api, class_):
    # Enrolled today.
    assert class_.codes(class_.take(5)) == {"R/1": "P", "R/2": "P", "R/3": "P"}


def test_members_left_out_of_a_mark_stay_and_null_clears_them(api, class_):
    student = class_.students["R/1"]

    def mark(version, **members):
        body = {"marks": [{"student": student, **members}], "version": version}
        first = api.ok(class_.put(**body))["marks"][0]
        return first["code"], first["note"], first["arrived"]

    assert mark(0, code="L", arrived="08:15", note="  Rain.\nAgain  ") == ("L", "Rain.\nAgain", "08:15")
    assert mark(1, note="The bus") == ("L", "The bus", "08:15")
    assert mark(2, arrived=None) == ("L", "The bus", None)
    assert mark(3, arrived="00:00") == ("L", "The bus", "00:00")
    # A student who is not late has no time of arrival.
    assert mark(4, code="A") == ("A", "The bus", None)
    assert mark(5, note=None) == ("A", None, None)
    assert mark(6, code=None) == (None, None, None)


def test_a_mark_that_was_taken_away_is_filled_again_without_a_conflict(api, class_):
    api.ok(class_.put(codes={"R/1": "P", "R/2": "P"}))
    api.ok(class_.put(codes={"R/1": None}, version=1))

    register = api.ok(class_.put(codes={"R/1": "A"}, version=0))

    assert class_.codes(register) == {"R/1": "A", "R/2": "P", "R/3": None}


def test_any_marking_makes_a_draft_at_least_once(api, class_):
    register = api.ok(class_.put())

    assert (register["state"], register["version"]) == ("DRAFT", 1)
    assert api.ok(class_.put(taken_at=str(datetime.now(UTC)))) == register
    assert len(class_.log()) == 1


def test_a_submitted_register_keeps_everybody_marked(api, class_):
    register = class_.take()

    refused = class_.put(codes={"R/1": None}, version=1)

    assert refused.status_code == 409
    assert refused.get_json()["errors"]["json"] == {"unmarked": [class_.students["R/1"]]}
    assert api.ok(class_.get()) == register
    changed = api.ok(class_.put(codes={"R/1": "A"}, version=1))
    assert (changed["state"], class_.codes(changed)["R/1"]) == ("SUBMITTED", "A")


def test_a_register_with_somebody_unmarked_is_not_submitted(api, class_):
    refused = class_.put(codes={"R/1": "P", "R/3": "P"}, submit=True)

    assert refused.status_code == 409
    assert "R/2" in refused.get_json()["message"]
    assert api.ok(class_.get())["state"] == "NOT_TAKEN"
    # Enrolled today: of a day before they need not be marked, and do not count.
    submitted = api.ok(class_.put(1, codes={"R/1": "P"}, submit=True))
    counts = [submitted[name] for name in ("state", "enrolled", "present", "unmarked")]
    assert counts == ["SUBMITTED", 0, 1, 0]


def test_the_office_corrects_and_the_mark_stays_beside_it(api, class_):
    class_.take(codes={"R/2": "A"})
    corrected = api.ok(class_.correct(codes={"R/2": "E"}))

    assert (corrected["version"], corrected["absent"], corrected["excused"]) == (1, 1, 1)
    for body in ({"version": 1}, {"version": 1, "force": True}):
        register = api.ok(class_.put(codes={"R/2": "P"}, **body))
        mark = register["marks"][1]
        assert (mark["code"], mark["correction"]["code"], mark["counts"]) == ("P", "E", "EXCUSED")
    assert (mark["correction"]["reason"], mark["correction"]["by"]) == ("Told", "School Administrator")
    back = api.ok(class_.correct(codes={"R/2": None}))["marks"][1]
    assert (back["code"], back["correction"], back["counts"]) == ("P", None, "PRESENT")
    named = {"part": "DAY", "date": corrected["date"], "register": corrected["id"]}
    assert class_.log("attendance-correction") == [
        ("create", None, {**named, "code": "E"}),
        ("delete", {**named, "code": "E"}, None),
    ]


def test_a_correction_waits_for_a_register_that_nobody_took(api, class_):
    waiting = api.ok(class_.correct(codes={"R/3": "E"}))
    assert (waiting["state"], waiting["version"], waiting["excused"]) == ("NOT_TAKEN", 0, 1)

    register = class_.take()

    assert (register["version"], register["present"], register["excused"]) == (1, 2, 1)
    assert register["marks"][2]["code"] == "P"


def test_a_correction_alone_counts_as_a_mark_when_a_register_is_submitted(api, class_):
    api.ok(class_.correct(codes={"R/3": "E"}))

    register = api.ok(class_.put(codes={"R/1": "P", "R/2": "P"}, submit=True))

    assert (register["state"], class_.codes(register)["R/3"], register["excused"]) == ("SUBMITTED", None, 1)


def test_a_correction_taken_back_before_anybody_marked_leaves_nothing(api, class_):
    waiting = api.ok(class_.correct(codes={"R/3": "E"}))
    assert waiting["id"]

    assert api.ok(class_.correct(codes={"R/3": None, "R/1": None})) == api.ok(class_.get())
    assert api.ok(class_.get())["id"] is None


def test_a_deleted_register_was_never_taken(api, class_):
    taken = class_.take()
    api.ok(class_.correct(codes={"R/1": "A"}))

    assert api.ok(api.delete(f"/registers/{taken['id']}")) == {"id": taken["id"], "deleted": True}

    assert api.delete(f"/registers/{taken['id']}").status_code == 404
    assert api.ok(class_.get())["state"] == "NOT_TAKEN"
    # A version of the register that was is none of this one.
    class_.take(codes={"R/1": "A"})
    assert class_.put(codes={"R/1": "P"}, version=9).status_code == 409


def test_a_register_is_shown_by_its_id_as_by_its_key(api, make, make_other, class_, messages):
    subject = make.cohort_subject(class_.cohort)["id"]
    elective = make.cohort_subject(class_.cohort, elective=True)["id"]
    api.ok(api.patch(f"/cohort-subjects/{elective}/students", [class_.students["R/2"]]))
    class_.take(codes={"R/1": "L"})
    api.ok(class_.correct(codes={"R/3": "E"}))
    class_.take(cohort_subject=subject, period=1, codes={"R/2": "A"})
    api.ok(class_.put(1, cohort_subject=elective, period=20, default="P"))
    api.ok(api.patch(f"/students/{class_.students['R/3']}", {"status": "WITHDRAWN"}))
    keys = [
        (0, {}),
        (0, {"cohort_subject": subject, "period": 1}),
        (1, {"cohort_subject": elective, "period": 20}),
    ]
    for back, key in keys:
        register = api.ok(class_.get(back, **key))
        with messages() as sent:
            response = api.get(f"/registers/{register['id']}")
        assert (api.ok(response), len(sent)) == (register, 1)
    assert list(class_.codes(api.ok(response))) == ["R/2"]
    assert make_other.api.get(f"/registers/{register['id']}").status_code == 404
    for unknown in (UNKNOWN_ID, class_.batch):
        assert api.get(f"/registers/{unknown}").status_code == 404
    api.ok(api.delete(f"/registers/{register['id']}"))
    assert api.get(f"/registers/{register['id']}").status_code == 404


def test_a_register_is_deleted_as_it_was_read(api, class_):
    path = f"/registers/{class_.take()['id']}"
    seen = api.get(path).headers["ETag"]
    api.ok(class_.correct(codes={"R/1": "A"}))

    assert api.delete(path, headers={"If-Match": seen}).status_code == 412
    assert api.delete(path, headers={"If-Match": api.get(path).headers["ETag"]}).status_code == 200


def test_a_register_by_its_id_needs_its_permission_and_is_of_one_s_own(api, make, class_):
    own = Own(make)
    subject = make.cohort_subject(class_.cohort)
    day = class_.take()["id"]
    lesson = class_.take(cohort_subject=subject["id"], period=1)["id"]
    other_arm = make.batch(class_.cohort)["id"]
    teacher = own.subject_teacher(subject, class_.batch, "read:attendance")
    callers = {
        teacher: (404, 200),
        own.subject_teacher(subject, other_arm, "read:attendance"): (404, 404),
        own.form_teacher(class_.batch, "read:attendance"): (200, 200),
        own.form_teacher(other_arm, "read:attendance"): (404, 404),
        make.caller("delete:attendance", "read:students"): (403, 403),
        make.caller("read:attendance"): (200, 200),
    }
    for caller, expected in callers.items():
        assert (
            tuple(caller.get(f"/registers/{register_id}").status_code for register_id in (day, lesson))
            == expected
        )
    unknown, out_of_reach = teacher.get(f"/registers/{UNKNOWN_ID}"), teacher.get(f"/registers/{day}")
    assert unknown.get_json()["message"] == out_of_reach.get_json()["message"]


def test_lessons_have_registers_of_their_own(api, make, class_):
    base = make.subject(name="Àkọ́kọ́")
    subject = make.cohort_subject(class_.cohort, base)
    elective = make.cohort_subject(class_.cohort, elective=True)
    api.ok(api.patch(f"/cohort-subjects/{elective['id']}/students", [class_.students["R/2"]]))
    lesson = {"cohort_subject": subject["id"], "period": 1}

    taken = class_.take(codes={"R/1": "A"}, **lesson)
    other = class_.take(**{**lesson, "period": 2})
    chosen = class_.take(cohort_subject=elective["id"], period=1)

    assert [taken[name] for name in ("part", "period", "cohort_subject", "subject")] == [
        "LESSON",
        1,
        subject["id"],
        "Àkọ́kọ́",
    ]
    assert len({taken["id"], other["id"], chosen["id"]}) == 3
    assert class_.codes(chosen) == {"R/2": "P"}
    assert api.ok(class_.get())["state"] == "NOT_TAKEN"
    sums = api.ok(
        api.get("/attendance/summary", query_string={"term": "FIRST", "cohort_subject": subject["id"]})
    )
    assert [(row["opened"], row["present"], row["absent"]) for row in sums] == [
        (2, 1, 1),
        (2, 2, 0),
        (2, 2, 0),
    ]
    of_days = api.ok(api.get("/attendance/summary", query_string={"term": "FIRST", "batch": class_.batch}))
    assert {row["opened"] for row in of_days} == {0}


def test_a_code_that_changes_later_rewrites_no_past_day(api, class_):
    class_.take(codes={"R/1": "A", "R/2": "L"})
    path = f"/attendance/summary?term=FIRST&batch={class_.batch}"
    before, shown = api.ok(api.get(path)), api.ok(class_.get())
    codes = [("P", "PRESENT"), ("A", "EXCUSED"), ("X", "ABSENT")]

    api.ok(api.put("/attendance-codes", [{"code": c, "name": c, "kind": kind} for c, kind in codes]))

    assert (api.ok(api.get(path)), api.ok(class_.get())) == (before, shown)
    # The same again is the mark that is there, also with a code that is gone.
    assert api.ok(class_.put(codes={"R/1": "A", "R/2": "L"}, version=1)) == shown
    assert class_.put(codes={"R/3": "L"}, version=1).status_code == 422
    assert api.ok(class_.put(codes={"R/3": "A"}, version=1))["marks"][2]["kind"] == "EXCUSED"


def test_students_who_leave_or_withdraw_keep_their_marks_and_are_in_no_register_without_one(
    api, make, class_
):
    class_.take()
    api.ok(
        api.patch(
            f"/cohorts/{class_.cohort['id']}/remove_students", {"student_ids": [class_.students["R/1"]]}
        )
    )
    api.ok(api.patch(f"/students/{class_.students['R/2']}", {"status": "WITHDRAWN"}))

    register = api.ok(class_.get())

    assert class_.codes(register) == {"R/1": "P", "R/2": "P", "R/3": "P"}
    # The first is removed today, and was in the class today.
    assert (register["enrolled"], register["present"], register["unmarked"]) == (2, 3, 0)
    assert class_.codes(api.ok(class_.get(1))) == {"R/3": None}
    assert class_.put(1, codes={"R/2": "P"}).status_code == 422
    # Their mark can still be changed.
    assert class_.codes(api.ok(class_.put(codes={"R/1": "A"}, version=1)))["R/1"] == "A"


def wrong(class_, **body):
    answer = class_.put(**body)
    assert answer.status_code == 422, answer.get_data(as_text=True)
    return answer.get_json()["errors"]["json"]


def test_invalid_marks_are_422_and_nothing_is_stored(api, make, class_, make_other):
    arm = make.batch(class_.cohort)
    class_.admit(1, arm["id"])
    stranger = make_other.student()
    mark = {"student": class_.students["R/1"], "code": "P"}
    good = {"student": class_.students["R/2"], "code": "P"}
    for marks, field in (
        ([good, {"student": class_.students["R/4"], "code": "P"}], "marks"),
        ([good, {"student": stranger["id"], "code": "P"}], "marks"),
        ([good, {"student": UNKNOWN_ID, "code": "P"}], "marks"),
        ([mark, mark], "marks"),
        ([good, {**mark, "code": "Z"}], "marks.0.code"),
        ([good, {**mark, "note": "\0"}], "marks"),
        ([good, {**mark, "note": "x" * 201}], "marks"),
        ([good, {**mark, "note": ""}], "marks"),
        ([good, {**mark, "code": "L", "arrived": "25:00"}], "marks"),
        ([good, {**mark, "code": "L", "arrived": "8:00"}], "marks"),
        ([good, {**mark, "arrived": "08:00"}], "marks.1.arrived"),
        ([good, {"student": mark["student"], "note": "none to be of"}], "marks.1.note"),
        ([good, {**mark, "code": None, "note": "x"}], "marks.1.note"),
        ([good, {**mark, "code": "PPPPP"}], "marks"),
        ([good, {**mark, "kind": "PRESENT"}], "marks"),
        ([good] * 1001, "marks"),
        ("P", "marks"),
    ):
        fields = wrong(class_, marks=marks)
        assert field in fields or field.replace(".0.", ".1.") in fields, (marks, fields)
    assert api.ok(class_.get())["id"] is None


def test_a_key_is_of_a_part_of_a_day_or_of_a_lesson(api, make, class_, make_other):
    subject, other = make.cohort_subject(class_.cohort)["id"], make.cohort_subject()["id"]
    for key, field in (
        ({"part": None}, "part"),
        ({"part": "DAY", "cohort_subject": subject, "period": 1}, "cohort_subject"),
        ({"period": 3}, "cohort_subject"),
        ({"part": None, "cohort_subject": subject}, "period"),
        ({"cohort_subject": subject, "period": 0}, "period"),
        ({"cohort_subject": subject, "period": 21}, "period"),
        ({"cohort_subject": other, "period": 1}, "cohort_subject"),
        ({"cohort_subject": UNKNOWN_ID, "period": 1}, "cohort_subject"),
        ({"part": "NIGHT"}, "part"),
        ({"batch": UNKNOWN_ID}, "batch"),
        ({"batch": make_other.cohort()["id"]}, "batch"),
        ({"batch": "x"}, "batch"),
        ({"date": "2026-02-30"}, "date"),
    ):
        asked = class_.get(**key)
        assert (asked.status_code, list(asked.get_json()["errors"]["query"])) == (422, [field]), key
        assert list(wrong(class_, default="P", **key)) == [field], key
        corrected = class_.correct(codes={"R/1": "A"}, **key)
        assert list(corrected.get_json()["errors"]["json"]) == [field], key
    # Of a half the school has none.
    assert list(wrong(class_, part="MORNING")) == ["part"]


def test_the_body_has_its_bounds(class_):
    for member, value in (
        ("version", -1), ("version", "1"), ("default", "Z"), ("submit", 1), ("force", "true"),
        ("taken_at", "2026-01-01T08:00:00"), ("taken_at", 5), ("taken_at", "1999-01-01T00:00:00Z"),
        ("taken_at", str(datetime.now(UTC) + timedelta(minutes=6))), ("nonsense", 1),
    ):  # fmt: skip
        assert list(wrong(class_, **{member: value})) == [member]
    assert class_.api.ok(class_.put(default="P", taken_at=str(datetime.now(UTC) + timedelta(minutes=4))))[
        "taken_at"
    ]


def test_corrections_have_their_bounds(api, class_):
    student = class_.students["R/1"]
    for corrections in (
        [], [{"student": student, "code": "A"}], [{"student": student, "code": "A", "reason": ""}],
        [{"student": student, "code": "A", "reason": "x" * 501}], [{"student": student, "code": "Z", "reason": "x"}],
        [{"student": student, "reason": "x"}], [{"student": UNKNOWN_ID, "code": "A", "reason": "x"}],
        [{"student": student, "code": None}] * 2, [{"student": student, "code": None}] * 1001,
    ):  # fmt: skip
        answer = api.put("/registers/corrections", {**class_.key(), "corrections": corrections})
        assert answer.status_code == 422, corrections
    assert api.ok(class_.get())["id"] is None


def test_an_old_register_is_changed_by_the_office(api, make, class_):
    class_.set(lock_after=7)
    teacher = make.caller("read:attendance", "write:attendance", "delete:attendance")
    office = make.caller("write:attendance", "write:attendance-corrections")

    assert class_.put(7, api=teacher, default="P").status_code == 200
    refused = class_.put(8, api=teacher, default="P")

    assert (refused.status_code, refused.get_json()["message"]) == (
        403,
        "Registers older than 7 days are changed by the office.",
    )
    assert class_.put(8, api=office, default="P").status_code == 200
    old = api.ok(class_.get(8))["id"]
    assert teacher.delete(f"/registers/{old}").status_code == 403
    assert class_.correct(9, codes={"R/1": "A"}, api=office).status_code == 200
    assert class_.correct(7, codes={"R/1": "A"}, api=teacher).status_code == 403
    class_.set(lock_after=0)
    assert class_.put(1, api=teacher, default="A").status_code == 403
    assert class_.put(0, api=teacher, default="A").status_code == 200
    class_.set(lock_after=None)
    assert class_.put(60, api=teacher, default="P").status_code == 200


def test_a_register_stays_in_its_term_when_the_calendar_moves(api, class_):
    class_.take(1)
    before = class_.sums()

    api.ok(api.put(f"/terms/{class_.term['id']}/calendar", {**class_.calendar, "start_date": str(today())}))

    assert class_.sums() == before
    assert {opened for opened, *_ in before.values()} == {1}


@pytest.mark.parametrize("kind", ["term", "cohort_subject", "student"])
def test_a_record_that_registers_refer_to_is_not_deleted(api, make, class_, kind):
    subject = make.cohort_subject(class_.cohort)["id"]
    class_.take(cohort_subject=subject, period=1)
    path, users = {
        "term": (f"/terms/{class_.term['id']}", "1 register"),
        "cohort_subject": (f"/cohort-subjects/{subject}", "1 register"),
        "student": (f"/students/{class_.students['R/1']}", "1 attendance mark"),
    }[kind]

    refused = api.delete(path)

    assert refused.status_code == 409
    assert users in refused.get_json()["message"]


def test_an_arm_with_a_register_is_not_deleted(api, make, class_):
    arm = make.batch(class_.cohort)["id"]
    register = class_.take(batch=arm)

    refused = api.delete(f"/batches/{arm}")

    assert (refused.status_code, "1 register" in refused.get_json()["message"]) == (409, True)
    api.ok(api.delete(f"/registers/{register['id']}"))
    api.ok(api.delete(f"/batches/{arm}"))


def test_days_without_school_have_no_register(api, make, class_):
    assert list(wrong(class_, back=-1, default="P")) == ["date"]
    assert class_.correct(-1, codes={"R/1": "A"}).status_code == 422
    class_.close(2, name="Independence Day")
    closed = class_.put(2, default="P")
    assert (closed.status_code, closed.get_json()["message"]) == (
        409,
        f"The school is closed on {class_.key(2)['date']}: Independence Day.",
    )
    assert class_.correct(2, codes={"R/1": "A"}).status_code == 409
    before = class_.put(120, default="P")
    assert (before.status_code, before.get_json()["message"]) == (
        409,
        f"{class_.key(120)['date']} is in no term of the session.",
    )
    api.ok(api.put(f"/terms/{class_.term['id']}/calendar", {}))
    assert "No term of the session has dates" in class_.put(default="P").get_json()["message"]
    assert api.ok(class_.get())["term"] is None


def test_a_saturday_is_closed_until_it_is_said_to_be_open(api, class_):
    class_.set(weekdays=[day for day in range(1, 8) if day != today().isoweekday()])
    assert class_.put(default="P").status_code == 409

    class_.say({"date": class_.key()["date"], "status": "OPEN", "name": "Make-up day"})

    assert class_.put(default="P").status_code == 200


def test_a_half_holiday_closes_a_half(api, class_):
    class_.set(parts="HALF_DAYS")
    class_.close(0, part="AFTERNOON", name="Sports")

    assert class_.put(part="MORNING", default="P").status_code == 200
    closed = class_.put(part="AFTERNOON", default="P")
    assert closed.get_json()["message"] == f"The school is closed on {class_.key()['date']}: Sports."
    assert class_.put(part="DAY").status_code == 422


def test_a_lesson_is_held_where_a_part_of_its_day_is_open(api, make, class_):
    class_.set(parts="HALF_DAYS")
    subject = make.cohort_subject(class_.cohort)["id"]
    class_.close(0, part="AFTERNOON")

    assert class_.put(cohort_subject=subject, period=1, default="P").status_code == 200

    class_.close(0, part="MORNING")
    assert class_.put(cohort_subject=subject, period=2, default="P").status_code == 409


def test_reading_is_one_round_trip_and_marking_four(api, make, class_, messages):
    names = class_.admit(37)
    for send, most in (
        (class_.get, 1),
        (lambda: class_.put(default="P", codes={"R/1": "A"}), 4),
        (lambda: class_.put(codes=dict.fromkeys(names, "A"), version=1), 4),
        (lambda: class_.put(codes=dict.fromkeys(names, None), version=2), 4),
        (lambda: class_.put(default="P", submit=True), 4),
        (lambda: class_.correct(codes=dict.fromkeys(names, "L")), 4),
        (lambda: class_.correct(codes=dict.fromkeys(names, None)), 4),
        (class_.get, 1),
        (lambda: api.get(f"/registers/missing?date={class_.key()['date']}"), 1),
        (lambda: api.get(f"/attendance/days?date={class_.key()['date']}"), 1),
        (lambda: api.get(f"/attendance/summary?term=FIRST&batch={class_.batch}"), 1),
        (lambda: api.get(f"/students/{class_.students['R/1']}/attendance?term=FIRST"), 1),
        (lambda: api.get("/attendance-codes"), 1),
        (lambda: api.get("/attendance-settings"), 1),
        (lambda: api.get("/school-days?from=2026-01-01&to=2026-12-31"), 1),
        (lambda: api.put("/school-days", {"days": [{"date": "2020-01-01", "status": "CLOSED"}]}), 4),
    ):
        with messages() as sent:
            send()
        assert len(sent) == most, sent


def test_the_copy_of_a_students_data_has_marks_and_no_entry_of_a_register(api, class_):
    class_.take(codes={"R/1": "A"})
    api.ok(class_.correct(codes={"R/1": "E"}))

    told = api.ok(api.get(f"/students/{class_.students['R/1']}/data"))

    (mark,) = told["marks"]
    assert (mark["code"], mark["correction_code"], mark["reason"]) == ("A", "E", "Told")
    assert "School Administrator" not in str(mark)
    assert {entry["entity"] for entry in told["audit"]} & {"register", "attendance-correction"} == {
        "attendance-correction"
    }
