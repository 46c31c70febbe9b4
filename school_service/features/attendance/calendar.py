"""The school days, and the settings of registers, as expressions of SQL.

School is open on the days from the first to the last of each term's calendar, on its weekdays, without the closed days
and with the exceptional open ones.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ARRAY,
    CTE,
    ColumnElement,
    Select,
    SmallInteger,
    String,
    Text,
    any_,
    case,
    cast,
    column,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy.orm import aliased

from school_service.core.read_models import one_row
from school_service.features.attendance.models import (
    AFTERNOON,
    CLOSED,
    DAY,
    DEFAULTS,
    HALF_DAYS,
    MORNING,
    OPEN,
    REGISTERS,
    AttendanceSettings,
    SchoolDay,
)
from school_service.features.reach import scopes
from school_service.features.school.models import Term, TermCalendar

Column = ColumnElement[Any]


def settings() -> Select[Any]:
    """Select the settings, one row, with the defaults if the school has none."""
    columns: Any = AttendanceSettings.__table__.c
    # Not by COALESCE: a lock that a school has taken away is null, too.
    chosen = (
        case(
            (AttendanceSettings.id.is_(None), cast(literal(default, columns[name].type), columns[name].type)),
            else_=columns[name],
        ).label(name)
        for name, default in DEFAULTS.items()
    )
    return select(*chosen).select_from(one_row()).outerjoin(AttendanceSettings, true())


def setting(name: str) -> Column:
    """Give one of the settings, as a scalar."""
    chosen = settings().subquery()
    return select(chosen.c[name]).scalar_subquery()


def counts_registers() -> Column:
    """Tell whether cards take from the registers how often a student came; else it is typed in."""
    condition: Column = setting("roll_up") == REGISTERS
    return condition


def day_parts(parts: Any) -> Column:
    """Give the parts of a day, an array, in their order, by the setting `parts`."""
    halves = literal_column(f"ARRAY['{MORNING}', '{AFTERNOON}']", ARRAY(Text))
    return case((parts == HALF_DAYS, halves), else_=literal_column(f"ARRAY['{DAY}']", ARRAY(Text)))


def is_open(day: Any, part: Any, weekdays: Any) -> Column:
    """Tell whether school is open in a part of a day; whether the day is in a term is not asked."""

    def status_of(of: Any) -> Any:
        exception = aliased(SchoolDay)
        query = select(exception.status).where(exception.date == day, exception.part == of)
        # Explicit, since SQLAlchemy correlates by itself with the FROM of the SELECT right around alone.
        return query.correlate_except(exception).scalar_subquery()

    usual = case(
        (is_weekday(day, weekdays), literal_column(f"'{OPEN}'")), else_=literal_column(f"'{CLOSED}'")
    )
    condition: Column = func.coalesce(status_of(part), status_of(DAY), usual) == OPEN
    return condition


def open_parts(day: Any, parts: Any, weekdays: Any) -> Column:
    """Give the open parts of a day, an array; empty on a closed day."""
    each = (
        func.unnest(day_parts(parts))
        .table_valued(column("part", String), with_ordinality="number")
        .render_derived()
    )
    query = select(each.c.part).where(is_open(day, each.c.part, weekdays)).order_by(each.c.number)
    return func.array(query.correlate_except(each).scalar_subquery(), type_=ARRAY(Text))


def is_weekday(day: Any, weekdays: Any) -> Column:
    """Tell whether a day is one of the weekdays, an array."""
    condition: Column = cast(func.date_part("isodow", day), SmallInteger) == any_(weekdays)
    return condition


def is_exception(day: Any) -> Column:
    """Tell whether anything is said of a day."""
    exception = aliased(SchoolDay)
    return select(exception.id).where(exception.date == day).correlate_except(exception).exists()


def day_name(day: Any, part: Any = None) -> Column:
    """Give the name of a day, such as a holiday; of a part its own name before the day's. Null without one."""
    exception = aliased(SchoolDay)
    named = select(exception.name).where(exception.date == day, exception.name.is_not(None))
    if part is not None:
        named = named.where(or_(exception.part == part, exception.part == DAY))
    # DAY is the first of the alphabet.
    order = exception.part if part is None else exception.part.desc()
    return named.order_by(order).limit(1).correlate_except(exception).scalar_subquery()


def term_of(session_id: Any, day: Any) -> Column:
    """Give the id of the term of a session with a day in its calendar; null without such a term."""
    term, calendar = aliased(Term), aliased(TermCalendar)
    return (
        select(term.id)
        .join(calendar, calendar.term_id == term.id)
        .where(term.session_id == session_id, day.between(calendar.start_date, calendar.end_date))
        .order_by(term.term)
        .limit(1)
        .correlate_except(term, calendar)
        .scalar_subquery()
    )


def last_day(term_id: Any) -> Column:
    """Give the last day of a term's calendar; without one the school's day."""
    ends = select(TermCalendar.end_date).where(TermCalendar.term_id == term_id)
    return func.coalesce(ends.correlate_except(TermCalendar).scalar_subquery(), scopes.today())


def days_of_terms(first: Any, last: Any) -> CTE:
    """Make the table of the days of all terms' calendars between two days: `date`, `term_id`, `session_id`."""
    start, end = func.greatest(TermCalendar.start_date, first), func.least(TermCalendar.end_date, last)
    number = func.generate_series(0, end - start).table_valued(column("number")).render_derived("after_first")
    return (
        select(
            cast(start + number.c.number, TermCalendar.start_date.type).label("date"),
            Term.id.label("term_id"),
            Term.session_id,
        )
        .select_from(TermCalendar)
        .join(Term, Term.id == TermCalendar.term_id)
        .join(number, true())
        .cte("days")
    )
