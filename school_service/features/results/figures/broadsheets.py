"""How a broadsheet is put together of the documents of its students, live or frozen: pure functions of values.

A broadsheet has all members of its workbook; `answered` leaves out those for paper alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from school_service.core.texts import SURNAME_FIRST
from school_service.features.results.computing.class_term.loaded import Loaded, Member
from school_service.features.results.computing.compute import (
    Result,
    average_places,
    rounded,
    subject_results,
    term_results,
)
from school_service.features.results.computing.stored import StoredCard
from school_service.features.results.models import GRADED, PROVISIONAL
from school_service.features.scores.models import EXACT

Document = Mapping[str, Any]
_PRINTED = (
    "school_name", "term_name", "places", "average_places", "moment", "class_name", "positions", "name_order",
    "time_zone", "pass_mark",
)  # fmt: skip
"""The members for the workbook alone, beside the answered ones."""
ORDERS = (POSITION, NAME) = ("position", "name")
"""The orders of a broadsheet's students."""
_OF_CLASS = ("average", "lowest", "highest")


def live_broadsheet(row: Document, loaded: Loaded) -> dict[str, Any]:
    """Put a broadsheet together of the entries: of the students in the scope's batch that may be shown."""
    scope, batch = loaded.scope, loaded.scope["batch_id"]
    of_subjects = subject_results(loaded.entered)
    terms = term_results(loaded.entered, of_subjects)
    cards = [
        _live_card(person, of_subjects, terms[person.id]) for person in loaded.people if person.batch == batch
    ]
    submitted = row["submitted"] or {}
    subjects = [
        {
            **subject.document,
            "submitted": subject.id in submitted,
            "teachers": loaded.teachers(subject.id, batch),
            "submitted_by": submitted.get(subject.id),
        }
        for subject in loaded.subjects
    ]
    return {
        **loaded.head(batch, scope["batch_name"]),
        "state": PROVISIONAL,
        "version": None,
        "published_at": None,
        **_put_together(cards, subjects, loaded.rules.pass_mark),
        "term_name": scope["term_name"],
        "places": loaded.rules.places,
        "average_places": loaded.rules.average_places,
        **{name: row[name] for name in ("school_name", "moment", "class_name", "time_zone")},
        **{name: loaded.settings[name] for name in ("positions", "name_order")},
    }


def _live_card(
    person: Member, of_subjects: Mapping[str, Mapping[str, Result]], term: Result
) -> dict[str, Any]:
    """Say as much of a student as a broadsheet shows, by the members of a card."""
    subjects = [
        {"subject": {"id": id}, **result}
        for id, of_subject in of_subjects.items()
        if (result := of_subject.get(person.id)) is not None
    ]
    return {"student": person.student, "subjects": subjects, **term}


def published_broadsheet(row: Document) -> dict[str, Any]:
    """Put a broadsheet together of the publication of a batch in a term."""
    published = row["published"]
    return _published(row, published["cards"], term=published["class"]["term"])


def session_broadsheet(row: Document) -> dict[str, Any]:
    """Put the broadsheet of a session together, of the cards of its latest published term."""
    published = row["published"]
    ids = {subject["base"]: id for id, subject in published["subjects"] or ()}
    percents: dict[str, list[Decimal]] = {}
    places = _average_places(published["rules"])
    for card in published["cards"]:
        for percent in card["cumulative"]["subjects"]:
            percents.setdefault(percent["base"], []).append(percent["percent"])
    figures = {
        base: {
            "position": None,
            "average": rounded(sum(some, Decimal(0)), len(some), places),
            "lowest": min(some),
            "highest": max(some),
        }
        for base, some in percents.items()
    }
    cards = [_session_card(card, ids, figures) for card in published["cards"]]
    return _published(row, cards, term=None)


def _session_card(card: Document, ids: Mapping[str, str], figures: Mapping[str, Document]) -> dict[str, Any]:
    """Give the session of a card by the members with the same meaning for its term."""
    session, bases = card["cumulative"], {*(card["bases"] or ())}
    # A subject that was dropped earlier is shown, and not averaged.
    averaged = [subject["percent"] for subject in session["subjects"] if subject["base"] in bases]
    subjects = [
        {
            **subject,
            "subject": {"id": ids[subject["base"]]},
            "status": GRADED,
            "batch": figures[subject["base"]],
        }
        for subject in session["subjects"]
    ]
    total, obtainable = sum(averaged, Decimal(0)), 100 * len(averaged)
    return {**card, **session, "subjects": subjects, "total": total, "obtainable": obtainable}


