"""Batch and term of the records to be entered: found for a list or a download, or read from Details."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import and_, func, or_, select

from school_service.core.database import current_school, db
from school_service.core.errors import Invalid, Unknown
from school_service.core.narrowing import everybodys, within
from school_service.core.reach import Reach
from school_service.core.read_models import Query, fetch_row, read_model
from school_service.core.records import unknown_reference
from school_service.features.reach import scopes
from school_service.features.school.models import AcademicSession, Batch, Classroom, Cohort, Term
from school_service.features.school.sessions.service import is_term_id, refuse_other_term
from school_service.features.school.settings.service import name_order, time_zone
from school_service.sheets.columns import normalized_name
from school_service.sheets.sheet_reader import DETAILS, sheet_of_another

BATCH, TERM = "Batch", "Term"


def find_batch(batch: UUID | int, *, field: str) -> Any:
    """Find a batch in reach by id or number, with the columns for its sheets. Raises Invalid, naming the field."""
    is_batch = Batch.number == batch if isinstance(batch, int) else Batch.id == batch
    query = (
        select(
            Batch.id,
            Batch.number,
            Batch.name,
            Batch.cohort_id,
            Cohort.session_id,
            AcademicSession.name.label("session"),
            # With the arm, also where it is the only one: the sheet stays this arm's when there are others.
            func.concat(Classroom.name, " ", Batch.name).label("class_name"),
            func.statement_timestamp().label("moment"),
            time_zone().label("time_zone"),
            name_order().label("name_order"),
        )
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .where(is_batch)
    )
    arm = db.session.execute(within(query, scopes.arms_in_reach, Batch.id)).one_or_none()
    if arm is None:
        raise Invalid.field(field, Unknown("no such batch"))
    return arm


@dataclass(frozen=True, slots=True)
class Place:
    """The batch and the term of records, and the ids their rows have in common."""

    batch_id: UUID
    cohort_id: UUID
    session_id: UUID
    term_id: UUID


def find_place(batch: UUID, term: str) -> Place:
    """Find a batch, and a term of its session by its id or its name there, in one round trip. Raises Invalid."""
    row = fetch_row(_place(batch, term))
    if row is None:
        raise unknown_reference(Batch, "batch")
    refuse_other_term(row["of_session"], "the batch's")
    return Place(batch, row["cohort_id"], row["session_id"], row["term_id"])


def place_of(batch: Any, term_id: UUID) -> Place:
    """Give the place of a batch (`find_batch`) and a term of its session."""
    return Place(batch.id, batch.cohort_id, batch.session_id, term_id)


@read_model
def _place(batch_id: UUID, term: str, reach: Reach | None = None) -> Query:
    """Select a batch's cohort and session, and the term of it by this text; no row without the batch.

    `term_id` is null if there is no such term, `of_session` tells whether it belongs to the batch's session.
    """
    of_session = and_(Term.session_id == Cohort.session_id, Term.term == term)
    query = (
        select(
            Batch.cohort_id,
            Cohort.session_id,
            Term.id.label("term_id"),
            (Term.session_id == Cohort.session_id).label("of_session"),
        )
        .select_from(Batch)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .outerjoin(Term, or_(is_term_id(term), of_session))
        .where(Batch.id == batch_id)
    )
    return query if reach is None else query.where(scopes.is_form_batch(reach, Batch.id))


def find_term(text: str, batch: Any, error: Callable[[str], Invalid] | None = None) -> Term:
    """Find a term of a batch's session, by its id or its name in the session.

    Raises `error` of the reason, without it Invalid naming the field `term`.
    """
    refuse = error or partial(Invalid.field, "term")
    of_session = and_(Term.session_id == batch.session_id, Term.term == text)
    meant = everybodys(select(Term).where(or_(is_term_id(text), of_session)))
    term = db.session.scalars(meant).one_or_none()
    if term is None:
        raise refuse(Unknown("no such term"))
    if term.session_id != batch.session_id:
        raise refuse("is not of the batch's session")
    return term


def about_class(batch: Any, term: Term) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Give the Details of batch and term: in words, and by their ids."""
    words = [
        ("School", current_school().name),
        ("Class", batch.class_name),
        (BATCH, batch.name),
        ("Session", batch.session),
        (TERM, term.term),
        ("Term name", term.display_name),
    ]
    return words, [(f"{BATCH} ID", str(batch.id)), (f"{TERM} ID", str(term.id))]


def named_details(
    details: Mapping[str, str] | None, batch: Any, named: Mapping[str, str | None]
) -> Mapping[str, str]:
    """Give the Details of a sheet; if it has none, as in a .csv file, the values `named` by the request, by label."""
    if details is not None:
        return details
    given = {normalized_name(label): value for label, value in named.items() if value}
    return {normalized_name(BATCH): str(batch.id), **given} if given else {}


def judge_batch(details: Mapping[str, str], batch: Any) -> None:
    """Refuse the sheet of another batch. It may be named by its number, and without its id. Raises Invalid."""
    named = detail(details, f"{BATCH} ID", BATCH)
    if named.casefold() not in {str(batch.id), str(batch.number)}:
        raise _sheet_of_another(details, named)


def judge_term(details: Mapping[str, str], batch: Any) -> Term:
    """Find the term of a sheet: by its id, or as FIRST, SECOND or THIRD. Raises Invalid."""
    named = detail(details, f"{TERM} ID", TERM)
    return find_term(named, batch, lambda reason: Invalid(f"{TERM} on the sheet {DETAILS}: {reason}."))


def detail(details: Mapping[str, str], *labels: str) -> str:
    """Give the first value among these labels. Raises Invalid if there is none."""
    for label in labels:
        if value := details.get(normalized_name(label)):
            return value
    raise Invalid(f"The sheet {DETAILS} lacks {labels[0]}: download the sheet, and fill that one in.")


def _sheet_of_another(details: Mapping[str, str], named: str) -> Invalid:
    """Name the other batch with its class, if Details have it in full, as they do in a downloaded sheet."""
    in_full = details.get(normalized_name("Class"))
    about = {**details, normalized_name(BATCH): in_full} if in_full else details
    return sheet_of_another(about, BATCH, named)
