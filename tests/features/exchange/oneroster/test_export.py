"""The export of a school in the form of OneRoster 1.2, held against a table of the standard."""

from __future__ import annotations

import csv
from copy import deepcopy
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from uuid import UUID, uuid4, uuid5
from zipfile import ZipFile

import pytest

from school_service.core.database import current_school, db
from school_service.features.exchange.oneroster import standard
from school_service.features.exchange.oneroster.reads import PERMISSIONS
from school_service.features.exchange.oneroster.service import write_export
from school_service.features.results.models import Publication, ReportCard
from school_service.features.school.models import TermCalendar
from school_service.features.scores.models import Absence
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.connections.engines import execute_script
from tests.factories import UNKNOWN_ID
from tests.features.exchange.oneroster.csv_binding import TABLES, columns_of, read_zip
from tests.features.results.publications.arms import Arms
from tests.features.results.stored_settings import store_settings
from tests.savepoint_engine import uncommitted

PATH = "/oneroster/csv"
STUDENTS = 20_000
PROCESS = Path("/proc/self")
CLASSES = ("read:users", "read:terms", "read:cohorts", "read:students")
ALL = (*CLASSES, "read:contacts", "read:employees", "read:gradebooks", "read:results")


def export(api, session=None):
    answer = api.get(PATH if session is None else f"{PATH}?session={session}")
    assert answer.status_code == 200, answer.get_data(as_text=True)
    assert answer.content_type == "application/zip"
    assert 'filename="oneroster.zip"' in answer.headers["Content-Disposition"]
    assert int(answer.headers["Content-Length"]) == len(answer.data)
    return read_zip(answer.data)


def store(api, *records):
    with in_transaction(SchoolBinding(UUID(str(api.school)))):
        db.session.add_all(records)


def taught_physics(make):
    """A subject of a cohort with two students, in a session that is current."""
    session = make.session(current=True)
    cohort = make.cohort(make.classroom(name="SSS 2, Science"), session)
    students = make.enrolled(cohort, make.student(), make.student())
    subject = make.cohort_subject(cohort, make.subject(name="Physics", code="PHY"))
    term = make.term(session)
    return session, cohort, subject, term, students


@pytest.fixture(scope="module", autouse=True)
def original(prepared):
    return prepared(taught_physics)


@pytest.fixture
def taught(rehearsed, original):
    return deepcopy(original)


def account_of(api, student):
    return api.ok(api.get(f"/students/{student}"))["user"]


def publish(api, taught, percents, state="PUBLISHED"):
    """Store a publication, with a card for each student of these percents."""
    session, cohort, subject, term, _ = taught
    moment = datetime(2026, 4, 2, tzinfo=UTC)
    publication = uuid4()
    reopened = {} if state == "PUBLISHED" else {
        "reopened_at": moment, "reopened_by": "x", "reopened_by_name": "x", "reason": "a slip",
    }  # fmt: skip
    store(
        api,
        Publication(
            id=publication,
            batch_id=UUID(cohort["id"]),
            cohort_id=UUID(cohort["id"]),
            session_id=UUID(session["id"]),
            term_id=UUID(term["id"]),
            version=1,
            state=state,
            rules={},
            published_at=moment,
            published_by="x",
            published_by_name="x",
            **reopened,
        ),
    )
    cards = [
        ReportCard(
            publication_id=publication,
            student_id=UUID(student),
            code=uuid4(),
            changed=False,
            class_figures_changed=False,
            term_id=UUID(term["id"]),
            in_force=state in {"PUBLISHED", "REOPENED"},
            card={"subjects": [{"subject": {"id": subject["id"]}, "percent": percent, "grade": grade}]},
        )
        for student, (percent, grade) in percents.items()
    ]
    store(api, *cards)


def test_the_table_of_the_standard_is_the_programs():
    assert {name: tuple(column for column, _, _ in columns_of(name)) for name in TABLES} == standard.COLUMNS


