"""What records are called in messages."""

from __future__ import annotations

import pytest

from school_service.core.database import db
from school_service.core.wording import record_name, singular


@pytest.mark.parametrize(
    ("words", "one"),
    [
        ("classrooms", "classroom"),
        ("cohort subjects", "cohort subject"),
        ("employee categories", "employee category"),
        ("batches", "batch"),
        ("classes", "class"),
        ("next of kin", "next of kin"),
    ],
)
def test_the_singular(words, one):
    assert singular(words) == one


def test_every_table_has_a_name_for_its_records(app):
    names = {record_name(table) for table in db.metadata.tables.values()}

    assert {"classroom", "gradebook entry", "grade configuration", "audit entry"} <= names
