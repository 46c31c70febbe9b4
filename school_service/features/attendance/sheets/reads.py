"""The contents of the sheets of registers, and the class list to compare a sheet with."""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Date, String, Text, cast, column, func, literal_column, or_, select, true
from sqlalchemy.dialects.postgresql import aggregate_order_by

from school_service.core.narrowing import judged_before
from school_service.core.read_models import Query, array_of, json_object
from school_service.core.records import one_of, unnest_rows
from school_service.features.attendance import calendar
from school_service.features.attendance.models import (
    DEFAULT_CODES,
    LESSON,
    SUBMITTED,
    AttendanceCode,
    Mark,
    Register,
)
from school_service.features.attendance.registers.reads import in_register
from school_service.features.attendance.sums import COUNTS
from school_service.features.people.employees.reads import form_teacher_of
from school_service.features.people.models import Student, User
from school_service.features.people.students.reads import BY_NAME
from school_service.features.reach import scopes
from school_service.features.school.models import (
    AcademicSession,
    Batch,
    Cohort,
    TermCalendar,
)


@judged_before
def week(batch_id: UUID, days: list[date]) -> Query:
    """Select the contents of a week's sheet: one row, or none without the batch.

    `times` is a JSON array of `{date, part}`, of open parts and those with a register; `students`, by name, has the
    `codes` of each by date and part, written `2025-10-06 MORNING`; `codes` are the school's, in their order.
    """
    kept = _day_registers(batch_id, Register.date == one_of(days, Date)).cte("kept")
    settings = calendar.settings().cte("settings")
    given = unnest_rows("given", None, day=(Date, days))
    each = (
        func.unnest(calendar.day_parts(settings.c.parts))
        .table_valued(column("part", String), with_ordinality="number")
        .render_derived("each")
    )
    is_kept = select(kept.c.id).where(kept.c.date == given.c.day, kept.c.part == each.c.part).exists()
    is_taught = calendar.is_open(given.c.day, each.c.part, settings.c.weekdays) & calendar.term_of(
        Cohort.session_id, given.c.day
    ).is_not(None)
    time = json_object(date=given.c.day, part=each.c.part)
    times = (
        select(array_of(time, given.c.day, each.c.number))
        .select_from(settings)
        .join(given, true())
        .join(each, true())
        .where(or_(is_taught, is_kept))
        .correlate(Cohort)
    )
    return (
        select(
            cast(times.scalar_subquery(), Text).label("times"),
            cast(_students(batch_id, kept, given), Text).label("students"),
            cast(_codes(), Text).label("codes"),
        )
        .select_from(Batch)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .where(Batch.id == batch_id)
    )


@judged_before
def class_list(batch_id: UUID, days: list[date] | None = None) -> Query:
    """Select the possible students of a batch's sheet, and its possible times: one row, or none without the batch.

    `students` are those in the class or with a mark on one of the days, by name; without days those in the class today
    or with a mark ever. `first` and `last` are the days of the session, `parts` the parts of the school's day.
    """
    given: Any = select(scopes.today().label("day")).subquery("given")
    if days is not None:
        given = unnest_rows("given", None, day=(Date, days))
    on_days = [] if days is None else [Register.date == one_of(days, Date)]
    kept = _day_registers(batch_id, *on_days).cte("kept")
    settings = calendar.settings().cte("settings")
    return (
        select(
            cast(_students(batch_id, kept, given), Text).label("students"),
            calendar.day_parts(settings.c.parts).label("parts"),
            scopes.today().label("today"),
            AcademicSession.start_date.label("first"),
            AcademicSession.end_date.label("last"),
        )
        .select_from(Batch)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .join(settings, true())
        .where(Batch.id == batch_id)
    )


