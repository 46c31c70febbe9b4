"""The same ids and moments in each run: ids follow from the act that draws them, and the clock is set."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from school_service.core import records
from tenants import clock


class Repeatable:
    """The moment of the clock, and the bytes of random ids.

    `uuid4` and `new_ids` draw from two streams, which begin anew with each act: neither depends on the other, nor on
    the acts before.
    """

    def __init__(self) -> None:
        self.moment = datetime(2024, 9, 9, 7, tzinfo=UTC)
        self._acts: Counter[str] = Counter()
        self.begin("the beginning")

    def begin(self, act: str) -> None:
        """Begin an act: its ids follow from its name, and from the number of times that it was done before."""
        self._acts[act] += 1
        self._uuid4 = Random(f"{act} {self._acts[act]}: uuid4")
        self._names = Random(f"{act} {self._acts[act]}: names")
        self._new_ids = Random(f"{act} {self._acts[act]}: new_ids")

    def wait(self, minutes: int = 7) -> None:
        """Let time pass."""
        self.moment += timedelta(minutes=minutes)

    def go_to(self, day: str, hour: int = 8) -> None:
        """Go to a later day, `2025-09-15`, at an hour in UTC; raises ValueError for an earlier moment."""
        moment = datetime.fromisoformat(day).replace(hour=hour, tzinfo=UTC)
        if moment < self.moment:
            raise ValueError(f"{moment} is before {self.moment}.")
        self.moment = moment

    def draw_uuid4(self, number: int) -> bytes:
        """Draw so many bytes for `uuid4`; SQLAlchemy's names of subqueries, as statements are built, draw others."""
        of = sys._getframe(2).f_globals["__name__"]
        return (self._names if of == "sqlalchemy.sql.selectable" else self._uuid4).randbytes(number)

    def draw_new_ids(self, number: int) -> bytes:
        """Draw so many bytes for `new_ids`."""
        return self._new_ids.randbytes(number)


@contextmanager
def repeatable() -> Iterator[Repeatable]:
    """Let all that the program makes in this process be repeatable, for the length of the block."""
    made = Repeatable()

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return made.moment

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "datetime", Clock)
        # `uuid4` makes its ids of `os.urandom`.
        patch.setattr(os, "urandom", made.draw_uuid4)
        patch.setattr(records, "urandom", made.draw_new_ids)
        yield made
