"""Printing report cards: their contents are read in one statement, and printed after the transaction's end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import orjson
from sqlalchemy import Uuid, cast, select, true

from school_service.core.database import db, request_context
from school_service.core.errors import Invalid, NotFound, NothingPublished, Unknown
from school_service.core.exact_json import read_json
from school_service.core.narrowing import caller_has_own, within
from school_service.core.read_models import BoundQuery, Made, fetch_made, fetch_row
from school_service.core.records import get
from school_service.core.statements import execute
from school_service.core.texts import term_title
from school_service.features.audit.service import EXPORT, audit_change
from school_service.features.people.models import Student
from school_service.features.reach import scopes
from school_service.features.results.figures.service import (
    check_broadsheet,
    check_term_of_student,
    check_term_result,
)
from school_service.features.results.models import MAX_CARDS, ZIP
from school_service.features.results.report_cards import drafting, reads
from school_service.features.results.report_cards.issuing import issue
from school_service.features.results.transcripts.service import check_transcript
from school_service.printing.card_documents import report_card
from school_service.printing.portions import print_cards as print_in_portions
from school_service.printing.printers import print_paper
from tenants.clock import now

NOBODY = UUID(int=0)  # asks where a client does, which is nobody's account
_DRAFT = " draft"  # in the name of a file that is one

File = tuple[str, Callable[[], bytes]]
"""A file: its name, and the function to print it, without a connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCard:
    """A student's card that is asked for: the published one of a term, or a `draft` of it.

    `term` is the id of a term or its name in the session, by default the student's latest with such a term; `version`
    is of the batch's results, without it the one in force. `user_id` is the owner of the token: students get no drafts
    and no versions of their own.
    """

    student_id: UUID
    term: str
    draft: bool
    user_id: UUID | None
    version: int | None = None
    session: str | None = None

    def fetch(self) -> dict[str, Any]:
        """Fetch the contents of the card.

        Raises NotFound, also if no card is published, Invalid for an unknown term, and Forbidden.
        """
        asked = (self.student_id, self.term, self.user_id, self.session)
        row = _fetch(
            drafting.of_student(*asked) if self.draft else reads.printed_of_student(*asked, self.version)
        )
        if row is not None:
            return row
        student_id, term, session = self.student_id, self.term, self.session
        if self.draft or self.version is not None:
            check_term_result(
                id=student_id, term=term, session=session, live=self.draft, version=self.version
            )
        get(Student, student_id)
        check_term_of_student(student_id=student_id, term=term, session=session)
        raise NothingPublished("No report card of this student and term is published.")


def print_card(asked: AskedCard, *, public_url: str | None) -> File:
    """Print a student's card, as a tagged PDF. Raises the errors of `AskedCard.fetch`.

    `public_url` is the address of the service, for the verification of the card.
    """
    row, draft = asked.fetch(), asked.draft
    about = orjson.loads(row["about"])
    new = {"paper": "report card", "term": about["term"], "draft": draft}
    of_version = {} if asked.version is None else {"version": asked.version}
    audit_change(EXPORT, asked.student_id, new={**new, **of_version})
    name = f"{about['admission_number']} {about['last_name']} {about['first_name']} {_term(about)}"
    return f"{name}{_DRAFT * draft}.pdf", _printing(
        row, title=None, archive=False, draft=draft, public_url=public_url
    )


def show_card(asked: AskedCard) -> dict[str, Any]:
    """Give the document of a student's card, as `print_card` prints it. Raises the errors of `AskedCard.fetch`."""
    row = asked.fetch()
    (printed,) = read_json(row["cards"])
    document = report_card(
        printed["card"],
        rules=printed["rules"],
        outcome=printed["outcome"],
        outcome_class=printed["outcome_class"],
        drafted_at=now().isoformat() if asked.draft else None,
        photo=row["photo"],
    )
    published_at, begins = document["published_at"], document["next_term_begins"]
    return {
        **document,
        "published_at": published_at and datetime.fromisoformat(published_at),
        "next_term_begins": begins and date.fromisoformat(begins),
    }


def check_cards(*, id: UUID) -> None:
    """Tell whether there is a student without a report card; raises NotFound."""
    get(Student, id)


