"""How a card differs from an older one: in its statements on the student, or in the figures of the class alone.

A student's own are: name and particulars, scores, percents, grades, remarks, totals, averages, the positions shown on
the card, traits, comments and attendance. With other figures of their own a card replaces the paper. The figures of the
class are not theirs, nor are the notices to the whole class, such as the letterhead, the calendar or the name of a
subject.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from school_service.features.results.computing.stored import StoredCard

Document = Mapping[str, Any]

OF_CLASS = (
    "layout", "trait_key", "version", "published_at", "term_name", "level", "letterhead", "calendar", "bands",
    "pass_mark", "percent_places", "verification", "name_order", "signatures", "show_teachers", "time_zone",
    "show_ca_total", "show_photo", "marks", "has_stamp",
    "class_name", "form_teacher_name", "batch", "batch_name", "cohort", "classroom", "session", "term", "obtainable",
)  # fmt: skip
"""The members of a card left out of comparisons: all students of a class have the same, or they follow from others."""

_OF_TERM = ("status", "total", "obtainable", "average", "grade", "remark", "passed", "failed")
_OF_SUBJECT = ("status", "score", "points", "percent", "grade", "remark")
_OF_SCORE = ("total_points", "score", "absence")
_OF_MARK = ("category", "mark", "weight")
_OF_SESSION = ("terms", "average", "grade", "remark")
_FIGURES_OF_CLASS = ("of", "average", "lowest", "highest")

Figures = dict[tuple[str, str], Any]
"""Figures of a card, by member and, in a list, by the id of the subject, paper or trait; else by an empty text."""


def own_figures(card: Document) -> Figures:
    """The student's own figures on a card: two cards with the same statements on the student have the same figures."""
    figures: Figures = {}

    def note(path: str, part: Document, names: Iterable[str], id: str = "") -> None:
        figures.update({(path + name, id): part.get(name) for name in names})

    def note_places(path: str, part: Document, batch: str, cohort: str, id: str = "") -> None:
        for name, member in (("batch", batch), ("cohort", cohort)):
            if shown.shows(name):
                note(f"{path}{member}.", part[member], ("position", "tied"), id)

    shown, session = StoredCard(card), card["cumulative"]
    note("", card, _OF_TERM)
    note_places("", card, "batch_figures", "cohort_figures")
    for name in ("student", "comments", "attendance"):
        note(f"{name}.", card[name], card[name])
    for subject in shown.subjects:
        id = subject["subject"]["id"]
        note("subjects.", subject, _OF_SUBJECT, id)
        note_places("subjects.", subject, "batch", "cohort", id)
        for score in subject["scores"]:
            figures["subjects.scores", score["assessment"]] = {name: score[name] for name in _OF_SCORE}
        for mark in subject.get("marks") or ():
            figures[_MARKS, _mark_id(subject, mark)] = {name: mark[name] for name in _OF_MARK}
    for trait in card["traits"]:
        figures["traits", f"{trait['type']} {trait['name']}"] = trait
    note("cumulative.", session, _OF_SESSION)
    note_places("cumulative.", session, "batch_figures", "cohort_figures")
    for base in session["subjects"]:
        note("cumulative.subjects.", base, ("terms", "percent", "grade"), base["base"])
    return figures


_MARKS = "subjects.marks"


def _mark_id(subject: Document, mark: Document) -> str:
    return f"{subject['subject']['id']} {mark['category']}"


def differs(before: Document, after: Document) -> bool:
    """Tell whether two cards have different figures of the student's own."""
    return bool(_differing(before, after))


def _differing(before: Document, after: Document) -> Figures:
    """The figures of two cards that differ, as on the card after; null if it is without one.

    Marks are compared if both cards have marks of the subject: earlier releases froze none.
    """
    old, new = own_figures(before), own_figures(after)
    with_marks = [
        {result["subject"]["id"] for result in card["subjects"] if result.get("marks") is not None}
        for card in (before, after)
    ]
    both = set.intersection(*with_marks)
    return {
        key: new.get(key)
        for key in {**new, **old}
        if old.get(key) != new.get(key) and (key[0] != _MARKS or key[1].partition(" ")[0] in both)
    }


def differences(before: Document, after: Document) -> list[dict[str, Any]]:
    """Name the student's own figures that differ on two cards, with the subject, and each before and after."""
    old, new = own_figures(before), _differing(before, after)
    subjects, papers = {}, {}
    for card in (before, after):
        subjects.update({base["base"]: base["name"] for base in card["cumulative"]["subjects"]})
        for result in card["subjects"]:
            subjects[result["subject"]["id"]] = result["subject"]["name"]
            subjects.update(
                {_mark_id(result, mark): result["subject"]["name"] for mark in result.get("marks") or ()}
            )
            for score in result["scores"]:
                subjects[score["assessment"]] = result["subject"]["name"]
                papers[score["assessment"]] = {"abbreviation": score["abbreviation"]}

    def with_paper(figures: Figures, key: tuple[str, str]) -> Any:
        value = figures.get(key)
        return value if value is None or key[1] not in papers else {**papers[key[1]], **value}

    return [
        {
            "member": key[0],
            "subject": subjects.get(key[1]),
            "before": with_paper(old, key),
            "after": with_paper(new, key),
        }
        for key in new
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
