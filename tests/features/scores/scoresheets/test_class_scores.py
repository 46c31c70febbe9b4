"""The scores of a class as a list: read, entered, corrected, taken away, all or none."""

from __future__ import annotations

from operator import itemgetter
from uuid import uuid4

import pytest

from tests.features.results.submissions.classes import Class
from tests.naming import name_with_number
from tests.prepared import prepared_for_each
from tests.threads import run_concurrently

# Four students; the first two have 12.5 of 20 points.
original, group = prepared_for_each(lambda make: Class(make, 4, marked=2))


def path(group):
    return f"/assessments/{group.assessment['id']}/scores"


def put(group, *scores, api=None):
    return (api or group.api).put(path(group), list(scores))


def stored(group):
    """The score or the absence of each, in the order of the students."""
    scores = {
        row["student"]["id"]: row["absence"] if row["score"] is None else row["score"]
        for row in group.api.ok(group.api.get(path(group)))
    }
    return [scores[student] for student in group.students]


def refused(answer, status=422):
    """The place, code and message of each record that is refused: by place, too, the first 100."""
    assert answer.status_code == status, answer.get_data(as_text=True)
    body = answer.get_json()["errors"]
    rows = [(row["row"], row["column"], row["code"], row["message"]) for row in body["rows"]]
    places = {
        (int(number), column, message)
        for number, columns in body["json"]["scores"].items()
        for column, messages in columns.items()
        for message in messages
    }
    assert places == {(row, column, message) for row, column, _, message in rows[:100]}
    return rows


def score(student, points, **fields):
    return {"student": student, "score": points, **fields}


def absence(student, status, **fields):
    return {"student": student, "absence": status, **fields}


def logged(group, entity):
    entries = group.api.ok(group.api.get("/audit", query_string={"entity": entity}))["data"]
    return [(change["action"], change["old"], change["new"]) for change in entries]


# Entering


def test_scores_and_absences_are_entered_changed_and_answered_for_the_whole_class(group):
    _first, second, third, fourth = group.students

    answer = group.api.ok(put(group, score(second, 0), score(third, 19.25), absence(fourth, "EXCUSED")))

    assert answer == group.api.ok(group.api.get(path(group)))
    assert stored(group) == [12.5, 0, 19.25, "EXCUSED"]
    assert [row["student"]["last_name"] for row in answer] == sorted(
        row["student"]["last_name"] for row in answer
    )
    assert {row["batch"] for row in answer} == {group.cohort["id"]}
    entries = group.api.ok(group.api.get(f"/gradebooks?assessment={group.assessment['id']}"))
    assert sorted(entry["score"] for entry in entries["data"]) == [0, 12.5, 19.25]


def test_each_score_is_on_record_as_one_entered_by_hand(group):
    _, second, third, fourth = group.students
    before = len(logged(group, "gradebook"))

    group.api.ok(put(group, score(second, 20), score(third, 3), absence(fourth, "ABSENT")))

    hand = {"source": "hand"}
    changes = logged(group, "gradebook")[:-before]
    assert sorted(changes, key=itemgetter(0)) == [
        ("create", None, {"score": 3, **hand}),
        ("update", {"score": 12.5, **hand}, {"score": 20, **hand}),
    ]
    assert logged(group, "absence") == [
        ("create", None, {"student": fourth, "status": "ABSENT", **hand}),
    ]


def test_the_same_list_again_changes_nothing(group):
    records = [score(group.students[0], 7), absence(group.students[3], "ABSENT")]
    answer = group.api.ok(put(group, *records))
    before = len(logged(group, "gradebook")), len(logged(group, "absence"))

    assert group.api.ok(put(group, *records)) == answer
    assert (len(logged(group, "gradebook")), len(logged(group, "absence"))) == before


