"""How a card differs from an older one: in its statements on the student, or in the figures of the class alone.

A student's own are: name and particulars, scores, percents, grades, remarks, totals, averages, the positions shown on
the card, traits, comments and attendance. With other figures of their own a card replaces the paper. The figures of the
class are not theirs, nor are the notices to the whole class, such as the letterhead, the calendar or the name of a
subject.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from school_service.features.results.computing.stored import StoredCard

Document = Mapping[str, Any]

OF_CLASS = (
    "layout", "trait_key", "version", "published_at", "term_name", "level", "letterhead", "calendar", "bands",
    "pass_mark", "percent_places", "verification", "name_order", "signatures", "show_teachers", "time_zone",
    "class_name", "form_teacher_name", "batch", "batch_name", "cohort", "classroom", "session", "term", "obtainable",
)  # fmt: skip
"""The members of a card left out of comparisons: all students of a class have the same, or they follow from others."""

_OF_TERM = (
    "student", "status", "total", "obtainable", "average", "grade", "remark", "passed", "failed", "traits",
    "comments", "attendance",
)  # fmt: skip
_OF_SUBJECT = ("status", "score", "points", "percent", "grade", "remark")
_OF_SESSION = ("terms", "average", "grade", "remark")
_FIGURES_OF_CLASS = ("of", "average", "lowest", "highest")


def own_figures(card: Document) -> list[Any]:
    """The student's own figures on a card: two cards with the same statements on the student have the same figures."""
    shown, session = StoredCard(card), card["cumulative"]

    def places(part: Document, batch: str, cohort: str) -> list[Any]:
        of = (("batch", batch), ("cohort", cohort))
        return [
            _members(part[member], ("position", "tied")) if shown.shows(name) else None for name, member in of
        ]

    def of_subject(subject: Document) -> list[Any]:
        scores = {
            score["assessment"]: _members(score, ("total_points", "score", "absence"))
            for score in subject["scores"]
        }
        return [*_members(subject, _OF_SUBJECT), *places(subject, "batch", "cohort"), scores]

    return [
        *_members(card, _OF_TERM),
        *places(card, "batch_figures", "cohort_figures"),
        _by_subject(card, of_subject),
        *_members(session, _OF_SESSION),
        *places(session, "batch_figures", "cohort_figures"),
        _by_base(session, ("terms", "percent", "grade")),
    ]


def term_figures(card: Document, shows_position: bool) -> list[Any]:
    """The figures of a term on a transcript; `shows_position` tells whether it has positions."""
    position = card["batch_figures"]["position"] if shows_position else None
    return [card["average"], card["grade"], position]


def session_figures(card: Document, shows_position: bool) -> list[Any]:
    """The figures of a session and the student on a transcript, of the card of its latest term."""
    session = card["cumulative"]
    return [
        card["student"],
        session["average"],
        session["grade"],
        session["batch_figures"]["position"] if shows_position else None,
        _by_base(session, ("name", "terms", "percent", "grade")),
    ]


def class_figures(card: Document) -> list[Any]:
    """The figures of the class on a card."""

    def figures(part: Document, *names: str) -> list[Any]:
        return [_members(part[name], _FIGURES_OF_CLASS) for name in names]

    return [
        card.get("number_in_class"),
        *figures(card, "batch_figures", "cohort_figures"),
        *figures(card["cumulative"], "batch_figures", "cohort_figures"),
        _by_subject(card, lambda subject: figures(subject, "batch", "cohort")),
    ]


def _by_subject(card: Document, said: Callable[[Document], list[Any]]) -> dict[str, list[Any]]:
    return {subject["subject"]["id"]: said(subject) for subject in card["subjects"]}


def _by_base(session: Document, names: Sequence[str]) -> dict[str, list[Any]]:
    return {base["base"]: _members(base, names) for base in session["subjects"]}


def _members(document: Document, names: Sequence[str]) -> list[Any]:
    return [document.get(name) for name in names]
