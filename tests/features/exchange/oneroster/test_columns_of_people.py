"""OneRoster gets those columns of a person that say so, and no other."""

from __future__ import annotations

from uuid import uuid4

import pytest
from sqlalchemy.sql import visitors

from school_service.core.facts import fact_of
from school_service.core.permissions import Permission
from school_service.features.exchange.oneroster.reads import ExportScope, files_of, rows_of
from school_service.features.people.models import Contact, Employee, Student, User


def columns_read(table):
    """Name the columns of a table that any file of the export reads."""
    everything = ExportScope(uuid4(), "Queen's College", uuid4(), frozenset(Permission))
    return {
        element.name
        for file in files_of(everything.permissions)
        for element in visitors.iterate(rows_of(file, everything))
        if getattr(element, "table", None) is table
    }


@pytest.mark.parametrize("model", [User, Student, Employee, Contact], ids=lambda model: model.__name__)
def test_exported_columns_of_a_person_say_so(model):
    table = model.__table__

    assert columns_read(table) == {column.name for column in table.columns if fact_of(column).exported}, (
        "say `exported=True` in the info of the column, or leave it out of features/exchange/oneroster/reads.py"
    )
