"""Erasing a person who has left: nothing that tells of them stays in the school's records but the audit log."""

from __future__ import annotations

import pytest
from sqlalchemy import text, update

from school_service.core.database import db
from school_service.features.people.models import User
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.registry.schools import schema_name
from tests.conftest import PASSWORD
from tests.factories import UNKNOWN_ID
from tests.features.personal_data.people import MARK, make_employee, make_graduate, make_student
from tests.prepared import prepared_for_each
from tests.threads import run_concurrently

KINDS = {"students": make_student, "employees": make_employee}
each_kind = pytest.mark.parametrize("kind", KINDS)


def path_of(kind, person):
    return f"/{kind}/{person['id']}/data"


def leave(api, kind, person):
    """Let a person leave the school."""
    if kind == "employees":
        api.ok(api.delete(f"/employees/{person['id']}?release=true"))
    else:
        removed = {"student_ids": [person["id"]]}
        api.ok(api.patch(f"/cohorts/{person['cohort_id']}/remove_students", removed))


def make_left(make, kind):
    """Make a person who has left, with a photo."""
    return let_leave(make, kind, KINDS[kind](make))


def let_leave(make, kind, person):
    """Let a person leave the school, and store a photo of theirs."""
    leave(make.api, kind, person)
    with make.api.app.app_context(), in_transaction(SchoolBinding(make.api.school)):
        photo = "https://example.com/zxqvjk.jpg"
        db.session.execute(update(User).where(User.id == person["user"]).values(photo=photo))
    return person


def make_people(make):
    """Make a person of each kind."""
    return {kind: make_person(make) for kind, make_person in KINDS.items()}


original, people = prepared_for_each(make_people)


@pytest.fixture
def left(make, people):
    """Let a person of a kind leave, with a photo."""
    return lambda kind: let_leave(make, kind, people[kind])


def erase(api, kind, person):
    return api.ok(api.delete(path_of(kind, person)))


def dump(tenancy, school):
    """Write all that a school has stored, but the audit log, as text; read by the operator."""
    with tenancy.admin.connect() as connection:
        schema = schema_name(school)
        tables = connection.execute(
            text(
                "SELECT tablename FROM pg_tables WHERE schemaname = :schema AND tablename <> 'audit_entries'"
            ),
            {"schema": schema},
        )
        return "\n".join(
            str(row)
            for name in tables.scalars()
            for row in connection.execute(
                text(f'SELECT row_to_json(t)::text FROM "{schema}"."{name}" t')
            ).scalars()
        )


@each_kind
def test_nothing_private_is_left_in_any_table(committing, tenancy, kind):
    person = make_left(committing, kind)
    before = dump(tenancy, committing.api.school).lower()
    assert before.count(MARK) > 12

    erase(committing.api, kind, person)

    after = dump(tenancy, committing.api.school).lower()
    assert MARK not in after
    assert "argon2" in before
    # The administrator's password alone is left.
    assert after.count("argon2") == 1
    for day in ("2011-03-29", "1985-04-12", "2020-01-06", "2022-02-03", "2022-02-04", "2026-03-27"):
        assert day not in after


def test_results_stay_under_the_pseudonym(api, left):
    student = left("students")
    before = api.ok(api.get(path_of("students", student)))

    assert erase(api, "students", student) == {"id": student["id"], "deleted": True}

    after = api.ok(api.get(path_of("students", student)))
    for name in ("enrollments", "gradebook_entries", "metrics"):
        assert len(after[name]) == 1
    undated = [{**enrollment, "started_on": None, "ended_on": None} for enrollment in before["enrollments"]]
    assert (after["enrollments"], after["gradebook_entries"]) == (undated, before["gradebook_entries"])
    assert after["metrics"] == before["metrics"]
    shown = api.ok(api.get(f"/students/{student['id']}"))
    assert shown["first_name"] == "Erased"
    assert len(shown["last_name"]) == 8
    assert shown["admission_number"].startswith(f"erased-{shown['last_name'].lower()}")
    assert (shown["status"], shown["guardian"], shown["dob"], shown["gender"]) == (
        "WITHDRAWN",
        None,
        None,
        None,
    )
    assert (shown["number"], shown["createdAt"]) == (student["number"], student["createdAt"])
    assert after["contacts"] == after["roles"] == []


