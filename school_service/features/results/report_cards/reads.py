"""The contents of printed published results, and of a card's verification by its code."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    JSON,
    ColumnElement,
    FromClause,
    Label,
    Text,
    Uuid,
    and_,
    any_,
    case,
    cast,
    func,
    literal_column,
    not_,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.orm import aliased

from school_service.core.reach import Reach
from school_service.core.read_models import Query, json_object, read_model
from school_service.core.records import one_of
from school_service.features.people.models import Student, User, UserPhoto
from school_service.features.people.users.reads import photo_address
from school_service.features.results.computing.class_term.entered import ClassTerm, class_term
from school_service.features.results.computing.class_term.record import record
from school_service.features.results.computing.class_term.roster import is_left_out
from school_service.features.results.computing.class_term.scopes import (
    scope_of_batch,
    scope_of_student,
    value_of,
)
from school_service.features.results.figures.frozen import (
    batch_in_reach,
    card_of_student,
    is_of_batch_in_reach,
    is_own,
    is_result_in_reach,
    name_order,
    printed_class,
    published_cards,
    result_in_reach,
    shows_position,
    term_asked,
)
from school_service.features.results.models import (
    LIVE,
    WITHDRAWN,
    IssuedTranscript,
    Promotion,
    PromotionAmendment,
    Publication,
    ReportCard,
)
from school_service.features.results.transcripts.reads import class_of_outcome, outcome_of
from school_service.features.school.models import AcademicSession, Letterhead, Picture, Term
from school_service.features.school.sessions.service import is_term
from school_service.features.scores.models import ResultSettings


@read_model
def printed_of_batch(
    batch_id: UUID, term: str, student_ids: list[UUID] | None = None, reach: Reach | None = None
) -> Query:
    """Select the contents of a batch's printed cards: one row; `cards` is null if nothing is published.

    Texts of JSON: `cards`, an array of `{"card", "code", "rules"}` in the order of the class list; `pictures`, an
    object of base64 by hash; `about`, the parts of a file's name: class, session and term, and of one student the name.
    `students` are the ids of the cards' students. With `student_ids` theirs alone.
    """
    is_shown = and_(ReportCard.in_force, Publication.batch_id == batch_id, is_term(term))
    query = published_cards().where(is_shown, batch_in_reach(reach, Publication.batch_id))
    if student_ids is not None:
        query = query.where(ReportCard.student_id == one_of(student_ids))
    return _printed(query.cte("found"))


@read_model
def printed_of_student(
    student_id: UUID,
    term: str,
    user_id: UUID | None = None,
    session: str | None = None,
    version: int | None = None,
    reach: Reach | None = None,
) -> Query:
    """Select the contents of a student's printed card: one row; `cards` has one card, or is null if none is published.

    The card is the one in force, or as in a `version` of their batch's results. `user_id` is the owner of the token:
    the student's own account gets no version.
    """
    own, term_id = term_asked(student_id, term, session, user_id, reach)
    card = card_of_student(student_id, term_id, version)
    is_shown = card.c.in_force if version is None else ~own
    is_reached = result_in_reach(reach, student_id, cast(card.c.card["batch"].astext, Uuid))
    return _printed(select(card).where(is_shown, is_reached).cte("found"))


@read_model
def cards_of_student(student_id: UUID, user_id: UUID | None = None, reach: Reach | None = None) -> Query:
    """Read model of StudentCardSchema: a student's cards in force, the newest first.

    `user_id` is the owner of the token: the student's own account, and a guardian's, see positions as each card shows
    them.
    """
    card, of = ReportCard.card, Publication
    own = is_own(student_id, user_id, reach)
    shown = or_(~own, shows_position(card, "batch"))
    query = (
        select(
            card["session"].label("session"),
            card["term"].label("term"),
            json_object(id=of.batch_id, name=card["batch_name"]).label("batch"),
            of.version,
            card["average"].label("average"),
            case((shown, card["batch_figures"]["position"])).label("position"),
            of.published_at,
        )
        .join(of, of.id == ReportCard.publication_id)
        .join(Term, Term.id == of.term_id)
        .join(AcademicSession, AcademicSession.id == of.session_id)
        .where(ReportCard.student_id == student_id, ReportCard.in_force)
        # The alphabet has the terms in their order: FIRST, SECOND, THIRD.
        .order_by(AcademicSession.start_date.desc(), AcademicSession.id, Term.term.desc())
    )
    return query if reach is None else query.where(result_in_reach(reach, student_id, of.batch_id))


@read_model
def drafted_of_batch(batch_id: UUID, term: str, reach: Reach | None = None) -> Query:
    """Select the contents of drafts of a batch's cards (`drafting`): one row."""
    of = class_term(scope_of_batch(batch_id, term), reach=reach, in_reach=is_of_batch_in_reach)
    return _drafted(of, batch_in_reach(reach, batch_id), of.people.c.batch_id == batch_id)


