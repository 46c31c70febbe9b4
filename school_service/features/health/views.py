"""Health over HTTP."""

from __future__ import annotations

from typing import Any

from flask import current_app
from flask.views import MethodView
from marshmallow import fields

from school_service.features.health.service import Check
from school_service.release import this_release
from school_service.web.blueprint import Blueprint
from school_service.web.schemas import RecordSchema, described, record_of, text_of, texts


class ServedRevisionsSchema(RecordSchema):
    """The revisions of the tables in use by the process."""

    registry = described(fields.String, "The revision of the tables that all schools share.")
    schools = texts(
        "The revisions of a school's tables, the newest first; a school at another one is answered 503."
    )


class HealthSchema(RecordSchema):
    """Whether the service and its database are up, and the answering release."""

    status = text_of(["ok", "unavailable"])
    version = fields.String()
    commit = described(
        fields.String, "The commit that the release was built from, where it is known.", allow_none=True
    )
    revisions = record_of(ServedRevisionsSchema, "The revisions of the tables that the process works with.")
    database = text_of(["ok", "unreachable"])


class ReadinessSchema(HealthSchema):
    """Whether the process can serve requests, and the answering release."""

    login_counts = text_of(
        ["ok", "refused"],
        "`refused`: the storage of counted tries to sign in has not let this process in, as with a "
        "wrong password in `RATE_LIMIT_STORAGE`.",
    )


class LifeSchema(RecordSchema):
    """The answer of a running process."""

    status = text_of(["ok"])
    version = fields.String()


blp = Blueprint("health", __name__, description="Whether the service and its database are up.")


@blp.route("/health")
class Health(MethodView):
    """The health of the service."""

    @blp.public
    @blp.answers(400)
    @blp.returns_health(HealthSchema, ok="ok", retry_after=5)
    def get(self) -> Any:
        """Tell whether the service and its database are up; 503 where the database is not."""
        return _health()


@blp.route("/health/ready")
class Readiness(MethodView):
    """Whether the process can serve requests."""

    @blp.public
    @blp.answers(400)
    @blp.returns_health(ReadinessSchema, ok="ok", retry_after=5)
    def get(self) -> Any:
        """Tell whether the process can serve requests: whether its database answers within two seconds; else 503.

        So is a process that has not been let in by the Redis of `RATE_LIMIT_STORAGE`, where there is one.
        """
        health = _health()
        is_admitted = current_app.extensions["login_counts"]()
        if not is_admitted:
            health["status"] = "unavailable"
        return {**health, "login_counts": "ok" if is_admitted else "refused"}


@blp.route("/health/live")
class Life(MethodView):
    """The life of the process."""

    @blp.public
    @blp.answers(400)
    @blp.returns(LifeSchema)
    def get(self) -> Any:
        """Tell that the process answers; the database is not asked."""
        return {"status": "ok", "version": this_release().version}


def _health() -> dict[str, Any]:
    check: Check = current_app.extensions["health"]
    state = {"status": "ok", "database": "ok"}
    if not check():
        state = {"status": "unavailable", "database": "unreachable"}
    return {**state, **this_release().as_record()}
