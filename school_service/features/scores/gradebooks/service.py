"""Scores of students in assessments: entered by hand or by sheet, and every change of one in the audit log.

Entering or removing a score by hand locks the assessment FOR SHARE; uploading a sheet, or deleting the
assessment, locks it FOR NO KEY UPDATE. So no entry of an assessment changes while a sheet is compared with them, and
none once its results are submitted: the locked row says so.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    CTE,
    Boolean,
    Uuid,
    and_,
    case,
    cast,
    delete,
    func,
    insert,
    literal_column,
    null,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB

from school_service.core.columns import POINTS, score_fault
from school_service.core.database import db
from school_service.core.errors import Invalid, Unknown
from school_service.core.narrowing import caller_has_own, within
from school_service.core.read_models import BoundQuery, RenderedRow, fetch_row
from school_service.core.records import (
    array_text,
    check_of_filters,
    get,
    new_ids,
    not_found,
    one_of,
    unknown_reference,
    unnest_rows,
)
from school_service.core.statements import execute_with_commit, fetch_one, new_row, statement
from school_service.features.audit.models import CREATE, DELETE, UPDATE
from school_service.features.audit.service import (
    Change,
    audit_change,
    audit_changes,
    audit_written,
    logged_score,
    score_values,
)
from school_service.features.people.models import Student
from school_service.features.school.models import Batch
from school_service.features.school.sessions.service import check_term
from school_service.features.scores.absences.service import (
    absence_values,
    delete_absences,
    deletion_of_absence,
)
from school_service.features.scores.assessments.reads import holding_batches
from school_service.features.scores.assessments.service import (
    ABSENCE_ENTITY,
    SCORE_ENTITY,
    find_assessment,
    refuse_held,
    refuse_submitted,
)
from school_service.features.scores.gradebooks import reads
from school_service.features.scores.models import NOT_DELETED, Assessment, GradebookEntry
from tenants.clock import now
from tenants.connections.engines import json_text


class Score(NamedTuple):
    """A score to enter for a student in this batch; `entry_id` and `stored` are of the existing entry.

    The ids are as PostgreSQL writes them: to make thousands of UUIDs takes longer than the query. With the score None
    the entry is removed. `absent`: the status of the student's absence.
    """

    student_id: str
    batch_id: str
    score: Decimal | None
    entry_id: str | None = None
    stored: Decimal | None = None
    absent: str | None = None


def _check_assessment(assessment_id: UUID, field: str) -> None:
    if find_assessment(assessment_id) is None:
        raise Invalid.field(field, Unknown("no such assessment"))


check_gradebook_filter = check_of_filters(
    batch=Batch,
    student=Student,
    assessment=_check_assessment,
    term=lambda term, _name: check_term(term),
)


def create_entry(*, assessment: UUID, score: Decimal, student: UUID, batch: UUID) -> RenderedRow:
    """Enter a score by hand, from 0 to the assessment's total points; a second for the student is a conflict.

    Returns the entry, rendered before it is inserted in the round trip of COMMIT. An absence of the student is taken
    away in that round trip, too. Raises Invalid for an unknown id, a score beyond the total points, a batch of another
    cohort, and a student not in the batch or without the subject, and Conflict while the results of the student's arm
    are submitted.
    """
    entry = new_row(GradebookEntry, assessment_id=assessment, student_id=student, batch_id=batch, score=score)
    entering = reads.entering(entry.id, assessment, student, batch, score)
    row = fetch_row(entering)
    if row is not None and row["was_changed"]:
        # Undoing a promotion changes it: read again for the class as it is now.
        row = fetch_row(entering)
    if row is None:
        raise Invalid.field("assessment", Unknown("no such assessment"))
    if not row["may_enter"] and caller_has_own():
        # Before refuse_held: of a student out of reach nothing is told, nor that results are held.
        _refuse_hindered(assessment, student, batch)
    refuse_held(
        student,
        assessment_id=assessment,
        submitted_batches=row["submitted_batches"],
        cohort_subject_id=row["cohort_subject_id"],
        term_id=row["term_id"],
    )
    _check_score(score, row["total_points"])
    if not row["may_enter"]:
        _refuse_hindered(assessment, student, batch)
    audit_change(SCORE_ENTITY, entry.id, new=score_values(score))
    if row["absent"]:
        execute_with_commit(*deletion_of_absence(assessment_id=assessment, student_id=student))
    execute_with_commit(entry)
    return RenderedRow(row["answer"].encode())


def _refuse_hindered(assessment: UUID, student: UUID, batch: UUID) -> None:
    """Raise the hindrance to a score; nothing if it has ended meanwhile."""
    row = fetch_one(reads.hindrances(assessment, student, batch))
    if row["of_cohort"] is None:
        raise unknown_reference(Batch, "batch")
    if not row["of_cohort"]:
        raise Invalid.field("batch", "is not of the assessment's cohort")
    if not row["known"]:
        raise unknown_reference(Student, "student")
    if not row["in_batch"]:
        raise Invalid.field("student", "is not in the batch")
    if not row["takes_subject"]:
        raise Invalid.field("student", "does not take the subject")


def change_entry(*, entry_id: UUID, score: Decimal | None = None) -> UUID:
    """Correct a score by hand, from 0 to the assessment's total points; an equal one stays as it is.

    The student may have left the batch or the subject meanwhile: their score can still be corrected. Raises NotFound,
    Invalid for a score beyond the total points, and Conflict while the results of the student's arm are submitted.
    """
    entry, assessed = _lock_entry(entry_id)
    if score is not None:
        _check_score(score, assessed.total_points)
        if score != entry.score:
            old = score_values(entry.score, entry.sheet)
            entry.score, entry.sheet, entry.updated_at = score, None, now()
            db.session.flush()
            audit_change(SCORE_ENTITY, entry.id, old=old, new=score_values(score))
    return entry.id


def delete_entry(*, entry_id: UUID) -> UUID:
    """Remove an entry; the audit log keeps its score.

    Raises NotFound, and Conflict while the results of the student's arm are submitted.
    """
    entry, _assessed = _lock_entry(entry_id)
    audit_change(SCORE_ENTITY, entry.id, old=score_values(entry.score, entry.sheet))
    db.session.delete(entry)
    return entry.id


@dataclass(frozen=True, slots=True)
class ComparedScores:
    """The scores of a class beside their entries: `changed` are those with another score in the entry."""

    new: list[Score]
    changed: list[Score]
    removed: list[Score]
    unchanged: int


def compare_scores(scores: Collection[Score]) -> ComparedScores:
    """Compare the scores of a class with the stored ones: each student once."""
    new = [score for score in scores if score.entry_id is None and score.score is not None]
    stored = [score for score in scores if score.entry_id is not None]
    removed = [score for score in stored if score.score is None]
    changed = [score for score in stored if score.score is not None and score.stored != score.score]
    return ComparedScores(new, changed, removed, len(stored) - len(removed) - len(changed))


def storing(
    *,
    assessment_id: UUID,
    scores: ComparedScores,
    sheet: str | None = None,
    downloaded: str | None = None,
    forced: Collection[str] = (),
) -> list[BoundQuery]:
    """Store new and differing scores of a class, and remove the ones to be none: the statements.

    The assessment must be locked since their entries were read, and the scores must keep their rule. `sheet` is the
    file's name, None for scores from no sheet; `downloaded` and `forced`, the students with a score replaced by force,
    are for the audit log. A score takes an absence away.
    """
    logged = json_text(score_values(None, sheet, downloaded=downloaded))
    moment = now()
    writes: list[BoundQuery] = []
    if scores.new:
        writes += _creation(assessment_id, scores.new, sheet, logged, forced, moment)
    if scores.changed:
        ids = array_text(score.entry_id for score in scores.changed)
        values = array_text(score.score for score in scores.changed)
        # The log first: it has the scores before the change.
        writes += [
            _log_change(assessment_id, ids, values, *_for_log(scores.changed, forced), logged, moment),
            _change(assessment_id, ids, values, sheet, moment),
        ]
    if scores.removed:
        ids = array_text(score.entry_id for score in scores.removed)
        log_ids = array_text(new_ids(len(scores.removed)))
        writes += [_log_removal(assessment_id, ids, log_ids, moment), _remove(assessment_id, ids)]
    return writes


def _creation(
    assessment_id: UUID,
    scores: Sequence[Score],
    sheet: str | None,
    logged: str,
    forced: Collection[str],
    moment: datetime,
) -> list[BoundQuery]:
    """Make the statements to enter scores, and to take away the absences of these students."""
    ids, values = array_text(new_ids(len(scores))), array_text(score.score for score in scores)
    students = array_text(score.student_id for score in scores)
    batches = array_text(score.batch_id for score in scores)
    writes = [
        _create(assessment_id, ids, students, batches, values, sheet, moment),
        _log_creation(ids, values, *_for_log(scores, forced), logged, moment),
    ]
    absent = {score.student_id: score.absent for score in scores if score.absent is not None}
    if absent:
        audit_changes(
            ABSENCE_ENTITY,
            (
                Change(assessment_id, absence_values(student_id, status), None)
                for student_id, status in absent.items()
            ),
        )
        writes.append(delete_absences(assessment_id, array_text(absent)))
    return writes


def _for_log(scores: Sequence[Score], forced: Collection[str]) -> tuple[str, str]:
    """Give the ids of entries of the audit log, and for each score whether it is there by force."""
    return array_text(new_ids(len(scores))), array_text(score.student_id in forced for score in scores)


def _lock_entry(entry_id: UUID) -> tuple[GradebookEntry, Assessment]:
    """Lock the assessment of an entry FOR SHARE, then the entry FOR NO KEY UPDATE; raises NotFound, Conflict."""
    locking = (
        select(
            Assessment,
            holding_batches(GradebookEntry.student_id).label("submitted"),
            reads.WAS_CHANGED.label("was_changed"),
        )
        .join(GradebookEntry, GradebookEntry.assessment_id == Assessment.id)
        .where(GradebookEntry.id == entry_id, NOT_DELETED)
        .with_for_update(read=True, of=Assessment)
        .execution_options(populate_existing=True)
    )
    locking = within(locking, reads.in_reach)
    row = db.session.execute(locking).one_or_none()
    if row is not None and row.was_changed:
        # Its results may have been submitted, and the student may have changed arms before.
        row = db.session.execute(locking).one_or_none()
    if row is None:
        raise not_found(GradebookEntry)
    assessed: Assessment = row.Assessment
    refuse_submitted(row.submitted, assessed.cohort_subject_id, assessed.term_id)
    return get(GradebookEntry, entry_id, for_update=True, judged_before=True), assessed


def _check_score(score: Decimal, total_points: Decimal) -> None:
    if score_fault(score, total_points):
        # The schema has refused scores below 0 or with more places: this is more than the total.
        raise Invalid.field("score", f"is more than the assessment's {total_points} points")


# A statement writes to one table: so there is one for each.


@statement
def _create(
    assessment_id: UUID,
    ids: str,
    students: str,
    batches: str,
    scores: str,
    sheet: str | None,
    moment: datetime,
) -> Any:
    """Insert entries of an assessment; each text is the literal of an array, with an element for each entry."""
    given = _entry_rows(
        id=(_ID, ids), student_id=(_ID, students), batch_id=(_ID, batches), score=(POINTS, scores)
    )
    own = ("id", "student_id", "batch_id", "score")
    common: dict[str, Any] = {
        "assessment_id": assessment_id,
        "sheet": null() if sheet is None else sheet,
        "created_at": moment,
        "updated_at": moment,
    }
    rows = select(*(given.c[name] for name in own), *common.values())
    return insert(GradebookEntry).from_select([*own, *common], rows, include_defaults=False)


@statement
def _log_creation(ids: str, scores: str, log_ids: str, forced: str, logged: str, moment: datetime) -> Any:
    """Write to the audit log the entries inserted in this round trip; each text is the literal of an array."""
    given = _entry_rows(
        id=(_ID, ids), score=(POINTS, scores), log_id=(_ID, log_ids), forced=(Boolean(), forced)
    )
    return audit_written(
        SCORE_ENTITY, CREATE, given, id=given.c.log_id, moment=moment, entity_id=given.c.id, old=null(),
        new=_logged_now(given, logged),
    )  # fmt: skip


@statement
def _change(assessment_id: UUID, ids: str, scores: str, sheet: str | None, moment: datetime) -> Any:
    """Change the scores of entries of an assessment; each text is the literal of an array, with one for each entry."""
    given = _entry_rows(id=(_ID, ids), score=(POINTS, scores))
    return (
        update(GradebookEntry)
        .where(_is_entry_of(given, assessment_id))
        .values(score=given.c.score, sheet=null() if sheet is None else sheet, updated_at=moment)
    )


@statement
def _log_change(
    assessment_id: UUID, ids: str, scores: str, log_ids: str, forced: str, logged: str, moment: datetime
) -> Any:
    """Write the present entries to the audit log, before they are changed in this round trip; texts are arrays."""
    given = _entry_rows(
        id=(_ID, ids), score=(POINTS, scores), log_id=(_ID, log_ids), forced=(Boolean(), forced)
    )
    return audit_written(
        SCORE_ENTITY,
        UPDATE,
        given.join(GradebookEntry, _is_entry_of(given, assessment_id)),
        id=given.c.log_id,
        moment=moment,
        entity_id=given.c.id,
        old=logged_score(GradebookEntry.score, GradebookEntry.sheet),
        new=_logged_now(given, logged),
    )


@statement
def _log_removal(assessment_id: UUID, ids: str, log_ids: str, moment: datetime) -> Any:
    """Write the present entries to the audit log, before they are removed in this round trip; texts are arrays."""
    given = _entry_rows(id=(_ID, ids), log_id=(_ID, log_ids))
    return audit_written(
        SCORE_ENTITY,
        DELETE,
        given.join(GradebookEntry, _is_entry_of(given, assessment_id)),
        id=given.c.log_id,
        moment=moment,
        entity_id=given.c.id,
        old=logged_score(GradebookEntry.score, GradebookEntry.sheet),
        new=null(),
    )


@statement
def _remove(assessment_id: UUID, ids: str) -> Any:
    """Remove entries of an assessment; the text is the literal of an array."""
    return delete(GradebookEntry).where(
        GradebookEntry.id == one_of(ids, _ID), GradebookEntry.assessment_id == assessment_id
    )


_ID = Uuid(as_uuid=False)


def _entry_rows(**columns: tuple[Any, Any]) -> CTE:
    """Make rows of columns, each a type and an array sent as a text."""
    rows: Any = unnest_rows(**columns)
    return select(rows).cte("given")


def _is_entry_of(given: CTE, assessment_id: Any) -> Any:
    """Whether an entry is one of the given ones, all of one assessment.

    By the assessment PostgreSQL finds them in an index; by as many ids alone it would read the whole table.
    """
    return and_(GradebookEntry.id == given.c.id, GradebookEntry.assessment_id == assessment_id)


def _logged_now(given: CTE, logged: Any) -> Any:
    """The log's values of scores about to be entered: `logged`, a text of JSON, with the score of each."""
    said = cast(logged, JSONB).concat(func.jsonb_build_object("score", func.trim_scale(given.c.score)))
    return case((given.c.forced, said.concat(literal_column("""'{"forced": true}'::jsonb"""))), else_=said)
