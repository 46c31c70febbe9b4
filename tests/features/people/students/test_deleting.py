"""Deleting students without a history, with the records that are theirs alone."""

from __future__ import annotations

from tests.threads import run_concurrently


def message(answer):
    return answer.get_json()["message"]


def test_account_contacts_and_guardian_go_too_and_the_names_are_free(api, make):
    fields = {
        "admission_number": "QC/1",
        "username": "chidinma",
        "guardian": {"full_name": "Ngọzi Eze"},
        "password": "a password of some length",
    }
    student = make.student(**fields)
    contact = make.contact({"id": student["user"]})
    role = make.role()["id"]
    api.ok(api.put(f"/users/{student['user']}/roles", {"role": role}))

    api.ok(api.delete(f"/students/{student['id']}"))

    for path in (
        f"/students/{student['id']}",
        f"/users/{student['user']}",
        f"/students/{student['id']}/data",
    ):
        assert api.get(path).status_code == 404
    assert api.get("/contacts", query_string={"user_id": student["user"]}).status_code == 422
    assert api.put(f"/users/{student['user']}/restore").status_code == 404
    assert (
        api.post("/users/login", {"username": "chidinma", "password": fields["password"]}).status_code == 401
    )
    again = make.student(**fields)
    assert again["number"] == student["number"] + 1
    api.ok(api.delete(f"/roles/{role}"))
    deleted = api.ok(api.get("/audit", query_string={"pageSize": 1000}))["data"]
    records = {
        (entry["entity"], entry["entity_id"]): entry["old"]
        for entry in deleted
        if entry["action"] == "delete"
    }
    assert records["student", student["id"]] == {
        "user": student["user"],
        "admission_number": "QC/1",
        "status": "ACTIVE",
    }
    assert records["user", student["user"]]["username"] == "chidinma"
    assert records["contact", contact["id"]] == {"owner": student["user"]}


def test_a_student_with_a_history_stays(api, make):
    taught = make.taught(1)
    (student,) = taught.students
    make.entry(make.assessment(taught.subject, taught.term), student, taught.cohort["id"])

    answer = api.delete(f"/students/{student}")

    words = "The student is in use by 1 enrollment, 1 score, 1 subject enrollment."
    assert (answer.status_code, message(answer)) == (409, words)
    api.ok(api.patch(f"/cohorts/{taught.cohort['id']}/remove_students", {"student_ids": [student]}))
    words = "The student is in use by 1 enrollment, 1 score."
    assert message(api.delete(f"/students/{student}")) == words
    api.ok(api.get(f"/students/{student}"))


def test_a_graduate_stays(api, make):
    student = make.student()
    make.graduate(student)

    assert message(api.delete(f"/students/{student['id']}")) == "The student is in use by 1 graduate."


def test_a_student_withdrawn_or_with_a_deleted_account_goes(api, make):
    withdrawn, without = make.student(), make.student()
    api.ok(api.patch(f"/students/{withdrawn['id']}", {"status": "WITHDRAWN"}))
    api.ok(api.delete(f"/users/{without['user']}/delete"))

    for student in (withdrawn, without):
        api.ok(api.delete(f"/students/{student['id']}"))


def test_nobody_deletes_an_account_that_may_more_than_they(api, make):
    student = make.student()
    role = make.role("read:audit")["id"]
    api.ok(api.put(f"/users/{student['user']}/roles", {"role": role}))

    answer = make.caller("delete:students").delete(f"/students/{student['id']}")

    words = "Deleting this student needs the permission read:audit."
    assert (answer.status_code, message(answer)) == (403, words)
    assert (
        make.caller("delete:students", "read:audit").delete(f"/students/{student['id']}").status_code == 200
    )


def test_the_last_holder_of_every_permission_stays(api, make):
    student = make.student(password="a password of some length", username="head")
    (administrator,) = [role for role in api.ok(api.get("/roles")) if role["name"] == "Administrator"]
    api.ok(api.put(f"/users/{student['user']}/roles", {"role": administrator["id"]}))
    signed_in = api.ok(
        api.post("/users/login", {"username": "head", "password": "a password of some length"})
    )
    head = api.using(token=signed_in["access_token"]["access_token"])
    for user in api.ok(api.get("/users"))["data"]:
        if user["id"] != student["user"]:
            head.ok(head.delete(f"/users/{user['id']}/delete"))

    answer = head.delete(f"/students/{student['id']}")

    words = "Deleting this student would leave nobody who has every permission."
    assert (answer.status_code, message(answer)) == (409, words)
    head.ok(head.get(f"/students/{student['id']}"))


def test_a_student_enrolled_meanwhile_stays_whole(committing):
    api, cohort = committing.api, committing.cohort()
    students = [committing.student()["id"] for _ in range(4)]
    body = {"students": students, "batch": cohort["id"]}

    def work(number):
        if number == 4:
            return api.using().post(f"/cohorts/{cohort['id']}/enrollment", body)
        return api.using().delete(f"/students/{students[number]}")

    *deleted, enrolled = run_concurrently(5, work)

    statuses = [answer.status_code for answer in deleted]
    assert set(statuses) <= {200, 409}
    # All are enrolled, or the deleted ones are unknown.
    assert (enrolled.status_code == 200) == (statuses == [409] * 4)
    for student, status in zip(students, statuses, strict=True):
        assert api.get(f"/students/{student}").status_code == (404 if status == 200 else 200)
