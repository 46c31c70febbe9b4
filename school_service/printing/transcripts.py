"""Transcripts: their texts by place, made of the transcript as it was issued."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

from school_service.core.texts import full_name
from school_service.printing.card_documents import PRINCIPAL, gender_of
from school_service.printing.report_cards import compose_bands, compose_letterhead, pairs_of
from school_service.printing.wording import (
    NOT_THERE,
    TERMS,
    Document,
    class_name,
    in_line,
    long_date,
    outcome_text,
    place,
    running_head,
    text_of,
    words,
)

_GRADE = 4  # characters of a word that fit into the column of grades
_MOST_LINES = 32  # of a session: a page has room for more, and for its heading


def compose_transcript(transcript: Document, *, address: str | None) -> dict[str, Any]:
    """Compose the content of a transcript: texts alone, by their places in the template.

    `address` is the address of its verification.
    """
    student, letterhead = transcript["student"], transcript["school"]
    name = full_name(student, transcript["name_order"])
    signature = letterhead["signature"] if transcript["signatures"] == "PICTURES" else None
    return {
        "title": f"Transcript: {name}",
        "author": letterhead["name"],
        "letterhead": compose_letterhead(letterhead),
        "running": running_head([name, student["admission_number"]]),
        "name": words(name),
        "student": pairs_of(
            ("Admission number", student["admission_number"]),
            ("Gender", gender_of(student["gender"])),
            ("Date of birth", long_date(student["dob"])),
            ("Date of admission", long_date(student["admitted_on"])),
            ("Date of leaving", long_date(student["left_on"])),
            ("Graduated from", transcript["graduation_class"]),
        ),
        "schooling": pairs_of(
            ("Former school", student["former_school"]), ("Reason for leaving", student["leaving_reason"])
        ),
        "sessions": [_session(session) for session in transcript["sessions"]],
        "bands": compose_bands(transcript["bands"]),
        "principal": words(letterhead["principal_name"]),
        "principal_title": words(letterhead["principal_title"]) or PRINCIPAL,
        "signature": signature,
        "issued": f"Issued on {long_date(transcript['issued_on'])}",
        "address": address,
        "link": address,
    }


def _session(session: Document) -> dict[str, Any]:
    """A session: its heading, its terms, its subjects, and below them averages and positions."""
    by_term = {term["term"]["term"]: term for term in session["terms"]}
    terms = [term for term in TERMS if term in by_term or _has(session["subjects"], term)]
    rows = [
        [
            words(subject["name"]),
            *(_figure(subject[term]) for term in terms),
            _figure(subject["percent"]),
            words(subject["grade"], longest=_GRADE) or "",
        ]
        for subject in session["subjects"]
    ]
    averages = [_figure(by_term[term]["average"]) if term in by_term else NOT_THERE for term in terms]
    positions = [_position(by_term.get(term)) for term in terms]
    below = [
        ["Average", *averages, _figure(session["average"]), words(session["grade"], longest=_GRADE) or ""]
    ]
    if any(positions) or _position(session):
        below.append(["Position", *positions, _position(session), ""])
    outcome = outcome_text(session["outcome"], session["outcome_class"])
    heading = [session["session"]["name"], class_name(session), outcome]
    # A line of a subject and of a grade has so many letters, at least.
    lines = sum(
        max(ceil(len(subject["name"]) / 40), ceil(len(subject["grade"] or "") / 4))
        for subject in session["subjects"]
    )
    return {
        "heading": words(in_line(heading)),
        "has_many_lines": lines + ceil(len(session["grade"] or "") / 4) > _MOST_LINES,
        "terms": [f"{TERMS[term]} term" for term in terms],
        "rows": rows,
        "below": below,
    }


def _has(subjects: Sequence[Document], term: str) -> bool:
    return any(subject[term] is not None for subject in subjects)


def _figure(figure: Any) -> str:
    return text_of(figure) or NOT_THERE


def _position(figures: Document | None) -> str:
    return "" if figures is None else place({"tied": False, **figures}) or ""
