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
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    CTE,
    Boolean,
    Uuid,
    case,
    cast,
    column,
    func,
    insert,
    literal_column,
    null,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import aliased
from sqlalchemy.types import TypeEngine

from school_service.core.columns import POINTS, score_fault
from school_service.core.database import db
from school_service.core.errors import Invalid
from school_service.core.read_models import BoundQuery, fetch_row
from school_service.core.records import (
    array_text,
    get,
    get_referenced,
    new_ids,
    not_found,
    unknown_reference,
)
from school_service.core.statements import execute, in_one_message, new_row, statement
from school_service.features.absences.service import ENTITY as ABSENCE
from school_service.features.absences.service import absence_values, absences_of, taking_away
from school_service.features.assessments.models import NOT_DELETED, Assessment
from school_service.features.assessments.service import find_assessment, refuse_submitted
from school_service.features.audit.models import CREATE, UPDATE
from school_service.features.audit.service import (
    Change,
    audit_change,
    audit_changes,
    audit_written,
    logged_score,
    score_values,
)
from school_service.features.cohorts.models import Batch
from school_service.features.gradebooks import reads
from school_service.features.gradebooks.models import GradebookEntry
from school_service.features.sessions.models import Term
from school_service.features.students.models import Student
from school_service.sheets.uploads import RowCounts
from tenants.clock import now
from tenants.connections.engines import json_text

ENTITY = "gradebook"


@dataclass(frozen=True, slots=True)
class Score:
    """A score to enter for a student who is in this batch; `entry_id` and `stored` are of the entry there is already.

    The ids are as PostgreSQL writes them: to make thousands of UUIDs takes longer than the query. `absent`: the status
    of the absence that the student has.
    """

    student_id: str
    batch_id: str
    score: Decimal
    entry_id: str | None = None
    stored: Decimal | None = None
    absent: str | None = None


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
    taken away by the statement that inserts it. Raises Invalid for an unknown id, a score beyond the total points, a
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
    entering = _entering_instead(entry.id, assessment, student, batch, score, now())
    return in_one_message(entering, read=reads.entry(entry.id))


@statement
def _entering_instead(
    id: UUID, assessment_id: UUID, student_id: UUID, batch_id: UUID, score: Decimal, moment: datetime
) -> Any:
    """Insert an entry, and take away the absence that the student may have, as it is at this moment."""
    entry = {
        "id": id,
        "assessment_id": assessment_id,
        "student_id": student_id,
        "batch_id": batch_id,
        "score": score,
        "sheet": null(),
        "created_at": moment,
        "updated_at": moment,
    }
    return insert(GradebookEntry).values(entry).add_cte(*taking_away(assessment_id, student_id))


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
    """The scores of a sheet by what there is of them: `changed` are those whose entry has another score."""

    new: list[Score]
    changed: list[Score]
    unchanged: int


def compare_scores(scores: Collection[Score]) -> ComparedScores:
    """Compare the scores of a sheet with what is stored: each student once."""
    new = [score for score in scores if score.entry_id is None]
    changed = [score for score in scores if score.entry_id is not None and score.stored != score.score]
    return ComparedScores(new, changed, len(scores) - len(new) - len(changed))


def store_sheet(
    *,
    assessment_id: UUID,
    scores: ComparedScores,
    sheet: str,
    downloaded: str | None = None,
    forced: Collection[str] = (),
) -> RowCounts:
    """Store the scores of a sheet that are new or differ, in one message however many there are.

    The assessment must be locked since their entries were read, and the scores must keep their rule. `sheet` is the
    file's name; `downloaded` and `forced`, the students whose score is replaced by force, are for the audit log. A
    score takes an absence away.
    """
    logged = json_text(score_values(None, sheet, downloaded=downloaded))
    writes = []
    if scores.new:
        writes.append(_creation(assessment_id, scores.new, sheet, logged, forced))
    if scores.changed:
        changed = scores.changed
        writes.append(
            _change(
                array_text(score.entry_id for score in changed),
                array_text(score.score for score in changed),
                *_for_log(changed, forced),
                sheet,
                logged,
                now(),
            )
        )
    if writes:
        execute(*writes)
    return RowCounts(len(scores.new), len(scores.changed), scores.unchanged)


