"""The scope of a request: token, school, transaction, work, commit (in this order, and only here)."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from cachetools import LRUCache, TTLCache
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError

from school_service.auth.login_throttle import TOKEN_ENDPOINT, hash_username
from school_service.auth.principal import (
    InvalidSchoolHeader,
    LinkGone,
    NotLinked,
    Principal,
    VerifiedToken,
)
from school_service.auth.tokens import TokenVerifier
from school_service.config import Settings
from school_service.core.database import (
    RequestContext,
    RoutedSession,
    Text,
    context_globals,
    current_application,
    current_session,
    db,
    engine_of,
    forget_engine,
    registry_connection,
    request_context,
)
from school_service.core.errors import Forbidden, NotAuthenticated
from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING, REFUSED, CallersRelations, Own, leading, reach_by
from school_service.core.shares import Shares, computing
from school_service.web import idempotency
from school_service.web.client_address import client_address, service_address, take_told_address
from school_service.web.current import current_request
from school_service.web.linked_accounts import LinkedAccounts, account_of_identity, linked_accounts
from school_service.web.rendering import render_one
from school_service.web.request_log import AUTHENTICATION_ERROR, request_id
from tenants.connections.binding import BindingOptions, Reading, SchoolBinding, registry_refusal
from tenants.connections.sessions import bind_sessions, transaction
from tenants.connections.statements import Texts, is_dead, is_unreachable, read, write, write_all
from tenants.driver_errors import sqlstate
from tenants.exceptions import (
    ClientUnknown,
    RegistrySilent,
    SchoolChosen,
    SchoolElsewhere,
    TenancyError,
    UnknownSchool,
)
from tenants.registry.schools import School, find_open_school, find_school

# SQLSTATEs of a statement that fails because a migration has changed its tables.
_SCHEMA_CHANGED = re.compile(r"42...|23502|0A000")

SCHOOL_CACHE_SIZE = 10_000
# Seconds that a school's public details are cached; whether it is open is read in every request.
SCHOOL_CACHE_SECONDS = 5.0

Admit = Callable[[Mapping[str, Any] | None], object]
Read = Callable[[Text], Texts]
AuditInsertion = Callable[[RequestContext, list[dict[str, Any]]], tuple[str, dict[str, Any]]]


@dataclass
class AppState:
    """What all requests of an application share.

    `user_state` is the SELECT of a user's state in its school: a row with `permissions` and `own_permissions` (arrays
    of text), `name`, `session_number`, `must_change_password` and the user's relations, or no row where the user does
    not exist any more; its parameters are the user's id, twice, the moment, whether relations are asked for, and the
    token's session, issuer and subject: `session_number` is -1 where the session, or the link, is not there any more.
    Relations that are not asked for are null, unless the user has `own_permissions`.
    `audit_insertion` writes the statement that adds entries to the audit log, and its
    parameters. `binding_options` hold for every transaction.
    """

    settings: Settings
    verifier: TokenVerifier
    user_state: str
    audit_insertion: AuditInsertion
    binding_options: BindingOptions
    shares: Shares
    _schools: TTLCache[UUID, School] = field(
        default_factory=lambda: TTLCache(SCHOOL_CACHE_SIZE, SCHOOL_CACHE_SECONDS)
    )
    # As they were read last, for when the registry can't be read.
    _last_known: LRUCache[UUID, School] = field(default_factory=lambda: LRUCache(SCHOOL_CACHE_SIZE))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    linked_accounts: LinkedAccounts = field(default_factory=linked_accounts)

    def known_school(self, authorization: str, header: str | None) -> str | None:
        """Name the school of a request by its headers Authorization and X-SCHOOL-ID, without asking a server.

        None where the token was not verified before, or does not cover the school.
        """
        token = self.verifier.find_verified(_bearer(authorization))
        try:
            return str(token.choose_school(header, required=False)) if token else None
        except (InvalidSchoolHeader, Forbidden):
            return None

    def verify(self, authorization: str) -> Exception | None:
        """Verify the token of a header Authorization, so that `known_school` knows it.

        Returns the error that `authenticate` is to raise of it, if there is one.
        """
        token = _bearer(authorization)
        try:
            if token is not None:
                self.verifier.verify(token)
        except Exception as error:
            return error
        return None

    def school(self, school_id: UUID) -> School:
        """Find the public details of a school: at most SCHOOL_CACHE_SECONDS old, as long as the registry answers.

        Whether the school is open does not depend on them: its own server says so to each transaction.
        """
        with self._lock:
            school = self._schools.get(school_id)
            known = self._last_known.get(school_id)
        if school is None:
            try:
                with registry_connection() as connection:
                    school = find_school(connection, school_id)
            except (DBAPIError, RegistrySilent) as error:
                if known is None or (isinstance(error, DBAPIError) and not is_unreachable(error)):
                    raise
                school = known
            with self._lock:
                self._schools[school_id] = self._last_known[school_id] = school
        return school


def app_state() -> AppState:
    """The state of the current application."""
    state: AppState = current_application().extensions["school-service"]
    return state


# Bound once, since the applications of a process share the class of db.session.
bind_sessions(RoutedSession, lambda: app_state().binding_options)


def current_principal() -> Principal:
    """The principal of this request."""
    principal: Principal = context_globals().principal
    return principal


def current_token() -> VerifiedToken:
    """The token of this request, known from its beginning."""
    token: VerifiedToken = context_globals().token
    return token


def current_user_id() -> UUID | None:
    """The id of the user whose token this request has, known from its beginning; None for a machine client."""
    return current_token().user_id


def current_school_id() -> UUID:
    """The id of this request's school."""
    return request_context().school_id


