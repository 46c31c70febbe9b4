"""The results of the first term of two classes: submitted, published, and of one arm published again."""

from __future__ import annotations

from sqlalchemy import select

from school_service.core.database import db
from school_service.core.read_models import BoundQuery, fetch_row
from school_service.demo.context import THIS_SESSION, DemoContext
from school_service.features.people.models import Student
from school_service.features.results.comments.service import enter_comments
from school_service.features.results.models import Publication
from school_service.features.results.publications.service import publish, reopen
from school_service.features.results.submissions.service import submit
from school_service.features.school.models import CURRENT, TERMS, Enrollment

PUBLISHED = ("JSS 1", "SSS 2")
"""The classrooms whose first term is published; all others are open."""

_FIRST, *_ = TERMS


def make_results(context: DemoContext) -> None:
    """Submit and publish the first term of two classes; correct a card of SSS 2 A, and publish that arm again."""
    for classroom in PUBLISHED:
        for (of, _), cohort_subject_id in context.cohort_subjects.items():
            if of == classroom:
                _done(submit(cohort_subject_id=cohort_subject_id, term=_FIRST))
        _done(publish(batches=context.arms[classroom], term=_FIRST))
    _correct(context)


def _correct(context: DemoContext) -> None:
    """Reopen the results of an arm for a comment that was written on the wrong card, and publish them again."""
    batch = context.arms[PUBLISHED[-1]][0]
    publication_id = db.session.scalars(select(Publication.id).where(Publication.batch_id == batch)).one()
    _done(reopen(publication_id=publication_id, reason="A comment stood on the wrong card."))
    first = (
        select(Student.id)
        .join(Enrollment, Enrollment.student_id == Student.id)
        .where(Enrollment.batch_id == batch, CURRENT)
        .order_by(Student.number)
        .limit(1)
    )
    comment = {
        "student": db.session.scalars(first).one(),
        "form_teacher_comment": "A calm and thoughtful member of the class, who reads widely.",
    }
    _done(
        enter_comments(
            batch=batch,
            term=str(context.terms[THIS_SESSION, _FIRST]),
            comments=[comment],
            principal=context.principal,
        )
    )
    _done(publish(batches=[batch], term=_FIRST))


def _done(answer: BoundQuery) -> None:
    """Send the statements that a service returns together with its answer."""
    fetch_row(answer)
