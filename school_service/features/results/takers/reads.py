"""Read models of the takers of cohort subjects: the facts for their changes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, Text, and_, cast, exists, func, literal_column, or_, select
from sqlalchemy.dialects.postgresql import JSONB

from school_service.core.read_models import Query, array_of, json_object, read_model
from school_service.core.records import one_of
from school_service.features.classes.models import CohortSubject, SubjectEnrollment
from school_service.features.people.models import WITHDRAWN, Student
from school_service.features.results.computing.class_term.roster import belongs_without_card
from school_service.features.results.models import REOPENED, Publication, ReportCard
from school_service.features.school.cohorts.reads import CLASS, with_class
from school_service.features.school.models import CURRENT, Batch, Cohort, Enrollment, Subject, Term
from school_service.features.scores.models import Submission


@read_model
def changing(cohort_subject_id: UUID) -> Query:
    """Select the facts for making a cohort subject elective or compulsory, to be read once its cohort is locked.

    `submitted` and `reopened` are pairs of a term and the name of a class: classes with members and without published
    results of a term in which the subject is submitted, and those with reopened results that know the subject.
    """
    return (
        select(
            CohortSubject.elective,
            Subject.name.label("subject"),
            _submitted().label("submitted"),
            _reopened().label("reopened"),
        )
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .where(CohortSubject.id == cohort_subject_id)
    )


def _submitted() -> Any:
    is_submitted = exists().where(
        Submission.cohort_subject_id == CohortSubject.id, Submission.term_id == Term.id
    )
    has_member = (
        select(Enrollment.id)
        .join(Student, and_(Student.id == Enrollment.student_id, Student.status != WITHDRAWN))
        .where(Enrollment.batch_id == Batch.id, CURRENT, belongs_without_card(Term.id))
        .correlate(Batch, Term)
        .exists()
    )
    has_card = (
        select(ReportCard.id)
        .join(Publication, Publication.id == ReportCard.publication_id)
        .where(Publication.batch_id == Batch.id, Publication.term_id == Term.id, ReportCard.in_force)
        .correlate(Batch, Term)
        .exists()
    )
    return (
        _places()
        .where(is_submitted.correlate(CohortSubject, Term), has_member, ~has_card)
        .correlate(CohortSubject)
        .scalar_subquery()
    )


def _reopened() -> Any:
    reopened = select(Publication.id).where(
        Publication.batch_id == Batch.id,
        Publication.term_id == Term.id,
        Publication.state == REOPENED,
        _knows(CohortSubject.id),
    )
    return (
        _places()
        .where(reopened.correlate(Batch, Term, CohortSubject).exists())
        .correlate(CohortSubject)
        .scalar_subquery()
    )


def _places() -> Query:
    """Select pairs of a term and a class of a cohort subject's session, in a query of the subject."""
    pair = func.json_build_array(Term.display_name, CLASS)
    query = with_class(select(array_of(pair, Term.term, Batch.name, Batch.id)).select_from(Batch))
    return query.join(Term, Term.session_id == Cohort.session_id).where(
        Batch.cohort_id == CohortSubject.cohort_id
    )


def _knows(cohort_subject_id: Any) -> Any:
    """Tell whether a publication knows a subject: it was taught to the cohort then."""
    return _has(Publication.rules["subjects"], cohort_subject_id)


def _has(document: Any, id: Any) -> Any:
    """Tell whether an object in JSON has a member, or an array an element, of the name of an id."""
    is_there = document.op("?", is_comparison=True, return_type=Boolean)(cast(id, Text))
    return func.coalesce(is_there, literal_column("false"))


@read_model
def choosing(cohort_subject_id: UUID, student_ids: list[UUID]) -> Query:
    """Select the facts for students who are to take a cohort subject, to be read once all are locked.

    `students` are the known ones: whether each is `in_cohort`, and `takes` the subject, now and in each publication
    under review with their card.
    """
    in_cohort = exists().where(
        Enrollment.student_id == Student.id, Enrollment.cohort_id == CohortSubject.cohort_id, CURRENT
    )
    takes = exists().where(
        SubjectEnrollment.student_id == Student.id, SubjectEnrollment.cohort_subject_id == CohortSubject.id
    )
    student = json_object(
        id=Student.id,
        in_cohort=in_cohort.correlate(Student, CohortSubject),
        takes=and_(takes.correlate(Student, CohortSubject), ~_lacks_on_a_card()),
    )
    students = select(array_of(student)).where(Student.id == one_of(student_ids))
    return select(
        CohortSubject.cohort_id, students.correlate(CohortSubject).scalar_subquery().label("students")
    ).where(CohortSubject.id == cohort_subject_id)


def _lacks_on_a_card() -> Any:
    """Tell whether a student is no taker of a cohort subject in a publication under review with their card."""
    changed = Publication.takers_changed.op("->", return_type=JSONB)(cast(CohortSubject.id, Text))
    of_subject = func.jsonb_build_array(
        func.jsonb_build_object("subject", func.jsonb_build_object("id", CohortSubject.id))
    )
    takes = and_(
        or_(ReportCard.card["subjects"].contains(of_subject), _has(changed["in"], Student.id)),
        ~_has(changed["out"], Student.id),
    )
    return (
        select(ReportCard.id)
        .join(Publication, Publication.id == ReportCard.publication_id)
        .where(
            ReportCard.student_id == Student.id,
            Publication.cohort_id == CohortSubject.cohort_id,
            Publication.state == REOPENED,
            Publication.takers_changed.is_not(None),
            _knows(CohortSubject.id),
            ~takes,
        )
        .correlate(Student, CohortSubject)
        .exists()
    )


@read_model
def dropping(cohort_subject_id: UUID, student_id: UUID) -> Query:
    """Lock a student's part in a cohort subject FOR UPDATE, and select whether this is an elective, and its cohort."""
    return (
        select(CohortSubject.elective, CohortSubject.cohort_id)
        .join(SubjectEnrollment, SubjectEnrollment.cohort_subject_id == CohortSubject.id)
        .where(CohortSubject.id == cohort_subject_id, SubjectEnrollment.student_id == student_id)
        .with_for_update(of=SubjectEnrollment)
    )
