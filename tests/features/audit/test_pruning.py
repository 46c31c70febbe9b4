"""Pruning the audit log: old entries go into a file, and none is lost on the way."""

from __future__ import annotations

import json
import stat
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import text

from school_service.cli import records
from school_service.features.audit import pruning
from school_service.features.audit.pruning import prune_audit
from school_service.features.people.users.service import KNOWN_FOR
from tenants.clock import now
from tenants.exceptions import AlreadyExists, SchoolUpgrading, UnknownSchool
from tenants.operator_connection import connected_to_school
from tenants.operator_log import operator_name
from tenants.registry.schools import change_school
from tenants.verification import named_rows
from tests.factories import UNKNOWN_ID

BEFORE = now() - timedelta(days=100)


def entries_of(tenancy, school):
    """The whole log, the oldest first, each number as it is stored."""
    with connected_to_school(tenancy, school, as_owner=True) as (connection, _):
        lines = connection.execute(
            text("SELECT CAST(row_to_json(a) AS text) FROM audit_entries a ORDER BY at, id")
        ).scalars()
        return [json.loads(line, parse_float=Decimal) for line in lines]


def read(path):
    return [json.loads(line, parse_float=Decimal) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def old(committing, tenancy):
    """A school whose entries, all but the last two, are a year old; returns the old ones."""
    for name in ('Ọlá "5"', "\\n{}", "JSS 1", "JSS 2", "JSS 3"):
        committing.classroom(name=name)
    with connected_to_school(tenancy, committing.api.school, as_owner=True) as (connection, _):
        connection.execute(
            text(
                "UPDATE audit_entries SET at = at - CAST('365 days' AS interval),"
                """ new = CAST('{"score": 12.50, "text": "a\\nb"}' AS jsonb)"""
                " WHERE id NOT IN (SELECT id FROM audit_entries ORDER BY at DESC LIMIT 2)"
            )
        )
    entries = entries_of(tenancy, committing.api.school)[:-2]
    assert len(entries) >= 3
    return entries


def test_old_entries_are_in_the_file_as_they_were_and_the_others_in_the_log(
    committing, tenancy, old, tmp_path, monkeypatch
):
    school, path = committing.api.school, tmp_path / "old.ndjson"
    others = entries_of(tenancy, school)[len(old) :]
    monkeypatch.setattr(pruning, "_OLDEST", pruning._OLDEST.limit(2))

    assert prune_audit(tenancy, school, before=BEFORE, path=path) == len(old)

    assert read(path) == old
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    *left, told = entries_of(tenancy, school)
    assert left == others
    assert (told["entity"], told["action"], told["actor"]) == ("audit-pruning", "delete", operator_name())
    # So a verification of the school misses nothing.
    named = named_rows(tenancy.deletions, [(told["entity"], 1, True)])
    assert (named["audit_entries"], named["students"]) == (None, 0)
    assert told["old"] == {"entries": len(old), "before": BEFORE.isoformat(), "file": path.name}
    # Again there is nothing to do, and nothing is done.
    assert prune_audit(tenancy, school, before=BEFORE, path=tmp_path / "again.ndjson") == 0
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert entries_of(tenancy, school) == [*left, told]


def test_where_the_file_can_not_be_made_the_log_stays(committing, tenancy, old, tmp_path):
    school, path = committing.api.school, tmp_path / "taken"
    path.write_text("before")
    log = entries_of(tenancy, school)

    with pytest.raises(AlreadyExists, match="exists already"):
        prune_audit(tenancy, school, before=BEFORE, path=path)
    with pytest.raises(OSError, match="No such file"):
        prune_audit(tenancy, school, before=BEFORE, path=tmp_path / "no" / "folder")

    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert entries_of(tenancy, school) == log


def test_where_the_transaction_fails_the_entries_are_in_the_log_and_in_the_file(
    committing, tenancy, old, tmp_path, monkeypatch
):
    def fail(*_, **__):
        raise RuntimeError("the connection is gone")

    school, path = committing.api.school, tmp_path / "old.ndjson"
    log = entries_of(tenancy, school)
    monkeypatch.setattr(pruning, "record_operation", fail)

    with pytest.raises(RuntimeError):
        prune_audit(tenancy, school, before=BEFORE, path=path)

    assert read(path) == old
    assert entries_of(tenancy, school) == log


def test_another_school_and_one_that_is_behind_are_left_alone(committing, tenancy, place, old, tmp_path):
    log = entries_of(tenancy, place.id)
    prune_audit(tenancy, committing.api.school, before=BEFORE, path=tmp_path / "old.ndjson")
    assert entries_of(tenancy, place.id) == log

    with pytest.raises(UnknownSchool):
        prune_audit(tenancy, UNKNOWN_ID, before=BEFORE, path=tmp_path / "unknown.ndjson")
    with tenancy.admin.begin() as connection:
        change_school(connection, committing.api.school, revision="t0004")
    with pytest.raises(SchoolUpgrading, match="tenants migrate"):
        prune_audit(tenancy, committing.api.school, before=BEFORE, path=tmp_path / "behind.ndjson")


def test_addresses_of_sign_ins_stay_for_as_long_as_they_are_known():
    assert KNOWN_FOR.days == records.LEAST_DAYS


def test_change_sets_go_with_their_entries_and_older_cursors_are_gone(committing, tenancy, tmp_path):
    api = committing.api
    first = api.ok(api.get("/changes"))["cursor"]
    committing.classroom()
    with connected_to_school(tenancy, api.school, as_owner=True) as (connection, _):
        connection.execute(text("UPDATE audit_entries SET at = at - CAST('365 days' AS interval)"))
    last = api.ok(api.get("/changes"))["cursor"]

    prune_audit(tenancy, api.school, before=BEFORE, path=tmp_path / "log.ndjson")

    assert api.get("/changes", query_string={"after": first}).status_code == 410
    assert api.ok(api.get("/changes", query_string={"after": last}))["changes"] == []
