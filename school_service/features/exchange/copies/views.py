"""Copies of a school over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView
from marshmallow import fields

from school_service.core.columns import Enumeration
from school_service.core.database import request_context
from school_service.core.errors import Invalid
from school_service.core.permissions import Permission
from school_service.features.exchange.copies import exporting, service
from school_service.features.exchange.copies.resources import NAMES, PERMISSIONS
from school_service.features.exchange.copies.telling import OPERATIONS
from school_service.sheets.uploads import sheet_turns
from school_service.web.app_state import current_principal
from school_service.web.blueprint import Blueprint
from school_service.web.fields import Choice, ListOf, QueryInteger, Text
from school_service.web.reading import write_alone
from school_service.web.schemas import RecordSchema, Schema, described, list_of, text_of
from school_service.web.transactions import at_one_moment

RESOURCE_NAMES = Enumeration("Resource", *NAMES)
DEFAULT_LIMIT, MAX_LIMIT, MAX_IDS = 100, 1000, 200
LONGEST_ID = 80


def _resources() -> ListOf:
    return described(
        ListOf,
        "Of these resources alone; given once for each.",
        Choice(RESOURCE_NAMES),
        most=len(NAMES),
        required=False,
    )


class RecordsQuery(Schema):
    """The query of an export of all records, or of some of one resource."""

    resource = _resources()
    id = described(
        ListOf,
        "Of these records of the one resource alone; given once for each.",
        Text(LONGEST_ID),
        most=MAX_IDS,
        required=False,
    )


class ChangesQuery(Schema):
    """The query of changes."""

    after = described(
        fields.String, "The cursor of an export or of changes, or `start`; without it none are told."
    )
    resource = _resources()
    limit = described(
        QueryInteger,
        "Changes end behind the set that brings them to so many.",
        1,
        MAX_LIMIT,
        load_default=DEFAULT_LIMIT,
    )


class ChangeSchema(RecordSchema):
    """A change of a record."""

    resource = text_of(RESOURCE_NAMES, "The kind of the record.")
    id = described(fields.String, "As in an export: of most resources a uuid.")
    operation = text_of(
        Enumeration("ChangeOperation", *OPERATIONS), "With `erased` all that names the record goes, too."
    )
    at = fields.AwareDateTime()


class ChangesSchema(RecordSchema):
    """Changes, in their order, and the place behind them."""

    changes = list_of(ChangeSchema, "In their order.")
    cursor = described(fields.String, "To go on from; its form may change.")
    more = described(fields.Boolean, "Whether there are more behind the cursor.")


blp = Blueprint(
    "copies", __name__, description="Copies of a school that others keep: all records, and the changes since."
)


@blp.route("/export", head=False)
class Export(MethodView):
    """All records of the school."""

    @blp.requires(Permission.EXPORT_READ)
    @blp.arguments(RecordsQuery, location="query")
    @blp.returns_lines()
    def get(self, filters: dict[str, Any]) -> Any:
        """Export all records of one moment as lines of JSON, or some by their ids.

        The first line is `{"school", "moment", "cursor", "resources"}`: GET /changes goes on from the cursor, and
        `resources` counts the records. Each other one is `{"resource", "id", "record"}`. A resource is there with the
        permission to read it in the whole school. With `id` these records of one resource are answered, without the
        first line; an id without a record has no line.
        """
        names = filters.get("resource", NAMES)
        if "id" in filters:
            if len(names) != 1:
                raise Invalid.field("resource", "records by their ids are of one resource")
            records = exporting.some_records(resource=names[0], ids=filters["id"])
            return records if records and current_principal().has(PERMISSIONS[names[0]]) else b""
        service.number_all(write_alone)
        context, principal = request_context(), current_principal()
        readable = {name for name in names if principal.has(PERMISSIONS[name])}

        def export() -> exporting.Exported:
            with sheet_turns.of(context.school_id), at_one_moment(context):
                return exporting.export(names=readable)

        return export


@blp.route("/changes")
class Changes(MethodView):
    """The changes since a cursor."""

    @blp.requires(Permission.CHANGES_READ)
    @blp.arguments(ChangesQuery, location="query")
    @blp.answers(410)
    @blp.returns(ChangesSchema, tagged=False)
    def get(self, filters: dict[str, Any]) -> Any:
        """List the changes behind a cursor, without values, and the cursor to go on from.

        Where the cursor's place is not there any more it is 410: then everything is read anew. A resource is there with
        the permission to read it in the whole school.
        """
        return service.changes(write=write_alone, principal_of=current_principal, **filters)
