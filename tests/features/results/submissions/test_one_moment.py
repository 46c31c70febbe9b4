"""A submission is of one moment: assessments that count, and students, may change between any two messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from tenants.registry.schools import schema_name
from tenants.tenancy import Tenancy
from tests.factories import Factory
from tests.features.results.submissions.classes import Class
from tests.postgres import on_postgresql_alone
from tests.watched_messages import Between

pytestmark = on_postgresql_alone

BEFORE, AFTER = "before", "after"


class School(Class):
    """A class of three students with two papers; nobody has a mark in either."""

    def __init__(self, make: Factory, tenancy: Tenancy) -> None:
        super().__init__(make, 3, marked=0)
        self._admin, self._schema = tenancy.admin, schema_name(self.api.school)
        make.assessment(self.taught.subject, self.term, category="EXAM", total_points=100)
        weights = [{"level": None, "category": "EXAM", "weight": 100}]
        self.api.ok(self.api.patch("/result-settings", {"weights": weights}))

    def all_is(self, moment: str) -> None:
        """After the change one paper counts in place of two, and the last student has left the class."""
        weighting, ended = ("POINTS", "NULL") if moment == BEFORE else ("CATEGORIES", "now()")
        with self._connected() as connection:
            connection.exec_driver_sql(f"UPDATE result_settings SET weighting = '{weighting}'")
            connection.exec_driver_sql(
                f"UPDATE enrollments SET ended_at = {ended} WHERE student_id = '{self.students[-1]}'"
            )

    def forget(self) -> None:
        """Take the submission back."""
        with self._connected() as connection:
            connection.exec_driver_sql(
                "DELETE FROM submissions; DELETE FROM absences; DELETE FROM audit_entries;"
                " UPDATE assessments SET submitted_batches = '{}'"
            )

    def stored(self) -> dict[str, Any]:
        """Give the absences that the blanks have become, and the entries of the audit log."""
        absences = "SELECT assessment_id::text, student_id::text FROM absences ORDER BY 1, 2"
        log = "SELECT new::text FROM audit_entries WHERE entity = 'submission'"
        with self._connected() as connection:
            return {
                "absences": [tuple(row) for row in connection.exec_driver_sql(absences)],
                "log": [json.loads(row.new) for row in connection.exec_driver_sql(log)],
            }

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        with self._admin.begin() as connection:
            connection.exec_driver_sql(
                f"SET LOCAL search_path TO {self._schema}; SET LOCAL lock_timeout TO '5s'"
            )
            yield connection


def test_absences_made_of_blanks_and_the_log_are_of_one_moment(committing, tenancy, between: Between):
    school = School(committing, tenancy)
    known = {}
    for moment in (BEFORE, AFTER):
        school.all_is(moment)
        school.api.ok(school.submit(blanks="ABSENT"))
        known[moment] = school.stored()
        school.forget()
        school.all_is(BEFORE)
    assert [len(known[moment]["absences"]) for moment in (BEFORE, AFTER)] == [6, 2]
    assert [known[moment]["log"][0]["takers"] for moment in (BEFORE, AFTER)] == [3, 2]
    assert [known[moment]["log"][0]["assessments"] for moment in (BEFORE, AFTER)] == [2, 1]

    order: list[str] = []
    last = False
    while not last:
        with between.acting(len(order), lambda: school.all_is(AFTER)):
            assert school.api.ok(school.submit(blanks="ABSENT"))["state"] == "SUBMITTED"
            last = between.sent <= len(order)
        stored = school.stored()
        (moment,) = (moment for moment in known if known[moment] == stored)
        order.append(moment)
        school.forget()
        school.all_is(BEFORE)

    # A change before the judging counts, and none after it.
    assert order == [AFTER] * order.count(AFTER) + [BEFORE] * order.count(BEFORE)
    assert order.count(AFTER) >= 2
    assert order.count(BEFORE) >= 2
