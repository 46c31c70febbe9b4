"""Comments of students' terms, and how often they came."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from tests.factories import UNKNOWN_ID
from tests.features.observations.comments.sheets import Said
from tests.naming import name_with_number
from tests.prepared import prepared_for_each
from tests.threads import run_concurrently

NOTHING = (None, None, None)


original, class_ = prepared_for_each(Said)


def row(class_, number, **members):
    return {"student": class_.students[f"C/{number}"], **members}


def refused(answer, field="comments"):
    assert answer.status_code == 422, answer.get_data(as_text=True)
    ((named, words),) = answer.get_json()["errors"]["json"].items()
    assert named == field
    return "; ".join(words)


def test_everybody_in_the_batch_is_listed_by_name(api, make, class_):
    for number, name in (("C/1", "Ọ̀ṣun"), ("C/2", "Ɗan Ladi"), ("C/3", "Àbíọ̀dún")):
        api.ok(api.patch(f"/students/{class_.students[number]}", {"last_name": name}))

    answer = api.ok(
        class_.put(row(class_, 2, times_present=112, form_teacher_comment="  Ó dára púpọ̀.\nẸ ṣeun  "))
    )

    assert answer == api.ok(class_.get())
    assert [comment["student"]["last_name"] for comment in answer] == ["Àbíọ̀dún", "Ɗan Ladi", "Ọ̀ṣun"]
    assert answer[0] | {"student": None} == dict.fromkeys(
        ("student", "times_present", "form_teacher_comment", "principal_comment", "updated_at")
    )
    assert answer[1]["student"] == {
        "id": class_.students["C/2"],
        "admission_number": "C/2",
        "first_name": "Chidinma",
        "last_name": "Ɗan Ladi",
    }
    shown = answer[1]["times_present"], answer[1]["form_teacher_comment"], answer[1]["principal_comment"]
    assert shown == (112, "Ó dára púpọ̀.\nẸ ṣeun", None)
    assert abs(datetime.now(UTC) - datetime.fromisoformat(answer[1]["updated_at"])) < timedelta(minutes=5)


def test_a_member_left_out_stays_and_null_clears_it(api, class_):
    api.ok(class_.put(row(class_, 1, times_present=0, form_teacher_comment="Good", principal_comment="Fine")))
    api.ok(class_.put(row(class_, 1, form_teacher_comment="Better"), row(class_, 2, times_present=5)))
    assert class_.comments_by_number() == {
        "C/1": (0, "Better", "Fine"),
        "C/2": (5, None, None),
        "C/3": NOTHING,
    }

    api.ok(class_.put(row(class_, 1, times_present=None, principal_comment=None), row(class_, 3)))

    assert class_.comments_by_number() == {
        "C/1": (None, "Better", None),
        "C/2": (5, None, None),
        "C/3": NOTHING,
    }


def test_a_member_that_is_another_than_expected_is_not_replaced(api, class_):
    api.ok(class_.put(row(class_, 1, times_present=10, form_teacher_comment="Good")))
    api.ok(class_.put(row(class_, 1, form_teacher_comment="Fair")))
    seen = {"form_teacher_comment": "Good"}

    refused = class_.put(
        row(class_, 1, form_teacher_comment="Poor", expected=seen), row(class_, 2, times_present=1)
    )

    assert refused.status_code == 409
    (error,) = refused.get_json()["errors"]["rows"]
    assert (error["row"], error["column"], error["code"]) == (0, "form_teacher_comment", "changed")
    assert "School Administrator" in error["message"]
    assert class_.comments_by_number() == {"C/1": (10, "Fair", None), "C/2": NOTHING, "C/3": NOTHING}
    # Another member was not expected, and the text that is stored is no conflict.
    api.ok(class_.put(row(class_, 1, times_present=11, form_teacher_comment="Fair", expected=seen)))
    assert class_.comments_by_number()["C/1"] == (11, "Fair", None)


def test_the_log_has_old_and_new_numbers_and_the_names_of_changed_texts(api, class_):
    term, hand = class_.term["id"], {"source": "hand"}
    api.ok(class_.put(row(class_, 1, times_present=3, form_teacher_comment="Good")))
    api.ok(class_.put(row(class_, 1, times_present=4, form_teacher_comment="Good"), row(class_, 2)))
    api.ok(class_.put(row(class_, 1, times_present=4)))

    assert class_.log() == [
        (
            "create",
            "C/1",
            None,
            {"term": term, "times_present": 3, "changed": ["form_teacher_comment", "times_present"], **hand},
        ),
        (
            "update",
            "C/1",
            {"term": term, "times_present": 3},
            {"term": term, "times_present": 4, "changed": ["times_present"], **hand},
        ),
    ]


def test_the_term_is_one_of_the_batchs_session_by_its_id_or_name(api, make, class_):
    second = make.term({"id": class_.cohort["session"]}, term="SECOND")
    api.ok(class_.put(row(class_, 1, times_present=1), term=second["id"]))
    api.ok(class_.put(row(class_, 1, times_present=2), term=class_.term["id"].upper()))

    assert (
        class_.comments_by_number(term="SECOND")["C/1"],
        class_.comments_by_number(term=second["id"].upper())["C/1"],
    ) == (
        (1, None, None),
        (1, None, None),
    )
    assert class_.comments_by_number()["C/1"] == (2, None, None)
    elsewhere = make.term()
    for term, words in (
        ("THIRD", "no such term"),
        ("first", "no such term"),
        (str(uuid4()), "no such term"),
        (elsewhere["id"], "is not of the batch's session"),
    ):
        assert refused(class_.put(row(class_, 1), term=term), "term") == words
        answer = class_.get(term=term)
        assert (answer.status_code, answer.get_json()["errors"]["query"]) == (422, {"term": [words]})


def test_an_unknown_batch_is_422_and_an_empty_one_an_empty_list(api, make, class_):
    answer = class_.get(batch=str(uuid4()))
    assert (answer.status_code, answer.get_json()["errors"]["query"]) == (422, {"batch": ["no such batch"]})
    assert refused(class_.put(row(class_, 1), batch=str(uuid4())), "batch") == "no such batch"

    arm = make.batch(class_.cohort)
    assert api.ok(class_.get(batch=arm["id"])) == []


def test_an_arm_has_its_own_students_and_their_comments_follow_them(api, make, class_):
    arm = make.batch(class_.cohort)
    api.ok(class_.put(row(class_, 1, form_teacher_comment="Good")))
    make.enrolled(class_.cohort, {"id": class_.students["C/1"]}, batch=arm["id"])

    assert class_.comments_by_number().keys() == {"C/2", "C/3"}
    assert class_.comments_by_number(batch=arm["id"]) == {"C/1": (None, "Good", None)}
    assert refused(class_.put(row(class_, 1, times_present=1))) == (
        f"{name_with_number(api, class_.students['C/1'])}: not in the batch"
    )
    api.ok(class_.put(row(class_, 1, times_present=1), batch=arm["id"]))
    assert class_.comments_by_number(batch=arm["id"]) == {"C/1": (1, "Good", None)}


def test_the_withdrawn_are_in_no_list(api, class_):
    student = class_.students["C/2"]
    api.ok(class_.put(row(class_, 2, times_present=1)))
    api.ok(api.patch(f"/students/{student}", {"status": "WITHDRAWN"}))

    assert class_.comments_by_number().keys() == {"C/1", "C/3"}
    assert refused(class_.put(row(class_, 1, times_present=1), row(class_, 2))) == (
        f"{name_with_number(api, student)}: withdrawn"
    )
    assert class_.comments_by_number()["C/1"] == NOTHING


def test_all_students_at_fault_are_named_and_nothing_is_stored(api, class_):
    class_.opened(100)
    stranger = str(uuid4())

    answer = class_.put(
        row(class_, 1, times_present=101),
        row(class_, 2, times_present=100),
        row(class_, 3, times_present=1),
        row(class_, 3, times_present=1),
        {"student": stranger, "times_present": 1},
    )

    assert refused(answer) == (
        f"{name_with_number(api, class_.students['C/3'])}: named more than once; {stranger}: no such student; "
        f"{name_with_number(api, class_.students['C/1'])}: present more often than the 100 times that school opened"
    )
    assert set(class_.comments_by_number().values()) == {NOTHING}
    assert class_.log() == []
    api.ok(class_.put(row(class_, 1, times_present=100)))


def test_school_can_not_have_opened_less_often_than_somebody_came(api, class_):
    api.ok(class_.put(row(class_, 1, times_present=90), row(class_, 2, times_present=70)))
    path = f"/terms/{class_.term['id']}/calendar"

    answer = api.put(path, {"times_opened": 89})

    assert answer.status_code == 409
    assert answer.get_json()["message"] == (
        "School opened 89 times, but a student was present 90 times in the term."
    )
    assert api.ok(api.get(path))["times_opened"] is None
    class_.opened(90)


@pytest.mark.parametrize(
    "members",
    [
        {"times_present": -1},
        {"times_present": 401},
        {"times_present": 1.5},
        {"times_present": "1"},
        {"times_present": True},
        {"form_teacher_comment": ""},
        {"form_teacher_comment": "   "},
        {"form_teacher_comment": "Ẹ" * 501},
        {"form_teacher_comment": "a\0b"},
        {"form_teacher_comment": 5},
        {"principal_comment": "x" * 501},
        {"updated_at": None},
    ],
    ids=lambda members: str(members)[:40],
)
def test_bad_members_are_422(class_, members):
    assert class_.put(row(class_, 1, **members)).status_code == 422
    assert class_.comments_by_number()["C/1"] == NOTHING


@pytest.mark.parametrize(
    "body",
    [
        {"comments": []},
        {"comments": None},
        {"comments": [{}]},
        {"comments": [{"student": "x"}]},
        {"comments": [{"student": UNKNOWN_ID}] * 1001},
        {"batch": "x"},
        {"batch": None},
        {"term": ""},
        {"term": 1},
    ],
    ids=lambda body: str(body)[:40],
)
def test_bad_bodies_are_422(class_, body):
    assert class_.put(row(class_, 1), **body).status_code == 422


def test_the_bounds_and_any_text_are_taken(api, class_):
    text = "#let x = $1$ *bold* = + - @ \u200f שלום 张 😀 ".ljust(500, "Ẹ")
    api.ok(
        class_.put(
            row(class_, 1, times_present=400, form_teacher_comment=text), row(class_, 2, times_present=0)
        )
    )

    assert class_.comments_by_number() == {
        "C/1": (400, text.strip(), None),
        "C/2": (0, None, None),
        "C/3": NOTHING,
    }


# Permissions


def test_a_principals_comment_needs_a_permission_of_its_own(api, make, class_):
    form_teacher = make.caller("write:metrics")
    principal = make.caller("write:metrics", "write:results")
    api.ok(class_.put(row(class_, 1, principal_comment="Fine"), api=principal))

    for comment in ("Better", None):
        answer = class_.put(
            row(class_, 1, principal_comment=comment), row(class_, 2, times_present=1), api=form_teacher
        )
        assert (answer.status_code, answer.get_json()["message"]) == (
            403,
            "Changing a principal's comment needs the permission write:results; nothing was stored.",
        )
        (row_of_it,) = answer.get_json()["errors"]["rows"]
        assert (row_of_it["row"], row_of_it["column"], row_of_it["message"]) == (
            0,
            "principal_comment",
            f"{name_with_number(api, class_.students['C/1'])}, principal comment: would change the principal's word: "
            "leave it as it was",
        )
    assert class_.comments_by_number() == {"C/1": (None, None, "Fine"), "C/2": NOTHING, "C/3": NOTHING}
    # As it stands it may be sent along.
    api.ok(class_.put(row(class_, 1, principal_comment="Fine", times_present=4), api=form_teacher))
    assert class_.comments_by_number()["C/1"] == (4, None, "Fine")


def test_the_other_schools_records_are_none(api, other_api, make_other, class_):
    theirs = Said(make_other)
    other_api.ok(theirs.put(row(theirs, 1, times_present=1)))

    for answer in (class_.get(batch=theirs.batch), class_.put(row(class_, 1), batch=theirs.batch)):
        assert answer.status_code == 422
    for answer in (class_.get(term=theirs.term["id"]), class_.put(row(class_, 1), term=theirs.term["id"])):
        assert answer.status_code == 422
    stranger = row(theirs, 1, times_present=9)
    assert (
        refused(class_.put(row(class_, 1, times_present=1), stranger))
        == f"{stranger['student']}: no such student"
    )
    assert theirs.get(api=api.using(school=other_api.school)).status_code == 403
    assert theirs.put(stranger, api=api.using(school=other_api.school)).status_code == 403
    assert class_.comments_by_number()["C/1"] == NOTHING
    assert theirs.comments_by_number()["C/1"] == (1, None, None)


# Several at once


def test_of_members_entered_at_once_each_holds(committing):
    class_ = Said(committing, 2)
    members = [{"times_present": 7}, {"form_teacher_comment": "Good"}, {"principal_comment": "Fine"}]

    answers = run_concurrently(
        3, lambda n: class_.put(row(class_, 1, **members[n]), api=class_.api.using()).status_code
    )

    assert answers == [200] * 3
    assert class_.comments_by_number()["C/1"] == (7, "Good", "Fine")
    assert sorted(name for *_, new in class_.log() for name in new["changed"]) == [
        "form_teacher_comment",
        "principal_comment",
        "times_present",
    ]
    assert [action for action, *_ in class_.log()] == ["create", "update", "update"]


def test_a_calendar_and_an_attendance_at_once_fit_together(committing):
    class_ = Said(committing, 1)
    path = f"/terms/{class_.term['id']}/calendar"

    def send(number):
        if number % 2:
            return class_.put(row(class_, 1, times_present=100), api=class_.api.using()).status_code
        return class_.api.using().put(path, {"times_opened": 50}).status_code

    statuses = run_concurrently(6, send)

    opened = class_.api.ok(class_.api.get(path))["times_opened"]
    (present, _, _) = class_.comments_by_number()["C/1"]
    assert (opened, present) in {(50, None), (None, 100)}
    assert 200 in statuses
    assert set(statuses) <= {200, 409, 422}


@pytest.mark.parametrize("students", [2, 30])
def test_messages_do_not_depend_on_how_many(make_other, messages, students):
    class_, api = Said(make_other, students), make_other.api
    rows = [
        {"student": student, "times_present": 1, "form_teacher_comment": "Good"}
        for student in class_.students.values()
    ]

    with messages() as sent:
        answer = api.ok(class_.put(*rows))
    with messages() as read:
        assert api.ok(class_.get()) == answer

    assert (len(answer), len(sent), len(read)) == (students, 5, 1)
