"""Of every column of a person's record it is decided whether OneRoster gets it."""

from __future__ import annotations

from uuid import uuid4

import pytest
from sqlalchemy.sql import visitors

from school_service.core.permissions import Permission
from school_service.features.exchange.oneroster.reads import Exported, files_of, rows_of
from school_service.features.people.models import Contact, Employee, Student, User

LEFT_OUT = {
    User: {"username_key", "password_hash", "password_given_at", "photo", "session_number"}
    | {"password_given_by", "password_given_by_name"}
    | {"created_at", "erased_at", "name_sort_key", "username_sort_key"},
    Student: {"number", "created_at"}
    | {f"guardian_{name}" for name in ("full_name", "relationship", "phone_number", "email_address")},
    Employee: {"contact_id", "department_id", "position_id", "title", "dob", "join_date", "marital_status"}
    | {"blood_group", "lga_id", "state_id", "nationality_id", "religion", "status", "created_at"},
    Contact: {"phone_number", "physical_address"},
}


def columns_read(table):
    """Name the columns of a table that any file of the export reads."""
    everything = Exported(uuid4(), "Queen's College", uuid4(), frozenset(Permission))
    return {
        element.name
        for file in files_of(everything.permissions)
        for element in visitors.iterate(rows_of(file, everything))
        if getattr(element, "table", None) is table
    }


@pytest.mark.parametrize("model", LEFT_OUT, ids=lambda model: model.__name__)
def test_a_column_of_a_person_is_exported_or_left_out(model):
    table = model.__table__

    assert columns_read(table) | LEFT_OUT[model] == set(table.columns.keys()), (
        "name a new column in LEFT_OUT, or export it in school_service/features/exchange/oneroster/reads.py"
    )
    assert not columns_read(table) & LEFT_OUT[model]
