"""A random history of two arms: every paper that was ever printed verifies as a small model says."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select

from school_service.auth.login_throttle import limiter
from school_service.core.database import db
from school_service.features.results.models import ReportCard
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.results.publications.arms import Arms
from tests.features.results.report_cards.test_verification import verify

ACTS, SEED = 200, 2311
OF_CLASS = {"of", "average", "lowest", "highest"}


def own_of(result: dict[str, Any], comment: str | None) -> Any:
    """The members of a result about its student, without figures of the class."""

    def place(figures):
        return {name: value for name, value in figures.items() if name not in OF_CLASS}

    def without(document, *figures):
        return {**document, **{name: place(document[name]) for name in figures}}

    subjects = [without(subject, "batch", "cohort") for subject in result["subjects"]]
    cumulative = without(result["cumulative"], "batch_figures", "cohort_figures")
    told = without(
        {**result, "subjects": subjects, "cumulative": cumulative}, "batch_figures", "cohort_figures"
    )
    for name in ("state", "version", "published_at"):
        del told[name]
    return told, comment


class Paper:
    """A printed card: its student, its publication, its content of the student and as a whole."""

    def __init__(self, student: str, publication: dict[str, Any], code: UUID, own: Any, whole: Any) -> None:
        self.student, self.publication, self.code = student, publication["id"], code
        self.batch, self.at = publication["batch"], publication["published_at"]
        self.own, self.whole = own, whole


class History:
    """The acts, and a model of the batches of students and of their cards in force."""

    def __init__(self, make: Any, random: Random) -> None:
        self.arms, self.make, self.api, self.random = Arms(make, 3), make, make.api, random
        self.batches = (self.arms.first, self.arms.second)
        self.enrolled = dict(self.arms.everyone)
        self.active = {*self.enrolled}
        # In the order in which they came: ids would be another history with each run.
        self.came = [*self.enrolled]
        self.gone: set[str] = set()  # from the school
        self.marked = {*self.enrolled}
        self.left_out: set[tuple[str, str]] = set()
        self.comments: dict[str, str] = {}
        self.in_force: dict[str, Paper] = {}
        self.withdrawn: set[str] = set()
        self.papers: list[Paper] = []
        self.state: dict[str, dict[str, Any] | None] = dict.fromkeys(self.batches)
        self.latest: dict[str, dict[str, Paper]] = {batch: {} for batch in self.batches}
        self.arms.mark()
        self.arms.submit()
        self.publish(*self.batches)

    def members(self, batch: str) -> list[str]:
        """The students who belong to a batch."""
        return [
            student
            for student in self.came
            if (
                self.in_force[student].batch == batch
                if student in self.in_force
                else self.enrolled.get(student) == batch
                and student in self.active
                and student in self.marked
                and (student, batch) not in self.left_out
            )
        ]

    def here(self) -> list[str]:
        """The students who are enrolled and not withdrawn."""
        return [student for student in self.came if student in self.enrolled and student in self.active]

    def act(self) -> None:
        """Do one of the acts."""
        acts = {
            self.correct: 6, self.release: 8, self.withdraw: 1, self.arrive: 2, self.leave: 2, self.move: 3,
            self.come_back: 2, self.comment: 3,
        }  # fmt: skip
        self.random.choices([*acts], [*acts.values()])[0]()

    def reopen(self) -> None:
        """Reopen each published batch."""
        for batch, publication in self.state.items():
            if publication and publication["state"] == "PUBLISHED":
                self.state[batch] = self.api.ok(self.arms.reopen(publication))

    def correct(self) -> None:
        """Correct a score, often to the same."""
        self.reopen()
        student = self.random.choice([student for student in self.came if student in self.marked])
        self.arms.correct(student, self.random.choice((40, 60, 80, 90)), number=self.random.randrange(2))

    def arrive(self) -> None:
        batch = self.random.choice(self.batches)
        (student,) = self.make.enrolled(self.arms.cohort, self.make.student(first_name="Zainab"), batch=batch)
        self.enrolled[student] = batch
        self.active.add(student)
        self.came.append(student)
        if self.random.random() < 0.5:
            return
        self.reopen()
        for number, subject in enumerate(self.arms.subjects):
            self.api.ok(self.arms.reopen_subject(number))
            self.make.entry(self.arms.papers["FIRST", subject["id"]], student, batch, 50)
        self.arms.submit()
        self.marked.add(student)

    def leave(self) -> None:
        if not (here := self.here()):
            return
        student = self.random.choice(here)
        way = self.random.choice(("withdraw", "graduate", "remove"))
        if way == "withdraw":
            self.api.ok(self.api.patch(f"/students/{student}", {"status": "WITHDRAWN"}))
            self.active.discard(student)
        else:
            if way == "graduate":
                self.make.graduate({"id": student})
                self.active.discard(student)
                self.gone.add(student)
            else:
                body = {"student_ids": [student]}
                self.api.ok(self.api.patch(f"/cohorts/{self.arms.cohort['id']}/remove_students", body))
            del self.enrolled[student]

    def come_back(self) -> None:
        """Withdraw no more, or be enrolled again."""
        away = [student for student in self.came if student in self.marked - self.gone - {*self.here()}]
        if not away:
            return
        student = self.random.choice(away)
        if student not in self.active:
            self.api.ok(self.api.patch(f"/students/{student}", {"status": "ACTIVE"}))
            self.active.add(student)
        if student not in self.enrolled:
            self.enter(student, self.random.choice(self.batches))

    def move(self) -> None:
        if here := self.here():
            student = self.random.choice(here)
            self.enter(student, next(batch for batch in self.batches if batch != self.enrolled[student]))

    def enter(self, student: str, batch: str) -> None:
        self.make.enrolled(self.arms.cohort, {"id": student}, batch=batch)
        self.enrolled[student] = batch

    def comment(self) -> None:
        self.reopen()
        batch = self.random.choice(self.batches)
        if members := self.members(batch):
            student, words = self.random.choice(members), self.random.choice(("Good.", "Fair."))
            said = [{"student": student, "form_teacher_comment": words}]
            body = {"batch": batch, "term": "FIRST", "comments": said}
            self.api.ok(self.api.put("/comments", body))
            self.comments[student] = words

    def withdraw(self) -> None:
        for batch in self.batches:
            publication = self.state[batch]
            if publication:
                self.api.ok(self.arms.reopen(publication, withdraw=True))
                self.state[batch] = None
                self.withdrawn.add(publication["id"])
                for paper in [paper for paper in self.in_force.values() if paper.batch == batch]:
                    del self.in_force[paper.student]
                return

    def release(self) -> None:
        """Publish an arm, or both, of those that can be."""
        ready = [
            batch
            for batch in self.batches
            if not (self.state[batch] and self.state[batch]["state"] == "PUBLISHED")
        ]
        if ready:
            self.publish(*self.random.choice([ready, ready[:1], ready[-1:]]))

    def publish(self, *batches: str) -> None:
        leaving, coming = [], []
        for batch in batches:
            members = self.members(batch)
            if self.random.random() < 0.25 and len(members) > 1:
                leaving.append((self.random.choice(members), batch))
            # A student left out of both arms is taken into their own: that has a test of its own.
            out = [
                student
                for student in self.came
                if [arm for arm in batches if (student, arm) in self.left_out] == [batch]
            ]
            if out and self.random.random() < 0.5:
                student = self.random.choice(out)
                if student not in self.in_force and student not in {
                    mover for mover, _ in (*coming, *leaving)
                }:
                    coming.append((student, batch))
        # A student taken in belongs to that batch, also if enrolled elsewhere.
        expected = {
            batch: ({*self.members(batch)} - {mover for mover, _ in (*leaving, *coming)})
            | {mover for mover, where in coming if where == batch}
            for batch in batches
        }
        body = {
            "term": "FIRST",
            "batches": [*batches],
            "leave_out": [{"student": student, "reason": "A mistake"} for student, _ in leaving],
            "take_in": [student for student, _ in coming],
        }
        answer = self.api.post("/publications", body)
        if not all(expected.values()):
            assert answer.status_code == 409
            return
        published = {publication["batch"]: publication for publication in self.api.ok(answer)}
        self.left_out = (self.left_out | {*leaving}) - {*coming}
        for batch in batches:
            for paper in [paper for paper in self.in_force.values() if paper.batch == batch]:
                del self.in_force[paper.student]
        for batch, publication in published.items():
            self.state[batch] = publication
            self.print(publication, expected[batch])

    def print(self, publication: dict[str, Any], expected: set[str]) -> None:
        """Keep the papers of a publication, and hold its answers about them against the model."""
        batch, before = publication["batch"], self.latest[publication["batch"]]
        with in_transaction(SchoolBinding(UUID(str(self.api.school)), read_only=True)):
            of_publication = ReportCard.publication_id == UUID(publication["id"])
            rows = db.session.execute(select(ReportCard.student_id, ReportCard.code).where(of_publication))
            codes = {str(student): code for student, code in rows}
        assert {*codes} == expected
        self.latest[batch] = {}
        changed, of_class = 0, 0
        for student, code in codes.items():
            result = self.api.ok(
                self.api.get(f"/students/{student}/results?term={self.arms.terms['FIRST']['id']}")
            )
            comment = self.comments.get(student)
            whole = {
                name: result[name] for name in result if name not in {"state", "version", "published_at"}
            }
            paper = Paper(student, publication, code, own_of(result, comment), whole)
            self.papers.append(paper)
            self.in_force[student] = self.latest[batch][student] = paper
            if publication["version"] > 1:
                old = before.get(student)
                changed += old is None or old.own != paper.own
                of_class += old is not None and old.own == paper.own and old.whole != paper.whole
        there = {student for student, where in self.enrolled.items() if where == batch} & self.active
        left = sorted({*codes} - there)
        assert publication["left"] == left
        assert (publication["changed"], publication["class_figures_changed"]) == (changed, of_class)

    def expected(self, paper: Paper) -> tuple[str, str | None, bool]:
        """The state of a paper, when the one that replaced it was published, and whether there is a note."""
        if paper.publication in self.withdrawn:
            return "WITHDRAWN", None, False
        now = self.in_force.get(paper.student)
        if now is None:
            left_out = (paper.student, paper.batch) in self.left_out
            return ("WITHDRAWN", None, False) if left_out else ("REPLACED", "some time", False)
        if now.own == paper.own:
            return "CURRENT", None, now.whole != paper.whole
        return "REPLACED", now.at, False


@pytest.mark.release
def test_every_paper_ever_printed_verifies_as_a_model_says(api, make, place):
    anyone = api.using(token=None, school=None)
    random = Random(SEED)
    history = History(make, random)
    states: dict[str, int] = {}

    for number in range(1, ACTS + 1):
        history.act()
        if number % 100:
            continue
        for paper in history.papers:
            limiter.limiter.storage.reset()
            told = verify(anyone, place.id, paper.code).get_json()
            state, replaced_at, has_note = history.expected(paper)
            shown = "some time" if replaced_at == "some time" and told["replaced_at"] else told["replaced_at"]
            assert (told["state"], shown, bool(told["note"])) == (state, replaced_at, has_note)
            states[state] = states.get(state, 0) + 1

    # The history has all of it.
    assert min(states.get(state, 0) for state in ("CURRENT", "REPLACED", "WITHDRAWN")) > 10
