"""How a broadsheet is put together of the documents of its students, live or frozen: pure functions of values.

A broadsheet has all that its workbook says; `answered` leaves out what stands on paper alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from school_service.features.results.computing.class_term.loaded import Loaded, Person
from school_service.features.results.computing.compute import (
    AVERAGE_PLACES,
    SubjectResult,
    TermResult,
    rounded,
    subject_results,
    term_results,
)
from school_service.features.results.computing.stored import StoredCard
from school_service.features.results.models import GRADED, PROVISIONAL
from school_service.features.scores.models import SURNAME_FIRST

Document = Mapping[str, Any]
_PRINTED = (
    "school_name", "term_name", "places", "moment", "class_name", "positions", "name_order", "time_zone", "pass_mark",
)  # fmt: skip
"""The members that the workbook says beside those that are answered."""
_OF_CLASS = ("average", "lowest", "highest")


class Result(NamedTuple):
    """A result of a subject, with its place and the figures of the class in the batch."""

    percent: Decimal | None
    grade: str | None
    status: str
    place: Document

    def said(self) -> dict[str, Any]:
        """Say it as a broadsheet does."""
        return {
            "percent": self.percent,
            "grade": self.grade,
            "position": self.place["position"],
            "status": self.status,
        }


class Row(NamedTuple):
    """A student with their results by subject; `place` has the figures of the class of the average."""

    student: Document
    results: Mapping[str, Result]
    total: Decimal
    average: Decimal | None
    grade: str | None
    place: Document
    cohort_position: int | None
    graded: int
    status: str
    averages: Document | None = None

    @property
    def position(self) -> int | None:
        """The position in the batch."""
        found: int | None = self.place["position"]
        return found


def live_broadsheet(row: Document, loaded: Loaded) -> dict[str, Any]:
    """Put a broadsheet together of what was entered: of those in the scope's batch who may be shown."""
    scope, batch = loaded.scope, loaded.scope["batch_id"]
    of_subjects = subject_results(loaded.entered)
    terms = term_results(loaded.entered, of_subjects)
    rows = [_live_row(one, of_subjects, terms[one.id]) for one in loaded.people if one.batch == batch]
    submitted = row["submitted"] or {}
    subjects = [
        {
            **one._asdict(),
            "submitted": one.id in submitted,
            "teachers": loaded.teachers(one.id, batch),
            "submitted_by": submitted.get(one.id),
        }
        for one in loaded.subjects
    ]
    return {
        **loaded.head(batch, scope["batch_name"]),
        "state": PROVISIONAL,
        "version": None,
        "published_at": None,
        **_put_together(rows, subjects, loaded.rules.pass_mark),
        "term_name": scope["term_name"],
        "places": loaded.rules.places,
        **{name: row[name] for name in ("school_name", "moment", "class_name", "time_zone")},
        **{name: loaded.settings[name] for name in ("positions", "name_order")},
    }


def _live_row(
    person: Person, of_subjects: Mapping[str, Mapping[str, SubjectResult]], term: TermResult
) -> Row:
    results = {
        id: Result(found.percent, found.grade, found.status, found.batch)
        for id, of_subject in of_subjects.items()
        if (found := of_subject.get(person.id)) is not None
    }
    place, cohort = term.batch, term.cohort["position"]
    return Row(
        person.student, results, term.total, term.average, term.grade, place, cohort, term.graded, term.status
    )


def published_broadsheet(row: Document) -> dict[str, Any]:
    """Put a broadsheet together of what was published of a batch in a term."""
    published = row["published"]
    rows = [_of_term(card) for card in published["cards"]]
    return _published(row, rows, term=published["class"]["term"])


def session_broadsheet(row: Document) -> dict[str, Any]:
    """Put the broadsheet of a session together: what the cards of its latest published term say of it."""
    published = row["published"]
    ids = {subject["base"]: id for id, subject in published["subjects"] or ()}
    percents: dict[str, list[Decimal]] = {}
    for card in published["cards"]:
        for one in card["cumulative"]["subjects"]:
            percents.setdefault(one["base"], []).append(one["percent"])
    figures = {
        base: {
            "position": None,
            "average": rounded(sum(some, Decimal(0)), len(some), AVERAGE_PLACES),
            "lowest": min(some),
            "highest": max(some),
        }
        for base, some in percents.items()
    }
    rows = []
    for card in published["cards"]:
        session, bases = card["cumulative"], {*(card["bases"] or ())}
        results = {
            ids[one["base"]]: Result(one["percent"], one["grade"], GRADED, figures[one["base"]])
            for one in session["subjects"]
        }
        # A subject that was dropped earlier is shown, and not averaged.
        averaged = [one["percent"] for one in session["subjects"] if one["base"] in bases]
        rows.append(_row(card, session, results, sum(averaged, Decimal(0)), len(averaged), card["averages"]))
    return _published(row, rows, term=None)


