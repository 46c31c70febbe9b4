"""Report cards: the texts of a card by their places, made of its document (`card_documents`).

A card is printed by the layout of its publication, for ever: the parts of the first layout alone are in
`report_cards_1`, and the common parts are not to change the texts of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from school_service.printing.card_table import share_of, table_of, teachers_of, width_of
from school_service.printing.class_tables import whole_words
from school_service.printing.wording import (
    Document,
    Words,
    in_line,
    long_date,
    mark,
    running_head,
    text_of,
    words,
)

_LEAST_OF_LINE, _MOST_OF_TRAITS = 25, 3_000  # letters that traits take of a page, and have there
_MOST_LINES = 25  # that comments and notice begin by themselves, beside those that their length takes
_TRAITS = {"AFFECTIVE": "Affective traits", "PSYCHOMOTOR": "Psychomotor skills"}


def compose_card(document: Document, *, address: str | None) -> dict[str, Any]:
    """Compose the content of a card: texts alone, by their places in the template.

    `address` is the address of its verification.
    """
    session, outcome = document["cumulative"], document["outcome"]
    return {
        **parts_of(document, address=address),
        "teachers": _teachers(document),
        "session_heading": session and session["heading"],
        "legend": [f"{sign['sign']} {sign['meaning']}" for sign in document["keys"]["signs"]],
        "signatures": _signatures(document["signatures"]),
        "outcome": outcome and words(outcome["text"]),
        "notes": notes_of(document),
    }


def fitted(composed: Document, table: Document) -> dict[str, Any]:
    """Fit the table of a composed card to its class's, with whole words. Since the third layout."""
    rows = [[whole_words(cell) for cell in row] for row in composed["rows"]]
    sizes = {"size": float(table["size"]), "gap": float(table["gap"]), "rows": int(table["rows"])}
    return {**composed, "rows": rows, "table": {**sizes, "widths": [*map(float, table["widths"])]}}


def notes_of(document: Document) -> list[tuple[str, Words]]:
    """When the next term begins, and the notice."""
    return pairs_of(
        ("Next term begins", long_date(document["next_term_begins"])), ("Notice", document["notice"])
    )


def _teachers(document: Document) -> list[Words | None]:
    """Name the teachers of each subject of the term, if the school shows them."""
    of_term = [subject for subject in document["subjects"] if subject["marks"] is not None]
    if all(subject["teachers"] is None for subject in of_term):
        return []
    return [teachers_of(subject) for subject in of_term]


def parts_of(document: Document, *, address: str | None) -> dict[str, Any]:
    """Compose the parts of a card common to every layout."""
    student, of_class, keys = document["student"], document["class"], document["keys"]
    heading, name = document["term"]["text"], student["name"]
    columns = table_of(keys["columns"], document["subjects"])
    return {
        "title": f"Report card: {name}, {heading}",
        "school": document["letterhead"]["name"],
        "letterhead": compose_letterhead(document["letterhead"]),
        "heading": words(heading),
        "running": running_head([name, student["admission_number"], of_class["name"], heading]),
        "name": words(name),
        "student": pairs_of(
            ("Admission number", student["admission_number"]),
            ("Class", of_class["name"]),
            ("Gender", student["gender"]),
            ("Age", text_of(student["age"])),
            ("Number in class", str(of_class["students"])),
        ),
        "result": _term_facts(document),
        "session": _session_facts(document["cumulative"]),
        "columns": [
            {
                "heading": column.heading,
                "below": column.below,
                "group": words(column.group) or "",
                "strong": column.strong,
                "text": column.text,
                "width": None if column.text else width_of(column),
                "share": share_of(column) if column.text else None,
            }
            for column in columns
        ],
        "rows": [list(row) for row in zip(*(column.cells for column in columns), strict=True)],
        "traits": _traits(document["traits"]),
        "has_many_traits": _has_many_traits(document["traits"]),
        "trait_key": words(in_line(f"{trait['value']} {trait['meaning']}" for trait in keys["traits"])),
        "attendance": _attendance(document["attendance"]),
        "bands": compose_bands(keys["grades"]),
        "has_many_lines": _has_many_lines(document),
        "comments": [
            {**comment, **{name: words(comment[name]) for name in ("title", "text", "name")}}
            for comment in document["comments"]
        ],
        "issued": document["issued"],
        "draft": document["draft"],
        "address": address,
        "link": address,
    }


