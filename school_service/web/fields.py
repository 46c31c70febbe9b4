"""The fields of input: strict about types, bounded in length; they validate every value."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from marshmallow import ValidationError, fields, validate

from school_service.auth.principal import CANONICAL_UUID
from school_service.core.columns import (
    EMAIL_LENGTH,
    MAX_POINTS,
    MIN_POINTS,
    NAME_LENGTH,
    TEXT_LENGTH,
    more_than_two_places,
)
from school_service.core.errors import SAID_BACK
from school_service.core.texts import plain_file_name
from school_service.web.error_bounds import LEFT_OUT_HERE, MOST_MESSAGES, count_messages
from tenants.names import composed, is_too_long, is_visible

MAX_IDS = 1000  # of one list in a request

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Input(fields.Field[Any]):
    """A field of input: it must be given, unless it has a `load_default` or says `required=False`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options.setdefault("required", "load_default" not in options)
        super().__init__(*arguments, **options)


class Text(Input, fields.String):
    """A text: trimmed, not empty unless `least` is 0, of at most `most` characters, free of NUL and lone surrogates.

    It has only visible characters, as a name must (`tenants.names`), unless `any_characters` is given; and its letters
    are composed with their marks (NFC), as names are stored, unless `composed` says otherwise. It is measured first,
    and once more when it is composed: nothing looks at a text that is too long.
    """

    default_error_messages = {
        "characters": "Holds characters that are no text (NUL or a lone surrogate).",
        "hidden": "Holds characters that can't be seen (control or format characters).",
    }

    def __init__(
        self,
        most: int = NAME_LENGTH,
        *,
        least: int = 1,
        trim: bool = True,
        any_characters: bool = False,
        composed: bool | None = None,
        pattern: validate.Regexp | None = None,
        **options: Any,
    ) -> None:
        checks: list[Any] = [validate.Length(min=least or None, max=most)]
        super().__init__(validate=[*checks, pattern] if pattern else checks, **options)
        self._most = most
        self._trim = trim
        self._any_characters = any_characters
        self._composed = not any_characters if composed is None else composed

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(value, str):
            raise self.make_error("invalid")
        if is_too_long(value, self._most):
            # The first validator has the words for that; the others are not asked.
            self.validators[0](value)
        text = value.strip() if self._trim else value
        if _NO_TEXT.search(text):
            raise self.make_error("characters")
        if self._composed:
            text = composed(text, self._most, trim=False)
        if len(text) > self._most:
            self.validators[0](text)
        if not self._any_characters and not is_visible(text):
            raise self.make_error("hidden")
        return text


def sought_text(**options: Any) -> Text:
    """A text to find records by; any character is allowed, since stored names may be older than the rules of names."""
    return Text(any_characters=True, **{"composed": True, **options})


def free_text(**options: Any) -> Text:
    """A longer text, of several lines perhaps: an address, a remark."""
    return Text(TEXT_LENGTH, any_characters=True, **options)


class Email(Text):
    """An e-mail address of at most EMAIL_LENGTH characters."""

    def __init__(self, **options: Any) -> None:
        metadata = {"format": "email", **options.pop("metadata", {})}
        super().__init__(EMAIL_LENGTH, metadata=metadata, **options)
        self.validators.append(validate.Email())


class Id(Input, fields.UUID):
    """A uuid in its canonical form of 36 characters."""

    def _validated(self, value: Any) -> Any:
        if isinstance(value, str) and not CANONICAL_UUID.fullmatch(value):
            raise self.make_error("invalid_uuid")
        return super()._validated(value)

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(value, str):
            raise self.make_error("invalid_uuid")
        return self._validated(value)


class IsoDate(Input, fields.Date):
    """A date YYYY-MM-DD, and no other form of ISO 8601."""

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(value, str) or not _DATE.fullmatch(value):
            raise self.make_error("invalid", input=value, obj_type=self.OBJ_TYPE)
        return super()._deserialize(value, *arguments, **options)


class StrictBoolean(Input, fields.Boolean):
    """true or false, and nothing merely looking so."""

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return value


class QueryBoolean(Input, fields.Boolean):
    """true or false as text, in a query."""

    truthy_texts = frozenset({"true", "1"})

    def __init__(self, **options: Any) -> None:
        super().__init__(truthy=set(self.truthy_texts), falsy={"false", "0"}, **options)


