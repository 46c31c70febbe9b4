"""Scores of students in assessments: entered by hand or by sheet, and every change of one in the audit log.

Entering or removing a score by hand locks the assessment FOR SHARE; uploading a sheet, or deleting the
assessment, locks it FOR NO KEY UPDATE. So no entry of an assessment changes while a sheet is compared with them, and
none once its results are submitted: the locked row says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Text, Uuid, cast, select, update

from school_service.core.columns import POINTS, score_fault
from school_service.core.database import db
from school_service.core.errors import Invalid
from school_service.core.read_models import BoundQuery, fetch_row
from school_service.core.records import (
    get,
    get_referenced,
    insert_rows,
    not_found,
    unknown_reference,
    unnest_rows,
)
from school_service.core.statements import in_one_message, new_row
from school_service.features.absences.service import ENTITY as ABSENCE
from school_service.features.absences.service import absence_values, absences_of, taking_away
from school_service.features.assessments.models import NOT_DELETED, Assessment
from school_service.features.assessments.service import find_assessment, refuse_submitted
from school_service.features.audit.service import Change, Values, audit_change, audit_changes, score_values
from school_service.features.cohorts.models import Batch
from school_service.features.gradebooks import reads
from school_service.features.gradebooks.models import GradebookEntry
from school_service.features.sessions.models import Term
from school_service.features.students.models import Student
from school_service.sheets.uploads import RowCounts
from tenants.clock import now

ENTITY = "gradebook"


@dataclass(frozen=True, slots=True)
class Score:
    """A score to enter for a student who is in this batch.

    The ids are as PostgreSQL writes them: to make thousands of UUIDs takes longer than the query.
    """

    student_id: str
    batch_id: str
    score: Decimal


def check_gradebook_filter(
    *,
    batch: UUID | None = None,
    student: UUID | None = None,
    assessment: UUID | None = None,
    term: UUID | None = None,
) -> None:
    """Tell whether there is what the filters name. Raises Invalid."""
    if batch is not None:
        get_referenced(Batch, batch, "batch")
    if student is not None:
        get_referenced(Student, student, "student")
    if assessment is not None and find_assessment(assessment) is None:
        raise Invalid.field("assessment", "no such assessment")
    if term is not None:
        get_referenced(Term, term, "term")


def create_entry(*, assessment: UUID, score: Decimal, student: UUID, batch: UUID) -> BoundQuery:
    """Enter a score by hand, from 0 to the assessment's total points; a second for the student is a conflict.

    Returns the read model of the entry, which is inserted in one message with being read. An absence of the student is
    taken away in that message, too. Raises Invalid for an unknown id, a score beyond the total points, a
    batch of another cohort, and a student who is not in the batch or does not take the subject, and Conflict where the
    results are submitted.
    """
    found = fetch_row(reads.assessed(assessment, student, batch))
    if found is not None and found["was_changed"]:
        # Whoever undoes a promotion changes it: who is in the class now?
        found = fetch_row(reads.assessed(assessment, student, batch))
    if found is None:
        raise Invalid.field("assessment", "no such assessment")
    refuse_submitted(found["submission_id"])
    _check_score(score, found["total_points"])
    if found["of_cohort"] is None:
        raise unknown_reference(Batch, "batch")
    if not found["of_cohort"]:
        raise Invalid.field("batch", "is not of the assessment's cohort")
    if not found["known"]:
        raise unknown_reference(Student, "student")
    if not found["in_batch"]:
        raise Invalid.field("student", "is not in the batch")
    if not found["takes_subject"]:
        raise Invalid.field("student", "does not take the subject")
    entry = new_row(GradebookEntry, assessment_id=assessment, student_id=student, batch_id=batch, score=score)
    audit_change(ENTITY, entry.id, new=score_values(score))
    if not found["may_be_absent"]:
        return in_one_message(entry, read=reads.entry(entry.id))
    instead_of = taking_away(assessment_id=assessment, student_id=student)
    return in_one_message(*instead_of, entry, read=reads.entry(entry.id))


def change_entry(*, entry_id: UUID, score: Decimal | None = None) -> UUID:
    """Correct a score by hand, from 0 to the assessment's total points; the one that is there already stays as it is.

    The student may have left the batch or the subject meanwhile: what was entered can still be corrected. Raises
    NotFound, Invalid for a score beyond the total points, and Conflict where the results are submitted.
    """
    entry, assessed = _lock_entry(entry_id)
    if score is not None:
        _check_score(score, assessed.total_points)
        if score != entry.score:
            old = score_values(entry.score, entry.sheet)
            entry.score, entry.sheet, entry.updated_at = score, None, now()
            db.session.flush()
            audit_change(ENTITY, entry.id, old=old, new=score_values(score))
    return entry.id


def delete_entry(*, entry_id: UUID) -> UUID:
    """Remove an entry; the audit log keeps its score. Raises NotFound, and Conflict where the results are submitted."""
    entry, _assessed = _lock_entry(entry_id)
    audit_change(ENTITY, entry.id, old=score_values(entry.score, entry.sheet))
    db.session.delete(entry)
    return entry.id


@dataclass(frozen=True, slots=True)
class ComparedScores:
    """The scores of a sheet, compared with those that are stored: each with its entry, which None is without.

    An entry has `id` and `score`, and `sheet`, the name of the file that it came in.
    """

    new: list[Score]
    changed: list[tuple[Score, Any]]
    unchanged: int


def enter_sheet(*, assessment: Assessment, scores: list[Score], sheet: str) -> RowCounts:
    """Enter the scores of a sheet, each student once, in at most four statements however many there are.

    The assessment must be locked, and the scores must keep their rule. `sheet` is the file's name.
    """
    return store_sheet(
        assessment=assessment, scores=compare_scores(assessment=assessment, scores=scores), sheet=sheet
    )


def compare_scores(*, assessment: Assessment, scores: list[Score]) -> ComparedScores:
    """Compare the scores of a sheet, each student once, with what is stored. The assessment must be locked."""
    stored = db.session.execute(
        select(
            cast(GradebookEntry.student_id, Text).label("student_id"),
            cast(GradebookEntry.id, Text).label("id"),
            GradebookEntry.score,
            GradebookEntry.sheet,
        ).where(GradebookEntry.assessment_id == assessment.id)
    )
    entries = {row.student_id: row for row in stored}
    new = []
    changed = []
    for score in scores:
        entry = entries.get(score.student_id)
        if entry is None:
            new.append(score)
        elif entry.score != score.score:
            changed.append((score, entry))
    return ComparedScores(new, changed, len(scores) - len(new) - len(changed))


def store_sheet(
    *,
    assessment: Assessment,
    scores: ComparedScores,
    sheet: str,
    downloaded: str | None = None,
    forced: Collection[str] = (),
    absent: Mapping[str, str] | None = None,
) -> RowCounts:
    """Store the scores of a sheet that are new or differ. The assessment must be locked since they were compared.

    `sheet` is the file's name; `downloaded` and `forced`, the students whose score is replaced by force, are for the
    audit log. `absent` are the statuses of those who have an absence, which a score takes away.
    """
    created = {uuid4(): score for score in scores.new}
    updated = {UUID(entry.id): score for score, entry in scores.changed}

    def values(score: Score) -> Values:
        return score_values(score.score, sheet, downloaded=downloaded, forced=score.student_id in forced)

    moment = now()
    no_more_absent = {score.student_id for score in scores.new} & (absent or {}).keys()
    if created:
        _insert(assessment.id, created, sheet, moment, no_more_absent)
    if updated:
        _update(updated, sheet, moment)
    old = (score_values(entry.score, entry.sheet) for _, entry in scores.changed)
    audit_changes(
        ENTITY,
        [
            *(Change(entry_id, None, values(score)) for entry_id, score in created.items()),
            *(
                Change(entry_id, before, values(score))
                for (entry_id, score), before in zip(updated.items(), old, strict=True)
            ),
        ],
    )
    audit_changes(
        ABSENCE,
        (
            Change(assessment.id, absence_values(student_id, status), None)
            for student_id, status in (absent or {}).items()
            if student_id in no_more_absent
        ),
    )
    return RowCounts(len(created), len(updated), scores.unchanged)


def _lock_entry(entry_id: UUID) -> tuple[GradebookEntry, Assessment]:
    """Lock the assessment of an entry FOR SHARE, then the entry FOR NO KEY UPDATE; raises NotFound, Conflict."""
    assessed = db.session.scalar(
        select(Assessment)
        .join(GradebookEntry, GradebookEntry.assessment_id == Assessment.id)
        .where(GradebookEntry.id == entry_id, NOT_DELETED)
        .with_for_update(read=True, of=Assessment)
        .execution_options(populate_existing=True)
    )
    if assessed is None:
        raise not_found(GradebookEntry)
    refuse_submitted(assessed.submission_id)
    return get(GradebookEntry, entry_id, for_update=True), assessed


def _check_score(score: Decimal, total_points: Decimal) -> None:
    if score_fault(score, total_points):
        # The schema has refused what is less than 0 or has more places: this is more than the total.
        raise Invalid.field("score", f"is more than the assessment's {total_points} points")


def _insert(
    assessment_id: UUID,
    created: Mapping[UUID, Score],
    sheet: str,
    moment: datetime,
    no_more_absent: Collection[str],
) -> None:
    rows = unnest_rows(
        id=(Uuid(), list(created)),
        student_id=(Uuid(as_uuid=False), [score.student_id for score in created.values()]),
        batch_id=(Uuid(as_uuid=False), [score.batch_id for score in created.values()]),
        score=(POINTS, [score.score for score in created.values()]),
    )
    common = {"assessment_id": assessment_id, "sheet": sheet, "created_at": moment, "updated_at": moment}
    with_them = [absences_of(assessment_id, no_more_absent)] if no_more_absent else []
    insert_rows(GradebookEntry, rows, with_them, **common)


def _update(updated: Mapping[UUID, Score], sheet: str, moment: datetime) -> None:
    rows = unnest_rows(
        id=(Uuid(), list(updated)), score=(POINTS, [score.score for score in updated.values()])
    )
    db.session.execute(
        update(GradebookEntry)
        .where(GradebookEntry.id == rows.c.id)
        .values(score=rows.c.score, sheet=sheet, updated_at=moment)
        .execution_options(synchronize_session=False)
    )
