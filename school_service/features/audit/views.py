"""The audit log over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.features.audit import reads
from school_service.features.audit.schemas import AuditEntrySchema, AuditFilterSchema
from school_service.web.blueprint import Blueprint

blp = Blueprint("audit", __name__, description="Changes of records: author, time, values before and after.")


@blp.route("/audit")
class Audit(MethodView):
    """The audit log."""

    @blp.requires(Permission.AUDIT_READ)
    @blp.returns_page(AuditEntrySchema)
    @blp.arguments(AuditFilterSchema, location="query")
    def get(self, filters: dict[str, Any]) -> Any:
        """List changes, sign-ins and exports, the newest first."""
        return reads.entries(**filters)
