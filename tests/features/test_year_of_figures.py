"""A year of a school by its roles, from no student to the next session: each figure is computed anew in fractions."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from tests.features.results.figures.oracle import TERMS, half_up
from tests.features.test_year_by_roles import Person
from tests.features.year_school import PAPERS, RULE, RULES, Year, YearClass
from tests.sheets.libreoffice import SOFFICE, all_saved_by_libreoffice

PLACE = ("position", "tied", "of")
OF_CLASS = ("average", "lowest", "highest")


def compare(answer: Any, expected: Any, at: str) -> int:
    """Assert that all that is expected was found; returns how many figures that were."""
    if isinstance(expected, dict):
        assert expected.keys() <= answer.keys(), at
        return sum(compare(answer[name], part, f"{at}, {name}") for name, part in expected.items())
    if isinstance(expected, list):
        assert len(answer) == len(expected), at
        pairs = enumerate(zip(answer, expected, strict=True))
        return sum(compare(part, other, f"{at}, {number}") for number, (part, other) in pairs)
    is_figure = isinstance(expected, Decimal | int) and not isinstance(expected, bool)
    if is_figure and isinstance(answer, str):
        answer = Decimal(answer)
    assert answer == expected, f"{at}: {answer} for {expected}"
    return int(is_figure)


def exact(person: Person, path: str, body: Any = None) -> Any:
    """GET an answer, or POST a body, and read its figures as they are."""
    answer = person.send("GET" if body is None else "POST", path, body)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return json.loads(answer.data, parse_float=Decimal)


# A student


def result_of(answer: dict[str, Any]) -> dict[str, Any]:
    """A term result, its subjects by id."""
    cumulative = answer["cumulative"]
    return {
        **answer,
        "subjects": {subject["subject"]["id"]: subject for subject in answer["subjects"]},
        "cumulative": {
            **cumulative,
            "subjects": {subject["base"]: subject for subject in cumulative["subjects"]},
        },
    }


def card_of(class_: YearClass, term: str, result: dict[str, Any]) -> dict[str, Any]:
    """The figures of a card's document, its subjects by base."""
    base_of, cumulative = class_.noted.base_of, result["cumulative"]
    session = cumulative["subjects"]
    subjects = {base_of[id]: subject_of_card(subject) for id, subject in result["subjects"].items()}
    if term != TERMS[0]:
        for base, subject in session.items():
            of_session = {"terms": subject["terms"], "cumulative": subject["percent"]}
            subjects[base] = {**subjects.get(base, {"percent": None, "marks": None}), **of_session}
    totals = ("total", "obtainable", "average", "grade", "remark", "passed", "failed")
    so_far = {name: cumulative[name] for name in ("terms", "average", "grade", "remark")}
    return {
        "subjects": subjects,
        "totals": {name: result[name] for name in totals},
        "figures": places_of(result),
        "cumulative": None if term == TERMS[0] else {**so_far, "figures": places_of(cumulative)},
    }


def subject_of_card(subject: dict[str, Any]) -> dict[str, Any]:
    marks = {mark["category"]: mark for mark in subject["marks"]}
    excused = {"score": None, "points": None, "mark": None}
    return {
        "marks": [
            marks.get(category, {"category": category, **excused, "weight": RULES.weights[category]})
            for category, *_ in PAPERS
        ],
        **{name: subject[name] for name in ("percent", "grade", "remark")},
        **{name: subject["batch"][name] for name in PLACE},
        "class": {name: subject["batch"][name] for name in OF_CLASS},
    }


def places_of(result: dict[str, Any]) -> dict[str, Any]:
    """The places of a result as a card has them: that in all arms where there are others."""
    in_arm, in_all = (
        {name: result[of][name] for name in PLACE} for of in ("batch_figures", "cohort_figures")
    )
    return {"batch": in_arm, "cohort": None if in_arm["of"] == in_all["of"] else in_all}


