"""Compute the results of a class in a term from its entries: a pure function of values, exact, without a float.

`compute` gives the subject results, term results and session results of everyone on the roster: positions and class
figures need the whole cohort. Each figure is rounded once, half up, and a figure derived from another is derived from
its written form: a Decimal keeps its places, as PostgreSQL's numeric does. docs/rules/results.md has the rules in
words.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache, cached_property, partial
from itertools import groupby
from typing import Any, NamedTuple, TypedDict

from school_service.features.results.models import COMPLETE, GRADED, INCOMPLETE, NONE, TOO_FEW
from school_service.features.school.models import TERMS
from school_service.features.scores.models import EXACT, EXCUSED, FULL, MARKS, TOTAL

OF_A_TERM = ("CA1", "CA2", "CA3", "EXAM")
"""The categories of assessments that count in a term."""

BROUGHT_IN = {f"{term}_TERM": term for term in TERMS}
"""The categories for the result of a term in another school, each with the term."""

AVERAGE_PLACES = 2


Mark = int | str
"""The mark of a student in a paper: a score in hundredths, or an absence, ABSENT or EXCUSED."""

_Papers = Sequence[tuple[str, Sequence[tuple[int, Mapping[str, Mark]]]]]
"""Papers by category, each its points in hundredths and its marks."""


class Band(NamedTuple):
    """A grade band: a percent that reaches its threshold, and no higher one, has the grade."""

    threshold: Decimal
    grade: str
    remark: str


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings for the results of a level.

    `weights` are those of the categories in hundredths, None if points count as they are; `term_weights` those of the
    terms by name; `bands` come from low to high. `percent_from`: EXACT computes with fractions, MARKS with the figures
    as they are printed.
    """

    level: str
    places: int
    pass_mark: Decimal
    minimum_subjects: int
    minimum_terms: int
    rank_by: str
    weights: Mapping[str, int] | None
    term_weights: Mapping[str, Decimal]
    bands: Sequence[Band]
    percent_from: str = EXACT

    @property
    def average_places(self) -> int:
        """The places of averages."""
        return average_places(self.percent_from, self.places)

    def counts(self, category: str) -> bool:
        """Tell whether papers of a category count in their term."""
        return self.weights is None or self.weights.get(category, 0) > 0

    def band(self, percent: Decimal | None) -> tuple[str | None, str | None]:
        """Find grade and remark of a percent: of the band with the highest threshold not above it."""
        if percent is None:
            return None, None
        place = bisect_right(self.bands, percent, key=lambda band: band.threshold)
        return self.bands[place - 1][1:] if place else (None, None)


def average_places(percent_from: str, places: int) -> int:
    """Give the places of averages: under MARKS the places of percents, else two."""
    return places if percent_from == MARKS else AVERAGE_PLACES


@dataclass(frozen=True)
class Paper:
    """An assessment that counts, with its marks by student: a score or an absence.

    `place` is its own by abbreviation.
    """

    id: str
    category: str
    abbreviation: str
    total_points: Decimal
    publish: bool
    place: int
    marks: dict[str, Mark] = field(default_factory=dict)

    @cached_property
    def points(self) -> int:
        """The total points in hundredths."""
        return int(self.total_points * 100)


class TaughtSubject(NamedTuple):
    """A subject of a cohort: its id there and the base subject's, its papers in order, and its takers."""

    id: str
    base: str
    papers: Sequence[Paper]
    takers: Sequence[str]


class Earlier(NamedTuple):
    """A percent of a student in a base subject and a term, as it was published before."""

    student: str
    base: str
    term: str
    percent: Decimal | None


class BroughtIn(NamedTuple):
    """The result of a student in another school for a term: the sums of scores and of points."""

    student: str
    base: str
    term: str
    score: Decimal
    points: Decimal


@dataclass(frozen=True, slots=True)
class Entered:
    """All entries for the results of a class in a term; `batch_of` has everyone on the roster."""

    term: str
    rules: Rules
    batch_of: Mapping[str, str]
    subjects: Sequence[TaughtSubject]
    published: Sequence[Earlier] = ()
    brought_in: Sequence[BroughtIn] = ()


class Standing(TypedDict):
    """A position in a batch or a cohort, with the figures of the class; the position is null if unranked."""

    position: int | None
    tied: bool
    of: int | None
    average: Decimal | None
    lowest: Decimal | None
    highest: Decimal | None


