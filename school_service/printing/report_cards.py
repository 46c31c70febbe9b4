"""Report cards: what stands where on a card, made of its frozen document.

A card's document is that of `report_cards.card`; its figures come as texts, as PostgreSQL wrote them, and are printed
as they are. What is computed here is what the document has in other words: sums of several scores of a category, an
age.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from school_service.core.ordinals import shared_place
from school_service.printing.wording import (
    TERMS,
    Words,
    age,
    class_name,
    full_name,
    in_line,
    long_date,
    mark,
    place,
    sentence_case,
    words,
)

Document = Mapping[str, Any]

CATEGORIES = {"CA1": "CA1", "CA2": "CA2", "CA3": "CA3", "EXAM": "Exam"}
_ABSENCES = {"ABSENT": "ABS", "EXCUSED": "EXC"}
_INCOMPLETE = "inc"
_NOT_THERE = "\N{EN DASH}"
_TRAITS = {"AFFECTIVE": "Affective traits", "PSYCHOMOTOR": "Psychomotor skills"}


class Column(NamedTuple):
    """A column of the table of subjects: two lines of its heading, the group it is in, its cells, how it stands."""

    heading: str
    below: str
    group: str
    cells: list[str | Words]
    strong: bool = False
    text: bool = False


def compose_card(card: Document, *, code_address: str | None, drafted_at: str | None) -> dict[str, Any]:
    """Say what stands where on a card: texts alone, by their places in the template.

    `code_address` is where the card can be verified, `drafted_at` when a draft of it was made.
    """
    student, letterhead = card["student"], card["letterhead"]
    heading = f"{card['term_name']}  ·  {card['session']['name']}"
    name, of_class = full_name(student), class_name(card)
    columns = _columns(card)
    return {
        "title": f"Report card: {name}, {card['term_name']} {card['session']['name']}",
        "school": letterhead["name"],
        "letterhead": {
            "name": words(letterhead["name"]),
            "motto": words(letterhead["motto"]),
            "address": words(letterhead["address"]),
            "contacts": words(
                in_line([letterhead["phone_number"], letterhead["email_address"], letterhead["website"]])
            ),
            "logo": letterhead["logo"],
        },
        "heading": heading,
        "running": words(in_line([name, student["admission_number"], of_class, heading])),
        "name": words(name),
        "student": _pairs(
            ("Admission number", student["admission_number"]),
            ("Class", of_class),
            ("Gender", _gender(student["gender"])),
            ("Age", _age(card)),
            ("Number in class", str(card["number_in_class"])),
        ),
        "result": _term_facts(card),
        "session": _session_facts(card),
        "columns": [
            {
                "heading": column.heading,
                "below": column.below,
                "group": column.group,
                "strong": column.strong,
                "text": column.text,
            }
            for column in columns
        ],
        "rows": [list(row) for row in zip(*(column.cells for column in columns), strict=True)],
        "traits": _traits(card["traits"]),
        "trait_key": in_line(f"{one['value']} {one['meaning']}" for one in card["trait_key"] or ()),
        "attendance": _attendance(card["attendance"]),
        "bands": [
            words(f"{band['grade']} from {mark(band['lower_threshold'])} {band['remark']}")
            for band in card["bands"]
        ],
        "comments": _comments(card),
        "notes": _pairs(
            ("Next term begins", long_date(card["calendar"]["next_term_begins"])),
            ("Notice", card["calendar"]["notice"]),
        ),
        "issued": _issued(card, drafted_at),
        "draft": drafted_at is not None,
        "address": words(code_address),
        "link": code_address,
    }


def _pairs(*pairs: tuple[str, str | None]) -> list[tuple[str, Words]]:
    """Pairs of a label and a value, without those that have none."""
    shown = ((label, words(value)) for label, value in pairs)
    return [(label, value) for label, value in shown if value is not None]


def _gender(gender: str | None) -> str | None:
    return gender and sentence_case(gender.lower())


def _age(card: Document) -> str | None:
    born, on = card["student"]["dob"], card["calendar"]["end_date"] or card["published_at"]
    return str(age(born, on)) if born and on else None


def _term_facts(card: Document) -> list[tuple[str, Words]]:
    """The result of the term; positions as the school shows them."""
    total = f"{card['total']} of {card['obtainable']}" if card["obtainable"] else None
    passed = card["passed"] + card["failed"] and f"{card['passed']} of {card['passed'] + card['failed']}"
    return _pairs(
        ("Total", total),
        ("Average", _text(card["average"])),
        ("Grade", _graded(card)),
        ("Subjects passed", passed or None),
        *_positions(card, card),
    )


def _session_facts(card: Document) -> list[tuple[str, Words]]:
    """The result of the session so far; none in its first term."""
    so_far = card["cumulative"]
    if card["term"]["term"] == "FIRST" or so_far["average"] is None:
        return []
    return _pairs(
        ("Terms", str(so_far["terms"])),
        ("Average", _text(so_far["average"])),
        ("Grade", _graded(so_far)),
        *_positions(card, so_far),
    )


def _graded(result: Document) -> str | None:
    return in_line([result["grade"], result["remark"]])


def _positions(card: Document, result: Document) -> list[tuple[str, str | None]]:
    shown = []
    in_class, in_all = result["batch_figures"], result["cohort_figures"]
    if card["positions"] in {"BOTH", "BATCH"}:
        shown.append(("Position in class", place(in_class)))
    # Where the class is the only one, one position says it all.
    if card["positions"] == "COHORT" or (card["positions"] == "BOTH" and in_all["of"] != in_class["of"]):
        shown.append(("Position in all arms", place(in_all)))
    return shown


def _text(figure: Any) -> str | None:
    return None if figure is None else str(figure)


# The table of subjects


def _columns(card: Document) -> list[Column]:
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
    columns += [column(*heading, term, cell) for heading, cell in _categories(card)]
    total = _total(subjects)
    if total is not None:
        heading, cell = total
        columns.append(column("Total", heading, term, cell))
    columns.append(column("%", "", term, _percent, strong=True))
    columns.append(column("Grade", "", term, lambda subject: words(subject["grade"])))
    if card["positions"] != "NONE":
        of, heading = ("cohort", "all arms") if card["positions"] == "COHORT" else ("batch", "")
        columns.append(column("Pos.", heading, term, lambda subject: _place(subject[of])))
    columns.append(column("Remark", "", term, lambda subject: words(subject["remark"]), text=True))
    columns += [
        column(heading, "", "Class", lambda subject, name=name: _text(subject["batch"][name]))  # type: ignore[misc]
        for heading, name in (("Avg.", "average"), ("Low", "lowest"), ("High", "highest"))
    ]
    return columns + _session_columns(card, dropped)


def _percent(subject: Document) -> str:
    return _INCOMPLETE if subject["percent"] is None else str(subject["percent"])


def _place(figures: Document) -> str:
    return "" if figures["position"] is None else shared_place(figures["position"], tied=figures["tied"])


Cell = Callable[[Document], str]


def _categories(card: Document) -> list[tuple[tuple[str, str], Cell]]:
    """A column for each category of which something is shown: its heading, with the points where all have the same."""
    found = []
    weights = card.get("weights") or {}
    for category, heading in CATEGORIES.items():
        of_subjects = [_of_category(subject, category) for subject in card["subjects"]]
        shown = [scores for scores in of_subjects if any(score["publish"] for score in scores)]
        if not shown:
            continue
        points = {_sum(score["total_points"] for score in scores) for scores in shown}
        below = [f"of {mark(next(iter(points)))}"] if len(points) == 1 else []
        if category in weights:
            below.append(f"counts {mark(weights[category])}")
        found.append(((heading, "\n".join(below)), _category_cell(category, with_points=len(points) > 1)))
    return found


def _of_category(subject: Document, category: str) -> list[Document]:
    return [score for score in subject["scores"] if score["category"] == category]


def _category_cell(category: str, *, with_points: bool) -> Cell:
    """What a subject has in a category: the sum of its scores, ABS and EXC for what there is instead of one."""

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
    """The column of the sum of scores: its heading and cells; None where the percents say the same."""
    graded = [subject for subject in subjects if subject["percent"] is not None]
    points = {Decimal(subject["points"]) for subject in graded}
    if points == {Decimal(100)} and all(
        Decimal(subject["score"]) == Decimal(subject["percent"]) for subject in graded
    ):
        return None
    common = next(iter(points)) if len(points) == 1 else None

    def cell(subject: Document) -> str:
        if subject["score"] is None:
            return ""
        is_common = common is not None and Decimal(subject["points"]) == common
        return mark(subject["score"]) + ("" if is_common else f"/{mark(subject['points'])}")

    return ("" if common is None else f"of {mark(common)}"), cell


def _dropped(card: Document) -> list[Document]:
    """Subjects of earlier terms of the session that the student does not have any more."""
    if card["term"]["term"] == "FIRST":
        return []
    present = {subject["subject"]["base"] for subject in card["subjects"]}
    return [subject for subject in card["cumulative"]["subjects"] if subject["base"] not in present]


def _session_columns(card: Document, dropped: Sequence[Document]) -> list[Column]:
    """The percents of the session's terms so far, and their result; none in the first term."""
    if card["term"]["term"] == "FIRST":
        return []
    by_base = {subject["base"]: subject for subject in card["cumulative"]["subjects"]}
    rows = [by_base.get(subject["subject"]["base"]) for subject in card["subjects"]] + list(dropped)

    def cells(figure: Callable[[Document], Any]) -> list[str | Words]:
        return [_text(figure(row)) or _NOT_THERE if row is not None else _NOT_THERE for row in rows]

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