def adds_up(card: dict[str, Any]) -> int:
    """Assert that a card's own figures follow from one another, each by one rounding; returns how many do."""
    percents, sessions, figures = [], [], 2
    for subject in card["subjects"]:
        if subject["percent"] is not None:
            shown = [mark for mark in subject["marks"] if mark["mark"] is not None]
            marks, weights = (sum(Fraction(mark[name]) for mark in shown) for name in ("mark", "weight"))
            percents.append(Fraction(subject["percent"]))
            assert percents[-1] == Fraction(half_up(100 * marks / weights, 2))
            figures += 1
        if subject["terms"] is not None:
            of_terms = [Fraction(percent) for percent in subject["terms"].values() if percent is not None]
            assert Fraction(subject["cumulative"]) == Fraction(half_up(sum(of_terms) / len(of_terms), 2))
            sessions += [Fraction(subject["cumulative"])] if subject["percent"] is not None else []
            figures += 1
    total, average = card["totals"]["total"], card["totals"]["average"]
    assert total == sum(percents)
    assert average == half_up(Fraction(total) / len(percents), 2)
    if card["cumulative"] is not None:
        assert card["cumulative"]["average"] == half_up(sum(sessions) / len(sessions), 2)
        figures += 1
    return figures


def check_cards(year: Year, class_: YearClass, since: str = TERMS[0]) -> Counter[str]:
    """Compare the published cards of a class, from a term on, with figures computed anew; count the figures."""
    seen: Counter[str] = Counter()
    for term, expected in year.published_terms(class_):
        if TERMS.index(term) < TERMS.index(since):
            continue
        for student, result in expected.items():
            at = f"{term}, {year.numbers[student]}"
            query = f"session={year.session}&term={term}"
            shown = exact(year.principal, f"/students/{student}/results?{query}")
            assert shown["batch"] == class_.of_terms[term].batch_of[student]
            assert shown["subjects"] == [
                subject for subject in shown["subjects"] if subject["subject"]["id"] in result["subjects"]
            ]
            seen["results"] += compare(result_of(shown), result, at)
            card = exact(year.principal, f"/students/{student}/report-card?format=json&{query}")
            seen["adding up"] += adds_up(card)
            card_by_base = {**card, "subjects": {subject["base"]: subject for subject in card["subjects"]}}
            document = card_of(class_, term, result)
            assert card_by_base["subjects"].keys() == document["subjects"].keys()
            seen["cards"] += compare(card_by_base, document, f"{at}, card")
        for arm in {*class_.of_terms[term].batch_of.values()}:
            of_arm = {
                student: expected[student]
                for student, batch in class_.of_terms[term].batch_of.items()
                if batch == arm
            }
            sheet = exact(year.principal, f"/broadsheets?batch={arm}&term={term}")
            seen["broadsheets"] += check_broadsheet(sheet, term_sheet(of_arm), term)
            if term == [*class_.of_terms][-1]:
                sheet = exact(year.principal, f"/broadsheets?batch={arm}&session={year.session}")
                seen["broadsheets"] += check_broadsheet(sheet, session_sheet(class_, of_arm), "session")
    return seen


# A broadsheet


def check_broadsheet(sheet: dict[str, Any], expected: dict[str, Any], at: str) -> int:
    """Compare a broadsheet, whose students are by position."""
    positions = [row["position"] for row in sheet["students"]]
    assert positions == sorted(positions)
    students = {row["student"]["id"]: row for row in sheet["students"]}
    subjects = {subject["id"]: subject for subject in sheet["subjects"]}
    assert (students.keys(), subjects.keys()) == (expected["students"].keys(), expected["subjects"].keys())
    return compare({**sheet, "students": students, "subjects": subjects}, expected, f"broadsheet, {at}")


