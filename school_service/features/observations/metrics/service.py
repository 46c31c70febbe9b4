"""Metrics: the traits of students, and the records with their scores.

Uploading a sheet locks the cohort FOR NO KEY UPDATE until the scores are entered, while any move of students between
batches locks it FOR SHARE. So the students of the batch, and their records, do not change meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import orjson
from sqlalchemy import SmallInteger, Text, Uuid, cast, delete, null, select, update
from sqlalchemy.dialects.postgresql import insert

from school_service.core.counters import TRAITS, next_numbers
from school_service.core.database import db
from school_service.core.deletion import Deletion
from school_service.core.errors import Duplicate, Invalid
from school_service.core.narrowing import everybodys
from school_service.core.read_models import BoundQuery
from school_service.core.records import change, get, get_referenced, one_of, unnest_rows
from school_service.core.statements import in_one_round_trip, new_row, statement
from school_service.features.audit.service import (
    Change,
    audit_change,
    audit_changes,
    delete_audited,
    score_values,
)
from school_service.features.observations.metrics import reads
from school_service.features.observations.published import published_name, refuse_published
from school_service.features.people.students.sheet_rows import STUDENT_COLUMNS
from school_service.features.people.students.sheet_uploads import AuditTrail
from school_service.features.results.models import Metric, MetricDefinition, MetricScore
from school_service.features.school.cohorts.class_sheets import Place
from school_service.features.school.models import Batch
from school_service.sheets.columns import composed_name, words_of
from school_service.sheets.uploads import RowCounts
from tenants.clock import now

ENTITY, DEFINITION = "metric", "metric-definition"

DELETION = Deletion(
    Metric,
    {
        "score": cast(reads.SCORES, Text),
        "sheet": Metric.sheet,
        "published": published_name(Metric.batch_id, Metric.term_id),
    },
)
DEFINITION_DELETION = Deletion(
    MetricDefinition, {"name": MetricDefinition.name, "metric_type": MetricDefinition.metric_type}
)
# Of a record, of any of its traits, 100 changes: somebody changed a trait before these.
TRAIL = AuditTrail(ENTITY, lambda scores, trait: scores and scores.get(trait), 100)

Scores = Mapping[str, int | None]
"""Scores by the name of the trait; None takes one away."""


@dataclass(frozen=True, slots=True)
class CommonColumns:
    """The columns common to all records of an entry; `sheet` is the file's name, None without one."""

    place: Place
    metric_type: str
    sheet: str | None = None


def check_metric_filter(*, batch_id: UUID) -> None:
    """Tell whether the batch of a filter of metrics exists. Raises Invalid."""
    get_referenced(Batch, batch_id, "batchId")


def create_definition(*, name: str, metric_type: str) -> BoundQuery:
    """Add a trait after the others of its type; one with the name of another, as sheets compare names, is a conflict.

    Returns the read model of the trait; it is inserted in the read model's round trip. Raises Invalid for the name of
    one of the student's columns.
    """
    # This locks the counter: nobody else can add the same name meanwhile.
    (position,) = next_numbers(TRAITS[metric_type])
    _check_name(name, metric_type)
    trait = new_row(MetricDefinition, name=name, metric_type=metric_type, position=position)
    audit_change(DEFINITION, trait.id, new={"name": name, "metric_type": metric_type})
    return in_one_round_trip(trait, read=reads.definition(trait.id))


def change_definition(
    *, definition_id: UUID, name: str | None = None, metric_type: str | None = None
) -> UUID:
    """Change the name of a trait, or its type while nobody has a score of it; then it comes after the others.

    Raises NotFound, Invalid for the name of one of the student's columns, and Conflict for the name of another trait,
    as sheets compare names, and for the other type of a trait with scores.
    """
    record = DEFINITION_DELETION.lock(definition_id, reads.lock_traits())
    given = {"name": name, "metric_type": metric_type}
    changes = {member: value for member, value in given.items() if value not in (None, record.values[member])}
    if changes:
        after = {**record.values, **changes}
        _check_name(after["name"], after["metric_type"], but=definition_id)
        columns: dict[str, Any] = dict(changes)
        if "metric_type" in changes:
            record.refuse_if_in_use()
            (columns["position"],) = next_numbers(TRAITS[after["metric_type"]])
        change(get(MetricDefinition, definition_id), columns)
        old = {member: record.values[member] for member in changes}
        audit_change(DEFINITION, definition_id, old=old, new=changes)
    return definition_id


