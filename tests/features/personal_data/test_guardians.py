"""Telling the stored data of a guardian, and erasing them; and guardians of erased students."""

from __future__ import annotations

from tests.factories import PASSWORD, UNKNOWN_ID
from tests.features.personal_data.people import MARK, PRIVATE_OF_GUARDIAN, make_guardian
from tests.features.personal_data.test_erased import dump
from tests.threads import run_concurrently


def data_of(api, guardian):
    return api.ok(api.get(f"/guardians/{guardian['id']}/data"))


def erase(api, guardian):
    return api.delete(f"/guardians/{guardian['id']}/data")


def test_all_that_is_stored_is_told(api, make):
    guardian = make_guardian(make)

    document = data_of(api, guardian)

    stored = {name: document["guardian"][name] for name in PRIVATE_OF_GUARDIAN}
    assert stored == {**PRIVATE_OF_GUARDIAN, "phone_number": "0807-Zxqvjk"}
    assert (document["user"]["username"], len(document["contacts"])) == ("halima.zxqvjk", 1)
    assert [role["role"][:4] for role in document["roles"]][-1:] == ["Role"]
    assert [child["student_id"] for child in document["children"]] == guardian["students"]
    assert [bool(child["stopped_at"]) for child in document["children"]] == [False, True]
    assert {entry["entity"] for entry in document["audit"]} == {
        "guardian",
        "student-guardian",
        "user",
        "contact",
    }
    # Neither the reason of a stop, nor its author.
    assert "fights" not in str(document)
    assert not {"stop_reason", "stopped_by", "stopped_by_name"} & document["children"][1].keys()


def test_without_an_account_the_record_is_told(api, make):
    document = data_of(api, make.guardian())

    assert (document["user"], document["roles"], document["contacts"], document["children"]) == (
        None,
        [],
        [],
        [],
    )


def test_nothing_private_is_left_but_in_the_log(committing, tenancy):
    guardian = make_guardian(committing)
    assert dump(tenancy, committing.api.school).lower().count(MARK) > 8

    committing.api.ok(erase(committing.api, guardian))

    assert MARK not in dump(tenancy, committing.api.school).lower()


def test_an_erased_guardian_is_a_pseudonym(api, make):
    guardian = make_guardian(make)

    assert api.ok(erase(api, guardian)) == {"id": guardian["id"], "deleted": True}

    shown = api.ok(api.get(f"/guardians/{guardian['id']}"))
    assert shown["full_name"].startswith("Erased ")
    assert (shown["user"], shown["children"], shown["phone_number"]) == (None, [], None)
    assert api.get(f"/users/{guardian['user']}").status_code == 404
    # Again changes nothing, and nothing of them can be changed.
    log = api.ok(api.get("/audit", query_string={"id": guardian["id"]}))["total"]
    api.ok(erase(api, guardian))
    assert api.ok(api.get("/audit", query_string={"id": guardian["id"]}))["total"] == log
    student = make.student()
    assert api.patch(f"/guardians/{guardian['id']}", {"full_name": "A"}).status_code == 409
    assert api.put(f"/guardians/{guardian['id']}/account", {"username": "x"}).status_code == 409
    link = f"/students/{student['id']}/guardians/{guardian['id']}"
    assert api.put(link, {"relationship": "x"}).status_code == 409


def test_a_guardian_of_an_enrolled_student_is_not_erased(api, make):
    student, other = make.student(), make.student()
    guardian = make.guardian(student, other)
    api.ok(api.put(f"/students/{student['id']}/guardians/{guardian['id']}/stop", {"reason": "x"}))
    cohort = make.cohort()
    make.enrolled(cohort, student)

    assert erase(api, guardian).status_code == 409

    api.ok(api.patch(f"/cohorts/{cohort['id']}/remove_students", {"student_ids": [student["id"]]}))
    api.ok(erase(api, guardian))


