"""Writes answer for a student out of reach as for an unknown id, also while results are submitted and published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.client import ApiClient
from tests.factories import UNKNOWN_ID
from tests.features.reach.conftest import error_of

pytestmark = pytest.mark.usefixtures("made_arms")


@pytest.fixture
def published(arms, make):
    """Both arms are published, and have a register of today."""
    api = make.api
    paper = make.assessment(arms.subject, arms.term)
    for student, batch in ((arms.in_a[0], arms.a), (arms.in_b[0], arms.b)):
        make.entry(paper, student, batch)
    api.ok(
        api.post(f"/cohort-subjects/{arms.subject['id']}/submission", {"term": "FIRST", "blanks": "EXCUSED"})
    )
    body = {"term": "FIRST", "batches": [arms.a, arms.b]}
    dry_run = api.ok(api.post("/publications?dry_run=true", body))
    without = {
        subject["cohort_subject"] for made in dry_run for subject in made["without_assessments"]["subjects"]
    }
    api.ok(api.post("/publications", {**body, "without_subjects": sorted(without)}))
    dates = {"start_date": arms.session["start_date"], "end_date": arms.session["end_date"]}
    others = dict.fromkeys(("times_opened", "next_term_begins", "notice"))
    api.ok(api.put(f"/terms/{arms.term['id']}/calendar", {**dates, **others}))
    return arms


def of_class(client: ApiClient, batch: str, student: str, day: str) -> Iterator[Any]:
    """Send the writes of form teachers about a batch and one of its students."""
    said_of = {"student": student, "form_teacher_comment": "Good."}
    yield client.put("/comments", {"batch": batch, "term": "FIRST", "comments": [said_of]})
    scores = [{"student": student, "metric_type": "AFFECTIVE", "metric_scores": {"neatness": 4}}]
    yield client.put(f"/metrics?batch={batch}&term=FIRST", scores)
    register = {"batch": batch, "date": day, "part": "DAY", "marks": [{"student": student, "code": "P"}]}
    yield client.put("/registers", register)


def test_a_form_teacher_is_told_nothing_of_another_arm(published, own):
    arms, day = published, own.today()
    teacher = own.form_teacher(arms.a)
    (other,) = arms.in_b

    of_other = [error_of(answer) for answer in of_class(teacher, arms.b, other, day)]
    of_unknown = [error_of(answer) for answer in of_class(teacher, UNKNOWN_ID, UNKNOWN_ID, day)]

    assert str(of_other).replace(other, UNKNOWN_ID).replace(arms.b, UNKNOWN_ID) == str(of_unknown)
    # Of their own class, the publication is named before its students are looked up.
    in_own = [error_of(answer) for answer in of_class(teacher, arms.a, other, day)]
    as_unknown = [error_of(answer) for answer in of_class(teacher, arms.a, UNKNOWN_ID, day)]
    assert str(in_own).replace(other, UNKNOWN_ID) == str(as_unknown)


def test_a_subject_teacher_is_told_nothing_of_another_arms_submission(published, make, own):
    arms = published
    path = f"/cohort-subjects/{arms.subject['id']}/submission"
    teacher = own.subject_teacher(arms.subject, arms.a)
    for blanks in ("REFUSE", "ABSENT"):
        of_b, of_unknown = (
            teacher.post(path, {"term": "FIRST", "batch": batch, "blanks": blanks})
            for batch in (arms.b, UNKNOWN_ID)
        )
        assert error_of(of_b) == error_of(of_unknown)
    other = f"/cohort-subjects/{arms.other['id']}/submission"
    unknown = f"/cohort-subjects/{UNKNOWN_ID}/submission"
    assert error_of(teacher.post(other, {"term": "FIRST"})) == error_of(
        teacher.post(unknown, {"term": "FIRST"})
    )