def delete_definition(*, definition_id: UUID) -> UUID:
    """Delete a trait; one with scores is a conflict. Raises NotFound."""
    return delete_audited(DEFINITION, DEFINITION_DELETION, definition_id)


def _check_name(name: str, metric_type: str, but: UUID | None = None) -> None:
    """Check that sheets can tell a trait's column from all others; raises Invalid, Conflict."""
    if words_of(name) in {words_of(column.name) for column in STUDENT_COLUMNS}:
        raise Invalid.field("name", "is the name of another column of metric sheets")
    for known in list_traits():
        same = known.metric_type == metric_type and composed_name(known.name) == composed_name(name)
        if same and known.id != but:
            raise Duplicate(
                f"The {metric_type} trait {known.name} exists already.", {"name": ["already taken"]}
            )


def delete_record(*, metric_id: UUID) -> UUID:
    """Delete the record of a student in a term, of one type: its scores go to the audit log.

    Raises NotFound, and Conflict while the results of the batch and term are published.
    """
    record = DELETION.lock(metric_id, reads.lock_cohort_of(metric_id))
    refuse_published(record.values["published"])
    scores = orjson.loads(record.values["score"]) if record.values["score"] else {}
    audit_change(ENTITY, metric_id, old=score_values(scores, record.values["sheet"]))
    return record.delete()


def list_traits() -> Sequence[Any]:
    """List the traits of both types, in the order of the sheets."""
    query = select(MetricDefinition.id, MetricDefinition.name, MetricDefinition.metric_type)
    in_order = everybodys(query.order_by(MetricDefinition.position))
    return db.session.execute(in_order).all()


@dataclass(frozen=True, slots=True)
class ComparedTraitScores:
    """The scores of students on a class list, compared with the stored ones.

    `changed` has the different and the new ones, by the student's id as text, None for one taken away; a student
    without any has no entry.
    """

    students: Sequence[tuple[Any, Scores]]
    changed: Mapping[str, Scores]

    @property
    def counts(self) -> RowCounts:
        """Count the students: without a record yet, with a changed record, and with an unchanged one."""
        created = sum(
            student.metric_id is None for student, _ in self.students if student.student_id in self.changed
        )
        filled_in = sum(bool(of_sheet) for _, of_sheet in self.students)
        return RowCounts(created, len(self.changed) - created, filled_in - len(self.changed))


def compare_scores(students: Sequence[tuple[Any, Scores]]) -> ComparedTraitScores:
    """Compare the scores of students on a class list, each once, with those on the list. Sends no statement."""
    changed = {}
    for student, given in students:
        stored = student.scores or {}
        if differing := {name: score for name, score in given.items() if stored.get(name) != score}:
            changed[student.student_id] = differing
    return ComparedTraitScores(students, changed)


def storing(
    *,
    scores: ComparedTraitScores,
    trait_ids: Mapping[str, UUID],
    common: CommonColumns,
    downloaded: str | None = None,
    forced: Collection[str] = (),
) -> list[BoundQuery]:
    """Store the scores of students on a class list, and write them to the audit log: the statements, for `execute`.

    `trait_ids` are by name. The cohort must be locked since the list was read, and the scores must be whole numbers
    from 1 to 5, or None to take one away; a record goes with the last of its scores. `downloaded` and `forced`, the
    students with scores replaced by force, are for the audit log.
    """
    created: dict[UUID, str] = {}
    updated: list[UUID] = []
    removed: list[UUID] = []
    rows: list[tuple[UUID, UUID, int]] = []
    cleared: list[tuple[UUID, UUID]] = []
    changes = []
    for student, given in scores.students:
        changed = scores.changed.get(student.student_id)
        if changed is None:
            if given and student.metric_id and UUID(str(student.batch_id)) != common.place.batch_id:
                # The record comes to the arm on whose sheet it stands.
                updated.append(metric_id := UUID(student.metric_id))
                changes.append(
                    Change(metric_id, {"batch": student.batch_id}, {"batch": common.place.batch_id})
                )
            continue
        stored = student.scores or {}
        after = {name: score for name, score in {**stored, **changed}.items() if score is not None}
        old = None if student.metric_id is None else score_values(stored, student.sheet)
        if student.metric_id is None:
            created[metric_id := uuid4()] = student.student_id
        elif after:
            updated.append(metric_id := UUID(student.metric_id))
        else:
            removed.append(metric_id := UUID(student.metric_id))
        rows.extend((metric_id, trait_ids[name], score) for name, score in changed.items() if score)
        cleared.extend((metric_id, trait_ids[name]) for name, score in changed.items() if score is None)
        is_forced = student.student_id in forced
        new = score_values(after, common.sheet, downloaded=downloaded, forced=is_forced)
        changes.append(Change(metric_id, old, new if after else None))
    audit_changes(ENTITY, changes)
    return _writes(created, updated, rows, cleared, removed, common)


