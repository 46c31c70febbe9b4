"""Names as they are stored, and the order of people's names, the same in every list, sheet and paper."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from io import BytesIO

import pytest
from openpyxl import load_workbook

from tests.factories import PASSWORD
from tests.features.scores.scoresheets.sheets import counts, upload

# In their order: by last name, then by first name. Marks and case are folded, so the first names decide between these.
PEOPLE = [
    ("Danjuma", "Àdá"),
    ("Ɗantata", "Aminu"),
    ("Dantata", "Bola"),
    ("de Souza", "Ẹniọlá"),
    ("Ogunleye", "Adé"),
    ("Ògúnlẹ́yẹ", "Bisi"),
    ("ogunleye", "Çelik"),
    ("Ọ̀gúnlẹ́yẹ", "Dayo"),
    ("Ṣónibárẹ́", "Zubair"),
    ("Zubairu", "Ada"),
]
IN_ORDER = [tuple(unicodedata.normalize("NFC", name) for name in names) for names in PEOPLE]


@pytest.fixture
def taught(make):
    """A class of these people, who came in another order, half of them with their names decomposed."""
    students = []
    for number, names in enumerate(reversed(PEOPLE)):
        last, first = (unicodedata.normalize("NFD" if number % 2 else "NFC", name) for name in names)
        students.append(make.student(last_name=last, first_name=first, admission_number=f"QC/{number:02}"))
    empty = make.taught(0)
    return replace(empty, students=make.enrolled(empty.cohort, *students))


def names_of(people):
    return [(person["last_name"], person["first_name"]) for person in people]


def students_of(rows):
    return names_of(row["student"] for row in rows)


def test_every_list_of_a_class_has_one_order(api, make, taught):
    cohort, subject, term = taught.cohort["id"], taught.subject["id"], taught.term["id"]
    make.assessment(taught.subject, taught.term)
    of_class = {"batch": cohort, "term": term}

    def read(path, **query):
        return api.ok(api.get(path, query_string=query))

    lists = {
        "students": names_of(read("/students")["data"]),
        "students of a class": names_of(read("/students", batch=cohort)["data"]),
        "students found": names_of(read("/students", search="qc/")["data"]),
        "cohort": names_of(read(f"/cohorts/{cohort}/students")),
        "scoresheet": students_of(read(f"/scoresheets/{subject}/scoresheet")),
        "comments": students_of(read("/comments", **of_class)),
        "broadsheet": students_of(read("/broadsheets", **of_class)["students"]),
        "results": students_of(read(f"/cohort-subjects/{subject}/results", term=term)),
    }

    assert lists == dict.fromkeys(lists, IN_ORDER)


def test_every_workbook_has_that_order(api, make, taught):
    assessment = make.assessment(taught.subject, taught.term)
    of_class = {"batch": taught.cohort["id"], "term": taught.term["id"]}
    of_metrics = {"batchId": taught.cohort["id"], "term": taught.term["id"], "metric_type": "AFFECTIVE"}
    for path, query in {
        f"/assessments/{assessment['id']}/download-sheet": {},
        "/metrics/download-sheet": of_metrics,
        "/comments/download-sheet": of_class,
    }.items():
        sheet = load_workbook(BytesIO(api.get(path, query_string=query).data)).worksheets[0]
        rows = iter(sheet.iter_rows(values_only=True))
        header = [str(name).casefold().replace("_", " ") for name in next(rows)]
        last, first = header.index("last name"), header.index("first name")

        assert [(row[last], row[first]) for row in rows if row[last]] == IN_ORDER, path


def test_students_missing_in_a_sheet_are_listed_in_that_order(api, make, taught):
    assessment = make.assessment(taught.subject, taught.term)
    form = {"scoresheet": (BytesIO(b"admission_number,score\nQC/00,1\n"), "scores.csv")}

    answer = api.ok(api.post(f"/assessments/{assessment['id']}/scoresheet?dry_run=true", data=form))

    assert names_of(answer["not_in_sheet"]) == IN_ORDER[:-1]


def test_published_results_have_that_order(api, make, taught):
    assessment = make.assessment(taught.subject, taught.term)
    for student in taught.students:
        make.entry(assessment, student, taught.cohort["id"], 10)
    of_term = {"term": taught.term["id"]}
    api.ok(api.post(f"/cohort-subjects/{taught.subject['id']}/submission", of_term))
    api.ok(api.post("/publications", {"batches": [taught.cohort["id"]], **of_term}))
    (publication,) = api.ok(api.get("/publications"))["data"]
    # Published cards are in the order of the names on them.
    api.ok(api.patch(f"/students/{taught.students[0]}", {"last_name": "Abubakar"}))

    of_class = {"batch": taught.cohort["id"], **of_term}
    lists = {
        "broadsheet": api.ok(api.get("/broadsheets", query_string=of_class))["students"],
        "results": api.ok(api.get(f"/cohort-subjects/{taught.subject['id']}/results", query_string=of_term)),
        "cards": api.ok(api.get(f"/publications/{publication['id']}/cards")),
    }

    orders = {name: students_of(rows) for name, rows in lists.items()}
    assert orders == dict.fromkeys(lists, IN_ORDER)


def test_employees_have_that_order(api, make):
    for last, first in reversed(PEOPLE):
        make.employee(last_name=last, first_name=first)

    assert names_of(api.ok(api.get("/employees"))) == IN_ORDER


def test_accounts_are_listed_by_username_in_that_way(api, make):
    usernames = ["adé", "ADE1", "Ádé2", "bola", "Ɗanjuma", "danladi", "Ọlá", "ola1", "zainab"]
    for username in reversed(usernames):
        make.user(username=unicodedata.normalize("NFD", username))

    shown = [user["username"] for user in api.ok(api.get("/users?pageSize=1000"))["data"]]

    assert [username for username in shown if username in usernames] == usernames


# Names are composed.

APART = unicodedata.normalize("NFD", "Ògúnlẹ́yẹ Ṣadé")
WHOLE = unicodedata.normalize("NFC", APART)


def test_names_are_stored_composed(api, make):
    user = make.user(username=APART, first_name=APART, last_name=APART)["user"]
    student = make.student(first_name=APART, middle_name=APART, last_name=APART, admission_number=APART + "1")
    classroom = make.classroom(name=APART)
    changed = api.ok(api.patch(f"/students/{student['id']}", {"last_name": f"{APART} 2"}))

    assert {user["username"], user["first_name"], user["last_name"]} == {WHOLE}
    assert {student["first_name"], student["middle_name"], student["last_name"]} == {WHOLE}
    assert (student["admission_number"], changed["last_name"]) == (f"{WHOLE}1", f"{WHOLE} 2")
    assert classroom["name"] == WHOLE


def test_a_name_that_is_equal_when_composed_is_taken(api, make):
    make.classroom(name=WHOLE)
    make.student(admission_number=WHOLE)

    assert api.post("/classrooms", {"name": APART, "level": "Junior"}).status_code == 409
    body = {"first_name": "Ada", "last_name": "Obi", "admission_number": APART, "username": "ada"}
    assert api.post("/students", body).status_code == 409


def test_a_user_signs_in_by_any_form_of_the_name(api, make):
    make.user(username=APART)

    for typed in (APART, WHOLE, WHOLE.upper()):
        api.ok(api.post("/users/login", {"username": typed, "password": PASSWORD}))


def test_a_password_stays_as_it_was_typed(api, make):
    make.user(username="bola", password="Pẹ́ńkẹ́lẹ́mẹ̀sì pé")
    apart = unicodedata.normalize("NFD", "Pẹ́ńkẹ́lẹ́mẹ̀sì pé")

    assert api.post("/users/login", {"username": "bola", "password": apart}).status_code == 401


def test_a_sheet_may_have_names_in_either_form(api, make):
    student = make.student(first_name="Ṣadé", last_name="Ẹ̀zẹ", admission_number="Ẹ̀/1")
    empty = make.taught(0)
    make.enrolled(empty.cohort, student)
    assessment = make.assessment(empty.subject, empty.term)
    sheet = "admission_number,first_name,last_name,score\nẸ̀/1,Ṣadé,Ẹ̀zẹ,5\n"

    outcomes = [
        counts(upload(api, assessment, unicodedata.normalize(form, sheet).encode(), "scores.csv"))
        for form in ("NFC", "NFD")
    ]

    assert outcomes == [(1, 1, 0, 0, 0), (1, 0, 0, 1, 0)]


def test_an_import_finds_an_admission_number_in_another_form(api, make):
    make.student(admission_number="Ẹ̀/1")
    sheet = unicodedata.normalize("NFD", "first_name,last_name,admission_number\nAda,Obi,Ẹ̀/1\n")

    refused = api.post("/students/import-sheet", data={"sheet": (BytesIO(sheet.encode()), "students.csv")})

    assert [error["code"] for error in refused.get_json()["errors"]["rows"]] == ["taken"]


def test_a_session_is_found_by_its_name_in_either_form(api, make):
    classroom = make.classroom()
    session = make.session(name=f"Ọdún {APART}")

    made = api.ok(api.post("/cohorts", {"classroom": classroom["id"], "session_id": f"Ọdún {APART}"}))

    assert made["session"] == session["id"]
    assert session["name"] == f"Ọdún {WHOLE}"