def test_must_hold_13_headers_vocabularies_types_and_references_are_the_standards_for_an_empty_school_too(
    api, make, other_api, taught
):
    _, cohort, subject, term, (first, second) = taught
    api.ok(api.patch(f"/teachers/{cohort['id']}/add_to_batch", {"teacher_id": make.employee()["id"]}))
    assessment = make.assessment(subject, term)
    make.entry(assessment, first, cohort["id"], score=0.5)
    api.ok(make.absences(assessment, {second: "EXCUSED"}))
    publish(api, taught, {first: (76.5, "A1")})

    _, full = export(api)  # reading a set holds it against the standard
    _, empty = export(other_api)

    assert set(full) == set(empty) == set(TABLES)
    assert all(full.values())
    assert not any(empty.values())


@pytest.fixture(scope="module")
def standard_set(prepared, original, uncommitted_engine):
    """The set of files of the records that every test begins with; it fits the standard."""
    with uncommitted(uncommitted_engine):  # an export is in the audit log
        content = prepared(lambda make: make.api.get(PATH).data)
    read_zip(content)
    return content


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("manifest", "file.orgs,bulk", "file.orgs,absent"),
        ("manifest", "file.roles,bulk\r\n", ""),
        ("manifest", "file.classes,", "file.Classes,"),
        ("lineItems", "academicSessionSourcedId,resultValueMin", "resultValueMin,academicSessionSourcedId"),
        ("users", "userMasterIdentifier,resourceSourcedIds", "userMasterIdentifier"),
        ("orgs", "sourcedId", "\ufeffsourcedId"),
        ("orgs", "\r\n", "\n"),
        ("orgs", "Queen's College", '"Queen\'s\nCollege"'),
        ("orgs", ",school,", ",academy,"),
        ("orgs", ",,,", ",active,,"),
        ("academicSessions", "-09-08", "-9-8"),
        ("academicSessions", ",term,", ",Term,"),
        ("classes", "homeroom,,", f"homeroom,,{UNKNOWN_ID}"),
        ("enrollments", ",student,", ",pupil,"),
        ("roles", "primary,", "secondary,"),
        ("users", ",true,", ",True,"),
    ],
)
def test_a_set_against_the_standard_is_recognised(standard_set, file, old, new):
    changed = BytesIO()
    with ZipFile(BytesIO(standard_set)) as archive, ZipFile(changed, "w") as other:
        for name in archive.namelist():
            text = archive.read(name).decode()
            if name == f"{file}.csv":
                assert old in text
                text = text.replace(old, new)
            other.writestr(name, text)

    with pytest.raises((AssertionError, ValueError, KeyError, csv.Error)):
        read_zip(changed.getvalue())


