"""Grade configurations over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView
from marshmallow import fields

from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING
from school_service.features.scores.grade_configs import scales, service
from school_service.features.scores.models import FULL
from school_service.features.scores.result_settings.schemas import OfLevelSchema
from school_service.features.scores.result_settings.service import check_level
from school_service.web.blueprint import Blueprint
from school_service.web.fields import Points, Text, free_text
from school_service.web.schemas import RecordSchema, Schema, described

MAX_BANDS = 100

blp = Blueprint("grade-configs", __name__, description="The bands that scores are graded by.")


class GradeConfigurationSchema(RecordSchema):
    """A band of percentages and the letter it is graded with."""

    id = described(fields.UUID, "Null for a band of a level.", allow_none=True)
    lower_threshold = described(fields.Decimal, "In percent.")
    upper_threshold = described(fields.Decimal, "In percent.")
    letter_grade = fields.String()
    remarks = fields.String()


class NewGradeConfigurationSchema(Schema):
    """A grade configuration to create; both thresholds are within its band."""

    lower_threshold = described(Points, "In percent, with two decimal places at most.", FULL)
    upper_threshold = described(Points, "In percent; not below `lower_threshold`.", FULL)
    letter_grade = described(Text, "Such as A1.")
    remarks = described(free_text, "Such as Excellent.")


class GradeConfigurationChangesSchema(NewGradeConfigurationSchema):
    """The members of a grade configuration to change: any of them."""


class LevelSchema(Schema):
    """The level whose bands are meant."""

    level = described(Text, "The level of a classroom.")


@blp.route("/grade-configs")
class GradeConfigurations(MethodView):
    """The bands of percentages for grades."""

    @blp.requires(Permission.SETTINGS_READ, own=EVERYTHING)
    @blp.arguments(OfLevelSchema, location="query")
    @blp.returns_list(GradeConfigurationSchema, if_empty=check_level)
    def get(self, options: dict[str, Any]) -> Any:
        """List the grade configurations, the highest band first; with a level those that it has of its own.

        The grade of a score is the band with the highest lower threshold that is not above it, in percent.
        """
        level = options.get("level")
        return service.grade_configurations() if level is None else scales.grade_scale(level)

    @blp.requires(Permission.SETTINGS_WRITE)
    @blp.takes_list(NewGradeConfigurationSchema, most=MAX_BANDS)
    @blp.arguments(LevelSchema, location="query")
    @blp.returns_list(GradeConfigurationSchema)
    def put(self, bands: list[dict[str, Any]], options: dict[str, Any]) -> Any:
        """Give a level all of its grade bands at once, in place of the school's; an empty list takes them back."""
        return scales.put_grade_scale(level=options["level"], bands=bands)

    @blp.requires(Permission.SETTINGS_WRITE)
    @blp.arguments(NewGradeConfigurationSchema)
    @blp.returns(GradeConfigurationSchema)
    def post(self, band: dict[str, Any]) -> Any:
        """Create a grade configuration, whose band overlaps no other."""
        return service.create_grade_configuration(**band)


@blp.route("/grade-configs/<uuid:id>")
class OneGradeConfiguration(MethodView):
    """A band of percentages for a grade."""

    @blp.requires(Permission.SETTINGS_WRITE)
    @blp.arguments(GradeConfigurationChangesSchema(partial=True))
    @blp.returns(GradeConfigurationSchema)
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Change the given members of a grade configuration, whether or not it is in use."""
        return service.grade_configuration(
            service.change_grade_configuration(grade_configuration_id=id, **changes)
        )

    @blp.requires(Permission.SETTINGS_DELETE)
    @blp.returns_deleted()
    def delete(self, id: UUID) -> Any:
        """Delete a grade configuration that is the grade of no score."""
        return service.delete_grade_configuration(grade_configuration_id=id)
