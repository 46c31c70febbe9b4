"""The answer to a paper's code: a pure function of the paper, and of the cards in force now."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from school_service.features.results.computing.comparing import (
    class_figures,
    differs,
    session_figures,
    term_figures,
)
from school_service.features.results.computing.stored import StoredCard
from school_service.features.results.models import CURRENT_CARD, REPLACED_CARD, WITHDRAWN_CARD
from school_service.features.school.models import TERMS
from school_service.printing.wording import long_date, place

Document = Mapping[str, Any]

OF_PAGE = ("time_zone", "places")
"""The members for a page alone; `places` are the positions in words, of a transcript session by session."""

_MEMBERS = (
    "state", "school", "student", "class", "session", "term", "version", "published_at", "replaced_at", "note",
    "average", "grade", "position", "of", "subjects",
)  # fmt: skip


def verified_card(row: Document) -> dict[str, Any]:
    """Give the contents of a card, compared with the one in force of the same student and term.

    It is CURRENT while both say the same of the student, with a `note` if the figures of the class are others, and if
    the outcome that it may have on paper was decided anew.
    """
    document, now = row["card"], row["now"]
    stored = StoredCard(document)
    figures, shown = document["batch_figures"], stored.shows("batch")
    zone = document.get("time_zone") or "UTC"
    state, notes = CURRENT_CARD, []
    if row["is_withdrawn"]:
        state = WITHDRAWN_CARD
    elif not row["in_force"]:
        if now is None or differs(document, now):
            state = REPLACED_CARD
        elif class_figures(now) != class_figures(document):
            day = long_date(row["newer_at"], zone)
            notes.append(f"Class figures were corrected on {day}; the student's own results are the same.")
    if state == CURRENT_CARD and row["decided_at"]:
        notes.append(f"The promotion was changed on {long_date(row['decided_at'], zone)}.")
    said = {
        "student": _name_and_number(document),
        "class": stored.printed_class,
        "session": document["session"]["name"],
        "term": document["term"]["term"],
        "average": document["average"],
        "grade": document["grade"],
        "position": figures["position"] if shown else None,
        "of": figures["of"] if shown else None,
        "subjects": [
            {"name": result["subject"]["name"], "percent": result["percent"], "grade": result["grade"]}
            for result in stored.subjects
        ],
    }
    answer = {
        "state": state,
        "school": document["letterhead"]["name"],
        "version": row["version"],
        "published_at": row["published_at"],
        "replaced_at": row["newer_at"] if state == REPLACED_CARD else None,
        "note": " ".join(notes) or None,
        **({} if state == WITHDRAWN_CARD else said),
    }
    places = [place(figures) if shown else None]
    return {**{name: answer.get(name) for name in _MEMBERS}, "time_zone": zone, "places": places}


def verified_transcript(row: Document) -> dict[str, Any]:
    """Give the contents of a transcript: each of its cards is compared with the one in force of the same term.

    It is CURRENT while the cards in force have the same figures of a transcript, REPLACED if one has others, WITHDRAWN
    if one is missing.
    """
    said, cards = row["transcript"], row["cards"] or ()
    replacing = [card["published_at"] for card in cards if _differs(card, said)]
    replaced_at = max(replacing, key=datetime.fromisoformat, default=None)
    state = CURRENT_CARD if replaced_at is None else REPLACED_CARD
    if any(card["now"] is None for card in cards):
        state = WITHDRAWN_CARD
    is_told = state != WITHDRAWN_CARD
    answer = {
        "state": state,
        "school": said["school"]["name"],
        "student": _name_and_number(said) if is_told else None,
        "published_at": row["issued_at"],
        "replaced_at": replaced_at if is_told else None,
    }
    return {
        **{name: answer.get(name) for name in _MEMBERS},
        "sessions": [_session(session) for session in said["sessions"]] if is_told else [],
        "time_zone": said.get("time_zone"),
        # A transcript of before does not say which places are shared.
        "places": [place({"tied": False, **session}) for session in said["sessions"]],
    }


def _differs(cards: Document, transcript: Document) -> bool:
    """Tell whether the card in force has other figures than the transcript."""
    paper, now = cards["paper"], cards["now"]
    if now is None:
        return False

    def shows(card: Document) -> bool:
        return not transcript["own"] or StoredCard(card).shows("batch")

    kinds = (term_figures, session_figures) if cards["is_latest"] else (term_figures,)
    return any(figures(now, shows(now)) != figures(paper, shows(paper)) for figures in kinds)


def _session(session: Document) -> dict[str, Any]:
    of_subject = ("name", *TERMS, "percent", "grade")
    return {
        "session": session["session"]["name"],
        "class": session["class_name"],
        **{name: session[name] for name in ("average", "grade", "position", "of")},
        "subjects": [{name: subject[name] for name in of_subject} for subject in session["subjects"]],
    }


def _name_and_number(document: Document) -> dict[str, Any]:
    student = document["student"]
    return {"name": StoredCard(document).printed_name, "admission_number": student["admission_number"]}