def _creation(
    assessment_id: UUID, scores: Sequence[Score], sheet: str, logged: str, forced: Collection[str]
) -> BoundQuery:
    """Make the statement that enters scores, and takes away the absences that these students have."""
    absent = [score for score in scores if score.absent is not None]
    audit_changes(
        ABSENCE,
        (
            Change(assessment_id, absence_values(score.student_id, str(score.absent)), None)
            for score in absent
        ),
    )
    return _create(
        assessment_id,
        array_text(new_ids(len(scores))),
        array_text(score.student_id for score in scores),
        array_text(score.batch_id for score in scores),
        array_text(score.score for score in scores),
        *_for_log(scores, forced),
        sheet,
        logged,
        now(),
        array_text(score.student_id for score in absent) if absent else None,
    )


def _for_log(scores: Sequence[Score], forced: Collection[str]) -> tuple[str, str]:
    """Give the ids of entries of the audit log, and which of the scores are there by force."""
    return array_text(new_ids(len(scores))), array_text(score.student_id in forced for score in scores)


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


@statement
def _create(
    assessment_id: UUID,
    ids: str,
    students: str,
    batches: str,
    scores: str,
    log_ids: str,
    forced: str,
    sheet: str,
    logged: str,
    moment: datetime,
    no_more_absent: str | None = None,
) -> Any:
    """Insert entries of an assessment, and write them to the audit log; texts are arrays (`array_text`)."""
    given = _given(
        id=(ids, _ID), student_id=(students, _ID), batch_id=(batches, _ID), score=(scores, POINTS),
        log_id=(log_ids, _ID), forced=(forced, Boolean()),
    )  # fmt: skip
    own = ("id", "student_id", "batch_id", "score")
    common: dict[str, Any] = {
        "assessment_id": assessment_id, "sheet": sheet, "created_at": moment, "updated_at": moment
    }  # fmt: skip
    rows = select(*(given.c[name] for name in own), *common.values())
    entries = insert(GradebookEntry).from_select([*own, *common], rows, include_defaults=False)
    log = audit_written(
        ENTITY, CREATE, given, id=given.c.log_id, moment=moment, entity_id=given.c.id, old=null(),
        new=_logged_now(given, logged),
    )  # fmt: skip
    with_them = () if no_more_absent is None else (absences_of(assessment_id, no_more_absent),)
    return log.add_cte(entries.cte("entered"), *with_them)


@statement
def _change(
    ids: str, scores: str, log_ids: str, forced: str, sheet: str, logged: str, moment: datetime
) -> Any:
    """Change the scores of entries, and write what they were and are to the audit log; as `_create`."""
    given = _given(
        id=(ids, _ID), score=(scores, POINTS), log_id=(log_ids, _ID), forced=(forced, Boolean())
    )  # fmt: skip
    changed = (
        update(GradebookEntry)
        .where(GradebookEntry.id == given.c.id)
        .values(score=given.c.score, sheet=sheet, updated_at=moment)
    )
    # As it was: a statement does not see what it writes.
    before = aliased(GradebookEntry, name="before")
    log = audit_written(
        ENTITY,
        UPDATE,
        given.join(before, before.id == given.c.id),
        id=given.c.log_id,
        moment=moment,
        entity_id=given.c.id,
        old=logged_score(before.score, before.sheet),
        new=_logged_now(given, logged),
    )
    return log.add_cte(changed.cte("changed"))


_ID = Uuid(as_uuid=False)


def _given(**columns: tuple[Any, TypeEngine[Any]]) -> CTE:
    """Make rows of columns, each an array that was sent as a text, and its type."""
    arrays = [cast(text, ARRAY(kind)) for text, kind in columns.values()]
    names = [column(name, kind) for name, (_, kind) in columns.items()]
    rows = func.unnest(*arrays).table_valued(*names).render_derived()
    return select(rows).cte("given")


def _logged_now(given: CTE, logged: Any) -> Any:
    """What the log says of scores that are entered: `logged`, a text of JSON, with the score of each."""
    said = cast(logged, JSONB).concat(func.jsonb_build_object("score", func.trim_scale(given.c.score)))
    return case((given.c.forced, said.concat(literal_column("""'{"forced": true}'::jsonb"""))), else_=said)
