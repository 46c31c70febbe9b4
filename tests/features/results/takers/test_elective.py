"""A subject becomes elective or compulsory, with the consequences for results."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.features.classes.cohort_subjects.test_taking import choose, drop, remove, takers
from tests.features.results.publications.arms import Arms
from tests.features.results.submissions.classes import Class, message


def change(api, subject, elective):
    return api.patch(f"/cohort-subjects/{subject['id']}", {"elective": elective})


def entries(api, **query):
    return api.ok(api.get("/audit", query_string=query))["data"]


# The subject


def test_an_elective_keeps_its_takers_and_is_dropped_from_then_on(api, make):
    cohort = make.cohort()
    subject, students = (
        make.cohort_subject(cohort),
        sorted(make.enrolled(cohort, make.student(), make.student())),
    )

    assert api.ok(change(api, subject, True)) == {**subject, "elective": True}

    assert takers(api, subject) == students
    api.ok(drop(api, subject, students[0]))
    assert takers(api, subject) == students[1:]
    make.enrolled(cohort)
    assert takers(api, subject) == students[1:]


def test_everyone_enrolled_takes_a_compulsory_subject_at_once(api, make):
    cohort = make.cohort()
    subject, arm = make.cohort_subject(cohort, elective=True), make.batch(cohort)
    students = make.enrolled(cohort) + make.enrolled(cohort, batch=arm["id"])
    api.ok(choose(api, subject, students[:1]))
    remove(api, cohort, make.enrolled(cohort))
    make.enrolled(make.cohort())

    assert api.ok(change(api, subject, False))["elective"] is False

    assert takers(api, subject) == sorted(students)
    late = make.enrolled(cohort)
    assert takers(api, subject) == sorted(students + late)
    assert drop(api, subject, students[0]).status_code == 409


def test_scores_stay_with_a_student_who_drops_a_subject_that_became_elective(api, make):
    taught = make.taught(1)
    assessment, (student,) = make.assessment(taught.subject, taught.term), taught.students
    entry = make.entry(assessment, student, taught.cohort["id"])

    api.ok(change(api, taught.subject, True))
    api.ok(drop(api, taught.subject, student))

    assert api.ok(api.get(f"/gradebooks/{entry['id']}"))["score"] == entry["score"]


def test_a_change_is_in_the_audit_log_once_and_the_same_again_is_not(api, make):
    cohort = make.cohort()
    subject = make.cohort_subject(cohort, elective=True)
    make.enrolled(cohort)

    for elective in (True, False, False):
        api.ok(change(api, subject, elective))

    updates = [entry for entry in entries(api, id=subject["id"]) if entry["action"] == "update"]
    assert [(entry["old"], entry["new"]) for entry in updates] == [({"elective": True}, {"elective": False})]
    # Nobody chose it: as wherever a subject is compulsory, the student has no entry.
    assert entries(api, entity="subject-enrollment") == []


def test_an_unknown_subject_and_one_of_another_school_are_404(api, make_other):
    unknown, foreign = (
        change(api, {"id": identity}, True) for identity in (str(uuid4()), make_other.cohort_subject()["id"])
    )

    assert unknown.status_code == foreign.status_code == 404
    assert message(unknown) == message(foreign) == "No such cohort subject."


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        [],
        "x",
        {"elective": None},
        {"elective": "true"},
        {"elective": 1},
        {"elective": ""},
        {"elektiv": True},
    ],
)
def test_a_body_without_a_truth_value_is_refused(api, make, body):
    assert api.patch(f"/cohort-subjects/{make.cohort_subject()['id']}", body).status_code == 422


def test_a_change_asks_for_write_cohort_subjects(make):
    subject = make.cohort_subject()
    others = make.caller("read:cohort-subjects", "delete:cohort-subjects", "write:cohorts", "write:results")

    assert change(others, subject, True).status_code == 403
    assert change(make.caller("write:cohort-subjects"), subject, True).status_code == 200


def test_a_change_costs_the_same_however_many_take_it(api, make, messages):
    costs = []
    for size in (1, 30):
        cohort = make.cohort()
        subject = make.cohort_subject(cohort, elective=True)
        make.enrolled(cohort, *(make.student() for _ in range(size)))
        with messages() as sent:
            api.ok(change(api, subject, False))
        costs.append(len(sent))

    assert costs[0] == costs[1] <= 5


# Results under way


def test_a_submission_holds_a_change_until_each_class_is_published(api, make):
    arms = Arms(make)
    arms.mark()
    arms.submit()
    subject, arm = arms.subjects[0], make.api.ok(make.api.get(f"/cohorts/{arms.cohort['id']}/batches"))
    names = {batch["id"]: batch["name"] for batch in arm}
    classroom = api.ok(api.get("/classrooms"))[0]["name"]

    answer = change(api, subject, True)

    both = [f"{classroom} {names[batch]}" for batch in (arms.first, arms.second)]
    assert answer.status_code == 409
    assert answer.get_json()["errors"]["json"] == {
        "not_published": [{"term": "First term", "arms": sorted(both)}]
    }
    assert message(answer) == (
        f"{subject['subject']} is submitted, and results are not published yet: "
        f"First term of {', '.join(sorted(both))}. Publish them, or reopen {subject['subject']}, first."
    )
    assert api.ok(api.get(f"/cohort-subjects/{subject['id']}"))["elective"] is False

    api.ok(arms.publish(arms.first))
    waiting = change(api, subject, True).get_json()["errors"]["json"]["not_published"]
    assert waiting == [{"term": "First term", "arms": both[1:]}]
    api.ok(arms.publish(arms.second))
    assert api.ok(change(api, subject, True))["elective"] is True


def test_a_subject_that_is_reopened_again_is_changed(api, make):
    taught = Class(make)
    api.ok(taught.submit())
    assert change(api, taught.taught.subject, True).status_code == 409

    api.ok(taught.reopen())

    assert change(api, taught.taught.subject, True).status_code == 200


def test_an_arm_without_students_and_one_made_later_wait_for_nothing(api, make):
    arms = Arms(make)
    arms.published()
    empty, later = (make.batch(arms.cohort) for _ in range(2))
    make.enrolled(arms.cohort, batch=later["id"])

    assert empty["id"] != later["id"]
    assert change(api, arms.subjects[0], True).status_code == 200


def test_reopened_results_hold_a_change(api, make):
    arms = Arms(make)
    first, _ = arms.published()
    api.ok(arms.reopen(first))

    answer = change(api, arms.subjects[0], True)

    assert answer.status_code == 409
    (reopened,) = answer.get_json()["errors"]["json"]["reopened"]
    assert (reopened["term"], len(reopened["arms"])) == ("First term", 1)
    assert "is in reopened results: First term of " in message(answer)
    # A subject that they do not know is free.
    since = make.cohort_subject(arms.cohort)
    assert change(api, since, True).status_code == 200
    api.ok(arms.publish(arms.first, without_subjects=[since["id"]]))
    assert change(api, arms.subjects[0], True).status_code == 200
