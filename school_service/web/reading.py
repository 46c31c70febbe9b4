"""Reading requests: the query goes out with the state, and once more in reach for callers let in by relations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError

from school_service.auth.policies import Policy
from school_service.auth.principal import VerifiedToken
from school_service.core.database import (
    Text,
    current_session,
    db,
    engine_of,
    forget_engine,
    registry_connection,
    request_context,
)
from school_service.core.reach import reach_by
from school_service.web.admitting import admit
from school_service.web.app_state import app_state
from school_service.web.transactions import in_context, require_no_entries
from tenants.connections.binding import BindingOptions, Reading, SchoolBinding
from tenants.connections.statements import Texts, is_dead, read, write
from tenants.exceptions import SchoolElsewhere, TenancyError, UnknownSchool
from tenants.registry.schools import find_open_school


class ReadingRequest:
    """A reading request: bound to its school when it first asks the database for something.

    A read model goes together with the binding, in one round trip: it also reads the principal's state, and runs the
    read model only if the state admits them. All else begins a transaction, bound to the school, and admits the
    principal before its first statement. So the order is always token, school, permission, and only then the result of
    the view: if it raised before, the principal is judged first.
    """

    def __init__(
        self, token: VerifiedToken, binding: SchoolBinding, policy: Policy, options: BindingOptions
    ) -> None:
        self._token, self._binding, self._policy = token, binding, policy
        self._options = options
        self._judged = False

    def run(self, view: Callable[[], Any]) -> Any:
        """Run the view, once more if its connection had died in the pool or its school has been moved.

        Reading twice does no harm.
        """
        with in_context(self._binding, self._admit, self._read) as context:
            try:
                answer = self._run(view)
            except (DBAPIError, SchoolElsewhere) as error:
                if isinstance(error, SchoolElsewhere):
                    forget_engine(self._binding.school_id)
                elif not is_dead(error):
                    raise
                db.session.rollback()
                answer = self._run(view)
            require_no_entries(context)
            return answer

    def _run(self, view: Callable[[], Any]) -> Any:
        try:
            answer = view()
        except UnknownSchool:
            # The binding says so, or the school's details did, which are read by themselves: then the binding decides
            # about the answer.
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

    def _admit(self, state: Mapping[str, Any] | None) -> None:
        self._judged = True
        admit(self._token, self._policy, state)

    def _admit_alone(self) -> None:
        """Judge the principal, unless it was done before."""
        if not self._judged:
            self._admit(read(self._engine, self._binding, self._options).state)

    def _read(self, text: Text) -> Texts:
        if db.session.registry.has() and current_session().in_transaction():
            return self._read_in_transaction(text)
        if self._binding.state is not None and not self._judged:
            answer = self._read_with_state(text)
            if self._policy.reads_own or request_context().reach is None:
                return answer
            # The condition was false: the query was not run for a caller let in by relations, which are known now.
        else:
            # A client's grant is read by the login itself: a query of the school can not go together with it.
            self._admit_alone()
        binding = SchoolBinding(self._binding.school_id, read_only=True)
        return read(self._engine, binding, self._options, Reading(*_in_reach(text)))

    def _read_with_state(self, text: Text) -> Texts:
        """Read the caller's state and, if it admits them, the answer of the first message.

        The answer is of the query for the whole school, or of its rows in reach by the relations of the state itself.
        """
        policy = self._policy
        sql, parameters = text(reach_by(policy.own.relations) if policy.reads_own else None)
        condition, its_parameters = policy.condition(self._token)
        reading = Reading(sql, parameters, condition, its_parameters)
        answer = read(self._engine, self._binding, self._options, reading)
        self._admit(answer.state)
        return answer

    @staticmethod
    def _read_in_transaction(text: Text) -> Texts:
        return write(current_session().bound_connection(), *_in_reach(text), texts=True)


def _in_reach(text: Text) -> tuple[str, tuple[Any, ...]]:
    """Give the SQL of a query of the rows in the caller's reach, and its parameters, with their relations as values."""
    context = request_context()
    sql, parameters = text(context.reach)
    return (sql, parameters) if context.reach is None else context.relations.before(sql, parameters)


def write_alone(sql: str, parameters: tuple[Any, ...]) -> Texts:
    """Send statements in a message that is a transaction of its own, as a reading request has none that writes.

    The last one answers texts. The request has begun no transaction.
    """
    school_id = request_context().school_id
    binding = SchoolBinding(school_id)
    return read(engine_of(school_id), binding, app_state().binding_options, Reading(sql, parameters))


@contextmanager
def reading_without_token(school_id: UUID) -> Iterator[bool]:
    """Read in a school for anybody: each read model in one round trip, read-only. For public data.

    If there is no such school, or it can't be entered, another one is read in its place, so that nobody learns from the
    time it takes. Yields whether it is the school itself: else nothing read may be told. Raises UnknownSchool if no
    school can be entered, and when something is read SchoolSuspended and SchoolUpgrading.
    """
    options = app_state().binding_options
    with registry_connection() as connection:
        open_school = find_open_school(connection, school_id, options.serves)
    if open_school is None:
        raise UnknownSchool("There is no school that can be entered.")
    binding = SchoolBinding(open_school, read_only=True)
    with in_context(binding, None, partial(read_text, binding)):
        yield open_school == school_id


def read_text(binding: SchoolBinding, text: Text) -> Texts:
    """Read in a school for anybody, once more if the school has been moved."""
    reading, options = Reading(*text(None)), app_state().binding_options
    try:
        return read(engine_of(binding.school_id), binding, options, reading)
    except SchoolElsewhere:
        forget_engine(binding.school_id)
        return read(engine_of(binding.school_id), binding, options, reading)