@read_model
def drafted_of_student(
    student_id: UUID,
    term: str,
    user_id: UUID | None = None,
    session: str | None = None,
    reach: Reach | None = None,
) -> Query:
    """Select the contents of the draft of a student's card: one row.

    `user_id` is the owner of the token: nothing is computed for the student's own account.
    """
    own, term_id = term_asked(student_id, term, session, user_id, reach)
    of = class_term(scope_of_student(student_id, term_id), reach=reach, in_reach=is_result_in_reach)
    is_reached = result_in_reach(reach, student_id, value_of(of.scope, "batch_id"))
    query = _drafted(of, and_(~own, is_reached), of.people.c.student_id == student_id)
    return query.add_columns(_photo(Student.id == student_id))


def _drafted(of: ClassTerm, condition: Any, is_of_draft: Any) -> Query:
    """Select the contents of drafts, if a condition is met; `is_of_draft` tells whether a person has one."""
    people, scope = of.people, of.scope
    session_id, term = value_of(scope, "session_id"), value_of(scope, "term")
    decided = func.json_build_array(
        people.c.number,
        outcome_of(people.c.student_id, session_id, people),
        class_of_outcome(people.c.student_id, session_id, people),
    )
    outcomes = (
        select(func.json_agg(decided))
        .select_from(people)
        .where(~_has_later(people.c.student_id, session_id, term, people))
    )
    return select(
        *of.columns(condition),
        record(of).label("record"),
        outcomes.scalar_subquery().label("outcomes"),
        pictures(*(Picture.id.in_(select(each)) for each in (Letterhead.logo_id, Letterhead.signature_id))),
        case((condition, _photos(people, is_of_draft))).label("photos"),
    )


def _photos(people: CTE, is_of_draft: Any) -> Any:
    """The photos of the drafts, if cards show them: an object of base64 by the person's number."""
    image = in_base64(UserPhoto.image)
    return (
        select(func.json_object_agg(people.c.number, image, type_=JSON))
        .select_from(people)
        .join(Student, Student.id == people.c.student_id)
        .join(UserPhoto, UserPhoto.user_id == Student.user_id)
        .where(is_of_draft, select(ResultSettings.id).where(ResultSettings.show_photo).exists())
        .scalar_subquery()
    )


def _printed(printed: CTE) -> Query:
    student = printed.c.card["student"]
    of_session = (printed.c.student_id, _session_id(printed), printed)
    card = json_object(
        card=printed.c.card,
        code=printed.c.code,
        rules=printed.c.rules,
        outcome=case((_has_outcome(printed), outcome_of(*of_session))),
        outcome_class=case((_has_outcome(printed), class_of_outcome(*of_session))),
        photo=in_base64(printed.c.photo),
    )
    about = json_object(
        **{"class": printed_class(printed.c.card)},
        session=printed.c.card["session"]["name"],
        term=printed.c.card["term"]["id"],
        term_name=printed.c.card["term_name"],
        **{name: student[name] for name in ("last_name", "first_name", "admission_number")},
    )
    return select(
        cast(func.json_agg(aggregate_order_by(card, *name_order(student))), Text).label("cards"),
        pictures(Picture.id.in_(select(printed.c.logo_id)), Picture.id.in_(select(printed.c.signature_id))),
        func.array_agg(cast(printed.c.student_id, Text)).label("students"),
        cast(select(about).limit(1).scalar_subquery(), Text).label("about"),
        _photo(Student.id.in_(select(printed.c.student_id))),
    ).select_from(printed)


def _photo(condition: ColumnElement[bool]) -> Label[str]:
    """The column `photo`: the address of the photo of a student; of several, one's."""
    query = select(photo_address()).join(Student, Student.user_id == User.id).where(condition).limit(1)
    return query.correlate_except(Student, User).scalar_subquery().label("photo")


def _session_id(printed: CTE) -> ColumnElement[UUID]:
    return cast(printed.c.card["session"]["id"].astext, Uuid)


def _has_outcome(printed: CTE) -> ColumnElement[bool]:
    """Tell whether a card has the session's result: it is not replaced, and there is none of a later term in force."""
    term = printed.c.card["term"]["term"].astext
    return and_(printed.c.in_force, ~_has_later(printed.c.student_id, _session_id(printed), term, printed))


def _has_later(student_id: Any, session_id: Any, term: Any, *rows: FromClause) -> ColumnElement[bool]:
    """Tell whether a student of `rows` has a card of a later term of the session in force."""
    card, of_card = aliased(ReportCard), aliased(Term)
    # The alphabet has the terms in their order: FIRST, SECOND, THIRD.
    later = (
        select(card.id)
        .join(of_card, of_card.id == card.term_id)
        .where(
            card.student_id == student_id,
            of_card.session_id == session_id,
            card.in_force,
            of_card.term > term,
        )
        .correlate(*rows)
    )
    return later.exists()


def pictures(*conditions: ColumnElement[bool]) -> Label[str]:
    """The column `pictures`: those meeting one of the conditions, an object of base64 by hash, as text."""
    images = cast(func.json_object_agg(Picture.sha256, in_base64(Picture.image), type_=JSON), Text)
    return (
        select(images).where(or_(*conditions)).correlate_except(Picture).scalar_subquery().label("pictures")
    )


