"""How a card differs from an older one: in what it says of the student, or in the figures of the class alone.

What is a student's own: who they are, scores, percents, grades, remarks, totals, averages, the positions that the card
shows, traits, comments and attendance. With other figures of their own a card replaces the paper. How the class did is
not theirs, nor is what the whole class is told, such as the letterhead, the calendar or the name of a subject.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Text, case, cast, column, func, literal, literal_column, select
from sqlalchemy.dialects.postgresql import JSONB

from school_service.features.results.figures.frozen import shows_position

Column = ColumnElement[Any]

_OF_TERM = (
    "student", "status", "total", "obtainable", "average", "grade", "remark", "passed", "failed", "traits",
    "comments", "attendance",
)  # fmt: skip
_OF_SUBJECT = ("status", "score", "points", "percent", "grade", "remark")
_OF_SESSION = ("terms", "average", "grade", "remark")
_OF_CLASS = ("of", "average", "lowest", "highest")


def own_figures(card: Any) -> Column:
    """What a card says of its student, as one document: cards that say the same of them have the same."""
    shown = {name: shows_position(card, name) for name in ("batch", "cohort")}

    def places(document: Any, batch: str, cohort: str) -> list[Any]:
        return [
            case(
                (shown[name], func.jsonb_build_array(document[member]["position"], document[member]["tied"]))
            )
            for name, member in (("batch", batch), ("cohort", cohort))
        ]

    subject = _element("subject")
    of_subject = func.jsonb_build_array(
        *(subject[name] for name in _OF_SUBJECT), *places(subject, "batch", "cohort"), _scores(subject)
    )
    base = _element("base")
    session = card["cumulative"]
    return func.jsonb_build_array(
        *(card[name] for name in _OF_TERM),
        *places(card, "batch_figures", "cohort_figures"),
        _by_key(card["subjects"], "subject", _text(subject["subject"], "id"), of_subject),
        *(session[name] for name in _OF_SESSION),
        *places(session, "batch_figures", "cohort_figures"),
        _by_key(
            session["subjects"],
            "base",
            _text(base, "base"),
            func.jsonb_build_array(base["terms"], base["percent"], base["grade"]),
        ),
        type_=JSONB,
    )


def term_figures(card: Any, shows_position: Any) -> Column:
    """What a transcript says of a term, as one document; `shows_position` tells whether it has positions."""
    return func.jsonb_build_array(
        card["average"],
        card["grade"],
        case((shows_position, card["batch_figures"]["position"])),
        type_=JSONB,
    )


def session_figures(card: Any, shows_position: Any) -> Column:
    """What a transcript says of a session and of its student, as one document, of the card of its latest term."""
    base = _element("base")
    session = card["cumulative"]
    return func.jsonb_build_array(
        card["student"],
        session["average"],
        session["grade"],
        case((shows_position, session["batch_figures"]["position"])),
        _by_key(
            session["subjects"],
            "base",
            _text(base, "base"),
            func.jsonb_build_array(base["name"], base["terms"], base["percent"], base["grade"]),
        ),
        type_=JSONB,
    )


def class_figures(card: Any) -> Column:
    """What a card says of how the class did, as one document."""
    subject = _element("subject")

    def figures(document: Any, *members: str) -> list[Any]:
        return [document[member][name] for member in members for name in _OF_CLASS]

    return func.jsonb_build_array(
        card["number_in_class"],
        *figures(card, "batch_figures", "cohort_figures"),
        *figures(card["cumulative"], "batch_figures", "cohort_figures"),
        _by_key(
            card["subjects"],
            "subject",
            _text(subject["subject"], "id"),
            func.jsonb_build_array(*figures(subject, "batch", "cohort")),
        ),
        type_=JSONB,
    )


def _scores(subject: Any) -> Column:
    """The scores of a subject by assessment: their order is that of days that may be corrected."""
    score = _element("score")
    said = func.jsonb_build_array(score["total_points"], score["score"], score["absence"])
    return _by_key(subject["scores"], "score", _text(score, "assessment"), said)


def _by_key(array: Any, name: str, key: Any, value: Any) -> Column:
    """An object made of the elements of an array, which are called `name` in the key and the value."""
    elements = (
        func.jsonb_array_elements(array).table_valued(column(name, JSONB)).render_derived(name=f"of_{name}")
    )
    found = select(func.coalesce(func.jsonb_object_agg(key, value), cast(literal("{}", Text), JSONB)))
    return found.select_from(elements).correlate_except(elements).scalar_subquery()


def _element(name: str) -> Any:
    return literal_column(f"of_{name}.{name}", JSONB)


def _text(document: Any, member: str) -> Column:
    found: Column = document[member].astext
    return found
