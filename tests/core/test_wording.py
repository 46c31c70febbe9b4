"""The words for records in messages, and for positions."""

from __future__ import annotations

import pytest

from school_service.core.database import db
from school_service.core.records import record_name, singular
from school_service.core.texts import ordinal, position_text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("classrooms", "classroom"),
        ("cohort subjects", "cohort subject"),
        ("employee categories", "employee category"),
        ("batches", "batch"),
        ("classes", "class"),
        ("next of kin", "next of kin"),
    ],
)
def test_the_singular(words, expected):
    assert singular(words) == expected


def test_every_table_has_a_name_for_its_records(app):
    names = {record_name(table) for table in db.metadata.tables.values()}

    assert {"classroom", "gradebook entry", "grade configuration", "audit entry"} <= names


def test_ordinals():
    numbers = (1, 2, 3, 4, 10, 11, 12, 13, 21, 22, 31, 101, 111, 112, 123)

    assert " ".join(map(ordinal, numbers)) == (
        "1st 2nd 3rd 4th 10th 11th 12th 13th 21st 22nd 31st 101st 111th 112th 123rd"
    )


def test_a_position_as_it_is_printed():
    assert [position_text(4), position_text(2, tied=True), position_text(None)] == ["4th", "2nd =", ""]