def test_absences_comments_and_cards_lose_their_words_and_names_and_no_figure(api, left):
    student = left("students")
    before = api.ok(api.get(path_of("students", student)))

    erase(api, "students", student)

    after = api.ok(api.get(path_of("students", student)))
    shown = api.ok(api.get(f"/students/{student['id']}"))
    ((absence,), (comment,), (card,)) = (after[n] for n in ("absences", "term_comments", "report_cards"))
    assert absence == {**before["absences"][0], "note": None}
    nothing = {"form_teacher_comment": None, "principal_comment": None}
    assert comment == {**before["term_comments"][0], **nothing}
    assert comment["times_present"] == 90
    names = ("first_name", "last_name", "admission_number")
    who = {name: shown[name] for name in names} | {"middle_name": None, "gender": "", "dob": None}
    assert card["card"] == {
        "student": {"id": student["id"], **who},
        "comments": {"form_teacher": None, "principal": None},
        "average": 62.5,
    }
    assert (card["average"], card["version"], card["state"]) == (62.5, 1, "PUBLISHED")
    (decision,) = after["promotion_decisions"]
    amended = [{**amendment, "reason": None} for amendment in before["promotion_decisions"][0]["amended"]]
    assert decision == {**before["promotion_decisions"][0], "reason": None, "amended": amended}
    assert (decision["outcome"], decision["average"]) == ("LEFT_OUT", 62.5)


def test_a_graduate_stays_a_graduate(api, make):
    student = make_graduate(make)
    listed = api.ok(api.get("/graduates"))

    erase(api, "students", student)

    assert api.ok(api.get("/graduates")) == listed
    assert api.ok(api.get(f"/students/{student['id']}"))["status"] == "GRADUATED"


def test_an_employee_stays_with_department_category_and_position_alone(api, left):
    employee = left("employees")
    before = api.ok(api.get(path_of("employees", employee)))["employee"]

    erase(api, "employees", employee)

    document = api.ok(api.get(path_of("employees", employee)))
    stays = {"id", "user_id", "contact_id", "created_at", "deleted_at"}
    stays |= {name for named in ("department", "category", "position") for name in (named, f"{named}_id")}
    assert {name: document["employee"][name] for name in stays} == {name: before[name] for name in stays}
    assert all(document["employee"][name] in (None, "") for name in document["employee"].keys() - stays)
    assert (document["bank_account"], document["next_of_kin"], document["form_teachers"]) == (None, None, [])
    assert document["subject_teachers"] == []
    (contact,) = document["contacts"]
    assert (contact["email_address"], contact["phone_number"], contact["physical_address"]) == ("", "", "")


def test_the_pseudonym_says_nothing_of_the_person(api, make):
    names = set()
    for _ in range(3):
        student = make.student(first_name="Ada", last_name="Obi")
        erase(api, "students", student)
        shown = api.ok(api.get(path_of("students", student)))
        names.add(shown["user"]["last_name"])
        told = f"{shown['user']['username']} {shown['student']['admission_number']}"
        assert student["id"].replace("-", "")[:8] not in told
        assert student["user"].replace("-", "")[:8] not in told
    # Random: the same data give another one.
    assert len(names) == 3


# The account


@each_kind
def test_the_account_is_gone_at_once_and_for_good(api, make, people, kind):
    person = people[kind]
    account = next(
        user for user in api.ok(api.get("/users?search=zxqvjk"))["data"] if user["id"] == person["user"]
    )
    own = make.signed_in(account, "a password")
    assert own.get("/classrooms").status_code == 200
    if kind == "students":
        leave(api, kind, person)
    else:
        # A deleted employee whose account was restored signs in still.
        leave(api, kind, person)
        api.ok(api.put(f"/users/{person['user']}/restore"))
        own = make.signed_in(account, "a password")

    erase(api, kind, person)

    assert own.get("/classrooms").status_code == 401
    credentials = {"username": account["username"], "password": "a password"}
    assert api.post("/users/login", credentials).status_code == 401
    new_name = api.ok(api.get(path_of(kind, person)))["user"]["username"]
    assert api.post("/users/login", {**credentials, "username": new_name}).status_code == 401
    for answer in (
        api.get(f"/users/{person['user']}"),
        api.patch(f"/users/{person['user']}", {"first_name": "Ada"}),
        api.put(f"/users/{person['user']}/password", {"password": "another"}),
        api.put(f"/users/{person['user']}/roles", {"role": make.role()["id"]}),
        api.delete(f"/users/{person['user']}/delete"),
    ):
        assert answer.status_code == 404
    restored = api.put(f"/users/{person['user']}/restore")
    assert (restored.status_code, "erased" in restored.get_json()["message"]) == (409, True)
    assert person["user"] not in {user["id"] for user in api.ok(api.get("/users?search=zxqvjk"))["data"]}


def test_the_username_and_the_admission_number_are_free_again(api, make, left):
    student = left("students")

    erase(api, "students", student)

    again = make.student(admission_number="QC/ZXQVJK", username="chidinma.zxqvjk")
    assert again["id"] != student["id"]


