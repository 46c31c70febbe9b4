"""Links to outside identities over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.auth.login_throttle import LoginThrottle, WrongCodes
from school_service.auth.policies import UNLINKED, own_account
from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.identities import reads, service
from school_service.features.identities.schemas import IdentitySchema, NewIdentitySchema, OwnIdentitySchema
from school_service.web.admitting import attempted_username
from school_service.web.app_state import app_state, current_principal, current_school_id, current_token
from school_service.web.blueprint import Blueprint
from school_service.web.client_address import address_is_told, client_address
from school_service.web.operations import Run

blp = Blueprint(
    "identities", __name__, description="Accounts that people enter by an outside provider's sign-in."
)


@blp.route("/users/<uuid:id>/identities")
class Identities(MethodView):
    """The outside identities of a user."""

    @blp.requires(own_account(Permission.USERS_READ), own=related("M"))
    @blp.returns_list(IdentitySchema, if_empty=service.check_user)
    def get(self, id: UUID) -> Any:
        """List the outside identities that a user's account is linked to; one's own without a permission."""
        return reads.identities(id)

    @blp.requires(Permission.USERS_WRITE)
    @blp.arguments(NewIdentitySchema)
    @blp.returns(IdentitySchema)
    def post(self, identity: dict[str, Any], id: UUID) -> Any:
        """Link a user's account to an outside identity, which signs in as that user from then on.

        Needs every permission that the user has, and for a student or guardian read:results. An account has at most
        five. Nobody links their own account in this way.
        """
        issuers = app_state().settings.auth_issuers
        return service.link_identity(user_id=id, **identity, issuers=issuers, principal=current_principal())


@blp.route("/users/<uuid:id>/identities/<uuid:identity_id>")
class OneIdentity(MethodView):
    """An outside identity of a user."""

    @blp.requires(own_account(Permission.USERS_WRITE), own=related("M"))
    @blp.returns_deleted()
    def delete(self, id: UUID, identity_id: UUID) -> Any:
        """Unlink an outside identity: it is nobody's from the next request on.

        One's own without a permission, unless it is the last way in; another's as one links it.
        """
        return service.unlink(user_id=id, identity_id=identity_id, principal=current_principal())


@blp.route("/me/identities")
class OwnIdentities(MethodView):
    """The caller's outside identity."""

    @blp.requires(UNLINKED, run=Run.ANSWERS_TOKEN)
    @blp.answers(409, 429)
    @blp.arguments(OwnIdentitySchema)
    @blp.returns(IdentitySchema)
    def post(self, shown: dict[str, Any]) -> Any:
        """Link the outside identity of the token, which is nobody's yet, to one's own account.

        By the code of an invitation, or by username and password, which count as in POST /users/login. With neither it
        is the open invitation that was made with the e-mail address of the token, which the provider has verified. The
        invitation is used up.
        """
        school, address = str(current_school_id()), client_address()
        credentials = None
        if "username" in shown:
            credentials = {
                **shown,
                "throttle": LoginThrottle(school, address, address_is_told()),
                "username_hash": attempted_username(school, shown["username"]),
            }
        return service.link_own(
            token=current_token(),
            code=shown.get("code"),
            credentials=credentials,
            keys=app_state().verifier.keys,
            wrong_codes=WrongCodes(school, address),
        )
