"""The document of a report card: all that its paper says, and nothing else. Printers set it, and screens show it.

It is made of a frozen card, or of the card of a draft; its figures are as they are printed. Beside a figure stand its
words on paper. A card has the members of its publication's layout, for ever: others are null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from school_service.core.genders import listed_gender
from school_service.core.texts import GIVEN_FIRST, full_name
from school_service.printing.card_subjects import columns_of, is_of_part, part_of_weights, subjects_of
from school_service.printing.wording import (
    OUTCOMES,
    TERMS,
    Document,
    age,
    class_name,
    in_line,
    long_date,
    outcome_text,
    place,
    sentence_case,
)

FORM_TEACHER, PRINCIPAL = "Form teacher", "Principal"
_LETTERHEAD = ("name", "motto", "address", "phone_number", "email_address", "website", "logo")
_STUDENT = ("id", "admission_number", "first_name", "middle_name", "last_name")
_LEGEND = (
    ("ABS", "absent, which counts 0"),
    ("EXC", "excused, which does not count"),
    ("inc", "incomplete"),
    ("=", "place shared with others"),
)
_WEIGHED = ("8 \N{RIGHTWARDS ARROW} 32", "a mark, and what it comes to by its weight")


def report_card(
    card: Document,
    *,
    rules: Document,
    outcome: str | None = None,
    outcome_class: str | None = None,
    drafted_at: str | None = None,
    photo: str | None = None,
) -> dict[str, Any]:
    """Make the document of a card, frozen or of a draft made at a moment.

    `rules` are those of its making. `outcome` is the student's at the session's end, and `outcome_class` the class they
    go to: these are no part of the card. `photo` is the address of the student's photo.
    """
    is_first = card.get("layout", 1) == 1
    zone = None if is_first else card["time_zone"]
    session, calendar = card["session"], card["calendar"]
    # A school may have named its terms with the session.
    heading = in_line([card["term_name"], None if session["name"] in card["term_name"] else session["name"]])
    version = card["version"]
    return {
        "student": _student(card, zone, is_first=is_first),
        "class": {"id": card["batch"], "name": class_name(card), "students": card["number_in_class"]},
        "session": session,
        "term": {**card["term"], "name": card["term_name"], "text": heading},
        "version": version,
        "published_at": card["published_at"],
        "replaces": version - 1 if version is not None and version > 1 else None,
        "draft": drafted_at is not None,
        "issued": _issued(card, drafted_at, zone),
        "subjects": subjects_of(card, rules),
        "totals": _totals(card),
        "figures": _figures(card, card),
        "traits": [{**trait, "name": sentence_case(trait["name"])} for trait in card["traits"]],
        "comments": _comments(card, is_first=is_first),
        "signatures": None if is_first else _signatures(card),
        "attendance": card["attendance"],
        "cumulative": _cumulative(card, is_complete=outcome is not None and not is_first),
        "outcome": _outcome(outcome, None if is_first else outcome_class, is_first=is_first),
        "next_term_begins": calendar["next_term_begins"],
        "notice": calendar["notice"],
        "keys": _keys(card, rules, is_first=is_first),
        "letterhead": {name: card["letterhead"][name] for name in _LETTERHEAD},
        "photo": photo if card.get("show_photo") else None,
    }


def _keys(card: Document, rules: Document, *, is_first: bool) -> dict[str, Any]:
    """The columns of the table, and the explanations of the card's own contents."""
    subjects = subjects_of(card, rules)
    has_grades = _has_marks(card) and bool(subjects)
    return {
        "columns": columns_of(card, rules) if subjects else [],
        "grades": card["bands"] if has_grades else [],
        "traits": (card["trait_key"] or []) if card["traits"] else [],
        "signs": [*_signs(card, rules)] if has_grades and not is_first else [],
    }


def _has_marks(card: Document) -> bool:
    """Tell whether the level of a card has marks; all had, before levels could be without."""
    return bool(card.get("marks", True))


def _student(card: Document, zone: str | None, *, is_first: bool) -> dict[str, Any]:
    student = card["student"]
    gender = student["gender"]
    born, on = student["dob"], card["calendar"]["end_date"] or card["published_at"]
    return {
        **{name: student[name] for name in _STUDENT},
        "name": full_name(student, GIVEN_FIRST if is_first else card["name_order"]),
        "gender": gender and sentence_case(gender.lower()) if is_first else gender_of(gender),
        "age": age(born, on, zone) if born and on else None,
    }


def gender_of(gender: str | None) -> str | None:
    """Write a gender: Female, by any word for it; another text as it is, with a capital."""
    return gender and sentence_case((listed_gender(gender) or gender).lower())


