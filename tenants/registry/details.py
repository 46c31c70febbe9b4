"""The details of a school: their names, and how each must be written.

The details shown by the API (`school` of a user) and the website, for the operator and the documents alone.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from tenants.names import is_too_long, is_visible

MAX_TEXT, MAX_PHONE, MAX_EMAIL = 2000, 120, 254  # characters

_PHONE = re.compile(r"[0-9+(][0-9 ()+/.,-]*+")
_EMAIL = re.compile(r"[^\s@]{1,64}@[^\s@.]++(?>(?:\.[^\s@.]++)+)")


def check_detail(name: str, value: str) -> str | None:
    """Return a detail as it is stored, without surrounding space; None for an empty one, to take it away.

    `name` is the column of `registry.schools`: address, phone_number, email_address, motto, website, logo_url. Raises
    ValueError, in words to follow the name of the detail.
    """
    limit = {"phone_number": MAX_PHONE, "email_address": MAX_EMAIL}.get(name, MAX_TEXT)
    text = value if is_too_long(value, limit) else value.strip()
    if not text:
        return None
    if len(text) > limit or not is_visible(text):
        raise ValueError(f"has at most {limit:,} characters, all of which can be seen, on one line")
    if name == "phone_number" and not (_PHONE.fullmatch(text) and sum(map(str.isdigit, text)) >= 3):
        raise ValueError("is a number of 3 digits or more, or several: +234 803 555 0123, 01-555 0199")
    if name == "email_address" and not _EMAIL.fullmatch(text):
        raise ValueError("is an e-mail address, such as office@school.example")
    if name in {"website", "logo_url"} and not _is_web_address(text):
        raise ValueError("is an http or https address, such as https://school.example")
    return text


def _is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return sound and parts.username is None and not re.search(r"[\s<>\"\\]", text)
