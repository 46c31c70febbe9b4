"""The metric sheet of a batch, to be filled in."""

from __future__ import annotations

from io import BytesIO
from uuid import uuid4

import pytest
from openpyxl import load_workbook
from openpyxl.utils import get_column_letter

from tests.factories import UNKNOWN_ID
from tests.features.observations.metrics.sheets import AFFECTIVE, PSYCHOMOTOR, STUDENT, TRAITS, Observed
from tests.features.scores.scoresheets.sheets import DOWNLOADED, counts, opened, without_times
from tests.prepared import prepared_for_each
from tests.sheets.workbooks import saved

NAMES = ("=1+1", "=cmd|' /C calc'!A0", "+2", "-3", "@SUM(A1)", "Ọlá\u0301délé", "\t=cmd", "1e5", "007")


def three_seen(make):
    """Three students, the first with two scores."""
    class_ = Observed(make, 0)
    people = [("Ada", "Eze", "Q/1"), ("Bola", "Àdé", "Q/2"), ("Chi", "Eze", "Q/3")]
    made = [make.student(first_name=f, last_name=n, admission_number=a) for f, n, a in people]
    make.enrolled(class_.cohort, *made)
    counts(class_.send({"Q/1": {"handwriting": 5, "painting": 2}}))
    return class_


original, class_ = prepared_for_each(three_seen)


def rows(sheet):
    return [tuple(cell.value for cell in row) for row in sheet.iter_rows()]


def test_a_sheet_has_a_row_for_everyone_with_stored_scores(class_):
    shown = rows(class_.workbook()["Metrics"])

    assert shown[0] == (*STUDENT, *TRAITS)
    blank = (None,) * len(TRAITS)
    assert sorted(shown[1:]) == [
        ("Q/1", "Ada", "Eze", 5, None, None, 2, None, None, None, None),
        ("Q/2", "Bola", "Àdé", *blank),
        ("Q/3", "Chi", "Eze", *blank),
    ]


def test_each_term_and_type_has_its_own(make, class_):
    make.term({"id": class_.cohort["session"]}, term="SECOND")
    affective = class_.workbook(metric_type=AFFECTIVE)["Metrics"]
    second = class_.workbook(term="SECOND")["Metrics"]

    assert [cell.value for cell in affective[1]][3:5] == ["punctuality", "neatness"]
    assert len(affective[1]) == 3 + 10
    for sheet in (affective, second):
        assert {cell.value for row in sheet.iter_rows(min_row=2, min_col=4) for cell in row} == {None}


def test_a_new_trait_has_the_last_column(api, class_):
    api.ok(api.post("/metric-definitions", {"name": "sewing", "metric_type": PSYCHOMOTOR}))

    assert [cell.value for cell in class_.workbook()["Metrics"][1]][-2:] == ["handling tools", "sewing"]


def test_only_scores_can_be_typed_and_only_from_1_to_5(class_):
    sheet = class_.workbook()["Metrics"]

    assert sheet.protection.sheet
    assert sheet.protection.password is None
    for row in sheet.iter_rows(min_row=2):
        assert [cell.protection.locked for cell in row] == [True] * 3 + [False] * len(TRAITS)
    rules = sheet.data_validations.dataValidation
    assert {str(rule.sqref) for rule in rules} == {
        f"{letter}2:{letter}4" for letter in map(get_column_letter, range(4, 4 + len(TRAITS)))
    }
    for rule in rules:
        assert (rule.type, rule.operator, rule.formula1, rule.formula2) == ("whole", "between", "1", "5")
        assert (rule.showErrorMessage, rule.allow_blank) == (True, True)


def test_header_and_names_are_frozen_and_columns_are_wide_enough(class_):
    sheet = class_.workbook()["Metrics"]

    assert sheet.freeze_panes == "D2"
    for column in sheet.iter_cols():
        width = sheet.column_dimensions[column[0].column_letter].width
        assert width > max(len(str(cell.value)) for cell in column)


