"""The download of a sheet, noted in the sheet: the moment, the values stored then, and names as they were.

A moment alone would not do: a change begun before the download and committed after it bears an earlier moment. So an
upload compares the values themselves. They are in hidden rows of Details, out of reach of sorting.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from school_service.core.errors import Invalid
from school_service.sheets.columns import normalized_name

DOWNLOADED = "Downloaded"
STORED = "Stored then"
CHANGED_DETAILS = (
    "The sheet Details has been changed, so that nobody can tell what was stored when the sheet was downloaded: "
    "download it again, and fill that one in."
)

_PART_LENGTH = 30_000  # characters of a cell; Excel takes 32,767


@dataclass(frozen=True, slots=True)
class Download:
    """The moment of a download, as text to the microsecond, and the values stored then, by admission number.

    `names` are the names of records in the sheet, by id: a record may have got another name since.
    """

    moment: str
    stored: Mapping[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)

    def values_of(self, admission_number: str) -> Mapping[str, Any]:
        """Answer the values of a student stored then, by name, for a sheet with several; raises Invalid."""
        values = self.stored.get(admission_number) or {}
        if not isinstance(values, dict):
            raise Invalid(CHANGED_DETAILS)
        return values


def download_details(
    moment: datetime, time_zone: str, stored: Mapping[str, Any], names: Mapping[str, str] | None = None
) -> tuple[tuple[str, str], list[tuple[str, str]]]:
    """Give the pairs for Details: the moment by the school's clock, to be shown, and the stored values, to be hidden.

    Hidden too are the `names` of records in the sheet, by id: it is understood when they have others.
    """
    said = {"moment": moment.isoformat(), "stored": stored, **({"names": names} if names else {})}
    written = json.dumps(said, separators=(",", ":"))
    # ASCII without a space: a part loses none of its ends to the trimming of cells, and no half of a pair.
    text = written.replace(" ", "\\u0020")
    parts = [text[start : start + _PART_LENGTH] for start in range(0, len(text), _PART_LENGTH)]
    hidden = [(_label(number), part) for number, part in enumerate(parts, 1)]
    return (DOWNLOADED, f"{moment.astimezone(ZoneInfo(time_zone)):%Y-%m-%d %H:%M:%S %Z}"), hidden


def read_download(details: Mapping[str, str]) -> Download | None:
    """Find the download in the pairs of `read_details`; None if the sheet was not downloaded. Raises Invalid."""
    text = "".join(_parts(details))
    if not text:
        return None
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise Invalid(CHANGED_DETAILS) from None
    if not (
        isinstance(document, dict)
        and isinstance(document.get("moment"), str)
        and isinstance(document.get("stored"), dict)
        and isinstance(names := document.get("names", {}), dict)
        and all(isinstance(name, str) for name in names.values())
    ):
        raise Invalid(CHANGED_DETAILS)
    return Download(document["moment"], document["stored"], names)


def _parts(details: Mapping[str, str]) -> Iterator[str]:
    number = 1
    while part := details.get(normalized_name(_label(number))):
        yield part
        number += 1


def _label(number: int) -> str:
    return f"{STORED} {number}"
