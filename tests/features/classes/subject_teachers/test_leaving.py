"""An employee who leaves: their subjects and form classes are handed over, or released."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from tests.factories import UNKNOWN_ID
from tests.features.reach.conftest import Own, make_arms
from tests.threads import run_concurrently

# Every test of the module has the same begin, whichever ran before.
pytestmark = pytest.mark.usefixtures("made_arms")


def dates_by_subject(api, employee):
    """The assignments of an employee, by subject and arm, with their dates."""
    assignments = api.ok(api.get(f"/subject-teachers?employee={employee['id']}"))["data"]
    return {
        (assignment["cohort_subject"], assignment["batch"]): (assignment["starts_on"], assignment["ends_on"])
        for assignment in assignments
    }


def entries(api, entity):
    page = api.ok(api.get(f"/audit?entity={entity}&pageSize=100"))["data"]
    return [(entry["action"], entry["old"], entry["new"]) for entry in page]


@pytest.fixture
def today():
    return date.fromisoformat(Own.today())


@pytest.fixture
def leaver(arms, make, own, today):
    """A teacher of the subject in arm A and of the other in all, who looks after arm A."""
    employee = make.employee()
    own.assign(employee, arms.subject, arms.a)
    own.assign(employee, arms.other, None, starts_on=str(today - timedelta(days=9)))
    make.api.ok(make.api.patch(f"/teachers/{arms.a}/add_to_batch", {"teacher_id": employee["id"]}))
    return employee


@pytest.fixture
def heir(make):
    return make.employee()


def test_a_teacher_is_not_deleted_and_the_refusal_names_and_counts_their_classes(arms, make, leaver):
    api = make.api

    answer = api.delete(f"/employees/{leaver['id']}")

    assert (answer.status_code, answer.get_json()["type"]) == (409, "in-use")
    room, year = arms.cohort["classroom"], arms.session["name"]
    subjects = [
        f"{arms.subject['subject']} in {room} A, {year}",
        f"{arms.other['subject']} in {room}, {year}",
    ]
    assert answer.get_json()["message"] == (
        f"The employee teaches 2 subjects ({'; '.join(sorted(subjects))}) and looks after 1 form class "
        f"({room} A, {year}): hand them over with hand_over, or leave them to nobody with release=true."
    )
    unnamed = make.caller("delete:employees").delete(f"/employees/{leaver['id']}")
    assert "teaches 2 subjects and looks after 1 form class: hand" in unnamed.get_json()["message"]
    assert api.ok(api.get(f"/employees/{leaver['id']}"))["id"] == leaver["id"]
    assert set(dates_by_subject(api, leaver).values()) >= {(None, None)}


def test_an_heir_has_the_subjects_and_classes_from_today_on(arms, make, own, leaver, heir, today):
    api, day, before = make.api, str(today), str(today - timedelta(days=9))

    api.ok(api.delete(f"/employees/{leaver['id']}?hand_over={heir['id']}"))

    of_leaver, of_heir = (arms.subject["id"], arms.a), (arms.other["id"], None)
    assert dates_by_subject(api, leaver) == {of_leaver: (None, day), of_heir: (before, day)}
    assert dates_by_subject(api, heir) == {of_leaver: (day, None), of_heir: (day, None)}
    assert {assignment["employee"] for assignment in api.ok(api.get("/subject-teachers"))["data"]} == {
        heir["id"]
    }
    assert api.ok(api.get(f"/teachers/{arms.a}"))["last_name"] == heir["last_name"]
    client = own.caller(make.account_of(heir), "read:cohort-subjects", "read:students")
    mine = client.ok(client.get("/cohort-subjects"))["data"]
    assert {assignment["id"] for assignment in mine} == {arms.subject["id"], arms.other["id"]}
    logged = entries(api, "subject-teacher")
    assert tuple(sorted({action for action, *_ in logged[:4]}, reverse=True)) == ("update", "create")
    forms = entries(api, "form-teacher")
    assert ("create", None, {"teacher": heir["id"]}) in forms
    assert ("delete", {"teacher": leaver["id"]}, None) in forms


def test_assignments_of_the_heir_stay(arms, make, own, leaver, heir, today):
    api, since = make.api, str(today - timedelta(days=30))
    own.assign(heir, arms.subject, arms.a, starts_on=since)
    api.ok(api.patch(f"/teachers/{arms.a}/add_to_batch", {"teacher_id": heir["id"]}))

    api.ok(api.delete(f"/employees/{leaver['id']}?hand_over={heir['id']}"))

    assert dates_by_subject(api, heir) == {
        (arms.subject["id"], arms.a): (since, None),
        (arms.other["id"], None): (str(today), None),
    }
    assert api.ok(api.get(f"/teachers/{arms.a}"))["last_name"] == heir["last_name"]


def test_released_work_ends_today_and_is_nobodys(arms, make, leaver, today):
    api = make.api

    api.ok(api.delete(f"/employees/{leaver['id']}?release=true"))

    assert {ends for _, ends in dates_by_subject(api, leaver).values()} == {str(today)}
    assert api.ok(api.get("/subject-teachers"))["data"] == []
    assert api.get(f"/teachers/{arms.a}").status_code == 404


def test_an_assignment_yet_to_begin_begins_for_the_heir_as_planned(arms, make, own, heir, today):
    api, leaver = make.api, make.employee()
    soon, later = (str(today + timedelta(days=days)) for days in (3, 9))
    own.assign(leaver, arms.subject, arms.a, starts_on=soon, ends_on=later)
    own.assign(leaver, arms.subject, arms.b, ends_on=later)

    api.ok(api.delete(f"/employees/{leaver['id']}?hand_over={heir['id']}"))

    assert dates_by_subject(api, leaver) == {(arms.subject["id"], arms.b): (None, str(today))}
    assert dates_by_subject(api, heir) == {
        (arms.subject["id"], arms.a): (soon, later),
        (arms.subject["id"], arms.b): (str(today), later),
    }


def test_assignments_that_are_over_are_in_nobodys_way(arms, make, own, today):
    """They end today or before, or their session ended more than 60 days ago."""
    api, leaver = make.api, make.employee()
    own.assign(leaver, arms.subject, arms.a, ends_on=str(today))
    end = today - timedelta(days=61)
    past = make.session(start_date=str(end - timedelta(days=300)), end_date=str(end))
    cohort = make.cohort(session=past)
    subject = make.cohort_subject(cohort)
    own.assign(leaver, subject, None)
    api.ok(api.patch(f"/teachers/{cohort['id']}/add_to_batch", {"teacher_id": leaver["id"]}))

    api.ok(api.delete(f"/employees/{leaver['id']}"))

    assert dates_by_subject(api, leaver) == {
        (arms.subject["id"], arms.a): (None, str(today)),
        (subject["id"], None): (None, None),
    }


def test_an_assignment_of_a_session_that_ended_60_days_ago_is_handed_over(make, own, heir, made_arms, today):
    api, leaver = make.api, make.employee()
    end = today - timedelta(days=60)
    past = make.session(start_date=str(end - timedelta(days=300)), end_date=str(end))
    own.assign(leaver, make.cohort_subject(make.cohort(session=past)), None)

    assert api.delete(f"/employees/{leaver['id']}").status_code == 409
    api.ok(api.delete(f"/employees/{leaver['id']}?hand_over={heir['id']}"))
    assert len(dates_by_subject(api, heir)) == 1


def test_leaving_needs_the_permissions_of_assigning_and_taking(make, leaver, heir):
    path = f"/employees/{leaver['id']}"

    for permission, query in (
        ("write:teachers", f"hand_over={heir['id']}"),
        ("delete:teachers", "release=true"),
    ):
        other = {"write:teachers", "delete:teachers"} - {permission}
        refused = make.caller("delete:employees", *other).delete(f"{path}?{query}")
        assert refused.status_code == 403
        assert permission in refused.get_json()["message"]
    make.api.ok(make.caller("delete:employees", "write:teachers").delete(f"{path}?hand_over={heir['id']}"))


def test_an_heir_who_can_not_teach_is_refused_and_nothing_is_stored(arms, make, make_other, leaver):
    api, deleted, closed = make.api, make.employee(), make.employee()
    api.ok(api.delete(f"/employees/{deleted['id']}"))
    api.ok(api.delete(f"/users/{make.account_of(closed)['id']}/delete"))
    before = dates_by_subject(api, leaver)

    for heir in (deleted["id"], closed["id"], leaver["id"], make_other.employee()["id"], UNKNOWN_ID, "", "x"):
        answer = api.delete(f"/employees/{leaver['id']}", query_string={"hand_over": heir})
        assert answer.status_code == 422, heir
        assert list(answer.get_json()["errors"]["query"]) == ["hand_over"]
    both = {"hand_over": make.employee()["id"], "release": "true"}
    assert api.delete(f"/employees/{leaver['id']}", query_string=both).status_code == 422
    assert api.delete(f"/employees/{leaver['id']}?release=perhaps").status_code == 422
    assert dates_by_subject(api, leaver) == before
    for unknown in (UNKNOWN_ID, make_other.employee()["id"]):
        assert api.delete(f"/employees/{unknown}?release=true").status_code == 404


def test_another_school_is_not_concerned(make, make_other, other_api, leaver, heir):
    theirs = make_other.employee()
    row = {"cohort_subject": make_other.cohort_subject()["id"], "employee": theirs["id"]}
    other_api.ok(other_api.put("/subject-teachers", {"assignments": [row]}))
    before = dates_by_subject(other_api, theirs)

    assert other_api.delete(f"/employees/{leaver['id']}?release=true").status_code == 404
    make.api.ok(make.api.delete(f"/employees/{leaver['id']}?hand_over={heir['id']}"))
    assert dates_by_subject(other_api, theirs) == before


def test_a_teacher_with_more_permissions_is_not_deleted_nor_their_work_handed_over(make, own, leaver, heir):
    """The last check refuses, and all before it is undone."""
    own.caller(make.account_of(leaver), "write:roles", reach="SCHOOL")
    before = dates_by_subject(make.api, leaver)

    refused = make.caller("delete:employees", "write:teachers").delete(
        f"/employees/{leaver['id']}?hand_over={heir['id']}"
    )

    assert refused.status_code == 403
    assert (dates_by_subject(make.api, leaver), dates_by_subject(make.api, heir)) == (before, {})


def test_if_match_is_judged_before(make, leaver):
    path = f"/employees/{leaver['id']}?release=true"

    assert make.api.delete(path, headers={"If-Match": '"other"'}).status_code == 412
    tag = make.api.get(f"/employees/{leaver['id']}").headers["ETag"]
    make.api.ok(make.api.delete(path, headers={"If-Match": tag}))


def test_the_number_of_messages_does_not_depend_on_the_work(arms, make, own, heir, messages):
    def sent(*subjects):
        leaver = make.employee()
        for subject in subjects:
            own.assign(leaver, subject, arms.a)
        with messages() as counted:
            make.api.ok(make.api.delete(f"/employees/{leaver['id']}?hand_over={heir['id']}"))
        return len(counted)

    assert sent(arms.subject) == sent(arms.other, *(make.cohort_subject(arms.cohort) for _ in range(5)))


def test_leavers_who_name_each_other_at_once_do_not_wait_in_a_circle(committing):
    arms, own = make_arms(committing), Own(committing)
    people = [committing.employee() for _ in "AB"]
    for person, batch in zip(people, (arms.a, arms.b), strict=True):
        own.assign(person, arms.subject, batch)

    def leave(number):
        leaver, heir = people[number], people[1 - number]
        return committing.api.using().delete(f"/employees/{leaver['id']}?hand_over={heir['id']}").status_code

    assert sorted(run_concurrently(2, leave)) == [200, 422]
