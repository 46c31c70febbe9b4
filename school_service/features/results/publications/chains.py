"""The acts by which a publication is reopened, corrected and published again, in their order: a pure function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from school_service.core.columns import Enumeration
from school_service.features.results.models import PUBLISHED

Document = Mapping[str, Any]

ACTS = Enumeration("ActOfChain", "REOPEN_PUBLICATION", "REOPEN_SUBJECT", "SUBMIT", "PUBLISH")


def chain_of(facts: Document, publication_id: str, subjects: Sequence[str]) -> list[dict[str, Any]]:
    """Name the acts of a row of `reads.chain`, so that each succeeds after those before it.

    `subjects` are to be changed, in the batch and term of the publication. Scores are changed between the last act that
    reopens and the first that submits.
    """
    publications = facts["publications"]
    own = next(publication for publication in publications if publication["id"] == publication_id)
    return [
        *(
            _act("REOPEN_PUBLICATION", publication)
            for publication in reversed(publications)
            if publication["state"] == PUBLISHED
        ),
        *(
            _act("REOPEN_SUBJECT", {**own, "id": None}, subject)
            for subject in subjects
            if subject in facts["submitted"]
        ),
        *_submissions(facts, own, subjects),
        *(_act("PUBLISH", {**publication, "id": None}) for publication in publications),
    ]


def _submissions(facts: Document, own: Document, subjects: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Submit the subjects to be changed, and those that are open already, of each batch."""
    for subject in subjects:
        yield _act("SUBMIT", {**own, "id": None}, subject)
    for submission in facts["open"]:
        if (
            submission["batch"] != own["batch"]
            or submission["term"] != own["term"]
            or submission["cohort_subject"] not in subjects
        ):
            yield _act("SUBMIT", {**submission, "id": None}, submission["cohort_subject"])


def _act(act: str, of: Document, subject: str | None = None) -> dict[str, Any]:
    return {
        "act": act,
        "publication": of["id"],
        "batch": of["batch"],
        "term": of["term"],
        "cohort_subject": subject,
    }
