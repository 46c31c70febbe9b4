"""The header Idempotency-Key: a POST sent again with the same key is answered as it was the first time.

As in draft-ietf-httpapi-idempotency-key-header. For the stored answers and their expiry: core.idempotency.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Any

from flask import request

from school_service.auth.signing_key import SigningKeys
from school_service.core.errors import InvalidHeader
from school_service.core.idempotency import KEY_LENGTH, KeyedRequest, find_answer, store_answer
from school_service.web.body_parser import limit_json
from school_service.web.rendering import JsonAnswer, json_response

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
ENVIRON = "HTTP_IDEMPOTENCY_KEY"
_KEY = re.compile(f"[\x20-\x7e]{{1,{KEY_LENGTH}}}")
_PURPOSE = "fingerprint of a request"


def answered_once(view: Callable[[], Any], *, actor: str, keys: SigningKeys) -> Any:
    """Call a view, and store its answer with the request's Idempotency-Key; or answer the stored one.

    To be called in the transaction of the request, once its principal is admitted: `actor` is theirs. `keys` are the
    keys of fingerprints, since a body may hold a password. Raises InvalidHeader, and the errors of
    `core.idempotency.find_answer`.
    """
    keyed = KeyedRequest(_key_of_request(), actor, _operation(), _fingerprints(keys))
    stored = find_answer(keyed)
    if stored is not None:
        status, body = stored
        response = json_response(body)
        response.status_code = status
        response.headers[REPLAYED] = "true"
        return response
    answer = view()
    response = answer.to_response() if isinstance(answer, JsonAnswer) else answer
    store_answer(keyed, response.status_code, response.get_data())
    return response


def _key_of_request() -> str:
    """Read the header; around a key there may be quotes, as the draft has it (RFC 8941, section 3.3.3)."""
    key: str = request.environ[ENVIRON].strip(" ")
    if len(key) > 1 and key[0] == key[-1] == '"':
        key = key[1:-1]
    if not _KEY.fullmatch(key):
        raise InvalidHeader(f"The header {HEADER} must have 1 to {KEY_LENGTH} printable ASCII characters.")
    return key


def _operation() -> str:
    query = request.query_string.decode("latin-1")
    return f"{request.method} {request.path}{f'?{query}' if query else ''}"


def _fingerprints(keys: SigningKeys) -> tuple[str, ...]:
    """Make keyed hashes of the body, one with each key, the first with the signing key."""
    body = _digest_of_body()
    return tuple(hmac.digest(key.derive(_PURPOSE), body, "sha256").hex() for key in keys.keys)


def _digest_of_body() -> bytes:
    """Hash the body: of a form its fields and files, without the boundaries between them; else its bytes."""
    made = hashlib.sha256()
    if request.mimetype == "multipart/form-data":
        for name, text in sorted(request.form.items(multi=True)):
            _update(made, name.encode("utf-8", "surrogatepass"), text.encode("utf-8", "surrogatepass"))
        for name, file in sorted(request.files.items(multi=True), key=lambda item: item[0]):
            stream: Any = file.stream
            content = hashlib.file_digest(stream, "sha256").digest()
            stream.seek(0)
            file_name = (file.filename or "").encode("utf-8", "surrogatepass")
            _update(made, name.encode("utf-8", "surrogatepass"), file_name, content)
    else:
        limit_json(request)
        _update(made, request.mimetype.encode(), request.get_data())
    return made.digest()


def _update(made: Any, *parts: bytes) -> None:
    # With its length before each, so that no two lists of parts are the same bytes.
    for part in parts:
        made.update(len(part).to_bytes(8, "big") + part)