@pytest.mark.parametrize("arm", [False, True])
def test_the_details_name_class_term_and_type(api, make, class_, place, arm):
    batch = make.batch(class_.cohort) if arm else {"id": class_.batch, "name": "A"}
    session = api.ok(api.get(f"/sessions/{class_.cohort['session']}"))

    assert without_times(class_.workbook(batchId=batch["id"])["Details"]) == [
        ("School", place.name),
        ("Class", f"{class_.cohort['classroom']} {batch['name']}"),
        ("Batch", batch["name"]),
        ("Session", session["name"]),
        ("Term", "FIRST"),
        ("Term name", "First term"),
        ("Metric type", PSYCHOMOTOR),
        ("Scores", "5 (excellent) to 1 (poor)"),
        ("Batch ID", batch["id"]),
        ("Term ID", class_.term["id"]),
        *DOWNLOADED,
    ]


def test_a_sheet_has_the_students_now_in_the_batch_alone(api, make, class_):
    arm = make.batch(class_.cohort)["id"]
    make.enrolled(class_.cohort, make.student(admission_number="Q/4"), batch=arm)
    left = {"student_ids": [record["id"] for record in api.ok(api.get("/students?search=Q/1"))["data"]]}
    api.ok(api.patch(f"/cohorts/{class_.cohort['id']}/remove_students", left))

    assert sorted(row[0] for row in rows(class_.workbook()["Metrics"])[1:]) == ["Q/2", "Q/3"]
    assert [row[0] for row in rows(class_.workbook(batchId=arm)["Metrics"])[1:]] == ["Q/4"]


def test_a_sheet_has_the_order_of_the_list_of_students(api, class_):
    listed = api.ok(api.get(f"/students?batch={class_.batch}"))["data"]

    shown = rows(class_.workbook()["Metrics"])[1:]
    assert [row[0] for row in shown] == [student["admission_number"] for student in listed]


def test_scores_of_the_term_come_along_to_another_arm(api, make, class_):
    arm = make.batch(class_.cohort)["id"]
    (moving,) = api.ok(api.get("/students?search=Q/1"))["data"]
    make.enrolled(class_.cohort, moving, batch=arm)

    assert rows(class_.workbook(batchId=arm)["Metrics"])[1][3] == 5


def test_a_batch_without_students_has_a_sheet_too(make):
    assert len(rows(Observed(make, 0).workbook()["Metrics"])) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_text_with_any_beginning_stays_a_text(api, make, name):
    class_ = Observed(make, 0)
    make.enrolled(class_.cohort, make.student(first_name=name, last_name=name, admission_number=name))
    api.ok(api.post("/metric-definitions", {"name": name, "metric_type": PSYCHOMOTOR}))
    workbook = class_.workbook()

    sheet = workbook["Metrics"]
    cells = [*sheet[2][:3], sheet[1][-1]]
    assert [cell.value for cell in cells] == [name.strip()] * 4
    assert {cell.data_type for cell in cells} == {"s"}


def test_a_trait_may_have_any_name(api, make):
    names = ("sheet", "scores", "metric_id", "x" * 120, "_x0001_", "_x0041_", "😀" * 60)
    class_ = Observed(make)
    counts(class_.send({"A/1": {"painting": 3}}))
    for name in names:
        api.ok(api.post("/metric-definitions", {"name": name, "metric_type": PSYCHOMOTOR}))

    answer = class_.download()
    workbook = opened(answer)
    sheet = workbook["Metrics"]
    for column in range(sheet.max_column - len(names) + 1, sheet.max_column + 1):
        assert sheet.cell(2, column).value is None
        sheet.cell(2, column).value = 4

    # To Excel a workbook is broken in which the title of a message has more than 32 characters.
    assert all(len(rule.errorTitle) <= 32 for rule in sheet.data_validations.dataValidation)
    assert counts(class_.upload(answer.data)) == (3, 0, 0, 1, 2)
    assert counts(class_.upload(saved(workbook))) == (3, 0, 1, 0, 2)
    assert class_.scores() == {"A/1": {"painting": 3, **dict.fromkeys(names, 4)}}


