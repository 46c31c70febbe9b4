"""Uploading a filled-in metric sheet."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from itertools import zip_longest
from uuid import uuid4

import pytest
from openpyxl import Workbook

from school_service.app import create_app
from school_service.sheets.uploads import NO_ROWS
from tests.client import ApiClient, Document
from tests.features.observations.metrics.sheets import (
    AFFECTIVE,
    PSYCHOMOTOR,
    STUDENT,
    TRAITS,
    Observed,
    by_sheet,
    fill,
)
from tests.features.scores.scoresheets.sheets import bad_rows, counts, sheet_of
from tests.naming import name_with_number
from tests.prepared import prepared_for_each
from tests.sheets.workbooks import NO_NUMBERS, NO_WORKBOOKS, saved
from tests.threads import run_concurrently

MOMENT = datetime(1900, 1, 20, 12)


original, class_ = prepared_for_each(Observed)


NOT_THERE = ((5, "C/1"), (6, "B/1"), (7, "A/3"))


def wrong(answer):
    """The reason of a refused upload, apart from rows."""
    assert answer.status_code == 422, answer.get_data(as_text=True)
    return answer.get_json()["message"]


# Changes by an upload


def test_a_downloaded_sheet_is_filled_in_and_sent_back(class_):
    content = fill(class_.workbook(), {"A/1": {"painting": 5, "flexibility": 1}, "A/3": {"painting": 3}})

    assert counts(class_.upload(content)) == (3, 2, 0, 0, 1)
    assert class_.scores() == {"A/1": {"painting": 5, "flexibility": 1}, "A/3": {"painting": 3}}


def test_the_other_type_goes_the_same_way(make_other):
    class_ = Observed(make_other, metric_type=AFFECTIVE)
    content = fill(class_.workbook(), {"A/1": {"relationship with others": 4}})

    assert counts(class_.upload(content)) == (3, 1, 0, 0, 2)
    assert class_.scores() == {"A/1": {"relationship with others": 4}}


def test_rows_are_counted_by_the_outcome_of_their_records(class_):
    counts(class_.send({"A/1": {"painting": 3}, "A/2": {"painting": 3, "flexibility": 2}}))

    rows = {
        "A/1": {"painting": 3, "flexibility": 4},
        "A/2": {"painting": 3},
        "A/3": {"painting": 3},
    }
    assert counts(class_.send(rows)) == (3, 1, 1, 1, 0)
    assert counts(class_.send({**rows, "A/2": {}, "A/3": {"painting": 4}})) == (3, 0, 1, 1, 1)
    assert class_.scores() == {
        "A/1": {"painting": 3, "flexibility": 4},
        "A/2": {"painting": 3, "flexibility": 2},
        "A/3": {"painting": 4},
    }


def test_the_same_again_changes_nothing_and_logs_nothing(class_):
    content = class_.sheet({"A/1": {"painting": 3}, "A/2": dict.fromkeys(TRAITS, 5), "A/3": {}})
    assert counts(class_.upload(content)) == (3, 2, 0, 0, 1)
    before = class_.records(), class_.log()

    assert counts(class_.upload(content, "again.xlsx")) == (3, 0, 0, 2, 1)

    assert (class_.records(), class_.log()) == before


def test_every_change_is_in_the_audit_log_with_the_files_name(class_):
    counts(class_.send({"A/1": {"painting": 3}}, name="first.xlsx"))
    counts(class_.send({"A/1": {"painting": 4, "flexibility": 1}, "A/2": {}}, name="Ìkejì.xlsx"))
    counts(class_.send({"A/1": {"flexibility": 2}}, name="../third.xlsx"))

    second, third = {"painting": 4, "flexibility": 1}, {"painting": 4, "flexibility": 2}
    assert class_.log() == [
        ("update", by_sheet(second, "Ìkejì.xlsx"), by_sheet(third, "-third.xlsx")),
        ("update", by_sheet({"painting": 3}, "first.xlsx"), by_sheet(second, "Ìkejì.xlsx")),
        ("create", None, by_sheet({"painting": 3}, "first.xlsx")),
    ]
    (record,) = class_.records()
    log = class_.api.ok(class_.api.get(f"/audit?id={record['id']}"))
    assert log["total"] == 3


def test_columns_may_come_in_any_order_and_case(class_):
    header = (" Painting", *TRAITS[4:], "Admission_Number ", None, "HANDWRITING", *TRAITS[1:3])

    row = (4, None, None, None, None, "A/1", "a note", "5", None, None)
    assert counts(class_.upload(class_.sheet_of(row, header=header))) == (1, 1, 0, 0, 0)
    assert class_.scores() == {"A/1": {"handwriting": 5, "painting": 4}}


def test_names_are_not_looked_at(class_):
    rows = [
        ("A/1", date(2025, 1, 1), None, 1, *[None] * 7),
        ("A/2", "#N/A", True, 2, *[None] * 7),
        ("A/3", "=1/0", "Somebody else", 3, *[None] * 7),
    ]

    assert counts(class_.upload(class_.sheet_of(*rows))) == (3, 3, 0, 0, 0)


def test_empty_rows_do_not_count(class_):
    empty = ((), (None, " ", None, "  "), ("",) * 11)

    content = class_.sheet_of(*empty, ("A/1", None, None, 1), *empty, ("A/2", None, None, 2))
    assert counts(class_.upload(content)) == (2, 2, 0, 0, 0)


def test_a_sheet_without_rows_is_refused(class_):
    assert wrong(class_.send({})) == NO_ROWS


def test_admission_numbers_that_look_like_numbers_are_texts(make, class_):
    make.enrolled(class_.cohort, make.student(admission_number="2019"), make.student(admission_number="007"))

    content = class_.sheet_of((2019, None, None, 1), (" 007 ", None, None, 2))
    assert counts(class_.upload(content)) == (2, 2, 0, 0, 0)
    assert bad_rows(class_.upload(class_.sheet_of((7, None, None, 1)))) == [
        (2, "admission_number", "unknown")
    ]


# The batch


def test_an_arm_may_be_named_by_its_number(api, make, class_):
    arm = make.batch(class_.cohort)
    make.enrolled(class_.cohort, make.student(admission_number="B/1"), batch=arm["id"])
    (first,) = (
        batch for batch in api.ok(api.get(f"/cohorts/{class_.batch}/batches")) if batch["name"] == "A"
    )

    content = class_.sheet({"B/1": {"painting": 4}}, class_.details(batch=arm["id"]))
    assert counts(class_.upload(content, batch=arm["number"])) == (1, 1, 0, 0, 0)
    assert counts(class_.upload(content, batch=f"0{arm['number']}")) == (1, 0, 0, 1, 0)
    assert counts(class_.upload(content, batch=arm["id"].upper())) == (1, 0, 0, 1, 0)
    assert "another batch" in wrong(class_.upload(content, batch=first["number"]))


@pytest.mark.parametrize(
    "batch", [None, "", "0", "-1", "1.0", "1e1", "A", "2147483648", "9" * 30, "{}", " 1"]
)
def test_anything_else_is_no_batch(class_, batch):
    answer = class_.upload(class_.sheet({"A/1": {"painting": 4}}), batch=batch)

    assert answer.status_code == 422
    assert list(answer.get_json()["errors"]["query"]) == ["batchId"]


def test_an_unknown_batch_is_named(make_other, class_):
    content = class_.sheet({"A/1": {"painting": 4}})

    for unknown in (uuid4(), 2147483647, make_other.cohort()["id"]):
        answer = class_.upload(content, batch=unknown)

        assert answer.status_code == 422
        assert answer.get_json()["errors"]["query"] == {"batchId": ["no such batch"]}
    assert class_.records() == []


# The details


def test_the_sheet_of_another_batch_is_refused(make, class_):
    arm = make.batch(class_.cohort, name="Gold")
    make.enrolled(class_.cohort, make.student(admission_number="B/1"), batch=arm["id"])
    content = fill(class_.workbook(batchId=arm["id"]), {"B/1": {"painting": 4}})

    message = wrong(class_.upload(content))
    assert message.startswith(f"The sheet is that of another batch: {class_.cohort['classroom']} Gold (")
    assert message.endswith(", First term).")
    assert counts(class_.upload(content, batch=arm["id"])) == (1, 1, 0, 0, 0)


def test_a_sheet_without_details_is_refused(class_):
    alone = sheet_of(("A/1", None, None, 4), header=(*STUDENT, *TRAITS), title="Metrics")

    assert wrong(class_.upload(alone)) == (
        "The sheet Details lacks Batch ID: download the sheet, and fill that one in."
    )


@pytest.mark.parametrize(
    ("other", "label"), [("batch", "Batch ID"), ("term", "Term ID"), ("metric", "Metric type")]
)
def test_details_have_to_say_all_of_it(class_, other, label):
    for missing in (None, " "):
        content = class_.sheet({"A/1": {"painting": 4}}, class_.details(**{other: missing}))
        assert f"lacks {label}:" in wrong(class_.upload(content))
    assert class_.records() == []


def test_details_are_compared_without_case(class_):
    details = [
        (" batch id ", class_.batch.upper()),
        ("TERM ID", f" {class_.term['id'].upper()} "),
        ("metric TYPE", "psychomotor"),
    ]

    assert counts(class_.upload(class_.sheet({"A/1": {"painting": 4}}, details))) == (1, 1, 0, 0, 0)


@pytest.mark.parametrize("batch", ["id", "number"])
def test_details_may_name_batch_and_term_without_their_ids(api, class_, batch):
    first = api.ok(api.get(f"/cohorts/{class_.cohort['id']}/batches"))[0]
    named = [("batch", first[batch]), ("term", "FIRST"), ("metric_type", PSYCHOMOTOR)]
    other = [("batch", first["number"] + 1), *named[1:]]

    assert "another batch" in wrong(class_.upload(class_.sheet({"A/1": {"painting": 4}}, other)))
    assert counts(class_.upload(class_.sheet({"A/1": {"painting": 4}}, named))) == (1, 1, 0, 0, 0)


def test_the_term_decides_where_the_scores_go(make, class_):
    second = make.term({"id": class_.cohort["session"]}, term="SECOND")
    counts(class_.send({"A/1": {"painting": 4}}))
    counts(class_.upload(class_.sheet({"A/1": {"painting": 2}}, class_.details(term=second["id"]))))

    assert [(record["term"], record["metric_scores"]) for record in class_.records()] == [
        ("FIRST", {"painting": 4}),
        ("SECOND", {"painting": 2}),
    ]


def test_an_unknown_term_is_refused(make, make_other, class_):
    for term in (uuid4(), make_other.term()["id"], "FOURTH", "x" * 1000):
        content = class_.sheet({"A/1": {"painting": 4}}, class_.details(term=str(term)))
        assert wrong(class_.upload(content)) == "Term on the sheet Details: no such term."
    other = class_.sheet({"A/1": {"painting": 4}}, class_.details(term=make.term()["id"]))
    assert wrong(class_.upload(other)) == "Term on the sheet Details: is not of the batch's session."


def test_an_unknown_metric_type_is_refused(class_):
    content = class_.sheet({"A/1": {"painting": 4}}, class_.details(metric="COGNITIVE"))

    assert wrong(class_.upload(content)) == (
        "Metric type on the sheet Details: is none of PSYCHOMOTOR and AFFECTIVE."
    )


# Columns


@pytest.mark.parametrize(
    ("change", "errors"),
    [
        (lambda header: header[1:], [("admission_number", "required")]),
        (lambda header: header[:-1], [("handling tools", "required")]),
        (lambda header: [], [(name, "required") for name in ("admission_number", *TRAITS)]),
        (lambda header: [*header, "Painting "], [("painting", "duplicate")]),
        (lambda header: [*header, "admission_number"], [("admission_number", "duplicate")]),
        (lambda header: [*header, "first_name"], [("first_name", "duplicate")]),
        (lambda header: [*header, "punctuality"], [("punctuality", "unknown")]),
        (lambda header: [*header, "Remarks", 2025], [("Remarks", "unknown"), ("2025", "unknown")]),
        (lambda header: [*header, "x" * 5000], [("x" * 60, "unknown")]),
        (
            lambda header: [*header[:-1], "Honesty"],
            [("Honesty", "unknown"), ("handling tools", "required")],
        ),
    ],
)
def test_a_column_too_many_missing_or_there_twice_is_refused(class_, change, errors):
    header = change([*STUDENT, *TRAITS])

    answer = class_.upload(class_.sheet_of(("A/1", "Ada", "Eze", 4), header=header or [None]))

    row = 1 if header else 2
    assert bad_rows(answer)[-len(errors) :] == [(row, *error) for error in errors]
    assert class_.records() == []


def test_a_trait_of_the_other_type_is_distinguished_from_none_at_all(class_):
    answer = class_.upload(class_.sheet_of(header=(*STUDENT, *TRAITS, "punctuality", "remarks")))

    messages = [bad["message"] for bad in answer.get_json()["errors"]["rows"]]
    assert messages == [
        "L1: punctuality is AFFECTIVE, and has a sheet of that type",
        "M1: there is no trait remarks",
    ]


def test_a_sheet_downloaded_before_a_trait_was_added_lacks_its_column(api, class_):
    content = fill(class_.workbook(), {"A/1": {"painting": 4}})
    api.ok(api.post("/metric-definitions", {"name": "sewing", "metric_type": "PSYCHOMOTOR"}))

    assert bad_rows(class_.upload(content)) == [(1, "sewing", "required")]


def test_at_most_200_unknown_columns_are_reported(class_):
    header = (*STUDENT, *TRAITS, *(f"column {number}" for number in range(300)))

    assert len(bad_rows(class_.upload(class_.sheet_of(header=header)))) == 200


# Scores


@pytest.mark.parametrize(
    ("cell", "score"),
    [(1, 1), (5, 5), (3.0, 3), ("4", 4), (" 2 ", 2), ("4.0", 4), (Decimal("5.00"), 5), (0.1 * 30, 3)],
)
def test_a_whole_number_is_a_score(class_, cell, score):
    counts(class_.send({"A/1": {"painting": cell}}))

    assert class_.scores() == {"A/1": {"painting": score}}


def test_anything_else_is_not(class_):
    cells = [0, 6, -1, 3.5, "3.5", 4.0000001, 1e300, -1e300, *NO_NUMBERS]
    for first, second in zip_longest(cells[::2], cells[1::2], fillvalue=0):
        answer = class_.send(
            {"A/1": {"painting": first, "flexibility": 3}, "A/2": {"painting": 1, "flexibility": second}}
        )

        assert bad_rows(answer) == [(2, "painting", "invalid"), (3, "flexibility", "invalid")], (
            first,
            second,
        )
    assert class_.records() == []


# Rows


def test_every_bad_row_is_reported_and_nothing_is_stored(api, make, class_):
    elsewhere, of_arm = make.student(admission_number="C/1"), make.student(admission_number="B/1")
    arm = make.batch(class_.cohort)["id"]
    make.enrolled(class_.cohort, of_arm, batch=arm)
    left = {"student_ids": [class_.students["A/3"]]}
    api.ok(api.patch(f"/cohorts/{class_.batch}/remove_students", left))
    sent = [
        ("A/1", None, None, 1, 2),
        ("A/1", None, None, 2),
        ("X/9", None, None, 3),
        ("C/1", None, None, 3),
        ("B/1", None, None, 3),
        ("A/3", None, None, 3),
        (),
        (None, None, None, 4),
        ("A/2", None, None, 0, 6, 3.5),
        ("X/8", None, None, "x"),
        (MOMENT, None, None, 1),
    ]

    answer = class_.upload(class_.sheet_of(*sent))

    assert bad_rows(answer) == [
        (3, "admission_number", "duplicate"),
        (4, "admission_number", "unknown"),
        (5, "admission_number", "invalid"),
        (6, "admission_number", "invalid"),
        (7, "admission_number", "invalid"),
        (9, "admission_number", "required"),
        (10, "handwriting", "invalid"),
        (10, "games and sports", "invalid"),
        (10, "drawing and arts", "invalid"),
        (11, "handwriting", "invalid"),
        (11, "admission_number", "unknown"),
        (12, "admission_number", "invalid"),
    ]
    messages = [bad["message"] for bad in answer.get_json()["errors"]["rows"]]
    names = [
        name_with_number(api, student).partition(" (")[0]
        for student in (elsewhere["id"], of_arm["id"], class_.students["A/3"])
    ]
    not_there = [(*each, name) for each, name in zip(NOT_THERE, names, strict=True)]
    assert messages[:7] == [
        'A3: "A/1" is in row 2 already',
        'A4: "X/9" is no student\'s admission number',
        *(f'A{row}: "{number}" is {name}, who is not in the batch' for row, number, name in not_there),
        "A9: the admission number is missing",
        'D10: "0" is no score for Chidinma Bàlógun (A/2): write a whole number from 1, poor, to 5, excellent',
    ]
    assert (class_.records(), class_.log()) == ([], [])


def test_at_most_200_bad_rows_are_reported(class_):
    sent = ((f"X/{number}", None, None, 1) for number in range(300))

    assert len(bad_rows(class_.upload(class_.sheet_of(*sent)))) == 200


def test_rows_with_many_bad_cells_end_where_the_answer_has_no_room(class_):
    sent = [(f"X/{number}", None, None, *([9] * len(TRAITS))) for number in range(300)]

    answer = class_.upload(class_.sheet_of(*sent))

    errors = answer.get_json()["errors"]
    told = {row["row"] for row in errors["rows"]}
    assert 50_000 < len(answer.get_data()) <= 64 * 1024
    assert (told, errors["left_out"]) == ({*range(2, 2 + len(told))}, 300 - len(told))


def test_a_student_enrolled_meanwhile_is_matched(make, class_):
    workbook = class_.workbook()
    make.enrolled(class_.cohort, make.student(admission_number="A/4"))
    workbook["Metrics"].append(("A/4", None, None, 5))

    assert counts(class_.upload(saved(workbook))) == (4, 1, 0, 0, 3)


# Files that are no sheet


def test_a_workbook_without_the_sheet_is_refused(class_):
    made = Workbook()
    made.worksheets[0].title = "Traits"
    details = made.create_sheet("Details")
    for pair in class_.details():
        details.append(pair)

    assert wrong(class_.upload(saved(made))) == "The workbook has no sheet named Metrics."


@pytest.mark.parametrize("content", NO_WORKBOOKS)
def test_a_file_that_is_no_workbook_is_refused(class_, content):
    assert class_.upload(content).status_code == 422


def test_the_file_is_needed_in_a_form(class_):
    for form in ({}, {"metric_sheet": "text"}, {"sheet": "text"}):
        answer = class_.api.post(
            f"/metrics/upload-sheet?batchId={class_.batch}", data=form, content_type="multipart/form-data"
        )
        assert answer.status_code == 422
        assert "metric_sheet" in answer.get_json()["errors"]["files"]
    assert class_.api.post(f"/metrics/upload-sheet?batchId={class_.batch}", {}).status_code == 415


def test_a_file_over_the_limit_is_too_large(settings, committing):
    class_ = Observed(committing)
    app = create_app(replace(settings, max_upload_bytes=20_000))
    api = ApiClient(app, Document(app), committing.api.token, committing.api.school)
    content = class_.sheet({"A/1": {}})
    padded = {size: content + bytes(size - len(content)) for size in (20_000, 20_001, 90_000, 200_000)}

    answers = {size: class_.upload(padded[size], api=api).status_code for size in padded}

    assert answers == {20_000: 200, 20_001: 413, 90_000: 413, 200_000: 413}


# Many at once


@pytest.mark.parametrize("size", [2, 40])
def test_an_upload_costs_a_fixed_number_of_statements(make_other, messages, size):
    class_ = Observed(make_other, size)
    numbers = list(class_.students)
    costs = []
    for chosen, score in ((numbers[: size // 2], 1), (numbers, 2), (numbers, 3), (numbers, 3)):
        content = class_.sheet({number: dict.fromkeys(TRAITS, score) for number in chosen})
        with messages() as sent:
            counts(class_.upload(content))
        costs.append(len(sent))

    # Begin; the batch, the term, the traits, the cohort and the class list; records and scores; the log and the end.
    assert costs == [8, 8, 8, 7]


def test_uploads_at_once_end_as_one_after_the_other(committing):
    class_ = Observed(committing, 4)

    def send(turn):
        scores = dict.fromkeys(TRAITS[turn % 2 :], turn % 5 + 1)
        return counts(
            class_.send(dict.fromkeys(class_.students, scores), name=f"{turn}.xlsx", api=class_.api.using())
        )

    done = run_concurrently(5, send)

    assert sorted(done) == [(4, 0, 4, 0, 0)] * 4 + [(4, 4, 0, 0, 0)]
    log = class_.log()
    assert len(log) == 20
    assert list(class_.scores().values()) == [log[0][2]["score"]] * 4
    # Each change begins where the one before it ended.
    for older, newer in zip(log[4:], log[:-4], strict=True):
        assert newer[1] == older[2]


def test_an_upload_of_each_arm_while_students_move_between_them_loses_nothing(committing):
    class_ = Observed(committing, 6)
    arm = committing.batch(class_.cohort)["id"]
    path, batches = f"/cohorts/{class_.batch}/enrollment", (class_.batch, arm)
    moving = list(class_.students.values())

    def work(turn):
        api = class_.api.using()
        answers = []
        for step in range(3):
            batch = batches[(turn + step) % 2]
            if turn < 2:
                answers.append(api.post(path, {"students": moving, "batch": batch}).status_code)
                continue
            scores = dict.fromkeys(TRAITS, turn)
            content = class_.sheet(dict.fromkeys(class_.students, scores), class_.details(batch=batch))
            answers.append(class_.upload(content, batch=batch, api=api).status_code)
        return answers

    answers = run_concurrently(5, work)

    assert answers[:2] == [[200] * 3] * 2
    # Refused where the students are in the other arm, and never for any other reason.
    assert {status for statuses in answers[2:] for status in statuses} <= {200, 422}
    uploads = sum(statuses.count(200) for statuses in answers[2:])
    records = [*class_.records(), *class_.records(arm)]
    assert len(records) == (6 if uploads else 0)
    log = class_.log()
    for older, newer in zip(log[6:], log[:-6], strict=True):
        assert newer[1] == older[2]


# The other school


def test_the_other_school_has_its_own(api, other_api, make_other, class_):
    theirs = Observed(make_other)
    content = class_.sheet({"A/1": {"painting": 4}})

    assert class_.upload(content, api=other_api).status_code == 422
    assert class_.upload(content, api=other_api.using(school=api.school)).status_code == 403
    assert class_.upload(content, api=api.using(school=None)).status_code == 400
    assert "another batch" in wrong(theirs.upload(content))
    # The same admission numbers are other students.
    assert counts(theirs.send({"A/1": {"painting": 2}})) == (1, 1, 0, 0, 0)
    assert (theirs.scores(), class_.scores()) == ({"A/1": {"painting": 2}}, {})


def test_ids_of_the_other_school_on_the_sheet_are_unknown(make_other, class_):
    theirs = Observed(make_other, 0)
    make_other.enrolled(theirs.cohort, make_other.student(admission_number="Z/1"))

    scores = {"painting": 4}
    assert "another batch" in wrong(
        class_.upload(class_.sheet({"A/1": scores}, class_.details(batch=theirs.batch)))
    )
    assert "no such term" in wrong(
        class_.upload(class_.sheet({"A/1": scores}, class_.details(term=theirs.term["id"])))
    )
    assert bad_rows(class_.send({"Z/1": scores})) == [(2, "admission_number", "unknown")]


def test_a_trait_of_the_other_school_is_unknown(other_api, class_):
    other_api.ok(other_api.post("/metric-definitions", {"name": "sewing", "metric_type": "PSYCHOMOTOR"}))

    answer = class_.upload(class_.sheet_of(header=(*STUDENT, *TRAITS, "sewing")))

    assert bad_rows(answer) == [(1, "sewing", "unknown")]


def test_a_word_for_a_score_is_told_the_scale(class_):
    answer = class_.upload(class_.sheet_of(("A/1", None, None, "Excellent")))

    (bad,) = answer.get_json()["errors"]["rows"]
    assert bad["message"] == (
        'D2: "Excellent" is no number for Chidinma Bàlógun (A/1): '
        "write a whole number from 1, poor, to 5, excellent"
    )
