"""Report cards: the texts of a card by their places, made of its frozen document.

A card's document is that of `publications.cards`; its figures come as texts, as PostgreSQL wrote them, and are printed
as they are. Computed here are figures of the document in other words: sums of several scores of a category, their parts
by weight, an age. A card is printed by the layout of its publication, for ever: the parts of the first layout alone are
in `report_cards_1`, and the common parts are not to change the texts of the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from school_service.core.genders import listed_gender
from school_service.core.texts import full_name
from school_service.printing.card_table import columns_of, is_of_part, part_of_weights, share_of, width_of
from school_service.printing.wording import (
    TERMS,
    Words,
    age,
    class_name,
    in_line,
    long_date,
    mark,
    outcome_text,
    place,
    running_head,
    sentence_case,
    text_of,
    words,
)

Document = Mapping[str, Any]

_LEAST_OF_LINE, _MOST_OF_TRAITS = 25, 3_000  # letters that traits take of a page, and have there
_MOST_LINES = 25  # that comments and notice begin by themselves, beside those that their length takes
_TRAITS = {"AFFECTIVE": "Affective traits", "PSYCHOMOTOR": "Psychomotor skills"}
_LEGEND = (
    ("ABS", "absent, which counts 0"),
    ("EXC", "excused, which does not count"),
    ("inc", "incomplete"),
    ("=", "place shared with others"),
)
_WEIGHED = ("8 \N{RIGHTWARDS ARROW} 32", "a mark, and what it comes to by its weight")
FORM_TEACHER, PRINCIPAL = "Form teacher", "Principal"


def compose_card(
    card: Document,
    *,
    rules: Document,
    address: str | None,
    drafted_at: str | None,
    outcome: str | None = None,
    outcome_class: str | None = None,
) -> dict[str, Any]:
    """Compose the content of a card: texts alone, by their places in the template.

    `rules` are those of its making; `address` is the address of its verification; `drafted_at` is when a draft of it
    was made; `outcome` is the student's outcome at the session's end, and `outcome_class` the class they go to: these
    are no part of the card.
    """
    zone = card["time_zone"]
    notes = [
        ("Next term begins", long_date(card["calendar"]["next_term_begins"])),
        ("Notice", card["calendar"]["notice"]),
    ]
    is_complete = card["term"]["term"] == [*TERMS][-1] or outcome is not None
    legend = [*_LEGEND, *_legend_of_weights(card, rules)] if card.get("marks", True) else []
    return {
        **parts_of(
            card,
            rules=rules,
            address=address,
            name_order=card["name_order"],
            gender=gender_of(card["student"]["gender"]),
            time_zone=zone,
        ),
        "teachers": _teachers(card),
        "session_heading": "Session" if is_complete else "Session so far",
        "legend": [f"{sign} {meaning}" for sign, meaning in legend],
        "comments": comments_of(card),
        "signatures": _signatures(card),
        "outcome": words(outcome_text(outcome, outcome_class)),
        "notes": pairs_of(*notes),
        "issued": issued(card, drafted_at, zone),
        "draft": drafted_at is not None,
    }


def _legend_of_weights(card: Document, rules: Document) -> Iterator[tuple[str, str]]:
    """Explain weighed marks and, where some are of a part of all weights, their sum."""
    if rules["weighting"] != "CATEGORIES":
        return
    yield _WEIGHED
    of_part = [subject for subject in card["subjects"] if is_of_part(subject)]
    if of_part and rules.get("percent_from") == "MARKS":
        yield part_of_weights(of_part[0]), "the sum of the marks, and of their weights"


def _teachers(card: Document) -> list[Words | None]:
    """Name the teachers of each subject of the table, if the school shows them; cards of before say nothing of it."""
    if not card.get("show_teachers"):
        return []
    return [words(", ".join(subject["subject"].get("teachers", ()))) for subject in card["subjects"]]


def parts_of(
    card: Document,
    *,
    rules: Document,
    address: str | None,
    name_order: str,
    gender: str | None,
    time_zone: str | None,
) -> dict[str, Any]:
    """Compose the parts of a card common to every layout."""
    student, letterhead = card["student"], card["letterhead"]
    # A school may have named its terms with the session.
    session = card["session"]["name"]
    heading = in_line([card["term_name"], None if session in card["term_name"] else session])
    name, of_class = full_name(student, name_order), class_name(card)
    columns = columns_of(card, rules)
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
            ("Gender", gender),
            ("Age", _age(card, time_zone)),
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
                "width": None if column.text else width_of(column),
                "share": share_of(column) if column.text else None,
            }
            for column in columns
        ],
        "rows": [list(row) for row in zip(*(column.cells for column in columns), strict=True)],
        "traits": _traits(card["traits"]),
        "has_many_traits": _has_many_traits(card["traits"]),
        "trait_key": words(in_line(f"{one['value']} {one['meaning']}" for one in card["trait_key"] or ())),
        "attendance": _attendance(card["attendance"]),
        "bands": compose_bands(card["bands"]) if card.get("marks", True) else [],
        "has_many_lines": _has_many_lines(card),
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


def gender_of(gender: str | None) -> str | None:
    """Write a gender: Female, by any word for it; another text as it is, with a capital."""
    return gender and sentence_case((listed_gender(gender) or gender).lower())


def _age(card: Document, time_zone: str | None) -> str | None:
    born, on = card["student"]["dob"], card["calendar"]["end_date"] or card["published_at"]
    return str(age(born, on, time_zone)) if born and on else None


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
    if card["term"]["term"] == "FIRST" or so_far["average"] is None or not card.get("marks", True):
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


def comments_of(card: Document) -> list[dict[str, Any]]:
    """The comments, each with its author; empty ones are left out."""
    return [
        {"title": title, "text": words(text), "name": name}
        for (title, name), text in zip(
            _signatories(card), (card["comments"]["form_teacher"], card["comments"]["principal"]), strict=True
        )
        if words(text)
    ]


def _signatories(card: Document) -> list[tuple[Words, Words | None]]:
    """The signatories of a card: form teacher and principal, by their offices and names."""
    letterhead = card["letterhead"]
    return [
        (FORM_TEACHER, words(card["form_teacher_name"])),
        (words(letterhead["principal_title"]) or PRINCIPAL, words(letterhead["principal_name"])),
    ]


def _signatures(card: Document) -> dict[str, Any] | None:
    """The signatories, each with a picture or, without one, room for a hand; and whether there is room for the stamp.

    None if the school has nobody sign.
    """
    if card["signatures"] == "NONE":
        return None
    principal = card["letterhead"]["signature"] if card["signatures"] == "PICTURES" else None
    return {
        "signed": [
            {"title": title, "name": name, "signature": picture}
            for (title, name), picture in zip(_signatories(card), (None, principal), strict=True)
        ],
        "stamp": principal is None or bool(card.get("has_stamp")),
    }


def _has_many_lines(card: Document) -> bool:
    """Tell whether a page may have no room for comments and notice, because of their own line breaks."""
    texts = [*card["comments"].values(), card["calendar"]["notice"]]
    return sum((text or "").count("\n") for text in texts) > _MOST_LINES


def issued(card: Document, drafted_at: str | None, time_zone: str | None) -> str:
    """Write when a card was published, and its version, or the day of a draft."""
    if drafted_at is not None:
        return f"Draft of {long_date(drafted_at, time_zone)}. These results are not published."
    version = card["version"]
    replaces = f" (replaces version {version - 1})" if version > 1 else ""
    return f"Published {long_date(card['published_at'], time_zone)}  ·  version {version}{replaces}"