def test_null_takes_a_score_or_an_absence_away(group):
    first, second, third, _ = group.students
    group.api.ok(put(group, absence(third, "ABSENT")))

    group.api.ok(
        put(
            group,
            score(first, None),
            absence(second, "EXCUSED", score=None),
            absence(third, None),
        )
    )

    assert stored(group) == [None, "EXCUSED", None, None]
    hand = {"source": "hand"}
    assert logged(group, "gradebook")[:2] == [("delete", {"score": 12.5, **hand}, None)] * 2
    # Of one moment, in either order.
    assert sorted(logged(group, "absence")[:2], key=itemgetter(0)) == [
        ("create", None, {"student": second, "status": "EXCUSED", **hand}),
        ("delete", {"student": third, "status": "ABSENT"}, None),
    ]
    # Where there is nothing, there is nothing to take away.
    group.api.ok(put(group, score(first, None), absence(third, None)))
    assert stored(group) == [None, "EXCUSED", None, None]


def test_a_score_takes_the_absence_away(group):
    student = group.students[2]
    group.api.ok(put(group, absence(student, "ABSENT")))

    group.api.ok(put(group, score(student, 5, absence=None, expected="ABSENT")))

    assert stored(group)[2] == 5
    assert logged(group, "absence")[0] == ("delete", {"student": student, "status": "ABSENT"}, None)


def test_an_absence_keeps_its_note(group):
    student = group.students[2]
    group.api.ok(group.make.absences(group.assessment, {student: "ABSENT"}, note="malaria"))

    group.api.ok(put(group, absence(student, "EXCUSED")))

    (row,) = group.api.ok(group.api.get(f"/assessments/{group.assessment['id']}/absences"))
    assert (row["status"], row["note"]) == ("EXCUSED", "malaria")


def test_the_list_may_stand_in_an_object(group):
    group.api.ok(group.api.put(path(group), {"scores": [score(group.students[3], 4)]}))

    assert stored(group)[3] == 4


# Expected scores


def test_a_score_changed_since_it_was_read_is_not_replaced(group):
    first, second, third, _ = group.students
    who = group.api.ok(group.api.get("/audit?entity=gradebook"))["data"][0]["actor_name"]

    rows = refused(
        put(group, score(first, 9, expected=11), score(second, 9, expected=12.50), score(third, 1)), 409
    )

    ((number, column, code, message),) = rows
    assert (number, column, code) == (0, "score", "changed")
    assert message.startswith(
        f'{name_with_number(group.api, first)}, score: "9" would replace 12.5, which {who} entered on 20'
    )
    assert message.endswith(": read it again, or leave out what is expected")
    assert stored(group) == [12.5, 12.5, None, None]


@pytest.mark.parametrize(
    ("record", "conflicts"),
    [
        ({"score": 9, "expected": None}, True),
        ({"score": None, "expected": None}, True),
        ({"score": 9, "expected": "ABSENT"}, True),
        ({"score": None, "expected": 3}, True),
        ({"absence": "ABSENT", "score": None, "expected": 3}, True),
        ({"score": 9, "expected": 12.5}, False),
        ({"score": 12.5, "expected": 3}, False),
        ({"absence": None, "expected": 3}, False),
    ],
)
def test_a_stored_score_that_is_neither_expected_nor_new_is_a_conflict(group, record, conflicts):
    answer = put(group, {"student": group.students[0], **record})

    assert answer.status_code == (409 if conflicts else 200), answer.get_json()


@pytest.mark.parametrize(
    ("record", "conflicts"),
    [
        ({"score": 9, "expected": None}, True),
        ({"absence": "EXCUSED", "expected": None}, True),
        ({"absence": None, "expected": "EXCUSED"}, True),
        ({"absence": "EXCUSED", "expected": 0}, True),
        ({"absence": "EXCUSED", "expected": "ABSENT"}, False),
        ({"absence": "ABSENT", "expected": None}, False),
    ],
)
def test_a_stored_absence_that_is_neither_expected_nor_new_is_a_conflict(group, record, conflicts):
    student = group.students[0]
    group.api.ok(put(group, {"student": student, "score": None, "absence": "ABSENT"}))

    answer = put(group, {"student": student, **record})

    assert answer.status_code == (409 if conflicts else 200), answer.get_json()


