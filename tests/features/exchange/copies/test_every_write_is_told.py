"""Every write is told: no row changes, and no record comes or goes, without a change that says so.

`tests/features/audit/test_every_write.py` sends each operation and asks this of it too; here are further scenes.
"""

from __future__ import annotations

import pytest

from school_service.core.database import db
from school_service.features.exchange.copies.resources import NAMES
from school_service.features.exchange.copies.telling import ENTITIES, NOT_OF_RECORDS, RULES
from tests.features.audit.test_every_write import WRITES
from tests.features.exchange.copies.copies import changed, changes, export
from tests.features.exchange.copies.scenes import SCENES
from tests.features.exchange.copies.stored import OF_NO_RECORD, RECORD_OF, SETTINGS


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_writes_changes_of_other_records_are_told(scene, api, make, place):
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


def test_a_failed_write_and_a_reading_tell_nothing(api, make):
    room = make.classroom()["name"]
    _, head = export(api)

    assert api.post("/classrooms", {"name": room, "level": "Junior"}).status_code == 409
    assert api.post("/users/login", {"username": "nobody", "password": "x"}).status_code == 401
    api.ok(api.get("/users"))

    assert changes(api, head["cursor"])[0] == []