@judged_before
def term(batch_id: UUID, term_id: UUID) -> Query:
    """Select the contents of a term's printed register: one row, or none without the batch.

    `days` is a JSON array of days in the term's calendar, on weekdays of school, exceptional, or with a mark: `{date,
    parts, name}` with the open parts. `taken` are the times `{date, part}` of the batch's submitted registers.
    `students`, by name, have `marks`, an array of `[date, part, code, kind]`: of two for one time only one counts, in
    any arm; they are those in the class at the end of the term, and all with a mark.
    """
    settings = calendar.settings().cte("settings")
    kept = (
        _day_registers(batch_id, Register.term_id == term_id).where(Register.state == SUBMITTED).cte("kept")
    )
    last = select(calendar.last_day(term_id).label("day")).subquery("last")
    people = in_register(batch_id, None, kept, last).cte("people")
    code = func.coalesce(Mark.correction_code, Mark.code)
    # PRESENT, LATE, EXCUSED, ABSENT is the alphabet backwards: the greatest is the one that counts.
    of_kind = COUNTS.collate("C")
    counting = (
        select(
            Mark.student_id,
            Register.date,
            Register.part,
            func.max(of_kind).label("kind"),
            func.array_agg(aggregate_order_by(code, of_kind.desc(), code), type_=ARRAY(Text))[1].label(
                "code"
            ),
        )
        .join(Register, Register.id == Mark.register_id)
        .where(
            Register.term_id == term_id,
            Register.state == SUBMITTED,
            Register.part != LESSON,
            Mark.student_id.in_(select(people.c.student_id)),
        )
        .group_by(Mark.student_id, Register.date, Register.part)
        .cte("counting")
    )
    mark = func.json_build_array(counting.c.date, counting.c.part, counting.c.code, counting.c.kind)
    marks = (
        select(array_of(mark)).where(counting.c.student_id == Student.id).correlate(Student).scalar_subquery()
    )
    listed = (
        select(array_of(_student(marks=marks), *BY_NAME))
        .select_from(people)
        .join(Student, Student.id == people.c.student_id)
        .join(User, User.id == Student.user_id)
    )
    taken = select(array_of(func.json_build_array(kept.c.date, kept.c.part))).select_from(kept)
    return (
        select(
            cast(_days(term_id, settings, kept, counting), Text).label("days"),
            cast(taken.scalar_subquery(), Text).label("taken"),
            cast(listed.scalar_subquery(), Text).label("students"),
            cast(_codes(), Text).label("codes"),
            calendar.day_parts(settings.c.parts).label("parts"),
            form_teacher_of(batch_id).label("form_teacher"),
        )
        .select_from(Batch)
        .join(settings, true())
        .where(Batch.id == batch_id)
    )


def _day_registers(batch_id: Any, *conditions: Any) -> Query:
    return select(Register.id, Register.date, Register.part).where(
        Register.batch_id == batch_id, Register.part != LESSON, *conditions
    )


def _student(**more: Any) -> Any:
    return json_object(
        id=Student.id,
        admission_number=Student.admission_number,
        first_name=User.first_name,
        middle_name=Student.middle_name,
        last_name=User.last_name,
        gender=User.gender,
        **more,
    )


def _students(batch_id: Any, kept: Any, days: Any) -> Any:
    """The students of registers, by name, each with the teacher's `codes` by date and part: a JSON array."""
    people = in_register(batch_id, None, kept, days).subquery("people")
    time = func.concat(kept.c.date, " ", kept.c.part)
    codes = (
        select(func.coalesce(func.json_object_agg(time, Mark.code), literal_column("'{}'::json")))
        .join(kept, kept.c.id == Mark.register_id)
        .where(Mark.student_id == Student.id, Mark.code.is_not(None))
        .correlate(Student)
        .scalar_subquery()
    )
    return (
        select(array_of(_student(codes=codes), *BY_NAME))
        .select_from(people)
        .join(Student, Student.id == people.c.student_id)
        .join(User, User.id == Student.user_id)
        .scalar_subquery()
    )


def _codes() -> Any:
    """The school's codes in their order, a JSON array of `[code, name]`; the defaults if it has set none."""
    code = func.json_build_array(AttendanceCode.code, AttendanceCode.name)
    own = select(func.json_agg(aggregate_order_by(code, AttendanceCode.position))).scalar_subquery()
    usual = func.json_build_array(*(func.json_build_array(code, name) for code, name, _ in DEFAULT_CODES))
    return func.coalesce(own, usual)


def _days(term_id: Any, settings: Any, kept: Any, counting: Any) -> Any:
    """The days of a term as they are printed: a JSON array."""
    number = (
        func.generate_series(0, TermCalendar.end_date - TermCalendar.start_date)
        .table_valued(column("number"))
        .render_derived("after_first")
    )
    of_calendar = (
        select(cast(TermCalendar.start_date + number.c.number, Date).label("date"))
        .select_from(TermCalendar)
        .join(number, true())
        .where(TermCalendar.term_id == term_id)
    )
    each = of_calendar.union(select(kept.c.date), select(counting.c.date)).subquery("each")
    open_parts = calendar.open_parts(each.c.date, settings.c.parts, settings.c.weekdays)
    is_marked = each.c.date.in_(select(counting.c.date).union_all(select(kept.c.date)))
    is_shown = (
        calendar.is_weekday(each.c.date, settings.c.weekdays) | (func.cardinality(open_parts) > 0) | is_marked
    )
    day = json_object(date=each.c.date, parts=open_parts, name=calendar.day_name(each.c.date))
    return (
        select(array_of(day, each.c.date))
        .select_from(each)
        .where(is_shown)
        .correlate(settings)
        .scalar_subquery()
    )
