"""The extensions, unbound: the factory binds them to an application."""

from __future__ import annotations

from flask import Flask, current_app
from flask_jwt_extended import JWTManager
from flask_sqlalchemy import SQLAlchemy
from limits.errors import ConfigurationError
from limits.storage import storage_from_string
from limits.strategies import MovingWindowRateLimiter, RateLimiter
from sqlalchemy import MetaData
from sqlalchemy.orm import DeclarativeBase

from school_service.config import ConfigError

STORAGE_PATIENCE = 2.0  # seconds that counting a try may take

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Model(DeclarativeBase):
    """Base of the records of a school. Table names carry no schema: the transaction's search_path gives it."""

    metadata = MetaData(naming_convention=NAMING)


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


db = SQLAlchemy(model_class=Model, session_options={"expire_on_commit": False})
jwt = JWTManager()
limiter = Limiter()