def _writes(
    created: Mapping[UUID, str],
    updated: list[UUID],
    scores: list[tuple[UUID, UUID, int]],
    cleared: list[tuple[UUID, UUID]],
    removed: list[UUID],
    common: CommonColumns,
) -> list[BoundQuery]:
    moment, place = now(), common.place
    writes = []
    if created:
        students = [UUID(student) for student in created.values()]
        writes.append(
            _create(
                list(created),
                students,
                **asdict(place),
                metric_type=common.metric_type,
                moment=moment,
                sheet=common.sheet,
            )
        )
    if updated:
        writes.append(_update(updated, place.batch_id, place.cohort_id, moment, common.sheet))
    if scores:
        metric_ids, definition_ids, values = (list(each) for each in zip(*scores, strict=True))
        writes.append(_score(metric_ids, definition_ids, values))
    if cleared:
        metric_ids, definition_ids = (list(each) for each in zip(*cleared, strict=True))
        writes.append(_clear(metric_ids, definition_ids))
    if removed:
        writes.append(_remove(removed))
    return writes


@statement
def _create(
    ids: list[UUID],
    student_ids: list[UUID],
    batch_id: UUID,
    cohort_id: UUID,
    session_id: UUID,
    term_id: UUID,
    metric_type: str,
    moment: datetime,
    sheet: str | None = None,
) -> Any:
    rows = unnest_rows(id=(Uuid, ids), student_id=(Uuid, student_ids))
    common = {
        "batch_id": batch_id,
        "cohort_id": cohort_id,
        "session_id": session_id,
        "term_id": term_id,
        "metric_type": metric_type,
        "sheet": null() if sheet is None else sheet,
        "created_at": moment,
        "updated_at": moment,
    }
    values: Any = (*rows.c, *common.values())
    return insert(Metric).from_select([*rows.c.keys(), *common], select(*values), include_defaults=False)


@statement
def _update(
    ids: list[UUID], batch_id: UUID, cohort_id: UUID, moment: datetime, sheet: str | None = None
) -> Any:
    values = {
        "batch_id": batch_id,
        "cohort_id": cohort_id,
        "sheet": null() if sheet is None else sheet,
        "updated_at": moment,
    }
    return update(Metric).where(Metric.id == one_of(ids)).values(values)


@statement
def _score(metric_ids: list[UUID], definition_ids: list[UUID], scores: list[int]) -> Any:
    rows = unnest_rows(
        metric_id=(Uuid, metric_ids), definition_id=(Uuid, definition_ids), score=(SmallInteger, scores)
    )
    entering = insert(MetricScore).from_select(rows.c.keys(), select(*rows.c))
    return entering.on_conflict_do_update(
        index_elements=MetricScore.__table__.primary_key.columns, set_={"score": entering.excluded.score}
    )


@statement
def _clear(metric_ids: list[UUID], definition_ids: list[UUID]) -> Any:
    rows = unnest_rows(metric_id=(Uuid, metric_ids), definition_id=(Uuid, definition_ids))
    return delete(MetricScore).where(
        MetricScore.metric_id == rows.c.metric_id, MetricScore.definition_id == rows.c.definition_id
    )


@statement
def _remove(ids: list[UUID]) -> Any:
    return delete(Metric).where(Metric.id == one_of(ids))