def authenticate(state: AppState, environ: dict[str, Any]) -> VerifiedToken:
    """Verify the token of a request; raises NotAuthenticated."""
    error: Exception | None = environ.get(AUTHENTICATION_ERROR)
    if error is not None:
        raise error
    token = _bearer(environ.get("HTTP_AUTHORIZATION", ""))
    if token is None:
        raise NotAuthenticated("A bearer token is needed.")
    return state.verifier.verify(token)


def _bearer(authorization: str) -> str | None:
    scheme, _, token = authorization.partition(" ")
    return token.strip(" ") if scheme.lower() == "bearer" else None


class Access(NamedTuple):
    """What a view demands of its principal: all of the permissions.

    A token that is narrowed has to name the permissions in `named`, also where its bearer needs none of them. A user
    whose own id is in the path needs no permission and, `with_given_password`, is let in although they must change
    their password first. The user who, by their state, is the student `own_student`, or a guardian of theirs,
    needs none. `own` says what the view means for who has the permissions, and not all of them for the whole school;
    with `mine` it means that for every user. `for_signing_in`: a token that is for signing in alone will do.
    `for_every_user`: a user who has not the permissions for the whole school needs none of them, and gets what `own`
    means.
    """

    permissions: tuple[Permission, ...]
    named: tuple[Permission, ...]
    with_given_password: bool = False
    own_student: UUID | None = None
    own: Own = REFUSED
    mine: bool = False
    for_signing_in: bool = False
    for_every_user: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """How a view runs in the scope of its requests.

    `school_required`: X-SCHOOL-ID is. `audited`: a GET that writes to the audit log; all others run read-only, and so
    does a POST that `reads`. A POST that has an Idempotency-Key is done once, unless it `answers_token`. `snapshot`:
    all its statements see one moment of the database. `unlinked`: it is for a token whose identity is linked to nobody.
    `computes`: it computes a class in its transaction, and waits for its turn before that.
    """

    school_required: bool
    audited: bool
    answers_token: bool
    snapshot: bool
    unlinked: bool
    reads: bool
    computes: bool


@dataclass(frozen=True, slots=True)
class AfterTransaction:
    """An answer of a view that takes long to make: it is made when the transaction has ended.

    No connection is taken then. The request still counts among those of its school.
    """

    make: Callable[[], Any]


