"""Users over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.auth.login_throttle import LoginThrottle
from school_service.auth.policies import own_account
from school_service.auth.tokens import issue_user_token
from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.core.statements import answered_beside, row_lock
from school_service.features.people.models import CREATED, User
from school_service.features.people.users import reads, service
from school_service.features.people.users.schemas import (
    AuthUserSchema,
    GainingUserSchema,
    LoginSchema,
    NewUserSchema,
    PasswordSchema,
    RoleOfUserSchema,
    UserChangesSchema,
    UserSchema,
    UserSearchSchema,
)
from school_service.web.admitting import attempted_username
from school_service.web.app_state import app_state, current_principal, current_school_id
from school_service.web.blueprint import Blueprint
from school_service.web.client_address import address_is_told, client_address
from school_service.web.operations import Run
from tenants.connections.engines import json_text

blp = Blueprint("users", __name__, description="User accounts, by which people sign in to the school.")


def _throttle() -> LoginThrottle:
    return LoginThrottle(str(current_school_id()), client_address(), address_is_told())


def _auth_user(user_id: UUID, session_number: int) -> Any:
    token = issue_user_token(app_state().verifier.key, user_id, current_school_id(), session_number)
    return reads.auth_user(user_id, json_text(token))


@blp.route("/users")
class Users(MethodView):
    """The school's users."""

    @blp.requires(Permission.USERS_READ, own=related("M"))
    @blp.returns_page(UserSchema)
    @blp.arguments(UserSearchSchema, location="query")
    def get(self, filters: dict[str, Any]) -> Any:
        """List the users, or those whose name or username holds a text."""
        return reads.users(filters.get("search") or None)

    @blp.requires(Permission.USERS_WRITE, run=Run.ANSWERS_TOKEN)
    @blp.arguments(NewUserSchema)
    @blp.returns(AuthUserSchema)
    def post(self, user: dict[str, Any]) -> Any:
        """Create a user, without roles; answers a token of theirs."""
        return _auth_user(service.create_user(**user).id, CREATED)


@blp.route("/users/login")
class Login(MethodView):
    """Signing in."""

    @blp.requires(None, run=Run.ANSWERS_TOKEN)
    @blp.answers(429)
    @blp.arguments(LoginSchema)
    @blp.returns(AuthUserSchema)
    def post(self, credentials: dict[str, Any]) -> Any:
        """Sign a user in by username and password; needs a token that may enter the school.

        Ten wrong passwords for a username from one address within a minute, and that is refused for a while. A server
        that signs people in tells their addresses in `X-End-User-Address`, where the operator lets it.
        """
        username_hash = attempted_username(str(current_school_id()), credentials["username"])
        user = service.sign_in(**credentials, throttle=_throttle(), username_hash=username_hash)
        return _auth_user(user.id, user.session_number)


@blp.route("/users/<uuid:id>")
class OneUser(MethodView):
    """A user."""

    @blp.requires(Permission.USERS_READ, own=related("M"))
    @blp.returns(UserSchema)
    def get(self, id: UUID) -> Any:
        """Show a user."""
        return reads.user(id)

    @blp.requires(Permission.USERS_WRITE)
    @blp.arguments(UserChangesSchema(partial=True))
    @blp.returns(UserSchema)
    @blp.if_match(reads.user, row_lock(User))
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Change the given members of a user: one's own account, or by having every permission that the user has."""
        return reads.user(service.change_user(user_id=id, **changes, principal=current_principal()))


@blp.route("/users/<uuid:id>/delete")
class DeletedUser(MethodView):
    """Deleting a user."""

    @blp.requires(Permission.USERS_DELETE)
    @blp.returns_deleted()
    @blp.if_match(reads.user, row_lock(User))
    def delete(self, id: UUID) -> Any:
        """Delete a user; the record stays, the user's tokens stop working at once."""
        return service.delete_user(user_id=id, principal=current_principal())


@blp.route("/users/<uuid:id>/restore")
class RestoredUser(MethodView):
    """Restoring a user."""

    @blp.requires(Permission.USERS_WRITE)
    @blp.returns(GainingUserSchema)
    def put(self, id: UUID) -> Any:
        """Bring a deleted user back.

        Credentials that others had made for the account end, unless their makers may do all that it may; the answer
        names them.
        """
        told = service.restore_user(user_id=id, principal=current_principal())
        return answered_beside(reads.user(id), told)


@blp.route("/users/<uuid:id>/roles")
class RolesOfUser(MethodView):
    """The roles of a user."""

    @blp.requires(Permission.USERS_WRITE)
    @blp.arguments(RoleOfUserSchema)
    @blp.returns(GainingUserSchema)
    def put(self, body: dict[str, Any], id: UUID) -> Any:
        """Give a user a role; needs every permission in it.

        Where they gain by it, credentials that others had made for the account (a password, an open invitation, links)
        end, unless their makers may do as much; the answer names them. So give roles first, then hand out passwords and
        slips.
        """
        told = service.give_role(user_id=id, **body, principal=current_principal())
        return answered_beside(reads.user(id), told)


@blp.route("/users/<uuid:id>/roles/<uuid:roleId>")
class RoleOfUser(MethodView):
    """A role of a user."""

    @blp.requires(Permission.USERS_DELETE)
    @blp.returns(UserSchema)
    def delete(self, id: UUID, roleId: UUID) -> Any:  # noqa: N803
        """Take a role from a user."""
        return reads.user(service.take_role(user_id=id, role_id=roleId, principal=current_principal()))


@blp.route("/users/<uuid:id>/sessions")
class SessionsOfUser(MethodView):
    """The sessions of a user."""

    @blp.requires(own_account(Permission.USERS_WRITE), own=related("M"))
    @blp.returns_deleted()
    def delete(self, id: UUID) -> Any:
        """End a user's sessions: all of their tokens stop working.

        One's own without a permission, another's by having every permission that they have.
        """
        return service.end_sessions(user_id=id, principal=current_principal())


@blp.route("/users/<uuid:id>/password")
class PasswordOfUser(MethodView):
    """The password of a user."""

    @blp.requires(own_account(Permission.USERS_WRITE, given_password=True), own=related("M"))
    @blp.answers(429)
    @blp.arguments(PasswordSchema)
    @blp.returns(UserSchema)
    def put(self, passwords: dict[str, Any], id: UUID) -> Any:
        """Set a password: one's own with the current one, another's by holding every permission they hold."""
        return reads.user(
            service.set_password(user_id=id, **passwords, principal=current_principal(), throttle=_throttle())
        )
