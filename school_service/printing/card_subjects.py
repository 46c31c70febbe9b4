"""The subjects of a report card's document, and the columns of their table. Figures are as they are printed.

The first layout has figures as they are, and above the marks of a category its weight. The second has all percents with
the places chosen by the school, and beside each weighed mark its part of the weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from school_service.core.texts import position_text
from school_service.printing.wording import NOT_THERE, TERMS, Document, decimals, mark, rounded, text_of

CATEGORIES = {"CA1": "CA1", "CA2": "CA2", "CA3": "CA3", "EXAM": "Exam"}
_ASSESSED = ("CA1", "CA2", "CA3")
_ABSENCES = {"ABSENT": "ABS", "EXCUSED": "EXC"}
_INCOMPLETE = "inc"
_ALL = 100  # weights
_COMES_TO = "\N{RIGHTWARDS ARROW}"
_OF_CLASS = {"average": "Avg.", "lowest": "Low", "highest": "High"}
_SESSION = "Session, %"


def subjects_of(card: Document, rules: Document) -> list[dict[str, Any]]:
    """The subjects of a card: those of the term, then those of earlier terms of the session dropped since."""
    table = _Table(card, rules)
    return [
        *(table.subject(subject) for subject in card["subjects"]),
        *(table.dropped(subject) for subject in table.dropped_subjects),
    ]


def columns_of(card: Document, rules: Document) -> list[dict[str, Any]]:
    """The columns of the table: of each its member in a subject, two lines of its heading, and its group."""
    return [
        {"member": member, "heading": heading, "below": below, "group": group}
        for member, heading, below, group in _Table(card, rules).columns()
    ]


def heads_of(cards: Sequence[Document], rules: Document) -> dict[str, Any]:
    """The facts in the headings of a class's cards: the points of each category, and those of most totals."""
    subjects = [subject for card in cards for subject in card["subjects"]]
    table = _Table({**cards[0], "subjects": subjects}, rules)
    points = {name: sorted(map(mark, of), key=Decimal) for name, of in table.points.items()}
    total = table.total and [None if of is None else mark(of) for of in table.total]
    return {"points": points, "total": total}


def is_of_part(subject: Document) -> bool:
    """Tell whether the marks of a subject are of a part of all weights."""
    present = subject.get("weights_present")
    return present is not None and Decimal(present) < _ALL


def part_of_weights(subject: Document) -> str:
    """Write the sum of marks, and of their weights: 73.3 of 80."""
    return f"{mark(subject['marks_sum'])} of {mark(subject['weights_present'])}"


