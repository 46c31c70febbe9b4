"""What is printed of published results, and what a card's code tells of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    CTE,
    JSON,
    ColumnElement,
    Integer,
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
    null,
    or_,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by, array
from sqlalchemy.orm import aliased

from school_service.core.reach import Reach
from school_service.core.read_models import Query, read_model
from school_service.features.reach import scopes
from school_service.features.results.figures.frozen import (
    card_of_version,
    is_own,
    latest_card,
    name_order,
    printed_class,
    printed_name,
    published_cards,
    shows_position,
)
from school_service.features.results.figures.rules import scope_of_student
from school_service.features.results.models import (
    BATCH,
    BOTH,
    CURRENT_CARD,
    REPLACED_CARD,
    WITHDRAWN,
    WITHDRAWN_CARD,
    IssuedTranscript,
    LeftOut,
    Letterhead,
    Picture,
    Publication,
    ReportCard,
    ResultSettings,
)
from school_service.features.results.publications.cards import cards, rules
from school_service.features.results.publications.changes import (
    class_figures,
    own_figures,
    session_figures,
    term_figures,
)
from school_service.features.results.transcripts.reads import class_of_outcome, outcome_of
from school_service.features.school.models import TERMS, Term
from school_service.features.school.sessions.service import is_term


@read_model
def printed_of_batch(
    batch_id: UUID, term: str, student_ids: list[UUID] | None = None, reach: Reach | None = None
) -> Query:
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
    if reach is not None:
        found = found.where(scopes.is_form_batch(reach, Publication.batch_id))
    if student_ids is not None:
        found = found.where(ReportCard.student_id == any_(cast(student_ids, ARRAY(Uuid))))
    return _printed(found.cte("found"))


@read_model
def printed_of_student(
    student_id: UUID, term: str, session: str | None = None, reach: Reach | None = None
) -> Query:
    """Select what is printed for a student: one row, whose `cards` has one card, or is null where none is published."""
    return _printed(_in_reach(latest_card(student_id, term, session, withdrawn=False), reach))


@read_model
def printed_of_version(
    student_id: UUID,
    term: str,
    version: int,
    user_id: UUID | None = None,
    session: str | None = None,
    reach: Reach | None = None,
) -> Query:
    """Select what is printed for a student in a version of their batch's results: one row with one card.

    `user_id` is whose token asks: the student's own account gets none.
    """
    found = card_of_version(student_id, term, version, session)
    if user_id is not None:
        found = select(found).where(~is_own(student_id, user_id, reach)).cte("of_others")
    return _printed(_in_reach(found, reach))


@read_model
def drafted_of_batch(
    batch_id: UUID, term: str, student_ids: list[UUID] | None = None, reach: Reach | None = None
) -> Query:
    """Select what is printed for a batch as results are now: one row with drafts of the cards, which have no codes."""
    found = _drafted(cards(batch_id, term), student_ids)
    if reach is not None:
        found = found.where(scopes.is_form_batch(reach, batch_id))
    return _printed(found.cte("found"))


@read_model
def drafted_of_student(
    student_id: UUID,
    term: str,
    user_id: UUID | None = None,
    session: str | None = None,
    reach: Reach | None = None,
) -> Query:
    """Select what is printed for a student as results are now: one row with a draft of the card, which has no code.

    `user_id` is whose token asks: the student's own account gets none.
    """
    scope = scope_of_student(student_id, term, session).subquery("own_batch")
    batch_id = select(scope.c.batch_id).scalar_subquery()
    term_id = select(cast(scope.c.term_id, Text)).scalar_subquery()
    found = _drafted(cards(batch_id, term_id), array([student_id]))
    drafted = (found if user_id is None else found.where(~is_own(student_id, user_id, reach))).cte("found")
    return _printed(_in_reach(drafted, reach))


def pictures_by_hash(*hashes: Any) -> ColumnElement[str]:
    """The pictures of these hashes: an object of base64 by hash, as text, for use within a statement."""
    return _pictures(*(Picture.sha256 == one for one in hashes))


def _in_reach(found: CTE, reach: Reach | None) -> CTE:
    """Narrow cards of a student to those in reach: one's own, of who is in the batch now, or belonged to it then."""
    if reach is None:
        return found
    of_batch = scopes.is_form_batch(reach, cast(found.c.card["batch"].astext, Uuid))
    return select(found).where(scopes.students_in_reach(reach, found.c.student_id) | of_batch).cte("in_reach")


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
        *(
            part
            for name, of_decision in (("outcome", outcome_of), ("outcome_class", class_of_outcome))
            for part in (
                name, case((_has_outcome(found), of_decision(found.c.student_id, _session_id(found), found)))
            )
        ),
    )  # fmt: skip
    about = select(
        func.json_build_object(
            "class", printed_class(found.c.card),
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
def verifiable(first: UUID, last: UUID, digest: str) -> Query:
    """Read model of the paper that `verified` tells of: its id alone, with a small part of the work.

    Whoever tries codes costs no more than that.
    """
    card = select(ReportCard.id).where(_is_verifiable(ReportCard.code, ReportCard.card, first, last, digest))
    of = IssuedTranscript
    transcript = select(of.id).where(_is_verifiable(of.code, of.transcript, first, last, digest))
    return select(union_all(card, transcript).subquery("either").c.id)


@read_model
def verified(first: UUID, last: UUID, digest: str, on_page: bool | None = None) -> Query:
    """Read model of VerifiedPaperSchema: what the paper with a code says, a card as it was published, or a transcript.

    The code is from `first` to `last`, and `digest` is its SHA-256 in hexadecimal digits. No row where there is none,
    or where the school does not let its papers be verified. `on_page`: with the `time_zone` of the paper, for a page.
    """
    card = _verified_card(_is_verifiable(ReportCard.code, ReportCard.card, first, last, digest))
    transcript = _verified_transcript(
        _is_verifiable(IssuedTranscript.code, IssuedTranscript.transcript, first, last, digest)
    )
    found = union_all(card, transcript).subquery("either")
    return select(*(column for column in found.c if on_page is not None or column.name != "time_zone"))


def _is_verifiable(code: Any, paper: Any, first: Any, last: Any, digest: Any) -> ColumnElement[bool]:
    """Whether a paper has the code, and the school let it be verified when it was printed, and does now."""
    has_code = func.encode(func.sha256(func.uuid_send(code)), "hex") == digest
    is_switched_off = select(ResultSettings.id).where(not_(ResultSettings.verification)).exists()
    return and_(
        code.between(first, last), has_code, paper["verification"].as_boolean(), not_(is_switched_off)
    )


def _verified_card(is_verifiable: ColumnElement[bool]) -> Query:
    """Select what the card with the code says.

    It is compared with the card in force of the same student and term: CURRENT while that says the same of them, with a
    `note` where the figures of the class are others.
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
    named = {
        "student": func.json_build_object(
            "name", printed_name(card), "admission_number", student["admission_number"]
        ),
        "class": printed_class(card),
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

    zone = func.coalesce(card["time_zone"].astext, "UTC")
    corrected_on = func.to_char(func.timezone(zone, now.c.published_at), "FMDD FMMonth YYYY")
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
            cast(null(), JSON).label("sessions"),
            zone.label("time_zone"),
        )
        .select_from(ReportCard)
        .join(of, of.id == ReportCard.publication_id)
        .outerjoin(now, literal_column("true"))
        .where(is_verifiable)
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


def _verified_transcript(is_verifiable: ColumnElement[bool]) -> Query:
    """Select what the transcript with the code says, by the columns of a card.

    Each card that it rests on is compared with the one in force of the same term: CURRENT while these say the same of
    what stands on a transcript, REPLACED where one does not, WITHDRAWN where there is none.
    """
    of = IssuedTranscript
    said = of.transcript
    now = _compared_cards().lateral("now")
    is_withdrawn = func.coalesce(now.c.is_withdrawn, false())
    named = func.json_build_object(
        "name", printed_name(said), "admission_number", said["student"]["admission_number"]
    )
    session, subject = literal_column("session", JSONB), literal_column("subject", JSONB)
    subjects = select(
        func.json_agg(
            func.json_build_object(
                *(part for name in ("name", *TERMS, "percent", "grade") for part in (name, subject[name]))
            )
        )
    ).select_from(func.jsonb_array_elements(session["subjects"]).alias("subject"))
    sessions = select(
        func.json_agg(
            func.json_build_object(
                "session", session["session"]["name"],
                "class", session["class_name"],
                *(part for name in ("average", "grade", "position", "of") for part in (name, session[name])),
                "subjects", func.coalesce(subjects.scalar_subquery(), literal_column("'[]'::json")),
            )
        )
    ).select_from(func.jsonb_array_elements(said["sessions"]).alias("session"))  # fmt: skip
    nothing: dict[str, Any] = {
        "class": Text(), "session": JSONB(), "term": JSONB(), "version": Integer(),
    }  # fmt: skip
    figures: dict[str, Any] = {
        "average": JSONB(), "grade": JSONB(), "position": JSONB(), "of": JSONB(), "subjects": JSON(),
    }  # fmt: skip
    state = case(
        (is_withdrawn, WITHDRAWN_CARD), (now.c.replaced_at.is_not(None), REPLACED_CARD), else_=CURRENT_CARD
    )
    none: Any = literal_column("'[]'::json")
    return (
        select(
            state.label("state"),
            said["school"]["name"].label("school"),
            case((not_(is_withdrawn), named)).label("student"),
            *(cast(null(), kind).label(name) for name, kind in nothing.items()),
            of.issued_at.label("published_at"),
            case((not_(is_withdrawn), now.c.replaced_at)).label("replaced_at"),
            cast(null(), Text).label("note"),
            *(cast(null(), kind).label(name) for name, kind in figures.items()),
            case(
                (is_withdrawn, none),
                else_=func.coalesce(sessions.correlate(of).scalar_subquery(), none),
            ).label("sessions"),
            said["time_zone"].astext.label("time_zone"),
        )
        .select_from(of)
        .outerjoin(now, literal_column("true"))
        .where(is_verifiable)
    )


def _compared_cards() -> Query:
    """Select how the cards that a transcript rests on compare with those in force: one row.

    `is_withdrawn` tells whether a term has none, `replaced_at` when the latest was published that says something else.
    """
    paper, now, publication, term = (
        aliased(ReportCard), aliased(ReportCard), aliased(Publication), aliased(Term),
    )  # fmt: skip

    def shows(card: Any) -> Any:
        return or_(not_(IssuedTranscript.transcript["own"].as_boolean()), shows_position(card, "batch"))

    def differs(figures: Any) -> Any:
        return figures(now.card, shows(now.card)) != figures(paper.card, shows(paper.card))

    # The session's result on a transcript is that of its latest term.
    place = func.row_number().over(partition_by=term.session_id, order_by=term.term.desc())
    compared = (
        select(
            now.id.label("now"),
            publication.published_at,
            or_(
                differs(term_figures), and_(place == 1, differs(session_figures))
            ).label("differs"),
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
    return select(
        func.bool_or(compared.c.now.is_(None)).label("is_withdrawn"),
        func.max(compared.c.published_at).filter(compared.c.differs).label("replaced_at"),
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