def test_an_erased_student_is_neither_changed_enrolled_nor_contacted(api, make, left):
    student = left("students")
    erase(api, "students", student)

    for changes in ({"first_name": "Ada"}, {"status": "ACTIVE"}, {}):
        answer = api.patch(f"/students/{student['id']}", changes)
        assert (answer.status_code, "erased" in answer.get_json()["message"]) == (409, True)
    cohort = make.cohort()
    enrolled = {"students": [student["id"]], "batch": cohort["id"]}
    assert api.post(f"/cohorts/{cohort['id']}/enrollment", enrolled).status_code == 422
    contact = {"email_address": "a@example.com", "phone_number": "1", "physical_address": "x"}
    assert api.post("/contacts", {"owner": student["user"], **contact}).status_code == 422


# The audit log


@each_kind
def test_the_audit_log_names_the_eraser_and_the_person_without_a_value(api, left, place, kind):
    person = left(kind)
    parts = api.ok(api.get(path_of(kind, person)))
    headers = {"X-Request-ID": "the-erasing-request"}

    api.ok(api.delete(path_of(kind, person), headers=headers))

    log = api.ok(api.get("/audit", query_string={"pageSize": 1000}))["data"]
    # Besides, that a guardian of theirs goes, or has no account any more.
    done = [entry for entry in log if entry["request_id"] == "the-erasing-request"]
    (entry,) = [entry for entry in done if "guardian" not in entry["entity"]]
    assert (entry["actor"], entry["entity"], entry["entity_id"], entry["action"]) == (
        str(place.admin_id),
        kind[:-1],
        person["id"],
        "update",
    )
    assert (entry["old"], entry["new"]["erased"]) == ({"erased": False}, True)
    assert entry["new"]["user"] == person["user"]
    assert set(entry["new"]["contacts"]) == {contact["id"] for contact in parts["contacts"]}
    if kind == "employees":
        assert entry["new"]["bank_account"] == parts["bank_account"]["id"]
        assert entry["new"]["next_of_kin"] == parts["next_of_kin"]["id"]
    assert MARK not in str(entry).lower()


@each_kind
def test_erasing_again_changes_nothing(api, left, kind):
    person = left(kind)
    first = erase(api, kind, person)
    told, log = api.ok(api.get(path_of(kind, person))), api.ok(api.get("/audit"))["total"]

    assert erase(api, kind, person) == first

    assert api.ok(api.get("/audit"))["total"] == log
    again = api.ok(api.get(path_of(kind, person)))
    # The request of the copy is on record.
    (copied,) = (entry for entry in again.pop("audit") if entry not in told["audit"])
    assert (copied["entity"], copied["new"]) == ("export", {"data": kind.removesuffix("s")})
    assert again == {name: value for name, value in told.items() if name != "audit"}


# Persons who are still here


def test_an_enrolled_student_is_not_erased(api, people):
    student = people["students"]
    before = api.ok(api.get(path_of("students", student)))
    for status in ("ACTIVE", "WITHDRAWN"):
        api.ok(api.patch(f"/students/{student['id']}", {"status": status}))

        answer = api.delete(path_of("students", student))

        message = "The student is enrolled: take them out of the cohort first."
        assert (answer.status_code, answer.get_json()["message"]) == (409, message)
    after = api.ok(api.get(path_of("students", student)))
    assert (after["user"], after["contacts"]) == (before["user"], before["contacts"])
    leave(api, "students", student)
    erase(api, "students", student)


def test_an_employee_who_is_not_deleted_is_not_erased(api, people):
    employee = people["employees"]

    answer = api.delete(path_of("employees", employee))

    message = "The employee is not deleted: delete them first."
    assert (answer.status_code, answer.get_json()["message"]) == (409, message)
    assert api.ok(api.get(f"/employees/{employee['id']}"))["first_name"] == "Adaeze-Zxqvjk"


# Permissions


@each_kind
def test_both_permissions_are_needed(make, left, kind):
    person = left(kind)
    both = {f"write:{kind}", "write:users"}
    everything_else = {
        f"{access}:{area}" for access in ("read", "delete") for area in (kind, "users", "classrooms")
    }
    for lacking in both:
        answer = make.caller(*everything_else, *(both - {lacking})).delete(path_of(kind, person))

        assert (answer.status_code, answer.get_json()["message"]) == (
            403,
            f"This needs the permission {lacking}.",
        )
    # Students keep the roles of their account until they are erased; employees too.
    assert make.caller(*both, "read:classrooms").delete(path_of(kind, person)).status_code == 200