class StrictInteger(Input, fields.Integer):
    """A whole number as JSON writes it, within 32 bits unless narrowed."""

    def __init__(self, least: int = -(2**31), most: int = 2**31 - 1, **options: Any) -> None:
        super().__init__(strict=True, validate=[validate.Range(min=least, max=most)], **options)

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(value, str):
            raise self.make_error("invalid", input=value)
        if (
            isinstance(value, Decimal)
            and value.is_finite()
            and -(2**63) < value < 2**63
            and value == int(value)
        ):
            # JSON knows no integers: 5.0 is 5 (JSON Schema, "integer").
            value = int(value)
        return super()._deserialize(value, *arguments, **options)


class QueryInteger(Input, fields.Integer):
    """A whole number as text, in a query."""

    default_error_messages = {"invalid": "Not a valid integer."}

    def __init__(self, least: int, most: int, **options: Any) -> None:
        super().__init__(validate=[validate.Range(min=least, max=most)], **options)

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(value, str) or not re.fullmatch(r"-?[0-9]{1,18}", value):
            raise self.make_error("invalid", input=value)
        return int(value)


class Points(Input, fields.Decimal):
    """An exact decimal of at most two places, as JSON writes numbers, from 0 to `most`; never rounded."""

    default_error_messages = {
        "invalid": "Not a valid number.",
        "special": "Not a finite number.",
        "places": "Holds more than two decimal places.",
    }

    def __init__(self, most: Decimal = MAX_POINTS, *, zero: bool = True, **options: Any) -> None:
        within = validate.Range(min=MIN_POINTS, max=most, min_inclusive=zero)
        if not zero:
            options["metadata"] = {"exclusiveMinimum": True, **options.get("metadata", {})}
        super().__init__(validate=[within], **options)

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> Any:
        # NaN and the infinities, which are no JSON, come as floats.
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise self.make_error("invalid")
        number = Decimal(value)
        if not number.is_finite():
            raise self.make_error("special")
        if more_than_two_places(number):
            raise self.make_error("places")
        return number


class Choice(Text):
    """One of a few texts."""

    def __init__(self, choices: tuple[str, ...], **options: Any) -> None:
        super().__init__(**options)
        self.validators = [validate.OneOf(choices)]


class File(Input, fields.Raw):
    """An uploaded file, in multipart/form-data; its name is made fit to be stored and shown."""

    def __init__(self, **options: Any) -> None:
        metadata = {"type": "string", "format": "binary", **options.pop("metadata", {})}
        super().__init__(metadata=metadata, **options)

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> Any:
        value.filename = plain_file_name(value.filename or "")
        return value


class ListOf(Input, fields.List[Any]):
    """An array of at least `least` and at most `most` members.

    They are counted before any is read: too many are refused for their number alone. Errors end after the member that
    reaches MOST_MESSAGES, and no further one is read.
    """

    def __init__(
        self, member: fields.Field[Any], *, most: int, least: int | None = None, **options: Any
    ) -> None:
        self._count = validate.Length(min=least, max=most)
        super().__init__(member, validate=self._count, **options)

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(value, list):
            raise self.make_error("invalid")
        self._count(value)
        members: list[Any] = []
        errors: dict[Any, Any] = {}
        messages = 0
        for place, member in enumerate(value):
            try:
                members.append(self.inner.deserialize(member, **options))
            except ValidationError as error:
                errors[place] = error.messages
                messages += count_messages(error.messages)
            left_out = len(value) - place - 1
            if left_out and messages >= MOST_MESSAGES:
                errors[LEFT_OUT_HERE] = left_out
                break
        if errors:
            raise ValidationError(errors, valid_data=members)
        return members


class ObjectOf(Input, fields.Dict):
    """An object of at most `most` members, named by the sender, and counted before any is read.

    Errors say back the first SAID_BACK characters of a name.
    """

    default_error_messages = {"many": "Has more than {most} members."}

    def __init__(self, *, most: int, **options: Any) -> None:
        metadata = {"maxProperties": most, **options.pop("metadata", {})}
        super().__init__(metadata=metadata, **options)
        self._most = most

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(value, dict) and len(value) > self._most:
            raise self.make_error("many", most=self._most)
        try:
            return super()._deserialize(value, *arguments, **options)  # type: ignore[no-untyped-call]
        except ValidationError as error:
            if isinstance(error.messages, dict):
                error.messages = {name[:SAID_BACK]: told for name, told in error.messages.items()}
            raise


class Nested(Input, fields.Nested):
    """A record within another."""


def id_list(*, most: int = MAX_IDS, **options: Any) -> ListOf:
    """A list of uuids."""
    return ListOf(Id(), most=most, **options)
