"""The caller, over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView

from school_service.auth.policies import ONESELF
from school_service.core.reach import related
from school_service.features.me import reads
from school_service.features.me.schemas import MeSchema
from school_service.web.app_state import current_token
from school_service.web.blueprint import Blueprint

blp = Blueprint("me", __name__, description="The caller, a user or a client.")


@blp.route("/me")
class Me(MethodView):
    """The caller."""

    @blp.requires(ONESELF, own=related("TFSG"))
    @blp.returns(MeSchema)
    def get(self) -> Any:
        """Show the caller, with permissions and relations.

        The relations do not depend on the reach of permissions. It answers while the password must be changed, too.
        """
        token = current_token()
        if token.user_id is None:
            return reads.client_me()
        return reads.me(token.own, None if token.ceiling is None else sorted(token.ceiling))
