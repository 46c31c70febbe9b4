"""Form teachers: the employees who look after a batch."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from school_service.core.database import db
from school_service.features.people.models import User
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.registry.schools import schema_name
from tests.threads import run_concurrently


def add(api, batch, teacher):
    return api.patch(f"/teachers/{batch}/add_to_batch", {"teacher_id": teacher})


def remove(api, batch, teacher):
    return api.delete(f"/teachers/{batch}/teachers/{teacher}")


def form_teacher(api, batch):
    return api.ok(api.get(f"/teachers/{batch}"))


def as_form_teacher(batch, employee):
    names = {name: employee[name] for name in ("first_name", "last_name")}
    return {"batch_id": batch, **names, "image_url": None, "teacher_id": employee["id"]}


@pytest.fixture
def batch(make):
    """A batch's id, which is its cohort's."""
    return make.cohort()["id"]


def test_a_form_teacher_is_added_shown_and_removed(api, make, batch):
    teacher = make.employee()

    assert api.ok(add(api, batch, teacher["id"])) == as_form_teacher(batch, teacher)
    assert form_teacher(api, batch) == as_form_teacher(batch, teacher)
    assert api.ok(remove(api, batch, teacher["id"])) == {"id": teacher["id"], "deleted": True}
    assert api.get(f"/teachers/{batch}").status_code == 404


def test_the_image_is_the_photo_of_the_account(api, make, place, batch):
    teacher = make.employee()
    user = make.account_of(teacher)
    with in_transaction(SchoolBinding(place.id)):
        db.session.get(User, UUID(user["id"])).photo = "https://example.com/ada.jpg"

    assert api.ok(add(api, batch, teacher["id"]))["image_url"] == "https://example.com/ada.jpg"


def test_the_latest_form_teacher_is_shown_and_the_answer_shows_the_added_one(api, make, batch):
    first, second, third = (make.employee() for _ in range(3))
    for teacher in (first, second, third):
        assert api.ok(add(api, batch, teacher["id"])) == as_form_teacher(batch, teacher)

    assert form_teacher(api, batch) == as_form_teacher(batch, third)
    api.ok(remove(api, batch, third["id"]))
    assert form_teacher(api, batch) == as_form_teacher(batch, second)


def test_adding_again_changes_nothing(api, make, batch):
    first, second = make.employee(), make.employee()
    for teacher in (first, second, first):
        assert api.ok(add(api, batch, teacher["id"])) == as_form_teacher(batch, teacher)

    assert form_teacher(api, batch) == as_form_teacher(batch, second)
    api.ok(remove(api, batch, first["id"]))
    assert remove(api, batch, first["id"]).status_code == 404


def test_a_form_teacher_who_comes_back_is_the_latest(api, make, batch):
    first, second = make.employee(), make.employee()
    for teacher in (first, second):
        api.ok(add(api, batch, teacher["id"]))
    api.ok(remove(api, batch, first["id"]))
    api.ok(add(api, batch, first["id"]))

    assert form_teacher(api, batch) == as_form_teacher(batch, first)


def test_of_form_teachers_added_at_one_moment_the_highest_id_is_shown(api, make, place, batch):
    teachers = sorted((make.employee() for _ in range(4)), key=lambda teacher: teacher["id"])
    for teacher in (teachers[1], teachers[3], teachers[0], teachers[2]):
        api.ok(add(api, batch, teacher["id"]))
    with in_transaction(SchoolBinding(place.id)):
        db.session.execute(text("UPDATE form_teachers SET created_at = '2025-09-01T00:00:00Z'"))

    assert form_teacher(api, batch) == as_form_teacher(batch, teachers[3])


def test_each_batch_has_its_own(api, make):
    cohort = make.cohort()
    arm = make.batch(cohort)["id"]
    of_first, of_arm = make.employee(), make.employee()
    api.ok(add(api, cohort["id"], of_first["id"]))

    assert api.get(f"/teachers/{arm}").status_code == 404
    assert api.ok(add(api, arm, of_arm["id"])) == as_form_teacher(arm, of_arm)
    assert form_teacher(api, cohort["id"]) == as_form_teacher(cohort["id"], of_first)
    assert remove(api, arm, of_first["id"]).status_code == 404


def test_an_employee_may_look_after_several_batches(api, make):
    teacher, batches = make.employee(), [make.cohort()["id"] for _ in range(3)]
    for batch in batches:
        api.ok(add(api, batch, teacher["id"]))

    api.ok(remove(api, batches[0], teacher["id"]))

    assert [api.get(f"/teachers/{batch}").status_code for batch in batches] == [404, 200, 200]


def test_a_batch_that_is_not_there_is_not_found(api, make, make_other):
    teacher, others = make.employee(), make_other.cohort()["id"]
    cohort = make.cohort()

    for unknown in (str(uuid4()), others, teacher["id"], cohort["session"]):
        assert add(api, unknown, teacher["id"]).status_code == 404
        assert remove(api, unknown, teacher["id"]).status_code == 404
        assert api.get(f"/teachers/{unknown}").status_code == 404


def test_an_unknown_teacher_is_refused(api, make, make_other, batch):
    deleted, others = make.employee(), make_other.employee()
    api.ok(api.delete(f"/employees/{deleted['id']}"))
    user = make.user()["user"]["id"]

    for unknown in (str(uuid4()), deleted["id"], others["id"], user, batch, make.student()["id"]):
        answer = add(api, batch, unknown)
        assert answer.status_code == 422
        assert answer.get_json()["errors"] == {"json": {"teacher_id": ["no such employee"]}}
        assert remove(api, batch, unknown).status_code == 404
    assert api.get(f"/teachers/{batch}").status_code == 404


def test_the_other_school_takes_no_one_away(api, other_api, make, batch):
    teacher = make.employee()
    api.ok(add(api, batch, teacher["id"]))

    assert remove(other_api, batch, teacher["id"]).status_code == 404
    assert other_api.get(f"/teachers/{batch}").status_code == 404
    assert form_teacher(api, batch) == as_form_teacher(batch, teacher)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"teacher_id": None},
        {"teacher_id": ""},
        {"teacher_id": "x"},
        {"teacher_id": 5},
        {"teacher_id": ["3fa85f64-5717-4562-b3fc-2c963f66afa6"]},
        {"teacher_id": "3fa85f6457174562b3fc2c963f66afa6"},
    ],
)
def test_a_strange_teacher_is_invalid(api, batch, body):
    answer = api.patch(f"/teachers/{batch}/add_to_batch", body)

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, ["teacher_id"])


def test_an_unknown_member_is_invalid(api, make, batch):
    answer = api.patch(
        f"/teachers/{batch}/add_to_batch", {"teacher_id": make.employee()["id"], "batch": batch}
    )

    assert answer.get_json()["errors"] == {"json": {"batch": ["Unknown field."]}}


def test_a_form_teacher_with_a_deleted_account_is_not_shown_until_it_is_restored(api, make, batch):
    first, second = make.employee(), make.employee()
    for teacher in (first, second):
        api.ok(add(api, batch, teacher["id"]))
    user = make.account_of(second)

    api.ok(api.delete(f"/users/{user['id']}/delete"))
    assert form_teacher(api, batch) == as_form_teacher(batch, first)
    api.ok(api.put(f"/users/{user['id']}/restore"))
    assert form_teacher(api, batch) == as_form_teacher(batch, second)


def test_an_employee_with_a_deleted_account_is_not_added_and_can_be_removed(api, make, batch):
    teacher = make.employee()
    api.ok(add(api, batch, teacher["id"]))
    user = make.account_of(teacher)
    api.ok(api.delete(f"/users/{user['id']}/delete"))

    answer = add(api, batch, teacher["id"])

    reason = "the employee's user account is deleted"
    assert answer.get_json()["errors"] == {"json": {"teacher_id": [reason]}}
    assert remove(api, batch, teacher["id"]).status_code == 200
    api.ok(api.put(f"/users/{user['id']}/restore"))
    assert api.get(f"/teachers/{batch}").status_code == 404


def test_restoring_the_account_of_a_deleted_employee_makes_no_teacher(api, make, batch):
    teacher = make.employee()
    api.ok(add(api, batch, teacher["id"]))
    user = make.account_of(teacher)
    api.ok(api.delete(f"/employees/{teacher['id']}?release=true"))
    api.ok(api.put(f"/users/{user['id']}/restore"))

    assert api.get(f"/teachers/{batch}").status_code == 404
    assert add(api, batch, teacher["id"]).status_code == 422


def test_the_school_may_come_from_the_token(api, make, batch):
    teacher = make.employee()
    without = api.using(school=None)

    api.ok(add(without, batch, teacher["id"]))
    assert form_teacher(without, batch) == as_form_teacher(batch, teacher)
    api.ok(remove(without, batch, teacher["id"]))


def test_each_operation_needs_its_permission(make, batch):
    teacher = make.employee()["id"]
    operations = {
        "write:teachers": lambda caller: add(caller, batch, teacher),
        "read:teachers": lambda caller: caller.get(f"/teachers/{batch}"),
        "delete:teachers": lambda caller: remove(caller, batch, teacher),
    }
    for permission, operation in operations.items():
        others = make.caller(*(operations.keys() - {permission}), "write:employees", "read:employees")
        assert operation(others).status_code == 403
        assert operation(make.caller(permission)).status_code == 200


def test_showing_costs_one_round_trip_however_many_there_are(api, make, batch, messages):
    for _ in range(2):
        for _ in range(4):
            api.ok(add(api, batch, make.employee()["id"]))
        with messages() as sent:
            form_teacher(api, batch)
        assert len(sent) == 1, sent


# At once


def teaching(tenancy, school):
    """The ids of a school's form teachers, and whether they are deleted."""
    schema = schema_name(school)
    with tenancy.admin.connect() as connection:
        return connection.execute(
            text(
                f'SELECT e.id, e.deleted_at IS NOT NULL FROM "{schema}".form_teachers f '
                f'JOIN "{schema}".employees e ON e.id = f.employee_id'
            )
        ).all()


