"""Takers of cohort subjects: make a subject elective or compulsory, let students take it, and drop an elective.

All lock the cohort FOR NO KEY UPDATE, as publishing, reopening and submitting do. Publications under review keep the
takers of their cards: each notes the students who are put in or taken out meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Text, Uuid, cast, delete, func, literal_column, update
from sqlalchemy.dialects.postgresql import JSONB, array

from school_service.core.errors import Conflict, Locked, NotFound, refuse_named
from school_service.core.read_models import BoundQuery, fetch_document
from school_service.core.records import get, not_found
from school_service.core.statements import execute, in_one_round_trip, statement
from school_service.features.audit.service import Change, audit_change, audit_changes
from school_service.features.classes.cohort_subjects.reads import cohort_subject, lock_cohort_of
from school_service.features.classes.cohort_subjects.service import (
    ENTITY,
    TAKING,
    take_chosen_subject,
    take_new_subjects,
)
from school_service.features.classes.enrollments.reads import lock_students
from school_service.features.classes.models import CohortSubject, SubjectEnrollment
from school_service.features.people.students.naming import strangers
from school_service.features.results.models import REOPENED, Publication
from school_service.features.results.takers import reads
from tenants.clock import now


def change_cohort_subject(*, cohort_subject_id: UUID, elective: bool) -> BoundQuery:
    """Make a cohort subject elective or compulsory; a compulsory one is taken by all of the cohort at once.

    An elective keeps its takers. Terms with published results keep theirs. Returns the read model of the cohort
    subject; it is changed in the read model's round trip. Raises NotFound, and Conflict while it is submitted in a term
    that a class has still to publish, or stands in reopened results.
    """
    row = fetch_document(
        in_one_round_trip(lock_cohort_of(cohort_subject_id), read=reads.changing(cohort_subject_id))
    )
    if row is None:
        raise not_found(CohortSubject)
    read = cohort_subject(cohort_subject_id)
    if row["elective"] == elective:
        return read
    _refuse_unfinished(row["subject"], row["submitted"], row["reopened"])
    audit_change(ENTITY, cohort_subject_id, old={"elective": not elective}, new={"elective": elective})
    taking = [] if elective else [take_new_subjects([cohort_subject_id], now())]
    return in_one_round_trip(_change(cohort_subject_id, elective), *taking, read=read)


def _refuse_unfinished(
    subject: str, submitted: Iterable[Sequence[str]], reopened: Iterable[Sequence[str]]
) -> None:
    """Refuse a change of takers under results that are being finished; raises Conflict, naming terms and classes."""
    waiting, reviewed = _by_term(submitted), _by_term(reopened)
    if waiting:
        raise Locked(
            f"{subject} is submitted, and results are not published yet: {_in_words(waiting)}. Publish them, or "
            f"reopen {subject}, first.",
            {"not_published": waiting},
        )
    if reviewed:
        raise Locked(
            f"{subject} is in reopened results: {_in_words(reviewed)}. Publish them again first.",
            {"reopened": reviewed},
        )


def _by_term(places: Iterable[Sequence[str]]) -> list[dict[str, Any]]:
    arms: dict[str, list[str]] = {}
    for term, arm in places:
        arms.setdefault(term, []).append(arm)
    return [{"term": term, "arms": of_term} for term, of_term in arms.items()]


def _in_words(terms: Iterable[dict[str, Any]]) -> str:
    return "; ".join(f"{term['term']} of {', '.join(term['arms'])}" for term in terms)


def take_subject(*, cohort_subject_id: UUID, student_ids: Sequence[UUID]) -> UUID:
    """Let students of the cohort take a subject of it; its present students go on with it. Returns the subject's id.

    They take it in reopened results, too. Raises NotFound, and Invalid naming students outside the cohort.
    """
    ids = list(dict.fromkeys(student_ids))
    locks = lock_cohort_of(cohort_subject_id), lock_students(ids)
    row = fetch_document(in_one_round_trip(*locks, read=reads.choosing(cohort_subject_id, ids)))
    if row is None:
        raise not_found(CohortSubject)
    known = {UUID(student["id"]): student for student in row["students"]}
    absent = (student for student in ids if student not in known or not known[student]["in_cohort"])
    refuse_named({"students": strangers(absent, "not in the cohort")})
    new = [student for student in ids if not known[student]["takes"]]
    if new:
        audit_changes(
            TAKING, [Change(student, None, {"cohort_subject": cohort_subject_id}) for student in new]
        )
        execute(
            take_chosen_subject(cohort_subject_id, new, now()),
            _put_in(UUID(row["cohort_id"]), cohort_subject_id, new),
        )
    return cohort_subject_id


def drop_subject(*, cohort_subject_id: UUID, student_id: UUID) -> UUID:
    """Let a student drop an elective, in reopened results, too, and keep the scores; returns the student's id.

    Raises NotFound if the student does not take it, Conflict if all of the cohort have to.
    """
    row = execute(lock_cohort_of(cohort_subject_id), reads.dropping(cohort_subject_id, student_id))
    if row is None:
        get(CohortSubject, cohort_subject_id)
        raise NotFound("The student does not take this subject.")
    if not row["elective"]:
        raise Conflict("This subject is no elective: every student of the cohort takes it.")
    audit_change(TAKING, student_id, old={"cohort_subject": cohort_subject_id})
    execute(
        _drop(cohort_subject_id, student_id),
        _take_out(UUID(str(row["cohort_id"])), cohort_subject_id, [student_id]),
    )
    return student_id


@statement
def _change(cohort_subject_id: UUID, elective: bool) -> Any:
    return update(CohortSubject).where(CohortSubject.id == cohort_subject_id).values(elective=elective)


@statement
def _drop(cohort_subject_id: UUID, student_id: UUID) -> Any:
    return delete(SubjectEnrollment).where(
        SubjectEnrollment.cohort_subject_id == cohort_subject_id, SubjectEnrollment.student_id == student_id
    )


@statement
def _put_in(cohort_id: UUID, cohort_subject_id: UUID, student_ids: list[UUID]) -> Any:
    return _noting(cohort_id, cohort_subject_id, student_ids, "in", "out")


@statement
def _take_out(cohort_id: UUID, cohort_subject_id: UUID, student_ids: list[UUID]) -> Any:
    return _noting(cohort_id, cohort_subject_id, student_ids, "out", "in")


def _noting(cohort_id: Any, cohort_subject_id: Any, student_ids: Any, to: str, of: str) -> Any:
    """Note students in the reopened publications of a locked cohort that know the subject: `to` one list, `of` another.

    The last act on a student holds.
    """
    subject, ids = cast(cohort_subject_id, Text), cast(cast(student_ids, ARRAY(Uuid)), ARRAY(Text))
    noted = Publication.takers_changed.op("->", return_type=JSONB)(subject)

    def others(name: str) -> Any:
        listed = func.coalesce(noted[name], literal_column("'[]'::jsonb"), type_=JSONB)
        return listed.op("-", return_type=JSONB)(ids)

    both = func.jsonb_build_object(to, others(to).op("||")(func.to_jsonb(ids)), of, others(of))
    return (
        update(Publication)
        .where(
            Publication.cohort_id == cohort_id,
            Publication.state == REOPENED,
            Publication.takers_changed.is_not(None),
            Publication.rules["subjects"].has_key(subject),
        )
        .values(takers_changed=func.jsonb_set(Publication.takers_changed, array([subject]), both))
    )