def in_base64(image: Any) -> Any:
    """Write a picture in base64, in one line."""
    return func.translate(func.encode(image, "base64"), "\n", "")


@read_model
def verifiable(first: UUID, last: UUID, digest: str) -> Query:
    """Read model of the paper of `verified`: its id alone, with a small part of the work.

    The trial of a wrong code costs no more than this.
    """
    card = select(ReportCard.id).where(_is_verifiable(ReportCard.code, ReportCard.card, first, last, digest))
    of = IssuedTranscript
    transcript = select(of.id).where(_is_verifiable(of.code, of.transcript, first, last, digest))
    return select(union_all(card, transcript).subquery("either").c.id)


@read_model
def paper_of_code(first: UUID, last: UUID, digest: str) -> Query:
    """Select a paper with a code, and the cards in force now: `card` or `transcript`, JSON, else null.

    The code is from `first` to `last`, and `digest` is its SHA-256 in hexadecimal digits. There is none if the school
    does not let its papers be verified. `verifying` draws the conclusions.
    """
    card = _verified_card(_is_verifiable(ReportCard.code, ReportCard.card, first, last, digest))
    transcript = _verified_transcript(
        _is_verifiable(IssuedTranscript.code, IssuedTranscript.transcript, first, last, digest)
    )
    return select(card.label("card"), transcript.label("transcript"))


def _is_verifiable(code: Any, paper: Any, first: Any, last: Any, digest: Any) -> ColumnElement[bool]:
    """Whether a paper has the code, and the school let it be verified when it was printed, and does now."""
    has_code = func.encode(func.sha256(func.uuid_send(code)), "hex") == digest
    is_switched_off = select(ResultSettings.id).where(not_(ResultSettings.verification)).exists()
    return and_(
        code.between(first, last), has_code, paper["verification"].as_boolean(), not_(is_switched_off)
    )


def _verified_card(is_verifiable: ColumnElement[bool]) -> Any:
    """The card with the code, and the one in force of the same student and term: a JSON object, or null."""
    of, now = Publication, _card_in_force().lateral("now")
    was_left_out = is_left_out(ReportCard.student_id, of.batch_id, of.term_id)
    document = json_object(
        card=ReportCard.card,
        in_force=ReportCard.in_force,
        is_withdrawn=or_(of.state == WITHDRAWN, and_(now.c.card.is_(None), was_left_out)),
        version=of.version,
        published_at=of.published_at,
        now=now.c.card,
        newer_at=func.coalesce(now.c.published_at, _next_version_at()),
        decided_at=_outcome_changed_at(),
    )
    return (
        select(document)
        .select_from(ReportCard)
        .join(of, of.id == ReportCard.publication_id)
        .outerjoin(now, true())
        .where(is_verifiable)
        .scalar_subquery()
    )


def _verified_transcript(is_verifiable: ColumnElement[bool]) -> Any:
    """The transcript with the code, and the cards under it beside those in force: a JSON object, or null."""
    of = IssuedTranscript
    document = json_object(transcript=of.transcript, issued_at=of.issued_at, cards=_cards_of_transcript())
    return select(document).select_from(of).where(is_verifiable).scalar_subquery()


def _cards_of_transcript() -> Any:
    """List the cards of a transcript, each with the one in force of the same term, if there is one.

    `is_latest` marks the card of the latest term of its session: the session's result on a transcript is its.
    """
    paper, now, publication, term = (
        aliased(ReportCard), aliased(ReportCard), aliased(Publication), aliased(Term),
    )  # fmt: skip
    place = func.row_number().over(partition_by=term.session_id, order_by=term.term.desc())
    compared = (
        select(
            paper.card.label("paper"), now.card.label("now"), publication.published_at, (place == 1).label("is_latest")
        )
        .select_from(paper)
        .join(term, term.id == paper.term_id)
        .outerjoin(
            now, and_(now.student_id == paper.student_id, now.term_id == paper.term_id, now.in_force)
        )
        .outerjoin(publication, publication.id == now.publication_id)
        .where(paper.id == any_(IssuedTranscript.card_ids))
        .correlate(IssuedTranscript)
        .subquery("compared")
    )  # fmt: skip
    return (
        select(func.json_agg(func.row_to_json(literal_column("compared"))))
        .select_from(compared)
        .scalar_subquery()
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


def _outcome_changed_at() -> Any:
    """When the outcome was amended last that is printed on a card: of the student's latest term of the session."""
    card, of = ReportCard, Publication
    amended = (
        select(func.max(PromotionAmendment.amended_at))
        .join(Promotion, and_(Promotion.id == PromotionAmendment.promotion_id, LIVE))
        .where(PromotionAmendment.student_id == card.student_id, Promotion.session_id == of.session_id)
        .correlate(card.__table__, of.__table__)
    )
    term = card.card["term"]["term"].astext
    has_later = _has_later(card.student_id, of.session_id, term, card.__table__, of.__table__)
    return case((not_(has_later), amended.scalar_subquery()))


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
