"""Whether batches may be published, and the obstacles: judged of the loaded entries, by a pure function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from school_service.core.errors import Duplicate, Incomplete, Locked, NotPublished, Unknown, refuse_named
from school_service.features.results.computing.cards import ClassRecord, comments_of
from school_service.features.results.computing.class_term.loaded import Loaded, Member
from school_service.features.results.computing.compute import Computed, blanks, compute
from school_service.features.results.models import PUBLISHED
from school_service.features.scores.models import OF_COHORT

MOST_NAMED = 20  # students in a refusal, of each result
MOST_MISSING = 200  # students named in a dry run, of each lack

NamesOf = Callable[[Iterable[UUID]], Sequence[str]]
"""Gives the names of students by their ids, in this order."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The results to publish: of batches of a cohort in a term, by its id or its name in the batches' session.

    `leave_out` are students without a card, each with a reason, until `take_in` names them. `without_subjects` are
    cohort subjects with takers in which nothing counts: the next version is without them, too.
    """

    batches: Sequence[UUID]
    term: str
    leave_out: Sequence[Mapping[str, Any]] = ()
    take_in: Sequence[UUID] = ()
    without_subjects: Sequence[UUID] = ()

    @property
    def batch_ids(self) -> list[UUID]:
        """The batches, each once."""
        return list(dict.fromkeys(self.batches))

    @property
    def left_out(self) -> list[UUID]:
        """The students to leave out."""
        return [entry["student"] for entry in self.leave_out]


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A batch to publish: the `version` to be, and the people of its cards; `left` are not enrolled in it any more.

    `without_assessments` are the subjects with takers in which nothing counts; `without_subjects` the ids of those that
    may be left out: named now, or for the version before.
    """

    batch: str
    name: str
    version: int
    people: Sequence[Member]
    left: Sequence[str]
    without_assessments: Sequence[Mapping[str, Any]]
    without_subjects: Sequence[str]


@dataclass(frozen=True, slots=True)
class Judged:
    """The results to publish, with all contents of their cards.

    `leaving` and `coming` are the batches of students left out, and taken in, by the student's id.
    """

    row: Mapping[str, Any]
    record: ClassRecord
    computed: Computed
    versions: Sequence[NewVersion]
    leaving: Mapping[str, str]
    coming: Mapping[str, str]


def judge(row: Mapping[str, Any], plan: Plan, *, names: NamesOf, rehearsed: bool = False) -> Judged:
    """Judge a row of `reads.publishing`: each batch gets its next version. `names` gives the names of students.

    Raises Invalid for batches unknown or of another cohort, for students to leave out who do not belong to them,
    students to take in who were not left out, and `without_subjects` with something to publish; and Conflict if
    something has to be done first, naming it. Of a dry run, `rehearsed`, subjects without assessments are no obstacle.
    """
    whole = Loaded.of(row)
    if whole is None:
        raise RuntimeError("A publication has loaded no class.")
    loaded = whole.shown_to(None)
    _refuse_batches(plan.batch_ids, row["batches"], loaded.scope["cohort_id"])
    leaving, coming = dict(row["leaving"] or ()), dict(row["coming"] or ())
    _refuse_strangers(plan, leaving, coming, names)
    named = [str(subject) for subject in plan.without_subjects]
    versions = [_next_version(batch, loaded, named) for batch in row["batches"]]
    empty = [batch for batch, version in zip(row["batches"], versions, strict=True) if not version.people]
    if empty:
        raise Incomplete(f"There is nobody in: {_names(empty)}.")
    _refuse_with_assessments(named, versions, {subject.id: subject.name for subject in loaded.subjects})
    record, computed = ClassRecord(loaded, row["record"]), compute(loaded.entered)
    in_the_way = _InTheWay(row, record, {str(batch) for batch in plan.batches})
    _refuse_unsubmitted([*in_the_way.unsubmitted()])
    _refuse_incomplete([*in_the_way.incomplete()])
    earlier = row["earlier"] if loaded.settings["marks"] else ()
    _refuse_other_terms(_by_results(earlier), _changing(row["later"], loaded, computed))
    if not rehearsed:
        _refuse_left_out([*_left_out(versions)])
    return Judged(row, record, computed, versions, leaving, coming)


def _next_version(batch: Mapping[str, Any], loaded: Loaded, named: Collection[str]) -> NewVersion:
    members = [person for person in loaded.people if person.batch == batch["id"]]
    left = sorted((member.id for member in members if member.enrolled_in != batch["id"]), key=UUID)
    lacking = [*_without_assessments(loaded, {member.id for member in members})]
    accepted = {*named, *(batch["without_subjects"] or ())}
    without = [subject["cohort_subject"] for subject in lacking if subject["cohort_subject"] in accepted]
    return NewVersion(batch["id"], batch["arm"], batch["latest"] + 1, members, left, lacking, without)


