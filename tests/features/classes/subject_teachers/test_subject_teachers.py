"""Teachers of subjects: assignments, and copying them into another session."""

from __future__ import annotations

from datetime import date, timedelta
from zoneinfo import ZoneInfo

import pytest

from tenants.clock import now
from tests.factories import UNKNOWN_ID

# Every test of the module has the same begin, whichever ran before.
pytestmark = pytest.mark.usefixtures("made_arms")

PATH = "/subject-teachers"


@pytest.fixture
def put(api):
    """Put assignments; answers those named."""
    return lambda *rows: api.ok(api.put(PATH, {"assignments": list(rows)}))


def row(subject, employee, batch=..., **dates):
    made = {"cohort_subject": subject["id"], "employee": employee["id"], **dates}
    return made if batch is ... else {**made, "batch": batch}


def listed(api, query=""):
    page = api.ok(api.get(PATH + query))
    assert page["total"] == len(page["data"])
    return page["data"]


class TestPutting:
    def test_an_assignment_names_subject_arm_teacher_and_days(self, api, make, put):
        cohort, employee = make.cohort(), make.employee()
        subject, batch = make.cohort_subject(cohort), make.batch(cohort, name="Gold")

        (made,) = put(row(subject, employee, batch["id"], starts_on="2026-01-05", ends_on="2026-06-30"))

        assert made == {
            "id": made["id"],
            "cohort_subject": subject["id"],
            "base": made["base"],
            "subject": subject["subject"],
            "code": subject["code"],
            "cohort": cohort["id"],
            "classroom": cohort["classroom"],
            "session": cohort["session"],
            "batch": batch["id"],
            "batch_name": "Gold",
            "employee": employee["id"],
            "title": employee["title"],
            "first_name": employee["first_name"],
            "last_name": employee["last_name"],
            "starts_on": "2026-01-05",
            "ends_on": "2026-06-30",
            "createdAt": made["createdAt"],
        }
        assert listed(api) == [made]

    def test_without_an_arm_it_is_of_all(self, api, make, put):
        subject, employee = make.cohort_subject(), make.employee()

        (made,) = put(row(subject, employee))

        assert (made["batch"], made["batch_name"], made["starts_on"], made["ends_on"]) == (None,) * 4

    def test_an_assignment_again_changes_nothing_and_other_dates_change_it(self, api, make, put):
        cohort, employee = make.cohort(), make.employee()
        subject = make.cohort_subject(cohort)
        for batch in (None, cohort["id"]):
            (made,) = put(row(subject, employee, batch))
            audited = entries(api)

            assert put(row(subject, employee, batch)) == [made]
            assert entries(api) == audited
            (changed,) = put(row(subject, employee, batch, ends_on="2026-06-30"))
            assert changed == {**made, "ends_on": "2026-06-30"}
            assert len(entries(api)) == len(audited) + 1

    def test_all_or_none(self, api, make, make_other, put):
        cohort, employee, other = make.cohort(), make.employee(), make.cohort()
        subject, deleted = make.cohort_subject(cohort), make.employee()
        api.ok(api.delete(f"/employees/{deleted['id']}"))
        theirs, their_subject = make_other.employee(), make_other.cohort_subject()
        good = row(subject, employee)

        def refused(name, *rows):
            answer = api.put(PATH, {"assignments": [good, *rows]})
            assert answer.status_code == 422
            assert list(answer.get_json()["errors"]["json"]) == [name]

        for wrong in (deleted, theirs, {"id": UNKNOWN_ID}):
            refused("assignments.1.employee", row(subject, wrong))
        for wrong in (their_subject, {"id": UNKNOWN_ID}):
            refused("assignments.1.cohort_subject", row(wrong, employee))
        for wrong in (other["id"], UNKNOWN_ID):
            refused("assignments.1.batch", row(subject, employee, wrong))
        refused("assignments.1.employee", good)
        refused(
            "assignments.1.ends_on",
            row(subject, employee, cohort["id"], starts_on="2026-02-02", ends_on="2026-02-01"),
        )
        assert listed(api) == []
        malformed = api.put(PATH, {"assignments": [good, {**good, "employee": 5}]})
        nested = {"assignments": {"1": {"employee": ["Not a valid UUID."]}}}
        assert malformed.get_json()["errors"] == {"json": nested}

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"assignments": []},
            {"assignments": None},
            {"assignments": [{}]},
            {"assignments": [{"cohort_subject": "x", "employee": UNKNOWN_ID}]},
            {"assignments": [{"cohort_subject": UNKNOWN_ID, "employee": UNKNOWN_ID, "starts_on": "today"}]},
            {"assignments": [{"cohort_subject": UNKNOWN_ID, "employee": UNKNOWN_ID}], "more": 1},
        ],
    )
    def test_an_invalid_body_is_refused(self, api, body):
        assert api.put(PATH, body).status_code == 422

    def test_the_number_of_messages_does_not_depend_on_their_number(self, api, make, messages):
        subjects, employee = [make.cohort_subject() for _ in range(6)], make.employee()

        def sent(*chosen):
            with messages() as counted:
                api.ok(api.put(PATH, {"assignments": [row(each, employee) for each in chosen]}))
            return len(counted)

        assert sent(subjects[0]) == sent(*subjects[1:]) <= 5


