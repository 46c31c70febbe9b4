"""Results and broadsheets as they are answered: as published or, of the entries, as computed.

Each makes the answer of the row of its read model, for a caller with a known reach. The whole class is computed:
positions are among all of it. Shown are the students in reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

from school_service.core.reach import Reach
from school_service.core.read_models import Made
from school_service.features.results.computing.cards import subject_result, term_result
from school_service.features.results.computing.class_term.loaded import Loaded
from school_service.features.results.computing.compute import compute, subject_results
from school_service.features.results.computing.stored import StoredCard, stored_subject_result
from school_service.features.results.figures import reads
from school_service.features.results.figures.broadsheets import (
    POSITION,
    by_position,
    last_if_none,
    live_broadsheet,
    published_broadsheet,
    session_broadsheet,
    without_paper_members,
)
from school_service.features.results.models import PROVISIONAL

Row = Mapping[str, Any]
_LIVE = {"state": PROVISIONAL, "version": None, "published_at": None}


def of_student(
    student_id: UUID,
    term: str,
    user_id: UUID | None = None,
    session: str | None = None,
    *,
    live: bool = False,
    version: int | None = None,
) -> Made:
    """Answer TermResultSchema, of a student in a term: as it was published, else live.

    The arguments are those of `reads.student_in_term`. The student's own account, and a guardian's, sees published
    results alone.
    """
    read = reads.student_in_term(student_id, term, user_id, session, live or None, version)
    return Made(read, partial(_of_student, str(student_id)))


def _of_student(student_id: str, row: Row, reach: Reach | None) -> Mapping[str, Any] | None:
    if row["card"] is not None:
        card = StoredCard(row["card"])
        return (card.own_term_result if row["own"] else card.term_result)(row["state"])
    loaded = Loaded.of(row)
    people = {} if loaded is None else {person.id: person for person in loaded.shown_to(reach).people}
    if loaded is None or student_id not in people:
        return None
    person, scope = people[student_id], loaded.scope
    return {
        "student": person.student,
        **loaded.head(scope["batch_id"], scope["batch_name"]),
        **_LIVE,
        **term_result(loaded, compute(loaded.entered), person),
    }


def of_subject(cohort_subject_id: UUID, term: str, batch: UUID | None = None, *, live: bool = False) -> Made:
    """Answer StudentSubjectResultSchema, of the takers of a cohort subject, by position, then by name.

    As it was published, else live. With a batch, of its students, by their position there.
    """
    read = reads.subject_in_term(cohort_subject_id, term, batch, live or None)
    return Made(read, partial(_of_subject, None if batch is None else str(batch)))


def _of_subject(batch: str | None, row: Row, reach: Reach | None) -> list[dict[str, Any]]:
    place = "cohort" if batch is None else "batch"
    listed: list[tuple[int, dict[str, Any]]] = []
    places = {(is_card, student): place for place, (is_card, student) in enumerate(row["by_name"] or ())}
    for student, subject, state, version in row["published"] or ():
        shown = {"student": StoredCard({"student": student}).student, **stored_subject_result(subject)}
        listed.append((places[True, student["id"]], {**shown, "state": state, "version": version}))
    loaded, held = Loaded.of(row), {*(row["held"] or ())}
    if loaded is not None and loaded.subjects:
        shown_people, (subject,) = loaded.shown_to(reach), loaded.subjects
        results = subject_results(loaded.entered)[subject.id]
        for number, person in enumerate(shown_people.people):
            result = results.get(person.id)
            if result is not None and person.id not in held and batch in (None, person.batch):
                said = subject_result(loaded, subject, person, result)
                live = {"student": person.student, **said, "state": PROVISIONAL, "version": None}
                listed.append((places.get((False, person.id), number), live))
    listed.sort(key=lambda each: (last_if_none(each[1][place]["position"]), each[0]))
    return [each for _, each in listed]


def broadsheet(
    *,
    batch: UUID,
    term: str | None = None,
    session: str | None = None,
    live: bool = False,
    order: str = POSITION,
    printed: bool = False,
) -> Made:
    """Answer BroadsheetSchema, of a batch in the given term or session; `printed`: the members of its workbook, too.

    `term` is the id of a term or its name in the batch's session, `session` its id or its name. `order` sorts the
    students: by POSITION, then by name; or by NAME. A term's sheet is as it was published last, else, or if asked for,
    `live`; a session's until its latest published term.
    """
    if session is not None:
        return Made(reads.class_in_session(batch, session), partial(_broadsheet, order, printed, True))
    if term is None:
        raise TypeError("A broadsheet is of a term or of a session.")
    return Made(reads.class_in_term(batch, term, live or None), partial(_broadsheet, order, printed, False))


def _broadsheet(
    order: str, printed: bool, of_session: bool, row: Row, reach: Reach | None
) -> dict[str, Any] | None:
    if row["published"] is not None:
        sheet = (session_broadsheet if of_session else published_broadsheet)(row)
    elif of_session or (loaded := Loaded.of(row)) is None:
        return None
    else:
        sheet = live_broadsheet(row, loaded.shown_to(reach))
    if order == POSITION:
        sheet["students"] = by_position(sheet["students"])
    return sheet if printed else without_paper_members(sheet)
