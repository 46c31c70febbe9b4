"""Point 4 that results must hold: submitted results are changed by none of the writes that would change them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest

from tenants.registry.schools import schema_name
from tests.features.results.submissions.classes import Class, message
from tests.features.scores.scoresheets.sheets import sheet_of
from tests.features.scores.scoresheets.test_killed_server import watching_schools
from tests.prepared import prepared_for_each
from tests.threads import run_concurrently


class Writes:
    """A class of three, the first marked and the second away, and each write that changes its results."""

    def __init__(self, make, **fields):
        self.make, self.api = make, make.api
        self.class_ = Class(make, 3, marked=1, **fields)
        self.assessment = self.class_.assessment
        path = f"/assessments/{self.assessment['id']}"
        self.scored, self.away, self.blank = self.class_.students
        self.away_path = f"{path}/absences"
        self.absent(self.away)
        entries = self.api.ok(self.api.get("/gradebooks", query_string={"assessment": self.assessment["id"]}))
        self.entry = entries["data"][0]["id"]
        numbers = {student: self.api.ok(self.api.get(f"/students/{student}"))["admission_number"] for student in
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


SUBMITTING = {"term": "FIRST", "blanks": "ABSENT"}

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


original, writes = prepared_for_each(Writes)


@pytest.mark.parametrize("act", ACTS)
def test_point_4_once_submitted_no_score_absence_or_assessment_changes(api, writes, act):
    api.ok(writes.class_.submit(blanks="EXCUSED"))
    shown = api.get(f"/cohort-subjects/{writes.class_.subject}/results?term=FIRST").data

    answer = getattr(writes, act)()

    assert (answer.status_code, message(answer)) == (409, writes.class_.refusal)
    assert api.get(f"/cohort-subjects/{writes.class_.subject}/results?term=FIRST").data == shown


@pytest.mark.parametrize("act", ACTS)
def test_before_a_submission_and_once_reopened_each_write_changes_results(api, make, act):
    before, after = Writes(make), Writes(make)
    # A blank has become an absence then: a score takes its place, and an absence may be another.
    api.ok(after.class_.submit(blanks="EXCUSED"))
    api.ok(after.class_.reopen())

    assert [getattr(writes, act)().status_code for writes in (before, after)] == [200, 200]


def test_a_rehearsal_of_a_sheet_is_refused_as_the_sheet_would_be(api, writes):
    api.ok(writes.class_.submit(blanks="EXCUSED"))

    answer = writes.upload("?dry_run=true")

    assert (answer.status_code, message(answer)) == (409, writes.class_.refusal)


def test_an_assessment_that_does_not_count_is_held_too(api, make):
    class_ = Class(make, 1)
    other = make.assessment(class_.taught.subject, class_.term, include_in_final=False)
    api.ok(class_.submit())

    answer = api.delete(f"/assessments/{other['id']}")

    assert (answer.status_code, message(answer)) == (409, class_.refusal)


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
        INSERT INTO "{schema}".submissions (id, cohort_subject_id, batch_id, cohort_id, session_id, term_id,
            submitted_at, submitted_by, submitted_by_name)
        SELECT id, cohort_subject_id, cohort_id, cohort_id, session_id, term_id, timestamptz '2026-01-01', 'x', 'x'
        FROM "{schema}".assessments;
        UPDATE "{schema}".assessments SET submitted_batches = ARRAY[cohort_id]
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

    assert (answer.status_code, message(answer)) == (409, writes.class_.refusal)


def test_points_4_and_6_each_of_twenty_writes_beside_a_submission_is_in_it_or_refused(committing):
    """The submission makes an absence of each blank that it finds, so a write before it and one after it differ."""
    class_ = Class(committing, 18, marked=6)
    api, students, paper = committing.api, class_.students, class_.assessment
    papers = [committing.assessment(class_.taught.subject, class_.term) for _ in range(2)]
    api.ok(committing.absences(paper, dict.fromkeys(students[8:10], "EXCUSED")))
    gradebook = api.ok(api.get("/gradebooks", query_string={"batch": class_.cohort["id"]}))["data"]
    entries = {entry["student"]: f"/gradebooks/{entry['id']}" for entry in gradebook}
    numbers = [api.ok(api.get(f"/students/{student}"))["admission_number"] for student in students]
    away = f"/assessments/{paper['id']}/absences"

    def upload(api, student):
        sheet = sheet_of((numbers[student], "A", "B", 7))
        form = {"scoresheet": (BytesIO(sheet), "scores.xlsx")}
        return api.post(f"/assessments/{paper['id']}/scoresheet", data=form)

    def add(api, _student):
        new = object.__new__(Writes)
        new.class_, new.api = class_, api
        return new.post_assessment()

    def enter(api, student):
        body = {"assessment": paper["id"], "score": 2, "student": students[student]}
        return api.post("/gradebooks", {**body, "batch": class_.cohort["id"]})

    def excuse(api, student):
        return api.put(away, {"absences": [{"student": students[student], "status": "EXCUSED"}]})

    acts = [
        *[(lambda api, student: api.patch(entries[students[student]], {"score": 1}), n) for n in (0, 1)],
        *[(lambda api, student: api.delete(entries[students[student]]), n) for n in (2, 3)],
        *[(upload, n) for n in (4, 5)],
        *[(excuse, n) for n in (6, 7)],
        *[(lambda api, student: api.delete(f"{away}/{students[student]}"), n) for n in (8, 9)],
        (lambda api, _: api.post(f"/cohort-subjects/{class_.subject}/submission", SUBMITTING), None),
        *[(enter, n) for n in (10, 11, 12, 13, 14)],
        *[(add, None) for _ in range(2)],
        *[(lambda api, number: api.delete(f"/assessments/{papers[number]['id']}"), n) for n in (0, 1)],
    ]

    def work(number):
        act, about = acts[number]
        client = api.using()
        # The first of each two comes at once, the other looks at the class before: some are early and some are late.
        for _ in range(3 if number != 10 and number % 2 else 0):
            client.get("/submissions", query_string={"batch": class_.cohort["id"], "term": "FIRST"})
        return act(client, about)

    answers = run_concurrently(len(acts), work)

    assert len(acts) == 20
    assert answers[10].status_code == 200
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert {message(answer) for answer in answers if answer.status_code == 409} <= {class_.refusal}
    done = [answer.status_code == 200 for answer in answers]
    gradebook = api.ok(api.get("/gradebooks", query_string={"assessment": paper["id"]}))["data"]
    has = {entry["student"]: entry["score"] for entry in gradebook}
    absences = {absence["student"]["id"]: absence["status"] for absence in api.ok(api.get(away))}
    assert not has.keys() & absences.keys()
    has |= absences
    for number in range(10):
        before, after = [
            (12.5, 1),
            (12.5, "ABSENT"),
            (12.5, 7),
            ("ABSENT", "EXCUSED"),
            ("EXCUSED", "ABSENT"),
        ][number // 2]
        assert has[students[number]] == (after if done[number] else before)
    for number in range(10, 15):
        assert has[students[number]] == (2 if done[number + 1] else "ABSENT")
    assert [has[student] for student in students[15:]] == ["ABSENT"] * 3
    shown = api.ok(api.get(f"/cohort-subjects/{class_.subject}/results?term=FIRST"))
    counted = {frozenset(score["assessment"] for score in result["scores"]) for result in shown}
    # Papers that were added before do not count; those that were taken away are none of it.
    left = {paper["id"], *(spare["id"] for spare, gone in zip(papers, done[18:], strict=True) if not gone)}
    assert counted == {frozenset(left)}
    (listed,) = api.ok(class_.listed())
    assert (listed["state"], listed["assessments"], listed["blanks"]) == ("SUBMITTED", len(left), 0)
    query = {"cohort": class_.cohort["id"], "subject": class_.subject, "term": class_.term["id"]}
    every = api.ok(api.get("/assessments", query_string=query))
    assert every["total"] == len(left) + sum(done[16:18])


def test_an_assessment_is_added_before_a_submission_or_refused(committing):
    class_ = Class(committing, 2)
    api = committing.api
    writes = Writes(committing)
    writes.class_ = class_

    def work(number):
        if number == 5:
            body = {"term": "FIRST", "blanks": "ABSENT"}
            return api.using().post(f"/cohort-subjects/{class_.subject}/submission", body)
        writes = object.__new__(Writes)
        writes.class_, writes.api = class_, api.using()
        return writes.post_assessment()

    answers = run_concurrently(10, work)

    assert answers[5].status_code == 200
    added = sum(answer.status_code == 200 for answer in answers) - 1
    assert {answer.status_code for answer in answers} <= {200, 409}
    listed = api.ok(api.get("/assessments", query_string={
        "cohort": class_.cohort["id"], "subject": class_.subject, "term": class_.term["id"]}))  # fmt: skip
    assert listed["total"] == 1 + added
    for assessment in listed["data"]:
        answer = api.delete(f"/assessments/{assessment['id']}")
        assert (answer.status_code, message(answer)) == (409, class_.refusal)


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
