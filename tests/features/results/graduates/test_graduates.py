"""Graduates: graduating students, their state since, and the list of them."""

from __future__ import annotations

from uuid import uuid4

import pytest

from school_service.core.database import db
from school_service.features.results.models import Graduate
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding


def graduates(api, **query):
    return api.ok(api.get("/graduates", query_string=query))


def numbers(api, **query):
    return [graduate["id"] for graduate in graduates(api, **query)]


def read_student(api, student):
    return api.ok(api.get(f"/students/{student['id']}"))


def ids_in(api, cohort):
    return [student["id"] for student in api.ok(api.get(f"/cohorts/{cohort['id']}/students"))]


@pytest.fixture
def last_class(make):
    """A cohort of the last class."""
    return make.cohort(make.classroom(name="SSS 3"), make.session(name="2025/2026"))


# Graduating


def test_a_student_graduates_from_the_class_they_are_in(api, make, last_class, place):
    student = make.student()
    make.enrolled(last_class, student)

    graduate = make.graduate(student)

    assert graduate == {
        "id": 1,
        "student": student["number"],
        "graduation_class": "SSS 3 2025/2026",
        "school": place.name,
    }
    assert graduates(api) == [graduate]


def test_a_graduate_leaves_on_a_day_and_for_a_reason_that_are_given(api, make):
    session = make.session(start_date="2025-09-08", end_date="2026-07-24")
    cohort, student = make.cohort(session=session), make.student(admitted_on="2020-09-14")
    make.enrolled(cohort, student)
    body = {"student": student["id"], "left_on": "2026-07-17", "leaving_reason": "Finished"}

    assert api.ok(api.post("/graduates", body))["id"] == 1

    left = read_student(api, student)
    assert (left["status"], left["left_on"], left["leaving_reason"]) == (
        "GRADUATED",
        "2026-07-17",
        "Finished",
    )
    (enrollment,) = api.ok(api.get(f"/students/{student['id']}/data"))["enrollments"]
    assert (enrollment["ended_on"], enrollment["ended_at"] is not None) == ("2026-07-17", True)


def test_nobody_graduates_before_the_admission_or_the_first_day_in_the_class(api, make):
    session = make.session(start_date="2025-09-08", end_date="2026-07-24")
    cohort, student = make.cohort(session=session), make.student(admitted_on="2026-01-12")
    begun = {"students": [student["id"]], "batch": cohort["id"], "started_on": "2026-01-19"}
    api.ok(api.post(f"/cohorts/{cohort['id']}/enrollment", begun))

    for day, why in (
        ("2026-01-11", "is before admitted_on"),
        ("2026-01-18", "is before the first day in the class, 2026-01-19"),
    ):
        answer = api.post("/graduates", {"student": student["id"], "left_on": day})
        assert (answer.status_code, answer.get_json()["errors"]["json"]) == (422, {"left_on": [why]})
    assert read_student(api, student)["status"] == "ACTIVE"
    assert graduates(api) == []


def test_graduates_are_counted_one_after_the_other(make):
    assert [make.graduate()["id"] for _ in range(3)] == [1, 2, 3]


def test_a_graduate_is_graduated_and_in_no_class(api, make, last_class):
    student, other = make.student(), make.student()
    make.enrolled(last_class, student, other)

    make.graduate(student)

    after = read_student(api, student)
    assert after == {**student, "status": "GRADUATED", "batch": None, "cohort": None}
    assert ids_in(api, last_class) == [other["id"]]
    assert [row["id"] for row in api.ok(api.get("/students?status=GRADUATED"))["data"]] == [student["id"]]


def test_every_enrollment_ends(api, make, last_class):
    student, second = make.student(), make.cohort()
    for cohort in (last_class, second):
        make.enrolled(cohort, student)

    make.graduate(student)

    assert ids_in(api, last_class) == ids_in(api, second) == []


