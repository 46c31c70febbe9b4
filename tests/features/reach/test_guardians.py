"""Reach of guardians by a permission that is OWN, and of form teachers over guardians."""

from __future__ import annotations

import pytest

from tests.features.reach.conftest import error_of, ids

# Every test of the module has the same begin, whichever ran before.
pytestmark = pytest.mark.usefixtures("made_arms")


@pytest.fixture
def family(make, arms):
    """Two parents of a student of each arm: the mother stopped for the second."""
    first, second = arms.in_a[0], arms.in_b[0]
    mother, father = (
        make.guardian({"id": first}, {"id": second}, full_name=name) for name in ("Ada", "Emeka")
    )
    make.api.ok(
        make.api.put(f"/students/{second}/guardians/{mother['id']}/stop", {"reason": "A court order"})
    )
    return first, second, mother, father


def test_a_guardian_reaches_the_children_and_themselves(own, family):
    first, second, mother, father = family
    client = own.guardian(mother["id"])

    assert ids(client, "/students") == {first}
    assert ids(client, "/guardians") == {mother["id"]}
    (shown,) = client.ok(client.get("/guardians"))["data"]
    assert [child["student"] for child in shown["children"]] == [first]
    (link,) = client.ok(client.get(f"/students/{first}/guardians"))
    assert link["guardian"] == mother["id"]
    # The other parent, and a child of a stopped link, are unknown.
    for path in ("/guardians/{}", "/guardians?student={}", "/students/{}/guardians", "/students/{}"):
        record = father["id"] if path == "/guardians/{}" else second
        unknown = client.get(path.format("00000000-0000-4000-8000-000000000000"))
        assert error_of(client.get(path.format(record))) == error_of(unknown)
    student = client.ok(client.get(f"/students/{first}"))
    assert student["guardian"] is None
    assert "court" not in client.get("/guardians").get_data(as_text=True)


def test_a_stop_narrows_lists_from_the_next_request_on(own, make, family):
    first, second, _, father = family
    client = own.guardian(father["id"])
    assert ids(client, "/students") == {first, second}
    assert len(client.ok(client.get("/cohorts"))) == 1

    make.api.ok(make.api.put(f"/students/{first}/guardians/{father['id']}/stop", {"reason": "x"}))

    assert ids(client, "/students") == {second}
    assert client.get(f"/students/{first}").status_code == 404
    assert [
        child["student"] for child in client.ok(client.get(f"/guardians/{father['id']}"))["children"]
    ] == [second]
    make.api.ok(make.api.delete(f"/students/{first}/guardians/{father['id']}/stop"))
    assert ids(client, "/students") == {first, second}


def test_a_form_teacher_reaches_the_guardians_of_their_students_but_for_stopped_ones(own, arms, family):
    first, second, mother, father = family
    of_b = own.form_teacher(arms.b)

    assert ids(of_b, "/guardians") == {father["id"]}
    (shown,) = of_b.ok(of_b.get("/guardians"))["data"]
    assert [child["student"] for child in shown["children"]] == [second]
    assert [link["guardian"] for link in of_b.ok(of_b.get(f"/students/{second}/guardians"))] == [father["id"]]
    assert of_b.get(f"/guardians/{mother['id']}").status_code == 404
    assert of_b.get(f"/students/{first}/guardians").status_code == 404
    assert own.form_teacher(arms.a).ok(own.form_teacher(arms.a).get("/guardians"))["total"] == 2
    assert ids(own.subject_teacher(arms.subject, arms.a), "/guardians") == set()


def test_a_guardian_changes_nothing_but_their_own_password_and_sessions(own, family):
    first, _, mother, _ = family
    client = own.guardian(
        mother["id"], "read:students", "write:students", "delete:students", "write:users", "write:gradebooks"
    )
    link = f"/students/{first}/guardians/{mother['id']}"

    for answer in (
        client.patch(f"/guardians/{mother['id']}", {"full_name": "x"}),
        client.patch(f"/students/{first}", {"first_name": "x"}),
        client.put(link, {"relationship": "x"}),
        client.delete(f"{link}/stop"),
        client.put(f"/guardians/{mother['id']}/account", {"username": "x"}),
        client.get(f"/guardians/{mother['id']}/data"),
    ):
        assert answer.status_code == 403
    client.ok(client.delete(f"/users/{client.user['id']}/sessions"))


def test_a_guardian_is_told_of_the_children_by_me(make, own, arms, family, messages):
    first, _, mother, _ = family
    client = own.guardian(mother["id"])
    client.ok(client.get("/me"))

    with messages() as sent:
        profile = client.ok(client.get("/me"))

    assert len(sent) == 1
    student = make.api.ok(make.api.get(f"/students/{first}"))
    assert profile["children"] == [
        {
            "student": first,
            **{name: student[name] for name in ("admission_number", "first_name", "last_name")},
            "relationship": "mother",
            "batch": arms.a,
            "batch_name": "A",
            "classroom": arms.cohort["classroom"],
        }
    ]
    assert profile["guardian"] == client.ok(client.get(f"/guardians/{mother['id']}"))
    assert [child["student"] for child in profile["guardian"]["children"]] == [first]
    make.api.ok(make.api.put(f"/students/{first}/guardians/{mother['id']}/stop", {"reason": "x"}))
    after = client.ok(client.get("/me"))
    assert (after["children"], after["guardian"]["children"]) == ([], [])