def _issued(card: Document, drafted_at: str | None, zone: str | None) -> str:
    """Write when a card was published, and its version, or the day of a draft."""
    if drafted_at is not None:
        return f"Draft of {long_date(drafted_at, zone)}. These results are not published."
    version = card["version"]
    replaces = f" (replaces version {version - 1})" if version > 1 else ""
    return f"Published {long_date(card['published_at'], zone)}  ·  version {version}{replaces}"


def _totals(card: Document) -> dict[str, Any]:
    graded = card["passed"] + card["failed"]
    return {
        "total": card["total"] if card["obtainable"] else None,
        "obtainable": card["obtainable"] or None,
        **{name: card[name] for name in ("average", "grade", "remark")},
        "passed": card["passed"] if graded else None,
        "failed": card["failed"] if graded else None,
    }


def _figures(card: Document, result: Document) -> dict[str, Any]:
    """The positions of a result, as the school shows them; each with its text."""
    positions, in_class, in_all = card["positions"], result["batch_figures"], result["cohort_figures"]
    # Where the class is the only one, one position says it all.
    is_in_all = positions == "COHORT" or (positions == "BOTH" and in_all["of"] != in_class["of"])
    return {
        "batch": _position(in_class) if positions in {"BOTH", "BATCH"} else None,
        "cohort": _position(in_all) if is_in_all else None,
    }


def _position(figures: Document) -> dict[str, Any] | None:
    text = place(figures)
    return text and {**{name: figures[name] for name in ("position", "tied", "of")}, "text": text}  # type: ignore[return-value]


def _cumulative(card: Document, *, is_complete: bool) -> dict[str, Any] | None:
    """The result of the session so far; none in its first term."""
    so_far = card["cumulative"]
    if card["term"]["term"] == "FIRST" or not _has_marks(card) or so_far["average"] is None:
        return None
    is_last = is_complete or (card["term"]["term"] == [*TERMS][-1] and card.get("layout", 1) > 1)
    return {
        "heading": "Session" if is_last else "Session so far",
        **{name: so_far[name] for name in ("terms", "average", "grade", "remark")},
        "figures": _figures(card, so_far),
    }


def _outcome(outcome: str | None, of_class: str | None, *, is_first: bool) -> dict[str, Any] | None:
    text = OUTCOMES.get(outcome or "") if is_first else outcome_text(outcome, of_class)
    return None if text is None else {"outcome": outcome, "class": of_class, "text": text}


def _comments(card: Document, *, is_first: bool) -> list[dict[str, Any]]:
    """The comments, each with its author; the first layout has their names and signatures without a comment, too."""
    of = card["comments"]
    made = [
        {**signatory, "text": text if (text or "").strip() else None}
        for signatory, text in zip(
            _signatories(card, with_pictures=is_first), (of["form_teacher"], of["principal"]), strict=True
        )
    ]
    return [
        comment
        for comment in made
        if comment["text"] or (is_first and (comment["name"] or comment["signature"]))
    ]


def _signatures(card: Document) -> dict[str, Any] | None:
    """The signatories, each with a picture or, without one, room for a hand; and whether there is room for the stamp.

    None if the school has nobody sign.
    """
    if card["signatures"] == "NONE":
        return None
    signed = _signatories(card, with_pictures=card["signatures"] == "PICTURES")
    has_picture = any(signature["signature"] for signature in signed)
    return {"signed": signed, "stamp": not has_picture or bool(card.get("has_stamp"))}


def _signatories(card: Document, *, with_pictures: bool) -> list[dict[str, Any]]:
    """The signatories of a card: form teacher and principal, by their offices and names."""
    letterhead = card["letterhead"]
    title = letterhead["principal_title"]
    return [
        {"title": FORM_TEACHER, "name": card["form_teacher_name"], "signature": None},
        {
            "title": title if (title or "").strip() else PRINCIPAL,
            "name": letterhead["principal_name"],
            "signature": letterhead["signature"] if with_pictures else None,
        },
    ]


def _signs(card: Document, rules: Document) -> Iterator[dict[str, str]]:
    """Explain the signs in the table: weighed marks and, where some are of a part of all weights, their sum, too."""
    signs: Sequence[tuple[str, str]] = _LEGEND
    if rules["weighting"] == "CATEGORIES":
        signs = (*signs, _WEIGHED)
        of_part = [subject for subject in card["subjects"] if is_of_part(subject)]
        if of_part and rules.get("percent_from") == "MARKS":
            signs = (*signs, (part_of_weights(of_part[0]), "the sum of the marks, and of their weights"))
    for sign, meaning in signs:
        yield {"sign": sign, "meaning": meaning}