def term_sheet(of_arm: dict[str, Any]) -> dict[str, Any]:
    """The broadsheet of an arm in a term."""
    students = {
        student: {
            "results": {id: cell_of(subject) for id, subject in result["subjects"].items()},
            "total": result["total"],
            "graded": len(result["subjects"]),
            **row_of(result, result["status"]),
        }
        for student, result in of_arm.items()
    }  # fmt: skip
    subjects: dict[str, list[dict[str, Any]]] = {}
    for result in of_arm.values():
        for id, subject in result["subjects"].items():
            subjects.setdefault(id, []).append(subject)
    return {
        "students": students,
        "subjects": {
            id: {
                "takers": len(some),
                "graded": len(some),
                **{name: some[0]["batch"][name] for name in OF_CLASS},
            }
            for id, some in subjects.items()
        },
        "summary": summary_of(of_arm.values()),
    }


def cell_of(subject: dict[str, Any]) -> dict[str, Any]:
    cell = {name: subject[name] for name in ("percent", "grade", "status")}
    return {**cell, "position": subject["batch"]["position"]}


def session_sheet(class_: YearClass, of_arm: dict[str, Any]) -> dict[str, Any]:
    """The broadsheet of an arm in the session."""
    id_of = {base: id for id, base in class_.noted.base_of.items()}
    students: dict[str, dict[str, Any]] = {}
    percents: dict[str, list[Decimal]] = {}
    for student, result in of_arm.items():
        cumulative = result["cumulative"]
        of_session = cumulative["subjects"]
        for base, subject in of_session.items():
            percents.setdefault(id_of[base], []).append(subject["percent"])
        averaged = [of_session[class_.noted.base_of[id]]["percent"] for id in result["subjects"]]
        students[student] = {
            "results": {
                id_of[base]: {"percent": subject["percent"], "grade": subject["grade"], "position": None}
                for base, subject in of_session.items()
            },
            "total": sum(averaged),
            "graded": len(averaged),
            **row_of(cumulative, result["status"]),
        }  # fmt: skip
    subjects = {
        id: {
            "takers": len(some),
            "graded": len(some),
            "average": half_up(sum(map(Fraction, some)) / len(some), 2),
            "lowest": min(some),
            "highest": max(some),
        }
        for id, some in percents.items()
    }
    summary = summary_of([result["cumulative"] for result in of_arm.values()])
    return {"students": students, "subjects": subjects, "summary": summary}


def row_of(result: dict[str, Any], status: str) -> dict[str, Any]:
    of_arm = result["batch_figures"]
    return {
        **{name: result[name] for name in ("average", "grade")},
        "position": of_arm["position"],
        "tied": of_arm["tied"],
        "cohort_position": result["cohort_figures"]["position"],
        "status": status,
    }


def summary_of(results: Any) -> dict[str, Any]:
    averages = [result["average"] for result in results]
    return {
        "students": len(averages),
        "ranked": len(averages),
        "average": half_up(sum(map(Fraction, averages)) / len(averages), 2),
        "highest": max(averages),
        "lowest": min(averages),
        "passed": sum(average >= RULES.pass_mark for average in averages),
    }


# A promotion


def decided(year: Year, class_: YearClass, *, last_class: bool) -> dict[str, dict[str, Any]]:
    """The outcome of each student by the rule, of the figures computed anew."""
    latest: dict[str, dict[str, Any]] = {}
    places: dict[str, str] = {}
    for term, results in year.published_terms(class_):
        latest |= results
        places |= class_.of_terms[term].batch_of
    expected = {
        student: {
            "from_batch": places[student],
            "average": result["cumulative"]["average"],
            "terms": result["cumulative"]["terms"],
            **verdict(year, class_, result, last_class=last_class),
        }
        for student, result in latest.items()
    }
    for student in year.left & expected.keys():
        expected[student] |= {"outcome": "LEFT_OUT", "to_batch": None}
    return expected


