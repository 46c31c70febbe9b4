"""Guardians as people: their records, and their links to students."""

from __future__ import annotations

from uuid import uuid4

import pytest
from sqlalchemy import func, update

from school_service.core.database import db
from school_service.features.people.models import Guardian
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.threads import run_concurrently

TEXTS = {
    "full_name": "Ngọzi Bàlógun",
    "phone_number": "+234 803 000 0021",
    "email_address": "ngozi@example.com",
    "physical_address": "3 Montgomery Road\nYaba",
}


def links(api, student):
    return api.ok(api.get(f"/students/{student['id']}/guardians"))


def put(api, student, guardian, **link):
    return api.put(
        f"/students/{student['id']}/guardians/{guardian['id']}", {"relationship": "mother", **link}
    )


def primary_of(api, student):
    """The guardian in a student's record."""
    return api.ok(api.get(f"/students/{student['id']}"))["guardian"]


def entries(api, entity, record_id=None):
    page = api.ok(
        api.get("/audit", query_string={"entity": entity, **({"id": record_id} if record_id else {})})
    )
    return [(entry["action"], entry["old"], entry["new"]) for entry in page["data"]]


# Persons.


def test_a_guardian_is_shown_with_their_children(api, make):
    first, second = make.student(first_name="Bisi", last_name="Okàfor"), make.student(last_name="Àkànbí")
    given = [
        {"student": first["id"], "relationship": "mother", "primary": True},
        {"student": second["id"], "relationship": None, "receives_reports": False},
    ]

    made = api.ok(api.post("/guardians", {**TEXTS, "students": given}))

    assert {name: made[name] for name in TEXTS} == TEXTS
    assert made["user"] is None
    assert made["children"] == [
        {
            "student": student["id"],
            "admission_number": student["admission_number"],
            "first_name": student["first_name"],
            "last_name": student["last_name"],
            "relationship": relationship,
            "primary": primary,
            "receives_reports": primary is not False,
            "stopped_at": None,
        }
        for student, relationship, primary in ((second, None, False), (first, "mother", True))
    ]
    assert api.ok(api.get(f"/guardians/{made['id']}")) == made
    assert primary_of(api, first) == {
        **{n: TEXTS[n] for n in TEXTS if n != "physical_address"},
        "relationship": "mother",
    }
    assert primary_of(api, second) is None


def test_a_name_is_enough(api):
    made = api.ok(api.post("/guardians", {"full_name": "Emeka"}))

    assert [
        made[name] for name in ("phone_number", "email_address", "physical_address", "user", "children")
    ] == [
        *[None] * 4,
        [],
    ]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "full_name"),
        ({"full_name": ""}, "full_name"),
        ({"full_name": None}, "full_name"),
        ({"full_name": 5}, "full_name"),
        ({"full_name": "A\x1bda"}, "full_name"),
        ({"full_name": "x" * 121}, "full_name"),
        ({"full_name": "A", "email_address": "a"}, "email_address"),
        ({"full_name": "A", "phone_number": ""}, "phone_number"),
        ({"full_name": "A", "physical_address": "x" * 2001}, "physical_address"),
        ({"full_name": "A", "user": str(uuid4())}, "user"),
        ({"full_name": "A", "students": "x"}, "students"),
        ({"full_name": "A", "students": [{"student": "x", "relationship": "m"}]}, "students"),
        ({"full_name": "A", "students": [{"student": str(uuid4())}]}, "students"),
    ],
)
def test_a_body_that_is_no_guardian_is_refused(api, body, field):
    answer = api.post("/guardians", body)

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [field])


def test_children_unknown_or_named_twice_are_refused(api, make_other, make):
    student = make.student()
    for ids, place in (
        ([student["id"], str(uuid4())], 1),
        ([make_other.student()["id"]], 0),
        ([student["id"], student["id"]], 1),
    ):
        students = [{"student": student, "relationship": "aunt"} for student in ids]
        answer = api.post("/guardians", {"full_name": "A", "students": students})
        assert answer.status_code == 422
        assert list(answer.get_json()["errors"]["json"]) == [f"students.{place}.student"]
    assert api.ok(api.get("/guardians"))["total"] == 0


