"""Comments on students' terms, and how often they came.

Their entry locks the cohort and the term FOR SHARE, and the batch FOR NO KEY UPDATE: so no results are published and no
calendar is changed meanwhile, and no transaction overwrites the members entered by another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import SmallInteger, String, Uuid, null, select
from sqlalchemy.dialects.postgresql import insert

from school_service.auth.principal import Principal
from school_service.core.errors import (
    Conflict,
    PrincipalsForbidden,
    names_in_words,
    refuse_named,
)
from school_service.core.permissions import Permission
from school_service.core.read_models import BoundQuery
from school_service.core.records import unnest_rows
from school_service.core.statements import fetch_one, in_one_round_trip, statement
from school_service.features.audit.service import Change, Values, audit_changes
from school_service.features.observations.comments import reads
from school_service.features.observations.published import refuse_published
from school_service.features.people.students.naming import name_with_number, strangers
from school_service.features.people.students.sheet_uploads import AuditTrail, Replaced, refuse_unexpected
from school_service.features.school.cohorts.class_sheets import Place, find_batch, find_place, find_term
from school_service.features.year.models import TermComment
from school_service.sheets.row_errors import INVALID, RowError, raise_refused_rows
from school_service.sheets.uploads import RowCounts
from tenants.clock import now

ENTITY = "comment"
"""The name in the audit log; the id there is the student's, and `term` is the comment's term."""

TIMES_PRESENT = "times_present"
PRINCIPAL = "principal_comment"
MEMBERS = (TIMES_PRESENT, "form_teacher_comment", PRINCIPAL)
FROM_REGISTERS = "comes from the registers"
COMMENTS = "comments"
"""The name of the list in errors."""


@dataclass(frozen=True, slots=True)
class Commented:
    """A student on the class list, and the comments on their term; `commented`: whether there is a record.

    `times_present` is the valid number, `typed_present` the stored one: two values if the registers are rolled up.
    """

    student_id: str
    admission_number: str
    first_name: str
    middle_name: str | None
    last_name: str
    commented: bool
    times_present: int | None
    typed_present: int | None
    form_teacher_comment: str | None
    principal_comment: str | None

    def __str__(self) -> str:
        return name_with_number(self)

    def stored(self) -> dict[str, Any]:
        """Give the members as they are stored."""
        return {**{name: getattr(self, name) for name in MEMBERS}, TIMES_PRESENT: self.typed_present}

    def differing(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Give the members given with other values than the present ones."""
        return {name: given[name] for name in MEMBERS if name in given and given[name] != getattr(self, name)}


@dataclass(frozen=True, slots=True)
class ClassList:
    """The members of a batch in a term, by name, and how often school opened by its calendar.

    The number is None if it is not set, and if the registers say how often students came, `by_registers`: then it
    bounds nothing.
    """

    students: Sequence[Commented]
    times_opened: int | None
    by_registers: bool


def check_comment_filter(*, batch: UUID, term: str) -> None:
    """Tell whether the batch of a filter of comments exists, and the term in its session. Raises Invalid."""
    find_term(term, find_batch(batch, field="batch"))


def enter_comments(
    *, batch: UUID, term: str, comments: Sequence[Mapping[str, Any]], principal: Principal
) -> BoundQuery:
    """Enter comments on students of a batch, all or none: an omitted member stays, None clears it.

    With `expected`, members as they were when they were read, a member is replaced only if it still is as expected.
    Returns the read model of the batch's comments; they are stored in its round trip. Raises Invalid for an unknown
    batch or term, and naming the students given twice, not in the batch, or present more often than school opened;
    Forbidden if a principal's comment changes and the caller may not write results, RowsChanged if something else than
    expected would be replaced, and Conflict while the batch's results of the term are published, and for a number of
    times present that is not the registers'.
    """
    place = find_place(batch, term)
    listed = lock_class(place)
    students = {UUID(student.student_id): student for student in listed.students}
    _refuse(comments, students, listed.times_opened)
    if listed.by_registers:
        _refuse_typed(comments, students)
    changed = [_changed(row, students) for row in comments]
    changes = [(student, differing) for student, differing in changed if differing]
    require_for(
        ((number, *each) for number, each in enumerate(changed)),
        principal,
        member=COMMENTS,
    )
    refuse_unexpected(_unexpected(comments, students), trail_of(place), list_name=COMMENTS)
    read = reads.comments(batch, str(place.term_id))
    return in_one_round_trip(storing(place, changes, source="hand"), read=read) if changes else read