def run_in_request_scope(
    view: Callable[[], Any],
    scope: Scope,
    access: Access,
    *,
    own_user: UUID | None = None,
    own_student: UUID | None = None,
) -> Any:
    """Run a view in its request's school: one transaction, committed once, after the answer is rendered.

    The user of an outside token may be known by a link alone, which is looked up, and once more where it proves to be
    gone. Raises NotLinked. The principal is judged by `access` before the view's work; `own_user` is the id in the path
    of the user who is let in by it, `own_student` that of the student whose user is. Any error rolls back. What runs
    read-only is one round trip where the view returns a read model. Raises Busy where the school has its share of
    requests.
    """
    state, environ, known = app_state(), current_request().environ, context_globals().__dict__
    known["token"] = token = authenticate(state, environ)
    school_id = token.choose_school(environ.get("HTTP_X_SCHOOL_ID"), required=scope.school_required)
    if token.identity is None or scope.unlinked:
        return _run_as(token, school_id, view, scope, access, own_user, own_student)
    try:
        linked = _linked(token, school_id, anew=False)
        return _run_as(linked, school_id, view, scope, access, own_user, own_student)
    except LinkGone:
        if "principal" in known:
            # It was there when the request began, and what that has done can't be done again.
            raise
        linked = _linked(token, school_id, anew=True)
        return _run_as(linked, school_id, view, scope, access, own_user, own_student)


def _linked(token: VerifiedToken, school_id: UUID, *, anew: bool) -> VerifiedToken:
    """Find the user of an outside token in a school by its identity; `anew`: not by what is remembered.

    Raises NotLinked.
    """
    state, identity = app_state(), token.identity
    if identity is None:
        raise RuntimeError("The token has no identity that can be linked.")
    account = None if anew else state.linked_accounts.find((school_id, identity))
    if account is None:
        with state.shares.of(school_id):
            account = _account_of(identity, school_id)
        state.linked_accounts.remember((school_id, identity), account)
    if account is None:
        raise NotLinked
    context_globals().token = linked = token.of_linked(account)
    return linked


def _account_of(identity: tuple[str, str], school_id: UUID) -> UUID | None:
    """Read which account of a school an identity is linked to, in one round trip; None where it is to none."""
    binding = SchoolBinding(school_id, read_only=True)
    with _in_context(binding, None, partial(_read_text, binding)):
        try:
            found = render_one(account_of_identity(*identity))
        except DBAPIError as error:
            _find_reason(error, school_id)
            raise
    return None if found is None else UUID(orjson.loads(found)["user_id"])


def _read_text(binding: SchoolBinding, text: Text) -> Texts:
    """Read in a school for whoever asks, once more where the school has been moved."""
    reading, options = Reading(*text(None)), app_state().binding_options
    try:
        return read(engine_of(binding.school_id), binding, options, reading)
    except SchoolElsewhere:
        forget_engine(binding.school_id)
        return read(engine_of(binding.school_id), binding, options, reading)


def _run_as(
    token: VerifiedToken,
    school_id: UUID,
    view: Callable[[], Any],
    scope: Scope,
    access: Access,
    own_user: UUID | None,
    own_student: UUID | None,
) -> Any:
    """Run a view for the bearer of a token in a school; the other arguments are those of `run_in_request_scope`."""
    state, environ, known = app_state(), current_request().environ, context_globals().__dict__
    read_only = (environ["REQUEST_METHOD"] in {"GET", "HEAD"} or scope.reads) and not scope.audited
    if access.mine and token.user_id is None:
        access = access._replace(mine=False)
    relations = access.mine or access.for_every_user or own_student is not None
    binding = token.bind_to(school_id, state.user_state, read_only=read_only, relations=relations)
    if scope.snapshot:
        binding = binding._replace(snapshot=True)
    if own_user is not None and own_user == token.user_id:
        access = Access((), access.named, access.with_given_password, for_signing_in=access.for_signing_in)
    elif own_user is not None and access.with_given_password:
        access = access._replace(with_given_password=False)
    if own_student is not None and token.user_id is not None:
        access = access._replace(own_student=own_student)
    try:
        # Its turn in the share is waited for first, without holding a connection.
        with state.shares.of(school_id) as waited:
            if waited:
                known["waited_for_share"] = waited
            if read_only:
                answer = _Reading(token, binding, access, state.binding_options).run(view)
            else:
                turn = computing.of(school_id) if scope.computes else nullcontext()
                with turn, in_transaction(binding, partial(_admit, token, access)):
                    if (
                        idempotency.ENVIRON in environ
                        and environ["REQUEST_METHOD"] == "POST"
                        and not scope.answers_token
                    ):
                        actor, keys = current_principal().actor, state.verifier.keys
                        answer = idempotency.answered_once(view, actor=actor, keys=keys)
                    else:
                        answer = view()
            return answer.make() if isinstance(answer, AfterTransaction) else answer
    except ClientUnknown:
        if token.own:
            raise NotAuthenticated("The token's client has no grant any more.") from None
        raise
    except NotAuthenticated:
        # A function that waited for a table which a migration has written anew finds it empty: there is no user then.
        if token.user_id is not None:
            _recheck_school(school_id)
        raise
    except DBAPIError as error:
        _find_reason(error, school_id)
        raise