@each_kind
def test_every_permission_of_the_account_is_needed(api, make, left, kind):
    person = left(kind)
    clerk = make.caller(f"write:{kind}", "write:users")

    answer = clerk.delete(path_of(kind, person))

    message = "Erasing this person needs the permission read:classrooms."
    assert (answer.status_code, answer.get_json()["message"]) == (403, message)
    told = api.ok(api.get(path_of(kind, person)))
    # A student's account has the role Student from its making, beside the one that it was given.
    assert (told["user"]["erased_at"], len(told["roles"])) == (None, 2 if kind == "students" else 1)
    assert MARK in told["user"]["first_name"].lower()


@each_kind
def test_the_last_administrator_is_not_erased(api, make, left, place, kind):
    person = left(kind)
    if kind == "employees":
        api.ok(api.put(f"/users/{person['user']}/restore"))
    administrator = next(role for role in api.ok(api.get("/roles")) if role["name"] == "Administrator")
    api.ok(api.put(f"/users/{person['user']}/roles", {"role": administrator["id"]}))
    api.ok(api.put(f"/users/{person['user']}/password", {"password": PASSWORD}))
    username = api.ok(api.get(f"/users/{person['user']}"))["username"]
    own = make.signed_in({"username": username}, PASSWORD)
    # There are two; now there is one.
    own.ok(own.delete(f"/users/{place.admin_id}/delete"))

    answer = own.delete(path_of(kind, person))

    message = "Erasing this person would leave nobody who has every permission."
    assert (answer.status_code, answer.get_json()["message"]) == (409, message)
    assert own.ok(own.get(f"/users/{person['user']}"))["username"] == username
    own.ok(own.put(f"/users/{place.admin_id}/restore"))
    own.ok(own.delete(path_of(kind, person)))


@each_kind
def test_a_person_unknown_or_of_the_other_school_is_not_found(api, other_api, left, kind):
    person = left(kind)

    assert api.delete(f"/{kind}/{UNKNOWN_ID}/data").status_code == 404
    assert other_api.delete(path_of(kind, person)).status_code == 404
    assert other_api.using(school=api.school).delete(path_of(kind, person)).status_code == 403
    assert api.using(school=other_api.school).delete(path_of(kind, person)).status_code == 403
    assert api.ok(api.get(path_of(kind, person)))["user"]["erased_at"] is None


# At once


@each_kind
def test_of_many_at_once_one_erases(committing, kind):
    person, api = make_left(committing, kind), committing.api

    answers = run_concurrently(8, lambda _: api.using().delete(path_of(kind, person)))

    assert {answer.status_code for answer in answers} == {200}
    log = api.ok(api.get("/audit", query_string={"entity": kind[:-1], "id": person["id"]}))["data"]
    assert [entry["new"]["erased"] for entry in log if "erased" in (entry["new"] or {})] == [True]


def test_enrolling_and_erasing_at_once_leave_no_erased_student_in_a_class(committing):
    api = committing.api
    for _ in range(4):
        student, cohort = committing.student(), committing.cohort()
        body = {"students": [student["id"]], "batch": cohort["id"]}

        def work(number, student=student, cohort=cohort, body=body):
            client = api.using()
            if number:
                return client.post(f"/cohorts/{cohort['id']}/enrollment", body)
            return client.delete(path_of("students", student))

        erased, enrolled = run_concurrently(2, work)

        assert (erased.status_code, enrolled.status_code) in {(200, 422), (409, 200)}


def test_correcting_a_contact_and_erasing_at_once_leave_no_contact(committing, tenancy):
    api = committing.api
    student = committing.student()
    contact = committing.contact({"id": student["user"]})

    def work(number):
        client = api.using()
        if number:
            return client.patch(f"/contacts/{contact['id']}", {"phone_number": f"0805-{MARK}-{number}"})
        return client.delete(path_of("students", student))

    erased, *corrected = run_concurrently(5, work)

    assert erased.status_code == 200
    assert {answer.status_code for answer in corrected} <= {200, 404}
    assert MARK not in dump(tenancy, api.school)


@each_kind
def test_erasing_any_number_of_rows_costs_few_round_trips(api, make, people, messages, kind):
    counted = []
    for contacts in (0, 20):
        person = people[kind] if not counted else make_another(make, kind)
        for _ in range(contacts):
            make.contact({"id": person["user"]})
        leave(api, kind, person)
        with messages() as sent:
            erase(api, kind, person)
        counted.append(len(sent))
    # The first student is said to have submitted a subject, in a publication that is written anew.
    assert counted[1] <= counted[0] <= 22, counted


def make_another(make, kind):
    """Make a second person, with names of their own."""
    if kind == "employees":
        employee = make.employee()
        return {**employee, "user": make.account_of(employee)["id"]}
    taught = make.taught()
    student = make.api.ok(make.api.get(f"/students/{taught.students[0]}"))
    return {**student, "cohort_id": taught.cohort["id"]}
