"""The page for taking an invitation: the holder of its code sets the password of the account.

Opening it uses nothing up, since scanners and previews open every link. If an authorization request led there, it goes
on afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from flask import Blueprint, Response, request

from school_service.auth.login_throttle import WrongCodes
from school_service.core.database import registry_connection
from school_service.core.errors import Invalid, TooManyAttempts, WrongPassword
from school_service.features.invitations import taking
from school_service.features.sign_in.pages import service
from school_service.features.sign_in.pages.answers import (
    Errand,
    count_unknown_school,
    faults_of,
    new_password_errors,
    password_hint,
    public_url,
    read_errand,
    require_open,
    show,
    show_problem,
    too_many,
)
from school_service.features.sign_in.pages.requests import Query
from school_service.features.sign_in.pages.steps import CodeStep, read_step, sign_step
from school_service.web.admitting import acting_as_client
from school_service.web.app_state import app_state
from school_service.web.client_address import client_address
from school_service.web.pages import read_own_form
from school_service.web.request_log import log_of_request
from tenants.registry.sign_in import SchoolOfClient, find_named_school, name_of_school

ACTOR = "invitation page"
"""The actor, in the audit log, if no client led there."""
_UNKNOWN_SCHOOL = "No school has this name here. Compare it with what your school told you."
_NOT_VALID = (
    "This code is not valid. Compare it with the one that you were given. A code is good for one time and for some "
    "days; ask your school for another."
)

# The sign-in page's templates, which that blueprint brings.
blp = Blueprint("invitation_page", __name__, url_prefix="/auth")
blp.register_error_handler(Exception, show_problem)


@blp.route("/invitation", methods=("GET", "POST"))
def typed() -> Response:
    """Take an invitation with a typed code."""
    form = read_own_form(public_url()) if request.method == "POST" else {}
    query = Query(request.query_string)
    named = query.only("school") or form.get("short_name") or None
    errand = None
    if query.only("client_id") is not None:
        answer = read_errand(query, named, anew=bool(form))
        if not isinstance(answer, Errand):
            return answer
        errand = answer
    school = _find_school(errand, named)
    page = _Page(errand, school, form, action=query.address(school.known_as if school else None))
    if school is None:
        return page.ask_for_code(error=named is not None)
    require_open(school)
    if not form.get("code"):
        return page.ask_for_code(error="code" in form)
    return page.answer(form["code"], hidden_code=form["code"], wrong=422)


@blp.route("/<school>/invitation/<path:code>", methods=("GET", "POST"))
def linked(school: str, code: str) -> Response:
    """Take an invitation with its code in the address."""
    form = read_own_form(public_url()) if request.method == "POST" else {}
    named = _find_school(None, school)
    page = _Page(None, named, form, action="", beside="../../")
    if named is None:
        return page.ask_for_code(error=True)
    require_open(named)
    return page.answer(code, hidden_code=None, wrong=422 if form else 404)


def _find_school(errand: Errand | None, named: str | None) -> SchoolOfClient | None:
    """Find the school of an invitation: the school of the client's request, or the named one."""
    school = None
    if errand is not None:
        school = errand.client.only_school if named is None else errand.client.named
    elif named is not None and (name := name_of_school(named)):
        with registry_connection() as connection:
            school = find_named_school(connection, name)
    if school is None and named is not None:
        count_unknown_school()
    return school


