"""Records of the school for other systems, over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView

from school_service.core.columns import Enumeration
from school_service.core.permissions import Permission
from school_service.features.exchange.oneroster import reads, service, standard
from school_service.web.app_state import current_principal
from school_service.web.blueprint import ZIP, Blueprint
from school_service.web.fields import Choice, ListOf, sought_text
from school_service.web.operations import Run
from school_service.web.schemas import Schema, described

FILE_NAMES = Enumeration("OneRosterFile", *standard.COLUMNS)


class ExportQuery(Schema):
    """The query of an export."""

    session = described(
        sought_text, "The academic session's id or its name; by default the current one.", required=False
    )
    version = described(
        Choice,
        "The version of OneRoster that the receiver reads; by default 1.2.",
        Enumeration("OneRosterVersion", *standard.VERSIONS),
        required=False,
    )
    file = described(
        ListOf,
        "These files alone, for a receiver that refuses others; given once for each.",
        Choice(FILE_NAMES),
        most=len(FILE_NAMES),
        required=False,
        attribute="files",
    )


blp = Blueprint("exchange", __name__, description="A school's records in the form of 1EdTech OneRoster.")


@blp.route("/oneroster/csv")
class OneRosterCsv(MethodView):
    """The set of CSV files of a session."""

    @blp.requires(Permission.USERS_READ, run=Run.AT_ONE_MOMENT)
    @blp.arguments(ExportQuery, location="query")
    @blp.returns_file(ZIP)
    def get(self, filters: dict[str, Any]) -> Any:
        """Export an academic session, by default the current one, as a zip of OneRoster CSV files (bulk).

        `session` is its id or name, `version` 1.2 or, for receivers that read no other, 1.1: a record has the same
        sourcedId in both, and keeps it. Files of sessions need `read:terms`, of courses and classes `read:cohorts`, of
        enrollments `read:students` too, as demographics do; scores need `read:gradebooks`, published results
        `read:results`, e-mail addresses `read:contacts`. A column is blank without its permission; the manifest says
        `absent` of a file without its own, and of every file that refers to it. With `file` all others are `absent`,
        also those that are referred to. All files tell of one moment. Where no session is current, they have headers
        alone.
        """
        principal = current_principal()
        permissions = {permission for permission in reads.PERMISSIONS if principal.has(permission)}
        return service.export(permissions=permissions, **filters)