def test_guardians_are_listed_by_name_searched_and_by_student(api, make):
    student = make.student()
    zainab = make.guardian(student, full_name="Zainab Ɗanladi", phone_number="0803 111")
    amina = make.guardian(full_name="Amina", email_address="amina@example.com")

    def names(query=""):
        return [guardian["full_name"] for guardian in api.ok(api.get(f"/guardians{query}"))["data"]]

    assert names() == ["Amina", "Zainab Ɗanladi"]
    assert names("?search=danladi zai") == ["Zainab Ɗanladi"]
    assert names("?search=0803") == ["Zainab Ɗanladi"]
    assert names("?search=AMINA@") == ["Amina"]
    assert names("?search=%25") == []
    assert names("?search=") == ["Amina", "Zainab Ɗanladi"]
    assert names(f"?student={student['id']}") == ["Zainab Ɗanladi"]
    assert names("?pageSize=1&pageNumber=1") == ["Zainab Ɗanladi"]
    assert api.get(f"/guardians?student={uuid4()}").status_code == 422
    assert api.get("/guardians?student=x").status_code == 422
    assert {zainab["id"], amina["id"]} == {
        guardian["id"] for guardian in api.ok(api.get("/guardians"))["data"]
    }


def test_a_patch_changes_the_named_members_alone(api, make):
    student = make.student()
    made = make.guardian(student, **TEXTS)

    changed = api.ok(
        api.patch(f"/guardians/{made['id']}", {"full_name": "Ngozi B.", "physical_address": None})
    )

    assert changed == {**made, "full_name": "Ngozi B.", "physical_address": None}
    assert api.ok(api.get(f"/guardians/{made['id']}")) == changed
    same = api.ok(api.patch(f"/guardians/{made['id']}", {"full_name": "Ngozi B."}))
    assert same == changed
    logged = entries(api, "guardian", made["id"])
    assert logged == [("update", {}, {"changed": ["full_name", "physical_address"]}), ("create", None, {})]


def test_a_guardian_is_deleted_with_their_links(api, make):
    student = make.student()
    made = make.guardian(student)
    put(api, student, made, primary=True)

    assert api.ok(api.delete(f"/guardians/{made['id']}")) == {"id": made["id"], "deleted": True}

    assert api.get(f"/guardians/{made['id']}").status_code == 404
    assert links(api, student) == []
    assert primary_of(api, student) is None
    assert entries(api, "guardian", made["id"])[0] == ("delete", {}, None)
    assert entries(api, "student-guardian", student["id"])[0] == ("delete", {"guardian": made["id"]}, None)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/guardians/{guardian}", None),
        ("PATCH", "/guardians/{guardian}", {"full_name": "A"}),
        ("DELETE", "/guardians/{guardian}", None),
        ("PUT", "/guardians/{guardian}/account", {"username": "a"}),
        ("DELETE", "/guardians/{guardian}/account", None),
        ("PUT", "/students/{own_student}/guardians/{guardian}", {"relationship": "aunt"}),
        ("DELETE", "/students/{own_student}/guardians/{guardian}", None),
        ("PUT", "/students/{own_student}/guardians/{guardian}/stop", {"reason": "x"}),
        ("DELETE", "/students/{own_student}/guardians/{guardian}/stop", None),
        ("GET", "/students/{student}/guardians", None),
        ("PUT", "/students/{student}/guardians/{own_guardian}", {"relationship": "aunt"}),
        ("DELETE", "/students/{student}/guardians/{own_guardian}", None),
        ("PUT", "/students/{student}/guardians/{own_guardian}/stop", {"reason": "x"}),
    ],
)
def test_guardians_unknown_or_of_another_school_are_not_found(api, make, make_other, method, path, body):
    own = {"own_student": make.student()["id"], "own_guardian": make.guardian()["id"]}
    student = make_other.student()
    theirs = {"student": student["id"], "guardian": make_other.guardian(student)["id"]}
    nothing = {"student": str(uuid4()), "guardian": str(uuid4())}

    answers = [api.request(method, path.format(**own, **ids), json=body) for ids in (theirs, nothing)]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].get_json()["message"] == answers[1].get_json()["message"]
    assert len(links(make_other.api, student)) == 1


