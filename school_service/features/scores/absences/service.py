"""Absences of students from an assessment, in place of a score.

A writer of absences, by hand or by sheet, locks the assessment FOR NO KEY UPDATE; a score entered by hand locks it FOR
SHARE. So neither the absences nor the scores of an assessment change while the others are written. A score takes the
absence away: the later act holds. An absence for a student with a score is a conflict, as it would take away somebody's
marking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import (
    String,
    Uuid,
    and_,
    delete,
    exists,
    func,
    literal,
    null,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from school_service.core.database import db
from school_service.core.errors import Conflict, NotFound, Unknown, names_in_words, refuse_named
from school_service.core.narrowing import caller_has_own, within
from school_service.core.reach import Reach
from school_service.core.read_models import BoundQuery, Query
from school_service.core.records import one_of, unnest_rows
from school_service.core.statements import in_one_round_trip, statement
from school_service.features.audit.service import Change, Values, audit_changes, audit_deleted
from school_service.features.classes.models import SubjectEnrollment
from school_service.features.people.models import WITHDRAWN, Student, User
from school_service.features.people.students.naming import name_with_number, names_of, nobody
from school_service.features.reach import scopes
from school_service.features.school.models import CURRENT, Enrollment
from school_service.features.scores.absences import reads
from school_service.features.scores.assessments.reads import holding_batches
from school_service.features.scores.assessments.service import (
    ABSENCE_ENTITY,
    lock_assessment,
    refuse_held,
    refuse_submitted,
)
from school_service.features.scores.models import Absence, Assessment, GradebookEntry
from tenants.clock import now

NO_ABSENCE = "No such absence."


@dataclass(frozen=True, slots=True)
class AbsenceChange:
    """The absence of a student, as it is to be; `before` is the stored status, None without one."""

    student_id: UUID
    status: str
    note: str | None
    before: str | None
    note_changed: bool = False


def enter_absences(*, assessment_id: UUID, absences: Sequence[Mapping[str, Any]]) -> BoundQuery:
    """Add or change the absences of students, all or none: each has `student`, `status` and perhaps `note`.

    A note left out stays. Returns the read model of the assessment's absences, stored and read in one round trip.
    Raises NotFound, Invalid naming the students named twice, not in the cohort, without the subject or withdrawn, and
    Conflict naming those with a score, or if the results of the arm of one of them are submitted.
    """
    assessment = lock_assessment(assessment_id)
    students = [row["student"] for row in absences]
    twice = [student for student, times in Counter(students).items() if times > 1]
    refuse_named({"absences": {"named more than once": names_of(twice)}})
    known = {row.id: row for row in db.session.execute(_judged(assessment, students))}
    held = {batch for row in known.values() for batch in row.submitted}
    refuse_submitted(held, assessment.cohort_subject_id, assessment.term_id)
    _refuse(students, known)
    changed = [change for row in absences if (change := _change(row, known[row["student"]]))]
    read = reads.absences(assessment.id)
    return in_one_round_trip(storing(assessment.id, changed, source="hand"), read=read) if changed else read


def storing(assessment_id: UUID, changes: Sequence[AbsenceChange], **source: Any) -> BoundQuery:
    """Store absences of a locked assessment, and write them to the audit log: the statement, for `execute`.

    `source` says in the log how they came: by hand, or by a sheet with the name of its file.
    """
    audit_changes(
        ABSENCE_ENTITY,
        (
            Change(
                assessment_id,
                None if change.before is None else absence_values(change.student_id, change.before),
                absence_values(
                    change.student_id,
                    change.status,
                    **source,
                    **({"changed": ["note"]} if change.note_changed else {}),
                ),
            )
            for change in changes
        ),
    )
    return _store(
        assessment_id,
        [change.student_id for change in changes],
        [change.status for change in changes],
        [change.note for change in changes],
        now(),
    )


def storing_blanks(
    blanks: Sequence[tuple[UUID, UUID]], status: str, *, moment: datetime, **source: Any
) -> BoundQuery:
    """Make absences of blanks, pairs of a locked assessment and a student with neither a score nor an absence.

    Writes them to the audit log, `source` as in `storing`; returns the statement, for `execute`.
    """
    audit_changes(
        ABSENCE_ENTITY,
        [
            Change(assessment, None, absence_values(student, status, **source))
            for assessment, student in blanks
        ],
    )
    assessments, students = map(list, zip(*blanks, strict=True))
    return _store_blanks(assessments, students, status, moment)


def delete_absence(*, assessment_id: UUID, student_id: UUID) -> UUID:
    """Take an absence away; returns the student's id.

    Raises NotFound, and Conflict while the results of the student's arm are submitted.
    """
    assessment = lock_assessment(assessment_id)
    refuse_if_held = partial(
        refuse_held,
        student_id,
        assessment_id=assessment.id,
        submitted_batches=assessment.submitted_batches,
        cohort_subject_id=assessment.cohort_subject_id,
        term_id=assessment.term_id,
    )
    has_own = caller_has_own()
    if not has_own:
        refuse_if_held()
    deletion = (
        delete(Absence)
        .where(Absence.assessment_id == assessment.id, Absence.student_id == student_id)
        .returning(Absence.status)
        .execution_options(synchronize_session=False)
    )
    status = db.session.scalar(within(deletion, _in_reach, assessment, Absence.student_id))
    if status is None:
        raise NotFound(NO_ABSENCE)
    if has_own:
        # Behind NotFound: of a student out of reach nothing is told, nor that results are held.
        refuse_if_held()
    audit_changes(ABSENCE_ENTITY, [Change(assessment.id, absence_values(student_id, status), None)])
    return student_id


def deletion_of_absence(*, assessment_id: UUID, student_id: UUID) -> tuple[BoundQuery, ...]:
    """Take the absence of a student away, if there is one, and write the deletion to the audit log.

    The assessment must be locked: so the absence is the same to both. Returns the statements, for the round trip of the
    score entered instead.
    """
    return _log_absence(assessment_id, student_id), _delete(assessment_id, student_id)


@statement
def _log_absence(assessment_id: UUID, student_id: UUID) -> Any:
    old = func.jsonb_build_object("student", Absence.student_id, "status", Absence.status)
    return audit_deleted(
        ABSENCE_ENTITY, *_of(assessment_id, student_id), entity_id=Absence.assessment_id, old=old
    )


@statement
def _delete(assessment_id: UUID, student_id: UUID) -> Any:
    return delete(Absence).where(*_of(assessment_id, student_id))


def _of(assessment_id: Any, student_id: Any) -> tuple[Any, Any]:
    return Absence.assessment_id == assessment_id, Absence.student_id == student_id


@statement
def delete_absences(assessment_id: UUID, student_ids: str) -> Any:
    """Take absences away in the round trip of scores entered for the same students; the caller writes the log.

    The ids of the students are a text, the literal of an array.
    """
    students = one_of(student_ids, Uuid(as_uuid=False))
    return delete(Absence).where(Absence.assessment_id == assessment_id, Absence.student_id == students)


def absence_values(student_id: Any, status: str, **source: Any) -> Values:
    """The values of an absence in the log: student, status, and how it came; of a note only the fact of its change."""
    return {"student": student_id, "status": status, **source}


def _judged(assessment: Assessment, students: Sequence[UUID]) -> Query:
    """Select the facts for and against an absence of each student, and their present one."""
    query = (
        select(
            Student.id,
            Student.admission_number,
            Student.middle_name,
            User.first_name,
            User.last_name,
            Student.status,
            exists()
            .where(Enrollment.student_id == Student.id, Enrollment.cohort_id == assessment.cohort_id, CURRENT)
            .label("in_cohort"),
            exists()
            .where(
                SubjectEnrollment.cohort_subject_id == assessment.cohort_subject_id,
                SubjectEnrollment.student_id == Student.id,
            )
            .label("takes_subject"),
            exists()
            .where(GradebookEntry.assessment_id == assessment.id, GradebookEntry.student_id == Student.id)
            .label("has_score"),
            Absence.status.label("absence"),
            Absence.note,
            holding_batches(Student.id).label("submitted"),
        )
        .select_from(Student)
        .join(User, User.id == Student.user_id)
        .join(Assessment, Assessment.id == assessment.id)
        .outerjoin(Absence, and_(Absence.assessment_id == assessment.id, Absence.student_id == Student.id))
        .where(Student.id == one_of(students))
    )
    return within(query, _in_reach, assessment, Student.id)


def _in_reach(reach: Reach, assessment: Assessment, student_id: Any) -> Any:
    """Whether the scores and absences of a student in an assessment are in reach."""
    return scopes.scores_in_reach(reach, literal(assessment.cohort_subject_id, Uuid), student_id)


def _refuse(students: Sequence[UUID], known: Mapping[UUID, Any]) -> None:
    """Raise the reasons against absences of any of the students, naming them all."""
    unknown, _ = nobody("no such student")
    reasons = {
        Unknown(unknown): [str(student) for student in students if student not in known],
        "withdrawn": _names(row for row in known.values() if row.status == WITHDRAWN),
        "not in the cohort": _names(
            row for row in known.values() if row.status != WITHDRAWN and not row.in_cohort
        ),
        "not taking the subject": _names(
            row for row in known.values() if row.in_cohort and not row.takes_subject
        ),
    }
    refuse_named({"absences": reasons})
    scored = _names(row for row in known.values() if row.has_score)
    if scored:
        reason = f"{names_in_words(scored)}: with a score already"
        raise Conflict(f"{reason}. Remove the score first, or leave the absence out.", {"absences": [reason]})


def _names(rows: Any) -> list[str]:
    return sorted(name_with_number(row) for row in rows)


def _change(row: Mapping[str, Any], stored: Any) -> AbsenceChange | None:
    """Compare an absence with the stored one; None if both are the same."""
    status, note = row["status"], row.get("note", stored.note)
    if (status, note) == (stored.absence, stored.note):
        return None
    return AbsenceChange(row["student"], status, note, stored.absence, note != stored.note)


@statement
def _store(
    assessment_id: UUID,
    student_ids: list[UUID],
    statuses: list[str],
    notes: list[str | None],
    moment: datetime,
) -> Any:
    rows = unnest_rows(student_id=(Uuid, student_ids), status=(String, statuses), note=(String, notes))
    values: Any = (assessment_id, *rows.c, moment)
    storing = insert(Absence).from_select(
        ["assessment_id", "student_id", "status", "note", "created_at"], select(*values)
    )
    # The row of the assessment changes with its absences: so a transaction waiting to enter a score sees them.
    touched = (
        update(Assessment)
        .where(Assessment.id == assessment_id)
        .values(submitted_batches=Assessment.submitted_batches)
        .cte("touched")
    )
    return storing.on_conflict_do_update(
        index_elements=Absence.__table__.primary_key.columns,
        set_={"status": storing.excluded.status, "note": storing.excluded.note},
    ).add_cte(touched)


@statement
def _store_blanks(assessment_ids: list[UUID], student_ids: list[UUID], status: str, moment: datetime) -> Any:
    rows = unnest_rows(assessment_id=(Uuid, assessment_ids), student_id=(Uuid, student_ids))
    values: Any = (*rows.c, status, null(), moment)
    return insert(Absence).from_select(
        ["assessment_id", "student_id", "status", "note", "created_at"], select(*values)
    )
