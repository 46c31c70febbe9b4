"""The outcomes of students: facts, read once all is locked, and the conclusions from them and from decisions.

Nothing is stored here: a dry run and the commit both come here, with the same input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from hashlib import sha256
from typing import Any
from uuid import UUID

import orjson

from school_service.core.errors import Duplicate, Invalid, NotPublished, Unknown, names_in_words, refuse_named
from school_service.core.read_models import fetch_document
from school_service.core.statements import in_one_round_trip
from school_service.features.people.models import ACTIVE
from school_service.features.people.students import leaving
from school_service.features.people.students.naming import LEFT, names_of, strangers
from school_service.features.results.models import GRADUATED, LEFT_OUT, NO_RESULT, OUTCOMES, REPEATED
from school_service.features.results.promotions import reads
from school_service.features.results.promotions.rules import (
    DEFAULT,
    Reason,
    Rule,
    SessionResult,
    judge,
)
from school_service.features.results.publications.reads import lock_cohorts
from school_service.features.school.cohorts.service import NO_SESSION


@dataclass(frozen=True, slots=True)
class Moves:
    """The moves planned for the students of batches of a session, and the overrides for some of them."""

    session: str
    moves: Sequence[Mapping[str, Any]]
    overrides: Sequence[Mapping[str, Any]]

    @property
    def targets(self) -> list[tuple[str, UUID]]:
        """List the batches to receive students, each with the field of the input for it."""
        by_move = [move[name] for move in self.moves for name in ("promote_to", "repeat_in")]
        return [
            *(("moves", batch) for batch in by_move if batch is not None),
            *(("overrides", override["batch"]) for override in self.overrides if "batch" in override),
        ]


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of a student. `to_batch` is None, too, if the move has no batch for the rule's outcome."""

    student: Mapping[str, Any]
    from_batch: str
    result: SessionResult | None
    by_rule: str
    reasons: Sequence[Reason]
    outcome: str | None
    reason: str | None
    to_batch: str | None

    @property
    def lacks(self) -> bool:
        """Tell whether somebody has to decide the student's outcome, or their next batch."""
        return self.outcome is None or (self.outcome not in (GRADUATED, LEFT_OUT) and self.to_batch is None)

    @property
    def is_new(self) -> bool:
        """Tell whether the student is to be enrolled, and is not yet."""
        batches = {enrollment["batch"] for enrollment in self.student["enrollments"]}
        return self.to_batch is not None and self.to_batch not in batches

    @property
    def number(self) -> str:
        """The student's admission number."""
        number: str = self.student["admission_number"]
        return number

    @property
    def name(self) -> str:
        """The student's name in refusals."""
        return f"{self.student['first_name']} {self.student['last_name']} ({self.number})"

    @property
    def answer(self) -> dict[str, Any]:
        """The decision as it is answered."""
        names = ("id", "admission_number", "first_name", "last_name")
        return {
            "student": {name: self.student[name] for name in names},
            "from_batch": self.from_batch,
            "average": self.result.average if self.result else None,
            "terms": self.result.terms if self.result else None,
            "by_rule": self.by_rule,
            "outcome": self.outcome,
            "reasons": list(self.reasons),
            "reason": self.reason,
            "to_batch": self.to_batch,
            "amended": [],
        }

    @property
    def stored(self) -> dict[str, Any]:
        """The decision by the columns of its row, as JSON."""
        shown = {name: value for name, value in self.answer.items() if name not in ("student", "amended")}
        return {**shown, "student": self.student["id"], "average": self.result and str(self.result.average)}


@dataclass(frozen=True, slots=True)
class Decided:
    """The facts found under the locks, and the conclusions; `left_on` are the graduates' known dates of leaving."""

    session: Mapping[str, Any]
    next_session: Mapping[str, Any] | None
    batches: Mapping[str, Mapping[str, Any]]
    decisions: Sequence[Decision]
    left_on: Mapping[UUID, date]
    fingerprint: str

    @property
    def counts(self) -> dict[str, int]:
        """Count the outcomes."""
        counts = Counter(decision.outcome for decision in self.decisions)
        return {outcome: counts[outcome] for outcome in OUTCOMES}


def find(plan: Moves, fingerprint: str) -> dict[str, Any]:
    """Lock all rows of a promotion, and find the facts for its decisions; one round trip."""
    from_ids = list({move["batch"] for move in plan.moves})
    batch_ids = list({*from_ids, *(target for _, target in plan.targets)})
    locks = lock_cohorts(batch_ids), reads.lock_students(from_ids), reads.lock_cards(plan.session, from_ids)
    read = reads.promoting(plan.session, from_ids, batch_ids, fingerprint)
    facts: dict[str, Any] = fetch_document(in_one_round_trip(*locks, read=read))
    return facts