class TestListing:
    def test_assignments_are_filtered(self, api, make, put):
        cohort, teacher, colleague = make.cohort(), make.employee(), make.employee()
        batch, first, second = make.batch(cohort), make.cohort_subject(cohort), make.cohort_subject(cohort)
        elsewhere = make.cohort_subject()
        of_a, of_b, of_all, other = (
            put(each)[0]["id"]
            for each in (
                row(first, teacher, cohort["id"]),
                row(first, colleague, batch["id"]),
                row(second, teacher),
                row(elsewhere, colleague),
            )
        )

        def ids(query):
            return {each["id"] for each in listed(api, query)}

        assert ids("") == {of_a, of_b, of_all, other}
        assert ids(f"?cohort_subject={first['id']}") == {of_a, of_b}
        assert ids(f"?batch={batch['id']}") == {of_b, of_all}
        assert ids(f"?batch={cohort['id']}") == {of_a, of_all}
        assert ids(f"?employee={colleague['id']}") == {of_b, other}
        assert ids(f"?session={cohort['session']}") == {of_a, of_b, of_all}
        assert ids(f"?session={cohort['session']}&employee={colleague['id']}") == {of_b}
        for name in ("cohort_subject", "batch", "employee", "session"):
            assert api.get(f"{PATH}?{name}={UNKNOWN_ID}").status_code == 422

    def test_a_deleted_employee_teaches_nobody(self, api, make, put):
        subject, employee = make.cohort_subject(), make.employee()
        put(row(subject, employee))

        api.ok(api.delete(f"/employees/{employee['id']}?release=true"))

        assert listed(api) == []

    def test_a_list_is_one_message(self, api, make, put, messages):
        put(*(row(make.cohort_subject(), make.employee()) for _ in range(4)))
        with messages() as sent:
            assert len(listed(api)) == 4
        assert len(sent) == 1


def test_an_assignment_is_deleted(api, make, make_other, other_api, put):
    (made,) = put(row(make.cohort_subject(), make.employee()))
    theirs = other_api.ok(
        other_api.put(PATH, {"assignments": [row(make_other.cohort_subject(), make_other.employee())]})
    )

    assert api.ok(api.delete(f"{PATH}/{made['id']}")) == {"id": made["id"], "deleted": True}
    assert listed(api) == []
    for record in (made["id"], theirs[0]["id"], UNKNOWN_ID):
        assert api.delete(f"{PATH}/{record}").status_code == 404


