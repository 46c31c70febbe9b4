"""A copy of a school, kept as its rules say, for tests."""

from __future__ import annotations

import json
from decimal import Decimal

from tests.features.exchange.copies.stored import key_of, rows_of


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


def names(ids, value):
    """Tell whether a text of the value has one of the ids."""
    return any(record_id in str(value) for record_id in ids)


def changed(api, place, send):
    """Send a request, compare the rows and records of before and after with the changes told, and return these."""
    before, head = export(api)
    rows = rows_of(place)

    answer = send()

    assert answer.status_code == 200, answer.get_data(as_text=True)
    told, _ = changes(api, head["cursor"])
    after, _ = export(api)
    said = {(change["resource"], change["id"]): change["operation"] for change in told}
    assert len(said) == len(told), told
    erased = [change["id"] for change in told if change["operation"] == "erased"]
    shown = before.keys() | after.keys()
    parts = {(key_of(table, row), table, row) for table, row in rows ^ rows_of(place)}
    untold = [
        (key, table, row)
        for key, table, row in parts
        if key in shown and key not in said and not names(erased, (key, before.get(key), row))
    ]
    differing = {key for key in shown if before.get(key) != after.get(key)}
    untold += [
        key for key in differing - said.keys() if key in after or not names(erased, (key, before[key]))
    ]
    assert untold == [], untold
    for key, became in said.items():
        assert (became in ("created", "updated")) == (key in after), (key, became)
        assert became != "created" or key not in before, key
    return said
