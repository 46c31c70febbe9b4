"""Submissions: hand in the results of arms in a subject and a term, and reopen them.

Both lock, in this order, so that none wait in a circle, the term FOR KEY SHARE, and FOR NO KEY UPDATE the cohort
(enrollments lock it FOR SHARE), the cohort subject and its assessments of the term. Scores and absences are written
under a lock of their assessment, assessments are added under one of the cohort subject: the results submitted are the
results judged, of the same members.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import ARRAY, Uuid, cast, delete, select, update

from school_service.core.database import db
from school_service.core.errors import Conflict, Incomplete, Invalid, Locked
from school_service.core.narrowing import everybodys
from school_service.core.read_models import BoundQuery, Made, MadeTogether, fetch_made, fetch_rows
from school_service.core.records import get_referenced, once_locked, one_of, unknown_reference
from school_service.core.statements import NewRow, execute, in_one_round_trip, new_row, statement
from school_service.features.audit.service import acting, audit_change
from school_service.features.results.computing.class_term.loaded import Member
from school_service.features.results.computing.compute import Paper
from school_service.features.results.figures.service import check_broadsheet, check_subject_results
from school_service.features.results.models import OPEN, REFUSE, SUBMITTED
from school_service.features.results.submissions import answers, reads
from school_service.features.school.models import AcademicSession, Batch, Cohort, Term
from school_service.features.school.sessions.service import is_term
from school_service.features.scores.absences.service import storing_blanks
from school_service.features.scores.assessments.reads import lock_assessments
from school_service.features.scores.assessments.service import require_every_arm
from school_service.features.scores.models import NOT_DELETED, Assessment, Submission
from tenants.clock import now

MAX_NAMED = 200  # admission numbers in an error


def check_submissions(
    *, term: str | None = None, batch: UUID | None = None, cohort: UUID | None = None, **_others: Any
) -> None:
    """Tell whether the objects of a list of submissions exist. Raises Invalid."""
    if batch is None and cohort is None and term is not None:
        of_session = Term.session_id == AcademicSession.id
        meant = (
            select(Term.id).join(AcademicSession, of_session).where(AcademicSession.current, is_term(term))
        )
        if db.session.scalar(everybodys(meant)) is None:
            raise unknown_reference(Term, "term")
    if batch is not None:
        check_broadsheet(batch=batch, term=term)
    if cohort is not None:
        get_referenced(Cohort, cohort, "cohort")
        check_broadsheet(batch=cohort, term=term)


def list_submissions(
    *,
    term: str | None = None,
    batch: UUID | None = None,
    cohort: UUID | None = None,
    state: str | None = None,
) -> Made | MadeTogether:
    """List the submissions of a batch, of a cohort or, without either, of all classes of the current session.

    Of the latter without a `term` they are of the term of today by the calendar or, without any, of each term.
    """
    if cohort is not None and term is not None:
        return answers.of_class(cohort, term, cohort=True, state=state)
    if batch is not None and term is not None:
        return answers.of_class(batch, term, state=state)
    return answers.of_classes([*fetch_rows(reads.classes(term))], state=state)


def submit(*, cohort_subject_id: UUID, term: str, batch: UUID | None = None, blanks: str = REFUSE) -> Made:
    """Hand in the results of a cohort subject in a term; those handed in already stay as they are.

    `term` is the id of a term or its name in the cohort's session. `batch`: those of this arm alone; without it, those
    of every arm with takers of the subject. `blanks`: ABSENT or EXCUSED make each blank such an absence, in the same
    transaction. Returns the read model of the submission; it is stored in the read model's round trip. Raises NotFound,
    Invalid for an unknown term and for a batch unknown or of another cohort, and Conflict if nothing counts, and naming
    the blanks refused.
    """
    facts = _facts_or_error(
        fetch_made(
            in_one_round_trip(
                *_locks(cohort_subject_id, term), read=answers.submitting(cohort_subject_id, term)
            )
        ),
        cohort_subject_id,
        term,
    )
    read, batches = answers.of_subject(cohort_subject_id, term, batch), facts["batches"]
    _require_taught(batches, batch)
    submitted = [batch for batch in batches if batch["submitted"]]
    submitting = _submitting(batches, batch)
    if not submitting:
        return read
    if not facts["counting"]:
        raise Incomplete("Nothing counts in this subject and term: there is nothing to submit.")
    ids = {batch["id"] for batch in submitting}
    blank = [(paper, person) for paper, person in facts["blanks"] if person.batch in ids]
    if blank and blanks == REFUSE:
        raise _refused(blank)
    absences = [(UUID(paper.id), UUID(person.id)) for paper, person in blank]
    moment = now()
    audit_change(
        reads.ENTITY,
        cohort_subject_id,
        new={
            "state": SUBMITTED,
            "term": facts["term_id"],
            **_audited(submitting, batches),
            "takers": sum(batch["takers"] for batch in submitting),
            "assessments": facts["counting"],
            "absences": {"status": blanks, "number": len(absences)} if absences else None,
        },
    )
    becoming = [storing_blanks(absences, blanks, moment=moment, source="submission")] if absences else []
    return in_one_round_trip(
        *_rows(cohort_subject_id, facts, submitting, moment),
        *becoming,
        _hold(cohort_subject_id, facts["term_id"], _ids([*submitted, *submitting])),
        read=read,
    )


def reopen(*, cohort_subject_id: UUID, term: str, reason: str, batch: UUID | None = None) -> Made:
    """Reopen the results of a cohort subject in a term, so that they can be corrected; of a `batch`, or of all.

    Results reopened before stay as they are. `term` and `batch` as in `submit`. Returns the read model of the
    submission; it is deleted in the read model's round trip. Raises NotFound, Invalid for an unknown term and for a
    batch unknown or of another cohort, and Conflict for results never submitted, and naming the batches with published
    results of the term that rest on it.
    """
    judged = execute(*_locks(cohort_subject_id, term), reads.reopening(cohort_subject_id, term, batch))
    facts = _facts_or_error(judged, cohort_subject_id, term)
    read = answers.of_subject(cohort_subject_id, term, batch)
    batches = orjson.loads(facts["batches"])
    submitted = [batch for batch in batches if batch["submitted"]]
    reopening = [arm for arm in _chosen_batches(batches, batch) if arm["submitted"]]
    if not reopening:
        if not facts["once"]:
            raise Conflict("The results of this subject and term were never submitted.")
        return read
    published = orjson.loads(facts["published"])
    if published:
        raise Locked(f"The results of {', '.join(published)} are published: reopen those publications first.")
    about = {"term": facts["term_id"], **_audited(reopening, batches)}
    audit_change(
        reads.ENTITY,
        cohort_subject_id,
        old={"state": SUBMITTED, **about},
        new={"state": OPEN, **about, "reason": reason},
    )
    return in_one_round_trip(
        _hold(
            cohort_subject_id,
            facts["term_id"],
            _ids([batch for batch in submitted if batch not in reopening]),
        ),
        _delete(cohort_subject_id, facts["term_id"], _ids(reopening)),
        read=read,
    )


def _submitting(batches: Sequence[dict[str, Any]], batch: UUID | None) -> Sequence[dict[str, Any]]:
    """Give the batches to submit: the given one, or those with takers of the subject.

    If nobody takes it and nothing is submitted yet, they are all. Raises Invalid.
    """
    left = [arm for arm in _chosen_batches(batches, batch) if not arm["submitted"]]
    if batch is not None:
        return left
    taken = [batch for batch in left if batch["is_taken"]]
    return taken if taken or len(left) < len(batches) else left


def _chosen_batches(batches: Sequence[dict[str, Any]], batch: UUID | None) -> Sequence[dict[str, Any]]:
    """Give the one batch of a cohort by its id, or all. Raises Invalid."""
    if batch is None:
        return batches
    meant = [arm for arm in batches if arm["id"] == str(batch)]
    if not meant:
        get_referenced(Batch, batch, "batch")
        raise Invalid.field("batch", "is not of the cohort")
    return meant


def _require_taught(batches: Sequence[dict[str, Any]], batch: UUID | None) -> None:
    """Refuse the submission of other subjects to a caller with their own subjects in reach alone.

    Raises Invalid for a batch not taught by them, and Forbidden if they teach some of the batches alone.
    """
    untaught = {batch["id"] for batch in batches if not batch["taught"]}
    if batch is None:
        require_every_arm(not untaught)
    elif str(batch) in untaught:
        raise unknown_reference(Batch, "batch")


def _audited(some: Sequence[dict[str, Any]], batches: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The batches as the audit log has them: nothing if they are all of the cohort."""
    return {} if len(some) == len(batches) else {"batches": [batch["id"] for batch in some]}


