"""Erasing a person from registers: words about a student, and the name of a person as author of marks and corrections.

The registers are locked in order of id before the person is (`locking`): marking locks them before the students, too.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Select, Text, cast, or_, select, update

from school_service.core.facts import emptied
from school_service.core.records import lock_in_order
from school_service.core.statements import Executable, statement
from school_service.features.attendance.models import Mark, Register

_WORDED = or_(Mark.note.is_not(None), Mark.reason.is_not(None))


def locking(account: Any, student_id: Any = None) -> Select[Any]:
    """Lock registers marked or corrected by an account, by its id, and those with words about a student."""
    actor = cast(account, Text)
    corrected = select(Mark.register_id).where(Mark.corrected_by == actor)
    concerned = [Register.changed_by == actor, Register.id.in_(corrected)]
    if student_id is not None:
        worded = select(Mark.register_id).where(Mark.student_id == student_id, _WORDED)
        concerned.append(Register.id.in_(worded))
    return lock_in_order(Register, or_(*concerned))


def without_name(actor: str, name: str) -> tuple[Executable, ...]:
    """Make the statements to replace the name of the author of marks and corrections, by their id, by another."""
    return _rename_in_registers(actor, name), _rename_in_marks(actor, name)


@statement
def without_words(student_id: UUID) -> Any:
    """Make the statement to empty the notes and reasons of a student's marks; codes and kinds stay."""
    return update(Mark).where(Mark.student_id == student_id, _WORDED).values(emptied(Mark))


@statement
def _rename_in_registers(actor: str, name: str) -> Any:
    return update(Register).where(Register.changed_by == actor).values(changed_by_name=name)


@statement
def _rename_in_marks(actor: str, name: str) -> Any:
    return update(Mark).where(Mark.corrected_by == actor).values(corrected_by_name=name)
