"""Ids and arrays, as they are sent to PostgreSQL."""

from __future__ import annotations

from decimal import Decimal
from uuid import RFC_4122, UUID, uuid4

import pytest
from sqlalchemy import literal, select, text

from school_service.core.database import db
from school_service.core.records import array_text, is_one_of, lock_table, new_ids
from school_service.features.school.models import AcademicSession
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding


def test_many_ids_are_random_uuids_and_all_differ():
    made = new_ids(2000)

    ids = [UUID(text) for text in made]
    assert len(set(ids)) == 2000
    assert {(uuid.version, uuid.variant) for uuid in ids} == {(4, RFC_4122)}
    # Each digit that is not fixed takes every value: 2,000 draws miss one as good as never.
    assert {len({text[at] for text in made}) for at in range(32) if at not in {12, 16}} == {16}
    assert {text[16] for text in made} == set("89ab")
    assert new_ids(0) == []


def test_an_array_is_written_as_postgresql_reads_it():
    record_id = uuid4()

    assert array_text([record_id, str(record_id)]) == f"{{{record_id},{record_id}}}"
    assert array_text([Decimal("12.50"), True]) == "{12.50,True}"
    assert array_text(()) == "{}"


@pytest.mark.parametrize(
    "written", ['"', "\\", '\\"', "{}", "a,b", "NULL", "", " ", "'; --", "Ngọzi", "😀", "%s", ":x", "\t\n"]
)
def test_many_texts_are_compared_as_they_are_written(api, written):
    asked = ["another", written, 'a "third"']

    with in_transaction(SchoolBinding(api.school, read_only=True)):
        matches = [
            text
            for text in ["another", written, 'a "third"', "third", f"{written}x", f"\\{written}", "null"]
            if db.session.connection().scalar(select(is_one_of(literal(text), asked)))
        ]

    assert matches == asked


def test_to_lock_a_table_takes_an_advisory_lock_and_no_lock_of_the_table(api):
    relations = "SELECT mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'sessions'::regclass"
    advisory = "SELECT mode FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'"

    with in_transaction(SchoolBinding(api.school)):
        lock_table(AcademicSession)
        assert list(db.session.scalars(text(relations))) == []
        assert "ExclusiveLock" in db.session.scalars(text(advisory)).all()
