"""Verbs on migrations: bringing schools to the newest revision, and, for developers, making and judging revisions."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import click

from tenants.commands.arguments import MESSAGE, history_option
from tenants.commands.printing import as_json
from tenants.commands.running import CONCERNED, progress_bar, with_schools, with_tenancy
from tenants.migrations.migrate import MAX_WORKERS, migrate_schools, stopped_by_signals
from tenants.migrations.migration_rules import check_migrations
from tenants.migrations.migration_sql import revisions, update_baseline
from tenants.tenancy import Tenancy
from tenants.wording import counted

# The drafting of a migration is imported by its verb: Alembic takes longer than other verbs work.
if TYPE_CHECKING:
    from tenants.migrations.new_revision import NewRevision


@click.command("migrate", short_help="Bring the schools to the newest revision.")
@click.option(
    "--workers",
    type=click.IntRange(1, MAX_WORKERS),
    default=2,
    show_default=True,
    help="Schools to migrate at once, each on a connection of its own.",
)
@click.option("--school", "school_id", metavar="ID", type=click.UUID, help="Migrate this school alone.")
@click.option(
    "--retry-failed", is_flag=True, help="Migrate only schools whose last migration failed, no other."
)
@as_json
@with_schools
def migrate(
    tenancy: Tenancy, workers: int, school_id: UUID | None, retry_failed: bool, as_json: bool
) -> None:
    """Bring every school that is behind to the newest revision, those whose last migration failed too.

    A school that fails stays as it is and does not hold up the others; `tenants status` says why. A second run goes on
    where the first ended, however it ended. After SIGINT and SIGTERM migrations under way end.
    """
    with stopped_by_signals() as stop:
        report = migrate_schools(
            tenancy,
            workers=workers,
            school_id=school_id,
            retry_failed=retry_failed,
            stop=stop,
            progress=partial(progress_bar, hidden=as_json),
        )
    if as_json:
        click.echo(json.dumps(report.as_record(), ensure_ascii=False))
    else:
        click.echo(
            f"{counted(len(report.migrated), 'school')} migrated to {report.revision} in {report.seconds:.1f} s, "
            f"{len(report.failed)} failed, {report.skipped} left as they were."
        )
    for school in report.newer:
        click.echo(
            f"Newer than this program: {school.id} {school.name}, at {school.revision}; left alone.", err=True
        )
    for school, error in report.failed:
        click.echo(f"Failed: {school.id} {school.name}: {error}", err=True)
    if report.stopped:
        click.echo(
            f"Stopped; {counted(report.remaining, 'school')} {'was' if report.remaining == 1 else 'were'} not begun.",
            err=True,
        )
    if not report.complete:
        click.get_current_context().exit(1)


@click.command("check", short_help="Judge the migrations by the rules of schools' schemas.")
@history_option("Judge the migrations of this folder.")
@as_json
def check_(folder: Path, as_json: bool) -> None:
    """Judge the migrations by the rules of schools' schemas; needs no database.

    Where one is named, lists roles and clients, too, that write users or students and do not read results: by them
    nobody gives a student or guardian a password. That is no fault.
    """
    findings = check_migrations(folder)
    concerned = click.get_current_context().meta.get(CONCERNED, list)()
    if as_json:
        click.echo(json.dumps([*(each.as_record() for each in findings), *concerned], ensure_ascii=False))
    for finding in [] if as_json else findings:
        click.echo(f"{finding.revision}  {finding.rule}: {finding.why}\n    {finding.statement}")
    for giver in [] if as_json else concerned:
        click.echo(giver["text"])
    if findings:
        click.get_current_context().exit(1)
    if not as_json:
        click.echo(f"{counted(len(revisions(folder)), 'revision')} and the baseline keep the rules.")


@click.command("revision", short_help="Draft the next migration (for developers).")
@click.argument("message", type=MESSAGE)
@click.option("--empty", is_flag=True, help="Write a migration to be filled by hand, where nothing differs.")
@history_option("Add to the migrations of this folder.")
@with_tenancy
def revision(tenancy: Tenancy, message: str, empty: bool, folder: Path) -> None:
    """Draft the next migration from the models' differences to the baseline; writes baseline.sql anew.

    MESSAGE names the change, such as "Seats of classrooms". The comparison needs a PostgreSQL, and leaves nothing in
    it: DATABASE_URL's, or one that is made for the moment. Read the draft before you keep it.
    """
    from tenants.migrations.new_revision import NOT_COMPARED, generate_revision

    if tenancy.models is None:
        raise click.ClickException("This program hands over no models to compare with the baseline.")
    with tenancy.admin.connect() as connection:
        made = generate_revision(connection, tenancy.models(), message, folder=folder, empty=empty)
    if made is None:
        click.echo(
            "The models say what baseline.sql does: nothing to migrate. --empty writes a migration even so."
        )
    else:
        click.echo(f"Wrote {made.path}.")
        click.echo(f"Wrote {made.baseline}.")
    click.echo(f"Not compared: {'; '.join(NOT_COMPARED)}. These are yours to write.")
    click.echo("tests/tenants/migrations/test_drift.py compares the whole catalogue: run it.")
    if made is not None:
        _advise(made, folder)


def _advise(made: NewRevision, folder: Path) -> None:
    """Tell the edits needed in a drafted migration; exits with status 1 if it breaks a rule."""
    if made.empty:
        click.echo("The migration is empty. Fill its upgrade(), then run: school-service tenants baseline")
    if made.drops:
        click.echo(
            "Note: it drops tables or columns, and their rows. One that was renamed is to be renamed here: "
            "op.rename_table, or op.alter_column with new_column_name.",
            err=True,
        )
    if made.requires:
        click.echo(
            'Note: it makes a column NOT NULL. Give the rows that are there a value first: op.execute("UPDATE …").',
            err=True,
        )
    if not made.formatted:
        click.echo(
            f"Note: ruff is not installed, so the file is not formatted: ruff format {made.path}", err=True
        )
    findings = [
        finding for finding in check_migrations(folder) if finding.revision in {made.revision, "baseline"}
    ]
    for finding in findings:
        click.echo(f"To edit: {finding.rule}: {finding.why}\n    {finding.statement}", err=True)
        if finding.rule == "not-null":
            click.echo(
                "    Give the column a server_default; where the model has none, take it away again in a second "
                "statement: op.alter_column(…, server_default=None).",
                err=True,
            )
    if findings:
        click.echo("Then run: school-service tenants baseline, and: school-service tenants check", err=True)
        click.get_current_context().exit(1)


@click.command("baseline", short_help="Write baseline.sql anew (for developers).")
@history_option("Write the baseline of this folder's migrations.")
def write_baseline_file(folder: Path) -> None:
    """Write baseline.sql anew from the migrations, after one was added or edited; needs no database."""
    click.echo(f"Wrote {update_baseline(folder)}.")
