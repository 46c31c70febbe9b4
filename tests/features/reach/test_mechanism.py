"""How reach is kept: by messages of a read, and by four walls against statements without a declared reach."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlalchemy import select

import school_service
from school_service.auth import policies
from school_service.core.database import db
from school_service.core.narrowing import everybodys, judged_before
from school_service.core.reach import leading
from school_service.core.read_models import read_model
from school_service.core.records import find, lock_rows
from school_service.features.people.models import Role, Student
from school_service.features.people.students import reads
from tests.features.reach.conftest import ids

# Every test of the module has the same begin, whichever ran before.
pytestmark = pytest.mark.usefixtures("made_arms")


@pytest.fixture
def counted(messages):
    """Request something; answers status and number of round trips."""

    def counted(client, path):
        with messages() as sent:
            status = client.get(path).status_code
        return status, len(sent)

    return counted


def test_a_read_of_a_relation_is_two_messages_and_any_other_is_one(arms, own, make, counted):
    teacher = own.subject_teacher(arms.subject, arms.a)

    for path in (f"/students/{arms.in_a[0]}", "/students", "/cohorts", f"/cohorts/{arms.a}/batches"):
        assert counted(teacher, path) == (200, 2)
    assert counted(teacher, f"/students/{arms.in_b[0]}") == (404, 2)
    for path in ("/classrooms", "/settings", "/me", "/students?mine=true"):
        assert counted(teacher, path) == (200, 1)
    assert counted(teacher, "/graduates") == (403, 1)
    assert counted(make.api, "/students") == (200, 1)


def test_the_second_message_enters_the_school_anew_and_judges_nobody(arms, own, messages):
    teacher = own.subject_teacher(arms.subject, arms.a)

    with messages() as sent:
        teacher.ok(teacher.get("/students"))

    first, second = sent
    assert "registry.enter" in first
    assert "registry.enter" in second
    assert "caller_state" in first
    assert "caller_state" not in second
    assert "WITH caller AS MATERIALIZED (SELECT %s::uuid AS account" in second
    # Of the relations, those alone that lead somewhere.
    assert "caller.taught_arms" in second
    assert "caller.form_batches" not in second


def test_a_caller_who_loses_a_relation_between_both_messages_is_answered_once_more(
    arms, own, make, monkeypatch
):
    teacher = own.subject_teacher(arms.subject, arms.a)
    (assignment,) = ids(make.api, "/subject-teachers")
    leading_to, taken = policies.leading, []

    def take(relations, state):
        if not taken:
            taken.append(True)
            with make.api.app.app_context():
                make.api.ok(make.api.delete(f"/subject-teachers/{assignment}"))
        return leading_to(relations, state)

    monkeypatch.setattr(policies, "leading", take)

    assert ids(teacher, "/students") == set(arms.in_a)
    assert ids(teacher, "/students") == set()


def test_a_role_that_changes_is_known_to_the_next_request(arms, own, make, counted):
    employee, teacher = own.teacher("read:students")
    own.assign(employee, arms.subject, arms.a)
    assert ids(teacher, "/students") == set(arms.in_a)
    user = make.account_of(employee)["id"]
    role = make.role("read:students")

    make.api.ok(make.api.put(f"/users/{user}/roles", {"role": role["id"]}))
    assert ids(teacher, "/students") >= {*arms.in_a, *arms.in_b}
    assert counted(teacher, "/students") == (200, 1)  # of the whole school

    make.api.ok(make.api.delete(f"/users/{user}/roles/{role['id']}"))
    assert ids(teacher, "/students") == set(arms.in_a)
    for held in make.api.ok(make.api.get(f"/users/{user}"))["roles"]:
        make.api.ok(make.api.delete(f"/users/{user}/roles/{held['roleId']}"))
    assert teacher.get("/students").status_code == 403


def test_an_assignment_that_is_taken_is_known_to_the_next_request(arms, own, make):
    teacher = own.subject_teacher(arms.subject, arms.a)
    assert ids(teacher, "/students") == set(arms.in_a)

    (assignment,) = ids(make.api, "/subject-teachers")
    make.api.ok(make.api.delete(f"/subject-teachers/{assignment}"))

    assert ids(teacher, "/students") == set()


def test_a_relation_that_is_new_is_known_to_the_next_request(arms, own, make, counted):
    employee, teacher = own.teacher("read:students")
    own.assign(employee, arms.subject, arms.a)
    account = make.account_of(employee)["id"]
    child = arms.in_b[0]
    body = {"full_name": "Musa Bello", "students": [{"student": child, "relationship": "Father"}]}
    guardian = make.api.ok(make.api.post("/guardians", body))["id"]
    assert ids(teacher, "/students") == set(arms.in_a)
    assert teacher.ok(teacher.get("/me"))["children"] == []

    make.api.ok(make.api.put(f"/guardians/{guardian}/account", {"user": account}))
    assert counted(teacher, f"/students/{child}") == (200, 2)
    assert ids(teacher, "/students") == {*arms.in_a, child}
    (told,) = teacher.ok(teacher.get("/me"))["children"]
    assert told["student"] == child

    make.api.ok(make.api.patch(f"/teachers/{arms.b}/add_to_batch", {"teacher_id": employee["id"]}))
    assert [each["batch"] for each in teacher.ok(teacher.get("/me"))["classes"]] == [arms.b]
    assert ids(teacher, "/students") == {*arms.in_a, *arms.in_b}


def test_a_guardian_without_children_reaches_their_own_record(arms, own, make):
    body = {"full_name": "Musa Bello", "students": [{"student": arms.in_a[0], "relationship": "Father"}]}
    record = make.api.ok(make.api.post("/guardians", body))["id"]
    guardian = own.guardian(record)
    stop = f"/students/{arms.in_a[0]}/guardians/{record}/stop"
    make.api.ok(make.api.put(stop, {"reason": "A court has said so."}))

    for _ in range(2):
        assert ids(guardian, "/guardians") == {record}
        assert guardian.ok(guardian.get("/me"))["guardian"]["children"] == []
        assert ids(guardian, "/students") == set()


@pytest.mark.parametrize(("number", "shown"), [(0, 2), (1, 1), (2, 0)])
def test_each_page_has_the_total_of_records_in_reach(arms, own, make, number, shown):
    teacher = own.subject_teacher(arms.subject, arms.a)
    make.enrolled(arms.cohort, make.student(last_name="Ajayi"))

    page = teacher.ok(teacher.get(f"/students?pageSize=2&pageNumber={number}"))

    assert (len(page["data"]), page["total"], page["total_pages"]) == (shown, 3, 2)
    assert page["data"] == listed(make, arms.a)[2 * number :][:2]


def listed(make, batch):
    """The students of a batch, as a subject teacher is shown them."""
    students = make.api.ok(make.api.get(f"/students?batch={batch}"))["data"]
    return [{**student, "dob": None, "guardian": None} for student in students]


def test_a_relation_that_shows_nothing_leads_nowhere():
    state = {"taught_subjects": [], "form_batches": ["x"], "student": None, "children": []}

    assert leading("TFSG", state) == "F"
    assert leading("GM", state) == "M"
    # Of a user whose permissions reach the whole school the state has no relations of an employee.
    assert leading("TFS", {**state, "taught_subjects": None, "form_batches": None, "student": "x"}) == "S"


class TestRefused:
    """Each of the four walls, without the others."""

    @pytest.fixture
    def request_of(self, arms, own):
        teacher, path = own.subject_teacher(arms.subject, arms.a), f"/students/{arms.in_a[0]}"
        assert teacher.get(path).status_code == 200
        return lambda: teacher.get(path)

    @pytest.fixture
    def errors(self, logs):
        return lambda: [line["message"] for line in logs() if line["level"] == "ERROR"]

    def test_an_operation_without_a_meaning_of_own(self, own):
        _, teacher = own.teacher("read:students", "write:students", "read:users")

        refused = teacher.post("/students", {})

        assert refused.get_json()["message"] == (
            "This needs the permission write:students for the whole school."
        )

    def test_a_read_model_without_reach(self, request_of, errors, monkeypatch, make, arms):
        plain = read_model(lambda student_id: reads.students.query().where(Student.id == student_id))
        plain._types = dict(reads.student._types or {})
        monkeypatch.setattr(reads, "student", plain)

        assert request_of().status_code == 403
        assert "does not say what it reads" in errors()[-1]
        assert make.api.get(f"/students/{arms.in_a[0]}").status_code == 200

    def test_a_select_that_was_made_in_the_view(self, request_of, errors, monkeypatch):
        monkeypatch.setattr(reads, "student", lambda _id: select(Student.id))

        assert request_of().status_code == 403
        assert errors()

    @pytest.mark.parametrize(
        "query",
        [
            lambda: db.session.scalars(select(Student)).all(),
            lambda: db.session.execute(select(Student.id)).all(),
            lambda: db.session.get(Student, "00000000-0000-4000-8000-000000000000"),
            lambda: find(Role, "00000000-0000-4000-8000-000000000000"),
            lambda: lock_rows(Role, []),
        ],
    )
    def test_a_select_of_the_session(self, request_of, errors, monkeypatch, query):
        monkeypatch.setattr(reads, "student", lambda _id: query())

        assert request_of().status_code == 403
        assert "does not say what it reads" in errors()[-1]

    @pytest.mark.parametrize("says", [everybodys, judged_before])
    def test_a_statement_that_says_why_it_needs_no_reach_is_sent(self, request_of, monkeypatch, says):
        narrowed = reads.student

        def student(student_id):
            db.session.execute(says(select(Role.id))).all()
            return narrowed(student_id)

        monkeypatch.setattr(reads, "student", student)

        assert request_of().status_code == 200


def test_a_read_in_a_transaction_is_narrowed_too(arms, own, monkeypatch):
    teacher = own.subject_teacher(arms.subject, arms.a)
    narrowed = reads.student

    def student(student_id):
        db.session.connection()
        return narrowed(student_id)

    monkeypatch.setattr(reads, "student", student)

    assert teacher.get(f"/students/{arms.in_a[0]}").status_code == 200
    assert teacher.get(f"/students/{arms.in_b[0]}").status_code == 404


def test_the_log_names_the_reach_of_a_request(arms, own, make, logs):
    teacher = own.subject_teacher(arms.subject, arms.a)
    for client in (teacher, make.api):
        client.ok(client.get("/students"))

    lines = [line["reach"] for line in logs() if line["logger"] == "school_service.access"]
    assert lines[-2:] == ["OWN", "SCHOOL"]


def test_three_modules_of_core_alone_mark_a_statement_as_judged():
    package = Path(school_service.__file__).parent
    marking = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if re.search(r"\bjudged=True|\"judged\":", path.read_text(encoding="utf-8"))
    }

    assert marking == {"core/narrowing.py", "core/records.py", "core/statements.py"}
