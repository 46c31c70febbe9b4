"""The loaded document of `entered` as values: nobody on the roster is shown until the caller's reach is given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

from school_service.core.reach import Reach
from school_service.features.results.computing.compute import (
    BROUGHT_IN,
    Band,
    BroughtIn,
    Earlier,
    Entered,
    Paper,
    Rules,
    TaughtSubject,
)
from school_service.features.school.models import TERMS
from school_service.features.scores.models import BY_CATEGORY, DEFAULTS, OF_LEVEL

Document = Mapping[str, Any]


class Member(NamedTuple):
    """Somebody on the roster: as results name them, their batch, the one they are enrolled in, their date of birth.

    `place` is theirs by admission number. A student without `belongs` belongs once results of their batch are handed
    in.
    """

    student: Mapping[str, Any]
    batch: str
    enrolled_in: str | None
    dob: str | None
    place: int
    in_reach: bool
    belongs: bool

    @property
    def id(self) -> str:
        """The student's id."""
        student_id: str = self.student["id"]
        return student_id


class ClassSubject(NamedTuple):
    """A subject of the cohort: its id there, the base subject's id, its names, and its place in the order."""

    id: str
    base: str
    name: str
    code: str
    elective: bool
    position: int | None

    @property
    def document(self) -> Document:
        """The subject as cards name it."""
        return {name: value for name, value in self._asdict().items() if name != "position"}


