"""Submissions over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.results.submissions import service
from school_service.features.results.submissions.schemas import (
    ListedSubmissionSchema,
    NewSubmissionSchema,
    ReopeningSchema,
    SubmissionFilterSchema,
    SubmissionSchema,
)
from school_service.web.blueprint import Blueprint

blp = Blueprint(
    "submissions", __name__, description="The results of subjects, handed in by their teachers, and reopened."
)


@blp.route("/submissions")
class Submissions(MethodView):
    """The submissions of classes."""

    @blp.requires(Permission.RESULTS_READ, own=related("TF"))
    @blp.arguments(SubmissionFilterSchema, location="query")
    @blp.returns_list(ListedSubmissionSchema, if_empty=service.check_submissions)
    def get(self, filters: dict[str, Any]) -> Any:
        """List the subjects in which something counts in a term, by position, then by name: of a class or of all.

        Without `batch` and `cohort` they are those of all classes of the current session, class by class; without
        `term` then those of the term that has the school's day by its calendar, and where none has it, of each term.
        """
        return service.list_submissions(**filters)


@blp.route("/cohort-subjects/<uuid:id>/submission")
class SubmissionOfSubject(MethodView):
    """The submission of the results of a cohort subject in a term."""

    @blp.requires(Permission.GRADEBOOKS_WRITE, own=related("T"))
    @blp.arguments(NewSubmissionSchema)
    @blp.returns(SubmissionSchema)
    def post(self, body: dict[str, Any], id: UUID) -> Any:
        """Submit the results of a cohort subject in a term: nothing of them changes until they are reopened.

        With a batch, those of this arm alone; without it, those of every arm in which somebody takes the subject.
        Blanks are 409: `errors.json.blanks` names assessments and admission numbers; or each becomes an absence.
        """
        return service.submit(cohort_subject_id=id, **body)


@blp.route("/cohort-subjects/<uuid:id>/reopening")
class ReopeningOfSubject(MethodView):
    """The reopening of the results of a cohort subject in a term."""

    @blp.requires(Permission.RESULTS_WRITE)
    @blp.arguments(ReopeningSchema)
    @blp.returns(SubmissionSchema)
    def post(self, body: dict[str, Any], id: UUID) -> Any:
        """Reopen the results of a cohort subject in a term for a correction, with the reason."""
        return service.reopen(cohort_subject_id=id, **body)
