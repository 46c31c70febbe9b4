"""Classes made at random, without a database: the figures always equal an exact second computing."""

from __future__ import annotations

from collections import Counter, defaultdict
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import pytest

from school_service.features.results.computing.compute import (
    BROUGHT_IN,
    OF_A_TERM,
    Band,
    BroughtIn,
    Computed,
    Earlier,
    Entered,
    Paper,
    Rules,
    TaughtSubject,
    compute,
)
from tests.features.results.figures import oracle
from tests.features.results.figures.classes import LEVEL, RandomClass
from tests.features.results.figures.oracle import TERMS, SampleClass, term_results

PEOPLE = [str(UUID(int=number, version=4)) for number in range(45)]
# The least cases of each kind in results of 1000 classes: a rule that no class comes near is not tested.
SEEN_AT_LEAST = {
    "COMPLETE": 4000, "INCOMPLETE": 400, "TOO_FEW": 200, "NONE": 60, "tied": 400, "brought in": 100,
    "earlier terms": 3000, "CATEGORIES": 150, "two batches": 150, "no grade": 100, "not ranked in session": 200,
    "MARKS": 50, "less than all weights": 100,
}  # fmt: skip


@pytest.mark.parametrize(
    "classes",
    [pytest.param(50, id="50 classes"), pytest.param(10_000, id="10,000", marks=pytest.mark.release)],
)
def test_the_figures_equal_an_exact_second_computing(classes):
    seen: Counter[str] = Counter()
    for number in range(classes):
        _compare(RandomClass(number, PEOPLE), seen)
    rare = {what: seen[what] for what, least in SEEN_AT_LEAST.items() if seen[what] < least * classes / 1000}
    assert rare == {}


def _compare(drawn: RandomClass, seen: Counter[str]) -> None:
    """Compute three terms of a class in both ways, each resting on those before as they came out."""
    sample, published = drawn.sample, {}
    seen[sample.rules.weighting] += 1
    seen["MARKS"] += (sample.rules.weighting, sample.rules.percent_from) == ("CATEGORIES", "MARKS")
    seen["two batches"] += len(drawn.batches) - 1
    for term in TERMS:
        drawn.draw(term)
        expected = term_results(sample, term, published)

        results = _as_expected(sample, compute(entered(sample, term, published)))

        for student, result in expected.items():
            assert results[student] == _as_written(result), f"class {drawn.number}, {term}, student {student}"
            _count(result, seen)
            if sample.rules.percent_from == "MARKS":
                _add_up(sample.rules, results[student], seen)
        for student, result in expected.items():
            percents = {
                sample.base_of[subject]: figures["percent"]
                for subject, figures in result["subjects"].items()
                if figures["percent"] is not None
            }
            published.setdefault(student, {})[term] = percents
        drawn.drop()
        drawn.move()


def _add_up(rules: oracle.Rules, card: dict[str, Any], seen: Counter[str]) -> None:
    """Hold a card's own figures, as they are printed: marks, percent, total, average, each by one rounding."""
    percents = [Fraction(row["percent"]) for row in card["subjects"].values() if row["percent"] is not None]
    for row in card["subjects"].values():
        if row["marks"] and row["percent"] is not None:
            marks, weights = (
                sum(Fraction(mark[name]) for mark in row["marks"]) for name in ("mark", "weight")
            )
            assert (marks, weights) == (Fraction(row["marks_sum"]), Fraction(row["weights_present"]))
            assert row["percent"] == str(
                oracle.half_up(min(100 * marks / weights, Fraction(100)), rules.places)
            )
            seen["less than all weights"] += weights < 100
    assert Fraction(card["total"]) == sum(percents)
    if percents:
        mean = Fraction(card["total"]) / len(percents)
        assert card["average"] == str(oracle.half_up(mean, rules.places))