class TestCopying:
    @pytest.fixture
    def year(self, make):
        """A cohort of last year with two arms and three subjects, and of this year with arm A and two of them."""
        room, shared, gone = make.classroom(), [make.subject(), make.subject()], make.subject()
        before = make.cohort(room)
        batch = make.batch(before, name="Gold")
        after = make.cohort(room)
        subjects = [make.cohort_subject(before, each) for each in (*shared, gone)]
        for each in shared:
            make.cohort_subject(after, each)
        return before, batch, after, subjects

    def test_assignments_with_a_match_are_copied_and_the_others_named(self, api, make, put, year):
        before, batch, after, (first, second, gone) = year
        stays, leaves = make.employee(), make.employee()
        put(
            row(first, stays, before["id"], starts_on="2020-01-01"),
            row(second, stays),
            row(first, stays, batch["id"]),
            row(gone, stays),
            row(second, leaves),
        )
        room = make.cohort(session={"id": before["session"]})
        put(row(make.cohort_subject(room), stays))
        api.ok(api.delete(f"/employees/{leaves['id']}?release=true"))
        sessions = {"from_session": before["session"], "to_session": after["session"]}

        dry = api.ok(api.post(f"{PATH}/copy?dry_run=true", sessions))
        assert listed(api, f"?session={after['session']}") == []
        copied = api.ok(api.post(f"{PATH}/copy", sessions))

        assert dry == copied
        assert (copied["rows"], copied["copied"], copied["already_there"]) == (6, 2, 0)
        assert {(each["code"], each["batch_name"]) for each in copied["left_out"]} == {
            ("NO_ARM", "Gold"),
            ("NO_SUBJECT", None),
            ("LEFT", None),
            ("NO_COHORT", None),
        }
        made = {
            (each["subject"], each["batch"]): each for each in listed(api, f"?session={after['session']}")
        }
        assert set(made) == {(first["subject"], after["id"]), (second["subject"], None)}
        assert made[first["subject"], after["id"]]["starts_on"] is None
        again = api.ok(api.post(f"{PATH}/copy", sessions))
        assert (again["copied"], again["already_there"], again["left_out"]) == (0, 2, copied["left_out"])

    def test_an_assignment_that_ended_before_its_session_is_left_out_and_named(self, api, make, put):
        """By the school's day, and not London's: `ends_on` is the last day of an assignment."""
        today = now().astimezone(ZoneInfo("Africa/Lagos")).date()
        day, room = timedelta(days=1), make.classroom()
        dates = {"start_date": str(today - 200 * day), "end_date": str(today + 100 * day)}
        before, after = make.cohort(room, session=make.session(**dates)), make.cohort(room)
        base = make.subject()
        subject = make.cohort_subject(before, base)
        make.cohort_subject(after, base)
        last = {
            name: make.employee(last_name=name)
            for name in ("Yesterday", "Today", "Tomorrow", "Lastday", "Later", "Nobound")
        }
        ends = {
            "Yesterday": today - day,
            "Today": today,
            "Tomorrow": today + day,
            "Lastday": today + 100 * day,
            "Later": today + 500 * day,
        }
        put(*(row(subject, last[name], ends_on=str(ends[name]) if name in ends else None) for name in last))
        sessions = {"from_session": before["session"], "to_session": after["session"]}

        answers = [api.ok(api.post(f"{PATH}/copy{query}", sessions)) for query in ("?dry_run=true", "", "")]

        left_out = {
            "classroom": room["name"],
            "subject": answers[0]["left_out"][0]["subject"],
            "batch_name": None,
            "employee_name": f"{last['Yesterday']['first_name']} Yesterday",
            "code": "ENDED",
        }
        assert [each["left_out"] for each in answers] == [[left_out]] * 3
        counts = [(each["rows"], each["copied"], each["already_there"]) for each in answers]
        assert counts == [(6, 5, 0), (6, 5, 0), (6, 0, 5)]
        assert {
            (each["last_name"], each["ends_on"]) for each in listed(api, f"?session={after['session']}")
        } == {(name, None) for name in last if name != "Yesterday"}

    def test_an_assignment_that_ended_with_its_session_is_copied_and_an_earlier_one_is_not(
        self, api, make, put
    ):
        room, dates = make.classroom(), {"start_date": "2024-09-09", "end_date": "2025-07-18"}
        before, after = make.cohort(room, session=make.session(**dates)), make.cohort(room)
        base = make.subject()
        subject = make.cohort_subject(before, base)
        make.cohort_subject(after, base)
        ended, stays = make.employee(last_name="Ended"), make.employee(last_name="Stays")
        put(row(subject, ended, ends_on="2025-07-17"), row(subject, stays, ends_on="2025-07-18"))

        answer = api.ok(
            api.post(f"{PATH}/copy", {"from_session": before["session"], "to_session": after["session"]})
        )

        assert (answer["rows"], answer["copied"]) == (2, 1)
        assert [each["code"] for each in answer["left_out"]] == ["ENDED"]
        (made,) = listed(api, f"?session={after['session']}")
        assert (made["last_name"], made["ends_on"]) == ("Stays", None)

    def test_an_assignment_is_left_out_with_the_first_of_several_codes(self, api, make, put, year):
        """LEFT before ENDED, and ENDED before a lack of the other session."""
        before, _, after, (_, _, gone) = year
        left, stays = make.employee(), make.employee()
        put(row(gone, left, ends_on="2020-01-01"), row(gone, stays, ends_on="2020-01-01"))
        api.ok(api.delete(f"/employees/{left['id']}?release=true"))

        sessions = {"from_session": before["session"], "to_session": after["session"]}
        left_out = api.ok(api.post(f"{PATH}/copy", sessions))["left_out"]

        assert {each["employee_name"]: each["code"] for each in left_out} == {
            f"{left['first_name']} {left['last_name']}": "LEFT",
            f"{stays['first_name']} {stays['last_name']}": "ENDED",
        }

    def test_sessions_that_are_none_or_the_same(self, api, make, make_other, year):
        before, _, after, _ = year
        for sessions in (
            {"from_session": before["session"], "to_session": before["session"]},
            {"from_session": before["session"], "to_session": UNKNOWN_ID},
            {"from_session": make_other.session()["id"], "to_session": after["session"]},
            {"from_session": before["session"]},
        ):
            assert api.post(f"{PATH}/copy", sessions).status_code == 422


