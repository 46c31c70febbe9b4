"""Results of a class, as teachers whose permission is OWN read them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.factories import Factory
from tests.features.reach.conftest import Own, this_session
from tests.features.results.publications.arms import Arms


@pytest.fixture
def published(make: Factory) -> Arms:
    """The results of the first arm, in a session of this year."""
    arms = Arms(make)
    dates = this_session(make)
    days = {"start_date": dates["start_date"], "end_date": dates["end_date"]}
    make.api.ok(make.api.patch(f"/sessions/{arms.cohort['session']}", days))
    arms.published(arms.first)
    return arms


def in_broadsheet(client: Any, arms: Arms) -> set[str]:
    broadsheet = client.ok(client.get(f"/broadsheets?batch={arms.first}&term=FIRST"))
    return {row["student"]["id"] for row in broadsheet["students"]}


def test_a_form_teacher_reads_the_results_of_a_student_who_has_left_since(published: Arms, own: Own) -> None:
    leaver, stays = published.students[published.first]
    api, removing = published.api, f"/cohorts/{published.cohort['id']}/remove_students"
    api.ok(api.patch(removing, {"student_ids": [leaver]}))
    teacher = own.form_teacher(published.first, "read:results")

    assert in_broadsheet(teacher, published) == {leaver, stays}
    for path in ("results?term=FIRST", "report-card?term=FIRST"):
        assert teacher.get(f"/students/{leaver}/{path}").status_code == 200
    for student in (leaver, stays):
        (card,) = teacher.ok(teacher.get(f"/students/{student}/report-cards"))
        assert card["batch"]["id"] == published.first
    # The transcript is of all terms, and read in the class in which the student is.
    assert teacher.get(f"/students/{stays}/transcript").status_code == 200
    assert teacher.get(f"/students/{leaver}/transcript").status_code == 404


def test_a_subject_teacher_lists_submissions_of_their_arm_and_a_form_teacher_of_the_cohort(
    published: Arms, own: Own
) -> None:
    form_teacher = own.form_teacher(published.first, "read:results")
    subject_teacher = own.subject_teacher(published.subjects[0], published.second, "read:results")

    def listed(client: Any) -> set[tuple[str, str]]:
        path = f"/submissions?cohort={published.cohort['id']}&term=FIRST"
        return {
            (submission["cohort_subject"], submission["batch"]) for submission in client.ok(client.get(path))
        }

    first, second = (subject["id"] for subject in published.subjects)
    whole = {(subject, batch) for subject in (first, second) for batch in (published.first, published.second)}
    assert listed(form_teacher) == whole
    assert listed(subject_teacher) == {(first, published.second)}