# What stands below the table


def _traits(traits: Sequence[Document]) -> list[dict[str, Any]]:
    return [
        {
            "title": title,
            "rows": [
                (words(sentence_case(one["name"])), str(one["value"]))
                for one in traits
                if one["type"] == kind
            ],
        }
        for kind, title in _TRAITS.items()
        if any(one["type"] == kind for one in traits)
    ]


def _attendance(attendance: Document) -> list[tuple[str, Words]]:
    return _pairs(
        ("School opened", _times(attendance["opened"])),
        ("Present", _times(attendance["present"])),
        ("Absent", _times(attendance["absent"])),
    )


def _times(number: int | None) -> str | None:
    return None if number is None else f"{number} {'time' if number == 1 else 'times'}"


def _comments(card: Document) -> list[dict[str, Any]]:
    """The comments, each with who signs for it; without either it is left out."""
    letterhead, comments = card["letterhead"], card["comments"]
    found = [
        {
            "title": "Form teacher",
            "text": words(comments["form_teacher"]),
            "name": words(card["form_teacher_name"]),
            "signature": None,
        },
        {
            "title": words(letterhead["principal_title"]) or "Principal",
            "text": words(comments["principal"]),
            "name": words(letterhead["principal_name"]),
            "signature": letterhead["signature"],
        },
    ]
    return [one for one in found if one["text"] or one["name"] or one["signature"]]


def _issued(card: Document, drafted_at: str | None) -> str:
    if drafted_at is not None:
        return f"Draft of {long_date(drafted_at)}. These results are not published."
    version = card["version"]
    replaces = f" (replaces version {version - 1})" if version > 1 else ""
    return f"Published {long_date(card['published_at'])}  ·  version {version}{replaces}"