# Links.


def test_a_link_is_made_changed_and_taken_away(api, make):
    student, guardian = make.student(), make.guardian()

    (made,) = api.ok(put(api, student, guardian))
    assert {name: made[name] for name in ("guardian", "relationship", "primary", "receives_reports")} == {
        "guardian": guardian["id"],
        "relationship": "mother",
        "primary": False,
        "receives_reports": True,
    }
    assert (made["full_name"], made["stopped_at"], made["stop_reason"]) == (guardian["full_name"], None, None)

    (changed,) = api.ok(
        put(api, student, guardian, relationship="aunt", primary=True, receives_reports=False)
    )
    assert changed == {**made, "relationship": "aunt", "primary": True, "receives_reports": False}
    # Members left out stay.
    assert api.ok(put(api, student, guardian, relationship="aunt")) == [changed]
    assert links(api, student) == [changed]

    assert api.ok(api.delete(f"/students/{student['id']}/guardians/{guardian['id']}")) == []
    assert api.delete(f"/students/{student['id']}/guardians/{guardian['id']}").status_code == 404
    assert api.ok(api.get(f"/guardians/{guardian['id']}"))["children"] == []
    named = {"guardian": guardian["id"]}
    assert entries(api, "student-guardian", student["id"]) == [
        ("delete", named, None),
        (
            "update",
            {**named, "primary": False, "receives_reports": True},
            {**named, "primary": True, "receives_reports": False, "changed": ["relationship"]},
        ),
        ("create", None, {**named, "primary": False, "receives_reports": True}),
    ]


def test_a_student_has_one_primary_guardian(api, make):
    student = make.student()
    first, second = make.guardian(), make.guardian()
    api.ok(put(api, student, first, primary=True))

    guardians = api.ok(put(api, student, second, primary=True))

    assert [(link["guardian"], link["primary"]) for link in guardians] == [
        (second["id"], True),
        (first["id"], False),
    ]
    assert primary_of(api, student)["full_name"] == second["full_name"]
    third = make.guardian(students=[{"student": student["id"], "relationship": "x", "primary": True}])
    assert primary_of(api, student)["full_name"] == third["full_name"]
    assert [link["primary"] for link in links(api, student)] == [True, False, False]
    api.ok(put(api, student, third, primary=False))
    assert primary_of(api, student) is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "relationship"),
        ({"relationship": ""}, "relationship"),
        ({"relationship": 5}, "relationship"),
        ({"relationship": "m", "primary": "yes"}, "primary"),
        ({"relationship": "m", "receives_reports": None}, "receives_reports"),
        ({"relationship": "m", "stopped_at": None}, "stopped_at"),
    ],
)
def test_a_body_that_is_no_link_is_refused(api, make, body, field):
    student, guardian = make.student(), make.guardian()

    answer = api.put(f"/students/{student['id']}/guardians/{guardian['id']}", body)

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [field])


