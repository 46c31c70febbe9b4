"""Amending a promotion: the decision on one student is replaced, as long as nothing of the next session rests on it.

It locks the cohorts of the student and of the batch to go to FOR SHARE, as enrolling does, then the student, and the
counter of graduates last: an undoing, another amendment and a publication with a card of the student wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ARRAY, Text, Uuid, cast, column, func, literal, null, select, update
from sqlalchemy.dialects.postgresql import JSONB

from school_service.auth.principal import Principal
from school_service.core.errors import Conflict, Duplicate, InUse, Invalid, Unknown
from school_service.core.permissions import Permission
from school_service.core.read_models import BoundQuery, Made, fetch_document
from school_service.core.records import not_found, one_of
from school_service.core.statements import Executable, execute, in_one_round_trip, new_row, statement
from school_service.features.audit.service import acting, audit_change
from school_service.features.classes.enrollments.reads import lock_students
from school_service.features.classes.enrollments.service import (
    end_enrollments,
    move_enrollment,
    reopen_enrollments,
)
from school_service.features.classes.models import CohortSubject, SubjectEnrollment
from school_service.features.people.models import ACTIVE
from school_service.features.people.models import GRADUATED as HAS_GRADUATED
from school_service.features.results.graduates import service as graduates
from school_service.features.results.models import (
    GRADUATED,
    PromotionAmendment,
    PromotionDecision,
)
from school_service.features.results.promotions import reads
from school_service.features.results.promotions.service import (
    ENTITY,
    TargetBatch,
    decided_without_figures,
    take_up_subjects,
)
from tenants.clock import now

Enrollment = Mapping[str, Any]


def amend(
    *,
    promotion_id: UUID,
    student_id: UUID,
    outcome: str,
    reason: str,
    principal: Principal,
    batch: UUID | None = None,
) -> BoundQuery | Made:
    """Replace the decision on a student of a promotion: they move, graduate, or leave the next session.

    Returns the read model of the decision. The same decision again changes nothing. Raises NotFound, Forbidden to or
    from GRADUATED without the right to write graduates, Invalid for a batch that is not of the next session and a
    student who is not ACTIVE, and Conflict if the promotion is undone, or something rests on the decision.
    """
    locks = (
        reads.lock_cohorts_of_student(student_id, batch),
        lock_students([student_id]),
        reads.lock_numbers_of_graduates(),
    )
    read = reads.amending(promotion_id, student_id, batch)
    facts = fetch_document(in_one_round_trip(*locks, read=read))
    if facts is None:
        raise not_found(PromotionDecision)
    if GRADUATED in (outcome, facts["outcome"]):
        principal.require((Permission.GRADUATES_WRITE,), "Changing that a student graduates")
    if facts["undone"]:
        raise Conflict("The promotion is undone.")
    if (facts["outcome"], facts["to_batch"]) != (outcome, batch and str(batch)):
        _refuse(facts, outcome, batch)
        _change(promotion_id, student_id, facts, outcome, reason)
    shown = reads.decision(promotion_id, student_id)
    if principal.has(Permission.RESULTS_READ):
        return shown
    return Made(shown, lambda decision, _reach: decided_without_figures(decision))


def _refuse(facts: Mapping[str, Any], outcome: str, batch: UUID | None) -> None:
    """Raise Invalid or Conflict for a decision that can't be amended so."""
    if batch is not None and facts["batch"] is None:
        raise Invalid.field("batch", Unknown("no such batch"))
    if batch is not None and facts["batch"]["session"] != facts["next_session"]:
        there = facts["next_session_name"]
        raise Invalid.field(
            "batch", f"is not of {there}" if there else "the promotion enrolled nobody in a next session"
        )
    number = facts["number"]
    if facts["erased"]:
        raise InUse(f"The data of {number} were erased.")
    if facts["card"]:
        raise InUse(f"{number} has a report card of {facts['next_session_name']}: its results are published.")
    if facts["promoted"]:
        raise InUse(f"A later promotion rests on it that {number} is in their class: undo that first.")
    if facts["outcome"] == GRADUATED:
        if facts["followed"]:
            raise InUse(f"Others graduated since: {number} is not the last graduate any more.")
    elif facts["status"] == HAS_GRADUATED:
        raise Duplicate(f"{number} has graduated already.")
    elif (outcome == GRADUATED or batch is not None) and facts["status"] != ACTIVE:
        raise Invalid.field("outcome", f"{number} is {facts['status']}")


