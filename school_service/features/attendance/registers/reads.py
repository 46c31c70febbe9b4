"""Read models of registers, and the facts for and against a change of one."""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    Date,
    FromClause,
    SmallInteger,
    String,
    Text,
    Uuid,
    and_,
    any_,
    case,
    cast,
    exists,
    func,
    literal_column,
    null,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by

from school_service.core.database import db
from school_service.core.narrowing import within
from school_service.core.reach import Reach
from school_service.core.read_models import Query, array_of, json_object, read_model
from school_service.core.records import unnest_rows
from school_service.features.attendance import calendar
from school_service.features.attendance.enrolled import began, is_in_register
from school_service.features.attendance.models import (
    ABSENT,
    EXCUSED,
    LATE,
    LESSON,
    NOT_TAKEN,
    PRESENT,
    AttendanceCode,
    Mark,
    Register,
)
from school_service.features.classes.models import CohortSubject, SubjectEnrollment
from school_service.features.people.models import Student, User
from school_service.features.people.students.reads import BY_NAME, NAMED_STUDENT
from school_service.features.reach import scopes
from school_service.features.school.models import (
    Batch,
    Cohort,
    Enrollment,
    Subject,
    Term,
    TermCalendar,
)


@read_model
def register(
    batch_id: UUID,
    day: date,
    part: str | None = None,
    cohort_subject_id: UUID | None = None,
    period: int | None = None,
    reach: Reach | None = None,
) -> Query:
    """Read model of RegisterSchema: of a batch, a day and a part, or a lesson; taken or not.

    No row without the batch, or for a subject of another cohort.
    """
    of_key = is_register(batch_id, cohort_subject_id, day, period if part is None else part)
    kept = select(Register.__table__).where(of_key).cte("kept")
    term_id = func.coalesce(kept.c.term_id, calendar.term_of(Cohort.session_id, cast(day, Date)))
    of_day = select(cast(day, Date).label("day")).subquery("of_day")
    listed = _listed(in_register(batch_id, cohort_subject_id, kept, of_day), kept)
    subject: Any = null()
    if cohort_subject_id is not None:
        subject = Subject.name
    query = (
        select(
            *_register(kept, term_id),
            cast(null() if cohort_subject_id is None else cohort_subject_id, Uuid).label("cohort_subject"),
            subject.label("subject"),
            cast(day, Date).label("date"),
            literal_column(f"'{LESSON}'").label("part") if part is None else cast(part, Text).label("part"),
            kept.c.period if period is None else cast(period, SmallInteger).label("period"),
            *listed.c,
        )
        .select_from(Batch)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .outerjoin(kept, true())
        .join(listed, true())
        .where(Batch.id == batch_id)
    )
    if cohort_subject_id is not None:
        query = with_lessons(query, cohort_subject_id).join(Subject, Subject.id == CohortSubject.subject_id)
    return query if reach is None else query.where(in_reach(reach, batch_id, cohort_subject_id))


