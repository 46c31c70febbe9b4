"""Every write is told: no row changes, and no record comes or goes, without a change that says so."""

from __future__ import annotations

import pytest

from school_service.core.database import db
from school_service.features.exchange.copies.resources import NAMES
from school_service.features.exchange.copies.telling import ENTITIES, NOT_OF_RECORDS, RULES
from tests.features.audit.test_every_write import WRITES, Scene
from tests.features.exchange.copies.copies import changes, export
from tests.features.exchange.copies.scenes import SCENES
from tests.features.exchange.copies.stored import OF_NO_RECORD, RECORD_OF, SETTINGS, key_of, rows_of

READING = {operation for operation in WRITES if operation[0] == "GET"}
# Operations of security, and those that read: they tell of nothing.
SILENT = READING | {
    ("POST", "/users/login"),
    ("DELETE", "/users/{id}/sessions/{session_id}"),
    ("POST", "/invitations"),
    ("POST", "/invitations/slips"),
    ("DELETE", "/invitations/{id}"),
    ("DELETE", "/users/{id}/identities/{identity_id}"),
}


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
    assert len(said) == len(told)
    erased = [change["id"] for change in told if change["operation"] == "erased"]
    shown = before.keys() | after.keys()
    parts = {(key_of(table, row), table, row) for table, row in rows ^ rows_of(place)}
    assert [
        (key, table, row)
        for key, table, row in parts
        if key in shown and key not in said and not names(erased, (key, before.get(key), row))
    ] == []
    differing = {key for key in shown if before.get(key) != after.get(key)}
    assert {
        key for key in differing - said.keys() if key in after or not names(erased, (key, before[key]))
    } == set()
    for key, became in said.items():
        assert (became in ("created", "updated")) == (key in after), (key, became)
        assert became != "created" or key not in before, key
    return said


@pytest.mark.parametrize("operation", WRITES, ids=" ".join)
def test_all_that_a_write_changes_is_told(operation, api, make, place):
    prepare, _ = WRITES[operation]

    said = changed(api, place, prepare(Scene(api, make)))

    assert bool(said) != (operation in SILENT)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_what_a_write_changes_of_other_records_is_told(scene, api, make, place):
    send, expected = scene(api, make)

    said = changed(api, place, send)

    assert expected <= {resource for resource, _ in said}


def test_every_entity_of_the_log_tells_of_records_or_of_none():
    written = {entity for _, entities in WRITES.values() for entity in entities}

    assert not ENTITIES & NOT_OF_RECORDS
    assert written <= ENTITIES | NOT_OF_RECORDS
    assert written >= ENTITIES


def test_every_rule_is_of_a_resource():
    assert {rule.resource for rule in RULES} <= set(NAMES)


def test_every_table_is_of_a_record_or_of_none():
    tables = db.metadata.tables.keys()
    assert tables == {*RECORD_OF, *SETTINGS, *OF_NO_RECORD}


def test_what_fails_tells_nothing(api, make):
    room = make.classroom()["name"]
    _, head = export(api)

    assert api.post("/classrooms", {"name": room, "level": "Junior"}).status_code == 409
    assert api.post("/users/login", {"username": "nobody", "password": "x"}).status_code == 401
    api.ok(api.get("/users"))

    assert changes(api, head["cursor"])[0] == []