def _of_term(card: Document) -> Row:
    results = {
        one["subject"]["id"]: Result(one["percent"], one["grade"], one["status"], one["batch"])
        for one in card["subjects"] or ()
    }
    return _row(card, card, results, card["total"], card["obtainable"] // 100)


def _row(
    card: Document,
    result: Document,
    results: Mapping[str, Result],
    total: Decimal,
    graded: int,
    averages: Document | None = None,
) -> Row:
    """Make the row of a card, of its term's `result` or of that of its session."""
    place, cohort = result["batch_figures"], result["cohort_figures"]["position"]
    average, grade = result["average"], result["grade"]
    student, status = StoredCard(card).student, card["status"]
    return Row(student, results, total, average, grade, place, cohort, graded, status, averages)


def _published(row: Document, rows: Sequence[Row], *, term: Document | None) -> dict[str, Any]:
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
        **_put_together(rows, subjects, rules.get("pass_mark")),
        "school_name": of["letterhead"]["name"],
        "term_name": of["term_name"] if term else None,
        "places": rules.get("percent_places"),
        "moment": row["moment"],
        "class_name": StoredCard(of).printed_class,
        "positions": of["positions"],
        # Broadsheets of cards that do not say have the surname first, and days in UTC, as they had.
        "name_order": of["name_order"] or SURNAME_FIRST,
        "time_zone": of["time_zone"] or "UTC",
    }


def _put_together(
    rows: Sequence[Row], subjects: Iterable[Document], pass_mark: Decimal | None
) -> dict[str, Any]:
    """Put together `subjects`, those that somebody has, `students`, by position, then by name, and the `summary`."""
    of_subject: dict[str, list[Result]] = {}
    for row in rows:
        for id, result in row.results.items():
            of_subject.setdefault(id, []).append(result)
    ranked = sorted((row for row in rows if row.position is not None), key=lambda row: row.position or 0)
    average, lowest, highest = _greatest(row.place for row in rows)
    return {
        "subjects": [
            _subject(one, of_subject[one["id"]], pass_mark) for one in subjects if one["id"] in of_subject
        ],
        "students": [_student(row) for row in (*ranked, *(row for row in rows if row.position is None))],
        "summary": {
            "students": len(rows),
            "ranked": len(ranked),
            "average": average,
            "highest": highest,
            "lowest": lowest,
            "passed": sum(passes(row.average, pass_mark) for row in ranked),
        },
        "pass_mark": pass_mark,
    }


def passes(figure: Decimal | None, pass_mark: Decimal | None) -> bool:
    """Tell whether a figure reaches a pass mark; the oldest publications do not say theirs."""
    return figure is not None and pass_mark is not None and figure >= pass_mark


def _subject(subject: Document, results: Sequence[Result], pass_mark: Decimal | None) -> dict[str, Any]:
    return {
        **_without(subject, "submitted_by"),
        "takers": len(results),
        "graded": sum(one.percent is not None for one in results),
        **dict(zip(_OF_CLASS, _greatest(one.place for one in results), strict=True)),
        "submitted_by": subject["submitted_by"],
        "passes": sum(passes(one.percent, pass_mark) for one in results),
    }


def _student(row: Row) -> dict[str, Any]:
    return {
        "student": row.student,
        "results": {id: result.said() for id, result in row.results.items()},
        "total": row.total,
        "average": row.average,
        "grade": row.grade,
        "position": row.position,
        "tied": row.place["tied"],
        "cohort_position": row.cohort_position,
        "graded": row.graded,
        "status": row.status,
        "averages": row.averages,
    }


def _greatest(figures: Iterable[Document]) -> list[Any]:
    """Give the figures of the class, which all of it have: the greatest of each."""
    all_of_them = [*figures]
    return [
        max((one[name] for one in all_of_them if one[name] is not None), default=None) for name in _OF_CLASS
    ]


def answered(sheet: Document) -> dict[str, Any]:
    """Leave out what stands on paper alone."""
    subjects = [_without(one, "submitted_by", "passes") for one in sheet["subjects"]]
    students = [_without(one, "averages") for one in sheet["students"]]
    return {**_without(sheet, *_PRINTED), "subjects": subjects, "students": students}


def _without(document: Document, *names: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in names}
