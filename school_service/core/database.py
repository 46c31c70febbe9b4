"""The extensions, unbound: the factory binds them to an application."""

from __future__ import annotations

from uuid import UUID

from flask import Flask, current_app
from flask_jwt_extended import JWTManager
from flask_sqlalchemy import SQLAlchemy
from flask_sqlalchemy import session as flask_session
from limits.errors import ConfigurationError
from limits.storage import storage_from_string
from limits.strategies import MovingWindowRateLimiter, RateLimiter
from sqlalchemy import MetaData
from sqlalchemy.engine import Engine
from sqlalchemy.orm import DeclarativeBase

from school_service.config import ConfigError
from tenants.connections.engines import SchoolSession
from tenants.placement import Placement
from tenants.registry.schools import NAMING

STORAGE_PATIENCE = 2.0  # seconds that counting a try may take


class Model(DeclarativeBase):
    """Base of the records of a school. Table names carry no schema: the transaction's search_path gives it."""

    metadata = MetaData(naming_convention=NAMING)


class RoutedSession(SchoolSession, flask_session.Session):
    """The session of the application: on the engine of its school's login."""

    def engine_of(self, school_id: UUID) -> Engine:
        """Find the engine of the current application."""
        placement: Placement = current_app.extensions["placement"]
        return self._db.engines[engine_key(placement, school_id)]


def engine_key(placement: Placement, school_id: UUID) -> str | None:
    """Name the engine of a school among `db.engines`: its login, or None where one engine serves them all."""
    return placement.login_of(school_id) if placement.divided else None


class Limiter:
    """Counts tries with `limits`, the engine of Flask-Limiter, in a moving window.

    Without that extension's hooks: they would cost every request what only signing in needs.
    """

    def init_app(self, app: Flask) -> None:
        """Count where RATELIMIT_STORAGE_URI says: memory:// or a Redis address. Raises ConfigError."""
        patience = {"socket_connect_timeout": STORAGE_PATIENCE, "socket_timeout": STORAGE_PATIENCE}
        try:
            storage = storage_from_string(
                app.config["RATELIMIT_STORAGE_URI"], wrap_exceptions=True, **patience
            )
        except (ConfigurationError, ValueError) as error:
            raise ConfigError(f"RATE_LIMIT_STORAGE can't be used: {error}") from None
        app.extensions["limiter"] = MovingWindowRateLimiter(storage)

    @property
    def limiter(self) -> RateLimiter:
        """The current application's counters."""
        found: RateLimiter = current_app.extensions["limiter"]
        return found


db = SQLAlchemy(model_class=Model, session_options={"expire_on_commit": False, "class_": RoutedSession})
jwt = JWTManager()
limiter = Limiter()
