"""Read models of guardians, and of the facts for deciding on changes to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    CompoundSelect,
    Integer,
    Select,
    Text,
    Uuid,
    and_,
    cast,
    column,
    func,
    null,
    or_,
    select,
    union,
)
from sqlalchemy.orm import aliased
from sqlalchemy.sql.selectable import TableValuedAlias

from school_service.core.counters import STUDENTS, Counter
from school_service.core.facts import shown
from school_service.core.reach import Reach
from school_service.core.read_models import Query, array_of, json_object, read_model
from school_service.core.records import lock_in_order, one_of
from school_service.core.search import folded, matches, may_match
from school_service.features.people.gains.service import NOTHING
from school_service.features.people.models import (
    SEARCHED_OF_GUARDIAN,
    Guardian,
    Student,
    StudentGuardian,
    User,
)
from school_service.features.reach import scopes

BY_NAME = (folded(Guardian.full_name), Guardian.full_name, Guardian.id)
"""The order of guardians in lists."""
_PRIMARY_FIRST = (StudentGuardian.is_primary.desc(), *BY_NAME)

_STOPPED = StudentGuardian.stopped_at.is_not(None)
_receives = StudentGuardian.receives_reports & ~_STOPPED


@read_model
def guardians(search: str | None = None, student: UUID | None = None, reach: Reach | None = None) -> Query:
    """Read model of GuardianSchema, by name; each word of `search` is part of the name, the phone or the e-mail."""
    child = json_object(
        student=Student.id,
        admission_number=Student.admission_number,
        first_name=User.first_name,
        last_name=User.last_name,
        relationship=StudentGuardian.relationship,
        primary=StudentGuardian.is_primary,
        receives_reports=_receives,
        stopped_at=StudentGuardian.stopped_at,
    )
    children = (
        select(array_of(child, User.name_sort_key, Student.id))
        .select_from(StudentGuardian)
        .join(Student, Student.id == StudentGuardian.student_id)
        .join(User, User.id == Student.user_id)
        .where(StudentGuardian.guardian_id == Guardian.id)
    )
    of_student = None if student is None else _guardians_of(student)
    if reach is not None:
        children = children.where(_in_reach(reach))
    query = select(
        Guardian.id,
        Guardian.full_name,
        Guardian.phone_number,
        Guardian.email_address,
        Guardian.physical_address,
        Guardian.user_id.label("user"),
        children.correlate(Guardian).scalar_subquery().label("children"),
        Guardian.created_at.label("createdAt"),
    ).order_by(*BY_NAME)
    if search is not None:
        query = query.where(may_match(search, SEARCHED_OF_GUARDIAN), matches(search, SEARCHED_OF_GUARDIAN))
    if reach is not None:
        query = query.where(scopes.guardians_in_reach(reach, Guardian.id, Guardian.user_id))
        of_student = None if of_student is None else of_student.where(_in_reach(reach))
    if of_student is not None:
        query = query.where(Guardian.id.in_(of_student))
    return query


def _in_reach(reach: Reach) -> Any:
    """Tell whether a row of student_guardians is in reach."""
    link = StudentGuardian
    return scopes.guardianships_in_reach(reach, link.student_id, link.guardian_id, link.stopped_at)


def _is_by(reach: Reach, relations: str) -> Any:
    """Tell whether some relations lead to a row of student_guardians."""
    return _in_reach(replace(reach, relations=relations))


@read_model
def guardian(guardian_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of GuardianSchema, for one."""
    return guardians.query(reach=reach).where(Guardian.id == guardian_id)


@read_model
def guardians_of_student(student_id: UUID, told: str | None = None, reach: Reach | None = None) -> Query:
    """Read model of StudentGuardianSchema, of a student: the primary first, then by name.

    `told` is of LinkedGuardianSchema besides: an object in JSON, with the members for guardians with a gain by the
    account's id, and for all others by an empty name.
    """
    query = (
        select(
            Guardian.id.label("guardian"),
            Guardian.full_name,
            Guardian.phone_number,
            Guardian.email_address,
            Guardian.physical_address,
            Guardian.user_id.label("user"),
            StudentGuardian.relationship,
            StudentGuardian.is_primary.label("primary"),
            _receives.label("receives_reports"),
            StudentGuardian.stopped_at,
            shown(StudentGuardian.stop_reason, reach, _is_by),
        )
        .join(StudentGuardian, StudentGuardian.guardian_id == Guardian.id)
        .where(StudentGuardian.student_id == student_id)
        .order_by(*_PRIMARY_FIRST)
    )
    if told is not None:
        members = cast(cast(told, Text), JSON)
        theirs = func.coalesce(members.op("->")(cast(Guardian.user_id, Text)), members.op("->")(""))
        query = query.add_columns(*(theirs.op("->")(name).label(name) for name in NOTHING))
    return query if reach is None else query.where(_in_reach(reach))


def primary_guardian() -> Any:
    """Write the primary guardian of a row of students, as their record shows it; null without one."""
    return _of_student(_REACHED, StudentGuardian.is_primary).scalar_subquery()


