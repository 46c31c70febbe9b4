"""The database as models and services see it: the base of models, and the session with its request context."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar
from uuid import UUID

from flask import Flask, current_app, g, has_app_context
from flask_sqlalchemy import SQLAlchemy
from flask_sqlalchemy import session as flask_session
from sqlalchemy import Connection, DateTime, MetaData, event
from sqlalchemy.engine import Engine
from sqlalchemy.orm import DeclarativeBase, Mapped, ORMExecuteState, registry

from school_service.core.columns import primary_key
from school_service.core.reach import CallersRelations, Reach, refuse_unjudged
from tenants.connections.binding import SchoolBinding
from tenants.connections.registry import RegistryConnections
from tenants.connections.sessions import SchoolSession, transaction
from tenants.connections.statements import Texts
from tenants.placement import Placement
from tenants.registry.schools import NAMING_CONVENTION, School

Found = TypeVar("Found")

# Flask's own functions below its proxies: reading through a proxy is five calls, and a request does it dozens of times.
current_application: Callable[[], Flask] = current_app._get_current_object  # type: ignore[attr-defined]
context_globals: Callable[[], Any] = g._get_current_object

HEALTH_BIND = "health"
"""The name of the engine for checks whether the database answers, and for nothing else."""

METRICS_BIND = "metrics"
"""The name of the engine for counting the schools for the metrics, if they are served."""


class Model(DeclarativeBase):
    """Base of the records of a school. Table names carry no schema: the transaction's search_path gives it."""

    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    registry = registry(type_annotation_map={datetime: DateTime(timezone=True)})


class Actor(Protocol):
    """The actor of a change, as the audit log names them, such as a `Principal`."""

    @property
    def actor(self) -> str:
        """The id of the user or client."""

    @property
    def actor_name(self) -> str:
        """The name of the user, or the client's id."""


Text = Callable[[Reach | None], tuple[str, tuple[Any, ...]]]
"""Gives the SQL of a query for a reach, and the values of its parameters."""

NO_RELATIONS = CallersRelations(())


@dataclass(slots=True)
class RequestContext:
    """The request served by a transaction.

    `load_school` gives the school's public details. `principal`, `request_id` and the client's network `address` are
    None outside of a request, as in the demo. `audit_entries` go out with COMMIT, in one round trip; `refusals` are
    entries of the audit log, stored even if the transaction is rolled back (`features.audit.service` fills both).
    `admit` judges the caller by their state whenever a transaction has begun. `read` sends a SELECT of texts together
    with the binding while no transaction has begun yet; None if one begins the request. `reach` is None for callers
    with the whole school in reach, else it names those of the caller's `relations` to count. `with_commit` are further
    statements to go out with COMMIT, each with its parameters. `service_address` gives the address of the service, for
    links in answers. `change_set` is the id of the change set of the transaction, once an entry of the log
    has it; a transaction of `refused` entries has none.
    """

    binding: SchoolBinding
    load_school: Callable[[], School]
    principal: Actor | None = None
    request_id: str | None = None
    address: str | None = None
    audit_entries: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[dict[str, Any]] = field(default_factory=list)
    admit: Callable[[Mapping[str, Any] | None], object] | None = None
    read: Callable[[Text], Texts] | None = None
    reach: Reach | None = None
    relations: CallersRelations = NO_RELATIONS
    with_commit: list[tuple[str, Any]] = field(default_factory=list)
    service_address: Callable[[], str] = str
    change_set: UUID | None = None
    refused: bool = False

    @property
    def school_id(self) -> UUID:
        """The school of the transaction."""
        return self.binding.school_id


