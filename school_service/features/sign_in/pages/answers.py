"""The common part of the pages of signing in: the client leading to them, faults, and the way on from there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import Response, current_app, request
from limits import RateLimitItemPerMinute
from marshmallow import ValidationError

from school_service.auth.id_tokens import read_hint
from school_service.auth.login_throttle import count_try
from school_service.auth.passwords import MIN_LENGTH, is_strict
from school_service.core.errors import Invalid, TooManyAttempts
from school_service.features.people.users.schemas import PasswordSchema
from school_service.features.sign_in.pages.clients import KnownClients
from school_service.features.sign_in.pages.redirects import is_registered, with_parameters
from school_service.features.sign_in.pages.requests import (
    AuthorizationRequest,
    NotRedirected,
    Query,
    RequestRefused,
    judge,
)
from school_service.features.sign_in.service import NewSession
from school_service.web.app_state import app_state
from school_service.web.client_address import client_address
from school_service.web.error_responses import handle
from school_service.web.pages import FORM, FORM_LIMIT, ForeignForm, show_form
from school_service.web.request_log import log_of_request
from tenants.exceptions import ClientUnknown, SchoolForbidden, SchoolSuspended, SchoolUpgrading
from tenants.registry.sign_in import PeoplesClient, SchoolOfClient
from tenants.wording import counted

UNKNOWN_SCHOOLS = RateLimitItemPerMinute(60, namespace="unknown-school")
"""Of one address."""
_passwords = PasswordSchema(only=("password",))

KNOWN_CLIENTS = "sign-in clients"
"""The key of an application's KnownClients in its extensions."""

_UNKNOWN_CLIENT = "The app or website that led here is not known to this service, or is known no longer."
_UNKNOWN_ADDRESS = "The app or website that led here gave an address to return to that is not one of its own."
_OPEN_AGAIN = "Open the app again, or the website from which you came."
_TELL_SCHOOL = f"{_OPEN_AGAIN} If it happens again, tell your school."
# Heading, words, and the next step of a person where the page has no link.
_NOT_OPEN = {
    SchoolSuspended: (
        "Your school is closed here for a time",
        "Nobody can sign in to it until the operator of this service opens it again.",
        "Ask your school when that will be.",
    ),
    SchoolUpgrading: ("Your school is being brought up to date", "That takes a few minutes.", None),
    ForeignForm: (
        "This form can't be taken",
        "It came from another website, or your browser does not say from where. Nothing was sent on.",
        None,
    ),
}
_BY_STATUS = {
    404: ("There is nothing at this address", "It may be misspelt, or cut short.", _OPEN_AGAIN),
    413: ("That is too much", "What was sent is larger than any form of this page.", _OPEN_AGAIN),
    429: ("Too many tries", "Too many tries have come from your network.", None),
    500: ("Something went wrong", "It is on record here.", _TELL_SCHOOL),
    503: (
        "Signing in is not possible just now",
        "The service is overloaded, or its database does not answer.",
        None,
    ),
}


def public_url() -> str:
    """The service's address for people; the pages are there only if it is set."""
    url = app_state().settings.public_url
    assert url is not None  # noqa: S101 else the pages are not registered
    return url


@dataclass(frozen=True, slots=True)
class Errand:
    """A person's errand here: a client's request, judged already, at the address of its query."""

    query: Query
    client: PeoplesClient
    redirect_uri: str
    asked: AuthorizationRequest

    def new_session(self) -> NewSession:
        """The session to open for it."""
        browser = request.headers.get("User-Agent", "")
        return NewSession(self.client, self.asked, self.redirect_uri, browser)

    def lead_back(self, *parameters: tuple[str, str]) -> Response:
        """Lead the person back to the client."""
        return _lead_back(self.redirect_uri, self.query, *parameters)

    def refuse_another(self) -> Response:
        """Lead back another person than the one the client has named."""
        words = "Another person has signed in than the one of the id_token_hint."
        return self.lead_back(("error", "login_required"), ("error_description", words))


def read_errand(query: Query, school: str | None, *, anew: bool) -> Errand | Response:
    """Judge the request of a client; if it is not right, the answer is a redirect to tell the client.

    `school` names the school to look for with the client; `anew` asks the registry even if the client is remembered.
    Raises NotRedirected unless client and redirect URI are right, RegistrySilent.
    """
    client_id, redirect_uri = query.only("client_id"), query.only("redirect_uri")
    known: KnownClients = current_app.extensions[KNOWN_CLIENTS]
    client = known.find(client_id, school, anew=anew) if client_id is not None else None
    if client is None:
        raise NotRedirected(_UNKNOWN_CLIENT)
    if redirect_uri is None or not is_registered(redirect_uri, client.redirect_uris):
        raise NotRedirected(_UNKNOWN_ADDRESS)
    log_of_request(client=client.id)
    try:
        asked = judge(query, ceiling=client.user_permissions, person=_hinted(query, client))
    except RequestRefused as refused:
        log_of_request(refused=str(refused))
        told = (("error", refused.error), ("error_description", refused.description))
        return _lead_back(redirect_uri, query, *told)
    return Errand(query, client, redirect_uri, asked)


def read_posted_request() -> Query | None:
    """Read a posted authorization request (OpenID Connect, section 3.1.2.1); None for every other form.

    The page's own forms have a query. Raises RequestEntityTooLarge.
    """
    if request.query_string or request.mimetype != FORM:
        return None
    request.max_content_length = FORM_LIMIT
    query = Query(request.get_data())
    return query.of_request() if query.has("client_id") else None


