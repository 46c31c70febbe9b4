"""Health over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from school_service import __version__
from school_service.core.database import db
from school_service.features.health.schemas import HealthSchema
from school_service.web.blueprint import Blueprint

blp = Blueprint("health", __name__, description="Whether the service and its database are up.")


@blp.route("/health")
class Health(MethodView):
    """The health of the service."""

    @blp.public
    @blp.returns_health(HealthSchema, ok="ok", retry_after=5)
    def get(self) -> Any:
        """Tell whether the service and its database are up; 503 where the database is not."""
        try:
            with db.engines["registry"].connect() as connection:
                connection.execute(text("SELECT 1"))
        except (DBAPIError, PoolTimeout):
            return {"status": "unavailable", "version": __version__, "database": "unreachable"}
        return {"status": "ok", "version": __version__, "database": "ok"}