def second_guardian() -> Any:
    """Write the first guardian of a row of students, by name, beside the primary; null without one.

    A stopped one is left out.
    """
    another = _of_student(_REACHED, ~StudentGuardian.is_primary, ~_STOPPED)
    return another.order_by(*_PRIMARY_FIRST).limit(1).scalar_subquery()


_REACHED = json_object(
    full_name=Guardian.full_name,
    relationship=StudentGuardian.relationship,
    phone_number=Guardian.phone_number,
    email_address=Guardian.email_address,
)
"""How a guardian is reached."""


def _of_student(shown: Any, *conditions: Any) -> Select[Any]:
    """Select something of the guardians of a row of students."""
    return (
        select(shown)
        .select_from(StudentGuardian)
        .join(Guardian, Guardian.id == StudentGuardian.guardian_id)
        .where(StudentGuardian.student_id == Student.id, *conditions)
        .correlate(Student)
    )


def notified_guardians(reach: Reach | None) -> Any:
    """Write the guardians who receive reports of a row of students, those in reach: primary first, then by name."""
    query = _of_student(array_of(_REACHED, *_PRIMARY_FIRST), _receives)
    return (query if reach is None else query.where(_in_reach(reach))).scalar_subquery()


# The facts that decide about a change, once its row is locked.


def _guardians_of(student_id: Any) -> Select[Any]:
    return select(StudentGuardian.guardian_id).where(StudentGuardian.student_id == student_id)


def _digits(text: Any) -> Any:
    """The digits of a phone number; null without any."""
    return func.nullif(func.regexp_replace(text, "[^0-9]", "", "g"), "")


def _keys(full_name: Any, phone_number: Any, email_address: Any) -> dict[str, Any]:
    """The common values of two records of the same person: the name, and digits or the e-mail address."""
    return {"name": folded(full_name), "digits": _digits(phone_number), "email": folded(email_address)}


_KEYS = _keys(Guardian.full_name, Guardian.phone_number, Guardian.email_address)


def _compared(full_name: Any) -> Any:
    """Fold a name as names are compared: those stored by earlier releases, too, have their words one space apart."""
    return func.regexp_replace(folded(full_name), r"[\s\u00a0]+", " ", "g")


def rows_of(document: Any, alias: str, **types: Any) -> TableValuedAlias:
    """Make rows of a JSON document, an array of objects with members of these names and types."""
    columns = [column(name, kind) for name, kind in types.items()]
    rows = func.json_to_recordset(cast(document, JSON)).table_valued(*columns)
    return rows.render_derived(name=alias, with_types=True)


def _named_persons(document: Any) -> Any:
    """Make a CTE of the named persons: their place in the input, and the keys for finding each."""
    texts = {name: Text() for name in ("full_name", "phone_number", "email_address")}
    given = rows_of(document, "named", place=Integer(), **texts)
    keys = _keys(given.c.full_name, given.c.phone_number, given.c.email_address)
    return select(given.c.place, *(value.label(name) for name, value in keys.items())).cte("given")


def _guardian_ids(of_students: Any, guardian_id: Any, given: Any) -> Select[Any] | CompoundSelect[Any]:
    """Select the ids of students' guardians, of this one, and of possible matches of the persons given."""
    meant: list[Any] = []
    if of_students is not None:
        meant.append(select(StudentGuardian.guardian_id).where(of_students))
    if guardian_id is not None:
        meant.append(select(cast(guardian_id, Uuid)))
    if given is not None:
        same = or_(_KEYS["digits"] == given.c.digits, _KEYS["email"] == given.c.email)
        meant.append(
            select(Guardian.id)
            .join(given, (_KEYS["name"] == given.c.name) & same)
            .where(Guardian.erased_at.is_(None))
        )
    return union(*meant) if len(meant) > 1 else meant[0]


def _of_students(student_id: Any, student_ids: Any) -> Any:
    """Tell whether a row of student_guardians is of a student, or of one of some; None without any."""
    if student_ids is not None:
        return StudentGuardian.student_id == one_of(student_ids)
    return None if student_id is None else StudentGuardian.student_id == student_id


@read_model
def lock(
    student_id: UUID | None = None,
    guardian_id: UUID | None = None,
    given: str | None = None,
    student_ids: list[UUID] | None = None,
) -> Query:
    """Lock guardians FOR NO KEY UPDATE, by id: students', this one, and possible matches of persons given (JSON)."""
    of_students = _of_students(student_id, student_ids)
    meant = _guardian_ids(of_students, guardian_id, None if given is None else _named_persons(given))
    return lock_in_order(Guardian, Guardian.id.in_(meant))