def _ids(batches: Sequence[dict[str, Any]]) -> list[UUID]:
    return [UUID(batch["id"]) for batch in batches]


def _locks(cohort_subject_id: UUID, term: str) -> tuple[BoundQuery, ...]:
    """Lock all rows of a submission."""
    return (
        reads.lock_term(cohort_subject_id, term),
        reads.lock_subject(cohort_subject_id),
        lock_assessments(cohort_subject_id, term),
    )


def _facts_or_error(judged: dict[str, Any] | None, cohort_subject_id: UUID, term: str) -> dict[str, Any]:
    """Give the facts found; raises NotFound, Invalid if there are none."""
    if judged is None:
        check_subject_results(id=cohort_subject_id, term=term)
        raise RuntimeError("The cohort subject and the term are there, and their facts were not found.")
    return judged


def _refused(blank: Sequence[tuple[Paper, Member]]) -> Conflict:
    """Make the error with the names of the blanks, at most MAX_NAMED, by their papers."""
    named: dict[str, dict[str, Any]] = {}
    for paper, person in blank[:MAX_NAMED]:
        about = {"assessment": paper.id, "abbreviation": paper.abbreviation, "students": []}
        named.setdefault(paper.id, about)["students"].append(person.student["admission_number"])
    words = "There is one blank" if len(blank) == 1 else f"There are {len(blank)} blanks"
    return Incomplete(
        f"{words}: enter the scores or absences that are missing, or say with blanks what they become.",
        {"blanks": [*named.values()]},
    )


