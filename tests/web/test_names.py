"""Names hold no characters that can't be seen: in JSON and in sheets, wherever a name is written."""

from __future__ import annotations

import pytest

from tests.features.classes.student_imports.test_import import LEAST, row_errors, upload
from tests.sheets.workbooks import workbook

HIDDEN = ["A\u200bda", "A\x1bda", "\u202eadA", "A\ue000da", "Ada\u200d", "\u3164"]
WITHIN_WORDS = ["می\u200cخواهم", "👩\u200d🚀", "Ọ́lá"]  # noqa: RUF001
REFUSED = ["Holds characters that can't be seen (control or format characters)."]

USER = {"username": "ada", "password": "s3cret", "first_name": "Ada", "last_name": "Obi", "gender": "FEMALE"}
STUDENT = {"first_name": "Ada", "last_name": "Obi", "admission_number": "QC/1", "middle_name": "Ify"}
WRITTEN = {
    "/users": (USER, ["username", "first_name", "last_name", "gender"]),
    "/students": (STUDENT, ["first_name", "middle_name", "last_name", "admission_number"]),
    "/classrooms": ({"name": "JSS 1", "level": "Junior"}, ["name", "level"]),
    "/templates": ({"name": "Mathematics", "code": "MTH"}, ["name", "code"]),
    "/roles": ({"name": "Cook", "avatar": 1}, ["name"]),
    "/sessions": ({"name": "2025", "start_date": "2025-09-08", "end_date": "2026-07-24"}, ["name"]),
    "/departments": ({"name": "Robotics"}, ["name"]),
    "/employee-categories": ({"name": "Volunteer"}, ["name"]),
    "/positions": ({"name": "Coach"}, ["name"]),
    "/metric-definitions": ({"name": "kindness", "metric_type": "AFFECTIVE"}, ["name"]),
}
FIELDS = [(path, field) for path, (_, fields) in WRITTEN.items() for field in fields]


@pytest.mark.parametrize(("path", "field"), FIELDS)
def test_a_name_with_invisible_characters_is_refused(api, path, field):
    body = WRITTEN[path][0]
    for name in HIDDEN:
        answer = api.post(path, {**body, field: name})

        assert answer.status_code == 422
        assert answer.get_json()["errors"] == {"json": {field: REFUSED}}
    assert api.post(path, {**body, field: WITHIN_WORDS[0]}).status_code == 200


@pytest.mark.parametrize("name", WITHIN_WORDS)
def test_joiners_within_words_and_combining_marks_come_back(api, name):
    made = api.ok(api.post("/students", {**STUDENT, "first_name": name, "admission_number": name}))

    assert (made["first_name"], made["admission_number"]) == (name, name)


def test_a_record_within_another_is_judged_too(api, make):
    body = make.employee_body()
    body["next_of_kin"]["full_name"] = "A\u200bda"

    answer = api.post("/employees", body)

    assert answer.get_json()["errors"] == {"json": {"next_of_kin": {"full_name": REFUSED}}}
    guardian = api.post("/students", {**STUDENT, "guardian": {"full_name": "A\x1bda"}})
    assert guardian.get_json()["errors"] == {"json": {"guardian": {"full_name": REFUSED}}}


def test_changes_are_judged_too(api, make):
    student = make.student()

    assert api.patch(f"/students/{student['id']}", {"last_name": "O\u200bbi"}).status_code == 422
    assert api.ok(api.get(f"/students/{student['id']}"))["last_name"] == student["last_name"]
    assert api.patch(f"/students/{student['id']}", {"last_name": "Ọ̀bi"}).status_code == 200


def test_a_sheet_names_the_rows(api):
    content = workbook(
        [LEAST, ["Ada", "Obi", "QC/1"], ["B\u200bisi", "Obi", "QC/2"], ["Chi", "Obi", "QC\u202e/3"]]
    )

    assert row_errors(upload(api, content)) == [
        (3, "first_name", "invalid"),
        (4, "admission_number", "invalid"),
    ]
    good = workbook([LEAST, ["Ada", "Obi", "QC/1"], ["👩\u200d🚀", "Obi", "QC/2"]])
    assert api.ok(upload(api, good))["created"] == 2


def test_longer_texts_have_lines_and_searches_any_characters(api, make):
    contact = make.contact(physical_address="12 Herbert Macaulay Way\n\tYaba")

    assert contact["physical_address"] == "12 Herbert Macaulay Way\n\tYaba"
    assert api.ok(api.get("/users", query_string={"search": "A\u200bda"}))["data"] == []
    wrong = api.post("/users/login", {"username": "A\u200bda", "password": "a\u200bb"})
    assert wrong.status_code == 401


# The length of a name.

LONGEST = "Length must be between 1 and 120."
LONGER = "Longer than maximum length 120."
FROM_A_MAC = "e\u0301" * 120


@pytest.mark.parametrize(("path", "field"), FIELDS)
def test_a_name_of_120_letters_is_taken_as_a_mac_sends_it(api, path, field):
    body = WRITTEN[path][0]

    made = api.post(path, {**body, field: FROM_A_MAC})

    assert made.status_code == 200
    assert "\u0301" not in made.get_data(as_text=True)
    refused = api.post(path, {**body, field: "n" * 121}).get_json()["errors"]
    assert refused == {"json": {field: [LONGER if field == "middle_name" else LONGEST]}}
    for name in (f"{FROM_A_MAC}e", "n" * 481, " " * 481, "e" + "\u0301\u0316" * 1000):
        assert api.post(path, {**body, field: name}).get_json()["errors"] == refused


def test_a_user_with_such_a_name_signs_in_from_a_mac(api, make):
    make.user(username=FROM_A_MAC)

    for username in (FROM_A_MAC, "É" * 120):
        api.ok(api.post("/users/login", {"username": username, "password": "a password"}))
    refused = api.post("/users/login", {"username": f"{FROM_A_MAC}e", "password": "a password"})
    assert refused.get_json()["errors"] == {"json": {"username": [LONGEST]}}


@pytest.mark.parametrize(
    ("path", "field", "words"),
    [
        ("/students", "status", "Must be one of: ACTIVE, WITHDRAWN."),
        ("/users", "password", "Length must be between 1 and 1000."),
    ],
)
def test_a_text_far_too_long_is_refused_in_the_words_for_one_a_little_too_long(api, make, path, field, words):
    of_record = f"/students/{make.student()['id']}"
    send = (lambda body: api.patch(of_record, body)) if path == "/students" else (lambda b: api.post(path, b))
    body = {} if path == "/students" else USER

    for length in (1001, 100_000):
        answer = send({**body, field: "n" * length})

        assert answer.get_json()["errors"] == {"json": {field: [words]}}
