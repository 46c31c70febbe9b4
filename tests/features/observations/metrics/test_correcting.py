"""Correcting traits, and taking records of traits back."""

from __future__ import annotations

import pytest

from tests.features.observations.metrics.sheets import PSYCHOMOTOR, STUDENT, Observed, by_sheet, fill
from tests.features.results.publications.arms import Arms
from tests.features.scores.scoresheets.sheets import sheet_of


def message(answer):
    return answer.get_json()["message"]


def traits(api, metric_type=PSYCHOMOTOR):
    definitions = api.ok(api.get("/metric-definitions"))
    return {
        definition["name"]: definition["id"]
        for definition in definitions
        if definition["metric_type"] == metric_type
    }


def test_a_trait_with_scores_keeps_its_type_and_stays(api, make):
    seen = Observed(make, 3)
    api.ok(seen.send({number: {"handwriting": 4} for number in list(seen.students)[:2]}))
    path = f"/metric-definitions/{traits(api)['handwriting']}"

    for answer in (api.patch(path, {"metric_type": "AFFECTIVE", "name": "x"}), api.delete(path)):
        words = "The metric definition is in use by 2 trait scores."
        assert (answer.status_code, message(answer)) == (409, words)
    assert api.ok(api.patch(path, {"name": "Penmanship"}))["name"] == "Penmanship"
    assert {tuple(scores) for scores in seen.scores().values()} == {("Penmanship",)}


def test_without_scores_it_changes_its_type_and_comes_last(api, make):
    trait = traits(api)["handwriting"]

    changed = api.ok(api.patch(f"/metric-definitions/{trait}", {"metric_type": "AFFECTIVE"}))

    assert changed["metric_type"] == "AFFECTIVE"
    assert list(traits(api, "AFFECTIVE").values())[-1] == trait
    assert "handwriting" not in traits(api)


@pytest.mark.parametrize("name", ["painting", "Painting", " PAINTING "])
def test_a_trait_that_a_sheet_could_not_tell_from_another_is_a_conflict(api, name):
    path = f"/metric-definitions/{traits(api)['handwriting']}"

    answer = api.patch(path, {"name": name})

    assert (answer.status_code, message(answer)) == (409, "The PSYCHOMOTOR trait painting exists already.")
    assert api.ok(api.patch(path, {"name": "Handwriting"}))["name"] == "Handwriting"
    for wrong in ("admission number", "First_name", "", None, 5, "x" * 121):
        assert api.patch(path, {"name": wrong}).status_code == 422
    for wrong in ("psychomotor", None, 1):
        assert api.patch(path, {"metric_type": wrong}).status_code == 422


def test_a_record_is_deleted_with_its_scores_and_can_be_entered_again(api, make):
    seen = Observed(make, 2)
    api.ok(seen.send({number: {"handwriting": 4, "painting": 2} for number in seen.students}))
    first, second = seen.records()

    assert api.ok(api.get(f"/metrics/{first['id']}")) == first
    api.ok(api.delete(f"/metrics/{first['id']}"))

    assert seen.records() == [second]
    assert api.get(f"/metrics/{first['id']}").status_code == 404
    assert seen.log()[0] == ("delete", by_sheet({"handwriting": 4, "painting": 2}), None)
    assert api.ok(seen.send({number: {"handwriting": 4} for number in seen.students}))["created"] == 1


def test_a_published_metric_stays_until_it_is_reopened(api, make):
    arms = Arms(make, 1, 1)
    arms.mark()
    (student,) = arms.students[arms.first]
    number = api.ok(api.get(f"/students/{student}"))["admission_number"]
    details = [("Batch ID", arms.first), ("Term ID", arms.terms["FIRST"]["id"]), ("Metric type", PSYCHOMOTOR)]
    header = (*STUDENT, *traits(api))
    content = sheet_of(
        (number, "Ada", "Eze", *(4 for _ in traits(api))), header=header, details=details, title="Metrics"
    )
    seen = Observed(make, 0)
    api.ok(seen.upload(content, batch=arms.first))
    first, _ = arms.published()
    (record,) = seen.records(arms.first)
    where = {"query_string": {"term": arms.terms["FIRST"]["id"]}}
    before = api.get(f"/students/{student}/report-card", **where).data

    answer = api.delete(f"/metrics/{record['id']}")

    assert answer.status_code == 409
    assert message(answer).endswith("are published: reopen that publication first.")
    for name, trait in traits(api).items():
        api.ok(api.patch(f"/metric-definitions/{trait}", {"name": f"Renamed {name}"}))
    assert api.get(f"/students/{student}/report-card", **where).data == before
    api.ok(arms.reopen(first))
    api.ok(api.delete(f"/metrics/{record['id']}"))


def test_a_sheet_that_was_downloaded_before_a_trait_was_renamed_is_taken(api, make):
    seen = Observed(make, 2)
    student, other = seen.students
    api.ok(seen.send({student: {"handwriting": 4}}))
    workbook = seen.workbook()
    ids = traits(api)
    # Two names change places, too: each column is of the trait that it was of.
    for name, new in (("handwriting", "x"), ("painting", "handwriting"), ("handwriting", "painting")):
        api.ok(api.patch(f"/metric-definitions/{ids[name]}", {"name": new}))
    api.ok(api.patch(f"/metric-definitions/{ids['construction']}", {"name": "Building"}))

    counts = api.ok(seen.upload(fill(workbook, {other: {"handwriting": 3, "construction": 5}})))

    assert (counts["created"], counts["unchanged"]) == (1, 1)
    assert seen.scores() == {student: {"painting": 4}, other: {"painting": 3, "Building": 5}}


def test_a_sheet_without_the_column_of_a_trait_that_took_a_name_since_is_refused(api, make):
    seen = Observed(make, 1)
    workbook = seen.workbook()
    api.ok(api.patch(f"/metric-definitions/{traits(api)['painting']}", {"name": "drawing"}))
    api.ok(api.post("/metric-definitions", {"name": "painting", "metric_type": PSYCHOMOTOR}))

    answer = seen.upload(fill(workbook, {"A/1": {"painting": 3}}))

    assert answer.status_code == 422
    assert "download it again" in message(answer)
    assert seen.records() == []
