"""Metrics: the traits that students are scored for, and the records with their scores.

Uploading a sheet locks the cohort FOR NO KEY UPDATE until the scores are entered, while whatever changes where
students are locks it FOR SHARE. So who is in the batch, and their records, do not change meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import orjson
from sqlalchemy import SmallInteger, Text, Uuid, cast, select, update
from sqlalchemy.dialects.postgresql import insert

from school_service.core.counters import TRAITS, next_numbers
from school_service.core.database import db
from school_service.core.deletion import Deletion
from school_service.core.errors import Conflict, Invalid
from school_service.core.read_models import BoundQuery
from school_service.core.records import change, get, get_referenced, insert_rows, unnest_rows
from school_service.core.statements import in_one_round_trip, new_row
from school_service.features.audit.service import Change, audit_change, audit_changes, score_values
from school_service.features.people.students.sheet_rows import STUDENT_COLUMNS
from school_service.features.results.metrics import reads
from school_service.features.results.models import Metric, MetricDefinition, MetricScore
from school_service.features.results.publications.reads import published_name
from school_service.features.results.publications.service import refuse_published
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

Scores = Mapping[str, int]
"""Scores by the name of the trait."""


@dataclass(frozen=True, slots=True)
class CommonColumns:
    """The columns that are the same in all records of one sheet; `sheet` is the file's name."""

    batch_id: UUID
    cohort_id: UUID
    session_id: UUID
    term_id: UUID
    metric_type: str
    sheet: str


def check_metric_filter(*, batch_id: UUID) -> None:
    """Tell whether there is the batch that a filter of metrics names. Raises Invalid."""
    get_referenced(Batch, batch_id, "batchId")


def create_definition(*, name: str, metric_type: str) -> BoundQuery:
    """Add a trait after the others of its type; one that a sheet could not tell from another is a conflict.

    Returns the read model of the trait, which is inserted in the round trip that reads it. Raises Invalid for the
    name of a column that says whose row it is.
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

    Raises NotFound, Invalid for the name of a column that says whose row it is, and Conflict for a trait that a sheet
    could not tell from another and for the other type of one that has scores.
    """
    found = DEFINITION_DELETION.lock(definition_id, reads.lock_traits())
    given = {"name": name, "metric_type": metric_type}
    changes = {member: value for member, value in given.items() if value not in (None, found.values[member])}
    if changes:
        after = {**found.values, **changes}
        _check_name(after["name"], after["metric_type"], but=definition_id)
        columns: dict[str, Any] = dict(changes)
        if "metric_type" in changes:
            found.refuse_if_in_use()
            (columns["position"],) = next_numbers(TRAITS[after["metric_type"]])
        change(get(MetricDefinition, definition_id), columns)
        old = {member: found.values[member] for member in changes}
        audit_change(DEFINITION, definition_id, old=old, new=changes)
    return definition_id


def delete_definition(*, definition_id: UUID) -> UUID:
    """Delete a trait; one that students have a score of is a conflict. Raises NotFound."""
    found = DEFINITION_DELETION.lock(definition_id)
    audit_change(DEFINITION, definition_id, old=found.values)
    return found.delete()


def _check_name(name: str, metric_type: str, but: UUID | None = None) -> None:
    """Check that sheets can tell a trait's column from all others; raises Invalid, Conflict."""
    if words_of(name) in {words_of(column.name) for column in STUDENT_COLUMNS}:
        raise Invalid.field("name", "is the name of another column of metric sheets")
    for known in list_traits():
        same = known.metric_type == metric_type and composed_name(known.name) == composed_name(name)
        if same and known.id != but:
            raise Conflict(
                f"The {metric_type} trait {known.name} exists already.", {"name": ["already taken"]}
            )


def delete_record(*, metric_id: UUID) -> UUID:
    """Delete what was seen of a student in a term, of one type: its scores go to the audit log.

    Raises NotFound, and Conflict while the results of the batch and term are published.
    """
    found = DELETION.lock(metric_id, reads.lock_cohort_of(metric_id))
    refuse_published(found.values["published"])
    scores = orjson.loads(found.values["score"]) if found.values["score"] else {}
    audit_change(ENTITY, metric_id, old=score_values(scores, found.values["sheet"]))
    return found.delete()


