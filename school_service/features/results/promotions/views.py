"""Rules of promotion and promotions over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING
from school_service.features.results.promotions import amending, reads, service
from school_service.features.results.promotions.deciding import Moves
from school_service.features.results.promotions.schemas import (
    MAX_RULES,
    NewPromotionRuleSchema,
    NewPromotionSchema,
    PromotionDecisionChangesSchema,
    PromotionDecisionSchema,
    PromotionFilterSchema,
    PromotionOptionsSchema,
    PromotionRuleSchema,
    PromotionSchema,
    PromotionSummarySchema,
)
from school_service.web.app_state import current_principal
from school_service.web.blueprint import Blueprint

blp = Blueprint("promotions", __name__, description="How students go on into the next session, or graduate.")


@blp.route("/promotion-rules")
class PromotionRules(MethodView):
    """The conditions for promotion."""

    @blp.requires(Permission.SETTINGS_READ, own=EVERYTHING)
    @blp.returns_list(PromotionRuleSchema)
    def get(self) -> Any:
        """List the rules of promotion by level, the one for all others last.

        Without a rule an average of 40 percent is needed, and a result of one term.
        """
        return reads.promotion_rules()

    @blp.requires(Permission.SETTINGS_WRITE)
    @blp.takes_list(NewPromotionRuleSchema, most=MAX_RULES)
    @blp.returns_list(PromotionRuleSchema)
    def put(self, rules: list[dict[str, Any]]) -> Any:
        """Replace the rules of promotion, all of them; promotions that were made stay as they are."""
        return service.replace_rules(rules=rules)


@blp.route("/promotions")
class Promotions(MethodView):
    """The outcomes of the students of batches at the end of a session."""

    @blp.requires(Permission.RESULTS_READ)
    @blp.returns_page(PromotionSummarySchema, if_empty=service.check_promotion_filter)
    @blp.arguments(PromotionFilterSchema, location="query")
    def get(self, filters: dict[str, Any]) -> Any:
        """List promotions, the newest first: all, or those of a session; undone ones, too."""
        return reads.promotions(**filters)

    @blp.requires(Permission.COHORTS_WRITE)
    @blp.arguments(NewPromotionSchema)
    @blp.arguments(PromotionOptionsSchema, location="query")
    @blp.returns(PromotionSchema)
    def post(self, body: dict[str, Any], options: dict[str, Any]) -> Any:
        """Promote the students of batches by the rules and by the overrides, all or none.

        See it first: a dry run answers each student's outcome, and a fingerprint for the commit to bring; 409 where
        anything has changed since. Promoted and repeating students are enrolled in the next session, and stay on the
        rolls of this one; graduation is as with `POST /graduates`, and needs `write:graduates`. The same commit again
        answers the promotion that is there. Averages, and the figures in reasons, are shown with `read:results` alone.
        """
        fingerprint = body.pop("fingerprint", None)
        plan, principal = Moves(**body), current_principal()
        if options["dry_run"]:
            return service.rehearse(plan=plan, principal=principal)
        return service.promote(plan=plan, fingerprint=fingerprint, principal=principal)


@blp.route("/promotions/<uuid:id>")
class OnePromotion(MethodView):
    """A promotion."""

    @blp.requires(Permission.RESULTS_READ)
    @blp.returns(PromotionSchema)
    def get(self, id: UUID) -> Any:
        """Show a promotion, and the outcome of each student."""
        return reads.promotion(id)

    @blp.requires(Permission.COHORTS_DELETE)
    @blp.returns_deleted()
    @blp.if_match(reads.promotion, reads.lock_cohorts_of)
    def delete(self, id: UUID) -> Any:
        """Undo a promotion, as long as nothing rests on it; 409 names the obstacles.

        The enrollments that it made are taken away. Its graduates are students again, in their cohorts and subjects;
        they have to be the last graduates of the school, and it needs `write:graduates`, too. The promotion stays, as
        undone.
        """
        return service.undo(promotion_id=id, principal=current_principal())


@blp.route("/promotions/<uuid:id>/decisions/<uuid:student>")
class DecisionOfPromotion(MethodView):
    """The decision on a student."""

    @blp.requires(Permission.COHORTS_WRITE)
    @blp.arguments(PromotionDecisionChangesSchema)
    @blp.returns(PromotionDecisionSchema)
    def patch(self, body: dict[str, Any], id: UUID, student: UUID) -> Any:
        """Amend the decision on one student, as long as they have no report card of the next session.

        The student moves to that batch, and scores stay theirs; with GRADUATED or LEFT_OUT they leave the promotion's
        batch. To or from GRADUATED it needs `write:graduates`, too; from it the graduate has to be the last one of the
        school. The promotion answers as amended from then on, and undoing it takes this back, too. The same decision
        again changes nothing.
        """
        return amending.amend(promotion_id=id, student_id=student, principal=current_principal(), **body)