@read_model
def facts_of_guardians(
    student_id: UUID | None = None,
    guardian_id: UUID | None = None,
    given: str | None = None,
    student_ids: list[UUID] | None = None,
) -> Query:
    """Select the facts of students' guardians, of one, and of possible matches of the persons given: one row.

    `students` is the last number given to a student, `erased` whether the student's data were erased, null without such
    a student, `links` their guardians, `people` the persons, the oldest first, and `given` the keys for finding each of
    the persons given.
    """
    named = None if given is None else _named_persons(given)
    links: Any = null()
    keys: Any = null()
    of_students = _of_students(student_id, student_ids)
    if of_students is not None:
        link = json_object(**{column.name: column for column in StudentGuardian.__table__.columns})
        links = select(array_of(link)).where(of_students).scalar_subquery()
    if named is not None:
        keys = select(array_of(json_object(**dict(named.c)))).scalar_subquery()
    children = (
        select(func.count())
        .select_from(StudentGuardian)
        .where(StudentGuardian.guardian_id == Guardian.id)
        .correlate(Guardian)
        .scalar_subquery()
    )
    stops = (
        select(func.count())
        .select_from(StudentGuardian)
        .where(StudentGuardian.guardian_id == Guardian.id, _STOPPED)
        .correlate(Guardian)
        .scalar_subquery()
    )
    row = json_object(**{column.name: column for column in Guardian.__table__.columns})
    person = json_object(
        row=row, **{**_KEYS, "name": _compared(Guardian.full_name)}, children=children, stops=stops
    )
    people = (
        select(array_of(person, Guardian.created_at, Guardian.id))
        .where(Guardian.id.in_(_guardian_ids(of_students, guardian_id, named)))
        .scalar_subquery()
    )
    student = select(User.erased_at.is_not(None)).join(Student, Student.user_id == User.id)
    erased = null() if student_id is None else student.where(Student.id == student_id).scalar_subquery()
    return select(
        select(Counter.value).where(Counter.name == STUDENTS).scalar_subquery().label("students"),
        erased.label("erased"),
        links.label("links"),
        people.label("people"),
        keys.label("given"),
    )


@read_model
def facts_of_renamed(guardian_id: UUID, full_name: str | None) -> Query:
    """Select the facts of a guardian, and the number of stops of others of a name for the guardian's children."""
    theirs = aliased(StudentGuardian)
    stops = (
        select(func.count())
        .select_from(theirs)
        .join(StudentGuardian, StudentGuardian.student_id == theirs.student_id)
        .join(Guardian, Guardian.id == StudentGuardian.guardian_id)
        .where(
            theirs.guardian_id == guardian_id,
            Guardian.id != guardian_id,
            _is_stopped_as(full_name),
        )
    )
    return facts_of_guardians.query(guardian_id=guardian_id).add_columns(
        stops.scalar_subquery().label("stops_of_name")
    )


def _is_stopped_as(full_name: Any) -> Any:
    """Tell, in a query of links and guardians, whether a link is stopped, and of a guardian of this folded name."""
    return and_(_STOPPED, _compared(Guardian.full_name) == _compared(cast(full_name, Text)))


@read_model
def students_seen(student_ids: list[UUID], full_name: str) -> Query:
    """Select the facts for giving students another guardian: by id, as one JSON object.

    Of each the name in refusals, whether their data were erased, the number of their guardians, the primary among
    these, and whether one of this name is stopped.
    """

    def of_links(what: Any, *conditions: Any) -> Any:
        return (
            select(what)
            .select_from(StudentGuardian)
            .join(Guardian, Guardian.id == StudentGuardian.guardian_id)
            .where(StudentGuardian.student_id == Student.id, *conditions)
            .correlate(Student)
            .scalar_subquery()
        )

    document = json_object(
        name=User.first_name + " " + User.last_name + " (" + Student.admission_number + ")",
        erased=User.erased_at.is_not(None),
        guardians=of_links(func.count()),
        primary=of_links(StudentGuardian.guardian_id, StudentGuardian.is_primary),
        stopped=of_links(func.count(), _is_stopped_as(full_name)),
    )
    return (
        select(func.json_object_agg(cast(Student.id, Text), document).label("students"))
        .select_from(Student)
        .join(User, User.id == Student.user_id)
        .where(Student.id == one_of(student_ids))
    )


@read_model
def lock_students(student_ids: list[UUID]) -> Query:
    """Lock students FOR NO KEY UPDATE, by id."""
    return lock_in_order(Student, Student.id == one_of(student_ids))


@read_model
def lock_primaries(student_ids: list[UUID]) -> Query:
    """Lock the primary guardians of students FOR NO KEY UPDATE, by id: they cease to be primary; none is deleted."""
    primaries = select(StudentGuardian.guardian_id).where(
        StudentGuardian.student_id == one_of(student_ids), StudentGuardian.is_primary
    )
    return lock_in_order(Guardian, Guardian.id.in_(primaries))


@read_model
def lock_account_of(guardian_id: UUID) -> Query:
    """Lock the account of a guardian, locked before, FOR NO KEY UPDATE."""
    account = select(Guardian.user_id).where(Guardian.id == guardian_id).scalar_subquery()
    return select(User.id).where(User.id == account).with_for_update(key_share=True)