def print_cards(
    *,
    batch_id: UUID,
    term: str,
    students: Sequence[UUID] | None,
    draft: bool,
    format: str,
    public_url: str | None,
) -> File:
    """Print the published cards of a batch, or drafts, of all or some of its students, by name.

    As one PDF, or as a zip with one for each. `term` is the id of a term or its name in the batch's session. Raises
    Invalid for an unknown batch or term, a student without a card in it and more than MAX_CARDS, and NotFound if
    nothing is published.
    """
    read: Callable[..., BoundQuery | Made] = drafting.of_batch if draft else reads.printed_of_batch
    row = _fetch(read(batch_id, term, None if students is None else list(students)))
    if row is None:
        check_broadsheet(batch=batch_id, term=term)
        if students is None or _fetch(read(batch_id, term)) is None:
            raise NotFound("No report cards of this batch and term are there to print.")
        row = {"students": []}
    there = set(row["students"])
    missing = [str(student) for student in sorted(students or ()) if str(student) not in there]
    if missing:
        raise Invalid.field("students", Unknown(f"not in the batch: {', '.join(missing)}"))
    if len(there) > MAX_CARDS:
        raise Invalid.field("students", f"{len(there)} cards; at most {MAX_CARDS} are printed at once")
    about = orjson.loads(row["about"])
    what = {"paper": "report cards", "term": about["term"], "draft": draft, "students": len(there)}
    audit_change(EXPORT, batch_id, new=what)
    title = f"{about['class']} {_term(about)}"
    return f"Report cards {title}{_DRAFT * draft}.{format}", _printing(
        row, title=f"Report cards: {title}", archive=format == ZIP, draft=draft, public_url=public_url
    )


def print_transcript(*, student_id: UUID, user_id: UUID | None, public_url: str | None) -> File:
    """Print a student's transcript, as a tagged PDF, and store its contents with its code.

    Printed again on the same day it is the same paper, unless its contents have changed. `user_id` is the owner of the
    token, as for the transcript in JSON. `public_url` is the address of the service, for the verification. Raises
    NotFound.
    """
    asking = NOBODY if user_id is None or _reads_as_form_teacher(student_id) else user_id
    asked = issue(
        id=uuid4(),
        code=uuid4(),
        student_id=student_id,
        user_id=asking,
        moment=now(),
        for_school=not caller_has_own(),
    )
    row = execute(asked)
    if row is None:
        check_transcript(id=student_id)
        raise RuntimeError("A student without a transcript got no error.")
    audit_change(EXPORT, student_id, new={"paper": "transcript"})
    task = {
        "paper": "transcript",
        "transcript": orjson.Fragment(row["transcript"]),
        "issued_at": row["issued_at"].isoformat(),
        "code": str(row["code"]),
        "verify_at": _verify_at(public_url),
        "pictures": orjson.Fragment(row["pictures"] or "{}"),
    }
    name = f"{row['admission_number']} {row['last_name']} {row['first_name']} transcript.pdf"
    return name, partial(print_paper, task, request_context().school_id)


def _reads_as_form_teacher(student_id: UUID) -> bool:
    """Tell whether the caller's permission is OWN and they look after the student's batch.

    Raises NotFound for a student out of reach.
    """
    if not caller_has_own():
        return False
    get(Student, student_id)
    looks_after = within(select(true()), scopes.is_form_student, cast(student_id, Uuid))
    return bool(db.session.scalar(looks_after))


def _fetch(read: BoundQuery | Made) -> dict[str, Any] | None:
    """Fetch the contents to print; None without a card."""
    row = fetch_made(read) if isinstance(read, Made) else fetch_row(read)
    return row if row is not None and row["cards"] is not None else None


def _printing(
    row: dict[str, Any], *, title: str | None, archive: bool, draft: bool, public_url: str | None
) -> Callable[[], bytes]:
    """Make the function to print a paper. PostgreSQL's text goes to the printer as it is."""
    task = {
        "paper": "report-cards",
        "pictures": orjson.Fragment(row["pictures"] or "{}"),
        "title": title,
        "verify_at": _verify_at(public_url),
        "drafted_at": now().isoformat() if draft else None,
        "archive": archive,
    }
    school_id = request_context().school_id
    return partial(print_in_portions, task, cards=row["cards"], count=len(row["students"]), school=school_id)


def _verify_at(public_url: str | None) -> str | None:
    """The address before the code of a paper of the school; None if papers can't be verified."""
    return f"{public_url}/verify/{request_context().school_id}" if public_url else None


def _term(about: dict[str, Any]) -> str:
    """Name a term with its session, unless its own name has the session already."""
    return term_title(about["term_name"], about["session"], " ")