@dataclass(frozen=True)
class _Table:
    """The table of a card, made by its `rules`; since the third layout its headings are those of the class."""

    card: Document
    rules: Document

    @cached_property
    def is_first(self) -> bool:
        """Whether it is of the first layout."""
        return bool(self.card.get("layout", 1) == 1)

    @cached_property
    def is_in_full(self) -> bool:
        """Whether a category stands for itself only with all its assessments published; older cards have its sum."""
        return "show_ca_total" in self.card

    @cached_property
    def places(self) -> int | None:
        """The decimal places of percents; None: as they are."""
        return None if self.is_first else self.card["percent_places"]

    @cached_property
    def weights(self) -> dict[str, Any]:
        """The weight of each category, if categories are weighed: by the weights of the level, or by those of all."""
        if self.rules["weighting"] != "CATEGORIES":
            return {}
        levels = {weight["level"] for weight in self.rules["weights"]}
        level = self.card["level"] if self.card["level"] in levels else None
        return {
            weight["category"]: weight["weight"]
            for weight in self.rules["weights"]
            if weight["level"] == level
        }

    @cached_property
    def points(self) -> dict[str, set[Decimal]]:
        """The points of each category with a published score: one number if all subjects have the same."""
        if (of_class := self.rules.get("table")) is not None:
            points = of_class["points"]
            return {name: {*map(Decimal, points[name])} for name in CATEGORIES if name in points}
        by_category = {}
        for category in CATEGORIES:
            of_subjects = [_of_category(subject, category) for subject in self.card["subjects"]]
            shown = [scores for scores in of_subjects if any(score["publish"] for score in scores)]
            if shown:
                in_full = [scores for scores in shown if self._is_shown(scores)]
                by_category[category] = {
                    _sum(score["total_points"] for score in scores) for scores in in_full
                }
        return by_category

    @cached_property
    def dropped_subjects(self) -> list[Document]:
        """Subjects of earlier terms, dropped by the student since; a card without marks has none."""
        if self.is_of_first_term or not self.card.get("marks", True):
            return []
        present = {subject["subject"]["base"] for subject in self.card["subjects"]}
        return [subject for subject in self.card["cumulative"]["subjects"] if subject["base"] not in present]

    @cached_property
    def is_of_first_term(self) -> bool:
        return bool(self.card["term"]["term"] == "FIRST")

    @cached_property
    def of_session(self) -> Mapping[str, Document]:
        """The percents of the session, by base subject; none in its first term."""
        subjects = self.card["cumulative"]["subjects"]
        return {} if self.is_of_first_term else {subject["base"]: subject for subject in subjects}

    @cached_property
    def total(self) -> tuple[Decimal | None] | None:
        """The points of most totals, if any are those of most; None without a column of totals.

        The sum of marks that weigh differently says nothing, and neither does that which the percents say, too.
        """
        if self.weights and not self.is_first:
            return None
        if (of_class := self.rules.get("table")) is not None:
            total = of_class["total"]
            return total and (None if total[0] is None else Decimal(total[0]),)
        graded = [subject for subject in self.card["subjects"] if subject["percent"] is not None]
        points = Counter(Decimal(subject["points"]) for subject in graded)
        if set(points) == {Decimal(100)} and all(
            Decimal(subject["score"]) == Decimal(subject["percent"]) for subject in graded
        ):
            return None
        return (next((of for of, times in points.items() if 2 * times > len(graded)), None),)

    @cached_property
    def has_ca_total(self) -> bool:
        return bool(self.card.get("show_ca_total")) and any(name in self.points for name in _ASSESSED)

    def columns(self) -> Iterable[tuple[str, str, str, str]]:
        """Give member, heading, the line below it, and group of each column."""
        term, positions = self.card["term_name"], self.card["positions"]
        yield "name", "Subject", "", ""
        # The sum stands behind the last of those that it is of.
        last = next((name for name in reversed(_ASSESSED) if name in self.points), None)
        for category in self.points:
            yield f"marks.{category}", CATEGORIES[category], self._below(category), term
            if category == last and self.has_ca_total:
                yield "ca_total", "CA", "total", term
        if self.total is not None:
            (of,) = self.total
            yield "total", "Total", "" if of is None else f"of {mark(of)}", term
        yield "percent", "%", "", term
        yield "grade", "Grade", "", term
        if positions != "NONE":
            yield "position", "Pos.", "all arms" if positions == "COHORT" else "", term
        yield "remark", "Remark", "", term
        for name, heading in _OF_CLASS.items():
            yield f"class.{name}", heading, "", "Class"
        if not self.is_of_first_term:
            for term, heading in TERMS.items():
                yield f"terms.{term}", heading, "", _SESSION
                if term == self.card["term"]["term"]:
                    break
            yield "cumulative", "Cum.", "", _SESSION

    def _below(self, category: str) -> str:
        """Write the points of a category, if all subjects have the same, and its weight."""
        points, weight = self.points[category], self.weights.get(category)
        below = f"of {mark(next(iter(points)))}" if len(points) == 1 else ""
        if weight is None:
            return below
        if self.is_first:
            return f"{below}\nweighs {mark(weight)}".strip()
        return f"{below} {_COMES_TO} {mark(weight)}".strip()

    def subject(self, subject: Document) -> dict[str, Any]:
        """Write a subject of the term."""
        about = subject["subject"]
        marks = [self._mark(category, subject) for category in self.points]
        percent = None if subject["percent"] is None else decimals(subject["percent"], self.places)
        return {
            **{name: about[name] for name in ("base", "name", "code")},
            "teachers": list(about.get("teachers", ())) if self.card.get("show_teachers") else None,
            "marks": marks,
            "ca_total": self._ca_total(marks) if self.has_ca_total else None,
            **self._total(subject),
            "percent": percent,
            "percent_text": self._percent_text(subject, percent),
            "grade": subject["grade"],
            "remark": subject["remark"],
            **self._position(subject),
            "class": {name: self._of_class(subject["batch"][name]) for name in _OF_CLASS},
            **self._session(self.of_session.get(about["base"])),
        }

    def dropped(self, subject: Document) -> dict[str, Any]:
        """Write a subject of earlier terms: it has the percents of these alone."""
        return {
            **{name: subject[name] for name in ("base", "name", "code")},
            **dict.fromkeys(("teachers", "marks", "ca_total", "total")),
            "total_text": "",
            "percent": None,
            "percent_text": "",
            **dict.fromkeys(("grade", "remark", "position", "of")),
            "tied": False,
            "position_text": "",
            "class": None,
            **self._session(subject),
        }

    def _mark(self, category: str, subject: Document) -> dict[str, Any]:
        """Write a student's scores in a category: the sum, with ABS and EXC for absences instead of a score."""
        scores, weight = _of_category(subject, category), self.weights.get(category)
        is_shown = self._is_shown(scores)
        judged = [score for score in scores if _counts(score)] if is_shown else []
        points = _sum(score["total_points"] for score in judged)
        scored = _sum(score["score"] or 0 for score in judged)
        came_to = None
        if weight is not None and points and not self.is_first:
            came_to = rounded(Decimal(weight) * scored / points, self.card["percent_places"])
        text = self._mark_text(category, scores, is_shown=is_shown)
        return {
            "category": category,
            "score": mark(scored) if judged else None,
            "points": mark(points) if judged else None,
            "mark": came_to,
            "weight": weight if is_shown else None,
            "text": text if came_to is None else f"{text} {_COMES_TO} {mark(came_to)}",
        }

    def _mark_text(self, category: str, scores: Sequence[Document], *, is_shown: bool) -> str:
        if not is_shown:
            # Absences from assessments published singly stand, since they are no figures.
            published = [score for score in scores if score["publish"]] if self.is_in_full else []
            return " ".join(_absences(published)) or NOT_THERE
        absences = _absences(scores)
        entered = [score["score"] for score in scores if score["score"] is not None]
        written = [mark(_sum(entered))] if entered else []
        if written and len(self.points[category]) > 1:
            written[0] += f"/{mark(_sum(score['total_points'] for score in scores))}"
        return " ".join([*written, *absences])

    def _is_shown(self, scores: Sequence[Document]) -> bool:
        """Tell whether a category has a figure of its own on the card."""
        published = [score["publish"] for score in scores]
        return any(published) and (all(published) or not self.is_in_full)

    def _ca_total(self, marks: Sequence[Document]) -> str | None:
        """Add the printed figures of CA1 to CA3: their marks where categories are weighed, else their scores."""
        name = "mark" if self.weights else "score"
        shown = [mark[name] for mark in marks if mark["category"] in _ASSESSED and mark[name] is not None]
        return mark(_sum(shown)) if shown else None

    def _total(self, subject: Document) -> dict[str, Any]:
        if self.total is None or subject["score"] is None:
            return {"total": None, "total_text": ""}
        # Where most subjects have the same points, those are above, and the others have theirs in the cell.
        (common,) = self.total
        is_common = common is not None and Decimal(subject["points"]) == common
        total = mark(subject["score"])
        return {"total": total, "total_text": total if is_common else f"{total}/{mark(subject['points'])}"}

    def _percent_text(self, subject: Document, percent: str | None) -> str:
        """Write a percent; if it is of printed marks, below it the sum of these where some categories are excused."""
        if percent is None:
            return _INCOMPLETE
        is_of_marks = self.rules.get("percent_from") == "MARKS" and is_of_part(subject)
        return f"{percent}\n{part_of_weights(subject)}" if is_of_marks else percent

    def _position(self, subject: Document) -> dict[str, Any]:
        positions = self.card["positions"]
        if positions == "NONE":
            return {"position": None, "of": None, "tied": False, "position_text": ""}
        figures = subject["cohort" if positions == "COHORT" else "batch"]
        text = position_text(figures["position"], tied=figures["tied"])
        return {**{name: figures[name] for name in ("position", "of", "tied")}, "position_text": text}

    def _of_class(self, figure: Any) -> str | None:
        """Write how the class did: a subject's average of two places is rounded to the places of percents."""
        return (
            text_of(figure)
            if figure is None or self.places is None
            else rounded(Decimal(figure), self.places)
        )

    def _session(self, subject: Document | None) -> dict[str, Any]:
        if self.is_of_first_term:
            return {"terms": None, "cumulative": None}
        if subject is None:
            return {"terms": dict.fromkeys(TERMS), "cumulative": None}
        terms = {term: subject["terms"].get(term) for term in TERMS}
        return {
            "terms": {term: self._figure(percent) for term, percent in terms.items()},
            "cumulative": self._figure(subject["percent"]),
        }

    def _figure(self, percent: Any) -> str | None:
        return None if percent is None else decimals(percent, self.places)


def _counts(score: Document) -> bool:
    """Tell whether an assessment is in the sums: scored, or ABSENT, with 0 of its points."""
    return score["score"] is not None or score["absence"] == "ABSENT"


def _absences(scores: Iterable[Document]) -> list[str]:
    return [*dict.fromkeys(_ABSENCES[score["absence"]] for score in scores if score["absence"])]


def _of_category(subject: Document, category: str) -> list[Document]:
    return [score for score in subject["scores"] if score["category"] == category]


def _sum(figures: Iterable[Any]) -> Decimal:
    return sum((Decimal(figure) for figure in figures), Decimal(0))