def test_scores_and_history_stay(api, make):
    taught = make.taught()
    entry = make.entry(make.assessment(taught.subject, taught.term), taught.students[0], taught.cohort["id"])

    make.graduate({"id": taught.students[0]})

    assert api.ok(api.get(f"/gradebooks/{entry['id']}")) == entry
    answer = api.patch(
        f"/cohorts/{taught.cohort['id']}",
        {"classroom": make.classroom()["id"], "session_id": make.session()["id"]},
    )
    assert answer.status_code == 409


def test_subjects_are_not_taken_any_more(api, make):
    taught = make.taught(2)
    left, stayed = taught.students

    make.graduate({"id": left})

    path = f"/cohort-subjects/{taught.subject['id']}/students"
    assert [api.delete(f"{path}/{student}").status_code for student in (left, stayed)] == [404, 409]


def test_the_class_is_the_one_enrolled_in_last(api, make, last_class):
    student = make.student()
    for _ in range(6):
        make.enrolled(make.cohort(), student)
    make.enrolled(last_class, student)

    assert make.graduate(student)["graduation_class"] == "SSS 3 2025/2026"


def test_an_ended_enrollment_counts(api, make, last_class):
    student = make.student()
    make.enrolled(last_class, student)
    body = {"student_ids": [student["id"]]}
    api.ok(api.patch(f"/cohorts/{last_class['id']}/remove_students", body))

    assert make.graduate(student)["graduation_class"] == "SSS 3 2025/2026"


def test_a_graduate_never_enrolled_has_no_class(make):
    assert make.graduate()["graduation_class"] == ""


def test_the_class_keeps_the_name_that_it_had(api, make, last_class):
    student, session = make.student(), last_class["session"]
    make.enrolled(last_class, student)
    graduate = make.graduate(student)

    api.ok(api.patch(f"/sessions/{session}", {"name": "2026"}))
    body = {"classroom": make.classroom(name="SSS Three")["id"], "session_id": session}
    api.ok(api.patch(f"/cohorts/{last_class['id']}", body))

    assert graduates(api) == [graduate]


def test_the_longest_names_make_a_class(make):
    student = make.student()
    make.enrolled(make.cohort(make.classroom(name="漢" * 120), make.session(name="é" * 120)), student)

    assert make.graduate(student)["graduation_class"] == f"{'漢' * 120} {'é' * 120}"


# Refusals


def test_a_second_time_is_a_conflict_and_leaves_no_gap(api, make):
    student = make.student()
    make.graduate(student)

    answer = api.post("/graduates", {"student": student["id"]})

    assert (answer.status_code, answer.get_json()["message"]) == (409, "The student has graduated already.")
    assert answer.get_json()["errors"] == {"json": {"student": ["has graduated already"]}}
    assert make.graduate()["id"] == 2


def test_a_withdrawn_student_can_not_graduate_unless_active_again(api, make):
    student = make.student()
    api.ok(api.patch(f"/students/{student['id']}", {"status": "WITHDRAWN"}))

    answer = api.post("/graduates", {"student": student["id"]})

    assert answer.status_code == 422
    assert answer.get_json()["errors"] == {"json": {"student": ["has withdrawn"]}}
    assert read_student(api, student)["status"] == "WITHDRAWN"
    api.ok(api.patch(f"/students/{student['id']}", {"status": "ACTIVE"}))
    assert make.graduate(student)["id"] == 1


def test_an_unknown_student_is_422(api, make, make_other):
    unknown = [uuid4(), make_other.student()["id"], make.user()["user"]["id"], make.student()["user"]]

    for student in unknown:
        answer = api.post("/graduates", {"student": student})

        assert answer.status_code == 422
        assert answer.get_json()["errors"] == {"json": {"student": ["no such student"]}}
    assert make.graduate()["id"] == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"student": None},
        {"student": 1},
        {"student": ""},
        {"student": "x"},
        {"student": ["3fa85f64-5717-4562-b3fc-2c963f66afa6"]},
        {"student": "3fa85f6457174562b3fc2c963f66afa6"},
        {"student": "3fa85f64-5717-4562-b3fc-2c963f66afa6", "id": 1},
        {"student": "\0"},
        [],
    ],
    ids=repr,
)
def test_a_body_that_names_no_student_is_422(api, body):
    assert api.post("/graduates", body).status_code == 422