def verdict(year: Year, class_: YearClass, result: dict[str, Any], *, last_class: bool) -> dict[str, Any]:
    rule = {"minimum_average": 40, "minimum_terms": 1, "maximum_failed": None} if last_class else RULE
    session = result["cumulative"]
    percents = {
        class_.noted.base_of[id]: session["subjects"][class_.noted.base_of[id]]["percent"]
        for id in result["subjects"]
    }
    against = []
    if session["average"] < rule["minimum_average"]:
        against.append("AVERAGE")
    if not last_class and percents.get(year.bases["Mathematics"], 0) < rule["required_percent"]:
        against.append("SUBJECT")
    failed = sum(percent < RULES.pass_mark for percent in percents.values())
    if rule["maximum_failed"] is not None and failed > rule["maximum_failed"]:
        against.append("FAILED")
    if session["terms"] < rule["minimum_terms"]:
        against.append("TERMS")
    if not against:
        outcome = "GRADUATED" if last_class else "PROMOTED"
    elif not last_class and session["average"] >= rule["trial_average"]:
        outcome = "PROMOTED_ON_TRIAL"
    else:
        outcome = "REPEATED"
    places = {"PROMOTED": year.above, "PROMOTED_ON_TRIAL": year.above, "GRADUATED": None}
    places["REPEATED"] = year.once_more if last_class else year.again
    return {
        "reasons": [{"code": code} for code in against],
        "by_rule": outcome,
        "outcome": outcome,
        "to_batch": places[outcome],
    }


def check_promotion(promotion: dict[str, Any], expected: dict[str, dict[str, Any]]) -> int:
    decisions = {decision["student"]["id"]: decision for decision in promotion["decisions"]}
    assert decisions.keys() == expected.keys()
    outcomes = Counter(decision["outcome"] for decision in expected.values())
    assert promotion["counts"] == {name: outcomes[name] for name in promotion["counts"]}
    return compare(decisions, expected, "promotion")


# The year


def life_of(year: Year) -> Counter[str]:
    """Live the year of a school, and compare all that it publishes; count the figures."""
    seen = first_term(year) + second_term(year) + third_term(year)
    # Published cards stay.
    return seen + check_cards(year, year.lower) + check_cards(year, year.upper)


def first_term(year: Year) -> Counter[str]:
    """French is entered for the lower class by mistake, published with it, and taken back."""
    lower, upper = year.lower, year.upper
    year.teach_too(lower, "French")
    year.hold_term("FIRST")
    seen = check_cards(year, lower) + check_cards(year, upper)
    year.take_back(lower, "FIRST", "French")
    return seen + check_cards(year, lower)


def second_term(year: Year) -> Counter[str]:
    """One has left, one comes late, and one moves to the other arm; then a mark of the first term was wrong."""
    lower, upper = year.lower, year.upper
    first, second = lower.arms
    year.leave(lower, lower.students(first)[-1])
    year.admit(lower, second)
    mover = lower.students(first)[-1]
    year.hold_term("SECOND", marked=lambda: year.place(lower, second, mover))
    seen = check_cards(year, lower, "SECOND") + check_cards(year, upper, "SECOND")
    year.correct(lower, "FIRST", "Mathematics", "EXAM", lower.students(first)[0], Decimal("69.5"))
    return seen + check_cards(year, lower)


def third_term(year: Year) -> Counter[str]:
    """The lower class has another arm, and one has dropped the elective; then one was ill who had a score."""
    lower, upper = year.lower, year.upper
    first, second = lower.arms
    third = year.add_arm(lower, "C")
    year.place(lower, third, *lower.students(first)[1::2], lower.students(second)[0])
    year.drop(lower, second)
    year.hold_term("THIRD")
    seen = check_cards(year, lower, "THIRD") + check_cards(year, upper, "THIRD")
    year.correct(lower, "THIRD", "Mathematics", "CA2", lower.students(third)[0], "EXCUSED")
    return seen + check_cards(year, lower, "THIRD")


