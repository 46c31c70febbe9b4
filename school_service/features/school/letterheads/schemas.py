"""Letterheads as the interface shows them."""

from __future__ import annotations

from typing import Any

from marshmallow import fields, validate

from school_service.core.columns import TEXT_LENGTH
from school_service.features.school.models import (
    LEAST_PIXELS,
    MOST_BYTES,
    MOST_PIXELS,
    MOTTO_LENGTH,
    WEBSITE_LENGTH,
)
from school_service.printing.picture_format import JPEG, PNG
from school_service.web.fields import Email, Text
from school_service.web.schemas import RecordSchema, Schema, described, record_of, text_of

_HOLDS = "Null: the school's registered one."
_CHANGE: dict[str, Any] = {"required": False, "allow_none": True}


class PictureSchema(RecordSchema):
    """The description of a picture: its bytes are at its own address."""

    media_type = text_of((PNG, JPEG))
    bytes = fields.Integer(validate=validate.Range(1, MOST_BYTES))
    width = described(fields.Integer, "In pixels.", validate=validate.Range(LEAST_PIXELS, MOST_PIXELS))
    height = described(fields.Integer, "In pixels.", validate=validate.Range(LEAST_PIXELS, MOST_PIXELS))


class LetterheadSchema(RecordSchema):
    """The letterhead on the school's paper; elsewhere its details are those of its registration."""

    name = described(fields.String, _HOLDS, allow_none=True)
    address = described(fields.String, _HOLDS, allow_none=True)
    phone_number = described(fields.String, _HOLDS, allow_none=True)
    email_address = described(fields.String, _HOLDS, allow_none=True)
    website = fields.String(allow_none=True)
    motto = fields.String(allow_none=True)
    principal_name = fields.String(allow_none=True)
    principal_title = described(fields.String, "Such as Principal.", allow_none=True)
    logo = fields.Nested(PictureSchema, allow_none=True)
    signature = record_of(PictureSchema, "The principal's.", allow_none=True)


class LetterheadChangesSchema(Schema):
    """The changes: any of these; null takes it back."""

    name = Text(**_CHANGE)
    address = Text(TEXT_LENGTH, any_characters=True, **_CHANGE)
    phone_number = Text(**_CHANGE)
    email_address = Email(**_CHANGE)
    website = Text(WEBSITE_LENGTH, **_CHANGE)
    motto = Text(MOTTO_LENGTH, **_CHANGE)
    principal_name = Text(**_CHANGE)
    principal_title = Text(**_CHANGE)
