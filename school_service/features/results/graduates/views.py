"""Graduates over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.features.results.graduates import reads, service
from school_service.features.results.graduates.schemas import GraduateSchema, NewGraduateSchema
from school_service.web.blueprint import Blueprint

blp = Blueprint("graduates", __name__, description="Students who graduated.")


@blp.route("/graduates")
class Graduates(MethodView):
    """The school's graduates."""

    @blp.requires(Permission.GRADUATES_READ)
    @blp.returns_page(GraduateSchema, bare=True)
    def get(self) -> Any:
        """List the graduates in the order of their numbers."""
        return reads.graduates()

    @blp.requires(Permission.GRADUATES_WRITE, school_required=False)
    @blp.arguments(NewGraduateSchema)
    @blp.returns(GraduateSchema)
    def post(self, graduate: dict[str, Any]) -> Any:
        """Let a student graduate, which can't be taken back.

        A date of leaving is the last day in the class, too. The student's status becomes GRADUATED, and they leave
        the cohorts that they are in; their history and scores stay.
        """
        return reads.graduate(service.create_graduate(**graduate))
