"""The papers that can be printed, by name: each is made of its part of a task, and becomes a file."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping

from school_service.printing.typesetting import typeset


def print_picture(*, picture: str) -> bytes:
    """Print a picture, base64 of a PNG or JPEG, alone on a small page: so a new one is tried out."""
    return typeset("picture", {"picture": list(b64decode(picture))}, timestamp=None, tagged=False)


PAPERS: Mapping[str, Callable[..., bytes]] = {"picture": print_picture}