def test_people_and_classes(api, make, taught):
    session, cohort, subject, term, students = taught
    second = make.batch(cohort, name="B")
    teacher, other = make.employee(first_name="Ngọzi"), make.employee()
    for employee in (teacher, other):
        api.ok(api.patch(f"/teachers/{second['id']}/add_to_batch", {"teacher_id": employee["id"]}))

    manifest, files = export(api)

    assert manifest["source.systemName"] == "School Service"
    assert manifest["source.systemCode"] == str(api.school)
    assert set(files) == set(TABLES)
    (org,) = files["orgs"]
    assert (org["sourcedId"], org["name"], org["type"]) == (
        str(api.school),
        "Queen's College, Yaba",
        "school",
    )

    years = {row["sourcedId"]: row for row in files["academicSessions"]}
    assert years[session["id"]]["type"] == "schoolYear"
    assert years[term["id"]]["type"] == "term"
    assert years[term["id"]]["parentSourcedId"] == session["id"]
    assert years[term["id"]]["schoolYear"] == session["end_date"][:4]

    classes = {row["sourcedId"]: row for row in files["classes"]}
    physics = classes[subject["id"]]
    assert physics["title"] == "Physics SSS 2, Science"
    assert (physics["classType"], physics["termSourcedIds"]) == ("scheduled", term["id"])
    assert physics["grades"] == "SSS 2 Science"  # a text of a list has no commas
    assert (classes[second["id"]]["title"], classes[second["id"]]["classType"]) == (
        "SSS 2, Science B",
        "homeroom",
    )
    courses = {row["sourcedId"]: row for row in files["courses"]}
    assert courses[physics["courseSourcedId"]]["courseCode"] == "PHY"
    assert courses[classes[cohort["id"]]["courseSourcedId"]]["title"] == "SSS 2, Science"

    users = {row["sourcedId"]: row for row in files["users"]}
    for student in students:
        shown = api.ok(api.get(f"/students/{student}"))
        row = users[shown["user"]]
        assert row["identifier"] == shown["admission_number"]
        assert (row["enabledUser"], row["password"], row["phone"]) == ("true", "", "")
    teaching = make.account_of(teacher)["id"]
    assert users[teaching]["givenName"] == "Ngọzi"

    roles = {(row["userSourcedId"], row["role"]): row for row in files["roles"]}
    assert roles[teaching, "teacher"]["roleType"] == "primary"
    assert roles[account_of(api, students[0]), "student"]["roleType"] == "primary"
    assert {role for _, role in roles} == {"student", "teacher", "siteAdministrator"}
    assert {row["userSourcedId"] for row in files["roles"]} == set(users)

    enrolled = {(row["classSourcedId"], row["userSourcedId"]): row for row in files["enrollments"]}
    here = enrolled[cohort["id"], account_of(api, students[0])]
    assert (here["role"], here["primary"]) == ("student", "false")
    assert here["beginDate"] == max(datetime.now(UTC).date().isoformat(), session["start_date"])
    taking = enrolled[subject["id"], account_of(api, students[0])]
    assert taking["sourcedId"] == str(uuid5(UUID(subject["id"]), students[0]))
    form_teachers = [row for (batch, _), row in enrolled.items() if batch == second["id"]]
    assert [row["role"] for row in form_teachers] == ["teacher", "teacher"]
    assert sorted(row["primary"] for row in form_teachers) == ["false", "true"]


def test_the_form_teacher_of_longest_standing_is_primary(api, make, taught):
    batch = taught[1]["id"]
    accounts = []
    for _ in range(3):
        employee = make.employee()
        accounts.append(make.account_of(employee)["id"])
        api.ok(api.patch(f"/teachers/{batch}/add_to_batch", {"teacher_id": employee["id"]}))

    rows = {row["userSourcedId"]: row for row in export(api)[1]["enrollments"] if row["role"] == "teacher"}

    assert [rows[account]["primary"] for account in accounts] == ["true", "false", "false"]


def test_a_teacher_who_administers_has_one_primary_role(api, make, taught):
    employee = make.employee()
    account = make.account_of(employee)["id"]
    api.ok(api.patch(f"/teachers/{taught[1]['id']}/add_to_batch", {"teacher_id": employee["id"]}))
    roles = {role["name"]: role["id"] for role in api.ok(api.get("/roles"))}
    api.ok(api.put(f"/users/{account}/roles", {"role": roles["Administrator"]}))

    role_types = {
        row["role"]: row["roleType"] for row in export(api)[1]["roles"] if row["userSourcedId"] == account
    }

    assert role_types == {"teacher": "primary", "siteAdministrator": "secondary"}


def test_staff_who_neither_teach_nor_administer_are_left_out(api, make, taught):
    categories = {row["name"]: row["id"] for row in api.ok(api.get("/employee-categories"))}
    bursar = make.account_of(make.employee(category=categories["Non-teaching"]))["id"]
    teacher = make.account_of(make.employee(category=categories["Teaching"]))["id"]

    users = {row["sourcedId"] for row in export(api)[1]["users"]}

    assert teacher in users
    assert bursar not in users


def test_terms_have_the_dates_of_their_calendar_and_ends_are_the_day_after(api, make, taught):
    session, *_, term, _ = taught
    (row,) = (row for row in export(api)[1]["academicSessions"] if row["sourcedId"] == term["id"])
    assert row["startDate"] == session["start_date"]

    store(
        api,
        TermCalendar(
            term_id=UUID(term["id"]),
            start_date=datetime.fromisoformat(session["start_date"]).date(),
            end_date=datetime.fromisoformat(session["start_date"]).date(),
        ),
    )
    (row,) = (row for row in export(api)[1]["academicSessions"] if row["sourcedId"] == term["id"])

    days = datetime.fromisoformat(row["endDate"]) - datetime.fromisoformat(row["startDate"])
    assert days.days == 1