def _find_reason(error: DBAPIError, school_id: UUID) -> None:
    """Find out whether a statement failed because of what has become of its school; raises the registry's refusal."""
    if _SCHEMA_CHANGED.fullmatch(sqlstate(error) or ""):
        # A table may have been made anew: the next request asks for it.
        forget_engine(school_id)
        _recheck_school(school_id)
    if is_unreachable(error):
        # The next request asks where the school is now; where nobody can say, it is where it was.
        forget_engine(school_id)


@dataclass(frozen=True, slots=True)
class ActingClient:
    """A client, or a page, as the one who acts for a person who is not signed in yet."""

    actor: str

    @property
    def actor_name(self) -> str:
        """Its id."""
        return self.actor


@contextmanager
def acting_as_client(
    client_id: str | None, school_id: UUID, *, page: str = ""
) -> Iterator[Mapping[str, Any]]:
    """Work in a school in one transaction for a person who is not signed in yet, by a client whose grant covers it.

    Yields the client's grant as it is now, with its session number and whether it is public. Where no client led there,
    the `page` acts. All who do so in a school have a share of requests together, which takes nothing of the share of
    others. Raises Busy beyond it, ClientUnknown, SchoolForbidden, UnknownSchool, SchoolSuspended, SchoolUpgrading.
    """
    state, known = app_state(), context_globals()

    def admit(_grant: Mapping[str, Any] | None) -> None:
        context = request_context()
        context.principal = known.acting_client = ActingClient(client_id or page)
        known.school_id = school_id
        context.request_id = request_id()
        context.address = client_address()

    try:
        with state.shares.of(("not signed in", school_id)) as waited:
            if waited:
                known.waited_for_share = waited
            with in_transaction(SchoolBinding(school_id, client=client_id), admit) as grant:
                yield grant or {}
    except DBAPIError as error:
        _find_reason(error, school_id)
        raise


def _admit(token: VerifiedToken, access: Access, state: Mapping[str, Any] | None) -> bool:
    """Make the request's principal of the state that was read; raises NotAuthenticated, Forbidden.

    Returns whether they are let in by permissions that are OWN.
    """
    context = request_context()
    context.principal = principal = token.principal(state)
    known = context_globals()
    known.principal, known.school_id = principal, context.school_id
    context.request_id = request_id()
    if state is not None and state.get("tells_addresses") and token.is_of_client:
        take_told_address()
    context.address = client_address()
    context.reach = None
    if token.is_for_signing_in and not access.for_signing_in:
        raise Forbidden("The token says who has signed in, and is for nothing else.")
    if not access.with_given_password:
        principal.require_own_password()
    by_own = _judge(principal, access, state)
    # Last, so that who lacks a permission is told of the same ones with a narrowed token and without.
    principal.require_named(access.named)
    return by_own


def _judge(principal: Principal, access: Access, state: Mapping[str, Any] | None) -> bool:
    """Judge the request's principal by their permissions; raises Forbidden.

    Returns whether they are let in by permissions that are OWN.
    """
    context, user_id = request_context(), principal.user_id
    if state is None or user_id is None:
        principal.require(access.permissions)
        return False
    if access.own_student is not None:
        lacks_some = not all(map(principal.may, access.permissions))
        if lacks_some and _is_kin(access, state):
            return False
    if not access.mine:
        if all(map(principal.has, access.permissions)):
            return False
        if access.own.refused:
            principal.require(access.permissions)
        context_globals().by_own = True
    if not access.for_every_user:
        principal.require_own(access.permissions)
    context.relations = CallersRelations.of(state)
    context.reach = reach_by(leading(access.own.relations, state)) if access.own.relations else None
    return True