def test_there_are_twenty_at_most(api, make):
    student, guardian = make.student(), make.guardian()
    for _ in range(20):
        make.guardian(student)
        make.student(guardian={"full_name": "Ada", "phone_number": "0803"})
    (ada,) = api.ok(api.get("/guardians?search=Ada"))["data"]
    assert len(ada["children"]) == 20

    assert put(api, student, guardian).status_code == 409
    assert (
        api.post(
            "/guardians", {"full_name": "B", "students": [{"student": student["id"], "relationship": "m"}]}
        ).status_code
        == 409
    )
    another = make.student()
    assert put(api, another, ada).status_code == 409
    assert (
        api.patch(
            f"/students/{another['id']}", {"guardian": {"full_name": "Ada", "phone_number": "0803"}}
        ).status_code
        == 409
    )
    body = {"first_name": "A", "last_name": "B", "admission_number": "X/1"}
    assert (
        api.post("/students", {**body, "guardian": {"full_name": "Ada", "phone_number": "0803"}}).status_code
        == 409
    )
    students = [{"student": str(make.student()["id"]), "relationship": "m"} for _ in range(21)]
    assert api.post("/guardians", {"full_name": "C", "students": students}).status_code == 409
    # A guardian who is there is changed as ever.
    first = links(api, student)[0]
    api.ok(put(api, student, {"id": first["guardian"]}, relationship="other"))


# Stops.


def stop_of(student, guardian):
    return f"/students/{student['id']}/guardians/{guardian['id']}/stop"


def test_a_stop_takes_the_primary_and_is_lifted(api, make):
    student, other = make.student(), make.student()
    guardian = make.guardian(student, other)
    put(api, student, guardian, primary=True)

    (stopped,) = api.ok(api.put(stop_of(student, guardian), {"reason": " A court order "}))

    assert (stopped["primary"], stopped["receives_reports"]) == (False, False)
    assert (stopped["stop_reason"], stopped["stopped_at"] is None) == ("A court order", False)
    assert primary_of(api, student) is None
    children = api.ok(api.get(f"/guardians/{guardian['id']}"))["children"]
    assert {child["student"]: child["stopped_at"] for child in children} == {
        student["id"]: stopped["stopped_at"],
        other["id"]: None,
    }
    # The reason changes alone, and the same again changes nothing.
    (again,) = api.ok(api.put(stop_of(student, guardian), {"reason": "Another order"}))
    assert again == {**stopped, "stop_reason": "Another order"}
    api.ok(api.put(stop_of(student, guardian), {"reason": "Another order"}))

    (lifted,) = api.ok(api.delete(stop_of(student, guardian)))
    assert (lifted["stopped_at"], lifted["stop_reason"], lifted["receives_reports"]) == (None, None, True)
    assert lifted["primary"] is False
    assert api.delete(stop_of(student, guardian)).status_code == 404
    named = {"guardian": guardian["id"]}
    assert entries(api, "student-guardian", student["id"])[:3] == [
        ("update", {**named, "stopped": True}, {**named, "stopped": False}),
        ("update", named, {**named, "changed": ["stop_reason"]}),
        (
            "update",
            {**named, "primary": True, "stopped": False},
            {**named, "primary": False, "stopped": True},
        ),
    ]
    assert "order" not in str(entries(api, "student-guardian"))


@pytest.mark.parametrize(
    "body", [{}, {"reason": ""}, {"reason": " "}, {"reason": None}, {"reason": "x" * 501}]
)
def test_a_stop_needs_a_reason(api, make, body):
    student = make.student()
    guardian = make.guardian(student)

    answer = api.put(stop_of(student, guardian), body)

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, ["reason"])
    assert links(api, student)[0]["stopped_at"] is None


