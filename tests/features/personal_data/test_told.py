"""Telling the stored data of a person."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.factories import UNKNOWN_ID
from tests.features.personal_data.people import (
    GUARDIAN,
    PRIVATE_OF_STUDENT,
    make_employee,
    make_graduate,
    make_student,
)

KINDS = {"students": make_student, "employees": make_employee}
each_kind = pytest.mark.parametrize("kind", KINDS)


def data_of(api, kind, person):
    return api.ok(api.get(f"/{kind}/{person['id']}/data"))


def test_a_student_with_all_that_is_stored(api, make):
    student = make_student(make)

    document = data_of(api, "students", student)

    stored = {**document["user"], **document["student"]}
    assert {name: stored[name] for name in PRIVATE_OF_STUDENT} == {
        **PRIVATE_OF_STUDENT,
        "last_name": "Bello-Zxqvjk",
    }
    (link,) = document["guardians"]
    assert {name: link[name] for name in ("full_name", "relationship", "is_primary")} == {
        "full_name": GUARDIAN["full_name"],
        "relationship": GUARDIAN["relationship"],
        "is_primary": True,
    }
    assert document["user"]["username"] == "chidinma.zxqvjk"
    assert [contact["phone_number"] for contact in document["contacts"]] == ["0805-Zxqvjk"]
    assert sorted(role["role"][:4] for role in document["roles"]) == ["Role", "Stud"]
    (enrollment,) = document["enrollments"]
    assert enrollment["batch"] == "A"
    assert enrollment["classroom"].startswith("JSS")
    (entry,) = document["gradebook_entries"]
    assert (entry["score"], entry["total_points"], entry["term"]) == (12.5, 20, "First term")
    (metric,) = document["metrics"]
    assert [score["score"] for score in metric["scores"]] == [5, 3]
    assert len(document["subject_enrollments"]) == 1
    assert document["graduate"] is None


def test_a_graduate(api, make):
    student = make_graduate(make)

    assert data_of(api, "students", student)["graduate"]["number"] == 1


def test_an_employee_with_all_that_is_stored(api, make):
    employee = make_employee(make)

    document = data_of(api, "employees", employee)

    assert document["user"]["first_name"] == "Adaeze-Zxqvjk"
    assert document["employee"]["religion"] == "R-Zxqvjk"
    assert {name: document["employee"][name] for name in ("dob", "join_date")} == {
        "dob": "1985-04-12",
        "join_date": "2020-01-06",
    }
    assert document["bank_account"]["account_number"] == "12-Zxqvjk"
    assert document["next_of_kin"]["relationship"] == "husband-Zxqvjk"
    assert len(document["contacts"]) == 2
    assert [post["batch"] for post in document["form_teachers"]] == ["A"]
    assert [taught["batch"] for taught in document["subject_teachers"]] == ["A"]


@each_kind
def test_a_password_is_told_in_no_form(api, make, kind):
    person = KINDS[kind](make)

    whole = api.get(f"/{kind}/{person['id']}/data").get_data(as_text=True)

    assert "argon2" not in whole
    assert "password_hash" not in whole
    assert "a password" not in whole


def test_the_audit_log_tells_changes_and_names_no_actor_but_the_person(api, make, place):
    student = make.student(password="a password", username="ada")
    role = make.role("write:users")
    api.ok(api.put(f"/users/{student['user']}/roles", {"role": role["id"]}))
    own = make.signed_in({"id": student["user"], "username": "ada"}, "a password")
    own.ok(own.patch(f"/users/{student['user']}", {"first_name": "Adá"}))
    of_another = make.user()["user"]
    own.ok(own.patch(f"/users/{of_another['id']}", {"first_name": "Somebody else"}))

    entries = data_of(api, "students", student)["audit"]

    by_the_person = [entry for entry in entries if entry["actor"] is not None]
    assert [(entry["old"], entry["new"]) for entry in by_the_person] == [
        ({"first_name": "Chidinma"}, {"first_name": "Adá"})
    ]
    assert {entry["actor"] for entry in by_the_person} == {student["user"]}
    assert str(place.admin_id) not in str(entries)
    assert "Somebody else" not in str(entries)
    moments = [datetime.fromisoformat(entry["at"]) for entry in entries]
    assert len(moments) > 2
    assert moments == sorted(moments)


def test_a_deleted_employee_is_told_too(api, make):
    employee = make_employee(make)
    before = data_of(api, "employees", employee)
    api.ok(api.delete(f"/employees/{employee['id']}?release=true"))
    assert api.get(f"/employees/{employee['id']}").status_code == 404

    after = data_of(api, "employees", employee)

    assert after["employee"]["deleted_at"] is not None
    assert after["bank_account"] == before["bank_account"]
    assert after["form_teachers"] == []
    (ended,) = after["subject_teachers"]
    assert ended["ends_on"] is not None
    assert [{**ended, "ends_on": None}] == before["subject_teachers"]


def test_a_score_of_a_deleted_assessment_is_told_too(api, make):
    taught = make.taught()
    assessment = make.assessment(taught.subject, taught.term)
    make.entry(assessment, taught.students[0], taught.cohort["id"], 7)
    api.ok(api.delete(f"/assessments/{assessment['id']}"))

    (entry,) = data_of(api, "students", {"id": taught.students[0]})["gradebook_entries"]

    assert entry["score"] == 7


@each_kind
def test_an_unknown_person_is_not_found(api, kind):
    answer = api.get(f"/{kind}/{UNKNOWN_ID}/data")

    assert (answer.status_code, answer.get_json()["message"]) == (404, f"No such {kind[:-1]}.")


@each_kind
def test_the_other_school_learns_nothing(api, other_api, make, kind):
    path = f"/{kind}/{KINDS[kind](make)['id']}/data"

    assert other_api.get(path).status_code == 404
    assert other_api.using(school=api.school).get(path).status_code == 403
    assert api.using(school=other_api.school).get(path).status_code == 403
    assert api.get(path).status_code == 200


@each_kind
def test_an_employee_is_no_student_and_a_student_no_employee(api, make, kind):
    (other,) = KINDS.keys() - {kind}

    assert api.get(f"/{kind}/{KINDS[other](make)['id']}/data").status_code == 404


AREAS = {
    "students": {"students", "users", "roles", "contacts", "cohorts", "gradebooks", "metrics", "results"}
    | {"attendance", "graduates", "audit"},
    "employees": {"employees", "users", "roles", "contacts", "teachers", "audit"},
}


@each_kind
def test_the_permission_of_each_area_that_is_told_of_is_needed(make, kind):
    path = f"/{kind}/{KINDS[kind](make)['id']}/data"
    needed = {f"read:{area}" for area in AREAS[kind]}
    for lacking in sorted(needed):
        answer = make.caller(*(needed - {lacking}), f"write:{kind}", "write:users").get(path)

        assert (answer.status_code, answer.get_json()["message"]) == (
            403,
            f"This needs the permission {lacking}.",
        )
    assert make.caller(*needed).get(path).status_code == 200


@each_kind
def test_a_copy_of_any_length_costs_three_round_trips(api, make, messages, kind):
    person = KINDS[kind](make)
    account = {"id": person["user"]}
    for count in (0, 30):
        for _ in range(count):
            make.contact(account)
            api.ok(api.patch(f"/users/{account['id']}", {"first_name": f"Ada {_}"}))
        data_of(api, kind, person)
        with messages() as sent:
            document = data_of(api, kind, person)
        assert len(sent) == 3, sent
        assert len(document["contacts"]) >= count
