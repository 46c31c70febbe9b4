"""The result settings of a school, stored without a request: the row of a new school gives way to another."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete

from school_service.core.database import db
from school_service.features.scores.models import DEFAULTS, ResultSettings


def store_settings(**values: Any) -> None:
    """Store settings in the transaction: as of a school without a row, apart from these."""
    db.session.execute(delete(ResultSettings))
    db.session.add(ResultSettings(**{**DEFAULTS, **values}))
    db.session.flush()
