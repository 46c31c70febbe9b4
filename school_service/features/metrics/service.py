"""Metrics: the traits that students are scored for, and the sheets that scores are entered with.

Whoever uploads a sheet holds the cohort alone until it is entered, while those who change where students are
share it. So who is in the batch, and what is known of them, stands still meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import IO, Any
from uuid import UUID, uuid4

from sqlalchemy import SmallInteger, Text, Uuid, and_, cast, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from school_service.core.counters import TRAITS, next_numbers
from school_service.core.database import current_school, db
from school_service.core.errors import Conflict, Invalid
from school_service.core.records import add, get, get_referenced, insert_rows, unnest_rows
from school_service.features.audit.service import Change, audit_changes, score_values
from school_service.features.classrooms.models import Classroom
from school_service.features.cohorts.models import Batch, Cohort
from school_service.features.metrics.models import (
    BEST,
    METRIC_TYPES,
    POOREST,
    Metric,
    MetricDefinition,
    MetricScore,
)
from school_service.features.metrics.reads import class_list
from school_service.features.sessions.models import AcademicSession, Term
from school_service.features.students.sheet_rows import STUDENT_COLUMNS, RowCounts, match_students
from school_service.sheets.columns import CellType, Column, NumberRange, normalized_name
from school_service.sheets.row_errors import INVALID, RowError
from school_service.sheets.sheet_reader import DETAILS, Row, read_details, read_sheet, sheet_of_another
from school_service.sheets.sheet_writer import Table, write_workbook
from school_service.sheets.xlsx_reader import Workbook, open_workbook
from tenants.clock import now

ENTITY = "metric"
SHEET = "Metrics"
BATCH, TERM, METRIC_TYPE = "Batch", "Term", "Metric type"

Scores = Mapping[str, int]
"""Scores by the name of the trait."""


def check_metric_filter(*, batch_id: UUID) -> None:
    """Tell whether there is the batch that a filter of metrics names. Raises Invalid."""
    get_referenced(Batch, batch_id, "batchId")


def create_definition(*, name: str, metric_type: str) -> MetricDefinition:
    """Add a trait after the others of its type; one that a sheet could not tell from another is a conflict.

    Raises Invalid for the name of a column that says whose row it is.
    """
    if normalized_name(name) in {normalized_name(column.name) for column in STUDENT_COLUMNS}:
        raise Invalid.field("name", "is the name of another column of metric sheets")
    # Who has the number holds the others back: nobody takes the name meanwhile.
    (position,) = next_numbers(TRAITS[metric_type])
    for trait in _traits():
        if trait.metric_type == metric_type and normalized_name(trait.name) == normalized_name(name):
            raise Conflict(
                f"The {metric_type} trait {trait.name} exists already.", {"name": ["already taken"]}
            )
    return add(MetricDefinition(name=name, metric_type=metric_type, position=position))


def write_sheet(*, batch_id: UUID, term: str, metric_type: str) -> tuple[str, bytes]:
    """Write a metric sheet to fill in: the file's name and the workbook.

    It has a row for everyone who is in the batch now, with the scores that there are. `term` is FIRST, SECOND
    or THIRD of the batch's session, or the id of a term. Raises Invalid for an unknown batch or term, and for
    a term of another session.
    """
    place = _find_batch(batch_id)
    found = _find_term(term, place, partial(Invalid.field, "term"))
    names = [trait.name for trait in _traits() if trait.metric_type == metric_type]
    rows = [
        {column.name: row[column.name] for column in STUDENT_COLUMNS} | (row["scores"] or {})
        for row in db.session.execute(class_list(place.id, found.id, metric_type)).mappings()
    ]
    table = Table(SHEET, _columns(names), rows)
    about = f"{place.classroom} {place.name} {place.session} {found.display_name} {metric_type.lower()}"
    return f"{about}.xlsx", write_workbook([table], _details(place, found, metric_type))


def upload_sheet(*, batch: UUID | int, file: IO[bytes], file_name: str) -> dict[str, int]:
    """Enter the scores of a metric sheet, all or none, and count its rows: new, changed, as they were, blank.

    `batch` is an id, or a number in the school. A student who is not in the sheet, and a score that is blank
    there, stay as they are. Uploads for a cohort follow one another. Raises Invalid for an unknown batch and
    what is no sheet of this batch, InvalidRows naming every bad row.
    """
    place = _find_batch(batch)
    workbook = open_workbook(file)
    term, metric_type = _read_details(workbook, place)
    traits = _traits()
    ids = {trait.name: trait.id for trait in traits if trait.metric_type == metric_type}
    content = read_sheet(workbook, SHEET, _columns(ids), refusal=partial(_refusal, traits=traits))
    # Held from here on, when the file has proved to be one: reading it takes long.
    get(Cohort, place.cohort_id, for_update=True)
    students = {
        row.admission_number: row for row in db.session.execute(class_list(place.id, term.id, metric_type))
    }
    matched = match_students(
        content, students, absent="This student is not in the batch.", judge=partial(_problems, names=ids)
    )
    common = {
        "batch_id": place.id,
        "cohort_id": place.cohort_id,
        "session_id": term.session_id,
        "term_id": term.id,
        "metric_type": metric_type,
        "sheet": file_name,
    }
    given = [
        (student, {name: int(row.values[name]) for name in ids if name in row.values})
        for student, row in matched
    ]
    return _enter(given, ids, common).of_rows(len(content.rows))


def _find_batch(batch: UUID | int) -> Any:
    """Find a batch by id or number, with what its sheets say of it. Raises Invalid."""
    meant = Batch.number == batch if isinstance(batch, int) else Batch.id == batch
    found = db.session.execute(
        select(
            Batch.id,
            Batch.number,
            Batch.name,
            Batch.cohort_id,
            Cohort.session_id,
            AcademicSession.name.label("session"),
            Classroom.name.label("classroom"),
        )
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .where(meant)
    ).one_or_none()
    if found is None:
        raise Invalid.field("batchId", "no such batch")
    return found


def _find_term(text: str, place: Any, refused: Callable[[str], Invalid]) -> Term:
    """Find a term of a batch's session, by its id or its name in the session; raises what `refused` makes."""
    of_session = and_(Term.session_id == place.session_id, Term.term == text)
    meant = or_(cast(Term.id, Text) == text.lower(), of_session)
    term = db.session.scalars(select(Term).where(meant)).one_or_none()
    if term is None:
        raise refused("no such term")
    if term.session_id != place.session_id:
        raise refused("is not of the batch's session")
    return term


