"""Point 4 of what results must hold: what is submitted is changed by none of the writes that would change it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest

from tenants.registry.schools import schema_name
from tests.features.scoresheets.sheets import sheet_of
from tests.features.scoresheets.test_killed_server import watching_schools
from tests.features.submissions.classes import Class, message
from tests.threads import run_concurrently


class Writes:
    """A class of three, the first of whom is marked and the second is away, and each write that changes its results."""

    def __init__(self, make, **fields):
        self.make, self.api = make, make.api
        self.class_ = Class(make, 3, marked=1, **fields)
        self.assessment = self.class_.assessment
        path = f"/assessments/{self.assessment['id']}"
        self.scored, self.away, self.blank = self.class_.students
        self.away_path = f"{path}/absences"
        self.absent(self.away)
        found = self.api.ok(self.api.get("/gradebooks", query_string={"assessment": self.assessment["id"]}))
        self.entry = found["data"][0]["id"]
        numbers = {one: self.api.ok(self.api.get(f"/students/{one}"))["admission_number"] for one in
                   self.class_.students}  # fmt: skip
        self.rows = [(numbers[self.scored], "A", "B", 9)]

    def absent(self, student):
        body = {"absences": [{"student": student, "status": "ABSENT"}]}
        return self.api.put(self.away_path, body)

    def post_score(self):
        body = {"assessment": self.assessment["id"], "score": 3, "student": self.blank}
        return self.api.post("/gradebooks", {**body, "batch": self.class_.cohort["id"]})

    def patch_score(self):
        return self.api.patch(f"/gradebooks/{self.entry}", {"score": 3})

    def delete_score(self):
        return self.api.delete(f"/gradebooks/{self.entry}")

    def upload(self, query=""):
        form = {"scoresheet": (BytesIO(sheet_of(*self.rows)), "scores.xlsx")}
        return self.api.post(f"/assessments/{self.assessment['id']}/scoresheet{query}", data=form)

    def put_absence(self):
        return self.absent(self.blank)

    def delete_absence(self):
        return self.api.delete(f"{self.away_path}/{self.away}")

    def delete_assessment(self):
        return self.api.delete(f"/assessments/{self.assessment['id']}")

    def post_assessment(self):
        body = {
            "category": "EXAM",
            "subject": self.class_.subject,
            "name": "Late",
            "abbreviation": "L",
            "due_date": "2025-10-17",
            "total_points": 20,
            "term": self.class_.term["id"],
            "description": "x",
            "file_name": "late.xlsx",
            "include_in_final": False,
            "publish_scores": False,
        }
        return self.api.post("/assessments", body)


ACTS = (
    "post_score",
    "patch_score",
    "delete_score",
    "upload",
    "put_absence",
    "delete_absence",
    "delete_assessment",
    "post_assessment",
)


@pytest.fixture
def writes(make):
    return Writes(make)


@pytest.mark.parametrize("act", ACTS)
def test_point_4_once_submitted_no_score_absence_or_assessment_changes(api, writes, act):
    api.ok(writes.class_.submit(blanks="EXCUSED"))
    shown = api.get(f"/cohort-subjects/{writes.class_.subject}/results?term=FIRST").data

    answer = getattr(writes, act)()

    assert (answer.status_code, message(answer)) == (409, writes.class_.held)
    assert api.get(f"/cohort-subjects/{writes.class_.subject}/results?term=FIRST").data == shown


@pytest.mark.parametrize("act", ACTS)
def test_before_it_is_submitted_and_once_reopened_each_of_them_changes(api, make, act):
    before, after = Writes(make), Writes(make)
    # A blank has become an absence then: a score takes its place, and an absence may be another.
    api.ok(after.class_.submit(blanks="EXCUSED"))
    api.ok(after.class_.reopen())

    assert [getattr(one, act)().status_code for one in (before, after)] == [200, 200]


def test_a_rehearsal_of_a_sheet_is_refused_as_the_sheet_would_be(api, writes):
    api.ok(writes.class_.submit(blanks="EXCUSED"))

    answer = writes.upload("?dry_run=true")

    assert (answer.status_code, message(answer)) == (409, writes.class_.held)


def test_an_assessment_that_does_not_count_is_held_too(api, make):
    class_ = Class(make, 1)
    other = make.assessment(class_.taught.subject, class_.term, include_in_final=False)
    api.ok(class_.submit())

    answer = api.delete(f"/assessments/{other['id']}")

    assert (answer.status_code, message(answer)) == (409, class_.held)


def test_other_terms_and_subjects_are_not_held(api, make):
    class_ = Class(make, 1)
    second = make.term({"id": class_.cohort["session"]}, term="SECOND", display_name="Second term")
    elsewhere = make.cohort_subject(class_.cohort)
    api.ok(class_.submit())

    later = make.assessment(class_.taught.subject, second)
    beside = make.assessment(elsewhere, class_.term)

    for assessment in (later, beside):
        class_.score(class_.students[0], assessment=assessment)


def test_a_score_that_waits_for_a_submission_is_refused_after_it(committing, tenancy):
    """The row that it waited for says so when it has it: it was read once more."""
    writes = Writes(committing)
    schema = schema_name(committing.api.school)
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    hold = f"""
        INSERT INTO "{schema}".submissions (id, cohort_subject_id, cohort_id, session_id, term_id, submitted_at,
            submitted_by, submitted_by_name)
        SELECT id, cohort_subject_id, cohort_id, session_id, term_id, timestamptz '2026-01-01', 'x', 'x'
        FROM "{schema}".assessments;
        UPDATE "{schema}".assessments SET submission_id = id
    """
    with (
        tenancy.admin.connect() as submitting,
        watching_schools(tenancy) as watching,
        ThreadPoolExecutor(1) as thread,
    ):
        submitting.exec_driver_sql(hold)
        writes.api = committing.api.using()
        entering = thread.submit(writes.post_score)
        while not watching.exec_driver_sql(waiting).scalar_one():
            assert not entering.done()
        submitting.commit()
        answer = entering.result()

    assert (answer.status_code, message(answer)) == (409, writes.class_.held)


def test_point_6_of_twenty_who_race_a_submission_each_score_is_in_it_or_refused(committing):
    """The submission makes a blank of each score that did not come before it, on record, an absence."""
    class_ = Class(committing, 24, marked=8)
    api, students = committing.api, class_.students
    found = api.ok(api.get("/gradebooks", query_string={"batch": class_.cohort["id"]}))["data"]
    entries = {entry["student"]: entry["id"] for entry in found}

    def work(number):
        one = api.using()
        student = students[number]
        if number < 4:
            return one.patch(f"/gradebooks/{entries[student]}", {"score": 1})
        if number < 8:
            return one.delete(f"/gradebooks/{entries[student]}")
        if number == 8:
            body = {"term": "FIRST", "blanks": "ABSENT"}
            return one.post(f"/cohort-subjects/{class_.subject}/submission", body)
        body = {"assessment": class_.assessment["id"], "score": 2, "student": student}
        return one.post("/gradebooks", {**body, "batch": class_.cohort["id"]})

    answers = run_concurrently(20, work)

    assert answers[8].status_code == 200
    assert {answer.status_code for answer in answers} <= {200, 409}
    refused = [answer for answer in answers if answer.status_code == 409]
    assert {message(answer) for answer in refused} <= {class_.held}
    logged = api.ok(api.get("/audit", query_string={"entity": "absence", "pageSize": 100}))["data"]
    absent = {entry["new"]["student"] for entry in logged}
    shown = api.ok(api.get(f"/cohort-subjects/{class_.subject}/results?term=FIRST"))
    scores = {one["student"]["id"]: one["scores"][0]["score"] for one in shown}
    for number, answer in enumerate(answers):
        was_done, student = answer.status_code == 200, students[number]
        if number < 4:
            assert scores[student] == (1 if was_done else 12.5)
        elif number < 8:
            assert (student in absent, scores[student]) == (was_done, None if was_done else 12.5)
        elif number > 8:
            assert (student in absent, scores[student]) == (not was_done, 2 if was_done else None)
    # Who did nothing, and the place of the submission itself.
    assert {students[8], *students[20:]} <= absent


def test_an_assessment_is_added_before_a_submission_or_refused(committing):
    class_ = Class(committing, 2)
    api = committing.api
    writes = Writes(committing)
    writes.class_ = class_

    def work(number):
        if number == 5:
            body = {"term": "FIRST", "blanks": "ABSENT"}
            return api.using().post(f"/cohort-subjects/{class_.subject}/submission", body)
        one = object.__new__(Writes)
        one.class_, one.api = class_, api.using()
        return one.post_assessment()

    answers = run_concurrently(10, work)

    assert answers[5].status_code == 200
    added = sum(answer.status_code == 200 for answer in answers) - 1
    assert {answer.status_code for answer in answers} <= {200, 409}
    listed = api.ok(api.get("/assessments", query_string={
        "cohort": class_.cohort["id"], "subject": class_.subject, "term": class_.term["id"]}))  # fmt: skip
    assert listed["total"] == 1 + added
    for assessment in listed["data"]:
        answer = api.delete(f"/assessments/{assessment['id']}")
        assert (answer.status_code, message(answer)) == (409, class_.held)


def test_of_twenty_submissions_at_once_one_is_made(committing):
    class_ = Class(committing, 3, marked=1)
    api = committing.api

    def work(number):
        path = f"/cohort-subjects/{class_.subject}"
        if number % 5:
            return api.using().post(f"{path}/submission", {"term": "FIRST", "blanks": "ABSENT"})
        return api.using().post(f"{path}/reopening", {"term": "FIRST", "reason": "x"})

    answers = run_concurrently(20, work)

    assert {answer.status_code for answer in answers} <= {200, 409}
    logged = api.ok(api.get("/audit", query_string={"entity": "submission", "pageSize": 100}))["data"]
    acts = [entry["action"] for entry in reversed(logged)]
    # Each submission is reopened before there is another.
    assert acts == ["create", "update"] * (len(acts) // 2) + ["create"] * (len(acts) % 2)
    absences = api.ok(api.get("/audit", query_string={"entity": "absence"}))["total"]
    assert absences == 2