class TestTeachersOfToday:
    """The relation: the students reached by a teacher whose permission is OWN."""

    @pytest.mark.parametrize(
        ("starts", "ends", "reaches"),
        [(None, None, True), (0, 0, True), (-1, 1, True), (1, None, False), (None, -1, False)],
    )
    def test_dates_are_inclusive(self, make, arms, own, starts, ends, reaches):
        today = date.fromisoformat(own.today())
        employee, teacher = own.teacher()
        days = {
            name: str(today + timedelta(days=days))
            for name, days in (("starts_on", starts), ("ends_on", ends))
            if days is not None
        }
        own.assign(employee, arms.subject, arms.a, **days)

        assert teacher.ok(teacher.get("/students"))["total"] == (len(arms.in_a) if reaches else 0)

    def test_the_relation_ends_sixty_days_after_a_session_that_is_not_current(self, make, arms, own):
        """Teachers of subjects and form teachers alike, and so do scores; the last day of all is in."""
        api, today = make.api, date.fromisoformat(own.today())
        subject_teacher, form_teacher = own.subject_teacher(arms.subject, arms.a), own.form_teacher(arms.a)
        assessment = make.assessment(arms.subject, arms.term)
        body = {"assessment": assessment["id"], "student": arms.in_a[0], "batch": arms.a, "score": 1}
        session = f"/sessions/{arms.session['id']}"

        for days, current, reaches in ((61, False, False), (61, True, True), (60, False, True)):
            ended = str(today - timedelta(days=days))
            api.ok(api.patch(session, {"start_date": "2020-01-01", "end_date": ended, "current": current}))
            for teacher in (subject_teacher, form_teacher):
                assert teacher.ok(teacher.get("/students"))["total"] == (len(arms.in_a) if reaches else 0)
                me = teacher.ok(teacher.get("/me"))
                assert bool(me["subjects"] + me["classes"]) == reaches
            status = subject_teacher.post("/gradebooks", body).status_code
            assert status == (422 if not reaches else 409 if days == 60 else 200)

    def test_a_deleted_teacher_reads_no_students(self, make, arms, own):
        employee, teacher = own.teacher()
        own.assign(employee, arms.subject, arms.a)
        assert teacher.ok(teacher.get("/students"))["total"] == len(arms.in_a)

        make.api.ok(make.api.delete(f"/employees/{employee['id']}?release=true"))

        # Their account goes with them, and so do their permissions.
        assert teacher.get("/students").status_code == 401


def entries(api):
    return api.ok(api.get("/audit?entity=subject-teacher"))["data"]