def _is_kin(access: Access, state: Mapping[str, Any]) -> bool:
    """Tell whether a user needs no permission for a student: is the student, or a guardian of theirs."""
    student = str(access.own_student)
    return str(state["student"]) == student or student in map(str, state["children"])


class _Reading:
    """A request that reads: bound to its school when it first asks the database for something.

    A read model goes together with the binding, in one round trip, which also reads the principal's state and runs the
    read model only where that admits them. All else begins a transaction, which is bound and admits the principal
    before its first statement. So the order is always token, school, permission, and only then what the view found:
    where it raised before, the principal is judged first.
    """

    def __init__(
        self, token: VerifiedToken, binding: SchoolBinding, access: Access, options: BindingOptions
    ) -> None:
        self._token, self._binding, self._access = token, binding, access
        self._options = options
        self._judged = False

    def run(self, view: Callable[[], Any]) -> Any:
        """Run the view, once more where its connection had died in the pool or its school has been moved.

        Reading twice does no harm.
        """
        with _in_context(self._binding, self._admit, self._read) as context:
            try:
                answer = self._run(view)
            except (DBAPIError, SchoolElsewhere) as error:
                if isinstance(error, SchoolElsewhere):
                    forget_engine(self._binding.school_id)
                elif not is_dead(error):
                    raise
                db.session.rollback()
                answer = self._run(view)
            _require_no_entries(context)
            return answer

    def _run(self, view: Callable[[], Any]) -> Any:
        try:
            answer = view()
        except UnknownSchool:
            # The binding says so, or the school's details did, which are read by themselves: then the binding
            # says what is told to whom.
            self._admit_alone()
            raise
        except (DBAPIError, TenancyError):
            raise
        except Exception:
            self._admit_alone()
            raise
        self._admit_alone()
        return answer

    @property
    def _engine(self) -> Engine:
        return engine_of(self._binding.school_id)

    def _admit(self, state: Mapping[str, Any] | None) -> bool:
        self._judged = True
        return _admit(self._token, self._access, state)

    def _admit_alone(self) -> None:
        """Judge the principal, unless that was done before."""
        if not self._judged:
            self._admit(read(self._engine, self._binding, self._options).state)

    def _read(self, text: Text) -> Texts:
        if db.session.registry.has() and current_session().in_transaction():
            return self._read_in_transaction(text)
        if self._binding.state is not None and not self._judged:
            found = self._read_with_state(text)
            if self._access.mine or request_context().reach is None:
                return found
            # The condition was false: the query was not run for who is let in by relations, which are known now.
        else:
            # A client's grant is read by the login itself: a query of the school can not go together with it.
            self._admit_alone()
        binding = SchoolBinding(self._binding.school_id, read_only=True)
        return read(self._engine, binding, self._options, Reading(*_in_reach(text)))

    def _read_with_state(self, text: Text) -> Texts:
        """Read the caller's state and, where that admits them to it, the query for the whole school.

        For `mine` it is that of what is in reach, whose relations are those of the state itself.
        """
        access, token = self._access, self._token
        sql, parameters = text(reach_by(access.own.relations) if access.mine else None)
        condition, its_parameters = token.condition(
            access.permissions,
            named=access.named,
            with_given_password=access.with_given_password,
            own_student=access.own_student,
            own_too=access.mine or access.own == EVERYTHING,
            for_signing_in=access.for_signing_in,
        )
        reading = Reading(sql, parameters, condition, its_parameters)
        found = read(self._engine, self._binding, self._options, reading)
        self._admit(found.state)
        return found

    @staticmethod
    def _read_in_transaction(text: Text) -> Texts:
        return write(current_session().bound_connection(), *_in_reach(text), texts=True)


def _in_reach(text: Text) -> tuple[str, tuple[Any, ...]]:
    """Give the SQL of a query of what is in the caller's reach, and its parameters, with their relations as values."""
    context = request_context()
    sql, parameters = text(context.reach)
    return (sql, parameters) if context.reach is None else context.relations.before(sql, parameters)


def _recheck_school(school_id: UUID) -> None:
    """Check that a school is still open, at a revision that is served; raises the registry's refusal.

    Between the beginning of a transaction and its statements a migration may have been committed.
    """
    try:
        with registry_connection() as connection:
            connection.exec_driver_sql(
                "SELECT registry.enter(%s, %s::text[], NULL)",
                (str(school_id), list(app_state().binding_options.serves)),
            )
    except DBAPIError as error:
        refused = registry_refusal(error)
        if refused is not None:
            raise refused from None
        raise


