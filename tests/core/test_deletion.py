"""References to records, as the models have them: each table has a word for people, each foreign key an index."""

from __future__ import annotations

from itertools import chain

import pytest
from sqlalchemy import PrimaryKeyConstraint, UniqueConstraint

from school_service.app import FEATURES
from school_service.core import deletion
from school_service.core.database import db
from school_service.core.deletion import MOST_COUNTED, WORDS, _in_words
from school_service.core.records import singular

TABLES = db.Model.metadata.tables.values()
REFERRING = {table.name for table in TABLES if table.foreign_key_constraints}


def test_every_table_that_refers_to_another_has_a_word_and_no_other_has():
    assert FEATURES  # whose models are all of the metadata
    assert WORDS.keys() == REFERRING


def test_of_one_it_is_another_word_than_of_many_but_for_kin():
    for words in WORDS.values():
        assert singular(words) != words or words == "next of kin", words


def leading_columns(table):
    """The first columns of a table's indexes of all rows, its keys among them."""
    whole = [index for index in table.indexes if index.dialect_options["postgresql"]["where"] is None]
    keys = [
        constraint
        for constraint in table.constraints
        if isinstance(constraint, PrimaryKeyConstraint | UniqueConstraint)
    ]
    return {next(iter(each.columns)).name for each in chain(whole, keys) if len(each.columns)}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_foreign_key_has_an_index_that_begins_with_its_column(table):
    for key in table.foreign_key_constraints:
        referring = {element.parent.name for element in key.elements if element.column.name == "id"}

        assert referring <= leading_columns(table), key.name


def test_a_deletion_takes_along_the_tables_of_cascading_keys():
    def along(name):
        return {part.table.name for part in deletion._parts(db.Model.metadata.tables[name], None)} - {name}

    assert {table.name: along(table.name) for table in TABLES if "id" in table.c and along(table.name)} == {
        "assessments": {"absences", "gradebook_entries"},
        "batches": {"gradebook_entries"},
        "cohorts": {"absences", "assessments", "batches", "gradebook_entries"},
        "cohort_subjects": {"absences", "assessments", "gradebook_entries", "subject_enrollments"},
        "metrics": {"metric_scores"},
        "registers": {"marks"},
        "permissions": {"role_permissions"},
        "promotion_rules": {"promotion_rule_subjects"},
        "roles": {"role_permissions"},
        "students": {"student_guardians"},
        "terms": {"absences", "assessments", "gradebook_entries", "term_calendars"},
        "users": {
            *("contacts", "invitations", "user_identities"),
            *("user_photos", "user_roles", "user_sessions"),
        },
    }


def test_counts_are_said_in_the_order_of_the_words():
    counts = {"gradebook_entries": 480, "assessments": 12, "absences": 0, "terms": 1, "batches": MOST_COUNTED}

    assert list(_in_words(counts)) == ["12 assessments", "10,000 or more batches", "480 scores", "1 term"]