def test_where_there_is_nothing_any_more(group):
    ((_, _, code, message),) = refused(put(group, score(group.students[3], 9, expected=4)), 409)

    assert (
        code,
        ', score: "9" would bring back a score that somebody removed' in message,
    ) == (
        "changed",
        True,
    )


# Refusals


def test_records_that_are_wrong_are_named_all_at_once_and_nothing_is_stored(group, make_other):
    first, second, third, fourth = group.students
    other, foreign = group.make.student()["id"], make_other.student()["id"]
    unknown = str(uuid4())

    rows = refused(
        put(
            group,
            score(fourth, 20),
            score(first, 20.5),
            absence(second, "ABSENT"),
            score(third, 1, absence="ABSENT"),
            score(other, 1),
            score(foreign, 1),
            score(unknown, 1),
            score(fourth, 3),
        )
    )

    assert [row[:3] for row in rows] == [
        (1, "score", "invalid"),
        (3, "absence", "invalid"),
        (4, "student", "invalid"),
        (5, "student", "unknown"),
        (6, "student", "unknown"),
        (7, "student", "duplicate"),
    ]
    messages = [row[3] for row in rows]
    api = group.api
    assert (
        messages[0]
        == f'{name_with_number(api, first)}, score: "20.5" is no score: write a number from 0 to 20'
    )
    assert messages[2] == f"{name_with_number(api, other)}: does not take the subject"
    assert messages[3] == f'scores.5.student: "{foreign}" is no student'
    assert messages[4] == f'scores.6.student: "{unknown}" is no student'
    assert messages[5] == f"{name_with_number(api, fourth)}: is there already"
    assert stored(group) == [12.5, 12.5, None, None]


def test_an_absence_beside_a_stored_score(group):
    ((number, column, code, message),) = refused(put(group, absence(group.students[1], "ABSENT")))

    assert (number, column, code) == (0, "absence", "invalid")
    assert message.startswith(
        f'{name_with_number(group.api, group.students[1])}, absence: "ABSENT" is instead of a score that is stored: '
    )


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"score": -1}, "score"),
        ({"score": "5"}, "score"),
        ({"score": True}, "score"),
        ({"score": 1.005}, "score"),
        ({"score": [5]}, "score"),
        ({"absence": "absent"}, "absence"),
        ({"absence": ""}, "absence"),
        ({"absence": 1}, "absence"),
        ({"score": 5, "expected": "5"}, "expected"),
        ({"score": 5, "expected": True}, "expected"),
        ({"score": 5, "expected": {}}, "expected"),
        ({"score": 5, "note": "x"}, "note"),
        ({"score": 5, "student": "x"}, "student"),
        ({"score": 5, "student": None}, "student"),
        ({}, "score"),
        ({"expected": 5}, "score"),
    ],
)
def test_wrong_types_are_named_by_their_place(group, record, field):
    answer = put(group, score(group.students[0], 1), {"student": group.students[1], **record})

    assert answer.status_code == 422
    assert list(answer.get_json()["errors"]["json"]["scores"]["1"]) == [field]


@pytest.mark.parametrize("body", [[], {"scores": []}, {}, None, "x", 1, [1], {"scores": [], "more": 1}])
def test_a_body_that_is_no_list_of_records_is_refused(group, body):
    assert group.api.put(path(group), body).status_code == 422


def test_at_most_500(group):
    records = [score(str(uuid4()), 1) for _ in range(501)]

    longer = put(group, *records)
    assert longer.status_code == 422
    assert longer.get_json()["errors"]["json"]["scores"] == ["Length must be between 1 and 500."]
    # Of so many that are wrong the first 200 are named.
    assert len(refused(put(group, *records[:500]))) == 200


