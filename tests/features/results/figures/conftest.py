"""Classes for the tests of results: a small one worked out by hand, and acts of tests with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any
from uuid import UUID

import pytest
from flask import Flask

from school_service.core.database import db
from school_service.web.rendering import render_list
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.factories import Factory
from tests.features.results.figures.classes import Store
from tests.features.results.figures.live import term_results


class SmallClass:
    """A cohort of two arms with Mathematics, English and Music, an elective; a paper of 100 points in each.

    A: Ada 80 70 60, Bọ́lá 80 60 (no Music), Chidi 50 60 40.   B: Ɗanladi 90 50 (no Music), Ẹfẹ́ 35 blank (no Music).
    """

    ARMS = {"Ada": "A", "Bọ́lá": "A", "Chidi": "A", "Ɗanladi": "B", "Ẹfẹ́": "B"}
    SCORES = {
        "Mathematics": {"Ada": 80, "Bọ́lá": 80, "Chidi": 50, "Ɗanladi": 90, "Ẹfẹ́": 35},
        "English": {"Ada": 70, "Bọ́lá": 60, "Chidi": 60, "Ɗanladi": 50},
        "Music": {"Ada": 60, "Chidi": 40},
    }

    def __init__(self, make: Factory) -> None:
        self.make, self.api = make, make.api
        self.cohort = make.cohort(make.classroom(name="SSS 2"))
        self.session = {"id": self.cohort["session"]}
        self.terms = {
            name: make.term(self.session, term=name, display_name=f"{name.title()} Term")
            for name in ("FIRST", "SECOND")
        }
        self.batches = {"A": self.cohort["id"], "B": make.batch(self.cohort, name="B")["id"]}
        made = {
            name: make.student(first_name=name, last_name="Bàlógun", admission_number=f"UHS/{number}")
            for number, name in enumerate(self.ARMS, 1)
        }
        self.students = {name: student["id"] for name, student in made.items()}
        for name, arm in self.ARMS.items():
            make.enrolled(self.cohort, made[name], batch=self.batches[arm])
        self.subjects: dict[str, dict[str, Any]] = {}
        for name, scores in self.SCORES.items():
            base = make.subject(name=name, code=name[:3].upper())
            subject = make.cohort_subject(self.cohort, base, elective=name == "Music")
            self.subjects[name] = {**subject, "base": base["id"]}
            if name == "Music":
                self.take(name, *scores)
        for name, scores in self.SCORES.items():
            self.score(self.paper(name), scores)

    def take(self, subject: str, *names: str) -> None:
        """Let students take an elective."""
        ids = [self.students[name] for name in names]
        self.api.ok(self.api.patch(f"/cohort-subjects/{self.subjects[subject]['id']}/students", ids))

    def paper(self, subject: str, term: str = "FIRST", **fields: Any) -> dict[str, Any]:
        """Make a paper of 100 points."""
        fields = {"category": "EXAM", "total_points": 100, **fields}
        return self.make.assessment(self.subjects[subject], self.terms[term], **fields)

    def score(self, paper: dict[str, Any], scores: dict[str, float]) -> None:
        """Enter scores by name."""
        for name, score in scores.items():
            self.make.entry(paper, self.students[name], self.batches[self.ARMS[name]], score)

    def get(self, path: str, **query: Any) -> Any:
        """GET, with figures as they are written."""
        answer = self.api.get(path, query_string=query)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return json.loads(answer.data, parse_float=str, parse_int=str)

    def broadsheet(self, arm: str = "A", **query: Any) -> Any:
        """Read a broadsheet."""
        return self.get("/broadsheets", batch=self.batches[arm], **(query or {"term": "FIRST"}))

    def result(self, name: str, term: str = "FIRST") -> Any:
        """Read the results of a student."""
        return self.get(f"/students/{self.students[name]}/results", term=term)

    def publish(self, term: str = "FIRST", state: str = "PUBLISHED", arms: str = "AB") -> None:
        """Publish live results: the cards of the arms are stored as publishing stores them."""
        with in_transaction(SchoolBinding(self.api.school)):
            store = Store(db.session.connection())
            # All are read before any is stored, as they are published together.
            bodies: dict[str, Any] = {
                arm: render_list(term_results(UUID(self.batches[arm]), term)).body for arm in arms
            }
            for arm, body in bodies.items():
                listed = json.loads(b"".join(body), parse_float=lambda number: f"#{number}#")
                school = {"name": "Queen's College, Yaba"}
                more = {
                    "term_name": self.terms[term]["displayName"],
                    "letterhead": school,
                    "positions": "BOTH",
                }
                store.publication(
                    batch=self.batches[arm], cohort=self.cohort["id"], session=self.session["id"],
                    term=self.terms[term]["id"], state=state,
                    cards={
                        card["student"]["id"]: json.dumps({**card, **more}).replace('"#', "").replace('#"', "")
                        for card in listed
                    },
                )  # fmt: skip


@pytest.fixture(scope="module")
def small_class(prepared: Callable[[type[SmallClass]], SmallClass]) -> SmallClass:
    """The small class as each test finds it: of a module whose tests all use it."""
    return prepared(SmallClass)


@pytest.fixture
def small(rehearsed: Flask, small_class: SmallClass) -> SmallClass:
    """The small class."""
    return deepcopy(small_class)
