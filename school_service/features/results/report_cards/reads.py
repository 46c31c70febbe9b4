"""What is printed of published results, and what a card's code tells of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    CTE,
    JSON,
    ColumnElement,
    Text,
    Uuid,
    any_,
    case,
    cast,
    func,
    literal_column,
    not_,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by, array
from sqlalchemy.orm import aliased

from school_service.core.read_models import Query, read_model
from school_service.features.results.figures.frozen import is_own, latest_card, published_cards
from school_service.features.results.figures.rules import scope_of_student
from school_service.features.results.models import (
    BATCH,
    BOTH,
    CURRENT_CARD,
    IN_FORCE,
    REPLACED_CARD,
    SUPERSEDED,
    WITHDRAWN,
    WITHDRAWN_CARD,
    Letterhead,
    Picture,
    Publication,
    ReportCard,
    ResultSettings,
)
from school_service.features.results.publications.cards import cards, rules
from school_service.features.results.transcripts.reads import outcome_of
from school_service.features.results.transcripts.reads import printed_transcript as transcript
from school_service.features.school.models import Term
from school_service.features.school.sessions.service import is_term


@read_model
def printed_of_batch(batch_id: UUID, term: str, student_ids: list[UUID] | None = None) -> Query:
    """Select what is printed for a batch: one row; `cards` is null where nothing is published.

    Texts of JSON: `cards`, an array of `{"card", "code", "rules"}` in the order of the class list; `pictures`, an
    object of base64 by hash; `about`, what a file is named after: class, session and term, and of one student the
    name. `students` are the ids of whose cards they are. With `student_ids` theirs alone.
    """
    found = published_cards().where(IN_FORCE, Publication.batch_id == batch_id, is_term(term))
    if student_ids is not None:
        found = found.where(ReportCard.student_id == any_(cast(student_ids, ARRAY(Uuid))))
    return _printed(found.cte("found"))


@read_model
def printed_of_student(student_id: UUID, term: str, session: str | None = None) -> Query:
    """Select what is printed for a student, as `printed_of_batch`; `term` and `session` as in `term_of_student`."""
    return _printed(latest_card(student_id, term, session, withdrawn=False))


@read_model
def drafted_of_batch(batch_id: UUID, term: str, student_ids: list[UUID] | None = None) -> Query:
    """Select what is printed for a batch as results are now: as `printed_of_batch`, without codes."""
    return _printed(_drafted(cards(batch_id, term), student_ids).cte("found"))


@read_model
def drafted_of_student(
    student_id: UUID, term: str, user_id: UUID | None = None, session: str | None = None
) -> Query:
    """Select what is printed for a student as results are now, as `drafted_of_batch`; `term` as published.

    `user_id` is whose token asks: the student's own account gets none.
    """
    scope = scope_of_student(student_id, term, session).subquery("own_batch")
    batch_id = select(scope.c.batch_id).scalar_subquery()
    term_id = select(cast(scope.c.term_id, Text)).scalar_subquery()
    found = _drafted(cards(batch_id, term_id), array([student_id]))
    return _printed((found if user_id is None else found.where(~is_own(student_id, user_id))).cte("found"))


@read_model
def printed_transcript(student_id: UUID, user_id: UUID | None = None) -> Query:
    """Select what a transcript says on paper: `transcript` and `pictures` are texts of JSON; `name` and so on.

    No row without a student, nor where nothing is published and the student's own account asks (`user_id`).
    """
    found = transcript.query(student_id, user_id).subquery("transcript")
    hashes = [cast(found.c.school, JSONB)[name].astext for name in ("logo", "signature")]
    student = cast(found.c.student, JSONB)
    return select(
        cast(func.row_to_json(literal_column("transcript")), Text).label("transcript"),
        _pictures(*(Picture.sha256 == one for one in hashes)).label("pictures"),
        *(student[name].astext.label(name) for name in ("admission_number", "last_name", "first_name")),
    ).select_from(found)


def _drafted(drafts: Query, student_ids: Any) -> Query:
    draft = drafts.subquery("draft")
    found = (
        select(
            draft.c.student_id,
            literal_column("NULL::uuid", Uuid()).label("code"),
            draft.c.card,
            rules().label("rules"),
            Letterhead.logo_id,
            Letterhead.signature_id,
        )
        .select_from(draft)
        .outerjoin(ResultSettings, literal_column("true"))
        .outerjoin(Letterhead, literal_column("true"))
    )
    return found if student_ids is None else found.where(draft.c.student_id == any_(student_ids))


def _printed(found: CTE) -> Query:
    student = found.c.card["student"]
    by_name = [student[name].astext for name in ("last_name", "first_name", "admission_number")]
    card = func.json_build_object(
        "card", found.c.card,
        "code", found.c.code,
        "rules", found.c.rules,
        "outcome", case((~_has_later(found), outcome_of(found.c.student_id, _session_id(found), found))),
    )  # fmt: skip
    about = select(
        func.json_build_object(
            "class", found.c.card["classroom"].astext + " " + found.c.card["batch_name"].astext,
            "session", found.c.card["session"]["name"],
            "term", found.c.card["term"]["id"],
            "term_name", found.c.card["term_name"],
            *(part for name in ("last_name", "first_name", "admission_number") for part in (name, student[name])),
        )
    ).limit(1)  # fmt: skip
    return select(
        cast(func.json_agg(aggregate_order_by(card, *by_name, found.c.student_id)), Text).label("cards"),
        _pictures(
            Picture.id.in_(select(found.c.logo_id)), Picture.id.in_(select(found.c.signature_id))
        ).label("pictures"),
        func.array_agg(cast(found.c.student_id, Text)).label("students"),
        cast(about.scalar_subquery(), Text).label("about"),
    ).select_from(found)


def _session_id(found: CTE) -> ColumnElement[UUID]:
    return cast(found.c.card["session"]["id"].astext, Uuid)


def _has_later(found: CTE) -> ColumnElement[bool]:
    """Tell whether a card of a later term of the session is in force: that one has the session's result."""
    # The terms' own order is that of the alphabet: FIRST, SECOND, THIRD.
    return (
        select(ReportCard.id)
        .join(Publication, Publication.id == ReportCard.publication_id)
        .join(Term, Term.id == Publication.term_id)
        .where(
            ReportCard.student_id == found.c.student_id,
            Publication.session_id == _session_id(found),
            IN_FORCE,
            Term.term > found.c.card["term"]["term"].astext,
        )
        .correlate(found)
        .exists()
    )