def test_the_newest_contact_gives_the_address(api, make, taught):
    student = api.ok(api.get(f"/students/{taught[4][0]}"))
    for address in ("old@example.com", "new@example.com"):
        make.contact({"id": student["user"]}, email_address=address)

    users = {row["sourcedId"]: row for row in export(api)[1]["users"]}

    assert users[student["user"]]["email"] == "new@example.com"


def test_text_of_several_lines_is_one_line_and_quotes_stay(api, make, taught):
    _, _, subject, term, _ = taught
    description = 'Read "Things Fall Apart",\r\n\nthen write;\rhand in\n=SUM(A1)'
    make.assessment(subject, term, name='The "second", test', description=description)

    (item,) = export(api)[1]["lineItems"]

    assert item["title"] == 'The "second", test'
    assert item["description"] == 'Read "Things Fall Apart", then write; hand in =SUM(A1)'


def test_a_student_enrolled_before_the_session_begins_is_in_the_class_from_its_first_day(api, make):
    session = make.session(start_date="2090-09-07", end_date="2091-07-20")
    make.enrolled(make.cohort(session=session))

    (row,) = export(api, session["id"])[1]["enrollments"]

    assert row["beginDate"] == "2090-09-07"


def test_scores_and_absences(api, make, taught):
    _, cohort, subject, term, (first, second) = taught
    assessment = make.assessment(subject, term, total_points=20)
    excused = make.assessment(subject, term, total_points=20)
    entry = make.entry(assessment, first, cohort["id"], score=12.5)
    store(
        api,
        Absence(assessment_id=UUID(assessment["id"]), student_id=UUID(second), status="ABSENT"),
        Absence(assessment_id=UUID(excused["id"]), student_id=UUID(first), status="EXCUSED"),
    )

    files = export(api)[1]

    items = {row["sourcedId"]: row for row in files["lineItems"]}
    assert (items[assessment["id"]]["resultValueMin"], items[assessment["id"]]["resultValueMax"]) == (
        "0",
        "20",
    )
    assert items[assessment["id"]]["dueDate"] == assessment["due_date"]
    categories = {row["sourcedId"]: row["title"] for row in files["categories"]}
    assert categories[items[assessment["id"]]["categorySourcedId"]] == assessment["category"]
    results = {(row["lineItemSourcedId"], row["studentSourcedId"]): row for row in files["results"]}
    scored = results[assessment["id"], account_of(api, first)]
    assert (scored["sourcedId"], scored["score"], scored["scoreStatus"]) == (
        entry["id"],
        "12.5",
        "fully graded",
    )
    absent = results[assessment["id"], account_of(api, second)]
    assert (absent["score"], absent["scoreStatus"], absent["missing"]) == ("", "not submitted", "true")
    assert absent["sourcedId"] == str(uuid5(UUID(assessment["id"]), second))
    exempt = results[excused["id"], account_of(api, first)]
    assert (exempt["score"], exempt["scoreStatus"], exempt["missing"]) == ("", "exempt", "")


def test_scores_of_a_student_who_dropped_the_subject_are_left_out(api, make):
    session = make.session(current=True)
    cohort = make.cohort(session=session)
    (student,) = make.enrolled(cohort)
    subject = make.cohort_subject(cohort, elective=True)
    api.ok(api.patch(f"/cohort-subjects/{subject['id']}/students", [student]))
    make.entry(make.assessment(subject, make.term(session)), student, cohort["id"], score=1)
    assert len(export(api)[1]["results"]) == 1

    api.ok(api.delete(f"/cohort-subjects/{subject['id']}/students/{student}"))

    assert export(api)[1]["results"] == []


