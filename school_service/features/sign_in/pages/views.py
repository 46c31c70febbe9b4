"""The sign-in page over HTTP, and the logo on it.

Nothing is kept between its steps: the client's request stays in the address of each, and is judged anew.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from flask import Blueprint, Response, request
from limits import RateLimitItemPerMinute
from marshmallow import ValidationError

from school_service.auth.login_throttle import LoginThrottle, count_try
from school_service.auth.passwords import MIN_LENGTH, is_strict
from school_service.core.errors import Invalid, TooManyAttempts, WrongPassword
from school_service.features.people.users.schemas import LoginSchema, PasswordSchema
from school_service.features.sign_in.pages import service
from school_service.features.sign_in.pages.answers import (
    Errand,
    public_url,
    read_errand,
    require_open,
    show,
    show_problem,
    too_many,
)
from school_service.features.sign_in.pages.requests import Query
from school_service.features.sign_in.pages.steps import LIFETIME, Step, read_step, sign_step
from school_service.web.client_address import client_address
from school_service.web.pages import read_own_form
from school_service.web.request_log import log_of_request
from school_service.web.request_scope import acting_as_client, app_state, attempted_username
from tenants.registry.sign_in import SchoolOfClient

UNKNOWN_SCHOOLS = RateLimitItemPerMinute(60, namespace="unknown-school")
"""Of one address."""

_WRONG = "The username or the password is wrong."
_UNKNOWN_SCHOOL = "No school of this app has this name. Compare it with what your school told you."
_BEGIN_ANEW = f"Too much time has passed, more than {LIFETIME // 60} minutes. Sign in once more."
_credentials, _passwords = LoginSchema(), PasswordSchema(only=("password",))

blp = Blueprint("sign_in", __name__, url_prefix="/auth", template_folder="templates")
blp.register_error_handler(Exception, show_problem)


@blp.route("/authorize", methods=("GET", "POST"))
def authorize() -> Response:
    """Sign a person in for a client: OAuth's authorization endpoint."""
    query, posted = Query(request.query_string), request.method == "POST"
    form = read_own_form(public_url()) if posted else {}
    named = query.only("school") or form.get("short_name") or None
    errand = read_errand(query, named, anew=posted)
    if not isinstance(errand, Errand):
        return errand
    client = errand.client
    school = client.only_school if named is None else client.named
    if school is None:
        return _show_schools(errand, named)
    require_open(school)
    log_of_request(school=str(school.id))
    if not posted or "short_name" in form:
        return _show_sign_in(errand, school, username=errand.asked.login_hint)
    return (_change_password if "step" in form else _sign_in)(errand, school, form)


def _show_schools(errand: Errand, named: str | None) -> Response:
    """Ask for the school; `named` is one that the client has not."""
    error = None
    if named is not None:
        error = _UNKNOWN_SCHOOL
        count_try(UNKNOWN_SCHOOLS, client_address(), message="Too many unknown schools. Try again later.")
    choice = [
        {"name": one.name, "address": errand.query.address(str(one.id))} for one in errand.client.schools
    ]
    return show(
        "sign_in_school.html",
        errand,
        status=404 if error else 200,
        choice=choice,
        action=errand.query.address(),
        short_name=(named or "").encode(errors="replace").decode(),
        error=error,
    )


def _show_sign_in(errand: Errand, school: SchoolOfClient, *, username: str, **values: Any) -> Response:
    here = errand.query.address(school.short_name or str(school.id))
    return show(
        "sign_in.html",
        errand,
        school=school,
        username=username,
        action=here,
        invitation=f"invitation{here}",
        elsewhere=errand.query.address() if errand.client.has_several else None,
        **values,
    )


def _sign_in(errand: Errand, school: SchoolOfClient, form: dict[str, str]) -> Response:
    username, password = form.get("username", ""), form.get("password", "")
    show_again = partial(_show_sign_in, errand, school, username=username)
    missing = {name: f"Enter your {name}." for name in ("username", "password") if not form.get(name)}
    if missing:
        return show_again(status=422, errors=missing)
    both = {"username": True, "password": True}
    try:
        credentials = _credentials.load({"username": username, "password": password})
    except ValidationError:
        return show_again(status=422, error=_WRONG, errors=both)
    realm = str(school.id)
    throttle = LoginThrottle(realm, client_address())
    try:
        with acting_as_client(errand.client.id, school.id):
            signed_in = service.sign_in(
                **credentials,
                throttle=throttle,
                username_hash=attempted_username(realm, credentials["username"]),
                **_of_session(errand),
            )
    except WrongPassword:
        return show_again(status=422, error=_WRONG, errors=both)
    except TooManyAttempts as error:
        page = show_again(status=429, error=too_many(error, "wrong passwords"), errors=both)
        page.headers["Retry-After"] = str(error.retry_after)
        return page
    if isinstance(signed_in, Step):
        return _show_new_password(errand, school, signed_in, username=username)
    return errand.lead_back(("code", signed_in))


def _change_password(errand: Errand, school: SchoolOfClient, form: dict[str, str]) -> Response:
    step = read_step(app_state().verifier.keys, form["step"], at=time.time())
    username = form.get("username", "")
    begin_anew = partial(_show_sign_in, errand, school, status=422, username=username)
    if step is None or (step.school_id, step.client_id) != (school.id, errand.client.id):
        return begin_anew(error=_BEGIN_ANEW)
    errors = new_password_errors(form)
    if not errors:
        try:
            with acting_as_client(errand.client.id, school.id):
                code = service.change_password(
                    step=step, password=form["new_password"], **_of_session(errand)
                )
            return errand.lead_back(("code", code))
        except Invalid as error:
            errors = faults_of(error)
        except WrongPassword:
            return begin_anew(error=_BEGIN_ANEW)
    return _show_new_password(
        errand, school, step, status=422, username=username, errors=errors, value=form["step"]
    )


def _show_new_password(
    errand: Errand, school: SchoolOfClient, step: Step, *, value: str | None = None, **values: Any
) -> Response:
    return show(
        "sign_in_password.html",
        errand,
        school=school,
        step=value or sign_step(app_state().verifier.keys, step, at=time.time()),
        action=errand.query.address(school.short_name or str(school.id)),
        hint=password_hint(),
        **values,
    )


def _of_session(errand: Errand) -> dict[str, Any]:
    """What a session keeps of the request that opens it."""
    return {
        "client": errand.client,
        "asked": errand.asked,
        "redirect_uri": errand.redirect_uri,
        "user_agent": request.headers.get("User-Agent", ""),
    }


def password_hint() -> str | None:
    """Say what is asked of a new password, where something is."""
    return f"At least {MIN_LENGTH} characters, and not a common password or name." if is_strict() else None


def new_password_errors(form: dict[str, str]) -> dict[str, str]:
    """Say what is wrong with a new password that was typed twice, before the policy is asked."""
    password, again = form.get("new_password", ""), form.get("again", "")
    if not password:
        return {"new_password": "Enter a new password."}
    if password != again:
        return {"again": "The two are not the same. Type both anew."}
    try:
        _passwords.load({"password": password})
    except ValidationError as error:
        return {"new_password": " ".join(error.messages_dict["password"])}
    return {}


def faults_of(error: Invalid) -> dict[str, str]:
    """Say what the policy misses in a new password: `Must have at least 10 characters.`"""
    faults: Any = error.errors["password"]
    return {"new_password": " ".join(f"{fault[:1].upper()}{fault[1:]}." for fault in faults)}
