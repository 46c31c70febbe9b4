"""A publication is of one moment: settings and all else that cards say may change between any two messages.

The changes are made in the tables themselves, so that no lock of the service's own keeps them waiting.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from tenants.registry.schools import schema_name
from tests.features.results.publications.arms import Arms
from tests.postgres import on_postgresql_alone
from tests.watched_messages import Between

pytestmark = on_postgresql_alone

BEFORE, AFTER = "before", "after"

# A statement, with its values before the change and after it.
CHANGES = (
    ("UPDATE result_settings SET weighting = '{}'", "POINTS", "CATEGORIES"),
    ("UPDATE result_settings SET percent_places = {}", 2, 1),
    ("UPDATE result_settings SET pass_mark = {}", 40, 60),
    ("UPDATE result_settings SET positions = '{}'", "BOTH", "BATCH"),
    ("UPDATE result_settings SET name_order = '{}'", "SURNAME_FIRST", "GIVEN_FIRST"),
    ("UPDATE grade_configurations SET letter_grade = '{}' WHERE letter_grade IN ('F9', 'U9')", "F9", "U9"),
    ("UPDATE letterheads SET name = '{}'", "Old School", "New School"),
    ("UPDATE term_calendars SET notice = '{}'", "Old notice", "New notice"),
    ("UPDATE sessions SET name = '{}' WHERE id IN (SELECT session_id FROM cohorts)", "2024/25", "2024/2025"),
    ("UPDATE terms SET display_name = '{}'", "Old term", "New term"),
    ("UPDATE classrooms SET name = '{}' WHERE id IN (SELECT classroom_id FROM cohorts)", "JSS 1", "Basic 7"),
    ("UPDATE batches SET name = '{}' WHERE id <> cohort_id", "Old arm", "New arm"),
    ("UPDATE subjects SET name = '{}' WHERE id IN (SELECT subject_id FROM cohort_subjects)", "Maths", "Algebra"),
    ("UPDATE users SET last_name = '{}' WHERE id IN (SELECT user_id FROM students)", "Eze", "Bello"),
    ("UPDATE users SET last_name = '{}' WHERE id IN (SELECT user_id FROM employees)", "Okoro", "Danjuma"),
    ("UPDATE submissions SET submitted_by_name = '{}'", "Ada Obi", "Ada Musa"),
    ("UPDATE gradebook_entries SET score = mod(score, 10) + {} WHERE score > 20", 80, 50),
    ("UPDATE term_comments SET form_teacher_comment = '{}'", "Old remark", "New remark"),
    ("UPDATE metric_scores SET score = {}", 3, 5),
    # The last student of the class goes to the other arm.
    (
        "UPDATE enrollments SET batch_id = (SELECT id FROM batches WHERE (id = cohort_id) = {})"
        " WHERE id = (SELECT id FROM enrollments ORDER BY started_at DESC, id DESC LIMIT 1)",
        "false",
        "true",
    ),
)  # fmt: skip


class School(Arms):
    """Two arms with all that cards say, and a paper each of two categories, whose weights are not as their points."""

    def __init__(self, make: Any, tenancy: Any) -> None:
        super().__init__(make, students=3, subjects=1)
        self._admin, self._schema = tenancy.admin, schema_name(self.api.school)
        api = self.api
        weights = [
            {"level": None, "category": category, "weight": weight}
            for category, weight in (("CA1", 60), ("EXAM", 40))
        ]
        api.ok(api.patch("/result-settings", {"weights": weights, "show_teachers": True}))
        api.ok(api.patch("/letterhead", {"name": "Old School"}))
        self.mark(total_points=100)
        self._mark_ca()
        term = self.terms["FIRST"]["id"]
        calendar = {"start_date": None, "end_date": None, "times_opened": 120, "next_term_begins": None}
        api.ok(api.put(f"/terms/{term}/calendar", {**calendar, "notice": "Old notice"}))
        teacher = make.employee()["id"]
        for batch, students in self.students.items():
            api.ok(api.patch(f"/teachers/{batch}/add_to_batch", {"teacher_id": teacher}))
            said = [{"student": student, "form_teacher_comment": "Old remark"} for student in students]
            api.ok(api.put("/comments", {"batch": batch, "term": term, "comments": said}))
            seen = [
                {"student": student, "metric_type": "AFFECTIVE", "metric_scores": {"neatness": 3}}
                for student in students
            ]
            api.ok(api.put(f"/metrics?batch={batch}&term={term}", seen))
        taught = {"cohort_subject": self.subjects[0]["id"], "employee": teacher}
        api.ok(api.put("/subject-teachers", {"assignments": [taught]}))
        self.submit()
        self.all_is(AFTER)
        self.all_is(BEFORE)

    def _mark_ca(self) -> None:
        paper = self.make.assessment(self.subjects[0], self.terms["FIRST"], category="CA1", total_points=20)
        for number, (student, batch) in enumerate(self.everyone):
            self.make.entry(paper, student, batch, 3 * number)

    def all_is(self, moment: str) -> None:
        """Change all at once, by another connection, or change it back: but not rows that wait for a lock."""
        place = 1 if moment == BEFORE else 2
        with self._connected() as connection:
            connection.exec_driver_sql("SET LOCAL lock_timeout TO '50ms'")
            for change in CHANGES:
                with suppress(OperationalError), connection.begin_nested():
                    connection.exec_driver_sql(change[0].format(change[place]))

    def forget(self) -> None:
        """Delete the publications."""
        with self._connected() as connection:
            connection.exec_driver_sql("DELETE FROM report_cards; DELETE FROM publications")

    def stored(self, version: int = 1) -> dict[str, str]:
        """Give a version of the publications and its cards as texts, without the moment of their publication."""
        return {
            **dict(self._rows(f"SELECT batch_id, rules::text FROM publications WHERE version = {version}")),
            **dict(
                self._rows(
                    "SELECT student_id, (card - 'published_at' - 'version')::text FROM report_cards"
                    f" WHERE (card->>'version')::int = {version}"
                )
            ),
        }

    def changed(self) -> set[bool]:
        """Tell whether cards of the second version are marked as changed."""
        return {
            flag for (flag,) in self._rows("SELECT changed FROM report_cards WHERE card->>'version' = '2'")
        }

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        with self._admin.begin() as connection:
            connection.exec_driver_sql(f"SET LOCAL search_path TO {self._schema}")
            yield connection

    def _rows(self, sql: str) -> list[tuple[Any, Any]]:
        with self._connected() as connection:
            return [tuple(row) for row in connection.execute(text(sql))]


def summary(published: list[dict[str, Any]]) -> str:
    """Write the members of answered publications that the change concerns."""
    names = ("batch", "batch_name", "session", "term", "students", "left")
    return json.dumps(sorted(([publication[name] for name in names] for publication in published), key=str))


def known_moments(school: School, version: int, prepare: Callable[[], Any]) -> dict[str, dict[str, str]]:
    """Publish before the change, and after it; gives the stored and answered texts."""
    known = {}
    for moment in (BEFORE, AFTER):
        prepare()
        school.all_is(moment)
        answer = school.api.ok(school.publish())
        known[moment] = {**school.stored(version), "answer": summary(answer)}
        school.forget()
        school.all_is(BEFORE)
    assert all(known[BEFORE][part] != known[AFTER][part] for part in known[BEFORE])
    before, after = (" ".join(known[moment].values()) for moment in (BEFORE, AFTER))
    for change, old, new in CHANGES:
        if isinstance(old, str) and old != "false":
            assert (old in before, old in after, new in before, new in after) == (True, False, False, True), (
                change
            )
    return known


def moments(between: Between, school: School, version: int, prepare: Callable[[], Any]) -> list[str]:
    """Publish with the change before each of the messages in turn; tells the moment of each publication.

    `prepare` is called before it. All of a publication, and of its answer, is of one moment, or this fails.
    """
    known = known_moments(school, version, prepare)
    order: list[str] = []
    last = False
    while not last:
        prepare()
        with between.acting(len(order), lambda: school.all_is(AFTER)):
            answer = school.api.ok(school.publish())
            last = between.sent <= len(order)
        stored = {**school.stored(version), "answer": summary(answer)}
        assert stored.keys() == known[BEFORE].keys()
        of = {part: {moment for moment in known if known[moment][part] == stored[part]} for part in stored}
        assert set.intersection(*of.values()), f"before message {len(order)}: {of}"
        order += set.intersection(*of.values())
        if version > 1:
            assert school.changed() == {order[-1] == AFTER}
        school.forget()
        school.all_is(BEFORE)
    return order


def check_order(order: list[str]) -> None:
    """Assert that a change before the class is loaded counts, and none after it."""
    assert order == [AFTER] * order.count(AFTER) + [BEFORE] * order.count(BEFORE)
    assert order.count(AFTER) >= 2
    assert order.count(BEFORE) >= 2


def test_a_publication_and_its_cards_are_of_one_moment(committing, tenancy, between):
    school = School(committing, tenancy)

    order = moments(between, school, 1, lambda: None)

    check_order(order)


def test_a_next_version_and_its_differences_are_of_one_moment(committing, tenancy, between):
    school = School(committing, tenancy)

    def reopened() -> None:
        for publication in school.api.ok(school.publish()):
            school.api.ok(school.reopen(publication))

    order = moments(between, school, 2, reopened)

    check_order(order)


def test_a_reopened_publication_stays_as_it_was_published(committing, tenancy, between):
    school = School(committing, tenancy)
    number, last = 0, False
    while not last:
        first, _ = made = school.api.ok(school.publish())
        before = school.stored()

        with between.acting(number, lambda: school.all_is(AFTER)):
            answer = school.api.ok(school.reopen(first))
            last = between.sent <= number

        assert school.stored() == before
        assert summary([answer]) == summary([row for row in made if row["id"] == answer["id"]])
        school.forget()
        school.all_is(BEFORE)
        number += 1
    assert number > 2
