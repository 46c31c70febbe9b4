"""A copy of a school, kept as its rules say, for tests."""

from __future__ import annotations

import json
from decimal import Decimal


def export(api, **query):
    """All records by resource and id, and the cursor."""
    response = api.get("/export", query_string=query)
    assert response.status_code == 200, response.get_data(as_text=True)
    head, *lines = response.get_data(as_text=True).splitlines()
    return records(lines), json.loads(head)


def records(lines):
    """Read lines of records."""
    read = [json.loads(line, parse_float=Decimal) for line in lines]
    return {(record["resource"], record["id"]): record["record"] for record in read}


def changes(api, cursor, **query):
    """All changes behind a cursor, and the cursor then."""
    listed, more = [], True
    while more:
        answer = api.ok(api.get("/changes", query_string={"after": cursor, "limit": 1000, **query}))
        listed += answer["changes"]
        cursor, more = answer["cursor"], answer["more"]
    return listed, cursor