@dataclass(frozen=True)
class Loaded:
    """The document of `entered.class_term`, of a class in a term.

    `scope` names class and term; `people` are the part of the roster that may be shown, by name: nobody until
    `shown_to`. Figures are computed of everyone.
    """

    scope: Mapping[str, Any]
    document: Mapping[str, Any]
    people: Sequence[Member] = ()

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Loaded | None:
        """Read the columns of `ClassTerm.columns`; None if there is no class, or none is asked for."""
        return None if row["scope"] is None or row["entered"] is None else cls(row["scope"], row["entered"])

    def head(self, batch: str, batch_name: str) -> dict[str, Any]:
        """Name the batch, class and term of a result."""
        scope = self.scope
        return {
            "batch": batch,
            "batch_name": batch_name,
            "cohort": scope["cohort_id"],
            "classroom": scope["classroom"],
            "session": {"id": scope["session_id"], "name": scope["session_name"]},
            "term": self.term,
        }

    @property
    def term(self) -> dict[str, Any]:
        """The term, as answers name it."""
        return {"id": self.scope["term_id"], "term": self.scope["term"]}

    def shown_to(self, reach: Reach | None) -> Loaded:
        """Show the people in reach of the caller: None is the whole school, and everyone."""
        people = self.everyone if reach is None else [person for person in self.everyone if person.in_reach]
        return replace(self, people=people)

    @cached_property
    def everyone(self) -> Sequence[Member]:
        """Everyone on the roster, by name, to compute of."""
        return [Member(*row) for row in self.document["people"]]

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The school's result settings, by column; those of the level take the place of its own."""
        of_level = self.document["of_level"] or {}
        own = {name: of_level[name] for name in OF_LEVEL if of_level.get(name) is not None}
        return {**DEFAULTS, "marks": True, **(self.document["settings"] or {}), **own}

    @cached_property
    def subjects(self) -> Sequence[ClassSubject]:
        """The cohort's subjects, by name."""
        return [ClassSubject(*row) for row in self.document["subjects"]]

    def teachers(self, subject: str, batch: str) -> Sequence[str]:
        """Name the teachers of a subject of the cohort in a batch today."""
        names: Sequence[str] = (self.document["teachers"] or {}).get(subject + batch, ())
        return names

    @cached_property
    def subjects_in_batches(self) -> Mapping[tuple[str, str], Document]:
        """The subjects as cards name them, by their id and the batch's."""
        batches = dict.fromkeys(person.batch for person in self.everyone)
        return {
            (subject.id, batch): {**subject.document, "teachers": self.teachers(subject.id, batch)}
            for subject in self.subjects
            for batch in batches
        }

    @property
    def bases(self) -> Sequence[Document]:
        """The base subjects of the session's results, by name, as cards have them."""
        bases: Sequence[Document] = self.document["bases"]
        return bases

    @cached_property
    def papers(self) -> Mapping[str, Sequence[tuple[Paper, Document]]]:
        """The papers that count by subject, in their order, each with its entry on a card without a mark."""
        return {
            subject.id: [(paper, _paper(paper)) for paper in subject.papers]
            for subject in self.entered.subjects
        }

    @cached_property
    def rules(self) -> Rules:
        """The rules of the class's level, of the settings and the grade bands."""
        settings, level = self.settings, self.scope["level"]
        return Rules(
            level=level,
            places=settings["percent_places"],
            pass_mark=settings["pass_mark"],
            minimum_subjects=settings["minimum_subjects"],
            minimum_terms=settings["minimum_terms"],
            rank_by=settings["rank_by"],
            weights=_weights_of(level, settings["weights"]) if settings["weighting"] == BY_CATEGORY else None,
            term_weights={term: settings[f"{term.lower()}_term_weight"] for term in TERMS},
            bands=[Band(*band) for band in self.document["bands"]],
            percent_from=settings["percent_from"],
        )

    @cached_property
    def entered(self) -> Entered:
        """All entries for the computation of results."""
        ids = [person.id for person in self.everyone]
        takers = {subject: [ids[person] for person in people] for subject, people in self.document["taking"]}
        papers = self._papers(ids)
        return Entered(
            term=self.scope["term"],
            rules=self.rules,
            batch_of={person.id: person.batch for person in self.everyone},
            subjects=[
                TaughtSubject(subject.id, subject.base, papers[number], takers.get(number, ()))
                for number, subject in enumerate(self.subjects)
            ],
            published=[
                Earlier(ids[person], base, term, percent)
                for person, base, term, percent in self._rows("published")
            ],
            brought_in=[*self._brought_in(ids)],
        )

    @property
    def taught(self) -> Iterator[tuple[ClassSubject, TaughtSubject]]:
        """The cohort's subjects, by name, each with its entries."""
        return zip(self.subjects, self.entered.subjects, strict=True)

    def _papers(self, ids: Sequence[str]) -> Mapping[int, Sequence[Paper]]:
        """The papers that count, by the number of their subject, with everyone's marks."""
        loaded = [(subject, Paper(id, *of)) for id, subject, *of in self.document["papers"]]
        for kind in ("absences", "scores"):
            for number, people, marks in self.document[kind]:
                loaded[number][1].marks.update(zip([ids[person] for person in people], marks, strict=True))
        papers: dict[int, list[Paper]] = defaultdict(list)
        for subject, paper in loaded:
            if self.settings["marks"] and self.rules.counts(paper.category):
                papers[subject].append(paper)
        return papers

    def _brought_in(self, ids: Sequence[str]) -> Iterator[BroughtIn]:
        sums: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
        for person, base, category, score, points in self._rows("brought_in"):
            of = sums[ids[person], base, BROUGHT_IN[category]]
            of[0] += score
            of[1] += points
        for (student, base, term), (score, points) in sums.items():
            yield BroughtIn(student, base, term, Decimal(score), Decimal(points))

    def _rows(self, name: str) -> Iterator[tuple[Any, ...]]:
        columns = self.document.get(name)
        return zip(*columns, strict=True) if columns else iter(())


def _paper(paper: Paper) -> Document:
    return {
        "assessment": paper.id,
        "category": paper.category,
        "abbreviation": paper.abbreviation,
        "total_points": paper.total_points,
        "score": None,
        "absence": None,
        "publish": paper.publish,
    }


def _weights_of(level: str, weights: Sequence[Mapping[str, Any]]) -> Mapping[str, int]:
    """Give the weights of categories in hundredths: the level's own or, without any, those of all levels."""
    of_level = level if any(weight["level"] == level for weight in weights) else None
    return {
        weight["category"]: int(weight["weight"] * 100) for weight in weights if weight["level"] == of_level
    }