@pytest.mark.parametrize(
    ("weights", "whole"),
    [
        ({"CA1": 40, "EXAM": 60}, {"CA1": "40", "EXAM": "60"}),
        # Where remainders are the same, the first category gets it.
        ({"CA1": 39.5, "EXAM": 60.5}, {"CA1": "40", "EXAM": "60"}),
        ({"CA1": 33.33, "CA2": 33.33, "CA3": 33.34}, {"CA1": "33", "CA2": "33", "CA3": "34"}),
        ({"CA1": 16.6, "CA2": 16.7, "CA3": 16.7, "EXAM": 50}, {"CA1": "16", "CA2": "17", "CA3": "17", "EXAM": "50"}),
        ({"CA1": 0.4, "CA2": 0.4, "EXAM": 99.2}, {"CA1": "1", "CA2": "0", "EXAM": "99"}),
        ({"CA1": 0, "EXAM": 100}, {"CA1": "0", "EXAM": "100"}),
    ],
)  # fmt: skip
def test_categories_have_the_weights_of_all_levels_in_whole_percents(api, make, taught, weights, whole):
    stored = [
        *({"level": None, "category": category, "weight": weight} for category, weight in weights.items()),
        {"level": "SSS", "category": "CA1", "weight": 100},
    ]
    with in_transaction(SchoolBinding(UUID(str(api.school)))):
        store_settings(weighting="CATEGORIES", weights=stored)

    categories = {row["title"]: row["weight"] for row in export(api)[1]["categories"]}

    assert {title: weight for title, weight in categories.items() if weight} == whole
    assert sum(map(int, whole.values())) == 100


def test_without_weights_categories_have_none(api, make, taught):
    weights = [{"level": None, "category": "EXAM", "weight": 100}]
    with in_transaction(SchoolBinding(UUID(str(api.school)))):
        store_settings(weighting="POINTS", weights=weights)

    assert {row["weight"] for row in export(api)[1]["categories"]} == {""}


def test_nothing_is_due_before_it_was_assigned(api, make, taught):
    _, _, subject, term, _ = taught
    past = make.assessment(subject, term, due_date="2001-02-03")
    future = make.assessment(subject, term, due_date="2999-02-03")

    items = {row["sourcedId"]: row for row in export(api)[1]["lineItems"]}

    assert (items[past["id"]]["assignDate"], items[past["id"]]["dueDate"]) == ("2001-02-03", "2001-02-03")
    assert items[future["id"]]["assignDate"] < items[future["id"]]["dueDate"] == "2999-02-03"


def test_a_term_result_is_due_at_the_end_of_the_term_and_assigned_by_then(api, make, taught):
    _, _, _, term, (first, _) = taught
    publish(api, taught, {first: (76.5, "A1")}, "PUBLISHED")
    session_start = api.ok(api.get(f"/sessions/{taught[0]['id']}"))["start_date"]
    calendar = {
        "start_date": session_start,
        "end_date": session_start,
        "times_opened": None,
        "next_term_begins": None,
        "notice": None,
    }
    api.ok(api.put(f"/terms/{term['id']}/calendar", calendar))

    (item,) = export(api)[1]["lineItems"]

    assert item["dueDate"] == session_start
    assert item["assignDate"] <= item["dueDate"]


@pytest.mark.parametrize("state", ["PUBLISHED", "REOPENED"])
def test_published_results(api, make, taught, state):
    session, _, subject, term, (first, second) = taught
    publish(api, taught, {first: (76.5, "A1"), second: (None, None)}, state)

    files = export(api)[1]

    (item,) = files["lineItems"]
    assert (item["title"], item["resultValueMax"], item["dueDate"]) == (
        "Term result",
        "100",
        session["end_date"],
    )
    assert item["sourcedId"] == str(uuid5(UUID(subject["id"]), term["id"]))
    categories = {row["sourcedId"]: row["title"] for row in files["categories"]}
    assert categories[item["categorySourcedId"]] == "Term result"
    (result,) = files["results"]  # who has no percent has no result
    assert (result["score"], result["textScore"], result["scoreStatus"]) == ("76.5", "A1", "fully graded")
    assert result["studentSourcedId"] == account_of(api, first)


