"""tests/operations.json: every operation, as it is declared and as it is measured.

The declarations are compared by tests/test_operations.py. Two tests measure: the test of every write the entities of
the log and the messages of a request, the test of every read the messages for SCHOOL and for OWN. No test writes the
file; `python -m tests.write_operations` does, by running these tests and keeping their measures. Read its diff.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from flask import Flask

from school_service.app import create_app
from school_service.auth.signing_key import SigningKey
from school_service.config import Settings
from school_service.web.openapi import operation_id
from school_service.web.operations import Operation, operations_of

PATH = Path(__file__).with_name("operations.json")
STORED: dict[str, dict[str, Any]] = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
MEASURED = ("messages", "entities")

recording: dict[str, dict[str, Any]] | None = None
"""The measures that the script keeps, by operation; None while tests compare."""


def measured(operation: str, **measures: Any) -> None:
    """Compare the measures of an operation with the stored ones, or keep them for the script."""
    if recording is not None:
        recording.setdefault(operation, {}).update(measures)
        return
    stored = STORED.get(operation, {})
    assert measures == {name: stored.get(name) for name in measures}, "python -m tests.write_operations"


def declared() -> dict[str, dict[str, Any]]:
    """The declarations of all operations; they need no database."""
    return {name: _row(operation) for name, operation in operations_of(_app()).items()}


def _app() -> Flask:
    settings = {
        "DATABASE_URL": "postgresql://nobody@localhost/nothing",
        "SIGNING_KEY": SigningKey.generate().to_pem(),
        "PUBLIC_URL": "https://schools.example.org",
    }
    return create_app(Settings.load(settings))


def _row(operation: Operation) -> dict[str, Any]:
    row: dict[str, Any] = {"id": operation_id(operation.method.lower(), operation.path)}
    policy = operation.policy
    if policy is None:
        return {**row, "policy": "public"}
    row |= {
        "policy": policy.name,
        "permissions": list(map(str, policy.permissions)),
        "run": operation.run.name,
    }
    if policy.permissions:
        row["own"] = str(policy.own)
    for name, said in (
        ("etag", operation.has_tag),
        ("if_match", operation.matched),
        ("idempotent", operation.is_idempotent),
    ):
        if said:
            row[name] = said
    return row


def having(**wanted: Any) -> set[str]:
    """The operations that are stored with these members."""
    return {
        name for name, row in STORED.items() if all(row.get(key) == value for key, value in wanted.items())
    }
