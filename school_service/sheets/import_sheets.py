"""Sheets of new people: the columns, the workbook to fill in, and the reading of names, dates and numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, ClassVar

from sqlalchemy import Column as DatabaseColumn
from sqlalchemy import Date

from school_service.core.columns import NAME_LENGTH
from school_service.core.database import current_school
from school_service.core.errors import Invalid
from school_service.core.facts import Heading
from school_service.core.genders import listed_gender
from school_service.sheets.charsets import charset_errors, charset_warnings
from school_service.sheets.columns import CellType, Column, SuggestedValues
from school_service.sheets.days import read_days
from school_service.sheets.phone_numbers import country_of, read_numbers
from school_service.sheets.row_errors import INVALID, REQUIRED, RowError
from school_service.sheets.sheet_reader import Row, SheetContent, day_remedy, too_long
from school_service.sheets.sheet_writer import Table, write_workbook
from school_service.sheets.uploads import Matched, SheetUpload
from tenants.names import composed

PHONES = (
    "phone",
    "phone no",
    "phone number",
    "telephone",
    "telephone number",
    "tel",
    "gsm",
    "gsm number",
    "mobile",
)
EMAILS = ("email", "e mail", "email address")
"""Usual headings of a column of telephone numbers, and of one of e-mail addresses."""

Validate = Callable[[dict[str, Any]], dict[str, Any]]
"""Validates a record as the POST of one validates its body; raises Invalid, which names the fields."""


def column_of(of: DatabaseColumn[Any], heading: Heading) -> Column:
    """Make the column of a sheet for a column of the database with a heading."""
    return Column(
        of.name,
        CellType.DAY if isinstance(of.type, Date) else CellType.TEXT,
        required=heading.required,
        rule=SuggestedValues(heading.suggested) if heading.suggested else None,
        most=getattr(of.type, "length", None) or NAME_LENGTH,
        width=heading.width,
        also=heading.others,
    )


def write_template(title: str, meanings: Mapping[Column, str]) -> bytes:
    """Write the workbook to fill in; its sheet Help tells the meaning of each column."""
    rows = [
        {"column": column.name, "needed": "yes" if column.required else "no", "what to write": meaning}
        for column, meaning in meanings.items()
    ]
    help_columns = [Column(name, locked=True) for name in ("column", "needed", "what to write")]
    return write_workbook([Table(title, [*meanings]), Table("Help", help_columns, rows)])


@dataclass(kw_only=True)
class PeopleUpload(SheetUpload[Matched]):
    """The upload of new people.

    `days`, `phone_numbers` and `names` are its columns of these kinds, `identity` those naming a person in an error;
    the last of them stands in brackets if it is `number`. `most` is the length of each column. `impossible_days` are
    the messages on a date that is one. `secret` columns are not shown.
    """

    validate: Validate
    dry_run: bool
    dates: str | None = None
    replaced: Counter[tuple[str, str]] = field(default_factory=Counter)

    days: ClassVar[tuple[str, ...]]
    phone_numbers: ClassVar[tuple[str, ...]]
    names: ClassVar[tuple[str, ...]]
    most: ClassVar[Mapping[str, int]]
    impossible_days: ClassVar[Collection[str]]
    number: ClassVar[str | None] = None
    secret: ClassVar[Collection[str]] = ()

    def run(self, file: IO[bytes]) -> dict[str, Any]:
        """Store the people of a sheet, all or none; counts its rows, and the people created of them."""
        counts = super().run(file)
        return {"rows": counts["rows"], "created": counts["created"], "errors": [], **self.answer}

    def read_texts(self, content: SheetContent) -> list[RowError]:
        """Read texts as people write them, and find the errors in them.

        Texts in a wrong character set are errors; dates written as texts are read, numbers get their lost 0, and words
        for a gender are replaced.
        """
        rows = content.rows
        days = {column: read_days(rows, column, self.dates) for column in self.days}
        country = country_of(current_school().phone_number)
        numbers = {column: read_numbers(rows, column, country) for column in self.phone_numbers}
        of_numbers = (warning for column, each in numbers.items() for warning in each.warnings(column))
        of_days = (warning for column, each in days.items() for warning in each.warnings(column))
        for warning in (*of_days, *of_numbers, *charset_warnings(rows, self.names)):
            self.warn(warning)
        wrong = [error for each in days.values() for error in each.errors]
        wrong += [error for each in numbers.values() for error in each.errors]
        errors = [*content.errors, *charset_errors(rows, names=self.names), *wrong]
        for row in rows:
            errors.extend(self._replace_gender(row))
        return errors

    def tell_replaced(self) -> None:
        """Name in the answer the values stored as another."""
        if self.replaced:
            self.answer["replaced_values"] = [
                {"column": "gender", "value": value, "stored": stored, "rows": rows}
                for (value, stored), rows in self.replaced.items()
            ]

    def validated(
        self,
        rows: Sequence[Row],
        errors: list[RowError],
        record: Callable[[Mapping[str, Any]], dict[str, Any]],
    ) -> list[dict[str, Any]]:
        """Validate the record of each row; adds to `errors` those of cells without one so far."""
        told = {(error.row, error.column) for error in errors}
        people = []
        for row in rows:
            try:
                people.append(self.validate(record(row.values)))
            except Invalid as refused:
                refusals = self._row_errors(row, refused.errors)
                errors.extend(error for error in refusals if (error.row, error.column) not in told)
        return people

    def people(self, content: SheetContent) -> dict[int, str]:
        """Name the person of each row for its errors."""
        people = {}
        for row in content.rows:
            first, last = (str(row.values.get(name, "")).strip() for name in ("first_name", "last_name"))
            number = str(row.values.get(self.number, "")).strip() if self.number else ""
            people[row.number] = " ".join(filter(None, (first, last, f"({number})" if number else "")))
        return people

    def _replace_gender(self, row: Row) -> Iterator[RowError]:
        """Replace the gender of a row by its listed value, and count the replacement."""
        written = str(row.values.get("gender", "")).strip()
        if not written:
            return
        listed = listed_gender(written)
        if listed is None:
            yield RowError(
                row.number, "gender", INVALID, "is no gender that is listed", written, "write FEMALE or MALE"
            )
            del row.values["gender"]
            return
        row.values["gender"] = listed
        if written != listed:
            self.replaced[written, listed] += 1

    def _row_errors(self, row: Row, errors: Mapping[str, Any], prefix: str = "") -> Iterator[RowError]:
        """Name the refused fields by column: the guardian's `full_name` is `guardian_full_name`."""
        for name, messages in errors.items():
            column = self.column_named(prefix + name)
            if isinstance(messages, Mapping):
                yield from self._row_errors(row, messages, f"{prefix}{name}_")
            elif column not in row.bad:
                yield self._cell_error(row, column, " ".join(map(str, messages)))

    def column_named(self, field: str) -> str:
        """Give the column of a field, with the names of its records before it: of the same name, unless overridden."""
        return field

    def _cell_error(self, row: Row, column: str, message: str) -> RowError:
        """Turn the schema's message on a field into the error of a cell."""
        value = row.values.get(column)
        if value is None:
            return RowError(row.number, column, REQUIRED, f"{column} is missing")
        if column in self.days and message not in self.impossible_days:
            return RowError(row.number, column, INVALID, "is no date", str(value), day_remedy(str(value)))
        most = self.most.get(column, 0)
        if isinstance(value, str) and len(composed(value, most)) > most:
            fault = too_long(value, most)
            return RowError(row.number, column, INVALID, fault.problem, fault.value, fault.remedy)
        reason = message[:1].lower() + message[1:].rstrip(".")
        shown = None if column in self.secret else str(value)
        problem = f"the {column} is not accepted" if shown is None else "is not accepted"
        return RowError(row.number, column, INVALID, problem, shown, reason)