def test_a_mover_has_the_result_of_the_card_that_is_in_force(api, make):
    arms = Arms(make)
    arms.mark()
    (of_first,) = arms.published(arms.first)
    student, subject = arms.students[arms.first][0], arms.subjects[0]
    api.ok(
        api.post(f"/cohorts/{arms.cohort['id']}/enrollment", {"students": [student], "batch": arms.second})
    )
    api.ok(arms.reopen(of_first))
    arms.correct(student, 61)

    def results():
        files = export(api, arms.cohort["session"])[1]
        ids = [row["sourcedId"] for row in files["results"]]
        assert len({*ids}) == len(ids)
        item = str(uuid5(UUID(subject["id"]), arms.terms["FIRST"]["id"]))
        account = account_of(api, student)
        return [
            row["score"]
            for row in files["results"]
            if (row["lineItemSourcedId"], row["studentSourcedId"]) == (item, account)
        ]

    assert results() == ["90.00"]
    api.ok(arms.publish(arms.second))
    assert results() == ["90.00"]
    api.ok(arms.publish(arms.first))
    assert results() == ["61.00"]


def test_results_of_a_leaver_with_a_card_are_there(api, make):
    arms = Arms(make)
    arms.published(arms.first)
    leaver = arms.students[arms.first][0]
    account = account_of(api, leaver)
    api.ok(api.patch(f"/cohorts/{arms.cohort['id']}/remove_students", {"student_ids": [leaver]}))
    make.graduate({"id": leaver})

    for permissions in (ALL, (*CLASSES, "read:gradebooks"), (*CLASSES, "read:results")):
        files = export(make.caller(*permissions), arms.cohort["session"])[1]

        of_leaver = [row["score"] for row in files["results"] if row["studentSourcedId"] == account]
        each = ("read:gradebooks" in permissions) + ("read:results" in permissions)
        assert len(of_leaver) == len(arms.subjects) * each
        assert account in {row["sourcedId"] for row in files["users"]}


@pytest.mark.parametrize("state", ["WITHDRAWN", "SUPERSEDED"])
def test_results_that_are_not_in_force_are_left_out(api, taught, state):
    publish(api, taught, {taught[4][0]: (76.5, "A1")}, state)

    assert export(api)[1]["results"] == []


def absent(manifest):
    """The files that a manifest calls absent, of those that the service can write."""
    return {name for name in TABLES if manifest[f"file.{name}"] == "absent"}


SCORED = {"categories", "lineItems", "results"}


def test_files_follow_the_permissions(make, taught):
    _, cohort, subject, term, (student, _) = taught
    make.entry(make.assessment(subject, term), student, cohort["id"], score=1)
    publish(make.api, taught, {student: (76.5, "A1")})

    for given, expected in (
        (("read:users",), set(TABLES) - {"orgs", "users", "roles"}),
        (("read:users", "read:students"), set(TABLES) - {"orgs", "users", "roles", "demographics"}),
        (CLASSES, SCORED),
        ((*CLASSES, "read:gradebooks"), set()),
        ((*CLASSES, "read:results"), set()),
    ):
        manifest, files = export(make.caller(*given))
        assert absent(manifest) == expected
        titles = {row["title"] for row in files.get("categories", [])}
        assert ("Term result" in titles) == ("read:results" in given)
        assert ("EXAM" in titles) == ("read:gradebooks" in given)
        assert len(files.get("results", [])) == len(SCORED & set(files)) // 3
    assert len(export(make.caller(*ALL))[1]["results"]) == 2
    assert make.caller("read:students").get(PATH).status_code == 403


@pytest.mark.parametrize(
    ("lacking", "expected"),
    [
        ("read:terms", {"academicSessions", "classes", "enrollments", "lineItems", "results"}),
        ("read:cohorts", {"courses", "classes", "enrollments", "lineItems", "results"}),
        ("read:students", {"enrollments", "demographics"}),
        ("read:gradebooks", set()),
        ("read:results", set()),
        ("read:contacts", set()),
        ("read:employees", set()),
    ],
)
def test_without_a_permission_a_file_is_absent_and_so_are_the_files_that_refer_to_it(
    make, taught, lacking, expected
):
    given = [permission for permission in ALL if permission != lacking]

    manifest, files = export(make.caller(*given))

    assert absent(manifest) == expected
    for name in files:
        named = {kind.lstrip("->") for _, _, kind in columns_of(name) if kind.startswith("->")}
        written = {
            kind.lstrip("->")
            for column, _, kind in columns_of(name)
            if kind.startswith("->") and any(row[column] for row in files[name])
        }
        assert written & expected == set(), f"{name} refers to {named & expected}"


