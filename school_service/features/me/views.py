"""Who the caller is, over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView

from school_service.core.reach import related
from school_service.features.me import reads
from school_service.features.me.schemas import MeSchema
from school_service.web.blueprint import Blueprint
from school_service.web.request_scope import current_token

blp = Blueprint("me", __name__, description="Who the caller is.")


@blp.route("/me")
class Me(MethodView):
    """The caller."""

    @blp.requires(None, own=related("TFSG"), mine=True, with_given_password=True)
    @blp.returns(MeSchema)
    def get(self) -> Any:
        """Show who the caller is, what they may do and to whom they are related.

        Whatever their permissions reach, the relations are told. It answers while the password must be changed, too.
        """
        token = current_token()
        if token.user_id is None:
            return reads.client_me()
        return reads.me(token.own, None if token.ceiling is None else sorted(token.ceiling))
