"""The members of a batch in a term: the one rule for all lists of the members of a batch.

A student with a card of the term in force belongs to the card's batch, even after a move or a withdrawal. Any other
student belongs to the batch of their enrollment unless they have withdrawn, if they have a part in the term and were
not left out of its results. They have none if they came after the results of the arm were handed in or published first,
and have neither a score nor an absence in the term.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    CTE,
    Boolean,
    ColumnElement,
    FromClause,
    Text,
    Uuid,
    and_,
    case,
    cast,
    column,
    exists,
    func,
    literal,
    not_,
    or_,
    select,
    true,
    union,
    union_all,
)
from sqlalchemy.dialects.postgresql import JSONB, distinct_on
from sqlalchemy.orm import aliased

from school_service.core.read_models import Query
from school_service.core.records import one_of
from school_service.features.classes.models import CohortSubject, SubjectEnrollment
from school_service.features.people.models import WITHDRAWN, Student
from school_service.features.results.computing.class_term.scopes import subjects_of
from school_service.features.results.models import LeftOut, Publication, ReportCard
from school_service.features.school.models import CURRENT, Batch, Enrollment
from school_service.features.scores.models import NOT_DELETED, Absence, Assessment, GradebookEntry, Submission

Column = ColumnElement[Any]


def members(
    cohort_id: Any, term_id: Any, *, left_out: Any = None, taken_in: Any = None, batch_ids: Any = None
) -> FromClause:
    """The members of the batches of a cohort in a term: `student_id`, `batch_id` and `enrolled_in`.

    `enrolled_in` is the batch of their enrollment in the cohort now, null for a student who has left it or withdrawn.
    `left_out` are the ids of students without a batch from now on, `taken_in` of students left out of the batches
    `batch_ids` before, and members again.
    """
    with_card = _with_card(cohort_id, term_id)
    enrolled = _enrolled(cohort_id).where(belongs_without_card(term_id))
    everyone: Any = union_all(with_card, enrolled)
    if taken_in is not None:
        elsewhere = not_(Enrollment.student_id == one_of(taken_in))
        back = _taken_in(cohort_id, term_id, taken_in, batch_ids)
        everyone = union_all(with_card, enrolled.where(elsewhere), select(back))
    everybody: FromClause = everyone.subquery("members")
    if left_out is None:
        return everybody
    stays = not_(everybody.c.student_id == one_of(left_out))
    return select(everybody).where(stays).subquery("members_who_stay")


def members_at_submission(cohort_id: Any, term_id: Any) -> FromClause:
    """The members of the batches of a cohort in a term if a subject is handed in now: columns as of `members`.

    So a student who has come since another subject was handed in belongs, as the batch is closed anew. `belongs` tells
    whether they belong while nothing is handed in.
    """
    with_card = _with_card(cohort_id, term_id).add_columns(literal(True).label("belongs"))
    enrolled = (
        _enrolled(cohort_id)
        .add_columns(has_part(term_id))
        .where(_is_without_card(term_id), _has_part(term_id, _first_publication(term_id)))
    )
    return union_all(with_card, enrolled).subquery("members")


def _with_card(cohort_id: Any, term_id: Any) -> Query:
    return (
        select(
            ReportCard.student_id,
            Publication.batch_id,
            _enrolled_in(ReportCard.student_id, cohort_id).label("enrolled_in"),
        )
        .select_from(Publication)
        .join(ReportCard, ReportCard.publication_id == Publication.id)
        .where(Publication.cohort_id == cohort_id, Publication.term_id == term_id, ReportCard.in_force)
    )


def _enrolled(cohort_id: Any) -> Query:
    return (
        select(Enrollment.student_id, Enrollment.batch_id, Enrollment.batch_id)
        .join(Student, Student.id == Enrollment.student_id)
        .where(Enrollment.cohort_id == cohort_id, CURRENT, Student.status != WITHDRAWN)
    )


def _taken_in(cohort_id: Any, term_id: Any, taken_in: Any, batch_ids: Any) -> FromClause:
    enrolled_in = _enrolled_in(LeftOut.student_id, cohort_id)
    return (
        select(LeftOut.student_id, LeftOut.batch_id, enrolled_in.label("enrolled_in"))
        # Of two that they were left out of it is the one that they are in.
        .ext(distinct_on(LeftOut.student_id))
        .join(Batch, Batch.id == LeftOut.batch_id)
        .where(
            Batch.cohort_id == cohort_id,
            LeftOut.term_id == term_id,
            LeftOut.batch_id == one_of(batch_ids),
            LeftOut.student_id == one_of(taken_in),
            ~has_card(LeftOut.student_id, term_id),
        )
        .order_by(
            LeftOut.student_id,
            (LeftOut.batch_id == enrolled_in).desc().nulls_last(),
            LeftOut.batch_id,
        )
        .subquery("back")
    )


def _enrolled_in(student_id: Any, cohort_id: Any) -> Column:
    now = aliased(Enrollment)
    return (
        select(now.batch_id)
        .join(Student, Student.id == now.student_id)
        .where(
            now.student_id == student_id,
            now.cohort_id == cohort_id,
            now.ended_at.is_(None),
            Student.status != WITHDRAWN,
        )
        .correlate_except(now, Student)
        .scalar_subquery()
    )


def belongs_without_card(term_id: Any) -> Column:
    """Tell whether the student of a row of Enrollment belongs to its batch without a card; the row has to be CURRENT.

    They have no card of the term in force, were not left out, and have a part in the term.
    """
    return and_(_is_without_card(term_id), has_part(term_id))


def _is_without_card(term_id: Any) -> Column:
    return and_(
        ~has_card(Enrollment.student_id, term_id),
        ~is_left_out(Enrollment.student_id, Enrollment.batch_id, term_id),
    )


def has_card(student_id: Any, term_id: Any) -> Column:
    """Tell whether a student has a card of a term in force, of any batch."""
    card = aliased(ReportCard)
    return (
        select(card.id)
        .where(card.student_id == student_id, card.term_id == term_id, card.in_force)
        .correlate_except(card)
        .exists()
    )


def has_part(term_id: Any) -> Column:
    """Tell whether the student of a row of Enrollment has a part in a term of its session."""
    return _has_part(term_id, _closed_at(term_id))


def _has_part(term_id: Any, closed_at: Column) -> Column:
    of_term = and_(Assessment.cohort_id == Enrollment.cohort_id, Assessment.term_id == term_id, NOT_DELETED)
    has_any = [
        select(literal(1))
        .select_from(mark)
        .join(Assessment, and_(Assessment.id == mark.assessment_id, of_term))
        .where(mark.student_id == Enrollment.student_id)
        .correlate_except(mark, Assessment)
        .exists()
        for mark in (GradebookEntry, Absence)
    ]
    was_in_time = func.coalesce(Enrollment.started_at <= closed_at, True)
    # In this order: the scores of a student who was there in time are not searched.
    return case((was_in_time, True), else_=or_(*has_any))


def _closed_at(term_id: Any) -> Column:
    """When the results of a batch and term were closed to newcomers: a scalar subquery of a row of Enrollment.

    The last submission of a subject, or the first publication if it was earlier: a subject handed in again for a
    correction lets nobody in. An arm without students at the first publication of its cohort was made later, or all had
    left it: it is closed by this publication, unless it is handed in by itself.
    """
    handed_in = (
        select(func.max(Submission.submitted_at))
        .where(Submission.batch_id == Enrollment.batch_id, Submission.term_id == term_id)
        .correlate_except(Submission)
        .scalar_subquery()
    )
    of_batch = _first_publication(term_id)
    of_cohort = _first_publication(term_id, Publication.cohort_id == Enrollment.cohort_id)
    member, of_member = aliased(Enrollment), aliased(Student)
    was_there = (
        select(member.id)
        .join(of_member, of_member.id == member.student_id)
        .where(
            member.batch_id == Enrollment.batch_id,
            member.started_at <= of_cohort,
            func.coalesce(member.ended_at > of_cohort, True),
            of_member.status != WITHDRAWN,
        )
        .correlate_except(member, of_member)
        .exists()
    )
    # LEAST passes over null.
    return case((or_(handed_in.is_not(None), was_there), func.least(handed_in, of_batch)), else_=of_cohort)


def _first_publication(term_id: Any, of: Any = Publication.batch_id == Enrollment.batch_id) -> Column:
    return (
        select(func.min(Publication.published_at))
        .where(of, Publication.term_id == term_id)
        .correlate_except(Publication)
        .scalar_subquery()
    )


def is_left_out(student_id: Any, batch_id: Any, term_id: Any) -> Column:
    """Tell whether a student was left out of the results of a batch and a term, and not taken in since."""
    return (
        select(LeftOut.student_id)
        .where(LeftOut.student_id == student_id, LeftOut.batch_id == batch_id, LeftOut.term_id == term_id)
        .correlate_except(LeftOut)
        .exists()
    )


def taking(roster: CTE, cohort_id: Any, term_id: Any) -> CTE:
    """The subjects of the members of a cohort in a term: `student_id` and `cohort_subject_id`.

    A member with a card in force has the subjects of the publication. In subjects that it did not know, and without
    such a card, it is the present ones; of somebody who has left the cohort, the ones of their newest card.
    """
    of_cards = _cards_with_takers(roster, term_id)
    return union(
        _on_cards(of_cards),
        _put_in(of_cards),
        _present(roster, of_cards, cohort_id),
        _subjects_of_gone(roster, of_cards, cohort_id, term_id),
    ).cte("taking")


def _cards_with_takers(roster: FromClause, term_id: Any) -> CTE:
    """The cards in force of members, of publications that tell their takers; the earlier ones do not."""
    return (
        select(
            ReportCard.student_id,
            ReportCard.card["subjects"].label("subjects"),
            Publication.takers_changed.label("changed"),
            Publication.rules["subjects"].label("known"),
        )
        .join(Publication, Publication.id == ReportCard.publication_id)
        .join(roster, roster.c.student_id == ReportCard.student_id)
        .where(ReportCard.term_id == term_id, ReportCard.in_force, Publication.takers_changed.is_not(None))
        .cte("cards_with_takers")
        .prefix_with("MATERIALIZED")
    )


def _on_cards(of_cards: CTE) -> Query:
    listed = subjects_of(of_cards.c.subjects)
    subject_id = listed.c.subject["subject"]["id"].astext
    return (
        select(of_cards.c.student_id, cast(subject_id, Uuid).label("cohort_subject_id"))
        .select_from(of_cards.join(listed, true()))
        .where(
            ~_names(of_cards.c.changed.op("->", return_type=JSONB)(subject_id)["out"], of_cards.c.student_id)
        )
    )


def _put_in(of_cards: CTE) -> Query:
    changed = func.jsonb_each(of_cards.c.changed).table_valued("key", column("value", JSONB), name="changed")
    return (
        select(of_cards.c.student_id, cast(changed.c.key, Uuid))
        .select_from(of_cards.join(changed, true()))
        .where(_names(changed.c.value["in"], of_cards.c.student_id))
    )


def _names(students: Any, student_id: Any) -> Column:
    """Tell whether an array of ids in JSON has a student."""
    is_named = students.op("?", is_comparison=True, return_type=Boolean)(cast(student_id, Text))
    return func.coalesce(is_named, False)


def _present(roster: FromClause, of_cards: CTE, cohort_id: Any) -> Query:
    is_known = exists().where(
        of_cards.c.student_id == SubjectEnrollment.student_id,
        of_cards.c.known.op("?", is_comparison=True, return_type=Boolean)(cast(CohortSubject.id, Text)),
    )
    return (
        select(SubjectEnrollment.student_id, SubjectEnrollment.cohort_subject_id)
        .join(CohortSubject, CohortSubject.id == SubjectEnrollment.cohort_subject_id)
        .join(roster, roster.c.student_id == SubjectEnrollment.student_id)
        .where(CohortSubject.cohort_id == cohort_id, roster.c.enrolled_in.is_not(None), ~is_known)
    )


def _subjects_of_gone(roster: FromClause, of_cards: CTE, cohort_id: Any, term_id: Any) -> Query:
    newest = (
        select(ReportCard.card)
        .join(Publication, Publication.id == ReportCard.publication_id)
        .where(
            ReportCard.student_id == roster.c.student_id,
            Publication.batch_id == roster.c.batch_id,
            Publication.term_id == term_id,
        )
        .order_by(Publication.version.desc())
        .limit(1)
        .correlate_except(ReportCard, Publication)
        .lateral("newest")
    )
    listed = subjects_of(newest.c.card["subjects"])
    return (
        select(roster.c.student_id, CohortSubject.id.label("cohort_subject_id"))
        .select_from(roster)
        .join(newest, literal(True))
        .join(listed, literal(True))
        .join(CohortSubject, CohortSubject.id == cast(listed.c.subject["subject"]["id"].astext, Uuid))
        .where(
            roster.c.enrolled_in.is_(None),
            CohortSubject.cohort_id == cohort_id,
            roster.c.student_id.not_in(select(of_cards.c.student_id)),
        )
    )