def test_a_column_is_blank_without_its_permission(api, make, taught):
    student = taught[4][0]
    api.ok(api.patch(f"/students/{student}", {"middle_name": "Amaka"}))
    employee = make.employee(middle_name="Bisi")
    api.ok(api.patch(f"/teachers/{taught[1]['id']}/add_to_batch", {"teacher_id": employee["id"]}))
    accounts = {account_of(api, student): "student", make.account_of(employee)["id"]: "employee"}
    make.contact({"id": account_of(api, student)}, email_address="pupil@example.com")

    def users_without(*lacking):
        given = [permission for permission in ALL if permission not in lacking]
        rows = export(make.caller(*given))[1]["users"]
        return {accounts[row["sourcedId"]]: row for row in rows if row["sourcedId"] in accounts}

    whole = users_without()
    assert whole["student"]["email"] == "pupil@example.com"
    assert whole["employee"]["email"]
    for lacking, blank in (
        ("read:contacts", {("student", "email"), ("employee", "email")}),
        ("read:cohorts", {("student", "grades")}),
        ("read:students", {("student", "middleName")}),
        ("read:employees", {("employee", "middleName")}),
    ):
        users = users_without(lacking)
        changed = {
            (who, name) for who in whole for name in whole[who] if whole[who][name] != users[who][name]
        }
        assert changed == blank, lacking
        assert {users[who][name] for who, name in blank} == {""}


def test_a_deleted_user_is_there_only_where_a_file_tells_of_them(api, make, taught):
    """The account of a student who was deleted, and is in the session still: GET /users does not show it either."""
    student = taught[4][0]
    account = account_of(api, student)
    api.ok(api.delete(f"/users/{account}/delete"))

    def listed(*permissions):
        return account in {row["sourcedId"] for row in export(make.caller(*permissions))[1]["users"]}

    assert not listed("read:users")
    assert listed(*CLASSES)


def test_a_session_by_id_and_by_name(api, make, taught):
    other = make.session()
    for name in (other["id"], other["name"]):
        (row,) = export(api, name)[1]["academicSessions"]
        assert row["sourcedId"] == other["id"]
    assert export(api, other["id"])[1]["classes"] == []


def test_a_session_without_terms_stands_for_itself(api, make):
    session = make.session(current=True)
    make.cohort(session=session)

    (row,) = export(api)[1]["classes"]

    assert row["termSourcedIds"] == session["id"]


def test_without_a_current_session_the_files_have_headers_alone(other_api, make_other):
    make_other.session()
    make_other.student()

    _, files = export(other_api)

    assert set(files) == set(TABLES)
    assert not any(files.values())


@pytest.mark.parametrize("session", [UNKNOWN_ID, "1066/1067", "", "\u0000", "%F0%9F%98%80"])
def test_a_session_that_is_not_there_is_refused(api, session):
    assert api.get(f"{PATH}?session={session}").status_code == 422


def test_nothing_is_of_the_other_school(api, make_other, other_api, taught):
    theirs = make_other.session(current=True)
    cohort = make_other.cohort(session=theirs)
    make_other.enrolled(cohort)

    ours, others = export(api)[1], export(other_api)[1]

    def ids(files):
        return {row["sourcedId"] for rows in files.values() for row in rows}

    assert not ids(ours) & ids(others)
    assert api.get(f"{PATH}?session={theirs['id']}").status_code == 422
    assert other_api.get(f"{PATH}?session={taught[0]['id']}").status_code == 422
    assert api.using(school=other_api.school).get(PATH).status_code == 403


