"""Health over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView
from marshmallow import fields, validate
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from school_service import __version__
from school_service.core.database import db
from school_service.web.blueprint import Blueprint
from school_service.web.fields import Schema
from school_service.web.rendering import object_response

blp = Blueprint("health", __name__, description="Whether the service and its database are up.")


class HealthSchema(Schema):
    """Whether the service and its database are up."""

    status = fields.String(required=True, validate=validate.OneOf(["ok", "unavailable"]))
    version = fields.String(required=True)
    database = fields.String(required=True, validate=validate.OneOf(["ok", "unreachable"]))


@blp.route("/health")
class Health(MethodView):
    """The health of the service."""

    @blp.public
    @blp.alt_response(503, schema=HealthSchema, description="The database is unreachable.")  # type: ignore[untyped-decorator]
    @blp.returns(HealthSchema)
    def get(self) -> Any:
        """Tell whether the service and its database are up; 503 where the database is not."""
        health = {"status": "ok", "version": __version__, "database": "ok"}
        try:
            with db.engines["registry"].connect() as connection:
                connection.execute(text("SELECT 1"))
        except (DBAPIError, PoolTimeout):
            response = object_response({**health, "status": "unavailable", "database": "unreachable"})
            response.status_code = 503
            response.headers["Retry-After"] = "5"
            return response
        return health
