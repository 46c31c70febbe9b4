"""The lock on observations: while results are published, no observation on their cards changes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import select

from school_service.core.errors import Locked
from school_service.core.narrowing import judged_before
from school_service.core.read_models import Query
from school_service.core.records import once_locked
from school_service.core.statements import fetch_one
from school_service.features.results.models import PUBLISHED, Publication
from school_service.features.school.cohorts.reads import CLASS, with_class
from school_service.features.school.models import Batch, Cohort, Term


def lock_open(*, cohort_id: UUID, batch_id: UUID, term_id: UUID) -> None:
    """Lock a cohort FOR NO KEY UPDATE, to enter observations for the cards of a batch and term; one round trip.

    Raises Conflict while the batch's results of that term are published.
    """
    row = fetch_one(lock_cohort_in_term(cohort_id, term_id), is_open(batch_id, term_id))
    refuse_published(row["published"])


def refuse_published(name: str | None) -> None:
    """Refuse to change observations on published cards; raises Conflict.

    `name` is the column of `published_name`, read while the cohort is locked, FOR SHARE at least.
    """
    if name is not None:
        raise Locked(f"The results of {name}, are published: reopen that publication first.")


def published_name(batch_id: Any, term_id: Any) -> Any:
    """A column: the name of a batch and a term while its results are published, else null."""
    query = (
        select(CLASS + ", " + Term.display_name)
        .select_from(Publication)
        .join(Term, Term.id == Publication.term_id)
        .join(Batch, Batch.id == Publication.batch_id)
        .where(
            Publication.batch_id == batch_id,
            Publication.term_id == term_id,
            Publication.state == PUBLISHED,
        )
    )
    return with_class(query).scalar_subquery()


@judged_before
def is_open(batch_id: UUID, term_id: UUID) -> Query:
    """Select `published`: the name of a batch and a term while its results are published, else null."""
    return select(published_name(batch_id, term_id).label("published"))


@judged_before
def lock_cohort_in_term(cohort_id: UUID, term_id: UUID) -> Query:
    """Lock a cohort FOR NO KEY UPDATE, and before it a term FOR KEY SHARE: the term is not deleted meanwhile."""
    term = select(Term.id).where(Term.id == term_id).with_for_update(read=True, key_share=True)
    return select(Cohort.id).where(Cohort.id == cohort_id, once_locked(term)).with_for_update(key_share=True)
