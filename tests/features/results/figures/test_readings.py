"""Live readings of a subject's results and of a student's: their figures, students left out, refusals."""

from __future__ import annotations

import pytest
from sqlalchemy import delete

from school_service.core.database import db
from school_service.features.scores.models import GradeConfiguration
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.factories import UNKNOWN_ID

# Every test finds the class, whether it asks for it or not.
pytestmark = pytest.mark.usefixtures("small")


def subject_results(small, name, **query):
    return small.get(f"/cohort-subjects/{small.subjects[name]['id']}/results", **{"term": "FIRST", **query})


def places(results, of):
    return [
        (row["student"]["first_name"], row["percent"], row[of]["position"], row[of]["of"]) for row in results
    ]


def test_results_of_a_subject_are_by_position_in_the_cohort_or_in_a_batch(small):
    both, arm = (
        subject_results(small, "Mathematics"),
        subject_results(small, "Mathematics", batch=small.batches["A"]),
    )

    assert places(both, "cohort") == [
        ("Ɗanladi", "90.00", "1", "5"), ("Ada", "80.00", "2", "5"), ("Bọ́lá", "80.00", "2", "5"),
        ("Chidi", "50.00", "4", "5"), ("Ẹfẹ́", "35.00", "5", "5"),
    ]  # fmt: skip
    assert places(arm, "batch") == [
        ("Ada", "80.00", "1", "3"), ("Bọ́lá", "80.00", "1", "3"), ("Chidi", "50.00", "3", "3"),
    ]  # fmt: skip
    assert both[0]["batch"] == {
        "position": "1", "tied": False, "of": "2", "average": "62.50", "lowest": "35.00", "highest": "90.00",
    }  # fmt: skip
    assert both[0]["cohort"]["average"] == "67.00"


def test_results_of_an_elective_have_its_takers(small):
    assert places(subject_results(small, "Music"), "cohort") == [
        ("Ada", "60.00", "1", "2"),
        ("Chidi", "40.00", "2", "2"),
    ]


def test_a_term_result_has_subjects_total_average_and_positions(small):
    result = small.result("Ada")

    assert [row["subject"]["name"] for row in result["subjects"]] == ["English", "Mathematics", "Music"]
    members = (
        "status",
        "total",
        "obtainable",
        "average",
        "grade",
        "remark",
        "passed",
        "failed",
        "state",
        "version",
    )
    assert [result[name] for name in members] == [
        "COMPLETE", "210.00", "300", "70.00", "B2", "Very Good", "3", "0", "PROVISIONAL", None,
    ]  # fmt: skip
    assert result["batch_figures"] == {
        "position": "1", "tied": True, "of": "3", "average": "63.33", "lowest": "50.00", "highest": "70.00",
    }  # fmt: skip
    assert result["cohort_figures"] == {
        "position": "1", "tied": True, "of": "4", "average": "65.00", "lowest": "50.00", "highest": "70.00",
    }  # fmt: skip
    cumulative = result["cumulative"]
    assert [cumulative[name] for name in ("terms", "average", "grade", "remark")] == [
        "1",
        "70.00",
        "B2",
        "Very Good",
    ]
    assert cumulative["batch_figures"] == result["batch_figures"]
    assert cumulative["subjects"][1] == {
        "base": small.subjects["Mathematics"]["base"], "name": "Mathematics", "code": "MAT",
        "terms": {"FIRST": "80.00", "SECOND": None, "THIRD": None}, "percent": "80.00", "grade": "A1",
    }  # fmt: skip


