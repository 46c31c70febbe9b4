"""Report cards: what stands where on a card, made of its frozen document.

A card's document is that of `report_cards.card`; its figures come as texts, as PostgreSQL wrote them, and are printed
as they are. What is computed here is what the document has in other words: sums of several scores of a category, an
age.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from school_service.core.genders import listed_gender
from school_service.core.texts import position_text
from school_service.printing.wording import (
    OUTCOMES,
    TERMS,
    Words,
    age,
    class_name,
    full_name,
    in_line,
    long_date,
    mark,
    place,
    running_head,
    sentence_case,
    words,
)

Document = Mapping[str, Any]

CATEGORIES = {"CA1": "CA1", "CA2": "CA2", "CA3": "CA3", "EXAM": "Exam"}
_ABSENCES = {"ABSENT": "ABS", "EXCUSED": "EXC"}
_INCOMPLETE = "inc"
_EM = 0.62  # of a digit of Noto Sans, and a little room
_WIDEST = 7.0  # ems: what is longer has several lines
_GRADE, _REMARK = 4, 11  # characters of a word that fit into these columns where there are many
_SHARES = {"Subject": (28, 38), "Remark": (13, 22)}  # of the columns of texts, at least and at most
_NOT_THERE = "\N{EN DASH}"
_LEAST_OF_LINE, _MOST_OF_TRAITS = 25, 3_000  # letters that traits take of a page, and have there
_MOST_LINES = 25  # that comments and notice begin by themselves, beside those that their length takes
_TRAITS = {"AFFECTIVE": "Affective traits", "PSYCHOMOTOR": "Psychomotor skills"}


class Column(NamedTuple):
    """A column of the table of subjects: two lines of its heading, the group it is in, its cells, how it stands."""

    heading: str
    below: str
    group: str
    cells: list[str | Words]
    strong: bool = False
    text: bool = False


def compose_card(
    card: Document,
    *,
    rules: Document,
    address: str | None,
    drafted_at: str | None,
    outcome: str | None = None,
) -> dict[str, Any]:
    """Say what stands where on a card: texts alone, by their places in the template.

    `rules` are those that it was made with; `address` is where it can be verified; `drafted_at` is when a draft of it
    was made; `outcome` is what became of the student at the session's end, which is no part of the card.
    """
    student, letterhead = card["student"], card["letterhead"]
    # A school may have named its terms with the session.
    session = card["session"]["name"]
    heading = in_line([card["term_name"], None if session in card["term_name"] else session])
    name, of_class = full_name(student), class_name(card)
    columns = _columns(card, _weights(card, rules))
    return {
        "title": f"Report card: {name}, {heading}",
        "school": letterhead["name"],
        "letterhead": compose_letterhead(letterhead),
        "heading": words(heading),
        "running": running_head([name, student["admission_number"], of_class, heading]),
        "name": words(name),
        "student": pairs_of(
            ("Admission number", student["admission_number"]),
            ("Class", of_class),
            ("Gender", gender_of(student["gender"])),
            ("Age", _age(card)),
            ("Number in class", str(card["number_in_class"])),
        ),
        "result": _term_facts(card),
        "session": _session_facts(card),
        "columns": [
            {
                "heading": column.heading,
                "below": column.below,
                "group": words(column.group) or "",
                "strong": column.strong,
                "text": column.text,
                "width": None if column.text else _width(column),
                "share": _share(column) if column.text else None,
            }
            for column in columns
        ],
        "rows": [list(row) for row in zip(*(column.cells for column in columns), strict=True)],
        "traits": _traits(card["traits"]),
        "has_many_traits": _has_many_traits(card["traits"]),
        "trait_key": words(in_line(f"{one['value']} {one['meaning']}" for one in card["trait_key"] or ())),
        "attendance": _attendance(card["attendance"]),
        "bands": [
            words(f"{band['grade']} from {mark(band['lower_threshold'])} {band['remark']}")
            for band in card["bands"]
        ],
        "comments": _comments(card),
        "has_many_lines": _has_many_lines(card),
        "notes": pairs_of(
            ("Outcome", OUTCOMES.get(outcome or "")),
            ("Next term begins", long_date(card["calendar"]["next_term_begins"])),
            ("Notice", card["calendar"]["notice"]),
        ),
        "issued": _issued(card, drafted_at),
        "draft": drafted_at is not None,
        "address": address,
        "link": address,
    }


def compose_letterhead(letterhead: Document) -> dict[str, Any]:
    """Say what stands at the head of a paper."""
    contacts = [letterhead[name] for name in ("phone_number", "email_address", "website")]
    return {
        **{name: words(letterhead[name]) for name in ("name", "motto", "address")},
        "contacts": words(in_line(contacts)),
        "logo": letterhead["logo"],
    }


def pairs_of(*pairs: tuple[str, str | None]) -> list[tuple[str, Words]]:
    """Pairs of a label and a value, without those that have none."""
    shown = ((label, words(value)) for label, value in pairs)
    return [(label, value) for label, value in shown if value is not None]


def gender_of(gender: str | None) -> str | None:
    """Write a gender: Female, by whichever word for it; another text as it is, with a capital."""
    return gender and sentence_case((listed_gender(gender) or gender).lower())


def _age(card: Document) -> str | None:
    born, on = card["student"]["dob"], card["calendar"]["end_date"] or card["published_at"]
    return str(age(born, on)) if born and on else None


def _term_facts(card: Document) -> list[tuple[str, Words]]:
    """The result of the term; positions as the school shows them."""
    total = f"{card['total']} of {card['obtainable']}" if card["obtainable"] else None
    passed = card["passed"] + card["failed"] and f"{card['passed']} of {card['passed'] + card['failed']}"
    return pairs_of(
        ("Total", total),
        ("Average", text_of(card["average"])),
        ("Grade", _graded(card)),
        ("Subjects passed", passed or None),
        *_positions(card, card),
    )


def _session_facts(card: Document) -> list[tuple[str, Words]]:
    """The result of the session so far; none in its first term."""
    so_far = card["cumulative"]
    if card["term"]["term"] == "FIRST" or so_far["average"] is None:
        return []
    return pairs_of(
        ("Terms", str(so_far["terms"])),
        ("Average", text_of(so_far["average"])),
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


def text_of(figure: Any) -> str | None:
    """Write a figure as it is; None where there is none."""
    return None if figure is None else str(figure)


# The table of subjects


def _columns(card: Document, weights: Mapping[str, Any]) -> list[Column]:
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
    columns += [column(*heading, term, cell) for heading, cell in _categories(card, weights)]
    total = _total(subjects)
    if total is not None:
        heading, cell = total
        columns.append(column("Total", heading, term, cell))
    columns.append(column("%", "", term, _percent, strong=True))
    columns.append(column("Grade", "", term, lambda subject: words(subject["grade"], longest=_GRADE)))
    if card["positions"] != "NONE":
        of, heading = ("cohort", "all arms") if card["positions"] == "COHORT" else ("batch", "")
        columns.append(column("Pos.", heading, term, lambda subject: _place(subject[of])))
    columns.append(
        column("Remark", "", term, lambda subject: words(subject["remark"], longest=_REMARK), text=True)
    )
    columns += [
        column(heading, "", "Class", lambda subject, name=name: text_of(subject["batch"][name]))  # type: ignore[misc]
        for heading, name in (("Avg.", "average"), ("Low", "lowest"), ("High", "highest"))
    ]
    return columns + _session_columns(card, dropped)


def _width(column: Column) -> float:
    """How wide a column of figures has to be for its longest line, in ems."""
    lines = [column.heading, *(cell for cell in column.cells if isinstance(cell, str))]
    # What is in parts may have several lines: its words alone are to have one.
    lines += [word for cell in column.cells if isinstance(cell, list) for word in "".join(cell).split()]
    below = [0.75 * len(line) for line in column.below.split("\n")]
    return min(_EM * max(*map(len, lines), *below), _WIDEST)


def _share(column: Column) -> int:
    """How much of the room that figures leave a column of texts takes, beside the other: by its longest text."""
    lengths = (len(cell if isinstance(cell, str) else "".join(cell)) for cell in column.cells)
    least, most = _SHARES[column.heading]
    return min(max(least, *lengths, 0), most)


def _percent(subject: Document) -> str:
    return _INCOMPLETE if subject["percent"] is None else str(subject["percent"])


def _place(figures: Document) -> str:
    return position_text(figures["position"], tied=figures["tied"])


Cell = Callable[[Document], str]


def _weights(card: Document, rules: Document) -> dict[str, Any]:
    """What each category counts, where categories are weighed: by the weights of the level, or by those of all."""
    if rules["weighting"] != "CATEGORIES":
        return {}
    levels = {weight["level"] for weight in rules["weights"]}
    level = card["level"] if card["level"] in levels else None
    return {weight["category"]: weight["weight"] for weight in rules["weights"] if weight["level"] == level}


def _categories(card: Document, weights: Mapping[str, Any]) -> list[tuple[tuple[str, str], Cell]]:
    """A column for each category of which something is shown: its heading, with the points where all have the same."""
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
        return [text_of(figure(row)) or _NOT_THERE if row is not None else _NOT_THERE for row in rows]

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


def _has_many_traits(traits: Sequence[Document]) -> bool:
    """Tell whether a page may have no room for all traits."""
    return sum(max(len(one["name"]), _LEAST_OF_LINE) for one in traits) > _MOST_OF_TRAITS


def _attendance(attendance: Document) -> list[tuple[str, Words]]:
    return pairs_of(
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


def _has_many_lines(card: Document) -> bool:
    """Tell whether a page may have no room for comments and notice, for the lines that they have of their own."""
    texts = [*card["comments"].values(), card["calendar"]["notice"]]
    return sum((text or "").count("\n") for text in texts) > _MOST_LINES


def _issued(card: Document, drafted_at: str | None) -> str:
    if drafted_at is not None:
        return f"Draft of {long_date(drafted_at)}. These results are not published."
    version = card["version"]
    replaces = f" (replaces version {version - 1})" if version > 1 else ""
    return f"Published {long_date(card['published_at'])}  ·  version {version}{replaces}"
