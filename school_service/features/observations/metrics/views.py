"""Metrics over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView
from werkzeug.datastructures import FileStorage

from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING, related
from school_service.features.observations.metrics import entering, reads, service, sheet
from school_service.features.observations.metrics.schemas import (
    MetricDefinitionChangesSchema,
    MetricDefinitionSchema,
    MetricFilterSchema,
    MetricListSchema,
    MetricRecordSchema,
    MetricSheetSchema,
    MetricUploadSchema,
    NewMetricDefinitionSchema,
    NewMetricSchema,
)
from school_service.features.people.students.list_rows import MAX_RECORDS
from school_service.web.app_state import current_principal
from school_service.web.blueprint import Blueprint
from school_service.web.operations import Run
from school_service.web.schemas import UploadedRowsSchema

blp = Blueprint(
    "metrics",
    __name__,
    description="Scores of students' behaviour and skills, and sheets to enter them with.",
)


@blp.route("/metrics")
class Metrics(MethodView):
    """The metric records of students."""

    @blp.requires(Permission.METRICS_READ, own=related("F"))
    @blp.arguments(MetricFilterSchema, location="query")
    @blp.returns_list(MetricRecordSchema, if_empty=service.check_metric_filter)
    def get(self, filters: dict[str, Any]) -> Any:
        """List the metric records of a batch: by student, term and type, each with the scores of its traits."""
        return reads.metrics(**filters)

    @blp.requires(Permission.METRICS_WRITE, own=related("F"))
    @blp.takes_list(NewMetricSchema, most=MAX_RECORDS, member=entering.METRICS)
    @blp.arguments(MetricListSchema, location="query")
    @blp.answers(409)
    @blp.returns_list(MetricRecordSchema)
    def put(self, metrics: list[dict[str, Any]], place: dict[str, Any]) -> Any:
        """Enter scores of traits of students in a batch, all or none; answers the batch's records of the term.

        The rules are those of metric sheets; students not named stay. To take a score away, by null, needs
        `delete:metrics`, too. Records that are wrong are 422, and those that are not as `expected` 409: `errors.rows`
        names each by its place in the list, from 0.
        """
        return entering.enter_metrics(**place, metrics=metrics, principal=current_principal())


@blp.route("/metrics/<uuid:id>")
class OneMetric(MethodView):
    """The metric record of a student in a term, of one type."""

    @blp.requires(Permission.METRICS_READ)
    @blp.returns(MetricRecordSchema)
    def get(self, id: UUID) -> Any:
        """Show the metric record of a student for a term, of one type."""
        return reads.metric(id)

    @blp.requires(Permission.METRICS_DELETE)
    @blp.returns_deleted()
    @blp.if_match(reads.metric, reads.lock_cohort_of, service.DELETION.row_lock)
    def delete(self, id: UUID) -> Any:
        """Delete the metric record of a student for a term, of one type, unless it is published."""
        return service.delete_record(metric_id=id)


@blp.route("/metrics/download-sheet")
class SheetToFillIn(MethodView):
    """The metric sheet of a batch, to be filled in."""

    @blp.requires(Permission.METRICS_READ, own=related("F"), run=Run.AUDITED)
    @blp.arguments(MetricSheetSchema, location="query")
    @blp.returns_file()
    def get(self, filters: dict[str, Any]) -> Any:
        """Download a metric sheet: an Excel workbook with everyone in the batch and the traits of a type."""
        return sheet.download(**filters)


@blp.route("/metrics/upload-sheet")
class FilledInSheet(MethodView):
    """The metric sheet of a batch, filled in."""

    @blp.requires(Permission.METRICS_WRITE, own=related("F"))
    @blp.takes_file("metric_sheet")
    @blp.arguments(MetricUploadSchema, location="query")
    @blp.answers(409)
    @blp.returns(UploadedRowsSchema)
    def post(self, file: FileStorage, options: dict[str, Any]) -> Any:
        """Enter the scores of a filled-in metric sheet, all or none; a blank cell leaves the score alone.

        Term and metric type are those on the sheet Details, where there is one. Scores changed since the download are
        409: `errors.rows` names each, and its author.
        """
        batch = options.pop("batch_id")
        upload = sheet.MetricUpload(batch=batch, file_name=file.filename or "", **options)
        return upload.run(file.stream)


@blp.route("/metric-definitions")
class MetricDefinitions(MethodView):
    """The traits of students, to be scored."""

    @blp.requires(Permission.METRICS_READ, own=EVERYTHING)
    @blp.returns_list(MetricDefinitionSchema)
    def get(self) -> Any:
        """List the traits by type, in the order in which sheets show them."""
        return reads.definitions()

    @blp.requires(Permission.METRICS_WRITE)
    @blp.arguments(NewMetricDefinitionSchema)
    @blp.returns(MetricDefinitionSchema)
    def post(self, trait: dict[str, Any]) -> Any:
        """Add a trait after the others of its type. Sheets that were downloaded before lack its column."""
        return service.create_definition(**trait)


@blp.route("/metric-definitions/<uuid:id>")
class OneMetricDefinition(MethodView):
    """A trait of students, to be scored."""

    @blp.requires(Permission.METRICS_READ, own=EVERYTHING)
    @blp.returns(MetricDefinitionSchema)
    def get(self, id: UUID) -> Any:
        """Show a trait."""
        return reads.definition(id)

    @blp.requires(Permission.METRICS_WRITE)
    @blp.arguments(MetricDefinitionChangesSchema(partial=True))
    @blp.returns(MetricDefinitionSchema)
    @blp.if_match(reads.definition, lambda _id: reads.lock_traits(), service.DEFINITION_DELETION.row_lock)
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Change the given members of a trait; its type changes as long as nobody has a score of it."""
        return reads.definition(service.change_definition(definition_id=id, **changes))

    @blp.requires(Permission.METRICS_DELETE)
    @blp.returns_deleted()
    @blp.if_match(reads.definition, service.DEFINITION_DELETION.row_lock)
    def delete(self, id: UUID) -> Any:
        """Delete a trait that nobody has a score of."""
        return service.delete_definition(definition_id=id)