def compose_bands(bands: Sequence[Document]) -> list[Words | None]:
    """Write the key to grades: each with its lowest percent, and its meaning."""
    return [words(f"{band['grade']} from {mark(band['lower_threshold'])} {band['remark']}") for band in bands]


def compose_letterhead(letterhead: Document) -> dict[str, Any]:
    """Compose the head of a paper."""
    contacts = [letterhead[name] for name in ("phone_number", "email_address", "website")]
    return {
        **{name: words(letterhead[name]) for name in ("name", "motto", "address")},
        "contacts": words(in_line(contacts)),
        "logo": letterhead["logo"],
    }


def pairs_of(*pairs: tuple[str, str | None]) -> list[tuple[str, Words]]:
    """Pairs of a label and a value, without empty values."""
    shown = ((label, words(value)) for label, value in pairs)
    return [(label, value) for label, value in shown if value is not None]


def _term_facts(document: Document) -> list[tuple[str, Words]]:
    """The result of the term."""
    of = document["totals"]
    return pairs_of(
        ("Total", None if of["obtainable"] is None else f"{of['total']} of {of['obtainable']}"),
        ("Average", text_of(of["average"])),
        ("Grade", _graded(of)),
        (
            "Subjects passed",
            None if of["passed"] is None else f"{of['passed']} of {of['passed'] + of['failed']}",
        ),
        *_positions(document["figures"]),
    )


def _session_facts(so_far: Document | None) -> list[tuple[str, Words]]:
    """The result of the session so far; none in its first term."""
    if so_far is None:
        return []
    return pairs_of(
        ("Terms", str(so_far["terms"])),
        ("Average", text_of(so_far["average"])),
        ("Grade", _graded(so_far)),
        *_positions(so_far["figures"]),
    )


def _graded(result: Document) -> str | None:
    return in_line([result["grade"], result["remark"]])


def _positions(figures: Document) -> list[tuple[str, str | None]]:
    labels = {"batch": "Position in class", "cohort": "Position in all arms"}
    return [(label, figures[name] and figures[name]["text"]) for name, label in labels.items()]


# The parts below the table


def _traits(traits: Sequence[Document]) -> list[dict[str, Any]]:
    return [
        {
            "title": title,
            "rows": [
                (words(trait["name"]), str(trait["value"])) for trait in traits if trait["type"] == kind
            ],
        }
        for kind, title in _TRAITS.items()
        if any(trait["type"] == kind for trait in traits)
    ]


def _has_many_traits(traits: Sequence[Document]) -> bool:
    """Tell whether a page may have no room for all traits."""
    return sum(max(len(trait["name"]), _LEAST_OF_LINE) for trait in traits) > _MOST_OF_TRAITS


def _attendance(attendance: Document) -> list[tuple[str, Words]]:
    return pairs_of(
        ("School opened", _times(attendance["opened"])),
        ("Present", _times(attendance["present"])),
        ("Absent", _times(attendance["absent"])),
    )


def _times(number: int | None) -> str | None:
    return None if number is None else f"{number} {'time' if number == 1 else 'times'}"


def _signatures(signatures: Document | None) -> dict[str, Any] | None:
    if signatures is None:
        return None
    signed = [
        {**signature, **{name: words(signature[name]) for name in ("title", "name")}}
        for signature in signatures["signed"]
    ]
    return {**signatures, "signed": signed}


def _has_many_lines(document: Document) -> bool:
    """Tell whether a page may have no room for comments and notice, because of their own line breaks."""
    texts = [*(comment["text"] for comment in document["comments"]), document["notice"]]
    return sum((text or "").count("\n") for text in texts) > _MOST_LINES
