"""Assessments: create, find, delete softly; and whether their results are submitted.

Results are submitted by arm. Submitting them locks the cohort subject and its assessments of the term FOR NO KEY
UPDATE. Adding an assessment locks the cohort subject FOR SHARE, then looks for a submission; a writer of scores or
absences locks the assessment, and reads the submitted arms there. So no write is lost between a submission and its
figures. A change for all arms, such as one of the assessment, is refused once one arm is submitted; a score or an
absence, once its student's arm is. A teacher of some arms adds an assessment for all, and changes or deletes an empty
one; with a score or an absence in it, it takes a teacher of every arm.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Text, Uuid, cast, func, null, select, true

from school_service.core.database import db
from school_service.core.errors import Forbidden, InUse, Invalid, Locked, Unknown
from school_service.core.narrowing import caller_has_own, judged_before, within
from school_service.core.read_models import BoundQuery, fetch_row
from school_service.core.records import change, find, get, get_referenced, not_found, unknown_reference
from school_service.core.statements import (
    NewRow,
    execute,
    execute_with_commit,
    fetch_one,
    in_one_round_trip,
    new_row,
    statement,
)
from school_service.features.audit.models import DELETE
from school_service.features.audit.service import audit_change, audit_written, logged_score
from school_service.features.classes.models import CohortSubject
from school_service.features.reach import scopes
from school_service.features.school.models import Batch, Cohort, Subject
from school_service.features.school.sessions.service import check_term, refuse_other_term
from school_service.features.scores.assessments import reads
from school_service.features.scores.models import NOT_DELETED, Absence, Assessment, GradebookEntry
from tenants.clock import now

ENTITY, SCORE_ENTITY, ABSENCE_ENTITY = "assessment", "gradebook", "absence"
"""The names in the audit log; the id of an absence there is the assessment's, and `student` names the student."""


def create_assessment(*, subject: UUID, term: str, **fields: Any) -> NewRow:
    """Add an assessment of a cohort subject in a term of its cohort's session.

    `term` is the id of a term or its name in that session; `fields` are the other columns, such as `total_points`, the
    maximum score. Raises Invalid for an unknown cohort subject or term, and for a term of another session, and Conflict
    if results of the subject and term are submitted, of any arm. A teacher of one arm adds it for all.
    """
    row = execute(
        reads.lock_term([subject], term), reads.lock_subjects([subject]), reads.taught(subject, term)
    )
    if row is None:
        raise unknown_reference(CohortSubject, "subject")
    assessment = _new_assessment(subject, row, **fields)
    execute(assessment)
    return assessment


def create_assessments(*, subjects: Sequence[UUID], term: str, **fields: Any) -> BoundQuery:
    """Add the same assessment to several subjects of a cohort, all or none.

    The `fields` are those of `create_assessment`, and its rules hold for each. Returns the read model of the
    assessments, inserted and read in one round trip, in the order of the subjects. Raises Invalid, naming the places of
    subjects unknown or named twice, and for subjects of several cohorts.
    """
    ids = list(subjects)
    row = fetch_one(reads.lock_term(ids, term), reads.lock_subjects(ids), reads.all_taught(ids, term))
    taught = {UUID(subject["id"]): subject for subject in orjson.loads(row["subjects"])}
    wrong = {
        str(place): ["named more than once" if subject in ids[:place] else Unknown("no such cohort subject")]
        for place, subject in enumerate(ids)
        if subject in ids[:place] or subject not in taught
    }
    if wrong:
        names = {subject.id: subject.name for subject in db.session.execute(_names(taught))}
        words = [
            f"{names.get(subject, f'subjects.{place}')}: {wrong[str(place)][0]}"
            for place, subject in enumerate(ids)
            if str(place) in wrong
        ]
        raise Invalid("; ".join(words), {"subjects": wrong})
    if len({subject["cohort_id"] for subject in taught.values()}) > 1:
        raise Invalid.field("subjects", "are of several cohorts")
    made = [_new_assessment(subject, taught[subject], **fields) for subject in ids]
    return in_one_round_trip(*made, read=reads.made_at_once([assessment.id for assessment in made]))


def _names(cohort_subjects: Collection[UUID]) -> Any:
    """Select the names of cohort subjects in reach, by id."""
    return judged_before(
        select(CohortSubject.id, Subject.name)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .where(CohortSubject.id.in_(cohort_subjects))
    )


