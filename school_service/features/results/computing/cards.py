"""The results of a student: subject results, a term result and a report card, as dictionaries.

They are made of the loaded entries and the computed figures. A published card is such a dictionary, stored; a draft is
made now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from school_service.core.exact_json import write_json
from school_service.features.results.computing.class_term.loaded import ClassSubject, Loaded, Member
from school_service.features.results.computing.compute import (
    Computed,
    Paper,
    Result,
    in_hundredths,
)
from school_service.features.results.models import BEST, LAYOUT, POOREST
from school_service.features.scores.models import DEFAULTS

CardPart = dict[str, Any]

_TRAIT_KEY = [{"value": BEST, "meaning": "Excellent"}, {"value": POOREST, "meaning": "Poor"}]
_SETTINGS = (
    "positions", "pass_mark", "percent_places", "verification", "name_order", "signatures", "show_teachers",
    "show_ca_total", "show_photo", "marks",
)  # fmt: skip


def subject_result(loaded: Loaded, subject: ClassSubject, person: Member, result: Result) -> CardPart:
    """Give the result of a student in a subject."""
    return {
        "subject": loaded.subjects_in_batches[subject.id, person.batch],
        "scores": _scores(loaded.papers[subject.id], person.id),
        **result,
    }


def term_result(loaded: Loaded, computed: Computed, person: Member) -> CardPart:
    """Give the result of a student in a term, and in the session until it."""
    return {
        "subjects": [
            subject_result(loaded, subject, person, result)
            for subject in loaded.subjects
            if (result := computed.subjects[subject.id].get(person.id)) is not None
        ],
        **computed.terms[person.id],
        "cumulative": {**computed.sessions[person.id], "subjects": [*_of_session(loaded, computed, person)]},
    }


def _of_session(loaded: Loaded, computed: Computed, person: Member) -> Iterator[CardPart]:
    results = computed.bases[person.id]
    for base in loaded.bases:
        if (result := results.get(base["base"])) is not None:
            yield {**base, "terms": result.terms, "percent": result.percent, "grade": result.grade}


def _scores(papers: Iterable[tuple[Paper, Mapping[str, Any]]], student: str) -> list[Mapping[str, Any]]:
    """Give the scores of a student in papers, each given with the document shown to all students."""
    said = []
    for paper, document in papers:
        mark = paper.marks.get(student)
        if isinstance(mark, int):
            document = {**document, "score": in_hundredths(mark)}
        elif mark is not None:
            document = {**document, "absence": mark}
        said.append(document)
    return said


class ArmOnCard(NamedTuple):
    """A batch of the cohort: the class's name on paper, and its form teacher."""

    id: str
    name: str
    class_name: str
    form_teacher: str | None


@dataclass(frozen=True)
class ClassRecord:
    """The contents of cards beside figures: the document of `class_term.record`, and its class."""

    loaded: Loaded
    document: Mapping[str, Any]

    @cached_property
    def arms(self) -> Mapping[str, ArmOnCard]:
        """The batches of the cohort by id, in the order of their names."""
        return {arm[0]: ArmOnCard(*arm) for arm in self.document["arms"]}

    @cached_property
    def of_class(self) -> Mapping[str, Any]:
        """The members common to all cards of the class, written once."""
        settings, scope = self.loaded.settings, self.loaded.scope
        return {
            "layout": LAYOUT,
            "trait_key": _TRAIT_KEY,
            "term_name": scope["term_name"],
            "level": scope["level"],
            "letterhead": orjson.Fragment(write_json(self.document["letterhead"])),
            "calendar": orjson.Fragment(write_json(self.document["calendar"])),
            "bands": orjson.Fragment(write_json(bands(self.loaded))),
            **{name: settings[name] for name in _SETTINGS},
            "has_stamp": True,
            "time_zone": self.document["time_zone"],
        }

    @cached_property
    def in_batch(self) -> Mapping[str, int]:
        """The number of members of each batch."""
        numbers: dict[str, int] = defaultdict(int)
        for person in self.loaded.everyone:
            numbers[person.batch] += 1
        return numbers

    @cached_property
    def comments(self) -> Mapping[str, Sequence[Any]]:
        """The comments of the form teacher and of the principal, and the times typed in, by student."""
        return {
            self._id(number): comment for number, *comment in zip(*self.document["comments"], strict=True)
        }

    @cached_property
    def traits(self) -> Mapping[str, Sequence[CardPart]]:
        """The students' scores of traits, in the order of the metric sheets."""
        traits: dict[str, list[CardPart]] = defaultdict(list)
        for number, kind, name, value in self.document["traits"]:
            traits[self._id(number)].append({"type": kind, "name": name, "value": value})
        return traits

    @cached_property
    def attended(self) -> Mapping[str, Sequence[int]]:
        """The sums of the registers, by student: times opened, present and absent."""
        columns = self.document["attendance"]
        return {self._id(number): sums for number, *sums in zip(*columns, strict=True)}

    def _id(self, number: int) -> str:
        return self.loaded.everyone[number].id


def card(
    record: ClassRecord, computed: Computed, person: Member, *, version: int | None, published_at: str | None
) -> CardPart:
    """Write a student's whole card: of a version published at a moment, or of a draft."""
    loaded, arm = record.loaded, record.arms[person.batch]
    *_, present = record.comments.get(person.id, (None, None, None))
    result = term_result(loaded, computed, person)
    return {
        **record.of_class,
        "version": version,
        "published_at": published_at,
        "number_in_class": record.in_batch[person.batch],
        "class_name": arm.class_name,
        "form_teacher_name": arm.form_teacher,
        **loaded.head(person.batch, arm.name),
        **result,
        "student": {**person.student, "dob": person.dob},
        "attendance": _attendance(record, person, present),
        "traits": record.traits.get(person.id, []),
        "comments": comments_of(record, computed, person),
    }


def comments_of(record: ClassRecord, computed: Computed, person: Member) -> dict[str, str | None]:
    """The comments on a student; without a principal's, the settings' comment for the average."""
    form_teacher, principal, _ = record.comments.get(person.id, (None, None, None))
    if principal is None:
        chosen = record.loaded.settings["principal_comments"]
        principal = _comment_of(chosen, computed.terms[person.id]["average"])
    return {"form_teacher": form_teacher, "principal": principal}


def _attendance(record: ClassRecord, person: Member, present: int | None) -> CardPart:
    """How often school opened for a student, and how often they came: by the registers, or as it was typed in."""
    if record.document["by_registers"]:
        opened, present, absent = record.attended.get(person.id, (None, None, None))
    else:
        opened = record.document["calendar"]["times_opened"]
        absent = None if opened is None or present is None else opened - present
    return {"opened": opened, "present": present, "absent": absent}


def _comment_of(comments: Sequence[Mapping[str, Any]], average: Decimal | None) -> str | None:
    """Find the principal's comment for an average: the one with the highest threshold reached."""
    reached = [
        comment for comment in comments if average is not None and comment["lower_threshold"] <= average
    ]
    text: str | None = (
        max(reached, key=lambda comment: comment["lower_threshold"])["comment"] if reached else None
    )
    return text


def rules_of(loaded: Loaded) -> CardPart:
    """The settings and grade bands that cards are made by."""
    return {**{name: loaded.settings[name] for name in (*DEFAULTS, "marks")}, "bands": bands(loaded)}


def bands(loaded: Loaded) -> list[CardPart]:
    """The grade bands as cards and publications have them, from high to low."""
    return [
        {"grade": band.grade, "lower_threshold": band.threshold, "remark": band.remark}
        for band in reversed(loaded.rules.bands)
    ]