def list_traits() -> Sequence[Any]:
    """List the traits of both types, in the order in which sheets show them."""
    query = select(MetricDefinition.id, MetricDefinition.name, MetricDefinition.metric_type)
    return db.session.execute(query.order_by(MetricDefinition.position)).all()


@dataclass(frozen=True, slots=True)
class ComparedScores:
    """The scores of students on a class list, compared with what is stored.

    `changed` has those that differ or are new, by the student's id as text; a student without any has no entry.
    """

    students: Sequence[tuple[Any, Scores]]
    changed: Mapping[str, Scores]

    @property
    def counts(self) -> RowCounts:
        """Count the students: who has no record yet, whose changes, and whose stays as it is."""
        created = sum(
            student.metric_id is None for student, _ in self.students if student.student_id in self.changed
        )
        filled_in = sum(bool(of_sheet) for _, of_sheet in self.students)
        return RowCounts(created, len(self.changed) - created, filled_in - len(self.changed))


def compare_scores(students: Sequence[tuple[Any, Scores]]) -> ComparedScores:
    """Compare the scores of students on a class list, each once, with those that the list has. Sends no statement."""
    changed = {}
    for student, of_sheet in students:
        stored = student.scores or {}
        if differing := {name: score for name, score in of_sheet.items() if stored.get(name) != score}:
            changed[student.student_id] = differing
    return ComparedScores(students, changed)


def enter_sheet(
    *,
    scores: ComparedScores,
    trait_ids: Mapping[str, UUID],
    common: CommonColumns,
    downloaded: str | None = None,
    forced: Collection[str] = (),
) -> RowCounts:
    """Enter the scores of students on a class list, in a fixed number of statements.

    `trait_ids` are by name. The cohort must be locked since the list was read, and the scores must be whole numbers
    from 1 to 5. `downloaded` and `forced`, the students whose scores are replaced by force, are for the audit log.
    """
    created: dict[UUID, str] = {}
    updated: list[UUID] = []
    moved: list[UUID] = []
    rows: list[tuple[UUID, UUID, int]] = []
    changes = []
    for student, of_sheet in scores.students:
        changed = scores.changed.get(student.student_id)
        if changed is None:
            if of_sheet and student.batch_id != common.batch_id:
                moved.append(UUID(student.metric_id))
            continue
        stored = student.scores or {}
        if student.metric_id is None:
            created[metric_id := uuid4()] = student.student_id
            old = None
        else:
            updated.append(metric_id := UUID(student.metric_id))
            old = score_values(stored, student.sheet)
        rows.extend((metric_id, trait_ids[name], score) for name, score in changed.items())
        is_forced = student.student_id in forced
        new = score_values({**stored, **changed}, common.sheet, downloaded=downloaded, forced=is_forced)
        changes.append(Change(metric_id, old, new))
    _store(created, [*updated, *moved], rows, common, now())
    audit_changes(ENTITY, changes)
    return scores.counts


def _store(
    created: Mapping[UUID, str],
    updated: list[UUID],
    scores: list[tuple[UUID, UUID, int]],
    common: CommonColumns,
    moment: datetime,
) -> None:
    if created:
        new = unnest_rows(
            id=(Uuid(), list(created)), student_id=(Uuid(as_uuid=False), list(created.values()))
        )
        insert_rows(Metric, new, **asdict(common), created_at=moment, updated_at=moment)
    if updated:
        changed = unnest_rows(id=(Uuid(), updated))
        db.session.execute(
            update(Metric)
            .where(Metric.id == changed.c.id)
            .values(
                batch_id=common.batch_id,
                cohort_id=common.cohort_id,
                sheet=common.sheet,
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
        statement = insert(MetricScore).from_select(rows.c.keys(), select(rows))
        db.session.execute(
            statement.on_conflict_do_update(
                index_elements=MetricScore.__table__.primary_key.columns,
                set_={"score": statement.excluded.score},
            )
        )