def _new_assessment(subject: UUID, row: Mapping[str, Any], **fields: Any) -> NewRow:
    """Make the row of an assessment of a locked cohort subject, and its entry in the audit log.

    `row` is of `reads.taught`. Raises Invalid and Conflict.
    """
    term_id = _open_term(row, subject)
    assessment = new_row(
        Assessment,
        cohort_subject_id=subject,
        cohort_id=UUID(str(row["cohort_id"])),
        session_id=UUID(str(row["session_id"])),
        term_id=term_id,
        **fields,
    )
    audit_change(
        ENTITY, assessment.id, new={name: fields[name] for name in ("name", "category", "total_points")}
    )
    return assessment


def change_assessment(*, assessment_id: UUID, **changes: Any) -> UUID:
    """Change any member of an assessment but its cohort subject.

    `term` is the id of a term of the cohort's session, or its name there; the scores go with it. Raises NotFound,
    Invalid for an unknown term and one of another session, Forbidden as `lock_open_assessment` does, and Conflict if
    results of an arm are submitted, in this term or in the other, and for total points below an existing score.
    """
    if "term" in changes:
        # Submitting locks the cohort subject first, and before that the term.
        execute(reads.lock_terms_of(assessment_id), reads.lock_subject_of(assessment_id))
    assessment = lock_open_assessment(assessment_id)
    if "term" in changes:
        subject_id = assessment.cohort_subject_id
        row = fetch_one(reads.taught(subject_id, changes.pop("term")))
        changes["term_id"] = _open_term(row, subject_id)
    if changes.get("total_points", assessment.total_points) < assessment.total_points:
        _refuse_below_a_score(assessment_id, changes["total_points"])
    old, new = change(assessment, changes)
    if new:
        audit_change(ENTITY, assessment_id, old=_by_member(old), new=_by_member(new))
    return assessment_id


def _open_term(row: Mapping[str, Any], subject_id: UUID) -> UUID:
    """Find the term in a row of `reads.taught`, as long as none of its results are submitted.

    Raises Invalid for an unknown term and one of another session, and Conflict.
    """
    refuse_other_term(row["of_session"], "the cohort's")
    term_id = UUID(row["term_id"])
    refuse_submitted(row["submitted"], subject_id, term_id)
    return term_id


def _refuse_below_a_score(assessment_id: UUID, total_points: Decimal) -> None:
    """Refuse total points below an existing score, of a locked assessment; raises Conflict."""
    highest = fetch_one(reads.highest_score(assessment_id))["score"]
    if highest is not None and highest > total_points:
        reason = f"there is a score of {highest.normalize():f}"
        raise InUse(
            f"Total points can't be {total_points.normalize():f}: {reason}.", {"total_points": [reason]}
        )


