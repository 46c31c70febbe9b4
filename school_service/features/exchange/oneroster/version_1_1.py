"""The rows of each file in the form of OneRoster 1.1, made of the rows of 1.2: so they have the same ids."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, Subquery, Text, case, cast, literal, null, select

from school_service.features.exchange.oneroster import reads, standard
from school_service.features.exchange.oneroster.reads import ExportScope, Rows

_NO_GRADES = {"grades": null()}
"""In 1.1 grades are words of a list of the United States, which the names of our classrooms are not."""


def rows_of(file: str, exported: ExportScope) -> Rows:
    """Select the rows of a file, with the columns named by 1.1."""
    rows = reads.rows_of(file, exported).subquery("rows")
    if file == "users":
        return _users(rows, exported)
    if file == "lineItems":
        return _columns(file, rows, gradingPeriodSourcedId=rows.c.academicSessionSourcedId)
    if file == "results":
        # Without a score there is no result in 1.1.
        return _columns(file, rows).where(rows.c.score.is_not(None))
    return _columns(file, rows, **(_NO_GRADES if "grades" in rows.c else {}))


def _users(rows: Subquery, exported: ExportScope) -> Rows:
    roles = reads.rows_of("roles", exported).subquery("roles")
    role = case((roles.c.role == standard.SITE_ADMINISTRATOR, standard.ADMINISTRATOR_1_1), else_=roles.c.role)
    school = cast(literal(exported.school_id), Text)
    return _columns("users", rows, orgSourcedIds=school, role=role, **_NO_GRADES).join(
        roles, (roles.c.userSourcedId == rows.c.sourcedId) & (roles.c.roleType == standard.PRIMARY)
    )


def _columns(file: str, rows: Subquery, **others: Any) -> Select[*tuple[Any, ...]]:
    """Select the columns of a file in the order of 1.1: of the rows of 1.2, but for others."""
    names = standard.COLUMNS_1_1[file]
    columns = (others[name] if name in others else rows.c[name] for name in names)
    return select(*(column.label(name) for name, column in zip(names, columns, strict=True))).select_from(
        rows
    )
