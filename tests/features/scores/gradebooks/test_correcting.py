"""Correcting a score."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.prepared import prepared_for_each
from tests.threads import run_concurrently

original, taught = prepared_for_each(lambda make: make.taught())


@pytest.fixture
def assessment(make, taught):
    return make.assessment(taught.subject, taught.term)


@pytest.fixture
def entry(make, taught, assessment):
    return make.entry(assessment, taught.students[0], taught.cohort["id"], 12.5)


def correct(api, entry, score):
    """Send a score as JSON writes it."""
    body = {"data": f'{{"score": {score}}}', "content_type": "application/json"}
    return api.patch(f"/gradebooks/{entry['id']}", **body)


def logged(api, entry):
    entries = api.ok(api.get("/audit", query_string={"entity": "gradebook", "id": entry["id"]}))["data"]
    return [(change["old"], change["new"]) for change in reversed(entries) if change["action"] == "update"]


def by_hand(score):
    return {"score": score, "source": "hand"}


@pytest.mark.parametrize("score", ["0", "20", "20.00", "7.25", "0.01"])
def test_a_score_is_corrected_and_both_are_on_record(api, entry, score):
    changed = correct(api, entry, score)

    assert (
        api.ok(changed) == {**entry, "score": float(score)} == api.ok(api.get(f"/gradebooks/{entry['id']}"))
    )
    assert logged(api, entry) == [(by_hand(12.5), by_hand(float(score)))]


@pytest.mark.parametrize(
    "score", ["-0.01", "20.01", "12.345", "1e99", "NaN", "Infinity", "null", '"12"', "true", "[12]", "{}"]
)
def test_a_score_that_could_not_be_entered_is_refused(api, entry, score):
    answer = correct(api, entry, score)

    assert (answer.status_code, answer.get_json()["errors"]["json"].keys()) == (422, {"score"})
    assert api.ok(api.get(f"/gradebooks/{entry['id']}")) == entry
    assert logged(api, entry) == []


@pytest.mark.parametrize("score", ["12.5", "12.50", "1.25e1"])
def test_the_same_score_changes_nothing(api, entry, score):
    assert api.ok(correct(api, entry, score)) == entry
    assert api.ok(api.patch(f"/gradebooks/{entry['id']}", {})) == entry
    assert logged(api, entry) == []


@pytest.mark.parametrize("member", ["assessment", "student", "batch", "id", "sheet"])
def test_student_assessment_and_arm_of_a_score_stay(api, entry, member):
    answer = api.patch(f"/gradebooks/{entry['id']}", {"score": 1, member: str(uuid4())})

    assert (answer.status_code, answer.get_json()["errors"]["json"].keys()) == (422, {member})
    assert api.ok(api.get(f"/gradebooks/{entry['id']}")) == entry


def test_the_score_of_a_student_who_left_can_still_be_corrected(api, taught, entry):
    removed = {"student_ids": taught.students}
    api.ok(api.patch(f"/cohorts/{taught.cohort['id']}/remove_students", removed))

    assert api.ok(correct(api, entry, 15))["score"] == 15


def test_an_entry_of_a_deleted_assessment_is_not_found(api, assessment, entry):
    api.ok(api.delete(f"/assessments/{assessment['id']}"))

    assert correct(api, entry, 15).status_code == 404
    assert logged(api, entry) == []


def test_an_entry_of_the_other_school_or_of_none_is_not_found(api, other_api, entry):
    assert correct(other_api, entry, 15).status_code == 404
    assert correct(api, {"id": uuid4()}, 15).status_code == 404
    assert other_api.using(school=api.school).patch(f"/gradebooks/{entry['id']}", {}).status_code == 403
    assert api.ok(api.get(f"/gradebooks/{entry['id']}")) == entry


def test_correcting_needs_the_permission_to_write(make, entry):
    assert correct(make.caller("read:gradebooks", "delete:gradebooks"), entry, 15).status_code == 403
    assert correct(make.caller("write:gradebooks"), entry, 15).status_code == 200


def test_correcting_costs_seven_round_trips_at_most(api, entry, messages):
    api.ok(correct(api, entry, 1))
    with messages() as sent:
        api.ok(correct(api, entry, 2))
    # Beginning, assessment, entry, change, audit, answer, commit.
    assert len(sent) <= 7, sent


def test_each_of_many_corrections_at_once_changes_the_score_of_the_one_before(committing):
    taught = committing.taught()
    assessment = committing.assessment(taught.subject, taught.term)
    entry = committing.entry(assessment, taught.students[0], taught.cohort["id"], 20)

    answers = run_concurrently(10, lambda number: correct(committing.api.using(), entry, number))

    assert {answer.status_code for answer in answers} == {200}
    changes = logged(committing.api, entry)
    assert len(changes) == 10
    assert [old for old, _ in changes] == [by_hand(20), *(new for _, new in changes[:-1])]


def test_correcting_and_removing_at_once_leave_no_entry(committing):
    taught = committing.taught()
    assessment = committing.assessment(taught.subject, taught.term)
    entry = committing.entry(assessment, taught.students[0], taught.cohort["id"], 20)

    def work(number):
        api = committing.api.using()
        return correct(api, entry, 3) if number else api.delete(f"/gradebooks/{entry['id']}")

    removed, corrected = run_concurrently(2, work)

    assert removed.status_code == 200
    assert corrected.status_code in {200, 404}
    assert len(logged(committing.api, entry)) == (1 if corrected.status_code == 200 else 0)