def test_an_assessment_that_is_not_there(group, make_other):
    taught = make_other.taught()
    foreign = make_other.assessment(taught.subject, taught.term)["id"]
    record = [score(group.students[0], 1)]

    for assessment_id in (uuid4(), foreign):
        assert group.api.put(f"/assessments/{assessment_id}/scores", record).status_code == 404
        assert group.api.get(f"/assessments/{assessment_id}/scores").status_code == 404
    group.api.ok(group.api.delete(f"/assessments/{group.assessment['id']}"))
    assert put(group, *record).status_code == 404
    assert group.api.get(path(group)).status_code == 404


def test_submitted_scores_are_held(group):
    group.api.ok(put(group, score(group.students[2], 1), score(group.students[3], 1)))
    group.api.ok(group.submit())

    answer = put(group, score(group.students[0], 1))

    assert (answer.status_code, answer.get_json()["message"]) == (409, group.refusal)


def test_the_submitted_arms_alone_are_held(make):
    group = Class(make, 2)
    arm = make.batch(group.cohort)
    (other,) = make.enrolled(group.cohort, batch=arm["id"])
    group.api.ok(group.submit(batch=group.cohort["id"]))

    assert put(group, score(group.students[0], 1), score(other, 1)).status_code == 409
    group.api.ok(put(group, score(group.students[0], 12.5), score(other, 1)))
    assert put(group, score(group.students[0], None)).status_code == 409


def test_a_student_who_left_the_cohort_is_not_of_the_class(group):
    student = group.students[3]
    removed = {"student_ids": [student]}
    group.api.ok(group.api.patch(f"/cohorts/{group.cohort['id']}/remove_students", removed))

    ((_, column, code, _),) = refused(put(group, score(student, 1)))

    assert (column, code) == ("student", "invalid")
    assert len(group.api.ok(group.api.get(path(group)))) == 3


# Permissions


def test_taking_away_needs_the_permission_to_delete(group):
    clerk = group.make.caller("write:gradebooks")
    first, _, third, _ = group.students
    group.api.ok(put(group, absence(third, "ABSENT")))

    group.api.ok(put(group, score(first, 11), api=clerk))
    for record in (score(first, None), absence(third, None)):
        answer = put(group, record, api=clerk)
        assert answer.status_code == 403
        assert answer.get_json()["message"].endswith("needs the permission delete:gradebooks.")
    # A score takes an absence away by itself.
    group.api.ok(put(group, score(third, 11), api=clerk))
    assert stored(group)[:3] == [11, 12.5, 11]


# How many round trips, and several at once


@pytest.mark.parametrize("students", [4, 40])
def test_round_trips_do_not_depend_on_how_many(make, messages, students):
    group = Class(make, students, marked=2)
    records = [
        score(student, 5, expected=12.5 if number < 2 else None)
        for number, student in enumerate(group.students)
    ]
    group.api.ok(put(group, absence(group.students[-1], "ABSENT")))
    records[-1] = absence(group.students[-1], None)
    records[0] = absence(group.students[0], "EXCUSED", score=None)

    with messages() as sent:
        answer = group.api.ok(put(group, *records))
    with messages() as read:
        assert group.api.ok(group.api.get(path(group))) == answer

    assert (len(answer), len(sent), len(read)) == (students, 4, 1)


def test_of_writers_at_once_who_expected_the_same_all_but_one_are_refused(committing):
    group = Class(committing, 3, marked=0)

    def enter(points):
        records = [score(student, points, expected=None) for student in group.students]
        return group.api.using().put(path(group), records).status_code

    statuses = run_concurrently(6, lambda number: enter(number + 1))

    assert sorted(statuses) == [200, 409, 409, 409, 409, 409]
    assert len(set(stored(group))) == 1
