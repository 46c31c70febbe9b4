"""Correcting assessments: the changes that scores and submissions allow."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from tenants.registry.schools import schema_name
from tests.features.results.submissions.classes import Class
from tests.features.scores.scoresheets.sheets import upload
from tests.features.scores.scoresheets.test_killed_server import watching_schools
from tests.prepared import prepared_for_each
from tests.threads import run_concurrently


def message(answer):
    return answer.get_json()["message"]


def reasons(answer):
    assert answer.status_code == 422, answer.get_data(as_text=True)
    return answer.get_json()["errors"]["json"]


original, taught = prepared_for_each(Class)


def path(taught):
    return f"/assessments/{taught.assessment['id']}"


def test_total_points_are_not_below_a_score_that_is_there(api, make, taught):
    other = make.assessment(taught.taught.subject, taught.term)
    highest = taught.score(taught.students[0], 19, other)

    answer = api.patch(path(taught), {"total_points": 12.49, "name": "Changed"})

    assert (answer.status_code, message(answer)) == (
        409,
        "Total points can't be 12.49: there is a score of 12.5.",
    )
    assert answer.get_json()["errors"] == {"json": {"total_points": ["there is a score of 12.5"]}}
    assert api.ok(api.get(path(taught))) == taught.assessment
    assert api.ok(api.patch(path(taught), {"total_points": 12.5}))["total_points"] == 12.5
    refused = api.patch(f"/gradebooks/{highest['id']}", {"score": 20.5})
    assert refused.status_code == 422


def test_without_scores_they_may_be_any(api, make, taught):
    other = make.assessment(taught.taught.subject, taught.term)

    assert api.ok(api.patch(f"/assessments/{other['id']}", {"total_points": 0.01}))["total_points"] == 0.01


@pytest.mark.parametrize("points", [0, -1, 100000, "20", None, True, 1.001, [], {}])
def test_points_that_are_none_are_refused(api, taught, points):
    assert list(reasons(api.patch(path(taught), {"total_points": points}))) == ["total_points"]
    assert api.ok(api.get(path(taught))) == taught.assessment


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("category", "CA4"),
        ("due_date", "2025-02-30"),
        ("include_in_final", "true"),
        ("publish_scores", 1),
        ("term", 1),
        ("term", "FOURTH"),
        ("subject", "8d736798-5cb1-469f-b5ad-03ce763e47e9"),
        ("deleted_at", None),
        ("file_name", "x" * 256),
    ],
)
def test_other_members_keep_their_form(api, taught, field, value):
    assert list(reasons(api.patch(path(taught), {field: value}))) == [field]


def test_an_assessment_of_submitted_scores_stays_until_they_are_reopened(api, taught):
    api.ok(taught.submit())
    for changes in ({"name": "Changed"}, {"total_points": 30}, {"term": "FIRST"}, {}):
        answer = api.patch(path(taught), changes)

        assert (answer.status_code, message(answer)) == (409, taught.refusal)

    api.ok(taught.reopen())
    assert api.ok(api.patch(path(taught), {"name": "Changed"}))["name"] == "Changed"


def test_an_assessment_moves_to_another_term_of_the_session_with_its_scores(api, make, taught):
    second = make.term({"id": taught.cohort["session"]}, term="SECOND")

    moved = api.ok(api.patch(path(taught), {"term": "SECOND"}))

    assert moved == {**taught.assessment, "term": second["id"]}
    gradebooks = api.ok(api.get("/gradebooks", query_string={"term": second["id"]}))
    assert gradebooks["total"] == 2
    assert api.ok(api.patch(path(taught), {"term": taught.term["id"]})) == taught.assessment
    entries = api.ok(api.get("/audit", query_string={"entity": "assessment"}))["data"]
    assert [entry["new"] for entry in entries][:2] == [{"term": taught.term["id"]}, {"term": second["id"]}]


def test_an_assessment_moves_to_no_term_that_is_submitted_unknown_or_of_another_session(api, make, taught):
    second = make.term({"id": taught.cohort["session"]}, term="SECOND")
    other = make.assessment(taught.taught.subject, second)
    for student in taught.students:
        taught.score(student, assessment=other)
    api.ok(taught.submit())

    held = api.patch(f"/assessments/{other['id']}", {"term": "FIRST"})

    assert (held.status_code, message(held)) == (409, taught.refusal)
    for term, reason in ((str(uuid4()), "no such term"), ("THIRD", "no such term")):
        assert reasons(api.patch(f"/assessments/{other['id']}", {"term": term})) == {"term": [reason]}
    elsewhere = api.patch(f"/assessments/{other['id']}", {"term": make.term()["id"]})
    assert reasons(elsewhere) == {"term": ["is not of the cohort's session"]}
    assert api.ok(api.get(f"/assessments/{other['id']}")) == other


def test_a_deleted_assessment_is_not_found(api, taught):
    api.ok(api.delete(path(taught)))

    for changes in ({"name": "x"}, {"term": "FIRST"}, {"total_points": 1}):
        assert api.patch(path(taught), changes).status_code == 404


def test_a_sheet_that_was_downloaded_before_is_taken(api, make, taught):
    sheet = api.get(f"{path(taught)}/download-sheet?arms=true").data
    api.ok(api.patch(path(taught), {"name": "Renamed", "total_points": 40, "file_name": "other.xlsx"}))
    api.ok(api.patch(f"/batches/{taught.cohort['id']}", {"name": "Gold"}))
    base = next(
        template
        for template in api.ok(api.get("/templates"))
        if template["name"] == taught.taught.subject["subject"]
    )
    api.ok(api.patch(f"/templates/{base['id']}", {"name": "Renamed"}))

    assert api.ok(upload(api, taught.assessment, sheet))["unchanged"] == 2


def test_a_score_that_waits_for_fewer_points_is_measured_by_them(committing, tenancy):
    taught = Class(committing, marked=0)
    api = committing.api
    body = {
        "assessment": taught.assessment["id"],
        "student": taught.students[0],
        "batch": taught.cohort["id"],
    }

    def work(number):
        if number:
            return api.using().post("/gradebooks", {**body, "score": 15})
        return api.using().patch(path(taught), {"total_points": 10})

    changed, scored = run_concurrently(2, work)

    assert (changed.status_code, scored.status_code) in {(200, 422), (409, 200)}
    points = api.ok(api.get(path(taught)))["total_points"]
    assert points == (10 if changed.status_code == 200 else 20)


def test_a_submission_while_an_assessment_moves_waits_in_no_circle(committing):
    taught = Class(committing)
    committing.term({"id": taught.cohort["session"]}, term="SECOND")
    api = committing.api

    def work(number):
        if number % 2:
            return api.using().patch(path(taught), {"term": "SECOND" if number % 4 == 1 else "FIRST"})
        body = {"term": "FIRST"}
        return api.using().post(f"/cohort-subjects/{taught.subject}/submission", body)

    statuses = {answer.status_code for answer in run_concurrently(8, work)}

    assert statuses <= {200, 409}


def test_deleting_waits_for_a_row_that_is_being_inserted_and_takes_it_along(committing, tenancy):
    taught = Class(committing, marked=0)
    api, schema = committing.api, schema_name(committing.api.school)
    api.ok(api.delete(path(taught)))
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    columns = "assessment_id, student_id, status, created_at"
    for commit in (False, True):
        cohort_subject = taught.subject
        with (
            tenancy.admin.connect() as inserting,
            watching_schools(tenancy) as watching,
            ThreadPoolExecutor(1) as thread,
        ):
            inserting.exec_driver_sql(
                f'INSERT INTO "{schema}".absences ({columns}) VALUES (%s, %s, %s, now())',
                (taught.assessment["id"], taught.students[0], "ABSENT"),
            )
            deleting = thread.submit(api.using().delete, f"/cohort-subjects/{cohort_subject}")
            while not watching.exec_driver_sql(waiting).scalar_one():
                assert not deleting.done()
            inserting.commit() if commit else inserting.rollback()
            answer = deleting.result()

        assert answer.status_code == 200
        with tenancy.admin.connect() as looking:
            left = looking.exec_driver_sql(f'SELECT count(*) FROM "{schema}".absences').scalar_one()
        assert left == 0
        taught = Class(committing, marked=0)
        api.ok(api.delete(path(taught)))