def promote(year: Year) -> Counter[str]:
    """End the session, and begin the next: one decision is amended. Count the figures."""
    lower, upper = year.lower, year.upper
    principal = year.principal
    moves = [{"batch": arm, "promote_to": year.above, "repeat_in": year.again} for arm in lower.arms]
    moves += [{"batch": arm, "promote_to": None, "repeat_in": year.once_more} for arm in upper.arms]
    body = {"session": year.session, "moves": moves, "overrides": []}
    expected = decided(year, lower, last_class=False) | decided(year, upper, last_class=True)
    rehearsed = exact(principal, "/promotions?dry_run=true", body)
    figures = check_promotion(rehearsed, expected)
    promotion = exact(principal, "/promotions", {**body, "fingerprint": rehearsed["fingerprint"]})
    figures += check_promotion(promotion, expected)

    amended = next(student for student in lower.noted.batch_of if expected[student]["outcome"] == "REPEATED")
    change = {"outcome": "PROMOTED_ON_TRIAL", "batch": year.above, "reason": "The staff met again"}
    path = f"/promotions/{promotion['id']}"
    principal("PATCH", f"{path}/decisions/{amended}", change)
    expected[amended] |= {"outcome": "PROMOTED_ON_TRIAL", "to_batch": year.above}
    figures += check_promotion(exact(principal, path), expected)

    for term in TERMS:
        named = {"term": term, "display_name": f"{term.title()} Term"}
        principal("POST", "/terms", {"session_id": year.following, **named})
    principal("PATCH", f"/sessions/{year.following}", {"current": True})
    for cohort in (year.above, year.again, year.once_more):
        there = {student["id"] for student in year.registrar("GET", f"/cohorts/{cohort}/students")}
        assert there == {student for student, decision in expected.items() if decision["to_batch"] == cohort}
    return Counter({"promotions": figures})


def read_by_a_parent(mother: Person, child: str) -> tuple[Any, list[Any], list[Any]]:
    """A mother's readings of a child: all cards by one request, and each term's by another; and the outcomes there."""
    listed = exact(mother, f"/students/{child}/report-cards")
    cards = [exact(mother, f"/students/{child}/report-card?format=json&term={term}") for term in TERMS]
    return listed, cards, [card.pop("outcome") for card in cards]


SIZES = [
    pytest.param(4, 2, False, 19_000, id="a few"),
    pytest.param(12, 6, True, 150_000, id="48 students", marks=[pytest.mark.release, pytest.mark.program]),
]


@pytest.mark.parametrize(("students", "subjects", "through_libreoffice", "figures"), SIZES)
def test_every_figure_of_a_year_equals_an_exact_second_computing(
    api, tmp_path, students, subjects, through_libreoffice, figures
):
    if through_libreoffice and SOFFICE is None:
        pytest.skip("LibreOffice is not installed")
    settle = partial(all_saved_by_libreoffice, folder=tmp_path) if through_libreoffice else list
    year = Year(api, students, subjects, settle)

    seen = life_of(year)
    child = year.lower.students(year.lower.arms[0])[0]
    mother = year.mother_of(child)
    *before, outcomes = read_by_a_parent(mother, child)
    seen += promote(year)
    *since, outcomes_since = read_by_a_parent(mother, child)

    # On the day of promotion the same addresses answer the same cards; the outcome is on the last one.
    assert since == before
    assert (outcomes, outcomes_since[:2]) == ([None] * 3, [None] * 2)
    assert outcomes_since[2] is not None

    # A sheet of each subject and arm there and back: of French in two arms, and of all in the third arm, too.
    of_term = 4 * subjects
    ways = [[year.sheets[term, way] for term in TERMS] for way in ("down", "up")]
    assert ways == [[of_term + 2, of_term, of_term + subjects]] * 2
    assert sum(seen.values()) > figures, seen