def test_a_form_teacher_added_by_many_at_once_is_there_once(committing, tenancy):
    batch, teacher = committing.cohort()["id"], committing.employee()["id"]

    answers = run_concurrently(8, lambda _: add(committing.api.using(), batch, teacher).status_code)

    assert answers == [200] * 8
    assert teaching(tenancy, committing.api.school) == [(UUID(teacher), False)]


def test_a_form_teacher_removed_by_many_at_once_is_removed_once(committing):
    batch, teacher = committing.cohort()["id"], committing.employee()["id"]
    committing.api.ok(add(committing.api, batch, teacher))

    answers = run_concurrently(6, lambda _: remove(committing.api.using(), batch, teacher).status_code)

    assert sorted(answers) == [200, *[404] * 5]


def test_an_employee_deleted_while_being_added_teaches_nobody(committing, tenancy):
    api = committing.api
    batches = [committing.cohort()["id"] for _ in range(5)]
    for _ in range(8):
        teacher = committing.employee()["id"]

        def work(number, teacher=teacher):
            if number == len(batches):
                return api.using().delete(f"/employees/{teacher}?release=true").status_code
            return add(api.using(), batches[number], teacher).status_code

        *added, deleted = run_concurrently(len(batches) + 1, work)

        assert deleted == 200
        assert set(added) <= {200, 422}
        assert teaching(tenancy, api.school) == []


def test_an_employee_whose_account_is_deleted_meanwhile_is_added_or_refused(committing):
    api = committing.api
    batches = [committing.cohort()["id"] for _ in range(4)]
    for _ in range(4):
        teacher = committing.employee()
        user = committing.account_of(teacher)["id"]

        def work(number, teacher=teacher, user=user):
            if number == len(batches):
                return api.using().delete(f"/users/{user}/delete").status_code
            return add(api.using(), batches[number], teacher["id"]).status_code

        *added, deleted = run_concurrently(len(batches) + 1, work)

        assert deleted == 200
        assert set(added) <= {200, 422}
