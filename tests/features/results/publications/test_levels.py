"""Results of a level with rules of its own; and of early years, which have no marks."""

from __future__ import annotations

import pytest

from tests.features.results.publications.arms import Arms


@pytest.fixture
def arms(make):
    return Arms(make)


@pytest.fixture
def level(arms):
    """The query of the class's level."""
    (classroom,) = arms.api.ok(arms.api.get("/classrooms"))
    arms.api.ok(arms.api.patch(f"/classrooms/{classroom['id']}", {"level": "Nursery"}))
    return "?level=Nursery"


def early_years(arms, level, marks=False):
    arms.api.ok(arms.api.patch(f"/result-settings{level}", {"marks": marks}))


def result(arms, student, **query):
    return arms.api.ok(arms.api.get(f"/students/{student}/results", query_string={"term": "FIRST", **query}))


def test_live_and_published_results_go_by_the_level(api, arms, level):
    arms.mark(first=90, step=5)
    best = arms.students[arms.first][0]
    own = {"pass_mark": 91, "percent_places": 0, "positions": "NONE"}
    api.ok(api.patch(f"/result-settings{level}", own))
    scale = [{"lower_threshold": 0, "upper_threshold": 100, "letter_grade": "Z", "remarks": "Any"}]
    api.ok(api.put(f"/grade-configs{level}", scale))

    live = result(arms, best)

    assert (live["grade"], live["passed"], live["failed"]) == ("Z", 0, 2)
    arms.submit()
    api.ok(arms.publish())
    api.ok(api.put(f"/grade-configs{level}", []))
    published = result(arms, best)
    assert (published["state"], published["grade"]) == ("PUBLISHED", "Z")
    assert result(arms, best, live="true")["grade"] == "A1"


def test_early_years_publish_without_submissions(api, arms, level):
    arms.mark()
    early_years(arms, level)
    student = arms.students[arms.first][0]

    assert arms.publish(query="?dry_run=true").status_code == 200
    assert [publication["students"] for publication in api.ok(arms.publish())] == [2, 2]

    reading = result(arms, student)
    assert (reading["state"], reading["status"], reading["subjects"]) == ("PUBLISHED", "NONE", [])
    assert (reading["average"], reading["batch_figures"]["position"]) == (None, None)
    assert (reading["cumulative"]["terms"], reading["cumulative"]["average"]) == (0, None)
    path = f"/cohort-subjects/{arms.subjects[0]['id']}/submission"
    assert api.post(path, {"term": "FIRST"}).status_code == 409
    assert api.get(f"/students/{student}/report-card?term=FIRST").mimetype == "application/pdf"


def test_scores_of_early_years_stay_and_count_again(api, arms, level):
    arms.mark()
    early_years(arms, level)
    api.ok(arms.publish())
    early_years(arms, level, marks=True)
    student = arms.students[arms.first][0]

    assert result(arms, student, live="true")["average"] == 90
    # The published card stays as it is.
    assert result(arms, student)["average"] is None


def test_a_term_with_marks_follows_one_without(api, arms, level):
    arms.mark()
    early_years(arms, level)
    api.ok(arms.publish())
    early_years(arms, level, marks=None)
    arms.published(term="SECOND")

    reading = result(arms, arms.students[arms.first][0], term="SECOND")

    assert reading["cumulative"]["terms"] == 1


def test_no_earlier_term_is_asked_of_early_years(api, arms, level):
    arms.mark()
    arms.mark("SECOND")
    assert arms.publish(term="SECOND").status_code == 409
    early_years(arms, level)

    assert arms.publish(term="SECOND").status_code == 200


def test_subjects_of_results_stand_in_their_order_and_stay_there(api, make, arms):
    first, second = (subject["subject"] for subject in arms.subjects)
    bases = {template["name"]: template["id"] for template in api.ok(api.get("/templates"))}
    api.ok(api.patch(f"/templates/{bases[second]}", {"position": 1}))
    student = arms.students[arms.first][0]
    arms.published()

    def orders():
        broadsheet = api.ok(api.get(f"/broadsheets?batch={arms.first}&term=FIRST"))
        reading = result(arms, student)
        of = (
            [subject["name"] for subject in broadsheet["subjects"]],
            [row["subject"]["name"] for row in reading["subjects"]],
        )
        return [*of, [subject["name"] for subject in reading["cumulative"]["subjects"]]]

    assert orders() == [[second, first]] * 3
    listed = api.ok(api.get("/cohort-subjects", query_string={"cohort": arms.cohort["id"]}))
    assert [subject["subject"] for subject in listed["data"]] == [second, first]
    submitted = api.ok(api.get(f"/submissions?batch={arms.first}&term=FIRST"))
    assert [submission["subject"] for submission in submitted] == [second, first]
    api.ok(api.patch(f"/templates/{bases[second]}", {"position": None}))
    assert orders() == [[second, first]] * 3
    live = api.ok(api.get(f"/broadsheets?batch={arms.first}&term=FIRST&live=true"))
    assert [subject["name"] for subject in live["subjects"]] == [first, second]
