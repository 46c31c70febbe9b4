"""The list of a student's report cards: those in force, for staff and families."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.features.results.publications.arms import Arms
from tests.features.results.publications.test_guardians import guardian_of, stop
from tests.features.results.publications.test_published import as_student, settings


@pytest.fixture(scope="module", autouse=True)
def made_arms(prepared):
    return prepared(Arms.with_results)


def cards(client, student):
    return client.ok(client.get(f"/students/{student}/report-cards"))


def test_cards_in_force_are_listed_the_newest_first(api, make, arms):
    student = arms.students[arms.first][1]
    assert cards(api, student) == []
    (first,) = arms.published(arms.first)
    arms.mark("SECOND", first=80)
    (second,) = arms.published(arms.first, term="SECOND")
    api.ok(arms.reopen(second))
    other = make.session(name="9500/9501", start_date="9500-09-01", end_date="9501-07-31")
    make.enrolled(make.cohort(make.classroom(), other), {"id": student})

    listed = cards(api, student)

    session = {"id": arms.cohort["session"], "name": first["session"]["name"]}
    assert listed == [
        {
            "session": session,
            "term": {"id": arms.terms[term]["id"], "term": term},
            "batch": {"id": arms.first, "name": publication["batch_name"]},
            "version": 1,
            "average": average,
            "position": 2,
            "published_at": publication["published_at"],
        }
        for term, publication, average in (("SECOND", second, 75), ("FIRST", first, 85))
    ]
    # Of a term the version in force, and none that is withdrawn.
    (third,) = api.ok(arms.publish(arms.first, term="SECOND"))
    assert [card["version"] for card in cards(api, student)] == [2, 1]
    api.ok(arms.reopen(third, withdraw=True))
    assert [card["term"]["term"] for card in cards(api, student)] == ["FIRST"]


@pytest.mark.parametrize(
    ("positions", "shown"), [("BOTH", 1), ("BATCH", 1), ("COHORT", None), ("NONE", None)]
)
def test_a_family_sees_the_position_that_the_card_shows(api, make, arms, positions, shown):
    settings(api, positions=positions)
    arms.published()
    student = arms.students[arms.second][0]
    guardian, mother = guardian_of(make, student)

    listed = cards(api, student)

    assert [card["position"] for card in listed] == [1]
    for family in (as_student(make, student), mother):
        assert cards(family, student) == [{**listed[0], "position": shown}]
        other = arms.students[arms.second][1]
        assert family.get(f"/students/{other}/report-cards").status_code == 403
    api.ok(stop(api, student, guardian))
    assert mother.get(f"/students/{student}/report-cards").status_code == 403


def test_a_student_unknown_or_of_another_school_has_no_list(api, make_other):
    for student in (str(uuid4()), make_other.student()["id"]):
        assert api.get(f"/students/{student}/report-cards").status_code == 404