def _change(
    promotion_id: UUID, student_id: UUID, facts: Mapping[str, Any], outcome: str, reason: str
) -> None:
    """Store an amendment, and move the student."""
    said = UUID(facts["batch"]["id"]) if facts["batch"] else None
    audit_change(
        ENTITY,
        student_id,
        old={"promotion": promotion_id, "outcome": facts["outcome"], "batch": facts["to_batch"]},
        new={"promotion": promotion_id, "outcome": outcome, "batch": said, "reason": reason},
    )
    back = facts["graduate"]
    taking_back = _taken_back(promotion_id, student_id, back) if back else ()
    opened = back["enrollments"] if back else facts["enrollments"]
    there = next(
        (enrollment for enrollment in opened if enrollment["session"] == facts["next_session"]), None
    )
    # A place that the promotion has not made is given back when it is undone: the first one.
    made = facts["enrollment"] is not None
    newly_kept = [there] if there and not made and not facts["kept"] else []
    leaves = [enrollment for enrollment in opened if enrollment is not there] if outcome == GRADUATED else []
    moving, place = _moved(student_id, facts["batch"], there, made=made, graduates=outcome == GRADUATED)
    ended = {
        enrollment
        for enrollment in (facts["enrollment"], there["id"] if there and made else None)
        if enrollment
    } - {place}
    actor, actor_name = acting()
    amendment = new_row(
        PromotionAmendment,
        promotion_id=promotion_id,
        student_id=student_id,
        outcome=outcome,
        to_batch_id=said,
        reason=reason,
        ended=sorted(map(UUID, ended)),
        amended_at=now(),
        amended_by=actor,
        amended_by_name=actor_name,
    )
    given_back = [*leaves, *newly_kept]
    decision = _decide(
        promotion_id,
        student_id,
        outcome,
        said,
        _ids(given_back, facts["kept"]),
        _cohorts(given_back),
        _cohorts(facts["kept"]),
    )
    ahead: list[Executable] = [*taking_back, amendment, decision]
    if outcome == GRADUATED:
        graduates.graduate_all(*ahead, enrollments={student_id: opened}, left_on={})
    else:
        placing = [_take_place(promotion_id, student_id, UUID(place))] if place else []
        execute(*ahead, *moving, *placing)


def _taken_back(promotion_id: UUID, student_id: UUID, graduate: Mapping[str, Any]) -> Sequence[Executable]:
    """Take a graduation back, as undoing does."""
    return (
        take_up_subjects(promotion_id, [student_id]),
        *graduates.undo_graduations(graduates=[graduate]),
        *reopen_enrollments(enrollments={student_id: graduate["enrollments"]}),
    )


def _moved(
    student_id: UUID,
    batch: Mapping[str, Any] | None,
    there: Enrollment | None,
    *,
    made: bool,
    graduates: bool,
) -> tuple[Sequence[Executable], str | None]:
    """Move a student from their place in the next session to a batch; also tells the enrollment of the promotion.

    Without a batch the promotion's enrollment ends, and no new one begins. For a graduate all enrollments end.
    """
    if batch is None:
        ending = there is not None and made and not graduates
        return (end_enrollments(enrollments={student_id: [there]}) if ending and there else ()), None
    if there is not None and there["batch"] == batch["id"]:
        return (), there["id"] if made else None
    new = uuid4()
    place = TargetBatch.of(batch)
    moving = move_enrollment(student=student_id, enrollment=there, enrollment_id=new, batch=place)
    return moving, str(new)


def _ids(*enrollments: Sequence[Enrollment]) -> list[UUID]:
    return [UUID(enrollment["id"]) for some in enrollments for enrollment in some]


def _cohorts(enrollments: Sequence[Enrollment]) -> list[UUID]:
    return [UUID(cohort) for cohort in sorted({enrollment["cohort"] for enrollment in enrollments})]


@statement
def _decide(
    promotion_id: UUID,
    student_id: UUID,
    outcome: str,
    batch_id: UUID | None,
    given_back: list[UUID],
    cohort_ids: list[UUID],
    kept_cohort_ids: list[UUID],
) -> Any:
    """Let a decision hold, without a place yet; undoing gives enrollments back, and the subjects of their cohorts.

    It goes out before the student leaves any. Subjects are those that the student takes in some of the cohorts, and in
    the others as in `before`.
    """
    rows = (
        func.jsonb_array_elements(PromotionDecision.before["subjects"])
        .table_valued(column("subject", JSONB))
        .render_derived(name="kept")
    )
    subject = rows.c.subject
    kept = (
        select(subject)
        .select_from(rows)
        .join(CohortSubject, cast(CohortSubject.id, Text) == subject["cohort_subject_id"].astext)
        .where(CohortSubject.cohort_id == one_of(kept_cohort_ids))
        .correlate(PromotionDecision)
    )
    taken = func.jsonb_build_object(
        "cohort_subject_id", SubjectEnrollment.cohort_subject_id, "created_at", SubjectEnrollment.created_at
    )
    takes = (
        select(taken)
        .join(CohortSubject, CohortSubject.id == SubjectEnrollment.cohort_subject_id)
        .where(SubjectEnrollment.student_id == student_id, CohortSubject.cohort_id == one_of(cohort_ids))
    )
    subjects = kept.union_all(takes).subquery("subjects")
    gathered = select(func.coalesce(func.jsonb_agg(subjects.c[0]), literal([], JSONB))).scalar_subquery()
    ids = func.to_jsonb(cast(given_back, ARRAY(Uuid)))
    return (
        update(PromotionDecision)
        .where(PromotionDecision.promotion_id == promotion_id, PromotionDecision.student_id == student_id)
        .values(
            outcome=outcome,
            to_batch_id=null() if batch_id is None else batch_id,
            enrollment_id=null(),
            before=func.jsonb_build_object("enrollments", ids, "subjects", gathered),
        )
    )


@statement
def _take_place(promotion_id: UUID, student_id: UUID, enrollment_id: UUID) -> Any:
    """Let an enrollment be the one that the promotion made."""
    return (
        update(PromotionDecision)
        .where(PromotionDecision.promotion_id == promotion_id, PromotionDecision.student_id == student_id)
        .values(enrollment_id=enrollment_id)
    )