def test_a_graduate_neither_enrolls_nor_withdraws(api, make, last_class):
    student = make.student()
    make.graduate(student)

    body = {"students": [student["id"]], "batch": last_class["id"]}
    assert api.post(f"/cohorts/{last_class['id']}/enrollment", body).status_code == 422
    for status in ("ACTIVE", "WITHDRAWN"):
        assert api.patch(f"/students/{student['id']}", {"status": status}).status_code == 409
    assert read_student(api, student)["status"] == "GRADUATED"


# The school, the audit log


def test_the_token_may_name_the_school(api, make):
    student = make.student()

    answer = api.using(school=None).post("/graduates", {"student": student["id"]})

    assert api.ok(answer)["student"] == student["number"]
    assert api.using(school=None).get("/graduates").status_code == 400


def test_the_other_school_counts_its_own(api, other_api, make, make_other, other_place):
    for _ in range(3):
        make.graduate()

    assert graduates(other_api) == []
    assert make_other.graduate()["id"] == 1
    assert [graduate["school"] for graduate in graduates(other_api)] == [other_place.name]
    assert numbers(api) == [1, 2, 3]
    assert other_api.using(school=api.school).get("/graduates").status_code == 403


def test_a_graduation_is_in_the_audit_log(api, make, last_class, place):
    student = make.student()
    make.enrolled(last_class, student)
    make.graduate(student)

    (entry,) = api.ok(api.get("/audit?entity=graduate"))["data"]

    assert (entry["action"], entry["actor"], entry["old"]) == ("create", str(place.admin_id), None)
    assert entry["new"] == {"number": 1, "student": student["id"], "graduation_class": "SSS 3 2025/2026"}


# The list


@pytest.fixture
def seven(make):
    for _ in range(7):
        make.graduate()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, [1, 2, 3, 4, 5, 6, 7]),
        ({"page": 0, "size": 7}, [1, 2, 3, 4, 5, 6, 7]),
        ({"size": 3}, [1, 2, 3]),
        ({"page": 1, "size": 3}, [4, 5, 6]),
        ({"page": 2, "size": 3}, [7]),
        ({"page": 3, "size": 3}, []),
        ({"page": 1}, []),
        ({"page": 6, "size": 1}, [7]),
        ({"page": 2**31 - 1, "size": 1000}, []),
        ({"pageNumber": 1, "pageSize": 1}, [1, 2, 3, 4, 5, 6, 7]),
    ],
    ids=str,
)
def test_a_page_is_a_bare_array_in_order_of_number(api, seven, query, expected):
    assert numbers(api, **query) == expected


def test_graduates_are_in_the_order_of_numbers_also_after_a_row_is_rewritten(api, seven):
    with in_transaction(SchoolBinding(api.school)):
        # A row that is written anew lies behind the others.
        db.session.query(Graduate).filter_by(number=3).update({"graduation_class": "SSS 3"})

    assert numbers(api) == [1, 2, 3, 4, 5, 6, 7]


def test_a_page_holds_fifty_unless_told(api, make):
    for _ in range(51):
        make.graduate()

    assert (len(graduates(api)), len(graduates(api, page=1)), len(graduates(api, size=51))) == (50, 1, 51)


@pytest.mark.parametrize(
    "value", ["-1", str(2**31), "9" * 18, "9" * 400, "a", "", " ", "1.0", "1e1", "NaN", "\0"]
)
def test_a_page_that_is_none_is_422(api, value):
    answer = api.get("/graduates", query_string={"page": value})

    assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, ["page"])


@pytest.mark.parametrize("value", ["0", "-1", "1001", "9" * 400, "all", "", "50.0"])
def test_a_size_that_is_none_is_422(api, value):
    answer = api.get("/graduates", query_string={"size": value})

    assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, ["size"])


def test_a_page_costs_one_round_trip_however_long_it_is(api, seven, messages):
    for size in (2, 7):
        graduates(api, size=size)
        with messages() as sent:
            graduates(api, size=size)
        assert len(sent) == 1, sent
