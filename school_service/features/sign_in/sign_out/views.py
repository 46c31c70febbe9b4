"""Signing out (OpenID Connect RP-Initiated Logout): the client leads a person here, and from here back."""

from __future__ import annotations

from flask import Blueprint, Response, request

from school_service.auth.id_tokens import Hint, read_hint
from school_service.core.database import registry_connection
from school_service.features.sign_in.grants import revoke_session
from school_service.features.sign_in.pages.answers import say, show_problem
from school_service.features.sign_in.pages.redirects import with_parameters
from school_service.web.admitting import acting_as_client
from school_service.web.app_state import app_state
from school_service.web.pages import FORM_LIMIT
from school_service.web.request_log import log_of_request
from tenants.exceptions import ClientUnknown, SchoolForbidden, UnknownSchool
from tenants.registry.clients import find_token_client

MOST_STATE = 2000  # characters

blp = Blueprint("sign_out", __name__, url_prefix="/auth")
blp.register_error_handler(Exception, show_problem)


@blp.route("/logout", methods=("GET", "POST"))
def logout() -> Response:
    """End the session of the ID token handed on by the client, and lead the person back to the client."""
    hint = _read_hint()
    named = _only("client_id")
    if hint is None or named not in (None, hint.client_id):
        heading = "This app or website can't sign you out"
        return say(
            heading, "It did not say who you are.", "Open the app again, or the website, and sign out there."
        )
    log_of_request(client=hint.client_id)
    with registry_connection() as connection:
        client = find_token_client(connection, hint.client_id)
    if client is not None:
        try:
            with acting_as_client(client.id, hint.school_id):
                revoke_session(hint.session_id, client)
        except (ClientUnknown, SchoolForbidden, UnknownSchool):
            # The client's grant has ended, and its sessions with it.
            client = None
    address, state = _only("post_logout_redirect_uri"), _only("state")
    if client is None or address not in client.post_logout_uris:
        return say("You are signed out", None, "You can close this page.")
    kept = [("state", state)] if state is not None and len(state) <= MOST_STATE else []
    location = with_parameters(address, kept) if kept else address
    return Response(status=303, headers={"Location": location})


def _read_hint() -> Hint | None:
    state, token = app_state(), _only("id_token_hint")
    issuer = state.settings.issuer
    return read_hint(state.verifier.keys, token, issuer=issuer) if token and issuer else None


def _only(name: str) -> str | None:
    """Give a parameter of the query or the form with one value; None for every other."""
    request.max_content_length = FORM_LIMIT
    given = (request.args if request.method == "GET" else request.form).getlist(name)
    return given[0] or None if len(given) == 1 else None