def test_the_file_is_named_by_class_term_session_and_type(other_api, make_other):
    cohort = make_other.cohort(make_other.classroom(name="JSS 1"), make_other.session(name="2044/2045"))
    make_other.term({"id": cohort["session"]}, display_name="Ìdánwò")
    query = {"batchId": cohort["id"], "term": "FIRST", "metric_type": AFFECTIVE}

    answer = other_api.get("/metrics/download-sheet", query_string=query)

    assert answer.headers["Content-Disposition"] == (
        'attachment; filename="JSS 1 A Idanwo 2044-2045 affective.xlsx"; '
        "filename*=UTF-8''JSS%201%20A%20%C3%8Cd%C3%A1nw%C3%B2%202044-2045%20affective.xlsx"
    )
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_a_download_costs_a_fixed_number_of_statements(make, messages):
    class_ = Observed(make, 0)
    costs = []
    for size in (1, 40):
        made = [make.student() for _ in range(size)]
        make.enrolled(class_.cohort, *made)
        counts(class_.send({student["admission_number"]: dict.fromkeys(TRAITS, 3) for student in made}))
        with messages() as sent:
            class_.workbook()
        costs.append(len(sent))

    # Begin, the batch, the term, the traits, the class list, the end.
    assert costs == [6, 6]


# Refusals


@pytest.mark.parametrize(
    "query",
    [
        {"batchId": None},
        {"batchId": "1"},
        {"term": None},
        {"term": " "},
        {"term": "x" * 121},
        {"metric_type": None},
        {"metric_type": "affective"},
        {"metric_type": "COGNITIVE"},
    ],
)
def test_wrong_input_is_refused(class_, query):
    answer = class_.download(**query)

    assert answer.status_code == 422
    assert list(answer.get_json()["errors"]["query"]) == list(query)


def test_an_unknown_batch_is_named(class_, make_other):
    for unknown in (uuid4(), make_other.cohort()["id"]):
        answer = class_.download(batchId=unknown)

        assert answer.status_code == 422
        assert answer.get_json()["errors"]["query"] == {"batchId": ["no such batch"]}


def test_the_term_may_be_named_or_be_an_id(make, class_):
    for term in ("FIRST", class_.term["id"], class_.term["id"].upper()):
        assert ("Term ID", class_.term["id"]) in rows(class_.workbook(term=term)["Details"])


@pytest.mark.parametrize("term", ["SECOND", "first", "First term", "1", UNKNOWN_ID])
def test_an_unknown_term_is_named(class_, term):
    answer = class_.download(term=term)

    assert answer.status_code == 422
    assert answer.get_json()["errors"]["query"] == {"term": ["no such term"]}


def test_a_term_of_another_session_is_refused(make, make_other, class_):
    answer = class_.download(term=make.term(term="SECOND")["id"])

    assert answer.status_code == 422
    assert answer.get_json()["errors"]["query"] == {"term": ["is not of the batch's session"]}
    assert class_.download(term="SECOND").status_code == 422
    foreign = class_.download(term=make_other.term()["id"])
    assert foreign.get_json()["errors"]["query"] == {"term": ["no such term"]}


def test_the_other_school_has_its_own(api, other_api, class_, make_other):
    theirs = Observed(make_other)

    assert class_.download(other_api).status_code == 422
    assert class_.download(other_api.using(school=api.school)).status_code == 403
    assert class_.download(api.using(school=None)).status_code == 400
    assert theirs.download(api).status_code == 422
    assert len(rows(theirs.workbook()["Metrics"])) == 1 + 3


def test_names_stand_in_the_order_of_the_papers(other_api, make_other):
    cohort = make_other.cohort()
    make_other.term({"id": cohort["session"]})
    make_other.enrolled(cohort, make_other.student(first_name="Ada", last_name="Eze"))
    other_api.ok(other_api.patch("/result-settings", {"name_order": "SURNAME_FIRST"}))
    queries = {
        "/metrics/download-sheet": {"batchId": cohort["id"], "term": "FIRST", "metric_type": AFFECTIVE},
        "/comments/download-sheet": {"batch": cohort["id"], "term": "FIRST"},
        "/students/update-sheet": {"batch": cohort["id"]},
    }

    for path, query in queries.items():
        answer = other_api.get(path, query_string=query)
        assert answer.status_code == 200, (path, answer.get_data(as_text=True))
        header, row, *_ = load_workbook(BytesIO(answer.data)).worksheets[0].iter_rows(values_only=True)
        names = [header.index(name) for name in ("last_name", "first_name")]
        assert names == sorted(names)
        assert [row[place] for place in names] == ["Eze", "Ada"]
