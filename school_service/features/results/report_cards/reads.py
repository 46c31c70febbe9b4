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
    and_,
    any_,
    case,
    cast,
    false,
    func,
    literal_column,
    not_,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by, array
from sqlalchemy.orm import aliased

from school_service.core.read_models import Query, read_model
from school_service.features.results.figures.frozen import (
    card_of_version,
    is_own,
    latest_card,
    name_order,
    published_cards,
)
from school_service.features.results.figures.rules import scope_of_student
from school_service.features.results.models import (
    BATCH,
    BOTH,
    CURRENT_CARD,
    REPLACED_CARD,
    WITHDRAWN,
    WITHDRAWN_CARD,
    LeftOut,
    Letterhead,
    Picture,
    Publication,
    ReportCard,
    ResultSettings,
)
from school_service.features.results.publications.cards import cards, rules
from school_service.features.results.publications.changes import class_figures, own_figures
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
    found = (
        published_cards()
        .add_columns(ReportCard.in_force)
        .where(ReportCard.in_force, Publication.batch_id == batch_id, is_term(term))
    )
    if student_ids is not None:
        found = found.where(ReportCard.student_id == any_(cast(student_ids, ARRAY(Uuid))))
    return _printed(found.cte("found"))


@read_model
def printed_of_student(student_id: UUID, term: str, session: str | None = None) -> Query:
    """Select what is printed for a student: one row, whose `cards` has one card, or is null where none is published."""
    return _printed(latest_card(student_id, term, session, withdrawn=False))


@read_model
def printed_of_version(
    student_id: UUID, term: str, version: int, user_id: UUID | None = None, session: str | None = None
) -> Query:
    """Select what is printed for a student in a version of their batch's results: one row with one card.

    `user_id` is whose token asks: the student's own account gets none.
    """
    found = card_of_version(student_id, term, version, session)
    if user_id is not None:
        found = select(found).where(~is_own(student_id, user_id)).cte("of_others")
    return _printed(found)


@read_model
def drafted_of_batch(batch_id: UUID, term: str, student_ids: list[UUID] | None = None) -> Query:
    """Select what is printed for a batch as results are now: one row with drafts of the cards, which have no codes."""
    return _printed(_drafted(cards(batch_id, term), student_ids).cte("found"))


@read_model
def drafted_of_student(
    student_id: UUID, term: str, user_id: UUID | None = None, session: str | None = None
) -> Query:
    """Select what is printed for a student as results are now: one row with a draft of the card, which has no code.

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
            false().label("in_force"),
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
    card = func.json_build_object(
        "card", found.c.card,
        "code", found.c.code,
        "rules", found.c.rules,
        "outcome", case((_has_outcome(found), outcome_of(found.c.student_id, _session_id(found), found))),
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
        cast(func.json_agg(aggregate_order_by(card, *name_order(student))), Text).label("cards"),
        _pictures(
            Picture.id.in_(select(found.c.logo_id)), Picture.id.in_(select(found.c.signature_id))
        ).label("pictures"),
        func.array_agg(cast(found.c.student_id, Text)).label("students"),
        cast(about.scalar_subquery(), Text).label("about"),
    ).select_from(found)


def _session_id(found: CTE) -> ColumnElement[UUID]:
    return cast(found.c.card["session"]["id"].astext, Uuid)


def _has_outcome(found: CTE) -> ColumnElement[bool]:
    """Tell whether a card has the session's result: it is not replaced, and there is none of a later term in force."""
    # The terms' own order is that of the alphabet: FIRST, SECOND, THIRD.
    later = (
        select(ReportCard.id)
        .join(Term, Term.id == ReportCard.term_id)
        .where(
            ReportCard.student_id == found.c.student_id,
            Term.session_id == _session_id(found),
            ReportCard.in_force,
            Term.term > found.c.card["term"]["term"].astext,
        )
        .correlate(found)
    )
    is_replaced = and_(found.c.code.is_not(None), not_(found.c.in_force))
    return and_(not_(is_replaced), ~later.exists())


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
    or where the school does not let its cards be verified. It is compared with the card in force of the same student
    and term: CURRENT while that says the same of them, with a `note` where the figures of the class are others.
    """
    card, of = ReportCard.card, Publication
    student, place, subject = card["student"], card["batch_figures"], literal_column("subject", JSONB)
    now = _card_in_force().lateral("now")
    is_withdrawn = or_(of.state == WITHDRAWN, and_(now.c.card.is_(None), _was_left_out()))
    is_same = or_(ReportCard.in_force, own_figures(now.c.card) == own_figures(card))
    is_corrected = and_(not_(ReportCard.in_force), class_figures(now.c.card) != class_figures(card))
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
        return [case((not_(is_withdrawn), value)).label(name) for name, value in columns.items()]

    corrected_on = func.to_char(func.timezone("UTC", now.c.published_at), "FMDD FMMonth YYYY")
    note = func.concat(
        "Class figures were corrected on ", corrected_on, "; the student's own results are the same."
    )
    found = (
        select(
            case((is_withdrawn, WITHDRAWN_CARD), (is_same, CURRENT_CARD), else_=REPLACED_CARD).label("state"),
            card["letterhead"]["name"].label("school"),
            *unless_withdrawn(named),
            of.version,
            of.published_at,
            func.coalesce(now.c.published_at, _next_version_at()).label("newer_at"),
            case((is_corrected, note)).label("note"),
            *unless_withdrawn(figures),
        )
        .select_from(ReportCard)
        .join(of, of.id == ReportCard.publication_id)
        .outerjoin(now, literal_column("true"))
        .where(
            ReportCard.code.between(first, last),
            func.encode(func.sha256(func.uuid_send(ReportCard.code)), "hex") == digest,
            card["verification"].as_boolean(),
            not_(select(ResultSettings.id).where(not_(ResultSettings.verification)).exists()),
        )
        .subquery("found")
    )
    shown = {
        **{column.name: column for column in found.c},
        "newer_at": case((found.c.state == REPLACED_CARD, found.c.newer_at)),
        "note": case((found.c.state == CURRENT_CARD, found.c.note)),
    }
    return select(
        *(column.label({"newer_at": "replaced_at"}.get(name, name)) for name, column in shown.items())
    )


def _card_in_force() -> Query:
    """Select the card in force of the student and the term of a card, and when it was published."""
    card, publication = aliased(ReportCard), aliased(Publication)
    return (
        select(card.card, publication.published_at)
        .join(publication, publication.id == card.publication_id)
        .where(card.student_id == ReportCard.student_id, card.term_id == ReportCard.term_id, card.in_force)
        .correlate_except(card, publication)
    )


def _was_left_out() -> ColumnElement[bool]:
    """Tell whether the student of a card was left out of its batch's results, and not taken in since."""
    return (
        select(LeftOut.student_id)
        .where(
            LeftOut.student_id == ReportCard.student_id,
            LeftOut.batch_id == Publication.batch_id,
            LeftOut.term_id == Publication.term_id,
        )
        .correlate_except(LeftOut)
        .exists()
    )


def _next_version_at() -> Any:
    """When the first version after a publication's was published."""
    newer = aliased(Publication)
    return (
        select(func.min(newer.published_at))
        .where(
            newer.batch_id == Publication.batch_id,
            newer.term_id == Publication.term_id,
            newer.version > Publication.version,
        )
        .correlate_except(newer)
        .scalar_subquery()
    )


def _shows_position(card: Any) -> ColumnElement[bool]:
    return or_(card["positions"].astext == BOTH, card["positions"].astext == BATCH)
