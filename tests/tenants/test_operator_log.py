"""The operator's changes to a school are in the school's own audit log."""

from __future__ import annotations

import getpass
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import click
import pytest
from click.testing import CliRunner

from tenants import operator_log
from tenants.backups.backup import back_up
from tenants.backups.restore import restore
from tenants.commands.groups import tenants_group
from tenants.commands.running import LOADER
from tenants.exceptions import BackupRefused, SchoolBusy
from tenants.operator_log import operator_name, record_operation
from tenants.provisioning import delete
from tenants.provisioning.delete import delete_school
from tests.postgres import at_schools, on_citus
from tests.tenants.installations import execute, lending
from tests.tenants.migrations.histories import few_rows


@pytest.fixture(scope="module", params=["superuser", "creator"])
def lent(server, few_tables, request):
    """An installation that lends schools, by each kind of login that provisions."""
    superuser = request.param == "superuser"
    with lending(server, superuser=superuser, history=few_tables, seed=few_rows) as lent:
        yield lent


@pytest.fixture
def here(lent):
    return lent[0]


@pytest.fixture
def school(lent):
    _, schools = lent
    schools.clear()
    return schools.lend("A school")


def log(tenancy, school_id: UUID):
    """The log of a school, the oldest entry first, as its role reads it."""
    schema = f"school_{school_id.hex}"
    columns = "actor, action, entity, entity_id::text, old, new"
    return execute(
        at_schools(tenancy.admin_url),
        f'SET ROLE "{schema}"; SELECT {columns} FROM "{schema}".audit_entries ORDER BY at, id',
    )


def invoke(tenancy, *arguments):
    """Run a verb on an installation."""

    @click.group()
    @click.pass_context
    def program(ctx):
        ctx.meta[LOADER] = lambda: tenancy

    program.add_command(tenants_group)
    return CliRunner().invoke(program, ["tenants", *arguments])


def operate(tenancy, *arguments):
    result = invoke(tenancy, *arguments)
    assert result.exit_code == 0, result.output


def test_suspending_resuming_and_renaming(here, school):
    operate(here, "suspend", str(school.id))
    operate(here, "resume", str(school.id))
    operate(here, "rename", str(school.id), "Ìlú Ọba")

    common = (f"operator:{getpass.getuser()}", "update", "school", str(school.id))
    assert log(here, school.id) == [
        (*common, {"status": "active"}, {"status": "suspended"}),
        (*common, {"status": "suspended", "deletion": None}, {"status": "active", "deletion": None}),
        (*common, {"name": "A school"}, {"name": "Ìlú Ọba"}),
    ]


def test_the_other_school_has_none(here, school, lent):
    other = lent[1].lend("Other")

    operate(here, "suspend", str(school.id))

    assert log(here, other.id) == []
    assert len(log(here, school.id)) == 1


def test_a_change_that_fails_is_not_on_record(here, school):
    begin = "UPDATE registry.schools SET deletion = 'begun' WHERE id = %s"
    execute(here.admin_url, begin, (str(school.id),))

    assert invoke(here, "rename", str(school.id), "Other").exit_code == 1
    assert log(here, school.id) == []


def test_a_backup_and_where_it_was_restored(here, school, tmp_path):
    manifest = back_up(here, school.id, tmp_path / "a.zip")
    copy = restore(here, tmp_path / "a.zip", school_id=UUID(int=school.id.int ^ 1))

    operator = f"operator:{getpass.getuser()}"
    made = {"file": "a.zip", "sha256": manifest.sha256}
    assert log(here, school.id) == [(operator, "create", "backup", str(school.id), None, made)]
    (entry,) = log(here, copy.id)
    assert entry[:4] == (operator, "create", "restore", str(copy.id))
    assert (entry[5]["school"], entry[5]["sha256"]) == (str(school.id), manifest.sha256)


def test_a_backup_that_fails_is_not_on_record(here, school, tmp_path):
    (tmp_path / "a.zip").write_text("taken")

    with pytest.raises(BackupRefused):
        back_up(here, school.id, tmp_path / "a.zip")

    assert log(here, school.id) == []


def test_the_backup_of_a_deletion_has_its_entry_in_the_log(here, school, tmp_path):
    deleted = delete_school(here, school.id, backup_folder=tmp_path)
    restored = restore(here, Path(deleted.backup))

    entries = [(entity, new) for _, _, entity, _, _, new in log(here, restored.id)]
    assert entries[0] == ("school", {"deletion": "closed"})
    assert [entity for entity, _ in entries] == ["school", "restore"]


def test_a_deletion_that_ends_before_it_begins_is_on_record_with_its_end(here, school, monkeypatch):
    def busy(*_):
        raise SchoolBusy("busy")

    monkeypatch.setattr(delete, "_wait_for_requests", busy)
    with pytest.raises(SchoolBusy):
        delete_school(here, school.id, backup_folder=None)

    assert [new for *_, new in log(here, school.id)] == [{"deletion": "closed"}, {"deletion": None}]


def test_a_school_without_a_log_is_left_as_it_is(here, school):
    schema = f"school_{school.id.hex}"
    # On Citus the superuser owns it, and a message that it hands on is one statement.
    switch = f'SET ROLE "{here.owner}";' if not on_citus() else ""
    execute(here.admin_url, f'{switch} ALTER TABLE "{schema}".audit_entries RENAME TO elsewhere')

    operate(here, "suspend", str(school.id))

    execute(here.admin_url, f'{switch} ALTER TABLE "{schema}".elsewhere RENAME TO audit_entries')
    assert log(here, school.id) == []


def test_a_program_that_hands_over_no_entries_writes_none(here, school):
    with here.admin.begin() as connection:
        record_operation(connection, replace(here, operator_entry=None), school.id, "school", new={})

    assert log(here, school.id) == []


def test_a_user_without_a_name_is_known_by_number(monkeypatch):
    def nameless():
        raise KeyError("uid not found")

    monkeypatch.setattr(operator_log.getpass, "getuser", nameless)
    monkeypatch.setattr(operator_log.os, "getuid", lambda: 1234)

    assert operator_name() == "operator:1234"
