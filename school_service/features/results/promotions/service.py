"""Promotions: at the end of a session students go on, repeat or graduate; and the undoing of a promotion.

Promoting and undoing lock the present and the next cohorts of students FOR NO KEY UPDATE, in order of id, then the
students. Enrolling, removing, submitting, publishing and commenting lock the cohort; the choice of a subject and a
graduation lock the student: so the facts judged are the facts written. Undoing locks the assessments of the next
session, too, between cohorts and students, for the entry of scores locks those alone; and the counter of graduates, at
the end.

A commit repeats the answer of a dry run by its fingerprint. Both are judged by the same function of the same facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import orjson
from sqlalchemy import DateTime, Uuid, case, column, delete, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from school_service.auth.principal import Principal
from school_service.core.database import request_context
from school_service.core.errors import SAID_BACK, Conflict, InUse, Invalid, Stale, Unknown, joined
from school_service.core.permissions import Permission
from school_service.core.read_models import BoundQuery, Made, array_of, fetch_document, json_object
from school_service.core.records import check_of_filters, json_rows, not_found, one_of
from school_service.core.statements import Executable, NewRows, execute, in_one_round_trip, new_row, statement
from school_service.features.audit.service import acting, audit_change
from school_service.features.classes.enrollments.service import (
    delete_enrollments,
    reopen_enrollments,
    start_enrollments,
)
from school_service.features.classes.models import CohortSubject, SubjectEnrollment
from school_service.features.results.graduates import service as graduates
from school_service.features.results.models import (
    GRADUATED,
    Promotion,
    PromotionBatch,
    PromotionDecision,
    PromotionRule,
    RequiredSubject,
)
from school_service.features.results.promotions import reads
from school_service.features.results.promotions.deciding import Decided, Moves, find, judge_all, rule_figures
from school_service.features.results.promotions.rules import WITHOUT_FIGURES, Rule
from school_service.features.school.cohorts.service import find_session
from school_service.features.school.models import CURRENT, Enrollment
from school_service.features.school.settings.service import lock_settings
from school_service.features.scores.models import Assessment
from tenants.clock import now

ENTITY, RULES = "promotion", "promotion-rules"
MOST_NAMED = 20
"""How many students a refusal to undo names."""


# Rules


def replace_rules(*, rules: Sequence[Mapping[str, Any]]) -> BoundQuery:
    """Replace the rules of promotion, all of them.

    Returns their read model; they are stored in its round trip. Raises Invalid for a level given twice or without
    classrooms, a trial average not below the average, and unknown subjects.
    """
    read = reads.promotion_rules()
    levels = [rule["level"] for rule in rules if rule["level"] is not None]
    subjects = list({subject for rule in rules for subject in rule["required_subjects"]})
    facts = fetch_document(in_one_round_trip(lock_settings(), read=reads.replacing(levels, subjects)))
    _refuse_rules(rules, set(facts["levels"]), set(facts["subjects"]))
    old = {row["level"]: rule_figures(Rule.of(row)) for row in facts["rules"]}
    new = {rule["level"]: rule_figures(_rule(rule)) for rule in rules}
    if new == old:
        return read
    audit_change(RULES, request_context().school_id, old={"rules": _listed(old)}, new={"rules": _listed(new)})
    rows = [
        new_row(PromotionRule, **{name: rule[name] for name in rule if name != "required_subjects"})
        for rule in rules
    ]
    required = [
        new_row(RequiredSubject, rule_id=row.id, subject_id=subject)
        for row, rule in zip(rows, rules, strict=True)
        for subject in dict.fromkeys(rule["required_subjects"])
    ]
    return in_one_round_trip(_delete_rules(), *rows, *required, read=read)


def _rule(given: Mapping[str, Any]) -> Rule:
    """A rule of the input; the names of subjects do not matter there."""
    subjects = [{"id": str(subject), "name": ""} for subject in given["required_subjects"]]
    return Rule.of({**given, "required_subjects": subjects})


def _refuse_rules(rules: Sequence[Mapping[str, Any]], levels: set[str], subjects: set[str]) -> None:
    reasons = []
    for level, times in Counter(rule["level"] for rule in rules).items():
        name = "all others" if level is None else f'the level "{level[:SAID_BACK]}"'
        if times > 1:
            reasons.append(f"there are {times} for {name}")
        if level is not None and level not in levels:
            reasons.append(f"no classroom has {name}")
    for rule in rules:
        name = "all others" if rule["level"] is None else f'the level "{rule["level"][:SAID_BACK]}"'
        if rule["trial_average"] is not None and rule["trial_average"] >= rule["minimum_average"]:
            reasons.append(f"{name}: the average for a trial is not less than that for promotion")
        unknown = [str(subject) for subject in rule["required_subjects"] if str(subject) not in subjects]
        if unknown:
            reasons.append(Unknown(f"{name}: no such subjects: {', '.join(unknown)}"))
    if reasons:
        raise Invalid("; ".join(reasons), {"_schema": [joined(reasons)]})


def _listed(rules: Mapping[str | None, Mapping[str, Any]]) -> list[dict[str, Any]]:
    in_order = sorted(rules.items(), key=lambda rule: (rule[0] is None, rule[0] or ""))
    return [{"level": level, **rule} for level, rule in in_order]


# Promoting


class TargetBatch(NamedTuple):
    """A batch to go to."""

    id: UUID
    cohort_id: UUID

    @classmethod
    def of(cls, batch: Mapping[str, Any]) -> TargetBatch:
        """Read it of a document with its `id` and its `cohort`."""
        return cls(UUID(batch["id"]), UUID(batch["cohort"]))


check_promotion_filter = check_of_filters(session=find_session)


def rehearse(*, plan: Moves, principal: Principal) -> dict[str, Any]:
    """Answer as `promote` would, and store nothing; raises the same errors.

    A student without a result, or a batch to repeat in, is shown with `outcome` or `to_batch` None, to be decided.
    Averages, and the figures in the reasons, are left out for a caller without the right to read results.
    """
    judged = judge_all(find(plan, ""), plan)
    promotion = {
        "id": None,
        "session": judged.session,
        "next_session": judged.next_session,
        "fingerprint": judged.fingerprint,
        "committed_at": None,
        "committed_by_name": None,
        "undone_at": None,
        "undone_by_name": None,
        "counts": judged.counts,
        "decisions": [decision.answer for decision in judged.decisions],
    }
    return promotion if principal.has(Permission.RESULTS_READ) else _without_figures(promotion)


def promote(*, plan: Moves, fingerprint: str | None, principal: Principal) -> BoundQuery | Made:
    """Promote the students of batches, all or none, as the dry run of this fingerprint answered.

    If there is a live promotion of the fingerprint, this one is returned, and nothing changes. Returns the read model
    of the promotion. Raises Invalid for unknown ids, for batches of the wrong session, for overrides without a
    decision, and naming the students without one; Conflict if something has changed since the dry run, if results are
    not published, if a batch is promoted already, and naming students in another batch of the next session; Forbidden
    if students graduate and the caller may not write graduates.
    """
    if fingerprint is None:
        raise Invalid.field("fingerprint", "is needed: it is that of the dry run that was seen")
    facts = find(plan, fingerprint)
    if facts["committed"] is not None:
        return _shown_to(principal, facts["committed"])
    judged = judge_all(facts, plan)
    if fingerprint != judged.fingerprint:
        raise Stale("Something has changed since that dry run: look at a new one, and commit that.")
    lacking = [decision.number for decision in judged.decisions if decision.lacks]
    if lacking:
        raise Invalid.field(
            "overrides", f"it has to be decided what becomes of them, and where they go: {', '.join(lacking)}"
        )
    leaving = {
        UUID(decision.student["id"]): decision.student["enrollments"]
        for decision in judged.decisions
        if decision.outcome == GRADUATED
    }
    if leaving:
        principal.require((Permission.GRADUATES_WRITE,), "Letting students graduate")
    promotion_id, moment = uuid4(), now()
    audit_change(
        ENTITY,
        promotion_id,
        new={
            "session": judged.session["id"],
            "next_session": judged.next_session and judged.next_session["id"],
            "batches": [str(move["batch"]) for move in plan.moves],
            "counts": judged.counts,
        },
    )
    writing = _writing(promotion_id, plan, judged, moment)
    if leaving:
        graduates.graduate_all(*writing, enrollments=leaving, left_on=judged.left_on)
        writing = []
    return _shown_to(principal, promotion_id, *writing)


def _shown_to(principal: Principal, promotion_id: UUID, *before: Executable) -> BoundQuery | Made:
    """Read a promotion; without figures for a caller without the right to read results."""
    read = in_one_round_trip(*before, read=reads.promotion(promotion_id))
    if principal.has(Permission.RESULTS_READ):
        return read
    return Made(read, lambda promotion, _reach: _without_figures(promotion))


def _without_figures(promotion: Mapping[str, Any]) -> dict[str, Any]:
    """Show a promotion without averages, and without figures in the reasons."""
    return {
        **promotion,
        "decisions": [decided_without_figures(decision) for decision in promotion["decisions"]],
    }


def decided_without_figures(decision: Mapping[str, Any]) -> dict[str, Any]:
    """Show a decision without the average, and without figures in the reasons."""
    reasons = [{**reason, "message": WITHOUT_FIGURES[reason["code"]]} for reason in decision["reasons"]]
    return {**decision, "average": None, "reasons": reasons}


def _writing(promotion_id: UUID, plan: Moves, judged: Decided, moment: datetime) -> list[Executable]:
    """Write the rows of a promotion, and the enrollments: statements for one round trip."""
    new = [
        (decision.student["id"], judged.batches[str(decision.to_batch)])
        for decision in judged.decisions
        if decision.is_new
    ]
    made = {student: uuid4() for student, _ in new}
    enrollments = [(made[student], UUID(student), TargetBatch.of(batch)) for student, batch in new]
    actor, actor_name = acting()
    promotion = new_row(
        Promotion,
        id=promotion_id,
        session_id=judged.session["id"],
        next_session_id=judged.next_session and judged.next_session["id"],
        fingerprint=judged.fingerprint,
        committed_at=moment,
        committed_by=actor,
        committed_by_name=actor_name,
    )
    batches = [
        new_row(
            PromotionBatch,
            promotion_id=promotion_id,
            batch_id=move["batch"],
            number=number,
            promote_to_id=move["promote_to"],
            repeat_in_id=move["repeat_in"],
            live=True,
        )
        for number, move in enumerate(plan.moves, 1)
    ]
    decisions = [
        {**decision.stored, "enrollment": made.get(decision.student["id"])} for decision in judged.decisions
    ]
    return [
        promotion,
        NewRows(batches),
        *(start_enrollments(enrollments) if enrollments else ()),
        _insert_decisions(promotion_id, orjson.dumps(decisions).decode()),
    ]


# Undoing


def undo(*, promotion_id: UUID, principal: Principal) -> UUID:
    """Undo a promotion: take its enrollments back, and its graduates; returns its id.

    Raises NotFound, Forbidden if students graduated by it and the caller may not write graduates, and Conflict if it is
    undone already, or if records rest on it, naming students and records.
    """
    locks = (
        reads.lock_cohorts_of(promotion_id),
        reads.lock_assessments_of(promotion_id),
        reads.lock_students_of(promotion_id),
        reads.lock_numbers_of_graduates(),
    )
    promotion = fetch_document(in_one_round_trip(*locks, read=reads.undoing(promotion_id)))
    if promotion is None:
        raise not_found(Promotion)
    graduated, made = promotion["graduates"], promotion["enrollments"]
    if graduated:
        principal.require((Permission.GRADUATES_WRITE,), "Taking back that students graduated")
    if promotion["undone"]:
        raise Conflict("The promotion is undone already.")
    resting = [hindrance for hindrance in promotion["rests"] if hindrance["what"]][:MOST_NAMED]
    if resting:
        named = "; ".join(f"{hindrance['student']}: {hindrance['what']}" for hindrance in resting)
        raise InUse(f"Something rests on the promotion. {named}.", {"students": resting})
    audit_change(ENTITY, promotion_id, old={"counts": promotion["counts"]})
    back = {UUID(move["student"]): move["enrollments"] for move in (*graduated, *promotion["moved"])}
    execute(
        _touch_assessments(promotion_id),
        _forget_enrollments(promotion_id),
        *(delete_enrollments(made) if made else ()),
        take_up_subjects(promotion_id, promotion["students"]),
        *(graduates.undo_graduations(graduates=graduated) if graduated else ()),
        *(reopen_enrollments(enrollments=back) if back else ()),
        _end_batches(promotion_id),
        _end(promotion_id, now(), *acting()),
    )
    return promotion_id


# Statements


@statement
def _delete_rules() -> Any:
    return delete(PromotionRule)


@statement
def _insert_decisions(promotion_id: UUID, decisions: str) -> Any:
    """Insert decisions, JSON, with the enrollments and subjects of graduates before they leave them."""
    columns: Any = {name: PromotionDecision.__table__.c[column].type for name, column in _DECIDED.items()}
    rows = json_rows("decided", decisions, **columns)
    enrollments = (
        select(array_of(Enrollment.id))
        .where(Enrollment.student_id == rows.c.student, CURRENT)
        .correlate(rows)
        .scalar_subquery()
    )
    subject = json_object(
        cohort_subject_id=SubjectEnrollment.cohort_subject_id, created_at=SubjectEnrollment.created_at
    )
    subjects = (
        select(array_of(subject))
        .where(SubjectEnrollment.student_id == rows.c.student)
        .correlate(rows)
        .scalar_subquery()
    )
    before = func.jsonb_build_object("enrollments", enrollments, "subjects", subjects)
    values: dict[str, Any] = {
        "promotion_id": promotion_id,
        **{column: rows.c[name] for name, column in _DECIDED.items()},
        "before": case((rows.c.outcome == GRADUATED, before)),
    }
    return insert(PromotionDecision).from_select(list(values), select(*values.values()).select_from(rows))


_DECIDED = {
    "student": "student_id",
    "from_batch": "from_batch_id",
    "to_batch": "to_batch_id",
    "enrollment": "enrollment_id",
    **{name: name for name in ("average", "terms", "by_rule", "outcome", "reasons", "reason")},
}
"""The columns of a decision by the members of its JSON."""


@statement
def _touch_assessments(promotion_id: UUID) -> Any:
    """Update the locked assessments without a change: an entry of scores waiting for one reads the class again."""
    return (
        update(Assessment)
        .where(Assessment.cohort_id.in_(reads.cohorts_gone_to(promotion_id)))
        .values(name=Assessment.name)
    )


@statement
def _forget_enrollments(promotion_id: UUID) -> Any:
    return (
        update(PromotionDecision)
        .where(PromotionDecision.promotion_id == promotion_id, PromotionDecision.enrollment_id.is_not(None))
        .values(enrollment_id=None)
    )


@statement
def take_up_subjects(promotion_id: UUID, student_ids: list[UUID]) -> Any:
    """Let students take the subjects that a promotion took from them, since the former moments."""
    rows = (
        func.jsonb_to_recordset(PromotionDecision.before["subjects"])
        .table_valued(column("cohort_subject_id", Uuid), column("created_at", DateTime(timezone=True)))
        .render_derived(name="taken", with_types=True)
    )
    taken = (
        select(CohortSubject.id, PromotionDecision.student_id, rows.c.created_at)
        .select_from(PromotionDecision)
        .join(rows, literal(True))
        .join(CohortSubject, CohortSubject.id == rows.c.cohort_subject_id)
        .where(
            PromotionDecision.promotion_id == promotion_id,
            PromotionDecision.student_id == one_of(student_ids),
        )
    )
    columns = ["cohort_subject_id", "student_id", "created_at"]
    return upsert(SubjectEnrollment).from_select(columns, taken).on_conflict_do_nothing()


@statement
def _end_batches(promotion_id: UUID) -> Any:
    return update(PromotionBatch).where(PromotionBatch.promotion_id == promotion_id).values(live=False)


@statement
def _end(promotion_id: UUID, moment: datetime, actor: str, actor_name: str) -> Any:
    return (
        update(Promotion)
        .where(Promotion.id == promotion_id)
        .values(undone_at=moment, undone_by=actor, undone_by_name=actor_name)
    )