Result = dict[str, Any]
"""The result of a student in a subject, a term or a session: the members on a card, in their order.

`percent` of a subject is null while a mark is blank; `average` of a term is null without a graded subject.
"""


class SessionSubject(NamedTuple):
    """The percents of a base subject by term, and the session's."""

    terms: Mapping[str, Decimal | None]
    percent: Decimal | None
    grade: str | None


@dataclass(frozen=True, slots=True)
class Computed:
    """The results of everyone on the roster, by student; those of subjects by subject and student.

    `bases` has the base subjects of a student's session.
    """

    subjects: Mapping[str, Mapping[str, Result]]
    terms: Mapping[str, Result]
    sessions: Mapping[str, Result]
    bases: Mapping[str, Mapping[str, SessionSubject]]


def compute(entered: Entered) -> Computed:
    """Compute subject results, term results and session results."""
    subjects = subject_results(entered)
    terms = term_results(entered, subjects)
    return Computed(subjects, terms, *_session_results(entered, subjects, terms))


def subject_results(entered: Entered) -> dict[str, dict[str, Result]]:
    """Compute the subject results, by subject and student; a student excused from all papers has no result."""
    figures = cache(partial(_figures, entered.rules))
    of_subjects: dict[str, dict[str, Result]] = {}
    for subject in entered.subjects:
        papers = _by_category(entered.rules, subject.papers)
        results = {
            student: result
            for student in subject.takers
            if student in entered.batch_of
            and (result := _subject_result(figures, papers, student)) is not None
        }
        percents = {student: result["percent"] for student, result in results.items()}
        _rank(entered, results, percents, percents, ("batch", "cohort"))
        of_subjects[subject.id] = results
    return of_subjects


def blanks(entered: Entered, subject: TaughtSubject) -> Iterable[tuple[Paper, str]]:
    """Find the blanks of a subject: each paper with a taker on the roster without a mark in it."""
    takers = [student for student in subject.takers if student in entered.batch_of]
    return ((paper, student) for paper in subject.papers for student in takers if student not in paper.marks)


def _by_category(rules: Rules, papers: Sequence[Paper]) -> _Papers:
    """Give papers by their category; all of them together if points count as they are."""
    if rules.weights is None:
        return [("", [(paper.points, paper.marks) for paper in papers])]
    by_category: dict[str, list[tuple[int, Mapping[str, Mark]]]] = {}
    for paper in papers:
        by_category.setdefault(paper.category, []).append((paper.points, paper.marks))
    return [(category, by_category[category]) for category in OF_A_TERM if category in by_category]


def _subject_result(figures: Callable[..., Result], papers: _Papers, student: str) -> Result | None:
    """Compute a result of papers by their figures; None if all papers are excused."""
    sums: list[tuple[str, int, int]] = []
    is_blank = False
    for category, of_category in papers:
        score, points = 0, 0
        for of_paper, marks in of_category:
            mark = marks.get(student)
            if isinstance(mark, int):
                score, points = score + mark, points + of_paper
            elif mark is None:
                is_blank = True
            elif mark != EXCUSED:
                points += of_paper
        if points:
            sums.append((category, score, points))
    return {**figures(is_blank, *sums)} if sums or is_blank else None


def _figures(rules: Rules, is_blank: bool, *sums: tuple[str, int, int]) -> Result:
    """Give the figures of sums, each a category, score and points in hundredths.

    Each category has a paper that is not excused. There is no percent while a mark is blank. The marks of weighed
    categories are null if points count as they are.
    """
    score, points = sum(part[1] for part in sums), sum(part[2] for part in sums)
    marks = None if rules.weights is None else [_mark(rules.weights, rules.places, *part) for part in sums]
    marks_sum = sum((mark["mark"] for mark in marks), Decimal(0)) if marks else None
    present = sum((mark["weight"] for mark in marks), Decimal(0)) if marks else None
    percent = None
    if is_blank:
        pass
    elif rules.weights is None:
        percent = rounded(100 * score, points, rules.places)
    elif rules.percent_from == MARKS and marks_sum is not None and present is not None:
        percent = rounded(min(100 * marks_sum, FULL * present), present, rules.places)
    else:
        percent = _weighed_percent(rules.weights, sums, rules.places)
    grade, remark = rules.band(percent)
    return {
        "status": INCOMPLETE if percent is None else GRADED,
        "score": in_hundredths(score) if sums else None,
        "points": in_hundredths(points) if sums else None,
        "marks": marks,
        "marks_sum": marks_sum,
        "weights_present": present,
        "percent": percent,
        "grade": grade,
        "remark": remark,
    }


