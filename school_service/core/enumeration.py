"""The few values that a text can have, under one name."""

from __future__ import annotations

from typing import Self


class Enumeration(tuple[str, ...]):
    """The values of a text, such as a status; the OpenAPI document has one schema for them, of this name."""

    name: str

    def __new__(cls, name: str, *values: str) -> Self:
        """Name the values, in the order in which they are shown."""
        made = super().__new__(cls, values)
        made.name = name
        return made
