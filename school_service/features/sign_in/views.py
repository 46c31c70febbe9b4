"""People signed in: the sessions of users, and the user of a token."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.auth.policies import SIGNING_IN, own_account
from school_service.core.errors import InsufficientScope
from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.sign_in import reads, service
from school_service.features.sign_in.schemas import UserInfoSchema, UserSessionSchema
from school_service.web.app_state import current_principal, current_token
from school_service.web.blueprint import Blueprint
from school_service.web.operations import Run

blp = Blueprint("user-sessions", __name__, description="Sign-ins of users, by client.")
openid_blp = Blueprint(
    "openid", __name__, school_required=False, description="The claims on a signed-in person, for the client."
)


@blp.route("/users/<uuid:id>/sessions")
class SessionsOfUser(MethodView):
    """The sessions of a user."""

    @blp.requires(own_account(Permission.USERS_WRITE), own=related("M"))
    @blp.returns_list(UserSessionSchema)
    def get(self, id: UUID) -> Any:
        """List where a user is signed in by a client, the latest used first.

        One's own without a permission, another's by having every permission that they have.
        """
        return service.sessions_of(
            user_id=id, principal=current_principal, current=current_token().session_id
        )


@blp.route("/users/<uuid:id>/sessions/<uuid:session_id>")
class SessionOfUser(MethodView):
    """A session of a user."""

    @blp.requires(own_account(Permission.USERS_WRITE), own=related("M"))
    @blp.returns_deleted()
    def delete(self, id: UUID, session_id: UUID) -> Any:
        """End a session of a user: its refresh token and its access tokens stop working.

        One's own without a permission, another's by having every permission that they have.
        """
        return service.end_session(user_id=id, session_id=session_id, principal=current_principal())


@openid_blp.route("/auth/userinfo")
class UserInfo(MethodView):
    """The user of a token."""

    @openid_blp.requires(SIGNING_IN)
    @openid_blp.returns(UserInfoSchema, tagged=False)
    def get(self) -> Any:
        """Tell whose token it is; needs the scope openid, and for the names profile."""
        return _user_info()

    @openid_blp.requires(SIGNING_IN, run=Run.READS)
    @openid_blp.returns(UserInfoSchema)
    def post(self) -> Any:
        """Tell whose token it is, as GET does; the token is in the header."""
        return _user_info()


def _user_info() -> Any:
    token = current_token()
    if token.user_id is None or "openid" not in token.scope:
        raise InsufficientScope("openid")
    read = reads.user_info_with_profile if "profile" in token.scope else reads.user_info
    return read(token.user_id)