def test_nothing_goes_around_a_stop(api, make):
    student = make.student()
    guardian = make.guardian(student, full_name="Emeka Òbí", phone_number="0803")
    address = f"/students/{student['id']}/guardians/{guardian['id']}"
    api.ok(api.put(stop_of(student, guardian), {"reason": "x" * 500}))
    before = links(api, student)

    # Another way in their link, in the record of the student, as another record of the same name.
    assert put(api, student, guardian, primary=True).status_code == 409
    assert api.delete(address).status_code == 409
    assert api.delete(f"/guardians/{guardian['id']}").status_code == 409
    for named in (
        {"full_name": "Emeka Òbí"},
        {"full_name": "EMEKA OBI", "phone_number": "0803"},
        {"full_name": "emeka obi", "email_address": "other@example.com"},
        {"full_name": "Emeka  \N{NO-BREAK SPACE}Òbí"},
    ):
        answer = api.patch(f"/students/{student['id']}", {"guardian": named})
        assert (answer.status_code, "stopped" in answer.get_json()["message"]) == (409, True)
        body = {**named, "students": [{"student": student["id"], "relationship": "x"}]}
        assert api.post("/guardians", body).status_code == 409
    second = make.guardian(full_name="Emeka   Obi")
    assert put(api, student, second).status_code == 409
    assert links(api, student) == before

    # Nor does the record of another guardian of the student get the name; one of another student's may.
    aunt = make.guardian(student, full_name="Ada Obi")
    answer = api.patch(f"/guardians/{aunt['id']}", {"full_name": "EMEKA  Obi"})
    assert (answer.status_code, "stopped" in answer.get_json()["message"]) == (409, True)
    api.ok(api.delete(f"/students/{student['id']}/guardians/{aunt['id']}"))
    api.ok(put(api, make.student(), aunt))
    api.ok(api.patch(f"/guardians/{aunt['id']}", {"full_name": "Emeka Obi"}))
    assert links(api, student) == before

    # How they are a guardian may change; the stop stays.
    (kept,) = api.ok(put(api, student, guardian, relationship="uncle", receives_reports=True))
    assert (kept["relationship"], kept["stopped_at"]) == ("uncle", before[0]["stopped_at"])
    assert kept["receives_reports"] is False
    # Another person becomes the primary; the stopped one stays as they are.
    api.ok(api.patch(f"/students/{student['id']}", {"guardian": {"full_name": "Ngozi"}}))
    assert [
        (link["full_name"], link["primary"], bool(link["stopped_at"])) for link in links(api, student)
    ] == [
        ("Ngozi", True, False),
        ("Emeka Òbí", False, True),
    ]


def test_a_name_that_an_earlier_release_stored_with_two_spaces_is_the_same(api, make, place):
    student, other = (make.student(guardian={"full_name": name}) for name in ("Emeka Obi", "Ada Obi"))
    before = links(api, student)
    with in_transaction(SchoolBinding(place.id)):
        db.session.execute(update(Guardian).values(full_name=func.replace(Guardian.full_name, " ", "  ")))

    api.ok(of_student(api, student, full_name="Emeka Obi"))
    (stopped,) = links(api, other)
    api.ok(api.put(stop_of(other, {"id": stopped["guardian"]}), {"reason": "x"}))

    assert links(api, student) == before
    assert put(api, other, make.guardian(full_name="Ada Obi")).status_code == 409
    assert of_student(api, other, full_name="Ada Obi").status_code == 409


# The guardian in the record of a student.


def of_student(api, student, **guardian):
    return api.patch(f"/students/{student['id']}", {"guardian": guardian})


def test_brothers_and_sisters_share_a_guardian(api, make):
    first = make.student(guardian={"full_name": "Ngọzi Ẹ̀ze", "phone_number": "+234-803 1"})
    for named in (
        {"full_name": "ngozi eze", "phone_number": "(234) 8031"},
        {"full_name": "NGOZI EZE", "phone_number": "2348031", "email_address": "N@example.com"},
        {"full_name": "Ngozi  Eze", "phone_number": "another", "email_address": "n@EXAMPLE.com"},
    ):
        second = make.student(guardian=named)
        assert [link["guardian"] for link in links(api, second)] == [
            link["guardian"] for link in links(api, first)
        ]
    (guardian,) = api.ok(api.get("/guardians"))["data"]
    # Known facts of them stay, and unknown ones are added.
    assert (guardian["full_name"], guardian["phone_number"], guardian["email_address"]) == (
        "Ngọzi Ẹ̀ze",
        "+234-803 1",
        "N@example.com",
    )
    assert len(guardian["children"]) == 4