def _pictures(*conditions: ColumnElement[bool]) -> ColumnElement[str]:
    """The pictures that fit one of the conditions: an object of base64 by hash, as text."""
    base64 = func.translate(func.encode(Picture.image, "base64"), "\n", "")
    found = select(cast(func.json_object_agg(Picture.sha256, base64, type_=JSON), Text)).where(
        or_(*conditions)
    )
    return found.correlate_except(Picture).scalar_subquery()


@read_model
def verified(first: UUID, last: UUID, digest: str) -> Query:
    """Read model of VerifiedCardSchema: what the paper with a code says, as it was published.

    The code is from `first` to `last`, and `digest` is its SHA-256 in hexadecimal digits. No row where there is none,
    or where the school does not let its cards be verified.
    """
    card, of, newer = ReportCard.card, Publication, aliased(Publication)
    student, place, subject = card["student"], card["batch_figures"], literal_column("subject", JSONB)
    replaced_at = (
        select(func.min(newer.published_at))
        .where(
            newer.batch_id == of.batch_id,
            newer.term_id == of.term_id,
            newer.version > of.version,
            of.state == SUPERSEDED,
        )
        .correlate(of)
        .scalar_subquery()
    )
    subjects = (
        select(
            func.json_agg(
                func.json_build_object(
                    "name",
                    subject["subject"]["name"],
                    "percent",
                    subject["percent"],
                    "grade",
                    subject["grade"],
                )
            )
        )
        .select_from(func.jsonb_array_elements(card["subjects"]).alias("subject"))
        .correlate(ReportCard)
        .scalar_subquery()
    )
    name = func.concat_ws(
        " ",
        student["first_name"].astext,
        func.nullif(student["middle_name"].astext, ""),
        student["last_name"].astext,
    )
    named = {
        "student": func.json_build_object("name", name, "admission_number", student["admission_number"]),
        "class": card["classroom"].astext + " " + card["batch_name"].astext,
        "session": card["session"]["name"],
        "term": card["term"]["term"],
    }
    figures = {
        "average": card["average"],
        "grade": card["grade"],
        "position": case((_shows_position(card), place["position"])),
        "of": case((_shows_position(card), place["of"])),
        "subjects": func.coalesce(subjects, literal_column("'[]'::json")),
    }

    def unless_withdrawn(columns: dict[str, Any]) -> list[Any]:
        return [case((of.state != WITHDRAWN, value)).label(name) for name, value in columns.items()]

    state = case(
        (of.state == WITHDRAWN, WITHDRAWN_CARD), (of.state == SUPERSEDED, REPLACED_CARD), else_=CURRENT_CARD
    )
    return (
        select(
            state.label("state"),
            card["letterhead"]["name"].label("school"),
            *unless_withdrawn(named),
            of.version,
            of.published_at,
            replaced_at.label("replaced_at"),
            *unless_withdrawn(figures),
        )
        .select_from(ReportCard)
        .join(of, of.id == ReportCard.publication_id)
        .where(
            ReportCard.code.between(first, last),
            func.encode(func.sha256(func.uuid_send(ReportCard.code)), "hex") == digest,
            card["verification"].as_boolean(),
            not_(select(ResultSettings.id).where(not_(ResultSettings.verification)).exists()),
        )
    )


def _shows_position(card: Any) -> ColumnElement[bool]:
    return or_(card["positions"].astext == BOTH, card["positions"].astext == BATCH)
