"""Form teachers."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import created_at
from school_service.core.database import db


class FormTeacher(db.Model):
    """That an employee looks after a batch, and since when."""

    __tablename__ = "form_teachers"

    batch_id: Mapped[UUID] = mapped_column(ForeignKey("batches.id"), primary_key=True)
    employee_id: Mapped[UUID] = mapped_column(ForeignKey("employees.id"), primary_key=True, index=True)
    created_at: Mapped[datetime] = created_at()
