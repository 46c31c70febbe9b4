"""Deleting the parts of a year: sessions, terms, cohorts and their arms; and the parts that stay as they are."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.features.results.publications.arms import Arms
from tests.features.results.submissions.classes import Class
from tests.threads import run_concurrently


def message(answer):
    return answer.get_json()["message"]


def refused(answer, words):
    assert answer.status_code == 409, answer.get_data(as_text=True)
    assert message(answer) == words


def test_a_session_is_in_use_by_its_terms_and_cohorts(api, make):
    session = make.session(current=True)
    for term in ("FIRST", "SECOND"):
        make.term(session, term=term)
    cohort = make.cohort(session=session)

    refused(api.delete(f"/sessions/{session['id']}"), "The session is in use by 1 cohort, 2 terms.")

    api.ok(api.delete(f"/cohorts/{cohort['id']}"))
    for term in api.ok(api.get("/terms", query_string={"session_id": session["id"]})):
        api.ok(api.delete(f"/terms/{term['id']}"))
    api.ok(api.delete(f"/sessions/{session['id']}"))
    assert not any(session["current"] for session in api.ok(api.get("/sessions")))


def test_a_term_goes_with_its_calendar(api, make):
    term = make.term()
    api.ok(api.put(f"/terms/{term['id']}/calendar", {"times_opened": 120}))

    api.ok(api.delete(f"/terms/{term['id']}"))

    assert api.get(f"/terms/{term['id']}/calendar").status_code == 404


def test_a_term_with_results_is_in_use(api, make):
    taught = Class(make)
    api.ok(taught.submit())

    words = "The term is in use by 1 assessment, 2 scores, 1 submission."
    refused(api.delete(f"/terms/{taught.term['id']}"), words)


def test_a_term_keeps_its_place_once_anything_of_it_is_submitted_or_published(api, make):
    taught = Class(make)
    path = f"/terms/{taught.term['id']}"
    assert api.ok(api.patch(path, {"term": "THIRD"}))["term"] == "THIRD"
    api.ok(api.patch(path, {"term": "FIRST"}))
    api.ok(taught.submit())

    refused(api.patch(path, {"term": "SECOND", "display_name": "x"}), "The term is in use by 1 submission.")

    assert api.ok(api.get(path)) == taught.term
    assert api.ok(api.patch(path, {"term": "FIRST", "display_name": "Term one"}))["displayName"] == "Term one"


def test_a_session_keeps_the_days_of_its_terms(api, make):
    session = make.session(start_date="2025-09-08", end_date="2026-07-24")
    term = make.term(session)
    days = {"start_date": "2025-09-15", "end_date": "2025-12-19"}
    api.ok(api.put(f"/terms/{term['id']}/calendar", days))
    path = f"/sessions/{session['id']}"

    for changes in (
        {"start_date": "2025-09-16"},
        {"end_date": "2025-12-18"},
        {"name": "x", "start_date": "2026-01-05"},
    ):
        answer = api.patch(path, changes)

        assert answer.status_code == 409
        assert message(answer).startswith("The calendar of First term is not within ")
    assert api.ok(api.get(path)) == session
    assert (
        api.ok(api.patch(path, {"start_date": "2025-09-15", "end_date": "2025-12-19"}))["end_date"]
        == "2025-12-19"
    )


def test_of_a_session_that_gets_shorter_and_a_calendar_at_its_end_one_is_stored(committing):
    api = committing.api
    session = committing.session(start_date="2025-09-08", end_date="2026-07-24")
    term = committing.term(session)["id"]

    def work(number):
        if number:
            return api.using().put(f"/terms/{term}/calendar", {"end_date": "2026-07-24"})
        return api.using().patch(f"/sessions/{session['id']}", {"end_date": "2026-01-01"})

    shortened, stored = run_concurrently(2, work)

    assert (shortened.status_code, stored.status_code) in {(200, 422), (409, 200)}


def test_a_term_that_the_session_has_already_is_a_conflict(api, make):
    session = make.session()
    make.term(session)
    second = make.term(session, term="SECOND")

    answer = api.patch(f"/terms/{second['id']}", {"term": "FIRST"})

    refused(answer, "A term with this session and term exists already.")
    for changes in ({"term": "FOURTH"}, {"term": None}, {"term": 1}, {"session_id": session["id"]}):
        assert api.patch(f"/terms/{second['id']}", changes).status_code == 422


def test_a_cohort_goes_with_its_arms(api, make):
    cohort = make.cohort()
    arm = make.batch(cohort)

    api.ok(api.delete(f"/cohorts/{cohort['id']}"))

    for batch in (cohort["id"], arm["id"]):
        assert api.get(f"/batches/{batch}").status_code == 404
        deleted = api.ok(api.get("/audit", query_string={"entity": "batch", "id": batch}))["data"][0]
        assert (deleted["action"], deleted["old"]["cohort"]) == ("delete", cohort["id"])


def test_a_cohort_is_in_use_by_enrollments_in_any_arm_by_subjects_and_by_form_teachers(api, make):
    cohort = make.cohort()
    arm = make.batch(cohort)["id"]
    (student,) = make.enrolled(cohort, batch=arm)
    api.ok(api.patch(f"/cohorts/{cohort['id']}/remove_students", {"student_ids": [student]}))
    subject = make.cohort_subject(cohort)["id"]
    teacher = make.employee()["id"]
    api.ok(api.patch(f"/teachers/{arm}/add_to_batch", {"teacher_id": teacher}))

    refused(
        api.delete(f"/cohorts/{cohort['id']}"),
        "The cohort is in use by 1 cohort subject, 1 enrollment, 1 form teacher.",
    )
    refused(api.delete(f"/batches/{arm}"), "The batch is in use by 1 enrollment, 1 form teacher.")

    api.ok(api.delete(f"/teachers/{arm}/teachers/{teacher}"))
    api.ok(api.delete(f"/cohort-subjects/{subject}"))
    refused(api.delete(f"/cohorts/{cohort['id']}"), "The cohort is in use by 1 enrollment.")


def test_the_first_arm_is_deleted_with_its_cohort_alone(api, make):
    cohort = make.cohort()
    other = make.batch(cohort)["id"]

    refused(
        api.delete(f"/batches/{cohort['id']}"),
        "The first batch of a cohort is deleted with the cohort alone.",
    )

    api.ok(api.delete(f"/batches/{other}"))
    assert [batch["id"] for batch in api.ok(api.get(f"/cohorts/{cohort['id']}/batches"))] == [cohort["id"]]


def test_two_arms_of_a_cohort_do_not_have_the_same_name(api, make):
    cohort = make.cohort()
    arm = make.batch(cohort)["id"]

    refused(api.patch(f"/batches/{arm}", {"name": "A"}), "A batch with this cohort and name exists already.")
    for name in (None, "", " ", 5, "x" * 121, "\0"):
        assert api.patch(f"/batches/{arm}", {"name": name}).status_code == 422
    assert api.patch(f"/batches/{uuid4()}", {"name": "B"}).status_code == 404


def test_a_subject_keeps_a_code_of_its_own(api, make):
    make.subject(code="MTH")
    other = make.subject(code="MHT")

    refused(
        api.patch(f"/templates/{other['id']}", {"code": "MTH"}), "A subject with this code exists already."
    )


def test_a_subject_that_a_promotion_rule_requires_is_in_use(api, make):
    subject = make.subject()["id"]
    api.ok(api.put("/promotion-rules", [{"minimum_average": 45, "required_subjects": [subject]}]))

    refused(api.delete(f"/templates/{subject}"), "The subject is in use by 1 promotion rule.")


def answers(arms, publications):
    """All answers of published results: figures, lists, workbook and paper."""
    api, first = arms.api, arms.first
    (student, *_) = arms.students[first]
    term = arms.terms["FIRST"]["id"]
    where = {"batch": first, "term": term}
    read = [
        api.get("/broadsheets", query_string=where),
        api.get("/broadsheets/download", query_string=where),
        api.get(f"/students/{student}/results", query_string={"term": term}),
        api.get(f"/students/{student}/report-card", query_string={"term": term}),
        api.get("/report-cards", query_string=where),
        api.get(f"/publications/{publications[0]['id']}"),
        api.get(f"/publications/{publications[0]['id']}/cards"),
    ]
    for answer in read:
        assert answer.status_code == 200, answer.get_data(as_text=True)
    return [answer.get_json() if answer.is_json else answer.data for answer in read]


@pytest.mark.parametrize("renamed", ["classroom", "batch", "subject", "term", "session", "trait"])
def test_a_new_name_changes_nothing_that_is_published(api, make, renamed):
    arms = Arms(make, 2, 1)
    publications = arms.published()
    before = answers(arms, publications)
    room = next(
        classroom
        for classroom in api.ok(api.get("/classrooms"))
        if classroom["name"] == arms.cohort["classroom"]
    )
    base = next(
        template
        for template in api.ok(api.get("/templates"))
        if template["name"] == arms.subjects[0]["subject"]
    )
    path = {
        "classroom": f"/classrooms/{room['id']}",
        "batch": f"/batches/{arms.first}",
        "subject": f"/templates/{base['id']}",
        "term": f"/terms/{arms.terms['FIRST']['id']}",
        "session": f"/sessions/{arms.cohort['session']}",
        "trait": f"/metric-definitions/{api.ok(api.get('/metric-definitions'))[0]['id']}",
    }[renamed]

    api.ok(api.patch(path, {"display_name" if renamed == "term" else "name": "Renamed"}))

    assert answers(arms, publications) == before


def test_cohorts_arms_and_terms_of_a_publication_are_in_use(api, make):
    arms = Arms(make, 1, 1)
    arms.published()

    for path in (f"/cohorts/{arms.cohort['id']}", f"/terms/{arms.terms['FIRST']['id']}"):
        assert "2 publications" in message(api.delete(path))
    assert "1 publication" in message(api.delete(f"/batches/{arms.second}"))
    paper = arms.papers["FIRST", arms.subjects[0]["id"]]["id"]
    assert "are submitted" in message(api.patch(f"/assessments/{paper}", {"name": "x"}))
