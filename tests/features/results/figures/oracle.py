"""The results of a class computed a second time, in exact fractions and plain Python: the service has to answer them.

Written from docs/rules/results.md, student by student, and shares nothing with the service.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

TERMS = ("FIRST", "SECOND", "THIRD")
OF_A_TERM = ("CA1", "CA2", "CA3", "EXAM")
BROUGHT_IN = {"FIRST_TERM": "FIRST", "SECOND_TERM": "SECOND", "THIRD_TERM": "THIRD"}


@dataclass(frozen=True)
class Paper:
    """An assessment of a subject in a term."""

    id: str
    subject: str
    term: str
    category: str
    points: Decimal
    counts: bool = True


@dataclass(frozen=True)
class Rules:
    """The settings of a school, and its grade bands: lowest threshold, letter, remark."""

    weighting: str = "POINTS"
    weights: Mapping[str, Decimal] = field(default_factory=dict)
    places: int = 2
    pass_mark: Decimal = Decimal(40)
    minimum_subjects: int = 1
    minimum_terms: int = 1
    rank_by: str = "AVERAGE"
    percent_from: str = "EXACT"
    term_weights: tuple[Decimal, Decimal, Decimal] = (Decimal(1), Decimal(1), Decimal(1))
    bands: tuple[tuple[Decimal, str, str], ...] = ()

    @property
    def average_places(self) -> int:
        """The places of averages: as of percents where these come from marks."""
        return self.places if self.percent_from == "MARKS" else 2


@dataclass
class SampleClass:
    """A cohort: batches of students, subjects taught and taken, the papers, and the students' scores and absences."""

    rules: Rules
    batch_of: dict[str, str]
    base_of: dict[str, str]
    taken: set[tuple[str, str]]
    papers: list[Paper]
    scores: dict[tuple[str, str], Decimal]
    absences: dict[tuple[str, str], str]


Percents = Mapping[str, Mapping[str, Mapping[str, Decimal]]]
"""The percents of earlier terms as they were published: by student, term and base subject."""


