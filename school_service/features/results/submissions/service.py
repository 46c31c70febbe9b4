"""Submissions: hand in the results of a subject in a term, and reopen them.

Both lock, in this order, so that none wait in a circle: the cohort FOR SHARE (who publishes locks it FOR NO KEY
UPDATE), the cohort subject and its assessments of the term FOR NO KEY UPDATE. Scores and absences are written under a
lock of their assessment, assessments are added under one of the cohort subject: what is submitted is what was judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import delete, literal_column, update

from school_service.core.database import request_context
from school_service.core.errors import Conflict
from school_service.core.read_models import BoundQuery
from school_service.core.statements import execute, in_one_round_trip, new_row, statement
from school_service.features.audit.service import OPERATOR, audit_change
from school_service.features.results.figures.service import check_subject_results
from school_service.features.results.models import OPEN, REFUSE, SUBMITTED
from school_service.features.results.submissions import reads
from school_service.features.scores.absences.service import storing_blanks
from school_service.features.scores.models import NOT_DELETED, Assessment, Submission
from tenants.clock import now

MAX_NAMED = 200  # admission numbers in an error


def submit(*, cohort_subject_id: UUID, term: str, blanks: str = REFUSE) -> BoundQuery:
    """Hand in the results of a cohort subject in a term; those that are handed in already stay as they are.

    `term` is the id of a term or its name in the cohort's session. `blanks`: ABSENT or EXCUSED make each blank such an
    absence, in the same transaction. Returns the read model of the submission, which is stored in one message with
    being read. Raises NotFound, Invalid for an unknown term, and Conflict where nothing counts, and naming the blanks
    that are refused.
    """
    found = _lock(reads.submitting(cohort_subject_id, term), cohort_subject_id, term)
    read = reads.submission(cohort_subject_id, term)
    if found["submission_id"] is not None:
        return read
    if not found["counting"]:
        raise Conflict("Nothing counts in this subject and term: there is nothing to submit.")
    blank = orjson.loads(found["blanks"])
    if blank and blanks == REFUSE:
        raise _refused(blank)
    moment, principal = now(), request_context().principal
    submission = new_row(
        Submission,
        cohort_subject_id=cohort_subject_id,
        cohort_id=found["cohort_id"],
        session_id=found["session_id"],
        term_id=found["term_id"],
        submitted_at=moment,
        submitted_by=principal.actor if principal else OPERATOR,
        submitted_by_name=principal.actor_name if principal else OPERATOR,
    )
    absences = [
        (UUID(one["assessment"]), UUID(student["id"])) for one in blank for student in one["students"]
    ]
    audit_change(
        reads.ENTITY,
        cohort_subject_id,
        new={
            "state": SUBMITTED,
            "term": found["term_id"],
            "takers": found["takers"],
            "assessments": found["counting"],
            "absences": {"status": blanks, "number": len(absences)} if absences else None,
        },
    )
    becoming = [storing_blanks(absences, blanks, moment=moment, source="submission")] if absences else []
    return in_one_round_trip(
        submission,
        *becoming,
        _hold(submission.id, cohort_subject_id, found["term_id"]),
        read=read,
    )


def reopen(*, cohort_subject_id: UUID, term: str, reason: str) -> BoundQuery:
    """Reopen the results of a cohort subject in a term, so that they can be corrected.

    What was reopened already stays as it is. `term` as in `submit`. Returns the read model of the submission, which is
    deleted in one message with being read. Raises NotFound, Invalid for an unknown term, and Conflict for what was
    never submitted, and naming the batches whose results of the term are published.
    """
    found = _lock(reads.reopening(cohort_subject_id, term), cohort_subject_id, term)
    read = reads.submission(cohort_subject_id, term)
    if found["submission_id"] is None:
        if not found["once"]:
            raise Conflict("The results of this subject and term were never submitted.")
        return read
    published = orjson.loads(found["published"])
    if published:
        raise Conflict(
            f"The results of {', '.join(published)} are published: reopen those publications first."
        )
    audit_change(
        reads.ENTITY,
        cohort_subject_id,
        old={"state": SUBMITTED, "term": found["term_id"]},
        new={"state": OPEN, "term": found["term_id"], "reason": reason},
    )
    return in_one_round_trip(_release(found["submission_id"]), _delete(found["submission_id"]), read=read)


def _lock(judged: BoundQuery, cohort_subject_id: UUID, term: str) -> dict[str, Any]:
    """Lock all that a submission concerns, then read what decides; raises NotFound, Invalid."""
    found = execute(
        reads.lock_cohort(cohort_subject_id),
        reads.lock_subject(cohort_subject_id),
        reads.lock_assessments(cohort_subject_id, term),
        judged,
    )
    if found is None:
        check_subject_results(id=cohort_subject_id, term=term)
        raise RuntimeError("The cohort subject and the term are there, and what decides was not found.")
    return found


def _refused(blanks: Sequence[dict[str, Any]]) -> Conflict:
    """Make the error that names the blanks, at most MAX_NAMED."""
    number = sum(len(one["students"]) for one in blanks)
    named, left = [], MAX_NAMED
    for one in blanks:
        students = [student["admission_number"] for student in one["students"][:left]]
        left -= len(students)
        if students:
            named.append({**one, "students": students})
    words = "There is one blank" if number == 1 else f"There are {number} blanks"
    return Conflict(
        f"{words}: enter the scores or absences that are missing, or say with blanks what they become.",
        {"blanks": named},
    )


@statement
def _hold(submission_id: UUID, cohort_subject_id: UUID, term_id: UUID) -> Any:
    """Let the assessments of a submission, which are locked, name it."""
    return (
        update(Assessment)
        .where(Assessment.cohort_subject_id == cohort_subject_id, Assessment.term_id == term_id, NOT_DELETED)
        .values(submission_id=submission_id)
    )


@statement
def _release(submission_id: UUID) -> Any:
    return (
        update(Assessment)
        .where(Assessment.submission_id == submission_id)
        .values(submission_id=literal_column("NULL"))
    )


@statement
def _delete(submission_id: UUID) -> Any:
    return delete(Submission).where(Submission.id == submission_id)
