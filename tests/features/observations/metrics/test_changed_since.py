"""A metric sheet that is older than the stored scores, a trial of one, and one without details."""

from __future__ import annotations

from io import BytesIO

from tests.features.observations.metrics.sheets import PSYCHOMOTOR, Observed, fill
from tests.features.scores.scoresheets.sheets import bad_rows, counts, download
from tests.prepared import prepared_for_each
from tests.sheets.workbooks import saved


class Watched(Observed):
    """Two students of different names; the first has 4 for painting and 3 for flexibility."""

    def __init__(self, make):
        super().__init__(make, 0)
        people = [("Ngọzi", "Eze", "A/1"), ("Ƙwai", "Ɗanladi", "A/2")]
        made = [make.student(first_name=f, last_name=n, admission_number=a) for f, n, a in people]
        make.enrolled(self.cohort, *made)
        self.enter({"A/1": {"painting": 4, "flexibility": 3}})

    def enter(self, scores, api=None):
        names = {"A/1": ("Ngọzi", "Eze"), "A/2": ("Ƙwai", "Ɗanladi")}
        rows = [(number, *names[number], *map(of_row.get, self.traits)) for number, of_row in scores.items()]
        counts(self.upload(self.sheet_of(*rows), "hand.xlsx", api=api))

    def post(self, content, **query):
        form = {"metric_sheet": (BytesIO(content), "metrics.xlsx")}
        return self.api.post(
            "/metrics/upload-sheet", query_string={"batchId": self.batch, **query}, data=form
        )


original, class_ = prepared_for_each(Watched)


def changed(answer):
    assert answer.status_code == 409, answer.get_data(as_text=True)
    return [
        (error["column"], error["code"], error["message"]) for error in answer.get_json()["errors"]["rows"]
    ]


def test_a_score_that_was_changed_since_the_download_is_not_replaced(class_):
    content = fill(class_.workbook(), {"A/1": {"painting": 5}, "A/2": {"painting": 1}})
    class_.enter({"A/1": {"painting": 2}})

    ((column, code, message),) = changed(class_.upload(content))

    assert (column, code) == ("painting", "changed")
    assert '"5" would replace 2, which ' in message
    assert "for Ngọzi Eze (A/1)" in message
    assert class_.scores() == {"A/1": {"painting": 2, "flexibility": 3}}


def test_another_trait_that_changed_is_named_and_not_lost(class_, make):
    content = fill(class_.workbook(), {"A/1": {"painting": 5}})
    class_.enter({"A/1": {"flexibility": 1}})

    assert [column for column, _, _ in changed(class_.upload(content))] == ["flexibility"]


def test_a_sheet_is_no_obstacle_to_itself_but_to_its_copy(class_, make):
    workbook = class_.workbook()
    first, second = (fill(workbook, {"A/1": {"painting": score}}) for score in (5, 2))
    assert counts(class_.upload(first)) == (2, 0, 1, 0, 1)
    assert counts(class_.upload(second)) == (2, 0, 1, 0, 1)

    assert changed(class_.upload(first, api=make.caller("write:metrics")))


def test_force_replaces_and_is_on_record(class_):
    content = fill(class_.workbook(), {"A/1": {"painting": 5}, "A/2": {"painting": 1}})
    class_.enter({"A/1": {"painting": 2}})

    assert counts(class_.post(content, force="true")) == (2, 1, 1, 0, 0)

    assert class_.scores()["A/1"] == {"painting": 5, "flexibility": 3}
    assert {new["score"]["painting"]: new.get("forced") for _, _, new in class_.log()[:2]} == {
        5: True,
        1: None,
    }


def test_a_dry_run_answers_the_changes_and_the_missing_students(class_):
    workbook = class_.workbook()
    gone = next(cells[0].row for cells in workbook["Metrics"].iter_rows() if cells[0].value == "A/2")
    workbook["Metrics"].delete_rows(gone)
    before = class_.log()

    answer = class_.api.ok(
        class_.post(fill(workbook, {"A/1": {"painting": 5, "drawing and arts": 1}}), dry_run="true")
    )

    told = {(change["column"], change["old"], change["new"]) for change in answer["changes"]}
    assert told == {("painting", 4, 5), ("drawing and arts", None, 1)}
    assert [student["admission_number"] for student in answer["not_in_sheet"]] == ["A/2"]
    assert (answer["rows"], answer["updated"]) == (1, 1)
    assert (class_.scores(), class_.log()) == ({"A/1": {"painting": 4, "flexibility": 3}}, before)


def test_a_row_with_the_name_of_another_is_refused(class_):
    workbook = class_.workbook()
    rows = list(workbook["Metrics"].iter_rows(min_row=2, max_col=3))
    (first, last), (other_first, other_last) = ((row[1].value, row[2].value) for row in rows)
    for row, names in zip(rows, ((other_first, other_last), (first, last)), strict=True):
        row[1].value, row[2].value = names

    assert bad_rows(class_.upload(saved(workbook))) == [(row, "first_name", "invalid") for row in (2, 3)]


def test_a_csv_file_is_a_sheet_where_the_request_names_term_and_type(class_):
    header = ";".join(["Admission number", *(trait.capitalize() for trait in class_.traits)])
    content = f"{header}\nA/2;5{';' * (len(class_.traits) - 1)}\n".encode("utf-16")

    assert class_.post(content).status_code == 422
    answer = class_.post(content, term="FIRST", metric_type=PSYCHOMOTOR)
    assert counts(answer) == (1, 1, 0, 0, 0)
    assert class_.scores()["A/2"] == {class_.traits[0]: 5}
    assert class_.post(content, term="SECOND", metric_type=PSYCHOMOTOR).status_code == 422


def test_a_score_sheet_is_no_metric_sheet(class_, make):
    taught = make.taught()
    assessment = make.assessment(taught.subject, taught.term)

    assert class_.upload(saved(download(make.api, assessment))).status_code == 422


def test_an_upload_with_changes_since_the_download_costs_two_statements_more(class_, messages):
    content = fill(class_.workbook(), {"A/1": dict.fromkeys(class_.traits, 5), "A/2": {"painting": 1}})
    with messages() as right:
        counts(class_.post(content, dry_run="true"))
    class_.enter({"A/1": {"painting": 2, "flexibility": 2}})
    with messages() as late:
        assert len(changed(class_.post(content))) == 2

    # The changes in the audit log, and the clock of the school.
    assert len(late) - len(right) == 2


def test_the_sheet_of_the_other_school_is_refused(class_, make_other):
    theirs = Watched(make_other)
    content = fill(theirs.workbook(), {"A/1": {"painting": 1}})

    assert class_.post(content, force="true").status_code == 422
    assert class_.scores()["A/1"]["painting"] == 4