def half_up(number: Fraction, places: int) -> Decimal:
    """Round once, half up."""
    scaled = number * 10**places + Fraction(1, 2)
    return Decimal(scaled.numerator // scaled.denominator).scaleb(-places)


def graded(rules: Rules, percent: Decimal | None) -> tuple[str | None, str | None]:
    """The letter and remark of the band with the highest lower threshold that is not above a percent."""
    fitting = [band for band in rules.bands if percent is not None and band[0] <= percent]
    return max(fitting)[1:] if fitting else (None, None)


def subject_result(sample: SampleClass, student: str, subject: str, term: str) -> dict[str, Any] | None:
    """The result of a student in a subject and term; None where it is no subject of the term for them."""
    rules = sample.rules
    scored: list[tuple[Paper, Fraction]] = []
    excused = blanks = 0
    for paper in sample.papers:
        if (
            (paper.subject, paper.term) != (subject, term)
            or not paper.counts
            or paper.category not in OF_A_TERM
        ):
            continue
        if rules.weighting == "CATEGORIES" and not rules.weights.get(paper.category):
            continue
        mark = sample.scores.get((paper.id, student))
        absence = sample.absences.get((paper.id, student))
        if mark is not None:
            scored.append((paper, Fraction(mark)))
        elif absence == "ABSENT":
            scored.append((paper, Fraction(0)))
        elif absence == "EXCUSED":
            excused += 1
        else:
            blanks += 1
    if not blanks and not scored:
        return None
    score = sum((mark for _, mark in scored), Fraction(0))
    points = sum((Fraction(paper.points) for paper, _ in scored), Fraction(0))
    percent = None if blanks else half_up(_share(rules, scored) * 100, rules.places)
    marks = None if rules.weighting == "POINTS" else _marks(rules, scored)
    present = sum((mark["weight"] for mark in marks or ()), Decimal(0))
    marks_sum = sum((mark["mark"] for mark in marks or ()), Decimal(0))
    if marks and not blanks and rules.percent_from == "MARKS":
        percent = half_up(min(Fraction(marks_sum) * 100 / Fraction(present), Fraction(100)), rules.places)
    grade, remark = graded(rules, percent)
    return {
        "status": "INCOMPLETE" if blanks else "GRADED",
        "score": half_up(score, 2) if scored else None,
        "points": half_up(points, 2) if scored else None,
        "marks": marks,
        "marks_sum": marks_sum if marks else None,
        "weights_present": present if marks else None,
        "percent": percent,
        "grade": grade,
        "remark": remark,
    }


def _marks(rules: Rules, scored: list[tuple[Paper, Fraction]]) -> list[dict[str, Any]]:
    """The value of each category, as it is printed."""
    marks = []
    for category in sorted({paper.category for paper, _ in scored}):
        score = sum((mark for paper, mark in scored if paper.category == category), Fraction(0))
        points = sum(Fraction(paper.points) for paper, _ in scored if paper.category == category)
        weight = Fraction(rules.weights[category])
        marks.append(
            {
                "category": category,
                "score": half_up(score, 2),
                "points": half_up(points, 2),
                "mark": half_up(weight * score / points, rules.places),
                "weight": half_up(weight, 2),
            }
        )
    return marks


def _share(rules: Rules, scored: list[tuple[Paper, Fraction]]) -> Fraction:
    if rules.weighting == "POINTS":
        return sum((mark for _, mark in scored), Fraction(0)) / sum(
            Fraction(paper.points) for paper, _ in scored
        )
    total = weights = Fraction(0)
    for category in {paper.category for paper, _ in scored}:
        weight = Fraction(rules.weights[category])
        of_category = [(paper, mark) for paper, mark in scored if paper.category == category]
        points = sum(Fraction(paper.points) for paper, _ in of_category)
        total += weight * sum((mark for _, mark in of_category), Fraction(0)) / points
        weights += weight
    return total / weights


def ranked(
    keys: Mapping[str, Decimal | None], figures: Mapping[str, Decimal | None], places: int
) -> dict[str, dict[str, Any]]:
    """Rank all students with a key, in standard competition; class figures are of the same people's `figures`."""
    those = {student: key for student, key in keys.items() if key is not None}
    values = [figures[student] for student in those]
    average = half_up(Fraction(sum(map(Fraction, values))) / len(values), places) if values else None
    answer = {}
    for student in keys:
        key = those.get(student)
        answer[student] = {
            "position": None if key is None else 1 + sum(other > key for other in those.values()),
            "tied": key is not None and sum(other == key for other in those.values()) > 1,
            "of": None if key is None else len(those),
            "average": average,
            "lowest": min(values, default=None),
            "highest": max(values, default=None),
        }
    return answer


def ranked_in_both(
    sample: SampleClass,
    students: Iterable[str],
    keys: Mapping[str, Decimal | None],
    figures: Mapping[str, Decimal | None],
) -> dict[str, dict[str, Any]]:
    """Rank in each batch, and in the cohort."""
    students = list(students)
    places = sample.rules.average_places
    in_cohort = ranked({student: keys[student] for student in students}, figures, places)
    in_batch: dict[str, dict[str, Any]] = {}
    for batch in set(sample.batch_of.values()):
        arm = [student for student in students if sample.batch_of[student] == batch]
        in_batch |= ranked({student: keys[student] for student in arm}, figures, places)
    return {student: {"batch": in_batch[student], "cohort": in_cohort[student]} for student in students}


def term_results(sample: SampleClass, term: str, earlier: Percents) -> dict[str, dict[str, Any]]:
    """Compute the term results of everyone in the cohort, by student; `earlier` are the terms published before."""
    rules = sample.rules
    by_subject: dict[str, dict[str, dict[str, Any]]] = {}
    for subject in sample.base_of:
        results = {
            student: subject_result(sample, student, subject, term)
            for student in sample.batch_of
            if (student, subject) in sample.taken
        }
        of_term = {student: result for student, result in results.items() if result is not None}
        percents = {student: result["percent"] for student, result in of_term.items()}
        places = ranked_in_both(sample, of_term, percents, percents)
        for student, result in of_term.items():
            by_subject.setdefault(student, {})[subject] = {**result, **places[student]}

    answer = {student: _term_result(rules, by_subject.get(student, {})) for student in sample.batch_of}
    complete = {student: result["status"] == "COMPLETE" for student, result in answer.items()}
    averages = {student: result["average"] for student, result in answer.items()}
    key = "total" if rules.rank_by == "TOTAL" else "average"
    keys = {student: result[key] if complete[student] else None for student, result in answer.items()}
    for student, places in ranked_in_both(sample, answer, keys, averages).items():
        answer[student] |= {"batch_figures": places["batch"], "cohort_figures": places["cohort"]}

    sessions = {
        student: _session_result(sample, student, term, by_subject.get(student, {}), earlier.get(student, {}))
        for student in answer
    }
    session_keys = {
        student: result["average"] if complete[student] and result["terms"] >= rules.minimum_terms else None
        for student, result in sessions.items()
    }
    session_averages = {student: result["average"] for student, result in sessions.items()}
    for student, places in ranked_in_both(sample, answer, session_keys, session_averages).items():
        sessions[student] |= {"batch_figures": places["batch"], "cohort_figures": places["cohort"]}
        answer[student]["cumulative"] = sessions[student]
    return answer


def _mean(rules: Rules, numbers: list[Decimal]) -> Decimal | None:
    mean = sum(map(Fraction, numbers), Fraction(0)) / max(len(numbers), 1)
    return half_up(mean, rules.average_places) if numbers else None


def _term_result(rules: Rules, subjects: dict[str, dict[str, Any]]) -> dict[str, Any]:
    percents = [subject["percent"] for subject in subjects.values() if subject["percent"] is not None]
    if any(subject["status"] == "INCOMPLETE" for subject in subjects.values()):
        status = "INCOMPLETE"
    elif not percents:
        status = "NONE"
    else:
        status = "COMPLETE" if len(percents) >= rules.minimum_subjects else "TOO_FEW"
    average = _mean(rules, percents)
    grade, remark = graded(rules, average)
    passed = sum(percent >= rules.pass_mark for percent in percents)
    return {
        "subjects": subjects,
        "status": status,
        "total": sum(percents, Decimal(0)),
        "obtainable": 100 * len(percents),
        "average": average,
        "grade": grade,
        "remark": remark,
        "passed": passed,
        "failed": len(percents) - passed,
    }


def _session_result(
    sample: SampleClass,
    student: str,
    term: str,
    subjects: dict[str, dict[str, Any]],
    earlier: Mapping[str, Mapping[str, Decimal]],
) -> dict[str, Any]:
    rules = sample.rules
    this = {
        sample.base_of[subject]: result["percent"]
        for subject, result in subjects.items()
        if result["percent"] is not None
    }
    by_term = {**{name: dict(percents) for name, percents in earlier.items()}, term: this}
    terms = sum(bool(percents) for percents in by_term.values())
    until = TERMS[: TERMS.index(term) + 1]
    for subject, base in sample.base_of.items():
        for category, name in BROUGHT_IN.items():
            brought = _brought_in(sample, student, subject, category)
            if brought is not None and name in until:
                by_term.setdefault(name, {}).setdefault(base, brought)

    weights = dict(zip(TERMS, map(Fraction, rules.term_weights), strict=True))
    shown = {}
    for base in {base for percents in by_term.values() for base in percents}:
        percents = {name: by_term[name][base] for name in TERMS if base in by_term.get(name, {})}
        weighed = {name: weights[name] for name in percents}
        if not any(weighed.values()):
            weighed = dict.fromkeys(percents, Fraction(1))
        mean = sum(weighed[name] * Fraction(percent) for name, percent in percents.items()) / sum(
            weighed.values()
        )
        percent = half_up(mean, rules.places)
        shown[base] = {
            "terms": {name: percents.get(name) for name in TERMS},
            "percent": percent,
            "grade": graded(rules, percent)[0],
        }
    latest = {sample.base_of[subject] for subject in subjects}
    average = _mean(rules, [result["percent"] for base, result in shown.items() if base in latest])
    grade, remark = graded(rules, average)
    return {"terms": terms, "average": average, "grade": grade, "remark": remark, "subjects": shown}


def _brought_in(sample: SampleClass, student: str, subject: str, category: str) -> Decimal | None:
    if (student, subject) not in sample.taken:
        return None
    sums = [
        (Fraction(sample.scores[paper.id, student]), Fraction(paper.points))
        for paper in sample.papers
        if (paper.subject, paper.category) == (subject, category)
        and paper.counts
        and (paper.id, student) in sample.scores
    ]
    if not sums:
        return None
    score, points = (sum(column) for column in zip(*sums, strict=True))
    return half_up(Fraction(100 * score, points), sample.rules.places)