def test_a_session_is_over_the_terms_as_they_were_published(small):
    """The second term weighs 3, the first 1; the first was published before Ada's 80 became 100.

    Ada: Mathematics (80 + 3 × 60) ÷ 4 = 65, English (70 + 3 × 90) ÷ 4 = 85, average 75; Music, of the first term
    alone, is shown and not averaged. Chidi: (50 + 3 × 50) ÷ 4 = 50; English 60, excused from the second: of the first
    term alone, and no subject of this one. Bọ́lá lacks a mark: (80 ÷ 1) and (60 + 3 × 70) ÷ 4 = 67.5, no position.
    """  # noqa: RUF002
    small.api.ok(small.api.patch("/result-settings", {"term_weights": {"FIRST": 1, "SECOND": 3, "THIRD": 0}}))
    small.publish("FIRST")
    entries = small.api.ok(small.api.get("/gradebooks", query_string={"student": small.students["Ada"]}))[
        "data"
    ]
    changed = next(entry for entry in entries if entry["score"] == 80)
    small.api.ok(small.api.patch(f"/gradebooks/{changed['id']}", {"score": 100}))
    small.score(small.paper("Mathematics", "SECOND"), {"Ada": 60, "Chidi": 50})
    english = small.paper("English", "SECOND")
    small.score(english, {"Ada": 90, "Bọ́lá": 70})
    excused = [{"student": small.students["Chidi"], "status": "EXCUSED"}]
    small.api.ok(small.api.put(f"/assessments/{english['id']}/absences", {"absences": excused}))

    ada, bola, chidi = (small.result(name, "SECOND")["cumulative"] for name in ("Ada", "Bọ́lá", "Chidi"))

    def percents(cumulative):
        return {row["code"]: (*row["terms"].values(), row["percent"]) for row in cumulative["subjects"]}

    assert percents(ada) == {
        "ENG": ("70.00", "90.00", None, "85.00"), "MAT": ("80.00", "60.00", None, "65.00"),
        "MUS": ("60.00", None, None, "60.00"),
    }  # fmt: skip
    assert percents(bola) == {
        "ENG": ("60.00", "70.00", None, "67.50"), "MAT": ("80.00", None, None, "80.00"),
    }  # fmt: skip
    assert percents(chidi)["ENG"] == ("60.00", None, None, "60.00")
    figures = [(row["terms"], row["average"], row["batch_figures"]["position"]) for row in (ada, bola, chidi)]
    assert figures == [("2", "75.00", "1"), ("2", "73.75", None), ("2", "50.00", "2")]
    assert (ada["batch_figures"]["of"], ada["batch_figures"]["average"]) == ("2", "62.50")


def test_a_result_from_another_school_stands_for_a_term(small):
    """Ẹfẹ́ has no published first term, and brings 45 of 60 and 30 of 40 in Mathematics: 75 %.

    With 60 in the second: (75 + 60) ÷ 2 = 67.5. Ada brings 10 in, and her own first term of 80 wins over it.
    """
    small.publish("FIRST", arms="A")
    for points, score in ((60, 45), (40, 30)):
        paper = small.paper("Mathematics", "SECOND", category="FIRST_TERM", total_points=points)
        small.score(paper, {"Ada": 10, "Ẹfẹ́": score})
    small.score(
        small.paper("Mathematics", "SECOND"), {"Ada": 70, "Ẹfẹ́": 60, "Bọ́lá": 1, "Chidi": 2, "Ɗanladi": 3}
    )
    # One that does not count, and one of a later term.
    for fields in ({"category": "FIRST_TERM", "include_in_final": False}, {"category": "THIRD_TERM"}):
        small.score(small.paper("Mathematics", "SECOND", **fields), {"Ẹfẹ́": 1})

    (brought,) = small.result("Ẹfẹ́", "SECOND")["cumulative"]["subjects"]
    assert (brought["terms"], brought["percent"]) == (
        {"FIRST": "75.00", "SECOND": "60.00", "THIRD": None}, "67.50",
    )  # fmt: skip
    assert small.result("Ẹfẹ́", "SECOND")["cumulative"]["terms"] == "1"
    own = next(row for row in small.result("Ada", "SECOND")["cumulative"]["subjects"] if row["code"] == "MAT")
    assert own["terms"]["FIRST"] == "80.00"


def test_an_absence_from_a_paper_of_another_school_brings_nothing_in(small):
    """Ẹfẹ́ was absent from one paper of another school, and has 30 of 40 in the other: 75 %."""
    small.publish("FIRST", arms="A")
    papers = [
        small.paper("Mathematics", "SECOND", category="FIRST_TERM", total_points=each) for each in (60, 40)
    ]
    small.api.ok(small.make.absences(papers[0], {small.students["Ẹfẹ́"]: "ABSENT"}))
    small.score(papers[1], {"Ẹfẹ́": 30})

    (brought,) = small.result("Ẹfẹ́", "SECOND")["cumulative"]["subjects"]

    assert (brought["terms"]["FIRST"], brought["percent"]) == ("75.00", "75.00")


def test_shares_of_categories_are_added_before_they_are_rounded(small):
    """Three sixths of a percent are a half, which is rounded up: none of them is written in full."""
    weights = {"CA1": 0.5, "CA2": 0.5, "CA3": 0.5, "EXAM": 98.5}
    listed = [{"level": None, "category": name, "weight": weight} for name, weight in weights.items()]
    small.api.ok(
        small.api.patch(
            "/result-settings",
            {"weighting": "CATEGORIES", "weights": listed, "percent_places": 0, "percent_from": "EXACT"},
        )
    )
    subject = small.make.cohort_subject(small.cohort, small.make.subject(name="Yoruba", code="YOR"))
    small.subjects["Yoruba"] = subject
    for category in weights:
        paper = small.paper("Yoruba", category=category, total_points=3)
        small.score(paper, dict.fromkeys(small.ARMS, 0 if category == "EXAM" else 1))

    assert {result["percent"] for result in subject_results(small, "Yoruba")} == {"1"}