def _without_assessments(loaded: Loaded, members: Collection[str]) -> Iterator[dict[str, Any]]:
    """Name the subjects with takers among the members in which nothing counts; none of a level without marks."""
    if not loaded.settings["marks"]:
        return
    for subject, taught in loaded.taught:
        takers = 0 if taught.papers else sum(student in members for student in taught.takers)
        if takers:
            yield {"cohort_subject": subject.id, "subject": subject.name, "takers": takers}


def _left_out(versions: Iterable[NewVersion]) -> Iterator[dict[str, Any]]:
    """Name the subjects without assessments that nobody has agreed to leave out, with the takers of all batches."""
    by_subject: dict[str, dict[str, Any]] = {}
    for version in versions:
        for subject in version.without_assessments:
            if (id := subject["cohort_subject"]) not in version.without_subjects:
                takers = by_subject[id]["takers"] if id in by_subject else 0
                by_subject[id] = {**subject, "takers": takers + subject["takers"]}
    yield from by_subject.values()


def lacks(judged: Judged, version: NewVersion) -> dict[str, Any]:
    """Name the parts that the cards of a version to be lack: they refuse nothing in a dry run."""
    record, kinds = judged.record, {*judged.row["trait_types"]}
    comments = [
        person.id
        for person in version.people
        if None in comments_of(record, judged.computed, person).values()
    ]
    traits = [
        person.id
        for person in version.people
        if kinds - {trait["type"] for trait in record.traits.get(person.id, ())}
    ]
    lacking = version.without_assessments
    return {
        "without_assessments": {"count": len(lacking), "subjects": lacking},
        "comments_missing": _counted(comments),
        "traits_missing": _counted(traits),
        "photos_missing": _photos_missing(judged, version),
    }


def _photos_missing(judged: Judged, version: NewVersion) -> dict[str, Any] | None:
    """Name the students without a photo, if cards show it."""
    loaded = judged.record.loaded
    if not loaded.settings["show_photo"]:
        return None
    shown = {loaded.everyone[number].id for number in judged.row["with_photo"]}
    return _counted([person.id for person in version.people if person.id not in shown])


def _counted(students: Sequence[str]) -> dict[str, Any]:
    return {"count": len(students), "students": students[:MOST_MISSING]}


def _refuse_batches(ids: Collection[UUID], batches: Sequence[Mapping[str, Any]], cohort_id: str) -> None:
    """Raise Invalid or Conflict for batches unfit for publishing by themselves, naming them all."""
    known = {batch["id"] for batch in batches}
    unknown = [str(batch) for batch in ids if str(batch) not in known]
    refuse_named({"batches": {Unknown("no such batch"): unknown}})
    elsewhere = [batch["name"] for batch in batches if batch["cohort"] != cohort_id]
    refuse_named({"batches": {"not of the same cohort": elsewhere}})
    done = _names(batch for batch in batches if batch["state"] == PUBLISHED)
    if done:
        raise Duplicate(f"Published already: {done}.")


def _refuse_strangers(
    plan: Plan, leaving: Mapping[str, str], coming: Mapping[str, str], names: NamesOf
) -> None:
    """Raise Invalid for students who can't be left out, or taken in."""
    twice = names(student for student, times in Counter(plan.left_out).items() if times > 1)
    strangers = names(student for student in plan.left_out if str(student) not in leaving)
    not_out = names(student for student in plan.take_in if str(student) not in coming)
    refuse_named(
        {
            "leave_out": {
                "named more than once": twice,
                Unknown("not of these batches in that term"): strangers,
            },
            "take_in": {Unknown("not left out of these batches, or with a card of another"): not_out},
        }
    )