def test_an_export_is_a_statement_a_file_however_many_students(api, make, taught, messages):
    with messages() as few:
        export(api)
    make.enrolled(taught[1], *(make.student() for _ in range(5)))
    with messages() as more:
        export(api)

    # Binding, session, files, and the entry of the audit log with the commit.
    assert len(few) == len(more) == 2 + len(TABLES) + 1
    assert sum(message.startswith("COPY (") for message in more) == len(TABLES)


def test_an_export_is_in_the_audit_log(api, make, taught):
    export(make.caller("read:users"))

    (entry,) = api.ok(api.get("/audit?entity=export"))["data"]

    assert entry["entity_id"] == taught[0]["id"]
    assert entry["new"]["format"] == "OneRoster 1.2"
    assert "results" not in entry["new"]["files"]


def test_all_files_tell_of_one_moment(committing):
    """A change committed while the files are written is in none of them: the transaction is REPEATABLE READ."""
    api, make = committing.api, committing
    cohort = make.cohort(session=make.session(current=True))
    make.enrolled(cohort)
    with (
        api.app.app_context(),
        in_transaction(SchoolBinding(UUID(str(api.school)), read_only=True, snapshot=True)),
    ):
        level = db.session.connection().exec_driver_sql("SHOW transaction_isolation").scalar_one()
    assert level == "repeatable read"


# A row of each table for each number from 1 to `:most`, its id made of the number.
MANY = """
INSERT INTO users (id, username, username_key, first_name, last_name, gender, session_number, created_at)
SELECT md5('u' || n)::uuid, 'many' || n, 'many' || n, 'Adaeze', 'Okafor', 'FEMALE', 0, now() FROM numbers n;
INSERT INTO students (id, number, user_id, admission_number, status, created_at)
SELECT md5('s' || n)::uuid, 1000000 + n, md5('u' || n)::uuid, 'MANY/' || n, 'ACTIVE', now() FROM numbers n;
INSERT INTO enrollments (id, student_id, batch_id, cohort_id, session_id, started_at)
SELECT md5('e' || n::text)::uuid, md5('s' || n::text)::uuid, c.id, c.id, c.session_id, timestamptz '2026-01-01'
FROM numbers n, cohorts c WHERE c.id = '{cohort}';
INSERT INTO subject_enrollments (cohort_subject_id, student_id, created_at)
SELECT '{subject}', md5('s' || n)::uuid, now() FROM numbers n;
INSERT INTO gradebook_entries (id, assessment_id, student_id, batch_id, score, created_at, updated_at)
SELECT md5('g' || n)::uuid, '{assessment}', md5('s' || n)::uuid, '{cohort}', n % 20, now(), now() FROM numbers n
"""


@pytest.mark.release
@pytest.mark.skipif(not PROCESS.exists(), reason="There is no /proc to read the memory of a process from.")
def test_memory_does_not_grow_with_the_school(api, make, taught):
    school = UUID(str(api.school))
    _, cohort, subject, term, _ = taught
    ids = {"cohort": cohort["id"], "subject": subject["id"]}
    statements = MANY.format(**ids, assessment=make.assessment(subject, term)["id"])
    export(api)  # parts made once are there

    with in_transaction(SchoolBinding(school)), TemporaryFile() as file:
        connection = db.session.connection()
        execute_script(connection, statements.replace("numbers n", f"generate_series(1, {STUDENTS}) n"))
        before = resident("VmRSS")
        PROCESS.joinpath("clear_refs").write_text("5", encoding="ascii")  # the peak is one from here on
        write_export(connection, file, current_school(), permissions=PERMISSIONS)
        grown = resident("VmHWM") - before
        with ZipFile(file) as archive:
            written = sum(info.file_size for info in archive.infolist())

    assert written > 15 * 2**20
    assert grown < 5 * 2**20


def resident(name):
    """A figure of this process's memory, in bytes: the present one, or its peak, of libpq and zlib too."""
    status = PROCESS.joinpath("status").read_text(encoding="ascii")
    return int(status.partition(f"{name}:")[2].split()[0]) * 1024