def _changed(row: Mapping[str, Any], students: Mapping[UUID, Commented]) -> tuple[Commented, dict[str, Any]]:
    """Find the student of a record, and the members that it changes."""
    student = students[row["student"]]
    return student, student.differing(row)


def lock_class(place: Place) -> ClassList:
    """Lock the cohort, the term and the batch while comments are entered, and list the class as it is then.

    Raises Conflict while the batch's results of the term are published.
    """
    facts = fetch_one(
        reads.sharing(place.cohort_id, place.term_id),
        reads.lock_batch(place.batch_id),
        reads.class_list(place.batch_id, place.term_id),
    )
    refuse_published(facts["published"])
    return _class_list(facts)


def list_class(place: Place) -> ClassList:
    """List the class of a batch, with the comments on the term."""
    return _class_list(fetch_one(reads.class_list(place.batch_id, place.term_id)))


def require_for(
    changes: Iterable[tuple[int, Commented, Mapping[str, Any]]],
    principal: Principal,
    *,
    letters: Mapping[str, str] | None = None,
    member: str | None = None,
) -> None:
    """Refuse a change of a principal's comment without the right to write results: form teachers do not speak for them.

    Each change has the number of its row; `letters` and `member` are as in `raise_row_errors`. Raises
    PrincipalsForbidden.
    """
    rows = {row: name_with_number(student) for row, student, differing in changes if PRINCIPAL in differing}
    if principal.has(Permission.RESULTS_WRITE):
        return
    problem, remedy = "would change the principal's word", "leave it as it was"
    errors = [RowError(row, PRINCIPAL, INVALID, problem, None, remedy) for row in rows]
    raise_refused_rows(PrincipalsForbidden, errors, letters=letters, people=rows, member=member)


def storing(
    place: Place,
    changes: Sequence[tuple[Commented, Mapping[str, Any]]],
    *,
    forced: Collection[str] = (),
    **source: Any,
) -> BoundQuery:
    """Store the changed members of students; their batch is locked: the statement, for `execute`.

    `source`, with the `file_name` of a sheet, and `forced`, the students with a value replaced by force, are for the
    audit log. It names the members changed, without their texts.
    """
    new = [{**student.stored(), **differing} for student, differing in changes]
    audit_changes(
        ENTITY,
        (
            Change(
                UUID(student.student_id),
                _values(place, student.typed_present) if student.commented else None,
                {
                    **_values(place, after[TIMES_PRESENT]),
                    "changed": sorted(differing),
                    **source,
                    **({"forced": True} if student.student_id in forced else {}),
                },
            )
            for (student, differing), after in zip(changes, new, strict=True)
        ),
    )
    times_present, form_teacher, principal = ([after[name] for after in new] for name in MEMBERS)
    return _store(
        place.batch_id,
        place.cohort_id,
        place.session_id,
        place.term_id,
        [UUID(student.student_id) for student, _ in changes],
        times_present,
        form_teacher,
        principal,
        now(),
        source.get("file_name"),
    )


def count(rows: Sequence[tuple[Commented, Mapping[str, Any], Mapping[str, Any]]]) -> RowCounts:
    """Count rows of a sheet, each a student, the values given, and the changes: new, changed, unchanged."""
    created = sum(bool(differing) and not student.commented for student, _, differing in rows)
    updated = sum(bool(differing) for _, _, differing in rows) - created
    return RowCounts(created, updated, sum(bool(given) for _, given, _ in rows) - created - updated)


