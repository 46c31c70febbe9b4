"""The steps of an upload, in one order for all sheets.

These are: find the record, open, details, judge the caller by the rows, lock, match, store, count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, partial
from typing import IO, Any, Generic, TypeVar

from school_service.core.database import request_context
from school_service.core.errors import Invalid
from school_service.core.priority import give_way
from school_service.core.shares import Shares
from school_service.sheets.sheet_files import SheetFile, open_sheets
from school_service.sheets.sheet_reader import SheetContent

NO_ROWS = "The sheet has a header and no rows: nothing is filled in."

Matched = TypeVar("Matched")

# Reading and judging rows takes Python's one interpreter: more sheets at once would not be read sooner, but every other
# request would wait for as many turns of it. A school has one of the two, so that another never waits for it alone.
# Several workers have an interpreter each, and as many places together. An export of all records takes one of them.
sheet_turns = Shares(1, total=2, waiting=100, patience=20.0, name="sheets", of_machine=True, grows=True)


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The numbers of rows with something new, with changes of stored values, and with mere repetitions."""

    created: int
    updated: int = 0
    unchanged: int = 0

    def of_rows(self, rows: int) -> dict[str, int]:
        """Count a sheet of so many rows: rows with nothing to store were blank."""
        return {
            "rows": rows,
            "created": self.created,
            "updated": self.updated,
            "unchanged": self.unchanged,
            "blank": rows - self.created - self.updated - self.unchanged,
        }


class SheetUpload(ABC, Generic[Matched]):
    """The upload of a sheet: each sheet fills in the steps, and `run` takes them in their order.

    A step may add members to `answer`.
    """

    @cached_property
    def answer(self) -> dict[str, Any]:
        """The answer of the upload beside the counts of rows."""
        return {}

    def warn(self, text: str) -> None:
        """Tell the caller something in the answer's `warnings`: a whole sentence."""
        self.answer.setdefault("warnings", []).append(text)

    def run(self, file: IO[bytes]) -> dict[str, Any]:
        """Store the rows of a sheet, all or none, and count them. Raises Invalid, TooLarge, InvalidRows and Busy.

        The answer names the unknown columns, if there are any, and warns: nothing was read of them.
        """
        school_id = request_context().school_id
        self.find_record()
        with sheet_turns.of(school_id):
            content = give_way(partial(self._read, file))
        if not content.rows:
            raise Invalid(NO_ROWS)
        self.judge(content)
        # Nothing is locked before the file has proved to be such a sheet: reading it takes long. And nobody waits for
        # a lock while others wait for their turn to compute.
        self.lock()
        with sheet_turns.of(school_id):
            matched = self.match(content)
        if content.ignored:
            self.answer["ignored_columns"] = content.ignored
            columns = "column" if len(content.ignored) == 1 else "columns"
            self.warn(f"Nothing was read of the {columns} {', '.join(content.ignored)}: not known.")
        return {**self.store(matched).of_rows(len(content.rows)), **self.answer}

    def _read(self, file: IO[bytes]) -> SheetContent:
        workbook = open_sheets(file)
        self.read_details(workbook)
        return self.read_rows(workbook)

    def find_record(self) -> None:
        """Raise NotFound unless the record of the sheet is in the caller's reach: no file is read for it then."""

    def read_details(self, workbook: SheetFile) -> None:
        """Find the record of the sheet. Raises Invalid for the sheet of another."""

    @abstractmethod
    def read_rows(self, workbook: SheetFile) -> SheetContent:
        """Read the rows by column. Raises Invalid, and InvalidRows for a bad header."""

    def judge(self, content: SheetContent) -> None:
        """Raise Forbidden unless the caller may do as the rows say, in a dry run too."""

    def lock(self) -> None:
        """Lock the records to be compared with the rows: they must not change meanwhile."""

    @abstractmethod
    def match(self, content: SheetContent) -> Matched:
        """Validate the rows, and find the record of each. Raises InvalidRows with the errors of the bad rows."""

    @abstractmethod
    def store(self, matched: Matched) -> RowCounts:
        """Store the rows, and count the changes."""