@pytest.mark.parametrize(
    ("guardian", "other"),
    [
        ({"full_name": "A"}, {"full_name": "A"}),
        ({"full_name": "A", "phone_number": "n/a"}, {"full_name": "A", "phone_number": "n/a"}),
        ({"full_name": "A", "phone_number": "1"}, {"full_name": "A", "phone_number": "2"}),
        ({"full_name": "A", "phone_number": "1"}, {"full_name": "B", "phone_number": "1"}),
        ({"full_name": "A", "email_address": "a@x.org"}, {"full_name": "B", "email_address": "a@x.org"}),
    ],
)
def test_guardians_not_known_by_name_and_contact_are_other_people(api, make, guardian, other):
    make.student(guardian=guardian)
    make.student(guardian=other)

    assert api.ok(api.get("/guardians"))["total"] == 2


def test_of_several_persons_the_oldest_is_found(api, make):
    named = {"full_name": "Ngozi Eze", "phone_number": "0803"}
    oldest, _, _ = (make.guardian(**named) for _ in range(3))

    (link,) = links(api, make.student(guardian=named))

    assert link["guardian"] == oldest["id"]


def test_the_primarys_own_name_changes_that_person(api, make):
    given = {"full_name": "Ngọzi Eze", "phone_number": "1", "relationship": "aunt"}
    student, sister = make.student(guardian=given), make.student(guardian=given)
    api.patch(f"/guardians/{links(api, student)[0]['guardian']}", {"physical_address": "Yaba"})

    changed = api.ok(of_student(api, student, full_name="NGOZI EZE", email_address="n@x.org"))["guardian"]

    assert changed == {
        "full_name": "NGOZI EZE",
        "relationship": None,
        "phone_number": None,
        "email_address": "n@x.org",
    }
    assert primary_of(api, sister) == {**changed, "relationship": "aunt"}
    (guardian,) = api.ok(api.get("/guardians"))["data"]
    assert guardian["physical_address"] == "Yaba"


def test_another_name_makes_another_person_and_the_former_goes(api, make):
    student = make.student(guardian={"full_name": "Ngozi", "phone_number": "1"})
    (former,) = links(api, student)

    api.ok(of_student(api, student, full_name="Emeka"))

    assert [link["full_name"] for link in links(api, student)] == ["Emeka"]
    assert api.get(f"/guardians/{former['guardian']}").status_code == 404
    assert entries(api, "guardian", former["guardian"])[0] == ("delete", {}, None)


def test_the_former_stays_a_guardian_with_another_child(api, make):
    given = {"full_name": "Ngozi", "phone_number": "1"}
    student, sister = make.student(guardian=given), make.student(guardian=given)

    api.ok(of_student(api, student, full_name="Emeka", phone_number="2"))

    assert [(link["full_name"], link["primary"]) for link in links(api, student)] == [
        ("Emeka", True),
        ("Ngozi", False),
    ]
    assert primary_of(api, sister)["full_name"] == "Ngozi"
    # Null takes the link of the primary away; a person with another child stays.
    api.ok(api.patch(f"/students/{sister['id']}", {"guardian": None}))
    assert links(api, sister) == []
    api.ok(api.patch(f"/students/{sister['id']}", {"guardian": None}))
    assert api.ok(api.get("/guardians"))["total"] == 2
    api.ok(api.patch(f"/students/{student['id']}", {"guardian": None}))
    assert [guardian["full_name"] for guardian in api.ok(api.get("/guardians"))["data"]] == ["Ngozi"]


def test_a_named_guardian_of_the_student_becomes_the_primary(api, make):
    student = make.student(guardian={"full_name": "Ngozi", "phone_number": "1"})
    uncle = make.guardian(student, full_name="Emeka Òbí", phone_number="2")

    api.ok(of_student(api, student, full_name="emeka obi", phone_number="3"))

    (link,) = links(api, student)
    assert (link["guardian"], link["primary"], link["phone_number"]) == (uncle["id"], True, "3")