def _mark(weights: Mapping[str, int], places: int, category: str, score: int, points: int) -> dict[str, Any]:
    """Write the mark of a category: its part of the weight, rounded as it is printed."""
    return {
        "category": category,
        "score": in_hundredths(score),
        "points": in_hundredths(points),
        "mark": rounded(weights[category] * score, 100 * points, places),
        "weight": in_hundredths(weights[category]),
    }


def _weighed_percent(
    weights: Mapping[str, int], sums: Iterable[tuple[str, int, int]], places: int
) -> Decimal | None:
    """Weigh categories: the sum of weight by score over points, over the sum of weights, as one fraction."""
    numerator, denominator, of_all = 0, 1, 0
    for category, score, points in sums:
        numerator = numerator * points + weights[category] * score * denominator
        denominator *= points
        of_all += weights[category]
    return rounded(100 * numerator, denominator * of_all, places)


def term_results(entered: Entered, subjects: Mapping[str, Mapping[str, Result]]) -> dict[str, Result]:
    """Compute the term results of subject results, by student."""
    rules = entered.rules
    of_student: dict[str, list[Decimal | None]] = {student: [] for student in entered.batch_of}
    for results in subjects.values():
        for student, result in results.items():
            of_student[student].append(result["percent"])
    by_student = {student: _term_result(rules, percents) for student, percents in of_student.items()}
    complete = {student: result for student, result in by_student.items() if result["status"] == COMPLETE}
    averages = {student: result["average"] for student, result in complete.items()}
    keys = averages
    if rules.rank_by == TOTAL:
        keys = {student: result["total"] for student, result in complete.items()}
    _rank(entered, by_student, keys, averages, _OF_TERM)
    return by_student


_OF_TERM = ("batch_figures", "cohort_figures")


def _term_result(rules: Rules, of_subjects: Iterable[Decimal | None]) -> Result:
    of_all = [*of_subjects]
    percents = [percent for percent in of_all if percent is not None]
    if len(percents) < len(of_all):
        status = INCOMPLETE
    elif not percents:
        status = NONE
    else:
        status = TOO_FEW if len(percents) < rules.minimum_subjects else COMPLETE
    total = sum(percents, Decimal(0))
    average = rounded(total, len(percents), rules.average_places)
    passed = sum(percent >= rules.pass_mark for percent in percents)
    grade, remark = rules.band(average)
    return {
        "status": status,
        "total": total,
        "obtainable": 100 * len(percents),
        "average": average,
        "grade": grade,
        "remark": remark,
        "passed": passed,
        "failed": len(percents) - passed,
    }


def _session_results(
    entered: Entered, subjects: Mapping[str, Mapping[str, Result]], terms: Mapping[str, Result]
) -> tuple[dict[str, Result], dict[str, dict[str, SessionSubject]]]:
    percents, own_terms = _percents_of_session(entered, subjects)
    latest: dict[str, set[str]] = {student: set() for student in terms}
    for subject in entered.subjects:
        for student in subjects[subject.id]:
            latest[student].add(subject.base)
    weighed = cache(partial(_session_subject, entered.rules))
    results: dict[str, Result] = {}
    bases: dict[str, dict[str, SessionSubject]] = {}
    keys: dict[str, Decimal] = {}
    for student, by_base in percents.items():
        bases[student] = {base: weighed(*of_terms) for base, of_terms in by_base.items()}
        averaged = [
            result.percent
            for base, result in bases[student].items()
            if result.percent is not None and base in latest[student]
        ]
        average = rounded(sum(averaged, Decimal(0)), len(averaged), entered.rules.average_places)
        grade, remark = entered.rules.band(average)
        number = len(own_terms[student])
        results[student] = {"terms": number, "average": average, "grade": grade, "remark": remark}
        is_ranked = terms[student]["status"] == COMPLETE and number >= entered.rules.minimum_terms
        if is_ranked and average is not None:
            keys[student] = average
    _rank(entered, results, keys, keys, _OF_TERM)
    return results, bases