def judge_all(facts: Mapping[str, Any], plan: Moves) -> Decided:
    """Decide the outcome of each student: by batch in the order of the moves, then by name."""
    if facts["session_id"] is None:
        raise Invalid.field("session", NO_SESSION)
    batches = {batch["id"]: batch for batch in facts["batches"]}
    _refuse_moves(facts, plan, batches)
    next_session = _next_session(facts, plan, batches)
    moved = {str(move["batch"]) for move in plan.moves}
    live = [batch["name"] for batch in facts["batches"] if batch["live"] and batch["id"] in moved]
    if live:
        raise Duplicate(f"Promoted already: {', '.join(live)}. Undo that promotion first.")
    if unpublished := facts["unpublished"]:
        raise NotPublished(
            f"A promotion rests on published results: publish {', '.join(unpublished)} first.",
            {"unpublished": unpublished},
        )
    students = facts["students"]
    by_student = _by_student(plan, students)
    rules = {row["level"]: Rule.of(row) for row in facts["rules"]}
    otherwise = rules.get(None, DEFAULT)
    rule_of = {batch: rules.get(batches[batch]["level"], otherwise) for batch in moved}
    decisions = [
        _decide(rule_of[student["batch"]], student, move, by_student.get(student["id"]))
        for move in plan.moves
        for student in students
        if student["batch"] == str(move["batch"])
    ]
    _refuse_decisions(decisions, plan, by_student)
    if next_session is not None:
        _refuse_elsewhere(decisions, next_session)
    left_on = _left_on(decisions, plan)
    used = {batch: rule_figures(rule) for batch, rule in rule_of.items()}
    return Decided(
        {"id": facts["session_id"], "name": facts["session_name"]},
        next_session,
        batches,
        decisions,
        left_on,
        _fingerprint(used, plan, decisions),
    )


def _refuse_moves(facts: Mapping[str, Any], plan: Moves, batches: Mapping[str, Mapping[str, Any]]) -> None:
    named = [move[name] for move in plan.moves for name in ("batch", "promote_to", "repeat_in")]
    unknown = [str(batch) for batch in named if batch is not None and str(batch) not in batches]
    refuse_named({"moves": {Unknown("no such batch"): [*dict.fromkeys(unknown)]}})
    times = Counter(str(move["batch"]) for move in plan.moves)
    twice = [batches[batch]["name"] for batch, count in times.items() if count > 1]
    refuse_named({"moves": {"named more than once": twice}})
    elsewhere = [
        batches[batch]["name"] for batch in times if batches[batch]["session"] != facts["session_id"]
    ]
    refuse_named({"moves": {f"not of {facts['session_name']}": elsewhere}})
    going_on = [
        batches[str(move["batch"])]["name"]
        for move in plan.moves
        if move.get("left_on") and move["promote_to"] is not None
    ]
    refuse_named({"moves": {"the students go on to a class, and a last day is of graduates": going_on}})


def _next_session(
    facts: Mapping[str, Any], plan: Moves, batches: Mapping[str, Mapping[str, Any]]
) -> dict[str, str] | None:
    """Find the session of the batches to go to: one session, with a later start. Raises Invalid."""
    for field, target in plan.targets:
        if str(target) not in batches:
            refuse_named({field: {Unknown("no such batch"): [str(target)]}})
    targets = [(field, batches[str(target)]) for field, target in plan.targets]
    wrong: dict[str, list[str]] = {}
    for field, batch in targets:
        if batch["start_date"] <= facts["start_date"]:
            wrong.setdefault(field, []).append(batch["name"])
    reason = f"not of a session that starts later than {facts['session_name']}"
    refuse_named({field: {reason: [*dict.fromkeys(names)]} for field, names in wrong.items()})
    sessions = {batch["session"]: batch["session_name"] for _, batch in targets}
    if len(sessions) > 1:
        raise Invalid.field(
            targets[-1][0], f"batches of several sessions: {', '.join(sorted(sessions.values()))}"
        )
    return next(({"id": session, "name": name} for session, name in sessions.items()), None)


