"""Cohorts: a classroom in a session."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.features.invitations.test_invitations import in_school
from tests.features.reach.conftest import Own
from tests.threads import run_concurrently


def test_a_cohort_shows_its_classrooms_name_and_its_sessions_id(api, make):
    classroom, session = make.classroom(name="JSS 1"), make.session()

    made = make.cohort(classroom, session)

    assert made == {"id": made["id"], "classroom": "JSS 1", "session": session["id"]}
    assert api.ok(api.get("/cohorts")) == [made]
    assert api.ok(api.get(f"/cohorts/{made['id']}")) == made


def test_the_session_may_be_given_by_its_name(api, make):
    classroom, session = make.classroom(), make.session(name="Ọdún 2025/2026 ½")

    made = api.ok(api.post("/cohorts", {"classroom": classroom["id"], "session_id": " Ọdún 2025/2026 ½ "}))

    assert made["session"] == session["id"]


def test_an_upper_case_id_of_a_session_is_the_same_id(api, make):
    classroom, session = make.classroom(), make.session()

    made = api.ok(api.post("/cohorts", {"classroom": classroom["id"], "session_id": session["id"].upper()}))

    assert made["session"] == session["id"]


def test_a_name_that_looks_like_an_id_yields_to_the_id(api, make):
    classroom, session = make.classroom(), make.session()
    misleading = make.session(name=session["id"])

    made = api.ok(api.post("/cohorts", {"classroom": classroom["id"], "session_id": session["id"]}))

    assert made["session"] == session["id"] != misleading["id"]


def test_a_name_that_looks_like_an_unknown_id_is_a_name(api, make):
    classroom, session = make.classroom(), make.session(name=str(uuid4()))

    made = api.ok(api.post("/cohorts", {"classroom": classroom["id"], "session_id": session["name"]}))

    assert made["session"] == session["id"]


def test_cohorts_are_listed_by_session_newest_first_then_by_classroom(api, make):
    old, new = make.session(), make.session()
    first, second = make.classroom(name="JSS 1"), make.classroom(name="JSS 2")
    made = [
        make.cohort(second, old),
        make.cohort(second, new),
        make.cohort(first, old),
        make.cohort(first, new),
    ]

    listed = [cohort["id"] for cohort in api.ok(api.get("/cohorts"))]

    assert listed == [made[number]["id"] for number in (3, 1, 2, 0)]


def test_the_cohorts_of_a_session_are_listed_with_their_arms(api, make):
    session = make.session()
    cohort, other = make.cohort(session=session), make.cohort()
    arms = [make.batch(cohort, name="Gold"), api.ok(api.get(f"/batches/{cohort['id']}"))]

    cohorts = api.ok(api.get(f"/cohorts?session={session['id']}"))

    assert cohorts == [{**cohort, "batches": sorted(arms, key=lambda arm: arm["name"])}]
    assert "batches" not in api.ok(api.get(f"/cohorts/{cohort['id']}"))
    assert other["id"] not in {listed["id"] for listed in cohorts}


def test_a_caller_of_an_arm_is_shown_that_arm_of_the_cohort(api, make):
    session = make.session()
    cohort = make.cohort(session=session)
    arm = make.batch(cohort, name="Gold")
    teacher = Own(make).form_teacher(arm["id"])

    (row,) = teacher.ok(teacher.get(f"/cohorts?session={session['id']}"))

    assert (row["id"], row["batches"]) == (cohort["id"], [arm])


def test_cohorts_of_an_unknown_session_or_one_of_another_school_are_none_to_list(api, make, make_other):
    for session in (str(uuid4()), make_other.session()["id"]):
        answer = api.get(f"/cohorts?session={session}")

        assert answer.status_code == 422
        assert list(answer.get_json()["errors"]["query"]) == ["session"]
    assert api.ok(api.get(f"/cohorts?session={make.session()['id']}")) == []


def test_a_second_cohort_of_classroom_and_session_is_a_conflict(api, make):
    classroom, session = make.classroom(), make.session()
    make.cohort(classroom, session)

    answer = api.post("/cohorts", {"classroom": classroom["id"], "session_id": session["name"]})

    assert answer.status_code == 409
    assert answer.get_json()["message"] == "A cohort with this classroom and session exists already."
    assert answer.get_json()["errors"] == {
        "json": {"classroom": ["already taken"], "session_id": ["already taken"]}
    }


def test_a_cohort_takes_another_classroom_and_another_session(api, make):
    made, classroom, session = make.cohort(), make.classroom(name="SSS 3"), make.session()

    changed = api.ok(
        api.patch(f"/cohorts/{made['id']}", {"classroom": classroom["id"], "session_id": session["name"]})
    )

    assert changed == {"id": made["id"], "classroom": "SSS 3", "session": session["id"]}
    assert api.ok(api.get(f"/cohorts/{made['id']}")) == changed


def test_a_change_to_the_same_changes_nothing(api, make):
    classroom, session = make.classroom(), make.session()
    made = make.cohort(classroom, session)
    make.enrolled(made)

    same = {"classroom": classroom["id"], "session_id": session["id"]}

    assert api.ok(api.patch(f"/cohorts/{made['id']}", same)) == made


def test_a_change_into_another_cohort_is_a_conflict(api, make):
    session, taken, other = make.session(), make.classroom(), make.classroom()
    make.cohort(taken, session)
    made = make.cohort(other, session)

    answer = api.patch(f"/cohorts/{made['id']}", {"classroom": taken["id"], "session_id": session["id"]})

    assert answer.status_code == 409
    assert api.ok(api.get(f"/cohorts/{made['id']}")) == made


def test_a_cohort_with_students_keeps_its_session_but_not_its_classroom(api, make):
    session, classroom = make.session(), make.classroom()
    made = make.cohort(session=session)
    make.enrolled(made)

    moved = api.patch(
        f"/cohorts/{made['id']}", {"classroom": classroom["id"], "session_id": make.session()["id"]}
    )
    renamed = api.patch(f"/cohorts/{made['id']}", {"classroom": classroom["id"], "session_id": session["id"]})

    assert (moved.status_code, moved.get_json()["message"]) == (409, "The cohort is in use by an enrollment.")
    assert api.ok(renamed) == {**made, "classroom": classroom["name"]}


def test_students_who_have_left_hold_a_cohort_in_its_session_too(api, make):
    classroom, made = make.classroom(), make.cohort()
    students = make.enrolled(made)
    api.ok(api.patch(f"/cohorts/{made['id']}/remove_students", {"student_ids": students}))

    answer = api.patch(
        f"/cohorts/{made['id']}", {"classroom": classroom["id"], "session_id": make.session()["id"]}
    )

    assert answer.status_code == 409


def test_assessments_hold_a_cohort_in_its_session_too(api, make):
    session, classroom = make.session(), make.classroom()
    made = make.cohort(session=session)
    make.assessment(make.cohort_subject(made), make.term(session))

    answer = api.patch(
        f"/cohorts/{made['id']}", {"classroom": classroom["id"], "session_id": make.session()["id"]}
    )

    assert (answer.status_code, answer.get_json()["message"]) == (
        409,
        "The cohort is in use by an assessment.",
    )
    assert api.ok(api.get(f"/cohorts/{made['id']}")) == made


def test_metrics_hold_a_cohort_in_its_session_too(api, make):
    session = make.session()
    made, classroom = make.cohort(session=session), make.classroom()
    make.term(session)
    (student,) = make.enrolled(made)
    [trait, *_] = api.ok(api.get("/metric-definitions"))
    of_student = {"student": student, "metric_type": trait["metric_type"]}
    scores = [{**of_student, "metric_scores": {trait["name"]: 3}}]
    api.ok(api.put(f"/metrics?batch={made['id']}&term=FIRST", scores))
    in_school(api, "DELETE FROM enrollments")

    answer = api.patch(
        f"/cohorts/{made['id']}", {"classroom": classroom["id"], "session_id": make.session()["id"]}
    )

    assert answer.status_code == 409


@pytest.mark.parametrize("member", ["classroom", "session_id"])
def test_an_unknown_classroom_or_session_names_its_field(api, make, make_other, member):
    known = {"classroom": make.classroom()["id"], "session_id": make.session()["id"]}
    made = make.cohort()
    foreign = make_other.classroom()["id"] if member == "classroom" else make_other.session()["id"]

    for unknown in (str(uuid4()), foreign):
        for answer in (
            api.post("/cohorts", {**known, member: unknown}),
            api.patch(f"/cohorts/{made['id']}", {**known, member: unknown}),
        ):
            assert answer.status_code == 422
            assert list(answer.get_json()["errors"]["json"]) == [member]


def test_the_other_schools_session_is_not_found_by_its_name(api, make, make_other):
    foreign, classroom = make_other.session(name="2031/2032"), make.classroom()

    answer = api.post("/cohorts", {"classroom": classroom["id"], "session_id": foreign["name"]})

    assert answer.status_code == 422


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"classroom": None},
        {"classroom": "JSS 1"},
        {"classroom": 1},
        {"session_id": None},
        {"session_id": ""},
        {"session_id": "  "},
        {"session_id": 2025},
        {"session_id": "2025\0"},
        {"session_id": "\ud800"},
        {"session_id": "x" * 121},
        {"session": str(uuid4())},
    ],
)
def test_a_body_that_is_no_cohort_is_refused(api, make, wrong):
    body = {"classroom": make.classroom()["id"], "session_id": make.session()["id"], **wrong} if wrong else {}
    made = make.cohort()

    assert api.post("/cohorts", body).status_code == 422
    assert api.patch(f"/cohorts/{made['id']}", body).status_code == 422
    assert api.ok(api.get("/cohorts")) == [made]


def test_a_patch_needs_both_members(api, make):
    made, classroom, session = make.cohort(), make.classroom(), make.session()

    for body in ({"classroom": classroom["id"]}, {"session_id": session["id"]}):
        assert api.patch(f"/cohorts/{made['id']}", body).status_code == 422


def test_an_unknown_cohort_is_not_found(api, make, make_other):
    body = {"classroom": make.classroom()["id"], "session_id": make.session()["id"]}

    for unknown in (uuid4(), make_other.cohort()["id"]):
        for answer in (api.get(f"/cohorts/{unknown}"), api.patch(f"/cohorts/{unknown}", body)):
            assert (answer.status_code, answer.get_json()["message"]) == (404, "No such cohort.")


def test_a_batch_is_no_cohort(api, make):
    batch = make.batch(make.cohort())

    assert api.get(f"/cohorts/{batch['id']}").status_code == 404


def test_the_other_school_sees_none_of_it(api, other_api, make, make_other):
    made, foreign = make.cohort(), make_other.cohort()

    assert api.ok(api.get("/cohorts")) == [made]
    assert other_api.ok(other_api.get("/cohorts")) == [foreign]
    assert api.using(school=other_api.school).get("/cohorts").status_code == 403


def test_each_operation_asks_for_its_permission(make):
    made = make.cohort()
    body = {"classroom": make.classroom()["id"], "session_id": make.session()["id"]}
    nobody, reader, writer = make.caller(), make.caller("read:cohorts"), make.caller("write:cohorts")

    for caller, status in ((nobody, 403), (reader, 200), (writer, 403)):
        assert caller.get("/cohorts").status_code == status
        assert caller.get(f"/cohorts/{made['id']}").status_code == status
    for caller, status in ((nobody, 403), (reader, 403), (writer, 200)):
        assert caller.patch(f"/cohorts/{made['id']}", body).status_code == status
        other = {**body, "classroom": make.classroom()["id"]}
        assert caller.post("/cohorts", other).status_code == status


def test_the_list_costs_one_round_trip_however_long_it_is(api, make, messages):
    for size in (2, 20):
        for _ in range(size):
            make.cohort()
        api.ok(api.get("/cohorts"))
        with messages() as sent:
            api.ok(api.get("/cohorts"))
        assert len(sent) == 1, sent


def test_twenty_at_once_make_one_cohort_of_a_classroom_and_session(committing):
    api = committing.api
    body = {"classroom": committing.classroom()["id"], "session_id": committing.session()["id"]}

    answers = run_concurrently(20, lambda _: api.using().post("/cohorts", body))

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 19
    assert len(api.ok(api.get("/cohorts"))) == 1
