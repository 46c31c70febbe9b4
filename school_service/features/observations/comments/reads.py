"""Read models of comments, and the class list to compare them with."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import CTE, Select, Text, and_, case, cast, select

from school_service.core.narrowing import judged_before
from school_service.core.reach import Reach
from school_service.core.read_models import Query, array_of, json_object, read_model
from school_service.core.statements import row_lock
from school_service.features.attendance.calendar import counts_registers
from school_service.features.attendance.models import Register
from school_service.features.attendance.sums import roll_up_of
from school_service.features.observations.published import published_name
from school_service.features.people.models import Student, User
from school_service.features.people.students.reads import BY_NAME, NAMED_STUDENT
from school_service.features.reach import scopes
from school_service.features.results.computing.class_term.roster import members
from school_service.features.school.models import Batch, Cohort, Term, TermCalendar
from school_service.features.school.sessions.service import is_term
from school_service.features.year.models import TermComment

TEXTS = (TermComment.form_teacher_comment, TermComment.principal_comment)
"""The comments on a student's term in words."""


@read_model
def comments(batch_id: UUID, term: str, reach: Reach | None = None) -> Query:
    """Read model of TermCommentSchema: the members of a batch in a term, by name.

    `term` is FIRST, SECOND or THIRD of the batch's session, or the id of a term of it; there are no rows for another.
    """
    of_term = (
        select(Batch.cohort_id, Term.id.label("term_id"))
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Term, Term.session_id == Cohort.session_id)
        .where(Batch.id == batch_id, is_term(term))
        .cte("of_term")
    )
    cohort_id, term_id = (select(of_term.c[name]).scalar_subquery() for name in ("cohort_id", "term_id"))
    belonging = _belonging(batch_id, cohort_id, term_id)
    rolled_up = _rolled_up(belonging, term_id)
    shown = _times_present(rolled_up).label("times_present")
    query = select(NAMED_STUDENT.label("student"), shown, *TEXTS, TermComment.updated_at)
    listed = _class_of(query, belonging, term_id, rolled_up).order_by(*BY_NAME)
    return listed if reach is None else listed.where(scopes.is_form_batch(reach, batch_id))


@judged_before
def sharing(cohort_id: UUID, term_id: UUID) -> Query:
    """Lock a term and a cohort FOR SHARE: neither is the calendar changed meanwhile, nor are the results published."""
    return (
        select(Cohort.id)
        .join(Term, Term.session_id == Cohort.session_id)
        .where(Cohort.id == cohort_id, Term.id == term_id)
        .with_for_update(read=True, of=(Term, Cohort))
    )


lock_batch = row_lock(Batch)
"""Locks a batch: its comments are entered one after the other."""


@judged_before
def class_list(batch_id: UUID, term_id: UUID) -> Query:
    """Select the members of a batch in a term, by name, with the comments on their term, as JSON.

    In one row with `times_opened`, how often school opened by the calendar, null if it is not set, `published`, the
    name of batch and term while the results are, and `by_registers`, whether the registers say how often students came.
    `commented` tells whether there is a record, and `typed_present` is the number typed in, even if the registers
    count.
    """
    cohort_id = select(Batch.cohort_id).where(Batch.id == batch_id).scalar_subquery()
    belonging = _belonging(batch_id, cohort_id, term_id)
    rolled_up = _rolled_up(belonging, term_id)
    row = json_object(
        student_id=Student.id,
        admission_number=Student.admission_number,
        first_name=User.first_name,
        middle_name=Student.middle_name,
        last_name=User.last_name,
        commented=TermComment.student_id.is_not(None),
        times_present=_times_present(rolled_up),
        typed_present=TermComment.times_present,
        **{column.name: column for column in TEXTS},
    )
    rows = _class_of(select(cast(array_of(row, *BY_NAME), Text)), belonging, term_id, rolled_up)
    opened = select(TermCalendar.times_opened).where(TermCalendar.term_id == term_id)
    return select(
        rows.scalar_subquery().label("rows"),
        opened.scalar_subquery().label("times_opened"),
        published_name(batch_id, term_id).label("published"),
        counts_registers().label("by_registers"),
    )


def _belonging(batch_id: Any, cohort_id: Any, term_id: Any) -> CTE:
    people = members(cohort_id, term_id)
    return select(people.c.student_id).where(people.c.batch_id == batch_id).cte("belonging")


def _rolled_up(belonging: CTE, term_id: Any) -> CTE:
    """Roll up the registers of the term of the members of a batch; no rows if the typed numbers count."""
    students = select(belonging.c.student_id)
    return roll_up_of(students, counts_registers(), Register.term_id == term_id)


def _times_present(rolled_up: Any) -> Any:
    return case((counts_registers(), rolled_up.c.present), else_=TermComment.times_present)


def _class_of(selected: Select[Any], belonging: CTE, term_id: Any, rolled_up: Any) -> Select[Any]:
    of_term = and_(TermComment.student_id == Student.id, TermComment.term_id == term_id)
    return (
        selected.select_from(belonging)
        .join(Student, Student.id == belonging.c.student_id)
        .join(User, User.id == Student.user_id)
        .outerjoin(TermComment, of_term)
        .outerjoin(rolled_up, rolled_up.c.student_id == Student.id)
    )