def _percents_of_session(
    entered: Entered, subjects: Mapping[str, Mapping[str, Result]]
) -> tuple[dict[str, dict[str, list[Decimal | None]]], dict[str, set[str]]]:
    """Give the percents of a session's terms, by student and base subject; and the terms graded here.

    A percent graded here counts before one brought in from another school.
    """
    percents: dict[str, dict[str, list[Decimal | None]]] = {student: {} for student in entered.batch_of}
    own: dict[str, set[str]] = {student: set() for student in entered.batch_of}

    def note(student: str, base: str, term: str, percent: Decimal | None) -> None:
        if percent is not None:
            percents[student].setdefault(base, [None] * len(TERMS))[TERMS.index(term)] = percent

    for brought in entered.brought_in:
        percent = rounded(100 * brought.score, brought.points, entered.rules.places)
        note(brought.student, brought.base, brought.term, percent)
    for published in entered.published:
        note(*published)
        if published.percent is not None:
            own[published.student].add(published.term)
    for subject in entered.subjects:
        for student, result in subjects[subject.id].items():
            note(student, subject.base, entered.term, result["percent"])
            if result["percent"] is not None:
                own[student].add(entered.term)
    return percents, own


def _session_subject(rules: Rules, *of_terms: Decimal | None) -> SessionSubject:
    """Weigh the percents of terms, at least one; if all of its terms weigh nothing, they weigh the same."""
    weights = [rules.term_weights[term] for term in TERMS]
    weighed = [
        (weight, percent) for weight, percent in zip(weights, of_terms, strict=True) if percent is not None
    ]
    if not any(weight for weight, _ in weighed):
        weighed = [(Decimal(1), percent) for _, percent in weighed]
    total = sum((weight * percent for weight, percent in weighed), Decimal(0))
    percent = rounded(total, sum((weight for weight, _ in weighed), Decimal(0)), rules.places)
    return SessionSubject(dict(zip(TERMS, of_terms, strict=True)), percent, rules.band(percent)[0])


def _rank(
    entered: Entered,
    results: Mapping[str, Result],
    keys: Mapping[str, Decimal | None],
    figures: Mapping[str, Decimal | None],
    names: tuple[str, str],
) -> None:
    """Give results their places in batch and cohort by a key, the highest first.

    Each place has the class figures of the ranked. `names` are the members of both.
    """
    of_batch, of_cohort = names
    batch_of, places = entered.batch_of, entered.rules.average_places
    ranked = {student: key for student in results if (key := keys.get(student)) is not None}
    in_order = sorted(ranked, key=ranked.__getitem__, reverse=True)
    in_order += [student for student in results if student not in ranked]
    by_batch: dict[str, list[str]] = {}
    for student in in_order:
        by_batch.setdefault(batch_of[student], []).append(student)
    for members in by_batch.values():
        for student, place in zip(members, _places(members, ranked, figures, places), strict=True):
            results[student][of_batch] = place
    for student, place in zip(in_order, _places(in_order, ranked, figures, places), strict=True):
        results[student][of_cohort] = place


def _places(
    in_order: Sequence[str],
    keys: Mapping[str, Decimal],
    figures: Mapping[str, Decimal | None],
    average_places: int,
) -> list[Standing]:
    """Rank in standard competition: students with one key share a position, and the next is behind them all."""
    counted = [figure for student in in_order if (figure := figures.get(student)) is not None]
    unranked = Standing(
        position=None,
        tied=False,
        of=None,
        average=rounded(sum(counted, Decimal(0)), len(counted), average_places),
        lowest=min(counted, default=None),
        highest=max(counted, default=None),
    )
    ranked = [keys[student] for student in in_order if student in keys]
    places: list[Standing] = []
    for _, together in groupby(ranked):
        number = len([*together])
        place: Standing = {**unranked, "position": len(places) + 1, "tied": number > 1, "of": len(ranked)}
        places += [place] * number
    return places + [unranked] * (len(in_order) - len(ranked))


_UNITS = tuple(Decimal(1).scaleb(-places) for places in range(AVERAGE_PLACES + 1))

# More digits than a quotient of scores and points needs, to tell a half from its neighbours.
_EXACT = Context(prec=80, rounding=ROUND_HALF_UP)


def rounded(numerator: Decimal | int, denominator: Decimal | int, places: int) -> Decimal | None:
    """Divide and round half up to `places`; None if the denominator is 0."""
    if not denominator:
        return None
    return _EXACT.quantize(_EXACT.divide(Decimal(numerator), Decimal(denominator)), _UNITS[places])


def in_hundredths(number: int) -> Decimal:
    """Write a whole number of hundredths as points, with two places."""
    return Decimal(number).scaleb(-2)
