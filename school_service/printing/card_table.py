"""The table of subjects on a report card: its columns, and their cells. Figures are texts, as published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from school_service.core.texts import position_text
from school_service.printing.wording import TERMS, Words, decimals, mark, rounded, text_of, words

Document = Mapping[str, Any]

CATEGORIES = {"CA1": "CA1", "CA2": "CA2", "CA3": "CA3", "EXAM": "Exam"}
_ASSESSED = ("CA1", "CA2", "CA3")
_ABSENCES = {"ABSENT": "ABS", "EXCUSED": "EXC"}
_INCOMPLETE = "inc"
_ALL = 100  # weights
_EM = 0.62  # of a digit of Noto Sans, and a little room
_WIDEST = 7.0  # ems: what is longer has several lines
_GRADE, _REMARK = 4, 11  # characters of a word that fit into these columns where there are many
_SHARES = {"Subject": (28, 38), "Remark": (13, 22)}  # of the columns of texts, at least and at most
_NOT_THERE = "\N{EN DASH}"
_COMES_TO = "\N{RIGHTWARDS ARROW}"


class Column(NamedTuple):
    """A column of the table of subjects: two lines of its heading, the group it is in, its cells, how it stands."""

    heading: str
    below: str
    group: str
    cells: list[str | Words]
    strong: bool = False
    text: bool = False


def columns_of(card: Document, rules: Document) -> list[Column]:
    """The columns of a card, in the layout of its publication; `rules` are those of its making.

    The first layout has figures as they are, and above the marks of a category its weight. The second has all percents
    with the places chosen by the school, and beside each weighed mark its part of the weight.
    """
    is_first = card.get("layout", 1) == 1
    weights = _weights(card, rules)
    places = None if is_first else card["percent_places"]
    subjects = card["subjects"]
    dropped = _dropped(card)
    term = card["term_name"]

    def column(
        heading: str, below: str, group: str, cell: Callable[[Document], str | Words | None], **options: bool
    ) -> Column:
        cells: list[str | Words] = [cell(subject) or "" for subject in subjects]
        return Column(heading, below, group, cells + [""] * len(dropped), **options)

    names: list[str | Words] = [words(subject["subject"]["name"]) or "" for subject in subjects]
    names += [words(subject["name"]) or "" for subject in dropped]
    columns = [Column("Subject", "", "", names, text=True)]
    categories = _categories(card, weights) if is_first else _weighted_categories(card, weights)
    columns += [column(*heading, term, cell) for heading, cell in _with_ca_total(card, [*categories])]
    # The sum of marks that weigh differently says nothing.
    total = _total(subjects) if is_first or not weights else None
    if total is not None:
        heading, cell = total
        columns.append(column("Total", heading, term, cell))
    of_marks = rules.get("percent_from") == "MARKS"
    columns.append(
        column("%", "", term, lambda subject: _percent(subject, places, of_marks=of_marks), strong=True)
    )
    columns.append(column("Grade", "", term, lambda subject: words(subject["grade"], longest=_GRADE)))
    if card["positions"] != "NONE":
        of, heading = ("cohort", "all arms") if card["positions"] == "COHORT" else ("batch", "")
        columns.append(column("Pos.", heading, term, lambda subject: _place(subject[of])))
    columns.append(
        column("Remark", "", term, lambda subject: words(subject["remark"], longest=_REMARK), text=True)
    )
    columns += [
        column(heading, "", "Class", lambda subject, name=name: _of_class(subject["batch"][name], places))  # type: ignore[misc]
        for heading, name in (("Avg.", "average"), ("Low", "lowest"), ("High", "highest"))
    ]
    return columns + _session_columns(card, dropped, places)


def width_of(column: Column) -> float:
    """How wide a column of figures has to be for its longest line, in ems."""
    cells = [cell for cell in column.cells if isinstance(cell, str)]
    lines = [column.heading, *(line for cell in cells for line in cell.split("\n"))]
    # What is in parts may have several lines: its words alone are to have one.
    lines += [word for cell in column.cells if isinstance(cell, list) for word in "".join(cell).split()]
    below = [0.75 * len(line) for line in column.below.split("\n")]
    return min(_EM * max(*map(len, lines), *below), _WIDEST)


def share_of(column: Column) -> int:
    """The share of a column of texts in the room left by figures, beside the other: by its longest text."""
    lengths = (len(cell if isinstance(cell, str) else "".join(cell)) for cell in column.cells)
    least, most = _SHARES[column.heading]
    return min(max(least, *lengths, 0), most)


def _percent(subject: Document, places: int | None, *, of_marks: bool) -> str:
    """Write a percent; if it is of printed marks, below it the sum of these where some categories are excused."""
    if subject["percent"] is None:
        return _INCOMPLETE
    percent = decimals(subject["percent"], places)
    return f"{percent}\n{part_of_weights(subject)}" if of_marks and is_of_part(subject) else percent


def is_of_part(subject: Document) -> bool:
    """Tell whether the marks of a subject are of a part of all weights."""
    present = subject.get("weights_present")
    return present is not None and Decimal(present) < _ALL


def part_of_weights(subject: Document) -> str:
    """Write the sum of marks, and of their weights: 73.3 of 80."""
    return f"{mark(subject['marks_sum'])} of {mark(subject['weights_present'])}"


def _of_class(figure: Any, places: int | None) -> str | None:
    """Write how the class did: the average of a subject, with two places, is rounded to those of percents."""
    return text_of(figure) if figure is None or places is None else rounded(Decimal(figure), places)


def _place(figures: Document) -> str:
    return position_text(figures["position"], tied=figures["tied"])


Cell = Callable[[Document], str]


def _weights(card: Document, rules: Document) -> dict[str, Any]:
    """The weight of each category, if categories are weighed: by the weights of the level, or by those of all."""
    if rules["weighting"] != "CATEGORIES":
        return {}
    levels = {weight["level"] for weight in rules["weights"]}
    level = card["level"] if card["level"] in levels else None
    return {weight["category"]: weight["weight"] for weight in rules["weights"] if weight["level"] == level}


def _categories(card: Document, weights: Mapping[str, Any]) -> list[tuple[tuple[str, str], Cell]]:
    """A column for each category with a shown score: its heading, with the points if all have the same."""
    found = []
    for category, heading in CATEGORIES.items():
        of_subjects = [_of_category(subject, category) for subject in card["subjects"]]
        shown = [scores for scores in of_subjects if any(score["publish"] for score in scores)]
        if not shown:
            continue
        points = {_sum(score["total_points"] for score in scores) for scores in shown}
        below = [f"of {mark(next(iter(points)))}"] if len(points) == 1 else []
        if category in weights:
            below.append(f"weighs {mark(weights[category])}")
        found.append(((heading, "\n".join(below)), _category_cell(category, with_points=len(points) > 1)))
    return found


def _weighted_categories(
    card: Document, weights: Mapping[str, Any]
) -> Iterable[tuple[tuple[str, str], Cell]]:
    """The columns of categories, in each weighed one the mark, an arrow, and its part of the weight."""
    names = {heading: category for category, heading in CATEGORIES.items()}
    for (heading, below), cell in _categories(card, {}):
        category = names[heading]
        weight = weights.get(category)
        if weight is None:
            yield (heading, below), cell
            continue
        yield (
            (heading, f"{below} {_COMES_TO} {mark(weight)}".strip()),
            _weighted_cell(category, cell, Decimal(weight), card["percent_places"]),
        )


def _with_ca_total(
    card: Document, categories: list[tuple[tuple[str, str], Cell]]
) -> list[tuple[tuple[str, str], Cell]]:
    """Add the sum of the printed CA1 to CA3 behind them, if the school shows it: of their marks, else of scores."""
    shown = [name for (name, _), _ in categories if name in _ASSESSED]
    if not card.get("show_ca_total") or not shown:
        return categories

    def cell(subject: Document) -> str:
        marks = subject.get("marks")
        if marks is None:
            scores = [score for name in shown for score in _of_category(subject, name) if _counts(score)]
            return mark(_sum(score["score"] or 0 for score in scores)) if scores else _NOT_THERE
        of_shown = [one["mark"] for one in marks if one["category"] in shown]
        return mark(_sum(of_shown)) if of_shown else _NOT_THERE

    place = max(place for place, ((name, _), _) in enumerate(categories) if name in _ASSESSED) + 1
    return [*categories[:place], (("CA", "total"), cell), *categories[place:]]


def _weighted_cell(category: str, cell: Cell, weight: Decimal, places: int) -> Cell:
    def weighted(subject: Document) -> str:
        judged = [score for score in _of_category(subject, category) if _counts(score)]
        points = _sum(score["total_points"] for score in judged)
        shown = cell(subject)
        if not points or shown == _NOT_THERE:
            return shown
        scored = _sum(score["score"] or 0 for score in judged)
        return f"{shown} {_COMES_TO} {mark(rounded(weight * scored / points, places))}"

    return weighted


def _counts(score: Document) -> bool:
    """Tell whether an assessment is in the sums: scored, or ABSENT, with 0 of its points."""
    return score["score"] is not None or score["absence"] == "ABSENT"


def _of_category(subject: Document, category: str) -> list[Document]:
    return [score for score in subject["scores"] if score["category"] == category]


def _category_cell(category: str, *, with_points: bool) -> Cell:
    """The cell of a subject in a category: the sum of its scores, ABS and EXC for absences instead of one."""

    def cell(subject: Document) -> str:
        scores = _of_category(subject, category)
        if not any(score["publish"] for score in scores):
            return _NOT_THERE
        absences = [_ABSENCES[score["absence"]] for score in scores if score["absence"]]
        entered = [score["score"] for score in scores if score["score"] is not None]
        written = [] if not entered and (absences or scores) else [mark(_sum(entered))]
        if written and with_points:
            written[0] += f"/{mark(_sum(score['total_points'] for score in scores))}"
        return " ".join([*written, *dict.fromkeys(absences)])

    return cell


def _total(subjects: Sequence[Document]) -> tuple[str, Cell] | None:
    """The column of the sum of scores: its heading and cells; None if the percents say the same."""
    graded = [subject for subject in subjects if subject["percent"] is not None]
    points = Counter(Decimal(subject["points"]) for subject in graded)
    if set(points) == {Decimal(100)} and all(
        Decimal(subject["score"]) == Decimal(subject["percent"]) for subject in graded
    ):
        return None
    # Where most subjects have the same points, those are above, and the others have theirs in the cell.
    common = next((of for of, times in points.items() if 2 * times > len(graded)), None)

    def cell(subject: Document) -> str:
        if subject["score"] is None:
            return ""
        is_common = common is not None and Decimal(subject["points"]) == common
        return mark(subject["score"]) + ("" if is_common else f"/{mark(subject['points'])}")

    return ("" if common is None else f"of {mark(common)}"), cell


def _dropped(card: Document) -> list[Document]:
    """Subjects of earlier terms of the session, dropped by the student since; a card without marks has none."""
    if card["term"]["term"] == "FIRST" or not card.get("marks", True):
        return []
    present = {subject["subject"]["base"] for subject in card["subjects"]}
    return [subject for subject in card["cumulative"]["subjects"] if subject["base"] not in present]


def _session_columns(card: Document, dropped: Sequence[Document], places: int | None) -> list[Column]:
    """The percents of the session's terms so far, and their result; none in the first term."""
    if card["term"]["term"] == "FIRST":
        return []
    by_base = {subject["base"]: subject for subject in card["cumulative"]["subjects"]}
    rows = [by_base.get(subject["subject"]["base"]) for subject in card["subjects"]] + list(dropped)

    def cells(figure: Callable[[Document], Any]) -> list[str | Words]:
        figures = [None if row is None else figure(row) for row in rows]
        return [_NOT_THERE if one is None else decimals(one, places) for one in figures]

    columns = []
    for term, heading in TERMS.items():
        columns.append(
            Column(heading, "", "Session, %", cells(lambda row, term=term: row["terms"][term]))  # type: ignore[misc]
        )
        if term == card["term"]["term"]:
            break
    return [*columns, Column("Cum.", "", "Session, %", cells(lambda row: row["percent"]), strong=True)]


def _sum(figures: Iterable[Any]) -> Decimal:
    return sum((Decimal(figure) for figure in figures), Decimal(0))