def lead_to_page(query: Query) -> Response:
    """Answer a posted request: a redirect to the same one as a GET or, if it is not right, to the client."""
    errand = read_errand(query, query.only("school"), anew=False)
    if not isinstance(errand, Errand):
        return errand
    return Response(status=303, headers={"Location": f"{public_url()}/auth/authorize?{query.as_sent}"})


def _hinted(query: Query, client: PeoplesClient) -> tuple[UUID, UUID] | None:
    """Find school and user of the request's ID token of this client, expired or not; None for any other hint."""
    state, token = app_state(), query.only("id_token_hint")
    if token is None:
        return None
    hint = read_hint(state.verifier.keys, token, issuer=f"{public_url()}/auth")
    return (hint.school_id, hint.user_id) if hint is not None and hint.client_id == client.id else None


def _lead_back(redirect_uri: str, query: Query, *parameters: tuple[str, str]) -> Response:
    """Redirect to a registered address, with the client's state and our issuer (RFC 9207)."""
    state = query.only("state")
    sent_along = () if state is None else (("state", state),)
    address = with_parameters(redirect_uri, [*parameters, *sent_along, ("iss", f"{public_url()}/auth")])
    # 303: the browser asks for it by GET, so that no form is handed on.
    return Response(status=303, headers={"Location": address})


def require_open(school: SchoolOfClient) -> None:
    """Raise SchoolSuspended or SchoolUpgrading while nobody can work in a school, as the registry has it."""
    if school.status != "active":
        raise SchoolSuspended
    if school.revision not in app_state().binding_options.serves:
        raise SchoolUpgrading


def show_problem(error: Exception) -> Response:
    """Answer a page about the fault, in place of an error, with its status and Retry-After."""
    if isinstance(error, ClientUnknown | SchoolForbidden):
        error = NotRedirected(_UNKNOWN_CLIENT)
    if isinstance(error, NotRedirected):
        log_of_request(refused=str(error))
        heading, words = "You can't sign in from there", f"{error} Nobody was led back to it."
        return say(heading, words, _TELL_SCHOOL, status=400)
    answer = handle(error)
    status, retry_after = answer.status_code, answer.headers.get("Retry-After")
    heading, words, advice = next(
        (said for kind, said in _NOT_OPEN.items() if isinstance(error, kind)),
        _BY_STATUS.get(status, _BY_STATUS[500]),
    )
    if retry_after is not None:
        words = f"{words} Try again in {in_seconds(int(retry_after))}."
    query = Query(request.query_string)
    leads_back = (isinstance(error, ForeignForm) or retry_after) and not query.is_too_long
    again = query.address() if leads_back else None
    page = say(heading, words, advice or (None if again else _OPEN_AGAIN), status=status, again=again)
    if retry_after is not None:
        page.headers["Retry-After"] = retry_after
    return page


def say(
    heading: str, words: str | None, advice: str | None, *, status: int = 200, again: str | None = None
) -> Response:
    """Answer a page without a form; `advice` is a person's next step, unless `again` is a link there."""
    return show_form(
        "sign_in_problem.html",
        status=status,
        errors={},
        heading=heading,
        words=words,
        advice=advice,
        again=again,
    )


def in_seconds(seconds: int) -> str:
    """Write a time to wait: `1 second`, `3 minutes`."""
    unit, amount = ("second", seconds) if seconds <= 120 else ("minute", -(-seconds // 60))
    return counted(amount, unit)


def too_many(error: TooManyAttempts, what: str) -> str:
    """Say that there were too many wrong ones, and the time until the next one is looked at."""
    return f"There were too many {what}. Try again in {in_seconds(error.retry_after)}."


def show(
    template: str, errand: Errand | None, *, school: SchoolOfClient | None = None, **values: Any
) -> Response:
    """Answer a page of the errand, or of none; `errors` are those of its fields, `error` is about all of it."""
    given: dict[str, Any] = {"errors": {}, "error": None, "beside": "", **values}
    return show_form(template, client=errand and errand.client, school=school, **given)


def count_unknown_school() -> None:
    """Count the name of no school; raises TooManyAttempts for an address with too many of them."""
    count_try(UNKNOWN_SCHOOLS, client_address(), message="Too many unknown schools. Try again later.")


def password_hint() -> str | None:
    """Say the demands on a new password, if there are any."""
    return f"At least {MIN_LENGTH} characters, and not a common password or name." if is_strict() else None


def new_password_errors(form: dict[str, str]) -> dict[str, str]:
    """Say the faults of a new password, typed twice, before the policy is asked."""
    password, again = form.get("new_password", ""), form.get("again", "")
    if not password:
        return {"new_password": "Enter a new password."}
    if password != again:
        return {"new_password": "The two are not the same. Type both anew."}
    try:
        _passwords.load({"password": password})
    except ValidationError as error:
        return {"new_password": " ".join(error.messages_dict["password"])}
    return {}


def faults_of(error: Invalid) -> dict[str, str]:
    """Say the faults of a new password by the policy: `Must have at least 10 characters.`"""
    faults: Any = error.errors["password"]
    return {"new_password": " ".join(f"{fault[:1].upper()}{fault[1:]}." for fault in faults)}