def _published(row: Document, cards: Sequence[Document], *, term: Document | None) -> dict[str, Any]:
    published = row["published"]
    of, rules = published["class"], published["rules"]
    submissions = rules.get("subjects") or {}
    subjects = [
        {
            "id": id,
            **{name: subject[name] for name in ("base", "name", "code")},
            "elective": bool(subject["elective"]),
            # Nothing else is published.
            "submitted": True,
            "teachers": submissions.get(id, {}).get("teachers") or (),
            "submitted_by": submissions.get(id, {}).get("submitted_by_name"),
        }
        for id, subject in published["subjects"] or ()
    ]
    return {
        **{name: of[name] for name in ("batch", "batch_name", "cohort", "classroom", "session")},
        "term": term,
        **{name: published[name] for name in ("state", "version", "published_at")},
        **_put_together(cards, subjects, rules.get("pass_mark")),
        "school_name": of["letterhead"]["name"],
        "term_name": of["term_name"] if term else None,
        "places": rules.get("percent_places"),
        "average_places": _average_places(rules),
        "moment": row["moment"],
        "class_name": StoredCard(of).printed_class,
        "positions": of["positions"],
        # Broadsheets of cards that do not say have the surname first, and days in UTC, as they had.
        "name_order": of["name_order"] or SURNAME_FIRST,
        "time_zone": of["time_zone"] or "UTC",
    }


def _average_places(rules: Document) -> int:
    """Give the places of averages by the rules of a publication; older ones do not say how percents are made."""
    return average_places(rules.get("percent_from", EXACT), rules.get("percent_places") or 0)


def _put_together(
    cards: Sequence[Document], subjects: Iterable[Document], pass_mark: Decimal | None
) -> dict[str, Any]:
    """Put together `subjects`, of any student, `students`, by name as the cards, and the `summary`."""
    of_subject: dict[str, list[Document]] = {}
    for card in cards:
        for result in card["subjects"] or ():
            of_subject.setdefault(result["subject"]["id"], []).append(result)
    students = [_student(card) for card in cards]
    ranked = [student for student in students if student["position"] is not None]
    average, lowest, highest = _greatest(card["batch_figures"] for card in cards)
    return {
        "subjects": [
            _subject(subject, of_subject[subject["id"]], pass_mark)
            for subject in subjects
            if subject["id"] in of_subject
        ],
        "students": students,
        "summary": {
            "students": len(students),
            "ranked": len(ranked),
            "average": average,
            "highest": highest,
            "lowest": lowest,
            "passed": sum(passes(student["average"], pass_mark) for student in ranked),
        },
        "pass_mark": pass_mark,
    }


def by_position(students: Sequence[Document]) -> list[Document]:
    """Put the students of a broadsheet, sorted by name, in the order of their positions; those without one last."""
    return sorted(students, key=lambda student: last_if_none(student["position"]))


def last_if_none(position: int | None) -> tuple[bool, int]:
    """Make the key of a sorting by position: a student without one comes last."""
    return position is None, position or 0


def passes(figure: Decimal | None, pass_mark: Decimal | None) -> bool:
    """Tell whether a figure reaches a pass mark; the oldest publications do not say theirs."""
    return figure is not None and pass_mark is not None and figure >= pass_mark


def _subject(subject: Document, results: Sequence[Document], pass_mark: Decimal | None) -> dict[str, Any]:
    percents = [result["percent"] for result in results if result["percent"] is not None]
    return {
        **subject,
        "takers": len(results),
        "graded": len(percents),
        **dict(zip(_OF_CLASS, _greatest(result["batch"] for result in results), strict=True)),
        "passes": sum(passes(percent, pass_mark) for percent in percents),
    }


def _student(card: Document) -> dict[str, Any]:
    place = card["batch_figures"]
    return {
        "student": StoredCard(card).student,
        "results": {result["subject"]["id"]: _result(result) for result in card["subjects"] or ()},
        "total": card["total"],
        "average": card["average"],
        "grade": card["grade"],
        "position": place["position"],
        "tied": place["tied"],
        "cohort_position": card["cohort_figures"]["position"],
        "cohort_tied": card["cohort_figures"]["tied"],
        "graded": card["obtainable"] // 100,
        "status": card["status"],
        "averages": card.get("averages"),
    }


def _result(result: Document) -> dict[str, Any]:
    return {
        "percent": result["percent"],
        "grade": result["grade"],
        "position": result["batch"]["position"],
        "status": result["status"],
    }


def _greatest(figures: Iterable[Document]) -> list[Any]:
    """Give the figures of the class, the same for all students: the greatest of each."""
    all_of_them = [*figures]
    return [
        max((figures[name] for figures in all_of_them if figures[name] is not None), default=None)
        for name in _OF_CLASS
    ]


def without_paper_members(sheet: Document) -> dict[str, Any]:
    """Leave out the members for paper alone."""
    subjects = [_without(subject, "submitted_by", "passes") for subject in sheet["subjects"]]
    students = [_without(student, "averages", "cohort_tied") for student in sheet["students"]]
    return {**_without(sheet, *_PRINTED), "subjects": subjects, "students": students}


def _without(document: Document, *names: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in names}