class RoutedSession(SchoolSession, flask_session.Session):
    """The session of the application: on the engine of the login serving its school.

    In a reading request, its transaction begins when something asks for one.
    """

    def engine_of(self, school_id: UUID) -> Engine:
        """Find the engine of the current application."""
        return engine_of(school_id)

    def forget_engine(self, school_id: UUID) -> None:
        """Forget the place of a school."""
        forget_engine(school_id)

    def get_bind(self, *arguments: Any, **options: Any) -> Engine:
        """Choose the engine by the school alone; raises NoSchool."""
        if self.binding is None:
            context: RequestContext | None = g.get("request_context")
            if context is not None and context.read is not None:
                self.binding = context.binding
        return super().get_bind(*arguments, **options)

    def after_binding(self, state: dict[str, Any] | None) -> None:
        """Judge the caller by their state at the beginning of a transaction."""
        context: RequestContext | None = g.get("request_context")
        if context is not None and context.admit is not None:
            context.admit(state)


def placement() -> Placement:
    """The placement of the schools of the current application."""
    placement: Placement = current_application().extensions["placement"]
    return placement


def registry_connection() -> AbstractContextManager[Connection]:
    """Lend a connection for the registry's own statements; raises RegistrySilent."""
    registry: RegistryConnections = current_application().extensions["registry"]
    return registry.connect()


def engine_of(school_id: UUID) -> Engine:
    """Find the engine of the login serving a school, in the current application."""
    return placement().engine_of(school_id)


def forget_engine(school_id: UUID) -> None:
    """Forget the place of a school, so that it is asked for again."""
    placement().forget(school_id)


def table_names(tables: Collection[str], school_id: UUID | None = None) -> Mapping[str, str] | None:
    """Name the tables of a school as its server names them; by default those of the transaction's school.

    None if the tables' own names are to be used: on a single server, and outside of the application's transactions.
    """
    placement: Placement | None = (
        current_application().extensions.get("placement") if has_app_context() else None
    )
    if placement is None or not placement.several_servers:
        return None
    if school_id is None:
        context: RequestContext | None = g.get("request_context")
        if context is None:
            return None
        school_id = context.school_id
    return placement.table_names(school_id, tables)


db = SQLAlchemy(model_class=Model, session_options={"expire_on_commit": False, "class_": RoutedSession})


class Record(db.Model):
    """Base of the records with a uuid of their own."""

    __abstract__ = True

    id: Mapped[UUID] = primary_key()


def current_session() -> RoutedSession:
    """The session of the request, or of the application context."""
    return db.session()  # type: ignore[return-value]


def request_context() -> RequestContext:
    """The context of the transaction under way."""
    context: RequestContext | None = context_globals().__dict__.get("request_context")
    if context is None:
        raise RuntimeError("No transaction is under way: it begins in web.transactions.in_transaction.")
    return context


def current_reach() -> Reach | None:
    """The reach of the request's caller; None if it is the whole school, and outside of a request.

    In a reading request it is known once a transaction has begun: so one is begun here, if none is under way.
    """
    context: RequestContext | None = g.get("request_context") if has_app_context() else None
    if context is None:
        return None
    if context.read is not None and not current_session().in_transaction():
        current_session().bound_connection()
    return context.reach


@event.listens_for(RoutedSession, "do_orm_execute")
def _require_judgement(execution: ORMExecuteState) -> None:
    """Refuse a SELECT without a declaration of its reads for the permission OWN.

    The option `judged`, set by a function of `core.narrowing`, tells of this declaration.
    """
    if execution.is_select and not (execution.is_relationship_load or execution.is_column_load):
        reach = current_reach()
        if reach is not None and not execution.execution_options.get("judged"):
            refuse_unjudged(str(execution.statement))


def current_school() -> School:
    """The school of the transaction, with its public details (id, name, address, …)."""
    return request_context().load_school()


def outside_transaction(work: Callable[[], Found]) -> Found:
    """Run long work without need of the database, such as hashing a password, without holding a connection.

    The transaction is rolled back first, so it must have written nothing. Another one begins afterwards, and the caller
    is judged anew. Its locks are gone, and the records read may have changed and must be read again.
    """
    session, context = current_session(), request_context()
    if session.new or session.dirty or session.deleted or context.audit_entries:
        raise RuntimeError("Something was written in this transaction, which would be lost.")
    session.rollback()
    session.expunge_all()
    result = work()
    transaction(session, context.binding)
    return result