def _by_student(plan: Moves, students: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Give the override of each student; raises Invalid naming students outside the batches, and those given twice."""
    known = {student["id"] for student in students}
    times = Counter(str(override["student"]) for override in plan.overrides)
    absent = [student for student in times if student not in known]
    refuse_named({"overrides": strangers(map(UUID, absent), "not in a batch that is to be promoted")})
    twice = [UUID(student) for student, count in times.items() if count > 1]
    refuse_named({"overrides": {"named more than once": names_of(twice)}})
    return {str(override["student"]): override for override in plan.overrides}


def _decide(
    rule: Rule, student: Mapping[str, Any], move: Mapping[str, Any], override: Mapping[str, Any] | None
) -> Decision:
    result = _result(student["card"])
    by_rule, reasons = judge(rule, result, last_class=move["promote_to"] is None)
    given = override or {}
    outcome: str | None = given.get("outcome", None if by_rule == NO_RESULT else by_rule)
    reason = given.get("reason")
    if student["status"] != ACTIVE and not override:
        outcome, reason = LEFT_OUT, f"The student is {student['status']}."
    by_move = move["repeat_in"] if outcome == REPEATED else move["promote_to"]
    to_batch = None if outcome in (None, GRADUATED, LEFT_OUT) else given.get("batch", by_move)
    return Decision(
        student,
        str(move["batch"]),
        result,
        by_rule,
        reasons,
        outcome,
        reason,
        None if to_batch is None else str(to_batch),
    )


def _result(card: Mapping[str, Any] | None) -> SessionResult | None:
    """Read the session result of a card; None without one, or without an average in it."""
    if card is None or card["cumulative"]["average"] is None:
        return None
    session = card["cumulative"]
    percents = {
        subject["base"]: Decimal(subject["percent"])
        for subject in session["subjects"]
        if subject["base"] in card["bases"] and subject["percent"] is not None
    }
    return SessionResult(Decimal(session["average"]), session["terms"], Decimal(card["pass_mark"]), percents)


def _refuse_decisions(
    decisions: Sequence[Decision], plan: Moves, overrides: Mapping[str, Mapping[str, Any]]
) -> None:
    """Raise Invalid for impossible overrides: of students not ACTIVE, and of students without a batch to go to."""
    last = {str(move["batch"]) for move in plan.moves if move["promote_to"] is None}
    reasons: dict[str, list[str]] = {}
    for decision in decisions:
        override = overrides.get(decision.student["id"])
        if override is None:
            continue
        if decision.student["status"] != ACTIVE and override.get("outcome") != LEFT_OUT:
            reason = f"{LEFT[decision.student['status']]}, and can only be {LEFT_OUT}"
        elif "outcome" not in override and decision.outcome == GRADUATED:
            reason = "graduating by the rule, and going into no batch without another outcome"
        elif (
            decision.outcome not in (None, REPEATED, GRADUATED, LEFT_OUT)
            and decision.from_batch in last
            and "batch" not in override
        ):
            reason = f"{override['outcome']} from a batch that graduates, and without a batch to go to"
        else:
            continue
        reasons.setdefault(reason, []).append(decision.name)
    refuse_named({"overrides": reasons})


def _refuse_elsewhere(decisions: Sequence[Decision], next_session: Mapping[str, str]) -> None:
    """Raise Conflict naming students in another batch of the next session."""
    elsewhere = [
        decision
        for decision in decisions
        if decision.is_new
        and next_session["id"] in {each["session"] for each in decision.student["enrollments"]}
    ]
    if elsewhere:
        names = names_in_words([decision.name for decision in elsewhere])
        words = f"{names}: in another batch of {next_session['name']} already."
        raise Duplicate(words, {"students": [decision.number for decision in elsewhere]})


def _left_on(decisions: Sequence[Decision], plan: Moves) -> dict[UUID, date]:
    """Give the date of leaving of each graduate, as far as the moves have one.

    Raises Invalid naming those admitted later, or in the class from a later day on.
    """
    days = {str(move["batch"]): move["left_on"] for move in plan.moves if move.get("left_on")}
    left = [
        decision for decision in decisions if decision.outcome == GRADUATED and decision.from_batch in days
    ]
    later = [decision.name for decision in left if _came_later(decision.student, days[decision.from_batch])]
    refuse_named({"moves": {"the last day is before the admission, or the first day in the class": later}})
    return {UUID(decision.student["id"]): days[decision.from_batch] for decision in left}


def _came_later(student: Mapping[str, Any], left_on: date) -> bool:
    admitted_on, last = student["admitted_on"], leaving.last_class(student["enrollments"], left_on)
    return (admitted_on or "") > left_on.isoformat() or leaving.began_later(last, left_on)


def _fingerprint(rules: Mapping[str, Any], plan: Moves, decisions: Sequence[Decision]) -> str:
    """Write all facts and decisions as 64 characters: equal facts and decisions have equal characters."""
    document = {
        "rules": rules,
        "moves": {
            str(move["batch"]): [move["promote_to"], move["repeat_in"], *filter(None, [move.get("left_on")])]
            for move in plan.moves
        },
        "overrides": {
            str(override["student"]): [override.get(name) for name in ("outcome", "batch", "reason")]
            for override in plan.overrides
        },
        "decisions": {
            decision.student["id"]: [
                decision.stored,
                decision.is_new,
                decision.student["card"]
                and [decision.student["card"][name] for name in ("publication", "version")],
            ]
            for decision in decisions
        },
    }
    return sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()


def rule_figures(rule: Rule) -> dict[str, Any]:
    """The figures of a rule for the audit log, and for a fingerprint."""
    return {
        "minimum_average": _figure(rule.minimum_average),
        "trial_average": _figure(rule.trial_average),
        "required_subjects": sorted(rule.required or ()),
        "required_percent": _figure(rule.required_percent),
        "maximum_failed": rule.maximum_failed,
        "minimum_terms": rule.minimum_terms,
    }


def _figure(number: Decimal | None) -> str | None:
    """Write a number in one way, however many zeros it came with."""
    return None if number is None else f"{number:.2f}"