def _by_member(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Name columns of an assessment as its members."""
    return {"term" if name == "term_id" else name: value for name, value in columns.items()}


def check_assessment_filter(*, cohort: UUID, subject: UUID, term: str) -> None:
    """Tell whether the records named by a filter of assessments are there.

    `cohort` is the cohort or a batch of it, `subject` a cohort subject or a base subject, `term` the id of a term or
    its name in the cohort's session. Raises Invalid, naming the field.
    """
    of_cohort = find(Cohort, cohort) or get(Cohort, get_referenced(Batch, cohort, "cohort").cohort_id)
    if find(CohortSubject, subject) is None:
        get_referenced(Subject, subject, "subject")
    check_term(term, of_cohort.session_id)


def find_assessment(assessment_id: UUID, *, for_update: bool = False) -> Assessment | None:
    """Find an assessment, unless it is deleted; `for_update` as in `get`."""
    assessment = find(Assessment, assessment_id, for_update=for_update)
    return None if assessment is None or assessment.deleted_at is not None else assessment


def check_assessment(*, id: UUID) -> None:
    """Tell whether the given assessment is there; raises NotFound."""
    _get_assessment(id)


def lock_assessment(assessment_id: UUID) -> Assessment:
    """Lock an assessment FOR NO KEY UPDATE, to change it or its records. Raises NotFound."""
    return _get_assessment(assessment_id, for_update=True)


def _get_assessment(assessment_id: UUID, *, for_update: bool = False) -> Assessment:
    assessment = find_assessment(assessment_id, for_update=for_update)
    if assessment is None:
        raise not_found(Assessment)
    return assessment


def lock_open_assessment(assessment_id: UUID) -> Assessment:
    """Lock an assessment FOR NO KEY UPDATE, for a change of all arms.

    Raises NotFound, Conflict if results of an arm are submitted, and Forbidden if it has a score or an absence and the
    caller teaches some of the arms alone.
    """
    assessment, is_taught_to_all = _lock_with_arms(assessment_id)
    # Its own statement, after the lock: no score is entered meanwhile, and one entered while it waited is seen.
    if not is_taught_to_all and fetch_row(reads.some_entry(assessment_id)):
        require_every_arm(is_taught_to_all)
    refuse_submitted(assessment.submitted_batches, assessment.cohort_subject_id, assessment.term_id)
    return assessment


def _lock_with_arms(assessment_id: UUID) -> tuple[Assessment, bool]:
    """Lock an assessment, and tell whether the caller has every arm of its subject in reach."""
    if not caller_has_own():
        return lock_assessment(assessment_id), True
    subject, cohort = Assessment.cohort_subject_id, Assessment.cohort_id
    to_all = within(select(true()), scopes.is_taught_to_all, subject, cohort).correlate(Assessment)
    locking = (
        select(Assessment, to_all.exists().label("to_all"))
        .where(Assessment.id == assessment_id, NOT_DELETED)
        .with_for_update(key_share=True, of=Assessment)
        .execution_options(populate_existing=True)
    )
    row = db.session.execute(within(locking, reads.in_reach)).one_or_none()
    if row is None:
        raise not_found(Assessment)
    return row.Assessment, row.to_all


def require_every_arm(is_taught_to_all: bool) -> None:
    """Refuse a change of every arm to a teacher of the subject in some of them; raises Forbidden."""
    if not is_taught_to_all:
        raise Forbidden(
            "This concerns every arm of the class, and you teach the subject to some of them alone."
        )


def refuse_held(
    student_id: UUID,
    *,
    assessment_id: UUID,
    submitted_batches: Collection[Any],
    cohort_subject_id: UUID,
    term_id: UUID,
) -> None:
    """Refuse to change a student's part in a locked assessment while a submission holds it; raises Conflict.

    Finding the arm of the submission costs a statement, made only if an arm is submitted.
    """
    if submitted_batches:
        held = fetch_one(reads.holding(assessment_id, student_id))
        refuse_submitted(held["submitted"], cohort_subject_id, term_id)


def refuse_submitted(batch_ids: Collection[Any], cohort_subject_id: UUID, term_id: UUID) -> None:
    """Refuse to change the submitted results of a cohort subject and term; raises Conflict.

    `batch_ids` are the arms with a submission holding them, in a locked assessment, or of a locked cohort subject. The
    ones in reach of the caller are named.
    """
    if not batch_ids:
        return
    row = fetch_one(reads.names_of_submissions(cohort_subject_id, term_id, sorted(map(str, batch_ids))))
    of_some = f" for {row['arms']}" if row["arms"] else ""
    raise Locked(
        f"The results of {row['subject']}, {row['term']}, are submitted{of_some}: reopen them first."
    )


def delete_assessment(*, assessment_id: UUID) -> UUID:
    """Delete an assessment softly: it is gone from every answer, its scores and absences with it.

    The audit log keeps their values: they go for good with the cohort subject. Raises NotFound, Forbidden as
    `lock_open_assessment` does, and Conflict while results of an arm are submitted.
    """
    assessment = lock_open_assessment(assessment_id)
    assessment.deleted_at = now()
    audit_change(ENTITY, assessment.id, old=_audited(assessment))
    moment = now()
    execute_with_commit(_log_scores(assessment.id, moment), _log_absences(assessment.id, moment))
    return assessment.id


@statement
def _log_scores(assessment_id: UUID, moment: datetime) -> Any:
    """Write the scores of a locked assessment that is deleted to the audit log."""
    of = GradebookEntry
    rows = select(of.id, of.score, of.sheet).where(of.assessment_id == assessment_id).subquery("rows")
    old = logged_score(rows.c.score, rows.c.sheet)
    return audit_written(
        SCORE_ENTITY,
        DELETE,
        rows,
        id=_log_id(rows.c.id),
        moment=moment,
        entity_id=rows.c.id,
        old=old,
        new=null(),
    )


@statement
def _log_absences(assessment_id: UUID, moment: datetime) -> Any:
    of = Absence
    rows = select(of.student_id, of.status).where(of.assessment_id == assessment_id).subquery("rows")
    old = func.jsonb_build_object("student", rows.c.student_id, "status", rows.c.status)
    id = _log_id(cast(rows.c.student_id, Text) + cast(assessment_id, Text))
    return audit_written(
        ABSENCE_ENTITY, DELETE, rows, id=id, moment=moment, entity_id=assessment_id, old=old, new=null()
    )


def _log_id(row: Any) -> Any:
    """Make the id of the entry of a row that is deleted, once and for all, of its own."""
    return cast(func.md5("deleted " + cast(row, Text)), Uuid)


def _audited(assessment: Assessment) -> dict[str, Any]:
    """The values of an assessment in the audit log."""
    return {
        "name": assessment.name,
        "category": assessment.category,
        "total_points": assessment.total_points,
    }
