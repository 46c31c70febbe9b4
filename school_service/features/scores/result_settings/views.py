"""Result settings over HTTP."""

from __future__ import annotations

from typing import Any

from flask import request
from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING
from school_service.core.read_models import BoundQuery
from school_service.features.school.settings.service import lock_settings
from school_service.features.scores.result_settings import reads, service
from school_service.features.scores.result_settings.schemas import (
    OfLevelSchema,
    ResultSettingsChangesSchema,
    ResultSettingsSchema,
)
from school_service.web.blueprint import Blueprint

blp = Blueprint("result-settings", __name__, description="How results are computed, ranked and shown.")


@blp.route("/result-settings")
class ResultSettings(MethodView):
    """How the school's results are computed."""

    @blp.requires(Permission.SETTINGS_READ, own=EVERYTHING)
    @blp.arguments(OfLevelSchema, location="query")
    @blp.returns(ResultSettingsSchema, if_empty=service.check_level)
    def get(self, options: dict[str, Any]) -> Any:
        """Show how results are computed, ranked and shown; with a level, the settings that it has of its own."""
        return _settings_of(**options)

    @blp.requires(Permission.SETTINGS_WRITE)
    @blp.arguments(ResultSettingsChangesSchema)
    @blp.arguments(OfLevelSchema, location="query")
    @blp.returns(ResultSettingsSchema)
    @blp.if_match(lambda: _settings_of(request.args.get("level")), lock_settings)
    def patch(self, changes: dict[str, Any], options: dict[str, Any]) -> Any:
        """Change how results are computed from now on; published results stay as they are.

        With a level its own pass_mark, positions, percent_places and marks, which null takes back.
        """
        if "level" in options:
            return service.change_level_settings(**options, **changes)
        return service.change_result_settings(**changes)


def _settings_of(level: str | None = None) -> BoundQuery:
    return reads.result_settings() if level is None else reads.level_settings(level)
