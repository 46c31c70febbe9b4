"""Metrics over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView
from werkzeug.datastructures import FileStorage

from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING
from school_service.features.results.metrics import reads, service, sheet
from school_service.features.results.metrics.schemas import (
    MetricDefinitionSchema,
    MetricFilterSchema,
    MetricRecordSchema,
    MetricSheetSchema,
    MetricUploadSchema,
    NewMetricDefinitionSchema,
)
from school_service.web.blueprint import Blueprint
from school_service.web.schemas import UploadedRowsSchema

blp = Blueprint(
    "metrics", __name__, description="What is seen of students' behaviour, and sheets to enter it with."
)


@blp.route("/metrics")
class Metrics(MethodView):
    """What has been seen of students."""

    @blp.requires(Permission.METRICS_READ)
    @blp.arguments(MetricFilterSchema, location="query")
    @blp.returns_list(MetricRecordSchema, if_empty=service.check_metric_filter)
    def get(self, filters: dict[str, Any]) -> Any:
        """List what was entered in a batch: by student, term and type, each with the scores of its traits."""
        return reads.metrics(**filters)


@blp.route("/metrics/download-sheet")
class SheetToFillIn(MethodView):
    """The metric sheet of a batch, to be filled in."""

    @blp.requires(Permission.METRICS_READ, audited=True)
    @blp.arguments(MetricSheetSchema, location="query")
    @blp.returns_file()
    def get(self, filters: dict[str, Any]) -> Any:
        """Download a metric sheet: an Excel workbook with everyone in the batch and the traits of a type."""
        return sheet.download(**filters)


@blp.route("/metrics/upload-sheet")
class FilledInSheet(MethodView):
    """The metric sheet of a batch, filled in."""

    @blp.requires(Permission.METRICS_WRITE)
    @blp.takes_file("metric_sheet")
    @blp.arguments(MetricUploadSchema, location="query")
    @blp.answers(409)
    @blp.returns(UploadedRowsSchema)
    def post(self, file: FileStorage, options: dict[str, Any]) -> Any:
        """Enter the scores of a filled-in metric sheet, all or none; a blank cell leaves the score alone.

        Term and metric type are those that the sheet itself names, where it has a sheet Details. Scores that were
        changed since it was downloaded are 409: `errors.rows` names each, and who changed it.
        """
        batch = options.pop("batch_id")
        return sheet.upload(batch=batch, file=file.stream, file_name=file.filename or "", **options)


@blp.route("/metric-definitions")
class MetricDefinitions(MethodView):
    """The traits that students are scored for."""

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
