"""A session set up as another one was: records made, present and left out."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.prepared import prepared_for_each
from tests.threads import run_concurrently

ALL = ["TERMS", "COHORTS", "SUBJECTS", "ASSESSMENTS", "FORM_TEACHERS"]


class Year:
    """A session with two classes, the first with two arms, subjects, assessments, a calendar and form teachers."""

    def __init__(self, make, first="2025-09-08", last="2026-07-24"):
        self.make, self.api = make, make.api
        self.session = make.session(start_date=first, end_date=last)
        self.terms = [
            make.term(self.session, term=term, display_name=f"{term.title()} term")
            for term in ("FIRST", "SECOND", "THIRD")
        ]
        calendar = {
            "start_date": first,
            "end_date": last,
            "times_opened": 124,
            "next_term_begins": "2026-01-12",
            "notice": "Fees are due.",
        }
        self.api.ok(self.api.put(f"/terms/{self.terms[0]['id']}/calendar", calendar))
        self.rooms = [make.classroom(), make.classroom()]
        self.cohorts = [make.cohort(room, self.session) for room in self.rooms]
        self.arm = make.batch(self.cohorts[0], name="Ògo")
        self.maths, self.art = make.subject(name="Mathematics"), make.subject(name="Fine Art")
        self.taught = [make.cohort_subject(cohort, self.maths) for cohort in self.cohorts]
        self.elective = make.cohort_subject(self.cohorts[0], self.art, elective=True)
        for taught in self.taught:
            make.assessment(taught, self.terms[0], name="CA 1", due_date="2025-10-17")
            make.assessment(taught, self.terms[2], name="Exam", category="EXAM", due_date="2026-07-24")
        self.teacher = make.employee()
        self.form_teacher(self.arm["id"], self.teacher)

    def form_teacher(self, batch, employee):
        return self.api.ok(self.api.patch(f"/teachers/{batch}/add_to_batch", {"teacher_id": employee["id"]}))

    def next(self, first="2026-09-07", last="2027-07-23"):
        return self.make.session(start_date=first, end_date=last)

    def copy(self, target, *parts, dry_run=False, api=None, **body):
        asked = {"session": self.session["id"], **({"parts": list(parts)} if parts else {}), **body}
        query = "?dry_run=true" if dry_run else ""
        return (api or self.api).post(f"/sessions/{target['id']}/copy-from{query}", asked)

    def cohorts_of(self, session):
        return [
            cohort for cohort in self.api.ok(self.api.get("/cohorts")) if cohort["session"] == session["id"]
        ]

    def number_logged(self):
        return self.api.ok(self.api.get("/audit?pageSize=1"))["total"]


original, year = prepared_for_each(Year)


def records_of(answer, outcome=None):
    """The records of a copy by part and name, with the outcome of each, or all of one outcome."""
    return [
        (row["part"], row["record"], row["name"]) if outcome else (row["name"], row["outcome"])
        for row in answer["rows"]
        if outcome in (None, row["outcome"])
    ]


def errors(answer, place="json"):
    assert answer.status_code == 422, answer.get_data(as_text=True)
    return answer.get_json()["errors"][place]


# Records that are made


def test_all_records_of_a_session_are_copied(year):
    target = year.next()
    first, second = (room["name"] for room in year.rooms)

    answer = year.api.ok(year.copy(target))

    assert (answer["session"], answer["copied_from"]) == (target["id"], year.session["id"])
    assert (answer["made"], answer["present"], answer["left_out"]) == (len(answer["rows"]), 0, 0)
    rows = records_of(answer, "MADE")
    assert rows[:4] == [
        ("TERMS", "term", "First term"),
        ("TERMS", "term-calendar", "First term: calendar"),
        ("TERMS", "term", "Second term"),
        ("TERMS", "term", "Third term"),
    ]
    assert sorted(rows[4:]) == sorted(
        [
            ("COHORTS", "cohort", first),
            ("COHORTS", "batch", f"{first} A"),
            ("COHORTS", "batch", f"{first} Ògo"),
            ("COHORTS", "cohort", second),
            ("COHORTS", "batch", f"{second} A"),
            ("SUBJECTS", "cohort-subject", f"{first} Mathematics"),
            ("SUBJECTS", "cohort-subject", f"{second} Mathematics"),
            ("SUBJECTS", "cohort-subject", f"{first} Fine Art"),
            ("ASSESSMENTS", "assessment", f"{first} Mathematics, First term: CA 1"),
            ("ASSESSMENTS", "assessment", f"{first} Mathematics, Third term: Exam"),
            ("ASSESSMENTS", "assessment", f"{second} Mathematics, First term: CA 1"),
            ("ASSESSMENTS", "assessment", f"{second} Mathematics, Third term: Exam"),
            ("FORM_TEACHERS", "form-teacher", f"{first} Ògo: {year.teacher['first_name']} {year.teacher['last_name']}"),
        ]
    )  # fmt: skip


def test_copies_are_as_their_originals(year):
    target = year.next()

    rows = year.api.ok(year.copy(target))["rows"]

    ids = {row["name"]: row["id"] for row in rows}
    first = year.rooms[0]["name"]
    terms = year.api.ok(year.api.get(f"/terms?session_id={target['id']}"))
    assert [(term["term"], term["displayName"]) for term in terms] == [
        ("FIRST", "First term"),
        ("SECOND", "Second term"),
        ("THIRD", "Third term"),
    ]
    assert year.api.ok(year.api.get(f"/terms/{ids['First term']}/calendar")) == {
        "term": {"id": ids["First term"], "term": "FIRST"},
        "start_date": "2026-09-07",
        "end_date": "2027-07-23",
        "times_opened": None,
        "next_term_begins": "2027-01-11",
        "notice": None,
    }
    cohorts = year.cohorts_of(target)
    assert {cohort["id"] for cohort in cohorts} == {ids[room["name"]] for room in year.rooms}
    arms = {batch["name"]: batch for batch in year.api.ok(year.api.get(f"/cohorts/{ids[first]}/batches"))}
    assert arms["A"]["id"] == ids[first]
    assert arms["Ògo"]["id"] == ids[f"{first} Ògo"]
    taught = year.api.ok(year.api.get(f"/cohort-subjects?batch={ids[first]}"))["data"]
    assert {(subject["subject"], subject["elective"]) for subject in taught} == {
        ("Mathematics", False),
        ("Fine Art", True),
    }
    exam = year.api.ok(year.api.get(f"/assessments/{ids[f'{first} Mathematics, Third term: Exam']}"))
    assert (exam["due_date"], exam["category"], exam["total_points"]) == ("2027-07-23", "EXAM", 20)
    assert exam["term"] == ids["Third term"]
    teacher = year.api.ok(year.api.get(f"/teachers/{ids[f'{first} Ògo']}"))
    assert teacher["teacher_id"] == year.teacher["id"]
    # Which session is current is not changed.
    assert not year.api.ok(year.api.get(f"/sessions/{target['id']}"))["current"]


def test_a_name_that_has_the_session_in_it_gets_the_new_one(year):
    source = year.make.session()
    year.make.term(source, display_name=f"First Term {source['name']}")
    target = year.next()

    (row,) = year.api.ok(year.copy(target, session=source["id"]))["rows"]

    assert row["name"] == f"First Term {target['name']}"
    (term,) = year.api.ok(year.api.get(f"/terms?session_id={target['id']}"))
    assert term["displayName"] == row["name"]


def test_a_dry_run_says_the_same_and_makes_nothing(year):
    target = year.next()
    before = year.number_logged()

    tried = year.api.ok(year.copy(target, dry_run=True))
    assert (year.cohorts_of(target), year.number_logged()) == ([], before)
    done = year.api.ok(year.copy(target))

    assert {row["id"] for row in tried["rows"]} == {None}
    assert [{**row, "id": None} for row in done["rows"]] == tried["rows"]
    assert (tried["dry_run"], done["dry_run"], tried["made"]) == (True, False, done["made"])


def test_a_second_copy_makes_nothing(year):
    target = year.next()
    first = year.api.ok(year.copy(target))
    before = year.number_logged()

    again = year.api.ok(year.copy(target, session=year.session["name"]))

    assert (again["made"], again["present"], again["left_out"]) == (0, first["made"], 0)
    assert [(row["name"], row["id"]) for row in again["rows"]] == [
        (row["name"], row["id"]) for row in first["rows"]
    ]
    assert year.number_logged() == before


def test_each_record_is_on_record_as_one_made_by_itself(year):
    target, before = year.next(), year.number_logged()

    answer = year.api.ok(year.copy(target))

    made = year.api.ok(year.api.get("/audit?pageSize=100"))["data"][: year.number_logged() - before]
    assert sorted(entry["entity"] for entry in made) == sorted(row["record"] for row in answer["rows"])
    assert {entry["action"] for entry in made if entry["entity"] != "term-calendar"} == {"create"}


def test_records_of_the_new_session_stay(year):
    target = year.next()
    own = year.make.cohort(year.rooms[0], target)
    student = year.make.student()
    year.make.enrolled(own, student)
    art = year.make.cohort_subject(own, year.art)

    answer = year.api.ok(year.copy(target, "TERMS", "COHORTS", "SUBJECTS", "ASSESSMENTS"))

    first = year.rooms[0]["name"]
    there = {(row["name"], row["id"]) for row in answer["rows"] if row["outcome"] == "PRESENT"}
    assert there == {(first, own["id"]), (f"{first} A", own["id"]), (f"{first} Fine Art", art["id"])}
    # Students of the class take the compulsory subjects that it gets.
    (maths,) = [row["id"] for row in answer["rows"] if row["name"] == f"{first} Mathematics"]
    (taker,) = year.api.ok(year.api.get(f"/scoresheets/{maths}/scoresheet"))
    assert taker["student"]["id"] == student["id"]


def test_an_assessment_that_is_there_twice_is_made_twice(year):
    year.make.assessment(year.taught[0], year.terms[0], name="CA 1", due_date="2025-11-01")
    target = year.next()

    first = year.api.ok(year.copy(target))
    again = year.api.ok(year.copy(target))

    named = [row for row in first["rows"] if row["name"].endswith("First term: CA 1")]
    assert len(named) == 3
    assert (again["made"], again["present"]) == (0, first["made"])


# Records that are left out


@pytest.mark.parametrize(
    ("parts", "left_out", "reason"),
    [
        (["SUBJECTS"], "SUBJECTS", "{first} has no cohort in {session}."),
        (["ASSESSMENTS"], "ASSESSMENTS", "{first} has no cohort in {session}."),
        (["COHORTS", "ASSESSMENTS"], "ASSESSMENTS", "Mathematics is not taught in {first} in {session}."),
        (["COHORTS", "SUBJECTS", "ASSESSMENTS"], "ASSESSMENTS", "{session} has no term FIRST."),
        (["FORM_TEACHERS"], "FORM_TEACHERS", "There is no {first} Ògo in {session}."),
    ],
)
def test_records_that_rest_on_an_absent_part_are_left_out(year, parts, left_out, reason):
    target = year.next()

    answer = year.api.ok(year.copy(target, *parts))

    rows = [row for row in answer["rows"] if row["part"] == left_out]
    assert {row["outcome"] for row in rows} == {"LEFT_OUT"}
    assert {row["id"] for row in rows} == {None}
    words = reason.format(first=year.rooms[0]["name"], session=target["name"])
    assert words in {row["reason"] for row in rows}
    assert answer["made"] == sum(row["outcome"] == "MADE" for row in answer["rows"])


def test_former_employees_are_named(year):
    year.api.ok(year.api.delete(f"/employees/{year.teacher['id']}?release=true"))
    # A deleted employee teaches nobody any more: an account that is deleted by itself leaves its class.
    other = year.make.employee()
    year.form_teacher(year.arm["id"], other)
    account = year.make.account_of(other)
    year.api.ok(year.api.delete(f"/users/{account['id']}/delete"))

    answer = year.api.ok(year.copy(year.next()))

    (row,) = [row for row in answer["rows"] if row["part"] == "FORM_TEACHERS"]
    assert (row["outcome"], row["reason"]) == (
        "LEFT_OUT",
        f"{other['first_name']} {other['last_name']} is no longer an employee.",
    )


def test_a_submitted_subject_gets_no_assessment(year):
    target = year.next()
    copied = year.api.ok(year.copy(target, "TERMS", "COHORTS", "SUBJECTS", "ASSESSMENTS"))
    first = year.rooms[0]["name"]
    ids = {row["name"]: row["id"] for row in copied["rows"]}
    assert year.api.ok(year.api.delete(f"/assessments/{ids[f'{first} Mathematics, First term: CA 1']}"))
    subject = {"id": ids[f"{first} Mathematics"]}
    year.make.assessment(subject, {"id": ids["First term"]}, name="Another")
    year.api.ok(year.api.post(f"/cohort-subjects/{subject['id']}/submission", {"term": "FIRST"}))

    answer = year.api.ok(year.copy(target))

    rows = {row["name"]: row for row in answer["rows"]}
    held = rows[f"{first} Mathematics, First term: CA 1"]
    assert (held["outcome"], held["reason"]) == (
        "LEFT_OUT",
        "The results of the subject and term are submitted.",
    )


def test_registers_and_school_days_are_not_copied(year):
    register = {"batch": year.arm["id"], "date": "2025-09-15", "part": "DAY"}
    year.api.ok(year.api.put("/registers", {**register, "default": "P"}))
    year.api.ok(year.api.put("/school-days", {"days": [{"date": "2025-10-01", "status": "CLOSED"}]}))
    target = year.next()

    year.api.ok(year.copy(target))

    cohort = next(
        cohort for cohort in year.cohorts_of(target) if cohort["classroom"] == year.rooms[0]["name"]
    )
    arms = year.api.ok(year.api.get(f"/cohorts/{cohort['id']}/batches"))
    for arm in arms:
        asked = {**register, "batch": arm["id"], "date": "2026-09-14"}
        assert year.api.ok(year.api.get("/registers", query_string=asked))["id"] is None
    # The day that is as far from the session's first day.
    (day,) = year.api.ok(year.api.get("/school-days?from=2026-09-30&to=2026-09-30"))
    assert day["parts"] == ["DAY"]


def test_deleted_assessments_are_not_copied(year):
    query = {"cohort": year.cohorts[0]["id"], "subject": year.maths["id"], "term": "FIRST"}
    (assessment,) = year.api.ok(year.api.get("/assessments", query_string=query))["data"]
    year.api.ok(year.api.delete(f"/assessments/{assessment['id']}"))

    answer = year.api.ok(year.copy(year.next()))

    assert sum(row["part"] == "ASSESSMENTS" for row in answer["rows"]) == 3


# Dates


@pytest.mark.parametrize(
    ("first", "last", "due", "shifted"),
    [
        ("2026-09-07", "2027-07-23", "2025-10-17", "2026-10-16"),
        # Kept within the session, whichever end it would fall off.
        ("2026-09-07", "2027-06-30", "2026-07-24", "2027-06-30"),
        ("2026-09-07", "2027-07-23", "2025-09-01", "2026-09-07"),
        # A session that was before, and one with a leap day.
        ("2023-09-11", "2024-07-26", "2026-02-28", "2024-03-02"),
        ("2027-09-06", "2028-07-21", "2026-03-03", "2028-02-29"),
        ("2025-09-08", "2026-07-24", "2025-10-17", "2025-10-17"),
    ],
)
def test_due_dates_are_shifted_by_days(year, first, last, due, shifted):
    year.make.assessment(year.taught[0], year.terms[1], name="Shifted", due_date=due)

    answer = year.api.ok(year.copy(year.next(first, last)))

    (row,) = [row for row in answer["rows"] if row["name"].endswith("Shifted")]
    assert row["due_date"] == shifted
    assert year.api.ok(year.api.get(f"/assessments/{row['id']}"))["due_date"] == shifted


def test_days_that_would_be_beyond_the_last_year_are_the_last_of_the_session(year):
    answer = year.api.ok(year.copy(year.next("9999-09-06", "9999-12-31")))

    dates = {row["due_date"] for row in answer["rows"]}
    assert dates == {None, "9999-10-15", "9999-12-31"}
    calendar = next(row for row in answer["rows"] if row["record"] == "term-calendar")
    stored = year.api.ok(year.api.get(f"/terms/{calendar['id']}/calendar"))
    assert (stored["start_date"], stored["next_term_begins"]) == ("9999-09-06", "9999-12-31")


def test_a_calendar_stays_within_the_session(year):
    answer = year.api.ok(year.copy(year.next("2026-09-07", "2026-10-01")))

    row = next(row for row in answer["rows"] if row["record"] == "term-calendar")
    assert (row["start_date"], row["end_date"]) == ("2026-09-07", "2026-10-01")


# Refusals


def test_unknown_sessions_and_the_same_one_are_refused(year, make_other):
    target, foreign = year.next(), make_other.session()

    for record in ({"id": str(uuid4())}, foreign):
        assert year.copy(record).status_code == 404
    for session in (str(uuid4()), foreign["id"], foreign["name"], "1066/1067"):
        assert errors(year.copy(target, session=session)) == {"session": ["no such session"]}
    assert errors(year.copy(year.session)) == {"session": ["is the same session"]}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"parts": []}, "parts"),
        ({"parts": ["TERMS"] * 6}, "parts"),
        ({"parts": ["terms"]}, "parts"),
        ({"parts": "TERMS"}, "parts"),
        ({"parts": None}, "parts"),
        ({"session": None}, "session"),
        ({"session": 1}, "session"),
        ({"session": ""}, "session"),
        ({"from": "x"}, "from"),
    ],
)
def test_wrong_bodies_are_refused(year, body, field):
    assert list(errors(year.copy(year.next(), **body))) == [field]


def test_a_dry_run_is_true_or_false(year):
    answer = year.api.post(
        f"/sessions/{year.next()['id']}/copy-from?dry_run=perhaps", {"session": year.session["id"]}
    )

    assert list(errors(answer, "query")) == ["dry_run"]


def test_each_part_needs_the_permission_of_its_records(year):
    clerk = year.make.caller("write:terms", "write:cohorts")
    target = year.next()

    for dry_run in (True, False):
        answer = year.copy(target, api=clerk, dry_run=dry_run)
        assert answer.status_code == 403
        assert answer.get_json()["message"] == (
            "Copying these parts needs the permissions write:assessments, write:cohort-subjects, write:teachers."
        )
    year.api.ok(year.copy(target, "TERMS", "COHORTS", api=clerk))


def test_a_copy_of_an_empty_session_makes_nothing(year):
    empty = year.make.session()

    answer = year.api.ok(year.copy(year.next(), session=empty["id"]))

    assert (answer["rows"], answer["made"]) == ([], 0)


def test_the_same_key_copies_once(year):
    target, key = year.next(), {"Idempotency-Key": str(uuid4())}
    body = {"session": year.session["id"]}

    answers = [
        year.api.ok(year.api.post(f"/sessions/{target['id']}/copy-from", body, headers=key)) for _ in range(2)
    ]

    assert answers[0] == answers[1]


# Round trips, and several at once


@pytest.mark.parametrize("classes", [0, 12])
def test_messages_and_inserts_do_not_depend_on_the_number_of_records(year, messages, classes):
    for _ in range(classes):
        cohort = year.make.cohort(session=year.session)
        taught = year.make.cohort_subject(cohort, year.maths)
        year.make.assessment(taught, year.terms[0])
    target = year.next()

    with messages() as sent:
        year.api.ok(year.copy(target))
    with messages() as tried:
        year.api.ok(year.copy(target, dry_run=True))

    assert (len(sent), len(tried)) == (5, 3)
    assert sum(message.count("INSERT INTO") for message in sent) == 10


def test_of_several_copies_at_once_one_makes_the_records(committing):
    year = Year(committing)
    target = year.next()

    def copy(_number):
        return year.api.ok(year.copy(target, api=year.api.using()))

    answers = run_concurrently(4, copy)

    total = len(answers[0]["rows"])
    assert sorted(answer["made"] for answer in answers) == [0, 0, 0, total]
    assert len(year.cohorts_of(target)) == 2
    assert len(year.api.ok(year.api.get(f"/terms?session_id={target['id']}"))) == 3