def _rows(
    cohort_subject_id: UUID, facts: dict[str, Any], batches: Sequence[dict[str, Any]], moment: datetime
) -> list[NewRow]:
    """Make the submissions of batches, by the caller or, outside of requests, the operator."""
    actor, actor_name = acting()
    values = {
        "cohort_subject_id": cohort_subject_id,
        **{name: facts[name] for name in ("cohort_id", "session_id", "term_id")},
        "submitted_at": moment,
        "submitted_by": actor,
        "submitted_by_name": actor_name,
    }
    return [new_row(Submission, batch_id=batch["id"], **values) for batch in batches]


@statement
def _hold(cohort_subject_id: UUID, term_id: UUID, batch_ids: list[UUID]) -> Any:
    """Write the submitted batches to the assessments of a subject and term; these are locked."""
    return (
        update(Assessment)
        .where(Assessment.cohort_subject_id == cohort_subject_id, Assessment.term_id == term_id, NOT_DELETED)
        .values(submitted_batches=cast(batch_ids, ARRAY(Uuid)))
    )


@statement
def _delete(cohort_subject_id: UUID, term_id: UUID, batch_ids: list[UUID]) -> Any:
    which = (
        Submission.cohort_subject_id == cohort_subject_id,
        Submission.term_id == term_id,
        Submission.batch_id == one_of(batch_ids),
    )
    # In order of id, the order in which erasing a user locks submissions.
    locking = select(Submission.id).where(*which).order_by(Submission.id).with_for_update()
    return delete(Submission).where(*which, once_locked(locking))