class _InTheWay:
    """The work left in a class before its results are published.

    The results of the batches alone have to be submitted and complete, unless positions in the cohort are shown: then
    every arm's.
    """

    def __init__(self, row: Mapping[str, Any], record: ClassRecord, batches: Collection[str]) -> None:
        self._record, self._loaded = record, record.loaded
        of_every_arm = self._loaded.settings["positions"] in OF_COHORT
        self._arms = [arm for arm in record.arms.values() if of_every_arm or arm.id in batches]
        self._submitted = {(subject, batch): at for subject, batch, at, *_ in row["submissions"]}
        self._stays: dict[str, list[tuple[str, int | None]]] = {}
        for number, batch, ended in row["stays"]:
            self._stays.setdefault(self._loaded.everyone[number].id, []).append((batch, ended))

    def unsubmitted(self) -> Iterator[dict[str, Any]]:
        """Name the subjects that count, with takers in an arm, and without submitted results there.

        Each has these arms if other arms are submitted.
        """
        batch_of = {person.id: person.batch for person in self._loaded.everyone}
        for subject, taught in self._loaded.taught:
            if not taught.papers:
                continue
            takers: dict[str, list[str]] = {}
            for student in taught.takers:
                takers.setdefault(batch_of[student], []).append(student)
            lacking = [
                arm.name
                for arm in self._arms
                if (subject.id, arm.id) not in self._submitted
                and any(not self._is_held(student, subject.id) for student in takers.get(arm.id, ()))
            ]
            some = any((subject.id, arm.id) in self._submitted and takers.get(arm.id) for arm in self._arms)
            if lacking:
                yield {"subject": subject.name, "arms": lacking if some else None}

    def _is_held(self, student: str, subject: str) -> bool:
        """Tell whether a submission of a present or former arm of a student holds their result in a subject.

        So a student from an arm submitted before is submitted with it.
        """
        stays = self._stays.get(student, ())
        for batch, ended in stays:
            at = self._submitted.get((subject, batch))
            if at is not None and (ended is None or at <= ended):
                return True
        is_enrolled = any(ended is None for _, ended in stays)
        return not is_enrolled and any(of == subject for of, _ in self._submitted)

    def incomplete(self) -> Iterator[dict[str, Any]]:
        """Name the subjects with blanks, and the students of these."""
        arms = {arm.id for arm in self._arms}
        for subject, taught in self._loaded.taught:
            blank = {student for _, student in blanks(self._loaded.entered, taught)}
            people = [
                person for person in self._loaded.everyone if person.id in blank and person.batch in arms
            ]
            if people:
                people.sort(key=lambda person: person.place)
                numbers = [person.student["admission_number"] for person in people]
                yield {"subject": subject.name, "students": numbers}


def _changing(
    later: Iterable[tuple[str, str, str, Any]], loaded: Loaded, computed: Computed
) -> list[dict[str, Any]]:
    """Name published results of later terms with session figures that would change, each with the admission numbers.

    They rest on the percents of the graded subjects of this term. For some students these differ from the card in
    force, if there is one.
    """
    percents: dict[str, dict[str, Any]] = {}
    for subject in loaded.subjects:
        for student, result in computed.subjects[subject.id].items():
            if result["percent"] is not None:
                percents.setdefault(student, {})[subject.base] = result["percent"]
    return _by_results(
        (name, number) for name, student, number, rested_on in later if percents.get(student) != rested_on
    )


def _by_results(pairs: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Name results, each with the admission numbers of its students, in their order."""
    students: dict[str, list[str]] = {}
    for name, number in pairs:
        students.setdefault(name, []).append(number)
    return [{"results": name, "students": numbers} for name, numbers in students.items()]


def _refuse_unsubmitted(subjects: Sequence[Mapping[str, Any]]) -> None:
    if subjects:
        words = [
            f"{subject['subject']} ({', '.join(subject['arms'])})" if subject["arms"] else subject["subject"]
            for subject in subjects
        ]
        raise Incomplete(
            f"Not submitted yet: {', '.join(words)}.",
            {"subjects": [subject["subject"] for subject in subjects]},
        )


def _refuse_incomplete(subjects: Sequence[Mapping[str, Any]]) -> None:
    if subjects:
        words = "; ".join(f"{subject['subject']}: {', '.join(subject['students'])}" for subject in subjects)
        raise Incomplete(
            f"Something is blank since it was submitted. Reopen the subject, and enter what is missing. {words}.",
            {"incomplete": subjects},
        )


def _refuse_with_assessments(
    named: Sequence[str], versions: Iterable[NewVersion], subjects: Mapping[str, str]
) -> None:
    """Raise Invalid for subjects to leave out that have something to publish, or nobody to publish it of."""
    lacking = {subject["cohort_subject"] for version in versions for subject in version.without_assessments}
    others = [subject for subject in named if subject not in lacking]
    if others:
        reason = "with an assessment that counts, without takers in these batches, or not of the cohort"
        refuse_named(
            {"without_subjects": {Unknown(reason): [subjects.get(subject, subject) for subject in others]}}
        )


def _refuse_left_out(subjects: Sequence[Mapping[str, Any]]) -> None:
    if subjects:
        raise Incomplete(
            f"Nothing counts in: {', '.join(subject['subject'] for subject in subjects)}. "
            "Set an assessment that counts, or name them in without_subjects, and no card has them.",
            {"without_assessments": subjects},
        )


def _refuse_other_terms(earlier: Sequence[Mapping[str, Any]], later: Sequence[Mapping[str, Any]]) -> None:
    """Raise Conflict for results of other terms to be published, or reopened, first."""
    if earlier:
        raise NotPublished(
            f"The results of the session rest on earlier terms: publish {_results(earlier)} first.",
            {"earlier": _shortened(earlier)},
        )
    if later:
        raise Locked(
            f"The session results of later terms would change: reopen {_results(later)} first.",
            {"later": _shortened(later)},
        )


def _results(results: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(row["results"] for row in results)


def _shortened(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Results with their students, at most MOST_NAMED of them."""
    return [{**subject, "students": subject["students"][:MOST_NAMED]} for subject in results]


def _names(batches: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(batch["name"] for batch in batches)
