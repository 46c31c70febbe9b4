"""An import that enrolls, and values of a sheet that are wrong on their face."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

import pytest

from school_service.features.classes.student_imports import sheet as sheet_of_students
from tenants.clock import now
from tests.features.classes.student_imports.test_import import (
    LEAST,
    created,
    listed,
    people,
    row_errors,
    sheet,
    upload,
)
from tests.sheets.workbooks import workbook

CLASSES = [*LEAST, "Class"]


@pytest.fixture
def cohort(make):
    """JSS 1 of the current session, with the arms A and Gold and a compulsory subject; JSS 2 has one arm."""
    session = make.session(name="2044/2045", current=True)
    cohort = make.cohort(make.classroom(name="JSS 1"), session)
    cohort["gold"] = make.batch(cohort, name="Gold")["id"]
    cohort["subject"] = make.cohort_subject(cohort)["id"]
    cohort["elective"] = make.cohort_subject(cohort, elective=True)["id"]
    cohort["second"] = make.cohort(make.classroom(name="JSS 2"), session)["id"]
    make.cohort(make.classroom(name="JSS 3"), make.session(name="2043/2044"))
    return cohort


def batches(api):
    return {student["admission_number"]: student["batch"] for student in listed(api)}


def test_students_are_enrolled_in_the_classes_that_the_sheet_names(api, cohort):
    names = ["JSS 1 A", "jss 1  gold", "JSS 1 Gold 2044/2045", "JSS 2", cohort["gold"], None]
    rows = [[*person, name] for person, name in zip(people(6), names, strict=True)]

    assert api.ok(upload(api, workbook([CLASSES, *rows]))) == created(6) | {"enrolled": 5}

    first, gold, second = cohort["id"], cohort["gold"], cohort["second"]
    assert [batches(api)[number] for _, _, number in people(6)] == [first, gold, gold, second, gold, None]
    lines = api.ok(api.get(f"/scoresheets/{cohort['subject']}/scoresheet"))
    takers = {line["student"]["admission_number"] for line in lines}
    assert takers == {"IM/00001", "IM/00002", "IM/00003", "IM/00005"}
    assert api.ok(api.get(f"/scoresheets/{cohort['elective']}/scoresheet")) == []
    log = api.ok(api.get("/audit?entity=enrollment"))["data"]
    assert [entry["new"] for entry in log if entry["new"]["batch"] == second] == [
        {"cohort": second, "batch": second}
    ]
    assert len(log) == 5


def test_a_class_that_is_not_there_is_told_with_those_that_are(api, cohort, make_other):
    elsewhere = make_other.cohort()["id"]
    names = ["JSS 9", "JSS 1", "JSS 3", elsewhere, "JSS 2 A"]
    rows = [[*person, name] for person, name in zip(people(5), names, strict=True)]

    answer = upload(api, workbook([CLASSES, *rows]))

    assert row_errors(answer) == [(row, "class", "unknown") for row in (2, 3, 4, 5)]
    assert answer.get_json()["errors"]["rows"][0]["message"] == (
        'D2: "JSS 9" is no class, or not one alone for Ada1 Obi (IM/00001): '
        "write one of JSS 1 A, JSS 1 Gold, JSS 2 A"
    )
    assert listed(api) == []


def test_a_class_that_differs_from_another_in_case_alone_is_named_by_its_id(api, make, cohort):
    other = make.batch({"id": cohort["second"]}, name="a")["id"]
    names = ["JSS 2 a", other]
    rows = [[*person, name] for person, name in zip(people(2), names, strict=True)]

    assert row_errors(upload(api, workbook([CLASSES, *rows]))) == [(2, "class", "unknown")]
    assert api.ok(upload(api, workbook([CLASSES, rows[1]])))["enrolled"] == 1
    assert batches(api) == {rows[1][2]: other}


def test_enrolling_needs_its_permission_too(make, cohort):
    content = workbook([CLASSES, [*people(1)[0], "JSS 2"]])
    without = workbook([CLASSES, [*people(1)[0], None]])
    clerk = make.caller("write:students")

    answer = upload(clerk, content)

    assert (answer.status_code, "write:cohorts" in answer.get_json()["message"]) == (403, True)
    assert listed(make.api) == []
    assert clerk.ok(upload(clerk, without)) == created(1)
    both = make.caller("write:students", "write:cohorts")
    assert both.ok(upload(both, workbook([CLASSES, [*people(2)[1], "JSS 2"]])))["enrolled"] == 1


def test_a_dry_run_enrolls_nobody(api, cohort):
    content = workbook([CLASSES, [*people(1)[0], "JSS 2"]])

    assert api.ok(upload(api, content, "?dry_run=true")) == created(1) | {"enrolled": 1}
    assert listed(api) == []


def test_classes_cost_the_same_statements_however_many(api, cohort, messages):
    sent = {}
    for size in (2, 60):
        rows = [
            [*person, ("JSS 1 A", "JSS 1 Gold", "JSS 2")[number % 3]]
            for number, person in enumerate(people(size, prefix=f"S{size}"))
        ]
        with messages() as sent[size]:
            api.ok(upload(api, workbook([CLASSES, *rows])))

    assert len(sent[2]) == len(sent[60]) <= 14, sent[60]


@pytest.mark.parametrize("path", ["/batches/{gold}", "/cohorts/{second}"])
def test_a_class_that_is_deleted_meanwhile_enrolls_nobody(committing, monkeypatch, path):
    api, lock = committing.api, sheet_of_students.lock_cohorts
    session = committing.session(current=True)
    cohort = committing.cohort(committing.classroom(name="JSS 1"), session)
    gold = committing.batch(cohort, name="Gold")["id"]
    second = committing.cohort(committing.classroom(name="JSS 2"), session)["id"]

    def lock_late(**cohorts):
        # As another request: by a thread of its own.
        with ThreadPoolExecutor(1) as threads:
            api.ok(threads.submit(api.using().delete, path.format(gold=gold, second=second)).result())
        lock(**cohorts)

    monkeypatch.setattr(sheet_of_students, "lock_cohorts", lock_late)
    names = ["JSS 1 A", "JSS 1 Gold" if "gold" in path else "JSS 2"]
    rows = [[*person, name] for person, name in zip(people(2), names, strict=True)]

    answer = upload(api, workbook([CLASSES, *rows]))

    assert row_errors(answer) == [(3, "class", "unknown")]
    assert listed(api) == []


@pytest.mark.parametrize("day", [date(1899, 12, 31), now().date() + timedelta(days=1), date(2912, 5, 31)])
def test_nobody_was_born_before_1900_or_tomorrow(api, make, day):
    content = workbook([[*LEAST, "dob"], ["Ada", "Obi", "QC/1", day.isoformat()]])
    body = {"first_name": "Ada", "last_name": "Obi", "admission_number": "QC/1", "dob": day.isoformat()}

    answer = upload(api, content)

    assert row_errors(answer) == [(2, "dob", "invalid")]
    reason = "is before 1900" if day.year < 1900 else "is in the future"
    assert answer.get_json()["errors"]["rows"][0]["message"] == (
        f'D2: "{day.isoformat()}" is not accepted for Ada Obi (QC/1): {reason}'
    )
    assert list(api.post("/students", body).get_json()["errors"]["json"]) == ["dob"]
    changed = api.patch(f"/students/{make.student()['id']}", {"dob": day.isoformat()})
    assert list(changed.get_json()["errors"]["json"]) == ["dob"]


@pytest.mark.parametrize("day", [date(1900, 1, 1), now().date()])
def test_the_first_and_the_last_day_will_do(api, day):
    api.ok(upload(api, workbook([[*LEAST, "dob"], ["Ada", "Obi", "QC/1", day.isoformat()]])))

    assert listed(api)[0]["dob"] == day.isoformat()


def test_admission_numbers_that_differ_in_case_alone_are_the_same(api, make):
    make.student(admission_number="FUT/9", username="someone")
    columns = [*LEAST, "username"]
    rows = [["Ada", "Obi", "FUT/1", "a"], ["Bisi", "Obi", "fut/1", "b"], ["Chi", "Obi", "fut/9", "c"]]

    answer = upload(api, workbook([columns, *rows]))

    assert row_errors(answer) == [(3, "admission_number", "duplicate"), (4, "admission_number", "taken")]
    assert [error["message"] for error in answer.get_json()["errors"]["rows"]] == [
        'C3: "fut/1" is in row 2 too for Bisi Obi (fut/1)',
        'C4: "fut/9" is the number of a student who exists already, written FUT/9 for Chi Obi (fut/9)',
    ]


def test_genders_are_stored_as_listed_and_that_is_told(api):
    written = ["F", "female", " f. ", "MALE", "m", "F", None]
    rows = [[*person, gender] for person, gender in zip(people(7), written, strict=True)]

    answer = api.ok(upload(api, workbook([[*LEAST, "gender"], *rows])))

    told = {
        (replacement["value"], replacement["stored"], replacement["rows"])
        for replacement in answer["replaced_values"]
    }
    assert told == {("F", "FEMALE", 2), ("female", "FEMALE", 1), ("f.", "FEMALE", 1), ("m", "MALE", 1)}
    genders = {student["admission_number"]: student["gender"] for student in listed(api)}
    assert list(map(genders.get, (number for _, _, number in people(7)))) == [
        *["FEMALE"] * 3, "MALE", "MALE", "FEMALE", None,
    ]  # fmt: skip


def test_a_gender_that_is_not_listed_is_refused(api):
    answer = upload(api, workbook([[*LEAST, "gender"], ["Ada", "Obi", "QC/1", "x"]]))

    assert row_errors(answer) == [(2, "gender", "invalid")]
    assert answer.get_json()["errors"]["rows"][0]["message"].endswith(": write FEMALE or MALE")


def test_a_password_is_in_no_message(api):
    answer = upload(api, workbook([[*LEAST, "password"], ["Ada", "Obi", "QC/1", "secret" * 200]]))

    assert "secret" not in answer.get_data(as_text=True)
    assert row_errors(answer) == [(2, "password", "invalid")]


def test_a_csv_file_is_imported(api):
    content = "First name;Last name;Admission number;DOB\nNgọzi;Eze;QC/1;2013-05-31\n".encode("utf-8-sig")

    assert api.ok(upload(api, content)) == created(1)
    assert (listed(api)[0]["first_name"], listed(api)[0]["dob"]) == ("Ngọzi", "2013-05-31")


def test_the_other_schools_classes_are_its_own(cohort, other_api):
    answer = upload(other_api, workbook([CLASSES, [*people(1)[0], cohort["gold"]]]))

    assert row_errors(answer) == [(2, "class", "unknown")]
    assert listed(other_api) == []
    assert other_api.ok(upload(other_api, sheet(*people(1)))) == created(1)