def _values(place: Place, times_present: int | None) -> Values:
    return {"term": place.term_id, TIMES_PRESENT: times_present}


def _class_list(facts: Mapping[str, Any]) -> ClassList:
    by_registers = facts["by_registers"]
    return ClassList(
        [Commented(**row) for row in orjson.loads(facts["rows"])],
        None if by_registers else facts["times_opened"],
        by_registers,
    )


def _refuse(
    comments: Sequence[Mapping[str, Any]], students: Mapping[UUID, Commented], times_opened: int | None
) -> None:
    """Raise Invalid if any of the comments can't be entered, naming all students."""
    named = Counter(row["student"] for row in comments)
    reasons = {
        "named more than once": [
            str(students.get(student, student)) for student, times in named.items() if times > 1
        ],
        **strangers((student for student in named if student not in students), "not in the batch"),
        f"present more often than the {times_opened} times that school opened": [
            str(students[row["student"]])
            for row in comments
            if row["student"] in students and _is_more(row.get(TIMES_PRESENT), times_opened)
        ],
    }
    refuse_named({COMMENTS: reasons})


def _refuse_typed(comments: Sequence[Mapping[str, Any]], students: Mapping[UUID, Commented]) -> None:
    """Refuse typed numbers of times present other than those of the registers. Raises Conflict."""
    others = [
        str(student)
        for row in comments
        if TIMES_PRESENT in (student := students[row["student"]]).differing(row)
    ]
    if others:
        raise Conflict(
            f"{names_in_words(others)}: how often a student was present {FROM_REGISTERS}; something else was given.",
            {"times_present": [FROM_REGISTERS]},
        )


def _unexpected(
    comments: Sequence[Mapping[str, Any]], students: Mapping[UUID, Commented]
) -> Iterator[Replaced]:
    """Find the members to be replaced, with other values than a record expected."""
    for number, row in enumerate(comments):
        student, expected = students[row["student"]], row.get("expected", {})
        for name, value in student.differing(row).items():
            stored = getattr(student, name)
            if name in expected and expected[name] != stored:
                whose = name_with_number(student), student.student_id
                yield Replaced(number, name, *whose, stored, value, kind="value")


def trail_of(place: Place) -> AuditTrail:
    """Give the audit trail of the comments of a term: the log's values after a change name the members changed."""

    def is_changed(values: Any, column: str) -> bool:
        return (
            bool(values) and values.get("term") == str(place.term_id) and column in values.get("changed", ())
        )

    # Of a student's comments, in any term, 100 changes: somebody changed this one before these.
    return AuditTrail(ENTITY, is_changed, 100, member=None)


def _is_more(times_present: int | None, times_opened: int | None) -> bool:
    return times_present is not None and times_opened is not None and times_present > times_opened


@statement
def _store(
    batch_id: UUID,
    cohort_id: UUID,
    session_id: UUID,
    term_id: UUID,
    student_ids: list[UUID],
    times_present: list[int | None],
    form_teacher_comments: list[str | None],
    principal_comments: list[str | None],
    moment: datetime,
    sheet: str | None = None,
) -> Any:
    rows = unnest_rows(
        student_id=(Uuid, student_ids),
        times_present=(SmallInteger, times_present),
        form_teacher_comment=(String, form_teacher_comments),
        principal_comment=(String, principal_comments),
    )
    common = {"batch_id": batch_id, "cohort_id": cohort_id, "session_id": session_id, "term_id": term_id}
    values: Any = (*common.values(), null() if sheet is None else sheet, moment, moment, *rows.c)
    changing = ("batch_id", "cohort_id", "session_id", "sheet", "updated_at", *MEMBERS)
    storing = insert(TermComment).from_select(
        [*common, "sheet", "created_at", "updated_at", "student_id", *MEMBERS], select(*values)
    )
    return storing.on_conflict_do_update(
        index_elements=TermComment.__table__.primary_key.columns,
        set_={name: storing.excluded[name] for name in changing},
    )
