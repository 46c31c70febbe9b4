"""The watch over the order of locks in every test: it finds the locks out of order, and no others."""

from __future__ import annotations

import pytest

from school_service.core.database import db
from school_service.core.lock_order import LOCK_ORDER
from tests.lock_order import LockOrder

BEGIN = "SAVEPOINT request;\nSELECT state.* FROM caller_state(1) AS state"
COHORT = "SELECT cohorts.id \nFROM cohorts \nWHERE cohorts.id = %s FOR SHARE"
STUDENTS = (
    "SELECT students.id \nFROM students \nWHERE students.id = ANY (%s) ORDER BY students.id FOR NO KEY UPDATE"
)
ASSESSMENT = "UPDATE assessments SET name=%s WHERE assessments.id = %s"
SUBMISSION = "INSERT INTO submissions (id, term_id, session_id) SELECT %s, %s, %s"
TERM = "SELECT terms.id \nFROM terms \nWHERE terms.id = %s FOR KEY SHARE"


def wrong(*statements):
    order = LockOrder()
    order.take(BEGIN)
    order.take(";\n".join(statements))
    return [fault.partition(":")[0] for fault in order.wrong]


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ([COHORT, STUDENTS], []),
        ([STUDENTS, COHORT], ["cohorts (SHARE) after students"]),
        ([ASSESSMENT, SUBMISSION], ["terms (KEY SHARE) after assessments"]),
        ([TERM, ASSESSMENT, SUBMISSION], []),
        (["INSERT INTO terms (id) SELECT %s", SUBMISSION], []),
        ([STUDENTS.replace("ORDER BY students.id ", "")], ["students in no order of rows"]),
        ([f"SELECT 1 FROM ({STUDENTS}) AS locked", COHORT], ["cohorts (SHARE) after students"]),
        (["DELETE FROM users WHERE users.id = %s", "DELETE FROM roles"], ["roles (UPDATE) after users"]),
        (["SELECT guardians.id \nFROM guardians \nWHERE true FOR UPDATE SKIP LOCKED", COHORT], []),
    ],
)
def test_locks_are_read_off_statements(statements, expected):
    assert wrong(*statements) == expected


def test_the_order_names_tables_that_there_are():
    assert set(LOCK_ORDER) <= db.Model.metadata.tables.keys()
