"""The sign-in page over HTTP, and the logo on it.

Nothing is kept between its steps: the client's request stays in the address of each, and is judged anew.
"""

from __future__ import annotations

import time
from functools import partial
from mimetypes import guess_type
from typing import Any
from uuid import UUID

from flask import Blueprint, Response, request
from marshmallow import ValidationError
from werkzeug.exceptions import NotFound as NotFoundHere

from school_service.auth.login_throttle import LoginThrottle
from school_service.auth.principal import CANONICAL_UUID
from school_service.core.errors import Invalid, NotFound, TooManyAttempts, WrongPassword
from school_service.features.people.users.schemas import LoginSchema
from school_service.features.school.letterheads import service as letterheads
from school_service.features.school.models import LOGO
from school_service.features.sign_in.pages import service
from school_service.features.sign_in.pages.answers import (
    Errand,
    count_unknown_school,
    faults_of,
    lead_to_page,
    new_password_errors,
    password_hint,
    public_url,
    read_errand,
    read_posted_request,
    require_open,
    show,
    show_problem,
    too_many,
)
from school_service.features.sign_in.pages.requests import Query
from school_service.features.sign_in.pages.steps import LIFETIME, Step, read_step, sign_step
from school_service.web.admitting import acting_as_client, attempted_username
from school_service.web.app_state import app_state
from school_service.web.client_address import client_address
from school_service.web.error_responses import http_response
from school_service.web.pages import prefers_page, read_own_form
from school_service.web.request_log import log_of_request
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.exceptions import SchoolSuspended, SchoolUpgrading, UnknownSchool
from tenants.registry.sign_in import SchoolOfClient

LOGO_MAX_AGE = 3600
"""Seconds for any cache to keep a logo."""

_WRONG = "The username or the password is wrong."
_UNKNOWN_SCHOOL = "No school of this app has this name. Compare it with what your school told you."
_BEGIN_ANEW = f"Too much time has passed, more than {LIFETIME // 60} minutes. Sign in once more."
_credentials = LoginSchema()

blp = Blueprint("sign_in", __name__, url_prefix="/auth", template_folder="templates")
blp.register_error_handler(Exception, show_problem)


@blp.route("/authorize", methods=("GET", "POST"))
def authorize() -> Response:
    """Sign a person in for a client: OAuth's authorization endpoint."""
    query, posted = Query(request.query_string), request.method == "POST"
    asked = read_posted_request() if posted else None
    if asked is not None:
        return lead_to_page(asked)
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
    try:
        return (_change_password if "step" in form else _sign_in)(errand, school, form)
    except service.AnotherPerson:
        return errand.refuse_another()


def _show_schools(errand: Errand, named: str | None) -> Response:
    """Ask for the school; `named` is a school the client has not."""
    error = None
    if named is not None:
        error = _UNKNOWN_SCHOOL
        count_unknown_school()
    choice = [
        {"name": school.name, "address": errand.query.address(str(school.id))}
        for school in errand.client.schools
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
    here = errand.query.address(school.known_as)
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
                session=errand.new_session(),
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
    step = read_step(app_state().verifier.keys, form["step"], Step, at=time.time())
    username = form.get("username", "")
    begin_anew = partial(_show_sign_in, errand, school, status=422, username=username)
    if step is None or (step.school_id, step.client_id) != (school.id, errand.client.id):
        return begin_anew(error=_BEGIN_ANEW)
    errors = new_password_errors(form)
    if not errors:
        try:
            with acting_as_client(errand.client.id, school.id):
                code = service.change_password(
                    step=step, password=form["new_password"], session=errand.new_session()
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
        action=errand.query.address(school.known_as),
        hint=password_hint(),
        **values,
    )


@blp.app_errorhandler(404)
def answer_unknown(error: NotFoundHere) -> Response:
    """Answer an unknown address: below /auth by a page, if HTML is preferred."""
    if request.path.startswith(f"{blp.url_prefix}/") and prefers_page():
        return show_problem(error)
    return http_response(error)


@blp.get("/<school>/logo")
def logo(school: str) -> Response:
    """Show the logo of a school's letterhead to anybody; without one, or while the school is closed, the same 404."""
    try:
        with in_transaction(SchoolBinding(_id(school), read_only=True)):
            name, picture = letterheads.read_picture(LOGO)
    except (NotFound, UnknownSchool, SchoolSuspended, SchoolUpgrading):
        raise NotFound("There is no logo at this address.") from None
    response = Response(picture, mimetype=guess_type(name)[0])
    response.cache_control.public = True
    response.cache_control.max_age = LOGO_MAX_AGE
    return response


def _id(school: str) -> UUID:
    """Read the id of a school; raises NotFound for any other text."""
    if not CANONICAL_UUID.fullmatch(school):
        raise NotFound("There is no logo at this address.")
    return UUID(school)