@contextmanager
def reading_without_token(school_id: UUID) -> Iterator[bool]:
    """Read in a school for whoever asks: each read model in one round trip, read-only. For what is public.

    Where there is no such school, or it can't be entered, another one is read in its place, so that nobody learns from
    the time that it takes. Yields whether it is the school itself: else nothing that is read may be told. Raises
    UnknownSchool where no school can be entered, and when something is read SchoolSuspended and SchoolUpgrading.
    """
    options = app_state().binding_options
    with registry_connection() as connection:
        found = find_open_school(connection, school_id, options.serves)
    if found is None:
        raise UnknownSchool("There is no school that can be entered.")
    binding = SchoolBinding(found, read_only=True)
    with _in_context(binding, None, partial(_read_text, binding)):
        yield found == school_id


@contextmanager
def in_transaction(binding: SchoolBinding, admit: Admit | None = None) -> Iterator[dict[str, Any] | None]:
    """Work in a school in one transaction: commits at the end, rolls back on any error.

    Yields the row of the caller's state, by which `admit` judges them whenever a transaction begins. What was refused
    (`RequestContext.refusals`) is stored either way. For code outside a request, such as sample data and tests,
    `SchoolBinding(school_id)` is enough.
    """
    with _in_context(binding, admit) as context:
        session = current_session()
        state = transaction(session, binding)
        try:
            yield state
            if binding.read_only:
                # What has only read has nothing to commit: closing the session ends its transaction.
                _require_no_entries(context)
            else:
                _commit(session, [*context.audit_entries, *context.refusals], context.with_commit)
        except BaseException:
            session.rollback()
            if context.refusals and not binding.read_only:
                # The transaction is rolled back: only the entries of the refusal are stored.
                context.admit = None
                transaction(session, SchoolBinding(binding.school_id))
                _commit(session, context.refusals)
            raise


def _load_school() -> School:
    """The public details of the school of the transaction under way."""
    return app_state().school(current_school_id())


class _in_context:  # noqa: N801 - reads as a function; a generator would cost each request several times as much
    """Sets the request context, and ends the transaction, if there is one, when the block is left."""

    __slots__ = ("_admit", "_binding", "_known", "_read")

    def __init__(self, binding: SchoolBinding, admit: Admit | None, read: Read | None = None) -> None:
        self._binding, self._admit, self._read = binding, admit, read

    def __enter__(self) -> RequestContext:
        known = context_globals().__dict__
        if known.get("request_context") is not None:
            raise SchoolChosen("A transaction is under way: its school can't be changed.")
        context = RequestContext(
            self._binding, _load_school, admit=self._admit, read=self._read, service_address=service_address
        )
        self._known, known["request_context"] = known, context
        return context

    def __exit__(self, *_error: object) -> None:
        self._known["request_context"] = None
        if db.session.registry.has():
            db.session.close()


def _require_no_entries(context: RequestContext) -> None:
    if context.audit_entries or context.refusals:
        raise RuntimeError("A read-only transaction can't write to the audit log: the view is `audited`.")


def _commit(
    session: RoutedSession,
    entries: list[dict[str, Any]],
    others: Sequence[tuple[str, Any]] = (),
) -> None:
    """Commit a transaction; entries of the audit log, and other statements, go out in one round trip with COMMIT."""
    session.flush()
    last: list[tuple[str, Any]] = []
    if entries:
        last.append(app_state().audit_insertion(request_context(), entries))
    last += others
    if last:
        connection = session.bound_connection()
        dialect: Any = connection.dialect
        write_all(connection, [*last, (dialect.commit_statement(), None)])
    session.commit()


def attempted_username(realm: str, username: str) -> str:
    """Hash the username of an attempt to sign in, and let the access log have it.

    `realm` is a school's id or the token endpoint.
    """
    hashed = hash_username(app_state().verifier.key, realm, username)
    known = context_globals()
    known.username_hash, known.attempt_of = hashed, "client" if realm == TOKEN_ENDPOINT else "user"
    return hashed
