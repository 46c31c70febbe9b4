"""What erasing a person takes out of registers: words about a student, and the name of whoever marked or corrected.

The registers are locked in the order of their ids before their marks are written: so there is no deadlock with others.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import or_, select, update

from school_service.core.statements import Executable, statement
from school_service.features.attendance.models import Mark, Register

_WORDED = or_(Mark.note.is_not(None), Mark.reason.is_not(None))


def without_words(student_id: UUID) -> tuple[Executable, ...]:
    """Make the statements that empty the notes and reasons of a student's marks; codes and kinds stay."""
    return _lock_registers_of(student_id), _empty_words(student_id)


def without_name(actor: str, name: str) -> tuple[Executable, ...]:
    """Make the statements that replace the name of whoever marked and corrected, by their id, by another."""
    return _lock_registers_by(actor), _rename_in_registers(actor, name), _rename_in_marks(actor, name)


@statement
def _lock_registers_of(student_id: UUID) -> Any:
    worded = select(Mark.register_id).where(Mark.student_id == student_id, _WORDED)
    return _locked(Register.id.in_(worded))


@statement
def _empty_words(student_id: UUID) -> Any:
    return update(Mark).where(Mark.student_id == student_id, _WORDED).values(note=None, reason=None)


@statement
def _lock_registers_by(actor: str) -> Any:
    corrected = select(Mark.register_id).where(Mark.corrected_by == actor)
    return _locked(or_(Register.changed_by == actor, Register.id.in_(corrected)))


@statement
def _rename_in_registers(actor: str, name: str) -> Any:
    return update(Register).where(Register.changed_by == actor).values(changed_by_name=name)


@statement
def _rename_in_marks(actor: str, name: str) -> Any:
    return update(Mark).where(Mark.corrected_by == actor).values(corrected_by_name=name)


def _locked(condition: Any) -> Any:
    return select(Register.id).where(condition).order_by(Register.id).with_for_update(key_share=True)
