"""Cohort subjects: the subjects taught to a cohort, and the students of each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert

from school_service.core.deletion import Deletion
from school_service.core.read_models import BoundQuery, Query, fetch_row
from school_service.core.records import check_of_filters, get, one_of, unknown_reference
from school_service.core.statements import NewRow, execute, new_row, statement
from school_service.features.audit.service import audit_change, delete_audited
from school_service.features.classes.cohort_subjects import reads
from school_service.features.classes.models import CohortSubject, SubjectEnrollment
from school_service.features.school.cohorts.service import find_session
from school_service.features.school.models import CURRENT, Batch, Cohort, Enrollment, Subject
from tenants.clock import now

ENTITY = "cohort-subject"
TAKING = "subject-enrollment"
"""The name in the audit log of a student's taking an elective; the id is the student's.

Compulsory subjects have no entry: they follow from the student's enrollment, and from the subject being taught.
"""


DELETION = Deletion(
    CohortSubject,
    {
        "cohort": CohortSubject.cohort_id,
        "subject": CohortSubject.subject_id,
        "elective": CohortSubject.elective,
    },
)


check_cohort_subject_filter = check_of_filters(batch=Batch, base=Subject, session=find_session)


def check_cohort_subject(*, id: UUID) -> None:
    """Tell whether a cohort subject is there. Raises NotFound."""
    get(CohortSubject, id)


def create_cohort_subject(*, cohort_id: UUID, subject_id: UUID, elective: bool) -> NewRow:
    """Teach a subject to a cohort; unless it is an elective, all its students take it at once.

    A second time is a conflict. Raises Invalid for an unknown cohort or subject.
    """
    # Locked, so that a student who is being enrolled meanwhile is either found here, or finds this subject.
    row = fetch_row(reads.lock_cohort(cohort_id, subject_id))
    if row is None:
        raise unknown_reference(Cohort, "cohort_id")
    if not row["subject"]:
        raise unknown_reference(Subject, "subject_id")
    made = new_row(CohortSubject, cohort_id=cohort_id, subject_id=subject_id, elective=elective)
    audit_change(ENTITY, made.id, new={"cohort": cohort_id, "subject": subject_id, "elective": elective})
    execute(made, *(() if elective else [_take_new_subject(made.id, now())]))
    return made


def delete_cohort_subject(*, cohort_subject_id: UUID) -> UUID:
    """Teach a subject to a cohort no more; its students' duty to take it goes with it.

    A subject chosen by students as an elective, or with assessments or scores, is a conflict; a deleted assessment
    counts if it has scores or absences. Raises NotFound.
    """
    # The cohort first: students enrolled meanwhile take the subjects as they were before, or after.
    return delete_audited(ENTITY, DELETION, cohort_subject_id, reads.lock_cohort_of(cohort_subject_id))


def take_compulsory_subjects(*, cohort_id: UUID, student_ids: Sequence[UUID]) -> BoundQuery:
    """Make the statement to let students of a cohort take all of its subjects but the electives, for `execute`.

    The caller has locked the rows of the students.
    """
    return _take_compulsory(cohort_id, list(student_ids), now())


def take_compulsory_subjects_of_cohorts(
    *, cohort_ids: Sequence[UUID], student_ids: Sequence[UUID]
) -> BoundQuery:
    """Make the statement to let students take the compulsory subjects of their cohorts among these.

    The caller has locked the students, unless they have just been created. The statement is for `execute`.
    """
    return _take_compulsory_at_once(list(cohort_ids), list(student_ids), now())


@statement
def _take_new_subject(cohort_subject_id: UUID, moment: datetime) -> Any:
    # FOR SHARE, so that no enrollment ends between being found and its student taking the subject.
    takers = _takers(CohortSubject.id == cohort_subject_id, moment=moment)
    return _taking(takers.with_for_update(read=True, of=Enrollment))


@statement
def take_new_subjects(cohort_subject_ids: list[UUID], moment: datetime) -> Any:
    """Make the statement to let all students of their cohorts take new compulsory subjects, for `execute`.

    The caller has locked the cohorts, unless they are new, too.
    """
    takers = _takers(CohortSubject.id == one_of(cohort_subject_ids), moment=moment)
    return _taking(takers.with_for_update(read=True, of=Enrollment))


@statement
def _take_compulsory(cohort_id: UUID, student_ids: list[UUID], moment: datetime) -> Any:
    return _taking(
        _takers(
            CohortSubject.cohort_id == cohort_id,
            CohortSubject.elective.is_(False),
            Enrollment.student_id == one_of(student_ids),
            moment=moment,
        )
    )


@statement
def _take_compulsory_at_once(cohort_ids: list[UUID], student_ids: list[UUID], moment: datetime) -> Any:
    return _taking(
        _takers(
            CohortSubject.cohort_id == one_of(cohort_ids),
            CohortSubject.elective.is_(False),
            Enrollment.student_id == one_of(student_ids),
            moment=moment,
        )
    )


@statement
def take_chosen_subject(cohort_subject_id: UUID, student_ids: list[UUID], moment: datetime) -> Any:
    """Make the statement to let students of its cohort take a subject, for `execute`; their rows are locked."""
    return _taking(
        _takers(
            CohortSubject.id == cohort_subject_id,
            Enrollment.student_id == one_of(student_ids),
            moment=moment,
        )
    )


@statement
def drop_subjects(cohort_ids: list[UUID], student_ids: list[UUID]) -> Any:
    """Make the statement to let students drop all subjects of cohorts they leave, for `execute`; scores stay."""
    subjects = select(CohortSubject.id).where(CohortSubject.cohort_id == one_of(cohort_ids))
    return delete(SubjectEnrollment).where(
        SubjectEnrollment.student_id == one_of(student_ids),
        SubjectEnrollment.cohort_subject_id.in_(subjects),
    )


def _takers(*conditions: Any, moment: Any) -> Query:
    """Pair cohort subjects with the students of their cohorts, and the moment since which they take them."""
    return (
        select(CohortSubject.id, Enrollment.student_id, moment)
        .join(Enrollment, Enrollment.cohort_id == CohortSubject.cohort_id)
        .where(CURRENT, *conditions)
    )


def _taking(takers: Query) -> Any:
    columns = ["cohort_subject_id", "student_id", "created_at"]
    return insert(SubjectEnrollment).from_select(columns, takers).on_conflict_do_nothing()
