"""Invitations over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.auth.login_throttle import WrongCodes
from school_service.auth.policies import by_relation
from school_service.auth.tokens import issue_user_token
from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.invitations import guardians, reads, service, taking
from school_service.features.invitations.schemas import (
    GuardianInvitationSchema,
    InvitationCodeSchema,
    InvitationFilterSchema,
    InvitationSchema,
    NewGuardianAccountsSchema,
    NewInvitationsSchema,
    SlipsFormatSchema,
    TakenInvitationSchema,
)
from school_service.features.people.users.reads import auth_user
from school_service.features.people.users.schemas import AuthUserSchema
from school_service.web.app_state import app_state, current_principal, current_school_id
from school_service.web.blueprint import PDF, SPREADSHEET, Blueprint
from school_service.web.client_address import client_address
from school_service.web.operations import Run
from tenants.connections.engines import json_text

blp = Blueprint(
    "invitations", __name__, description="One-time codes, by which people set their passwords themselves."
)


def _inviting() -> dict[str, Any]:
    state = app_state()
    return {
        "principal": current_principal(),
        "keys": state.verifier.keys,
        "issuer": state.settings.issuer,
        "takes_emails": state.settings.auth_linked_users,
    }


@blp.route("/invitations")
class Invitations(MethodView):
    """The open invitations."""

    @blp.requires(Permission.USERS_READ)
    @blp.returns_page(InvitationSchema, if_empty=service.check_invitation_filter)
    @blp.arguments(InvitationFilterSchema, location="query")
    def get(self, filters: dict[str, Any]) -> Any:
        """List the open invitations, without their codes."""
        return reads.invitations(**filters)

    @blp.requires(Permission.USERS_WRITE, run=Run.ANSWERS_TOKEN)
    @blp.arguments(NewInvitationsSchema)
    @blp.returns_list(InvitationCodeSchema)
    def post(self, invitations: dict[str, Any]) -> Any:
        """Invite users, or the students of a batch, by codes that set the passwords of the accounts.

        Nobody invites themselves: of a batch the caller is left out. Needs every permission that each of them has, and
        for a student or guardian read:results. Codes are answered once; another invitation of the same user takes the
        place of an open one.
        """
        return service.invite(**invitations, **_inviting())


@blp.route("/invitations/slips")
class Slips(MethodView):
    """Slips of invitations."""

    @blp.requires(Permission.USERS_WRITE, run=Run.ANSWERS_TOKEN)
    @blp.arguments(SlipsFormatSchema, location="query")
    @blp.arguments(NewInvitationsSchema)
    @blp.returns_file(SPREADSHEET, PDF)
    def post(self, query: dict[str, Any], invitations: dict[str, Any]) -> Any:
        """Invite as POST /invitations does, and print the codes: ten slips on a page to be cut apart, or a workbook."""
        return service.make_slips(**query, **invitations, **_inviting())


@blp.route("/guardians/accounts")
class GuardianAccounts(MethodView):
    """The accounts of the guardians of a class."""

    @blp.requires(Permission.STUDENTS_WRITE, Permission.USERS_WRITE, run=Run.ANSWERS_TOKEN)
    @blp.arguments(NewGuardianAccountsSchema)
    @blp.returns_list(GuardianInvitationSchema)
    def post(self, body: dict[str, Any]) -> Any:
        """Give the guardians of a batch without an account one each, and invite them; answers the codes once.

        They are the guardians of students now in the batch, without those stopped there. Usernames are made of names,
        such as adaeze.okafor. Needs `read:results` for the whole school.
        """
        inviting = _inviting()
        return guardians.give_accounts(**body, **inviting)


@blp.route("/invitations/<uuid:id>")
class OneInvitation(MethodView):
    """An open invitation."""

    @blp.requires(by_relation(Permission.USERS_WRITE), own=related("M"))
    @blp.returns_deleted()
    def delete(self, id: UUID) -> Any:
        """Delete an open invitation: its code is valid no more.

        One's own needs no permission; another's needs the permissions for inviting them.
        """
        return service.delete_invitation(invitation_id=id, principal=current_principal())


@blp.route("/users/login/invitation")
class LoginByInvitation(MethodView):
    """Signing in by an invitation."""

    @blp.requires(None, run=Run.ANSWERS_TOKEN)
    @blp.answers(429)
    @blp.arguments(TakenInvitationSchema)
    @blp.returns(AuthUserSchema)
    def post(self, invitation: dict[str, Any]) -> Any:
        """Set the password of the account that a code is for, and sign in; needs a token that may enter the school.

        The code is used up, and all other sessions of the account end. Beyond thirty wrong codes from one address
        within a minute a wrong one is 429; a right one is taken all the same.
        """
        user = taking.sign_in_by_invitation(
            **invitation,
            keys=app_state().verifier.keys,
            wrong_codes=WrongCodes(str(current_school_id()), client_address()),
        )
        token = issue_user_token(app_state().verifier.key, user.id, current_school_id(), user.session_number)
        return auth_user(user.id, json_text(token))