def test_scores_stand_by_category_then_by_day(small):
    for category, day in (("CA2", "2025-10-01"), ("CA1", "2025-11-03"), ("CA1", "2025-10-20")):
        paper = small.paper("Music", category=category, due_date=day, abbreviation=f"{category} {day}")
        small.score(paper, {"Ada": 1, "Chidi": 2})

    abbreviations = [score["abbreviation"] for score in subject_results(small, "Music")[0]["scores"]]

    assert abbreviations[:3] == ["CA1 2025-10-20", "CA1 2025-11-03", "CA2 2025-10-01"]
    of_student = next(row for row in small.result("Ada")["subjects"] if row["subject"]["code"] == "MUS")
    assert [score["abbreviation"] for score in of_student["scores"]] == abbreviations


def test_a_withdrawn_student_is_in_no_result(small):
    small.api.ok(small.api.patch(f"/students/{small.students['Ada']}", {"status": "WITHDRAWN"}))

    assert [place[0] for place in places(subject_results(small, "Music"), "cohort")] == ["Chidi"]
    answer = small.api.get(f"/students/{small.students['Ada']}/results?term=FIRST")
    assert answer.status_code == 404
    assert small.result("Chidi")["batch_figures"]["of"] == "2"


def test_too_few_subjects_have_no_position(small):
    small.api.ok(small.api.patch("/result-settings", {"minimum_subjects": 3}))

    bola, ada = small.result("Bọ́lá"), small.result("Ada")

    assert (bola["status"], bola["average"]) == ("TOO_FEW", "70.00")
    assert bola["batch_figures"] == {
        "position": None, "tied": False, "of": None, "average": "60.00", "lowest": "50.00", "highest": "70.00",
    }  # fmt: skip
    assert (ada["batch_figures"]["position"], ada["batch_figures"]["of"]) == ("1", "2")


def test_the_total_may_decide(small):
    small.api.ok(small.api.patch("/result-settings", {"rank_by": "TOTAL"}))

    positions = {name: small.result(name)["batch_figures"]["position"] for name in ("Ada", "Bọ́lá", "Chidi")}

    assert positions == {"Ada": "1", "Chidi": "2", "Bọ́lá": "3"}
    # The session goes by the average also where the term does not.
    assert small.result("Bọ́lá")["cumulative"]["batch_figures"]["position"] == "1"


def test_categories_have_the_weights_of_the_classs_level(small):
    """Ada: CA1 10 of 20, EXAM 80 of 100: 50 × 0.3 + 80 × 0.7 = 71; the CA2 has no weight and counts nowhere."""  # noqa: RUF002
    weights = [("Junior Secondary", "CA1", 30), ("Junior Secondary", "EXAM", 70), (None, "CA2", 100)]
    listed = [dict(zip(("level", "category", "weight"), weight, strict=True)) for weight in weights]
    small.api.ok(small.api.patch("/result-settings", {"weighting": "CATEGORIES", "weights": listed}))
    everyone = dict.fromkeys(small.ARMS, 0)
    small.score(small.paper("Mathematics", category="CA1", total_points=20), {**everyone, "Ada": 10})
    small.paper("Mathematics", category="CA2")

    mathematics = small.result("Ada")["subjects"][1]

    assert (mathematics["percent"], mathematics["score"], mathematics["points"]) == (
        "71.00",
        "90.00",
        "120.00",
    )
    assert [score["category"] for score in mathematics["scores"]] == ["CA1", "EXAM"]


def test_below_the_lowest_band_there_is_no_grade(small):
    with in_transaction(SchoolBinding(small.api.school)):
        db.session.execute(delete(GradeConfiguration).where(GradeConfiguration.letter_grade == "F9"))

    results = subject_results(small, "Mathematics")

    assert [(result["percent"], result["grade"], result["remark"]) for result in results[3:]] == [
        ("50.00", "C6", "Credit"), ("35.00", None, None),
    ]  # fmt: skip


def test_a_percent_has_the_grade_that_it_shows(small):
    """69.5 is C4's: the band with the highest threshold that is not above it; 69.996 shows as 70.00, and has B2."""
    small.score(
        small.paper("Music", category="CA1", total_points=2400), {"Ada": 60, "Chidi": 1709.99}
    )  # of 2,500: 120 and 1,749.99

    results = {result["student"]["first_name"]: result for result in subject_results(small, "Music")}

    assert (results["Chidi"]["percent"], results["Chidi"]["grade"]) == ("70.00", "B2")
    assert (results["Ada"]["percent"], results["Ada"]["grade"]) == ("4.80", "F9")