@read_model
def register_by_id(register_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of RegisterSchema, for one that is there."""
    kept = select(Register.__table__).where(Register.id == register_id).cte("kept")
    batch_id, subject_id = (
        select(kept.c[name]).scalar_subquery() for name in ("batch_id", "cohort_subject_id")
    )
    of_day = select(kept.c.date.label("day")).where(kept.c.cohort_subject_id.is_(None)).subquery("of_day")
    of_lesson = select(kept.c.date.label("day")).where(kept.c.part == LESSON).subquery("of_lesson")
    people = _together(
        _by_day(batch_id, None, of_day), _by_day(batch_id, subject_id, of_lesson), _marked(kept)
    )
    listed = _listed(people, kept)
    subject = (
        select(Subject.name)
        .join(CohortSubject, CohortSubject.subject_id == Subject.id)
        .where(CohortSubject.id == kept.c.cohort_subject_id)
    )
    query = (
        select(
            *_register(kept, kept.c.term_id),
            kept.c.cohort_subject_id.label("cohort_subject"),
            subject.scalar_subquery().label("subject"),
            kept.c.date,
            kept.c.part,
            kept.c.period,
            *listed.c,
        )
        .select_from(kept)
        .join(Batch, Batch.id == kept.c.batch_id)
        .join(listed, true())
    )
    if reach is not None:
        query = query.where(scopes.results_in_reach(reach, kept.c.cohort_subject_id, kept.c.batch_id))
    return query


_COUNTED = {
    "present": (PRESENT, LATE),
    "late": (LATE,),
    "absent": (ABSENT, EXCUSED),
    "excused": (EXCUSED,),
}


def _register(kept: CTE, term_id: Any) -> list[Any]:
    """The columns of a register that do not say its key, beside its Batch; those of `kept` are null where it is not."""
    term = select(json_object(id=Term.id, term=Term.term)).where(Term.id == term_id)
    return [
        kept.c.id,
        Batch.id.label("batch"),
        Batch.name.label("batch_name"),
        term.scalar_subquery().label("term"),
        func.coalesce(kept.c.state, NOT_TAKEN).label("state"),
        func.coalesce(kept.c.version, 0).label("version"),
        kept.c.taken_at,
        kept.c.changed_at,
        kept.c.changed_by_name,
    ]


def _listed(students: Query, kept: CTE) -> FromClause:
    """Make the table, of one row, of the students of a register with their marks, by name, and of their counts."""
    people = students.subquery("people")
    mark = (
        select(Mark.__table__).where(Mark.register_id == select(kept.c.id).scalar_subquery()).subquery("mark")
    )
    counts = func.coalesce(mark.c.correction_kind, mark.c.kind)
    return (
        select(
            array_of(_student_with_mark(mark, counts), *BY_NAME).label("marks"),
            func.count().filter(people.c.enrolled).label("enrolled"),
            *(
                func.count().filter(or_(*(counts == kind for kind in kinds))).label(name)
                for name, kinds in _COUNTED.items()
            ),
            func.count().filter(counts.is_(None), people.c.enrolled).label("unmarked"),
        )
        .select_from(people)
        .join(Student, Student.id == people.c.student_id)
        .join(User, User.id == Student.user_id)
        .outerjoin(mark, mark.c.student_id == Student.id)
        .subquery("listed")
    )


def in_reach(reach: Reach, batch_id: Any, cohort_subject_id: Any) -> Any:
    """Whether registers are in reach: of a form teacher all of the batch, of a subject teacher their lessons."""
    if cohort_subject_id is None:
        return scopes.is_form_batch(reach, batch_id)
    return scopes.results_in_reach(reach, cohort_subject_id, batch_id)


def cohort_of(batch_id: UUID, cohort_subject_id: Any = None) -> UUID | None:
    """Find the cohort of a batch with registers, or lessons of a cohort subject, in reach; None without any."""
    query = select(Batch.cohort_id).where(Batch.id == batch_id)
    return db.session.scalar(within(query, in_reach, Batch.id, cohort_subject_id))


def in_register(batch_id: Any, cohort_subject_id: Any, kept: CTE, days: FromClause) -> Query:
    """Select the students of registers: those of the class on one of the days, with the subject; and all with a mark.

    `kept` are the registers, `days` has each `day`. `enrolled` tells whether the student was in the class by such a
    day; null for one with a mark alone.
    """
    return _together(_by_day(batch_id, cohort_subject_id, days), _marked(kept))


def _by_day(batch_id: Any, cohort_subject_id: Any, days: FromClause) -> Query:
    there = in_class(batch_id, cohort_subject_id, days.c.day).lateral()
    return select(there.c.student_id, there.c.enrolled).select_from(days).join(there, true())


def _marked(kept: CTE) -> Query:
    return select(Mark.student_id, null()).where(Mark.register_id.in_(select(kept.c.id)))


def _together(*students: Query) -> Query:
    """Select each of the students once, and whether one of the rows says that they were enrolled."""
    each = union_all(*students).subquery("each")
    enrolled = func.bool_or(each.c.enrolled).label("enrolled")
    return select(each.c.student_id, enrolled).group_by(each.c.student_id)


def in_class(batch_id: Any, cohort_subject_id: Any, day: Any) -> Query:
    """Select the students in a batch's registers of a day, with the subject; were they there by then, as `enrolled`."""
    query = (
        select(Enrollment.student_id, (began() <= day).label("enrolled"))
        .join(Student, Student.id == Enrollment.student_id)
        .where(Enrollment.batch_id == batch_id, is_in_register(day))
    )
    if cohort_subject_id is None:
        return query
    takes = and_(
        SubjectEnrollment.student_id == Enrollment.student_id,
        SubjectEnrollment.cohort_subject_id == cohort_subject_id,
    )
    return query.join(SubjectEnrollment, takes)


def with_lessons(query: Query, cohort_subject_id: Any) -> Query:
    """Join the subject of lessons, of the batch's cohort, to a query of batches; the query itself without lessons."""
    if cohort_subject_id is None:
        return query
    of_cohort = and_(CohortSubject.id == cohort_subject_id, CohortSubject.cohort_id == Batch.cohort_id)
    return query.join(CohortSubject, of_cohort)


def _student_with_mark(mark: Any, counts: Any) -> Any:
    correction = func.json_build_object(
        "code", mark.c.correction_code, "kind", mark.c.correction_kind, "reason", mark.c.reason,
        "by", mark.c.corrected_by_name, "at", mark.c.corrected_at,
    )  # fmt: skip
    return func.json_build_object(
        "student", NAMED_STUDENT, "code", mark.c.code, "kind", mark.c.kind, "note", mark.c.note,
        "arrived", func.to_char(mark.c.arrived, "HH24:MI"),
        "correction", case((mark.c.correction_code.is_not(None), correction)),
        "counts", counts,
    )  # fmt: skip


@read_model
def facts_of_registers(
    batch_id: UUID,
    days: list[date],
    parts: list[str],
    cohort_subject_id: UUID | None = None,
    reach: Reach | None = None,
) -> Query:
    """Select the facts for and against changes of a batch's registers, and their contents; no row without the batch.

    They are those of the days, each in its part; with a cohort subject its lessons, with periods as their parts.
    `today` is the school's day. `registers` is a JSON array, in the given order: of the register its `id`, `state`,
    `version` and the author of its last change, each null without a register; whether school is open then, the name of
    the day, the term, and `people`, its students with their marks. `codes` is a JSON array; empty if the school has
    none of its own.
    """
    settings = calendar.settings().cte("settings")
    given = unnest_rows("given", "number", day=(Date, days), part=(String, parts))
    of_given = is_register(batch_id, cohort_subject_id, given.c.day, given.c.part)
    kept = select(given.c.number, Register.__table__).select_from(given).join(Register, of_given).cte("kept")
    people = _everybody(given, kept, batch_id, cohort_subject_id)
    lessons = cohort_subject_id is not None
    days_parts = calendar.day_parts(settings.c.parts)
    open_parts = calendar.open_parts(given.c.day, settings.c.parts, settings.c.weekdays)
    is_open = func.cardinality(open_parts) > 0 if lessons else given.c.part == any_(open_parts)
    register = func.json_build_object(
        "id", kept.c.id, "state", kept.c.state, "version", kept.c.version,
        "changed_at", kept.c.changed_at, "changed_by_name", kept.c.changed_by_name,
        "is_part", literal_column("true") if lessons else given.c.part == any_(days_parts),
        "is_open", is_open,
        "day_name", calendar.day_name(given.c.day, None if lessons else given.c.part),
        "term_id", func.coalesce(kept.c.term_id, calendar.term_of(Cohort.session_id, given.c.day)),
        "people", func.coalesce(people.c.people, literal_column("'[]'::json")),
    )  # fmt: skip
    with_dates = (
        select(TermCalendar.term_id)
        .join(Term, Term.id == TermCalendar.term_id)
        .where(Term.session_id == Cohort.session_id, TermCalendar.start_date.is_not(None))
        .where(TermCalendar.end_date.is_not(None))
        .correlate(Cohort)
    )
    code = json_object(code=AttendanceCode.code, kind=AttendanceCode.kind)
    codes = select(array_of(code)).select_from(AttendanceCode)
    query = (
        select(
            Batch.cohort_id,
            Cohort.session_id,
            scopes.today().label("today"),
            settings.c.lock_after,
            exists(with_dates).label("has_dates"),
            cast(codes.scalar_subquery(), Text).label("codes"),
            cast(func.json_agg(aggregate_order_by(register, given.c.number)), Text).label("registers"),
        )
        .select_from(Batch)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(settings, true())
        .join(given, true())
        .outerjoin(kept, kept.c.number == given.c.number)
        .outerjoin(people, people.c.number == given.c.number)
        .where(Batch.id == batch_id)
        .group_by(Batch.cohort_id, Cohort.session_id, settings.c.lock_after)
    )
    query = with_lessons(query, cohort_subject_id)
    return query if reach is None else query.where(in_reach(reach, batch_id, cohort_subject_id))


def is_register(batch_id: Any, cohort_subject_id: Any, day: Any, part: Any) -> Any:
    """Tell whether a register has this batch, day and part, or is of a lesson with the period `part`."""
    of_day = and_(Register.batch_id == batch_id, Register.date == day)
    if cohort_subject_id is None:
        return and_(of_day, Register.part == part, Register.part != LESSON)
    of_lesson = and_(Register.cohort_subject_id == cohort_subject_id, Register.part == LESSON)
    return and_(of_day, of_lesson, Register.period == cast(part, SmallInteger))


def _everybody(given: Any, kept: CTE, batch_id: Any, cohort_subject_id: Any) -> Any:
    """Make the table of students by given register: its `number`, and `people`, a JSON array by name."""
    there = in_class(batch_id, cohort_subject_id, given.c.day).lateral("there")
    each = union_all(
        select(given.c.number, there.c.student_id, there.c.enrolled).select_from(given).join(there, true()),
        select(kept.c.number, Mark.student_id, null()).join(Mark, Mark.register_id == kept.c.id),
    ).subquery("each")
    listed = (
        select(each.c.number, each.c.student_id, func.bool_or(each.c.enrolled).label("enrolled"))
        .group_by(each.c.number, each.c.student_id)
        .subquery("one")
    )
    person = func.json_build_object(
        "id", Student.id, "admission_number", Student.admission_number,
        "name", User.first_name.concat(" ").concat(User.last_name),
        "in_class", listed.c.enrolled.is_not(None),
        "began", func.coalesce(listed.c.enrolled, False),
        "code", Mark.code, "kind", Mark.kind, "note", Mark.note, "arrived", func.to_char(Mark.arrived, "HH24:MI"),
        "version", func.coalesce(Mark.version, 0),
        "correction", Mark.correction_code, "correction_kind", Mark.correction_kind, "reason", Mark.reason,
    )  # fmt: skip
    return (
        select(listed.c.number, func.json_agg(aggregate_order_by(person, *BY_NAME)).label("people"))
        .select_from(listed)
        .join(given, given.c.number == listed.c.number)
        .join(Student, Student.id == listed.c.student_id)
        .join(User, User.id == Student.user_id)
        .outerjoin(kept, kept.c.number == listed.c.number)
        .outerjoin(Mark, and_(Mark.register_id == kept.c.id, Mark.student_id == Student.id))
        .group_by(listed.c.number)
        .subquery("people")
    )
