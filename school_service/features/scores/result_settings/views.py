"""Result settings over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING
from school_service.features.school.settings.service import lock_settings
from school_service.features.scores.result_settings import reads, service
from school_service.features.scores.result_settings.schemas import (
    ResultSettingsChangesSchema,
    ResultSettingsSchema,
)
from school_service.web.blueprint import Blueprint

blp = Blueprint("result-settings", __name__, description="How results are computed, ranked and shown.")


@blp.route("/result-settings")
class ResultSettings(MethodView):
    """How the school's results are computed."""

    @blp.requires(Permission.SETTINGS_READ, own=EVERYTHING)
    @blp.returns(ResultSettingsSchema)
    def get(self) -> Any:
        """Show how results are computed, ranked and shown."""
        return reads.result_settings()

    @blp.requires(Permission.SETTINGS_WRITE)
    @blp.arguments(ResultSettingsChangesSchema)
    @blp.returns(ResultSettingsSchema)
    @blp.if_match(reads.result_settings, lock_settings)
    def patch(self, changes: dict[str, Any]) -> Any:
        """Change how results are computed from now on; what is published stays as it is."""
        return service.change_result_settings(**changes)
