"""The marks of an arm as a list: read, entered, corrected, taken away, all or none."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.features.scores.marksheets.arms import MARKS, Marked, refused, totals
from tests.prepared import prepared_for_each

original, arm = prepared_for_each(Marked)


def test_the_marks_are_of_each_student_in_each_assessment_with_their_totals(arm):
    answer = arm.api.get(arm.path("scores"))

    body = arm.api.ok(answer)
    assert [
        (assessment["abbreviation"], assessment["category"], assessment["total_points"])
        for assessment in body["assessments"]
    ] == [
        ("CA1", "CA1", 20),
        ("CA2", "CA2", 20),
        ("EX", "EXAM", 60),
    ]
    assert len(body["scores"]) == 12
    assert body["scores"][0] == {
        "student": {
            "id": arm.students["A/1"],
            "first_name": "Ngọzi",
            "last_name": "Abara",
            "admission_number": "A/1",
        },
        "assessment": arm.assessments[0]["id"],
        "score": 12.5,
        "absence": None,
    }
    assert arm.marks() == MARKS
    assert totals(answer) == [
        ("CA1 (20)", 1, 12.5, 1, 0, 2),
        ("CA2 (20)", 0, 0, 0, 0, 4),
        ("EX (60)", 0, 0, 0, 0, 4),
    ]


def test_marks_in_several_assessments_are_entered_at_once_and_all_are_answered(arm):
    answer = arm.put(
        arm.record("A/1", 0, score=13),
        arm.record("A/1", 2, absence="EXCUSED"),
        arm.record("A/2", 0, score=0, expected="ABSENT"),
        arm.record("A/3", 1, score=19.25, expected=None),
    )

    assert arm.api.ok(answer) == arm.api.ok(arm.api.get(arm.path("scores")))
    assert arm.marks() == {
        "A/1": [13, None, "EXCUSED"],
        "A/2": [0, None, None],
        "A/3": [None, 19.25, None],
        "A/4": [None] * 3,
    }


def test_the_same_list_again_changes_nothing(arm):
    records = [arm.record("A/3", 1, score=19.25), arm.record("A/4", 1, absence="ABSENT")]
    answer = arm.api.ok(arm.put(*records))
    before = len(arm.logged("gradebook")), len(arm.logged("absence"))

    assert arm.api.ok(arm.put(*records)) == answer
    assert (len(arm.logged("gradebook")), len(arm.logged("absence"))) == before


def test_a_dry_run_answers_the_marks_as_they_would_be_and_stores_nothing(arm):
    records = [arm.record("A/1", 0, score=None), arm.record("A/3", 1, score=19.25)]

    tried = arm.api.ok(arm.put(*records, dry_run="true"))

    assert arm.marks() == MARKS
    assert arm.api.ok(arm.put(*records)) == tried


def test_null_takes_a_mark_away_which_needs_the_permission_to_delete(arm):
    writer = arm.make.caller("write:gradebooks")
    records = [arm.record("A/1", 0, score=None), arm.record("A/2", 0, absence=None)]

    answer = arm.put(*records, arm.record("A/3", 0, score=1), api=writer)

    assert refused(answer, 403) == [(0, "score", "invalid"), (1, "absence", "invalid")]
    assert arm.marks() == MARKS
    arm.api.ok(arm.put(*records))
    assert arm.marks() == dict.fromkeys(MARKS, [None] * 3)


def test_an_absence_beside_a_score_needs_the_score_given_as_null(arm):
    assert refused(arm.put(arm.record("A/1", 0, absence="ABSENT")), 409) == [(0, "absence", "invalid")]

    arm.api.ok(arm.put(arm.record("A/1", 0, score=None, absence="ABSENT")))

    assert arm.marks()["A/1"] == ["ABSENT", None, None]


def test_a_mark_that_is_not_as_expected_is_named_and_nothing_is_stored(arm):
    answer = arm.put(
        arm.record("A/1", 0, score=5, expected=12),
        arm.record("A/2", 0, absence="EXCUSED", expected=None),
        arm.record("A/3", 0, score=5, expected=None),
    )

    assert refused(answer, 409) == [(0, "score", "changed"), (1, "absence", "changed")]
    first, second = answer.get_json()["errors"]["rows"]
    assert "would replace 12.5, which operator entered" in first["message"]
    assert "would replace ABSENT, which School Administrator entered" in second["message"]
    assert arm.marks() == MARKS


def test_wrong_records_are_named_by_their_places(arm):
    elsewhere = arm.make.taught(1)
    other = arm.make.assessment(elsewhere.subject, elsewhere.term)
    records = [
        arm.record("A/1", 0, score=20.01),
        {"student": str(uuid4()), "assessment": arm.assessments[0]["id"], "score": 1},
        {"student": elsewhere.students[0], "assessment": arm.assessments[0]["id"], "score": 1},
        {"student": arm.students["A/1"], "assessment": other["id"], "score": 1},
        {"student": arm.students["A/1"], "assessment": str(uuid4()), "score": 1},
        arm.record("A/3", 1, score=3),
        arm.record("A/3", 1, score=3),
        arm.record("A/3", 2, score=3, absence="ABSENT"),
    ]

    assert refused(arm.put(*records)) == [
        (0, "score", "invalid"),
        (1, "student", "unknown"),
        (2, "student", "invalid"),
        (3, "assessment", "unknown"),
        (4, "assessment", "unknown"),
        (6, "student", "duplicate"),
        (7, "absence", "invalid"),
    ]
    assert arm.marks() == MARKS


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        "text",
        [{}],
        [{"student": "x", "assessment": "y", "score": 1}],
        [{"student": str(uuid4()), "assessment": str(uuid4())}],
        [{"student": str(uuid4()), "assessment": str(uuid4()), "score": "12"}],
        [{"student": str(uuid4()), "assessment": str(uuid4()), "absence": "SICK"}],
        [{"student": str(uuid4()), "assessment": str(uuid4()), "absence": ""}],
    ],
)
def test_a_body_that_is_no_list_of_marks_is_refused(arm, body):
    assert arm.api.put(arm.path("scores"), body).status_code == 422


def test_a_list_has_at_most_twenty_thousand_marks(arm):
    # As short as a record can be: a body of more than a mebibyte is refused before.
    answer = arm.api.put(arm.path("scores"), [0] * 20_001)

    assert answer.status_code == 422
    assert "20000" in answer.get_data(as_text=True)


def test_marks_of_a_submitted_arm_stay(arm):
    body = {"term": "FIRST", "blanks": "EXCUSED"}
    arm.api.ok(arm.api.post(f"/cohort-subjects/{arm.subject['id']}/submission", body))

    assert arm.put(arm.record("A/1", 0, score=12.5)).status_code == 200
    assert arm.put(arm.record("A/1", 0, score=12)).status_code == 409


def test_other_arms_have_their_own_marks(arm):
    batch = arm.make.batch(arm.cohort, name="B")["id"]
    student = arm.make.enrolled(arm.cohort, arm.make.student(), batch=batch)[0]
    record = {"student": student, "assessment": arm.assessments[0]["id"], "score": 3}

    assert refused(arm.put(record)) == [(0, "student", "invalid")]
    answer = arm.put(record, batch=batch)

    assert totals(answer)[0] == ("CA1 (20)", 1, 3, 0, 0, 0)
    assert arm.marks() == MARKS


@pytest.mark.parametrize("students", [2, 12])
def test_any_number_of_marks_takes_as_many_messages(arm, messages, students):
    made = [arm.make.student() for _ in range(students)]
    arm.make.enrolled(arm.cohort, *made)
    records = [
        {"student": student["id"], "assessment": assessment["id"], "score": 7}
        for student in made
        for assessment in arm.assessments
    ]

    with messages() as sent:
        arm.api.ok(arm.put(*records))
    with messages() as read:
        arm.api.get(arm.path("scores"))

    assert (len(sent), len(read)) == (4, 1)
