"""GET /me: the caller's account, permissions and relations."""

from __future__ import annotations

import pytest

from school_service.auth.tokens import issue_client_token
from tests.auth.conftest import grant
from tests.features.reach.conftest import arms, made_arms, own

# Every test of the module has the same begin, whichever ran before.
pytestmark = pytest.mark.usefixtures("made_arms")

__all__ = ["arms", "grant", "made_arms", "own"]

NOTHING = {
    "client": None,
    "roles": [],
    "permissions": [],
    "classes": [],
    "subjects": [],
    "children": [],
    "student": None,
    "employee": None,
    "guardian": None,
}


def me(client):
    return client.ok(client.get("/me"))


def test_an_administrator(api, place):
    profile = me(api)

    user = api.ok(api.get(f"/users/{place.admin_id}"))
    assert (profile["user"], profile["school"]) == (user, user["school"])
    assert [(role["name"], role["reach"]) for role in profile["roles"]] == [("Administrator", "SCHOOL")]
    names = [each["permission"] for each in profile["permissions"]]
    assert names == sorted(names)
    assert "write:gradebooks" in names
    assert {each["reach"] for each in profile["permissions"]} == {"SCHOOL"}
    assert {**profile, "user": None, "school": None, "roles": [], "permissions": []} == {
        **NOTHING,
        "user": None,
        "school": None,
        "must_change_password": False,
    }


@pytest.mark.parametrize("reach", ["SCHOOL", "OWN"])
def test_a_teacher_of_any_reach_is_told_their_classes_and_subjects(arms, make, own, messages, reach):
    employee = make.employee()
    account = make.account_of(employee)
    teacher = own.caller(account, "read:students", reach=reach)
    own.assign(employee, arms.subject, arms.b)
    own.assign(employee, arms.other, None, ends_on="2020-01-01")
    make.api.ok(make.api.patch(f"/teachers/{arms.a}/add_to_batch", {"teacher_id": employee["id"]}))

    with messages() as sent:
        profile = me(teacher)

    assert len(sent) == 1
    assert profile["permissions"] == [{"permission": "read:students", "reach": reach}]
    assert profile["classes"] == [
        {
            "batch": arms.a,
            "batch_name": "A",
            "cohort": arms.cohort["id"],
            "classroom": arms.cohort["classroom"],
            "session": arms.session["id"],
        }
    ]
    (taught,) = profile["subjects"]
    listed = make.api.ok(make.api.get(f"/subject-teachers?batch={arms.b}"))["data"]
    assert taught in listed
    assert (taught["cohort_subject"], taught["batch"]) == (arms.subject["id"], arms.b)
    assert profile["employee"]["id"] == employee["id"]
    assert profile["employee"]["title"] == employee["title"]


def test_me_of_a_student_has_their_own_record(arms, make, own):
    student = own.student(arms.in_a[0], "read:students")

    profile = me(student)

    assert profile["student"] == {
        **make.api.ok(make.api.get(f"/students/{arms.in_a[0]}")),
        "guardian": None,
    }
    assert (profile["employee"], profile["classes"], profile["subjects"]) == (None, [], [])


def test_a_user_without_a_role_is_told_too(make):
    caller = make.caller()

    profile = me(caller)

    assert profile["user"]["id"] == caller.user["id"]
    assert {name: profile[name] for name in NOTHING} == NOTHING


def test_me_answers_while_the_password_must_be_changed(api, make):
    api.ok(api.patch("/settings", {"must_change_password": True}))
    caller = make.caller("read:students")

    profile = me(caller)

    assert profile["must_change_password"] is True
    assert profile["user"]["id"] == caller.user["id"]
    assert {name: profile[name] for name in NOTHING} == NOTHING
    assert caller.get("/students").status_code == 403


@pytest.mark.parametrize(
    ("granted", "shown"), [({"permissions": ["read:students"]}, 1), ({"all_permissions": True}, 40)]
)
def test_a_client(api, grant, place, messages, granted, shown):
    client_id, _ = grant(school_ids=[place.id], **granted)
    key = api.app.extensions["school-service"].verifier.key
    client = api.using(token=issue_client_token(key, client_id, [place.id])["access_token"])

    with messages() as sent:
        profile = me(client)

    assert len(sent) == 2
    assert (profile["user"], profile["client"], profile["school"]["id"]) == (None, client_id, str(place.id))
    assert len(profile["permissions"]) >= shown
    assert {each["reach"] for each in profile["permissions"]} == {"SCHOOL"}


def test_nobody_is_refused(api):
    assert api.using(token=None).get("/me").status_code == 401
    assert api.get("/users/me").status_code == 404