def _traits() -> Sequence[Any]:
    """Find the traits of both types, in the order in which sheets show them."""
    found = select(MetricDefinition.id, MetricDefinition.name, MetricDefinition.metric_type)
    return db.session.execute(found.order_by(MetricDefinition.position)).all()


def _columns(names: Iterable[str]) -> list[Column]:
    rule = NumberRange(Decimal(POOREST), Decimal(BEST), whole=True)
    return [*STUDENT_COLUMNS, *(Column(name, CellType.NUMBER, required=True, rule=rule) for name in names)]


def _details(place: Any, term: Term, metric_type: str) -> list[tuple[str, str]]:
    return [
        ("School", current_school().name),
        ("Class", place.classroom),
        (BATCH, place.name),
        ("Session", place.session),
        (TERM, term.term),
        ("Term name", term.display_name),
        (METRIC_TYPE, metric_type),
        ("Scores", f"{BEST} (excellent) to {POOREST} (poor)"),
        (f"{BATCH} ID", str(place.id)),
        (f"{TERM} ID", str(term.id)),
    ]


def _read_details(workbook: Workbook, place: Any) -> tuple[Term, str]:
    """Find the term and the metric type that a sheet is of. Raises Invalid, for that of another batch too.

    A sheet that was not downloaded may name batch and term without their ids: the batch by its number, the
    term as FIRST, SECOND or THIRD.
    """
    details = read_details(workbook) or {}
    batch = _named(details, f"{BATCH} ID", BATCH)
    term = _named(details, f"{TERM} ID", TERM)
    metric_type = _named(details, METRIC_TYPE)
    if batch.casefold() not in {str(place.id), str(place.number)}:
        raise sheet_of_another(details, BATCH, batch)
    if metric_type.upper() not in METRIC_TYPES:
        raise Invalid(f"{METRIC_TYPE} on the sheet {DETAILS}: is none of {' and '.join(METRIC_TYPES)}.")
    found = _find_term(term, place, lambda reason: Invalid(f"{TERM} on the sheet {DETAILS}: {reason}."))
    return found, metric_type.upper()