class _Page:
    """The page at one address; `beside` leads from there to the sign-in page's folder."""

    def __init__(
        self,
        errand: Errand | None,
        school: SchoolOfClient | None,
        form: dict[str, str],
        *,
        action: str,
        beside: str = "",
    ) -> None:
        self._errand, self._school, self._form = errand, school, form
        self._action, self._beside = action, beside
        self._client_id = errand.client.id if errand else None

    def answer(self, code: str, *, hidden_code: str | None, wrong: int) -> Response:
        """Show the invited user or, with a new password, take the code; `wrong` is the status for a wrong one.

        A code is no wrong one if it was right a moment ago, as the form's own value says, and is gone.
        """
        school = self._school
        assert school is not None  # noqa: S101 it was found before
        log_of_request(school=str(school.id))
        wrong_codes, step = WrongCodes(str(school.id), client_address()), None
        try:
            hashes = taking.read_code(code, keys=app_state().verifier.keys, wrong_codes=wrong_codes)
            step = self._read_step(school, hashes)
            right = {
                "wrong_codes": None if step else wrong_codes,
                "session_number": step.session_number if step else None,
            }
            return self._answer(school, hashes, right, hidden_code)
        except WrongPassword:
            return self._show_set_already() if step else self.ask_for_code(error=True, status=wrong)
        except TooManyAttempts as error:
            page = self.ask_for_code(words=too_many(error, "wrong codes"), status=429)
            page.headers["Retry-After"] = str(error.retry_after)
            return page

    def _read_step(self, school: SchoolOfClient, hashes: Sequence[str]) -> CodeStep | None:
        """Read the form's proof of a moment ago: this code, at this school, was right."""
        value = self._form.get("step", "")
        step = read_step(app_state().verifier.keys, value, CodeStep, at=time.time())
        is_of_code = step is not None and step.school_id == school.id and step.code_hash in hashes
        return step if is_of_code else None

    def _answer(
        self, school: SchoolOfClient, hashes: Sequence[str], right: dict[str, Any], hidden_code: str | None
    ) -> Response:
        form = self._form
        errors = new_password_errors(form) if "new_password" in form else {}
        if "new_password" in form and not errors:
            try:
                return self._take(school, hashes, password=form["new_password"], **right)
            except Invalid as error:
                errors = faults_of(error)
        with acting_as_client(self._client_id, school.id, page=ACTOR):
            invitee = taking.find_invitee(hashes, **right)
        step = CodeStep(invitee.user_id, school.id, invitee.session_number, invitee.code_hash)
        return self._show(
            "invitation_password.html",
            status=422 if errors else 200,
            errors=errors,
            code=hidden_code,
            step=sign_step(app_state().verifier.keys, step, at=time.time()),
            name=invitee.name,
            username=invitee.username,
            hint=password_hint(),
        )

    def _take(self, school: SchoolOfClient, hashes: Sequence[str], **given: Any) -> Response:
        try:
            with acting_as_client(self._client_id, school.id, page=ACTOR):
                if self._errand is not None:
                    signed_in = service.take_invitation(hashes, **given, session=self._errand.new_session())
                else:
                    username = taking.take_invitation(hashes, **given).username
        except service.AnotherPerson:
            assert self._errand is not None  # noqa: S101 it names the person
            return self._errand.refuse_another()
        if self._errand is not None:
            return self._errand.lead_back(("code", signed_in))
        return self._show("invitation_done.html", username=username)

    def _show_set_already(self) -> Response:
        """Say that the password may be set already: the form was sent twice, or somebody else has set it."""
        return self._show(
            "invitation_gone.html", status=409, back=self._back(), another=self._address_of_form()
        )

    def ask_for_code(
        self, *, error: bool = False, words: str | None = None, status: int | None = None
    ) -> Response:
        """Ask for the code, and for the school while it is unknown; `error`: the given value is not right."""
        given = self._form.get("short_name", "")
        field, fault = ("code", words or _NOT_VALID) if self._school else ("short_name", _UNKNOWN_SCHOOL)
        if error and self._school and not self._form.get("code") and status is None:
            fault = "Enter your code."
        wrong = 422 if self._school else 404
        return self._show(
            "invitation.html",
            status=status or (wrong if error else 200),
            errors={field: fault} if error or words else {},
            asks_school=self._school is None,
            short_name=given,
            code=self._form.get("code", ""),
            back=self._back(),
            action=self._address_of_form(),
        )

    def _back(self) -> str | None:
        """The address of the sign-in page, if one led here."""
        if self._errand is None:
            return None
        return f"authorize{self._errand.query.address(self._school.known_as if self._school else None)}"

    def _address_of_form(self) -> str:
        """The address for typing a code."""
        if not self._beside:
            return self._action
        return f"{self._beside}invitation" + (f"?school={self._school.known_as}" if self._school else "")

    def _show(self, template: str, **values: Any) -> Response:
        given = {"action": self._action, "beside": self._beside, **values}
        return show(template, self._errand, school=self._school, **given)
