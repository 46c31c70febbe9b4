"""The extensions, unbound: the factory binds them to an application."""

from __future__ import annotations

from flask_jwt_extended import JWTManager
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import MetaData
from sqlalchemy.orm import DeclarativeBase

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


db = SQLAlchemy(model_class=Model, session_options={"expire_on_commit": False})
jwt = JWTManager()
limiter = Limiter(get_remote_address, headers_enabled=False)