def _named(details: Mapping[str, str], *labels: str) -> str:
    """Read what a sheet says of itself by the first of the labels that has something. Raises Invalid."""
    for label in labels:
        if found := details.get(normalized_name(label)):
            return found
    raise Invalid(f"The sheet {DETAILS} lacks {labels[0]}: download the sheet, and fill that one in.")


def _refusal(name: str, traits: Iterable[Any]) -> str:
    """Say why a column can't be on a sheet."""
    others = [trait.metric_type for trait in traits if normalized_name(trait.name) == normalized_name(name)]
    return f"This trait is {others[0]}." if others else "There is no such trait."


def _problems(row: Row, names: Iterable[str]) -> Iterator[RowError]:
    for name in names:
        score = row.values.get(name)
        if score is not None and not (POOREST <= score <= BEST and score == int(score)):
            yield RowError(row.number, name, INVALID, f"Is not a whole number from {POOREST} to {BEST}.")


def _enter(
    given: Iterable[tuple[Any, Scores]], ids: Mapping[str, UUID], common: Mapping[str, Any]
) -> RowCounts:
    """Enter scores of students on a class list, each once, in a fixed number of statements.

    `ids` are those of the traits, by name; `common` is what the records have in common.
    """
    created: dict[UUID, str] = {}
    updated: list[UUID] = []
    moved: list[UUID] = []
    unchanged = 0
    scores: list[tuple[UUID, UUID, int]] = []
    changes = []
    for student, wanted in given:
        before = student.scores or {}
        fresh = {name: score for name, score in wanted.items() if before.get(name) != score}
        if not fresh:
            unchanged += bool(wanted)
            if wanted and student.batch_id != common["batch_id"]:
                moved.append(UUID(student.metric_id))
            continue
        if student.metric_id is None:
            created[metric_id := uuid4()] = student.student_id
            old = None
        else:
            updated.append(metric_id := UUID(student.metric_id))
            old = score_values(before, student.sheet)
        scores.extend((metric_id, ids[name], score) for name, score in fresh.items())
        changes.append(Change(metric_id, old, score_values(before | fresh, common["sheet"])))
    _store(created, [*updated, *moved], scores, common, now())
    audit_changes(ENTITY, changes)
    return RowCounts(len(created), len(updated), unchanged)


def _store(
    created: Mapping[UUID, str],
    updated: list[UUID],
    scores: list[tuple[UUID, UUID, int]],
    common: Mapping[str, Any],
    moment: datetime,
) -> None:
    if created:
        made = unnest_rows(
            id=(Uuid(), list(created)), student_id=(Uuid(as_uuid=False), list(created.values()))
        )
        insert_rows(Metric, made, **common, created_at=moment, updated_at=moment)
    if updated:
        changed = unnest_rows(id=(Uuid(), updated))
        db.session.execute(
            update(Metric)
            .where(Metric.id == changed.c.id)
            .values(
                batch_id=common["batch_id"],
                cohort_id=common["cohort_id"],
                sheet=common["sheet"],
                updated_at=moment,
            )
            .execution_options(synchronize_session=False)
        )
    if scores:
        metric_ids, definition_ids, values = (list(each) for each in zip(*scores, strict=True))
        rows = unnest_rows(
            metric_id=(Uuid(), metric_ids),
            definition_id=(Uuid(), definition_ids),
            score=(SmallInteger(), values),
        )
        entering = insert(MetricScore).from_select(rows.c.keys(), select(rows))
        taken = {"score": entering.excluded.score}
        db.session.execute(
            entering.on_conflict_do_update(constraint=MetricScore.__table__.primary_key, set_=taken)
        )
