"""The scope of a request: token, school, transaction, work, commit (in this order, and only here)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy.exc import DBAPIError

from school_service.auth.policies import Policy
from school_service.auth.principal import LinkGone, VerifiedToken
from school_service.core.database import context_globals
from school_service.core.errors import NotAuthenticated
from school_service.core.shares import computing
from school_service.web import idempotency
from school_service.web.admitting import admit
from school_service.web.app_state import app_state, authenticate, current_principal
from school_service.web.current import current_request
from school_service.web.linking import linked
from school_service.web.operations import Run
from school_service.web.reading import ReadingRequest
from school_service.web.transactions import find_reason, in_transaction, recheck_school
from tenants.connections.binding import SchoolBinding
from tenants.exceptions import ClientUnknown


@dataclass(frozen=True, slots=True)
class AfterTransaction:
    """A slow answer of a view: it is made when the transaction has ended.

    No connection is taken then. The request still counts among those of its school.
    """

    make: Callable[[], Any]


def run_in_request_scope(view: Callable[[], Any], policy: Policy, run: Run, *, school_required: bool) -> Any:
    """Run a view in its request's school: one transaction, committed once, after the answer is rendered.

    `school_required`: X-SCHOOL-ID is. The user of an outside token may be known by a link alone: it is looked up, and
    once more if it proves to be gone. Raises NotLinked. The principal is judged by the policy before the view's work.
    Any error rolls back. A read-only run is one or two round trips if the view returns a read model. Raises Busy if the
    school has its share of requests.
    """
    state, environ, known = app_state(), current_request().environ, context_globals().__dict__
    known["token"] = token = authenticate(state, environ)
    school_id = token.choose_school(environ.get("HTTP_X_SCHOOL_ID"), required=school_required)
    if token.identity is None or policy.takes_unlinked:
        return _run_as(token, school_id, view, policy, run)
    try:
        return _run_as(linked(token, school_id, anew=False), school_id, view, policy, run)
    except LinkGone:
        if "principal" in known:
            # It was there when the request began, and the work done since can't be done again.
            raise
        return _run_as(linked(token, school_id, anew=True), school_id, view, policy, run)


def _run_as(token: VerifiedToken, school_id: UUID, view: Callable[[], Any], policy: Policy, run: Run) -> Any:
    """Run a view for the bearer of a token in a school; the other arguments are those of `run_in_request_scope`."""
    state, known = app_state(), context_globals().__dict__
    read_only = run.is_read_only(current_request().environ["REQUEST_METHOD"])
    binding = token.bind_to(
        school_id, state.user_state, read_only=read_only, relations=policy.reads_relations
    )
    if run is Run.AT_ONE_MOMENT:
        binding = binding._replace(snapshot=True)
    try:
        # Its turn in the share is waited for first, without holding a connection.
        with state.shares.of(school_id) as waited:
            if waited:
                known["waited_for_share"] = waited
            if read_only:
                answer = ReadingRequest(token, binding, policy, state.binding_options).run(view)
            else:
                answer = _write_as(token, binding, view, policy, run)
            return answer.make() if isinstance(answer, AfterTransaction) else answer
    except ClientUnknown:
        if token.own:
            raise NotAuthenticated("The token's client has no grant any more.") from None
        raise
    except NotAuthenticated:
        # A function that waited for a table which a migration has written anew finds it empty: there is no user then.
        if token.user_id is not None:
            recheck_school(school_id)
        raise
    except DBAPIError as error:
        find_reason(error, school_id)
        raise


def _write_as(
    token: VerifiedToken, binding: SchoolBinding, view: Callable[[], Any], policy: Policy, run: Run
) -> Any:
    """Run a view in a writing transaction, after waiting for its turn if it computes."""
    environ = current_request().environ
    turn = computing.of(binding.school_id) if run is Run.COMPUTES else nullcontext()
    with turn, in_transaction(binding, partial(admit, token, policy)):
        if idempotency.ENVIRON in environ and run.is_done_once(environ["REQUEST_METHOD"]):
            actor, keys = current_principal().actor, app_state().verifier.keys
            return idempotency.answered_once(view, actor=actor, keys=keys)
        return view()