def test_a_guardian_found_in_the_school_becomes_the_primary(api, make):
    student, other = make.student(), make.student()
    uncle = make.guardian(other, full_name="Emeka", phone_number="2")

    api.ok(of_student(api, student, full_name="Emeka", phone_number="2", relationship="uncle"))

    (link,) = links(api, student)
    assert (link["guardian"], link["relationship"], link["primary"]) == (uncle["id"], "uncle", True)
    same = api.ok(of_student(api, student, full_name="Emeka", phone_number="2", relationship="uncle"))
    assert same["guardian"]["relationship"] == "uncle"
    assert len(entries(api, "student-guardian", student["id"])) == 1


def test_a_guardian_in_two_requests_at_once_is_one_person(committing):
    api = committing.api
    students = [committing.student() for _ in range(6)]
    named = {"full_name": "Ngọzi", "phone_number": "0803"}

    def write(number):
        if number % 2:
            return api.using().patch(f"/students/{students[number]['id']}", {"guardian": named})
        body = {"first_name": "A", "last_name": "B", "admission_number": f"RACE/{number}", "guardian": named}
        return api.using().post("/students", body)

    answers = run_concurrently(6, write)

    assert [answer.status_code for answer in answers] == [200] * 6
    (guardian,) = api.ok(api.get("/guardians?search=Ngozi"))["data"]
    assert len(guardian["children"]) == 6


def test_four_primaries_at_once_are_one(committing):
    api, student = committing.api, committing.student()
    guardians = [committing.guardian() for _ in range(4)]

    def write(number):
        return put(api.using(), student, guardians[number], primary=True)

    answers = run_concurrently(4, write)

    assert [answer.status_code for answer in answers] == [200] * 4
    family = links(api, student)
    assert [link["primary"] for link in family] == [True, False, False, False]


def test_deleting_a_student_takes_the_links_and_guardians_without_another_child(api, make):
    student, sister = make.student(guardian={"full_name": "Ngozi"}), make.student()
    kept = make.guardian(student, sister)

    api.ok(api.delete(f"/students/{student['id']}"))

    (guardian,) = api.ok(api.get("/guardians"))["data"]
    assert (guardian["id"], len(guardian["children"])) == (kept["id"], 1)


# The costs.


def test_a_list_costs_one_round_trip_however_long_it_is(api, make, messages):
    student = make.student()
    for size in (2, 10):
        for _ in range(size):
            make.guardian(student, make.student())
        for path in ("/guardians", "/guardians?search=n", f"/students/{student['id']}/guardians"):
            api.ok(api.get(path))
            with messages() as sent:
                api.ok(api.get(path))
            assert len(sent) == 1, sent


def test_a_write_costs_five_round_trips_at_most(api, make, messages):
    student, others = make.student(), [make.student() for _ in range(5)]
    guardian = make.guardian(student)
    children = [{"student": student["id"], "relationship": "m", "primary": True} for student in others]
    body = {"first_name": "A", "last_name": "B", "admission_number": "M/1"}
    writes = [
        lambda: api.post("/guardians", {"full_name": "A", "students": children}),
        lambda: api.patch(f"/guardians/{guardian['id']}", {"full_name": "B"}),
        lambda: put(api, others[0], guardian, primary=True),
        lambda: api.put(stop_of(others[0], guardian), {"reason": "x"}),
        lambda: api.delete(stop_of(others[0], guardian)),
        lambda: api.delete(f"/students/{others[0]['id']}/guardians/{guardian['id']}"),
        lambda: api.delete(f"/guardians/{guardian['id']}"),
        lambda: api.post("/students", {**body, "guardian": {"full_name": "A", "phone_number": "1"}}),
    ]
    for write in writes:
        with messages() as sent:
            api.ok(write())
        assert len(sent) <= 5, sent
