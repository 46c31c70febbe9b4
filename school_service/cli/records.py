"""The verbs on the records of a school: `tenants erase-audit`, `tenants export-oneroster`."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import click

from tenants.commands.printing import as_json, show
from tenants.commands.running import with_schools
from tenants.tenancy import Tenancy

# Modules with the tables of a school are imported by the verbs: --help and wrong use are answered without.


@click.command("erase-audit", short_help="Empty what the audit log says of people who were erased.")
@click.argument("school_id", metavar="ID", type=click.UUID)
@as_json
@with_schools
def erase_audit(tenancy: Tenancy, school_id: UUID, as_json: bool) -> None:
    """Empty the values in a school's audit log that tell of people whose data were erased.

    Erasing a person by the API can't do this: requests can only add to the log. What was done, when and by whom
    stays. Prints how many entries it changed.
    """
    from school_service.features.personal_data import audit_erasure
    from school_service.tenancy import import_models

    import_models()
    show({"id": str(school_id), "entries": audit_erasure.erase_audit(tenancy, school_id)}, as_json)


@click.command("export-oneroster", short_help="Write a school's records as a OneRoster zip.")
@click.argument("school_id", metavar="ID", type=click.UUID)
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--session", help="The academic session's id or name.  [default: the current one]")
@as_json
@with_schools
def export_oneroster(
    tenancy: Tenancy, school_id: UUID, file: Path, session: str | None, as_json: bool
) -> None:
    """Write an academic session of a school into FILE, as a zip of OneRoster 1.2 CSV files (bulk).

    Everything is in it that the school has of the session: people, classes, scores and published results. FILE can be
    read by its owner alone, and replaces one of that name; the school's audit log says that it was made.
    """
    from school_service.features.exchange.oneroster.operator_export import export_to_file
    from school_service.tenancy import import_models

    import_models()
    try:
        show(export_to_file(tenancy, school_id, file, session), as_json)
    except OSError as error:
        raise click.ClickException(f"{file} can't be written: {error.strerror}") from None
