"""School days: usual and exceptional ones.

A change of them waits for everyone marking a register, and locks the registers of the days: so no register is made for
a day closed meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from uuid import UUID, uuid4

import orjson
from sqlalchemy import (
    Date,
    Integer,
    String,
    Text,
    Uuid,
    case,
    cast,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
)

from school_service.core.errors import InUse, Invalid, names_in_words, refuse_named
from school_service.core.narrowing import everybodys
from school_service.core.read_models import BoundQuery, Query, array_of, json_object, read_model
from school_service.core.records import lock_in_order, one_of, unnest_rows
from school_service.core.statements import Executable, fetch_one, in_one_round_trip, statement
from school_service.features.attendance import calendar
from school_service.features.attendance.models import (
    DAY,
    HALF_DAYS,
    HALVES,
    IS_DAY,
    OPEN,
    USUAL,
    Register,
    SchoolDay,
)
from school_service.features.attendance.settings.service import lock_days
from school_service.features.audit.service import Change, audit_changes
from school_service.features.school.models import Batch, Classroom, Cohort, Term, TermCalendar

ENTITY = "school-day"


@everybodys
def school_days(first: date, last: date) -> Query:
    """Read model of SchoolDaySchema: of all terms, the weekdays of school, and the exceptional days."""
    days, settings = calendar.days_of_terms(first, last), calendar.settings().cte("settings")
    listed = or_(calendar.is_weekday(days.c.date, settings.c.weekdays), calendar.is_exception(days.c.date))
    return (
        select(
            days.c.date,
            json_object(id=Term.id, term=Term.term).label("term"),
            calendar.open_parts(days.c.date, settings.c.parts, settings.c.weekdays).label("parts"),
            calendar.day_name(days.c.date).label("name"),
        )
        .select_from(days)
        .join(Term, Term.id == days.c.term_id)
        .join(settings, literal_column("true"))
        .where(listed)
        .order_by(days.c.date, Term.term, Term.id)
    )


@read_model
def _days(days: list[date]) -> Query:
    """Read model of SchoolDaySchema: these days, whether they are in a term or not."""
    settings = calendar.settings().cte("settings")
    given = unnest_rows("given", None, date=(Date, days))
    term = json_object(id=Term.id, term=Term.term)
    open_parts = calendar.open_parts(given.c.date, settings.c.parts, settings.c.weekdays)
    nothing: Any = literal_column("ARRAY[]::text[]")
    return (
        select(
            given.c.date,
            case((Term.id.is_not(None), term)).label("term"),
            case((Term.id.is_not(None), open_parts), else_=nothing).label("parts"),
            calendar.day_name(given.c.date).label("name"),
        )
        .select_from(given)
        .join(settings, literal_column("true"))
        .outerjoin(TermCalendar, given.c.date.between(TermCalendar.start_date, TermCalendar.end_date))
        .outerjoin(Term, Term.id == TermCalendar.term_id)
        .order_by(given.c.date, Term.term, Term.id)
    )


@statement
def _lock_registers(days: list[date]) -> Any:
    return lock_in_order(Register, Register.date == one_of(days, Date))


@read_model
def _stored(days: list[date]) -> Query:
    """Select the settings of days, and the exceptions and the day registers of some days: JSON arrays."""
    settings = calendar.settings().subquery("settings")
    of_days = one_of(days, Date)
    said = json_object(
        **{name: getattr(SchoolDay, name) for name in ("id", "date", "part", "status", "name")}
    )
    class_name = Classroom.name.concat(" ").concat(Batch.name)
    register = json_object(
        date=Register.date,
        part=Register.part,
        class_name=class_name,
        weekday=cast(func.date_part("isodow", Register.date), Integer),
    )
    registers = (
        select(array_of(register, Register.date, class_name, Register.part))
        .join(Batch, Batch.id == Register.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .where(Register.date == of_days, IS_DAY)
    )
    exceptions = select(array_of(said)).where(SchoolDay.date == of_days)
    return select(
        settings.c.parts,
        settings.c.weekdays,
        cast(exceptions.scalar_subquery(), Text).label("said"),
        cast(registers.scalar_subquery(), Text).label("registers"),
    )


def set_school_days(*, days: Sequence[Mapping[str, Any]]) -> BoundQuery:
    """Declare days, or halves of them, open or closed, or usual again; all or none.

    Each has `date`, `status`, and perhaps `part`, MORNING or AFTERNOON, and `name`. The status of a whole day takes the
    place of its halves'. Returns the read model of these days, stored and read in one round trip. Raises Invalid for a
    day given twice or a part unknown to the school, and Conflict naming the batches with a register of a day to be
    closed.
    """
    keys = [(day["date"], day.get("part") or DAY) for day in days]
    twice = [_day_and_part(*key) for key, times in Counter(keys).items() if times > 1]
    refuse_named({"days": {"there more than once": twice}})
    dates = sorted({day for day, _ in keys})
    facts = fetch_one(lock_days(), _lock_registers(dates), _stored(dates))
    if facts["parts"] != HALF_DAYS and any(part != DAY for _, part in keys):
        halves = {f"days.{number}.part": key for number, key in enumerate(keys) if key[1] != DAY}
        days_and_parts = names_in_words([_day_and_part(*key) for key in halves.values()])
        words = f"{days_and_parts}: the school has no half days"
        raise Invalid(words, {place: ["is none of the school's"] for place in halves})
    old = {(date.fromisoformat(row["date"]), row["part"]): row for row in orjson.loads(facts["said"])}
    new = _exceptions_after(days, old)
    _refuse_closed(orjson.loads(facts["registers"]), new, facts["weekdays"])
    read = _days(dates)
    before, after = ({key: _values(key, row) for key, row in rows.items()} for rows in (old, new))
    if before == after:
        return read
    ids = {key: UUID(old[key]["id"]) if key in old else uuid4() for key in {**old, **new}}
    changed = sorted(key for key in ids if before.get(key) != after.get(key))
    audit_changes(ENTITY, (Change(ids[key], before.get(key), after.get(key)) for key in changed))
    writes: list[Executable] = [_delete([str(ids[key]) for key in changed if key in old])]
    if kept := [key for key in changed if key in new]:
        writes.append(
            _store(
                [str(ids[key]) for key in kept],
                [day for day, _ in kept],
                [part for _, part in kept],
                [new[key]["status"] for key in kept],
                [new[key]["name"] for key in kept],
            )
        )
    return in_one_round_trip(*writes, read=read)


Key = tuple[date, str]


def _exceptions_after(
    days: Sequence[Mapping[str, Any]], old: Mapping[Key, Mapping[str, Any]]
) -> dict[Key, Mapping[str, Any]]:
    """Find the exceptions of days after this change: whole days first."""
    said = dict(old)
    for day in sorted(days, key=lambda day: day.get("part") is not None):
        key = day["date"], day.get("part") or DAY
        if key[1] == DAY:
            for half in HALVES:
                said.pop((key[0], half), None)
        said.pop(key, None)
        if day["status"] != USUAL:
            said[key] = {"status": day["status"], "name": day.get("name")}
    return said


def _refuse_closed(
    registers: Sequence[Mapping[str, Any]], said: Mapping[Key, Mapping[str, Any]], weekdays: Sequence[int]
) -> None:
    """Refuse to close a day, or a part of it, with a register. Raises Conflict naming the batches."""
    names = []
    for register in registers:
        day = date.fromisoformat(register["date"])
        exception = said.get((day, register["part"])) or said.get((day, DAY))
        is_open = register["weekday"] in weekdays if exception is None else exception["status"] == OPEN
        if not is_open:
            names.append(f"{register['class_name']} on {_day_and_part(day, register['part'])}")
    if names:
        words = f"There are registers: {names_in_words(names)}."
        raise InUse(f"A day with registers is not closed. {words}", {"days": [words]})


def _day_and_part(day: date, part: str) -> str:
    return f"{day}" if part == DAY else f"{day} {part}"


def _values(key: Key, row: Mapping[str, Any]) -> dict[str, Any]:
    return {"date": key[0], "part": key[1], "status": row["status"], "name": row["name"]}


@statement
def _delete(ids: list[str]) -> Any:
    return delete(SchoolDay).where(SchoolDay.id == one_of(ids, Uuid(as_uuid=False)))


@statement
def _store(
    ids: list[str], days: list[date], parts: list[str], statuses: list[str], names: list[str | None]
) -> Any:
    rows = unnest_rows(
        id=(Uuid, ids),
        date=(Date, days),
        part=(String, parts),
        status=(String, statuses),
        name=(String, names),
    )
    return insert(SchoolDay).from_select(list(rows.c.keys()), select(rows), include_defaults=False)