def test_the_account_of_an_employee_or_a_student_stays(api, make):
    employee = make.employee()
    for user in (make.account_of(employee)["id"], make.student()["user"]):
        guardian = make.guardian()
        api.ok(api.put(f"/guardians/{guardian['id']}/account", {"user": user}))
        before = api.ok(api.get(f"/users/{user}"))

        api.ok(erase(api, guardian))

        assert api.ok(api.get(f"/users/{user}")) == before


def test_erasing_an_employee_takes_the_account_from_the_guardian(api, make):
    employee, student = make.employee(), make.student()
    guardian = make.guardian(student)
    user = make.account_of(employee)["id"]
    api.ok(api.put(f"/guardians/{guardian['id']}/account", {"user": user}))
    api.ok(api.delete(f"/employees/{employee['id']}"))

    api.ok(api.delete(f"/employees/{employee['id']}/data"))

    shown = api.ok(api.get(f"/guardians/{guardian['id']}"))
    assert (shown["user"], len(shown["children"])) == (None, 1)


def test_erasing_a_student_erases_guardians_without_account_and_other_child(api, make):
    student, sister = make.student(guardian={"full_name": "Ada-Zxqvjk", "phone_number": "1"}), make.student()
    kept, stopped, with_account = (
        make.guardian(student, sister),
        make.guardian(student),
        make.guardian(student),
    )
    api.ok(api.put(f"/guardians/{with_account['id']}/account", {"username": "kept"}))
    api.ok(api.put(f"/students/{student['id']}/guardians/{stopped['id']}/stop", {"reason": "x"}))

    api.ok(api.delete(f"/students/{student['id']}/data"))

    guardians = api.ok(api.get("/guardians"))["data"]
    assert {guardian["id"]: len(guardian["children"]) for guardian in guardians} == {
        kept["id"]: 1,
        with_account["id"]: 0,
    }
    assert api.ok(api.get(f"/students/{student['id']}/guardians")) == []


def test_a_clerk_who_may_not_erase_the_account_erases_nothing(api, make):
    guardian = make_guardian(make)
    clerk = make.caller("write:students", "write:users")

    assert erase(clerk, guardian).status_code == 403
    assert erase(make.caller("write:students"), guardian).status_code == 403
    assert data_of(api, guardian)["guardian"]["full_name"] == PRIVATE_OF_GUARDIAN["full_name"]


def test_a_clerk_who_may_not_end_an_employees_sessions_erases_no_guardian_with_their_account(api, make):
    clerk, guardian, employee = make.caller("write:students", "write:users"), make.guardian(), make.employee()
    user = make.account_of(employee)
    api.ok(api.put(f"/users/{user['id']}/roles", {"role": make.role("read:employees")["id"]}))
    api.ok(api.put(f"/users/{user['id']}/password", {"password": PASSWORD}))
    caller = make.signed_in(user)
    api.ok(api.put(f"/guardians/{guardian['id']}/account", {"user": user["id"]}))

    refused = erase(clerk, guardian)

    assert (refused.status_code, "read:employees" in refused.get_json()["message"]) == (403, True)
    assert caller.get("/employees").status_code == 200
    assert api.ok(api.get(f"/guardians/{guardian['id']}"))["user"] == user["id"]


def test_a_guardian_unknown_or_of_the_other_school_is_not_found(api, other_api, make):
    guardian = make.guardian()
    for client, person in ((api, {"id": UNKNOWN_ID}), (other_api, guardian)):
        assert client.get(f"/guardians/{person['id']}/data").status_code == 404
        assert erase(client, person).status_code == 404


def test_of_many_at_once_one_erases(committing):
    guardian, api = make_guardian(committing), committing.api

    answers = run_concurrently(6, lambda _: erase(api.using(), guardian))

    assert {answer.status_code for answer in answers} == {200}
    log = api.ok(api.get("/audit", query_string={"entity": "guardian", "id": guardian["id"]}))["data"]
    assert [entry["new"]["erased"] for entry in log if "erased" in (entry["new"] or {})] == [True]
