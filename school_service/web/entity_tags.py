"""ETag of single records, If-None-Match and If-Match (RFC 9110, section 13).

A tag is strong: the hash of the bytes of the record's answer. A proxy that compresses an answer marks its tag, with
`W/` or with `-gzip` at its end; it still names the same bytes, and comes back as the record's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from flask import Response, request
from werkzeug.datastructures import ETags

from school_service.auth.policies import Policy
from school_service.core.database import request_context
from school_service.core.errors import PreconditionFailed
from school_service.core.read_models import BoundQuery
from school_service.core.statements import Executable, in_one_round_trip
from school_service.web.app_state import current_principal
from school_service.web.rendering import json_response, render_one, with_members

IF_MATCH = "HTTP_IF_MATCH"
DIGITS = 32  # hex digits of a tag
COMPRESSED = "-gzip"
"""The end of a tag that Caddy and Apache httpd give a compressed answer."""


def tagged_response(body: bytes, besides: Mapping[str, Any] | None = None) -> Response:
    """Answer a record with its ETag; 304 and no body if a GET has the tag in If-None-Match.

    `besides` are members apart from the record: the tag is without them.
    """
    tag = _tag(body)
    if request.method in {"GET", "HEAD"} and _is_named(request.if_none_match, tag):
        response = Response(status=304)
    else:
        response = json_response(with_members(body, besides))
    response.set_etag(tag)
    return response


def tagged_picture(content: bytes, media_type: str) -> Response:
    """Answer a picture with its ETag, for its reader's own cache; 304 and no body if a GET has the tag."""
    tag = _tag(content)
    known = _is_named(request.if_none_match, tag)
    response = Response(status=304) if known else Response(content, mimetype=media_type)
    response.set_etag(tag)
    response.cache_control.private = True
    response.cache_control.no_cache = True
    return response


def check_if_match(
    read: BoundQuery,
    *locks: Executable,
    render: Callable[[BoundQuery], bytes | None] = render_one,
    shown_by: Policy | None = None,
) -> None:
    """Compare the tags in If-Match with the record as it is once it is locked, in one round trip with the locks.

    `render` makes the answer of a GET, `shown_by` is the GET's policy. A caller who changes a record of the whole
    school and reads it as OWN may name the tag of either answer. A missing record is left to the view. Raises
    PreconditionFailed.
    """
    body = render(in_one_round_trip(*locks, read=read))
    if body is None or _is_named(request.if_match, _tag(body)):
        return
    context = request_context()
    narrower = shown_by and context.reach is None and shown_by.narrower(current_principal())
    if narrower:
        context.reach = narrower
        body = render(read)
        context.reach = None
    if not narrower or body is None or not _is_named(request.if_match, _tag(body)):
        raise PreconditionFailed("The record is not what If-Match names: it was changed. Read it again.")


def _is_named(given: ETags, tag: str) -> bool:
    """Tell whether a header names a tag, as it was answered or as marked by a proxy."""
    named = filter(None, given.as_set(include_weak=True))  # of an empty tag Werkzeug makes None
    return given.star_tag or tag in {each.removesuffix(COMPRESSED) for each in named}


def _tag(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:DIGITS]
