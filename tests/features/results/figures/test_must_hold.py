"""Points 1 to 3 that results must hold, from the scores to the frozen cards; other points have tests elsewhere."""

from __future__ import annotations

import json

from school_service.core.database import db
from school_service.features.results.models import ReportCard
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.results.publications.arms import Arms
from tests.features.results.stored_settings import store_settings
from tests.features.results.submissions.classes import Class


def exact(answer):
    """An answer with its figures as they are written."""
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return json.loads(answer.data, parse_float=str, parse_int=str)


def frozen(api):
    """The cards of the school as PostgreSQL writes them, by student."""
    with in_transaction(SchoolBinding(api.school, read_only=True)):
        rows = db.session.execute(db.select(ReportCard.student_id, db.cast(ReportCard.card, db.Text)))
        return {str(student): json.loads(card, parse_float=str, parse_int=str) for student, card in rows}


def test_point_1_scores_zeros_absences_excuses_and_blanks_each_count_as_such(api, make):
    class_ = Class(make, 5, marked=0, total_points=20)
    second = make.assessment(class_.taught.subject, class_.term, category="EXAM", total_points=20)
    elective = make.cohort_subject(class_.cohort, elective=True)
    make.assessment(elective, class_.term)
    full, zero, absent, excused, blank = class_.students
    for student in class_.students:
        class_.score(student, 10, second)
    class_.score(full, 20)
    class_.score(zero, 0)
    path = f"/assessments/{class_.assessment['id']}/absences"
    away = [{"student": absent, "status": "ABSENT"}, {"student": excused, "status": "EXCUSED"}]
    api.ok(api.put(path, {"absences": away}))

    results = {
        student: exact(api.get(f"/students/{student}/results?term=FIRST")) for student in class_.students
    }

    # A student who does not take the elective does not have it.
    subjects = {student: result["subjects"] for student, result in results.items()}
    assert {len(listed) for listed in subjects.values()} == {1}
    shown = {student: (of["percent"], of["score"], of["points"]) for student, (of,) in subjects.items()}
    assert shown == {
        full: ("75.00", "30.00", "40.00"),
        zero: ("25.00", "10.00", "40.00"),
        absent: ("25.00", "10.00", "40.00"),
        excused: ("50.00", "10.00", "20.00"),
        blank: (None, "10.00", "20.00"),
    }
    assert {student for student, result in results.items() if result["status"] == "INCOMPLETE"} == {blank}


def test_point_2_every_figure_follows_from_figures_beside_it_by_one_rounding(api, make):
    with in_transaction(SchoolBinding(api.school)):
        store_settings(percent_places=0)
    arms = Arms(make, 1, 2)
    arms.mark(first=69.5, step=1)
    arms.published()
    cards = frozen(api)
    first, second = (arms.students[batch][0] for batch in (arms.first, arms.second))

    # 69.5 is printed as 70, and has the grade that 70 has; so has 68.5, which is printed as 69.
    for student, percent, grade, total in ((first, "70", "B2", "140"), (second, "69", "B3", "138")):
        card = cards[student]
        assert [(row["percent"], row["grade"]) for row in card["subjects"]] == [(percent, grade)] * 2
        assert (card["total"], card["obtainable"], card["average"]) == (total, "200", f"{percent}.00")
        assert (card["grade"], card["cumulative"]["average"]) == (grade, f"{percent}.00")
    figures = cards[first]["cohort_figures"]
    assert (figures["average"], figures["lowest"], figures["highest"]) == ("69.50", "69.00", "70.00")
    # The answer has the figures of the card.
    answered = exact(api.get(f"/students/{first}/results?term=FIRST"))
    assert answered["subjects"] == cards[first]["subjects"]


def test_point_3_places_are_shared_and_arms_published_together_show_the_same_cohort(api, make):
    arms = Arms(make, 2, 1)
    arms.mark(first=80, step=0)
    paper = arms.papers["FIRST", arms.subjects[0]["id"]]["id"]
    last = arms.students[arms.second][1]
    (entry,) = api.ok(api.get("/gradebooks", query_string={"assessment": paper, "student": last}))["data"]
    api.ok(api.patch(f"/gradebooks/{entry['id']}", {"score": 50}))
    arms.published()

    cards = frozen(api)

    places = {
        student: (card["cohort_figures"]["position"], card["cohort_figures"]["tied"])
        for student, card in cards.items()
    }
    assert places.pop(last) == ("4", False)
    assert set(places.values()) == {("1", True)}
    of_cohort = {(card["cohort_figures"]["of"], card["cohort_figures"]["average"]) for card in cards.values()}
    assert of_cohort == {("4", "72.50")}
    of_arm = {
        (card["batch"], card["number_in_class"], card["batch_figures"]["of"]) for card in cards.values()
    }
    assert of_arm == {(arms.first, "2", "2"), (arms.second, "2", "2")}