def entered(sample: SampleClass, term: str, published: oracle.Percents) -> Entered:
    """Give the entries of a class in a term as the service loads them; papers that do not count are not loaded."""
    rules, marks = _rules(sample.rules), _marks(sample)
    return Entered(
        term=term,
        rules=rules,
        batch_of=sample.batch_of,
        subjects=[
            TaughtSubject(
                subject,
                base,
                [
                    Paper(paper.id, paper.category, "T", paper.points, True, 1, marks[paper.id])
                    for paper in sample.papers
                    if (paper.subject, paper.term) == (subject, term)
                    and paper.counts
                    and paper.category in OF_A_TERM
                    and rules.counts(paper.category)
                ],
                [student for student, taken in sorted(sample.taken) if taken == subject],
            )
            for subject, base in sample.base_of.items()
        ],
        published=[
            Earlier(student, base, name, percent)
            for student, terms in published.items()
            if student in sample.batch_of
            for name, percents in terms.items()
            for base, percent in percents.items()
        ],
        brought_in=[*_brought_in(sample, TERMS[: TERMS.index(term) + 1])],
    )


def _rules(rules: oracle.Rules) -> Rules:
    weights = None
    if rules.weighting == "CATEGORIES":
        weights = {category: int(weight * 100) for category, weight in rules.weights.items()}
    return Rules(
        level=LEVEL,
        places=rules.places,
        pass_mark=rules.pass_mark,
        minimum_subjects=rules.minimum_subjects,
        minimum_terms=rules.minimum_terms,
        rank_by=rules.rank_by,
        weights=weights,
        term_weights=dict(zip(TERMS, rules.term_weights, strict=True)),
        bands=sorted(Band(*band) for band in rules.bands),
        percent_from=rules.percent_from,
    )


def _marks(sample: SampleClass) -> dict[str, dict[str, int | str]]:
    marks: dict[str, dict[str, int | str]] = defaultdict(dict)
    for (paper, student), status in sample.absences.items():
        marks[paper][student] = status
    for (paper, student), score in sample.scores.items():
        marks[paper][student] = int(score * 100)
    return marks


def _brought_in(sample: SampleClass, terms: tuple[str, ...]) -> Any:
    sums: dict[tuple[str, str, str], list[Decimal]] = {}
    brought = {
        paper.id: paper for paper in sample.papers if paper.counts and BROUGHT_IN.get(paper.category) in terms
    }
    for (of, student), score in sample.scores.items():
        paper = brought.get(of)
        if paper and (student, paper.subject) in sample.taken and student in sample.batch_of:
            key = (student, sample.base_of[paper.subject], BROUGHT_IN[paper.category])
            of_key = sums.setdefault(key, [Decimal(0), Decimal(0)])
            of_key[0] += score
            of_key[1] += paper.points
    return (BroughtIn(*key, *of_key) for key, of_key in sums.items())


def _as_expected(sample: SampleClass, computed: Computed) -> dict[str, Any]:
    """Write the computed figures as the second computing does, by student."""
    return {student: _as_written(_result(computed, student)) for student in sample.batch_of}


def _result(computed: Computed, student: str) -> dict[str, Any]:
    return {
        "subjects": {
            subject: results[student] for subject, results in computed.subjects.items() if student in results
        },
        **computed.terms[student],
        "cumulative": {
            **computed.sessions[student],
            "subjects": {
                base: {"terms": dict(figures.terms), "percent": figures.percent, "grade": figures.grade}
                for base, figures in computed.bases[student].items()
            },
        },
    }


def _as_written(value: Any) -> Any:
    """Numbers as they are written: 76.5 and 76.50 are not the same, and no number is a float."""
    assert not isinstance(value, float)
    if isinstance(value, dict):
        return {key: _as_written(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_as_written(element) for element in value]
    return value if value is None or isinstance(value, bool) else str(value)


def _count(result: dict[str, Any], seen: Counter[str]) -> None:
    cumulative = result["cumulative"]
    seen[result["status"]] += 1
    seen["tied"] += result["batch_figures"]["tied"]
    seen["no grade"] += result["average"] is not None and result["grade"] is None
    seen["earlier terms"] += cumulative["terms"] > 1
    with_percent = [
        sum(percent is not None for percent in subject["terms"].values())
        for subject in cumulative["subjects"].values()
    ]
    seen["brought in"] += max(with_percent, default=0) > cumulative["terms"]
    seen["not ranked in session"] += (
        result["status"] == "COMPLETE" and cumulative["cohort_figures"]["position"] is None
    )