def refused(small, path, status, field=None, **query):
    answer = small.api.get(path, query_string=query)
    assert answer.status_code == status, answer.get_data(as_text=True)
    if field is not None:
        (place,) = answer.get_json()["errors"].values()
        assert [*place] == [field]


def test_refusals_of_a_reading_of_a_subject(small, make):
    path = f"/cohort-subjects/{small.subjects['Music']['id']}/results"
    refused(small, f"/cohort-subjects/{UNKNOWN_ID}/results", 404, term="FIRST")
    refused(small, path, 422, "term")
    refused(small, path, 422, "term", term="THIRD")
    refused(small, path, 422, "term", term=make.term()["id"])
    refused(small, path, 422, "batch", term="FIRST", batch=UNKNOWN_ID)
    refused(small, path, 422, "batch", term="FIRST", batch=make.cohort()["id"])
    # Nobody of this arm takes it; and nothing of this term counts.
    assert subject_results(small, "Music", batch=small.batches["B"]) == []
    assert subject_results(small, "Music", term="SECOND") == []


def test_refusals_of_a_reading_of_a_student(small, make):
    path = f"/students/{small.students['Ada']}/results"
    refused(small, f"/students/{UNKNOWN_ID}/results", 404, term="FIRST")
    refused(small, path, 422, "term")
    refused(small, path, 422, "term", term=UNKNOWN_ID)
    refused(small, path, 422, "term", term="SUMMER")
    # One that the student's session does not have, and another does.
    make.term(term="THIRD")
    refused(small, path, 422, "term", term="THIRD")
    # A term of a session in which the student is in no class; a student who is in none at all.
    refused(small, path, 404, term=make.term()["id"])
    refused(small, f"/students/{make.student()['id']}/results", 404, term="FIRST")
    assert small.result("Ada", small.terms["FIRST"]["id"])["status"] == "COMPLETE"


def test_by_name_a_term_is_of_the_latest_session(small, make):
    session = make.session()
    later = make.cohort(session=session)
    term = make.term(session)
    student = {"id": small.students["Ada"]}
    make.enrolled(later, student)

    assert small.result("Ada")["term"]["id"] == term["id"]
    assert small.result("Ada", small.terms["FIRST"]["id"])["average"] == "70.00"


def test_the_other_schools_ids_are_unknown(small, make_other):
    theirs = make_other.taught(1)
    subject, student = (
        f"/cohort-subjects/{theirs.subject['id']}/results",
        f"/students/{theirs.students[0]}/results",
    )
    here = f"/cohort-subjects/{small.subjects['Music']['id']}/results"

    refused(small, subject, 404, term="FIRST")
    refused(small, student, 404, term="FIRST")
    refused(small, here, 422, "term", term=theirs.term["id"])
    refused(small, here, 422, "batch", term="FIRST", batch=theirs.cohort["id"])
    # The refused records are there; and another school's token does not get at them.
    for path in (subject, student):
        assert make_other.api.get(path, query_string={"term": theirs.term["id"]}).status_code == 200
        assert small.api.using(school=make_other.api.school).get(path + "?term=FIRST").status_code == 403


@pytest.mark.parametrize("students", [1, 30])
def test_a_reading_is_one_message(make, messages, students):
    taught = make.taught(students)
    for category in ("CA1", "EXAM"):
        make.assessment(taught.subject, taught.term, category=category)
    paths = (
        f"/cohort-subjects/{taught.subject['id']}/results?term=FIRST",
        f"/cohort-subjects/{taught.subject['id']}/results?term=FIRST&batch={taught.cohort['id']}",
        f"/students/{taught.students[0]}/results?term=FIRST",
        f"/broadsheets?batch={taught.cohort['id']}&term=FIRST",
        f"/broadsheets?batch={taught.cohort['id']}&term=FIRST&live=true",
    )
    for path in paths:
        with messages() as sent:
            assert make.api.get(path).status_code == 200
        assert len(sent) == 1, path


def test_a_live_session_takes_this_term_as_it_is_and_no_later_one(small):
    small.publish("FIRST")
    small.score(small.paper("Mathematics", "SECOND"), {"Ada": 10, "Bọ́lá": 20, "Chidi": 30})
    small.publish("SECOND", arms="A")
    small.score(small.paper("Mathematics", category="CA1"), {"Ada": 0, "Bọ́lá": 0, "Chidi": 0})

    cumulative = small.get(f"/students/{small.students['Ada']}/results", term="FIRST", live="true")[
        "cumulative"
    ]

    mathematics = next(subject for subject in cumulative["subjects"] if subject["code"] == "MAT")
    assert mathematics["terms"] == {"FIRST": "40.00", "SECOND": None, "THIRD": None}
    assert (mathematics["percent"], cumulative["terms"]) == ("40.00", "1")
