"""Publications: release the results of batches in a term, reopen and withdraw them; and what they hold meanwhile.

Whoever publishes or reopens locks the cohort FOR NO KEY UPDATE, then the students FOR SHARE; whoever publishes the term
first, FOR KEY SHARE, and at last the settings and grade bands, which it reads twice, and whoever reopens the cards,
which whoever promotes by one locks, too, of whichever class it is. Whoever submits or reopens a subject, enrolls and
removes students, enters metrics and comments locks the cohort too, and who changes what students take locks the
students. So what is judged is what is frozen, and of two who publish at once one finds that it is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID, uuid4

import orjson
from sqlalchemy import (
    ARRAY,
    JSON,
    Integer,
    Text,
    Uuid,
    any_,
    cast,
    delete,
    func,
    insert,
    literal,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by

from school_service.core.database import request_context
from school_service.core.errors import Conflict, Invalid
from school_service.core.read_models import BoundQuery, Query, fetch_row, read_model
from school_service.core.records import (
    array_text,
    get,
    get_referenced,
    new_ids,
    not_found,
    unknown_reference,
    unnest_rows,
)
from school_service.core.statements import execute, in_one_round_trip, statement, table_lock
from school_service.features.attendance.calendar import counts_registers
from school_service.features.attendance.overviews.reads import missing_registers
from school_service.features.audit.service import OPERATOR, Change, audit_change, audit_changes
from school_service.features.results.figures.service import check_broadsheet
from school_service.features.results.models import (
    PUBLISHED,
    REOPENED,
    SUPERSEDED,
    WITHDRAWN,
    LeftOut,
    Letterhead,
    Publication,
    ReportCard,
    ResultSettings,
)
from school_service.features.results.publications import reads
from school_service.features.results.publications.cards import new_cards, rules, subjects
from school_service.features.school.cohorts.service import find_session
from school_service.features.school.models import Batch, Cohort, TermCalendar
from school_service.features.school.sessions.service import check_term
from school_service.features.school.settings.service import share_settings
from school_service.features.scores.models import GradeConfiguration
from tenants.clock import now

ENTITY = "publication"
"""What the audit log calls it; of who is left out or taken in, the id there is the student's."""

_share_bands = table_lock(GradeConfiguration, shared=True)

MOST_NAMED = 20  # students in a refusal, of each result


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A batch to publish: what `reads.publishing` has of it, the `version` to be, and whose cards it has.

    `left` are those of its students who are not enrolled in it any more.
    """

    batch_id: UUID
    name: str
    version: int
    students: Sequence[str]
    left: Sequence[str]


@dataclass(frozen=True, slots=True)
class Judged:
    """What may be published: the row of `reads.publishing`, the versions to be, and who belongs to the cohort.

    `members` are a student's id, the batch's, and that of the batch that they are enrolled in, or None; `leaving` and
    `coming` are the batches of students who are left out, and taken in, by the student's id.
    """

    found: Mapping[str, Any]
    versions: Sequence[NewVersion]
    members: Sequence[tuple[str, str, str | None]]
    leaving: Mapping[str, str]
    coming: Mapping[str, str]

    def cards(self, moment: datetime) -> dict[str, Any]:
        """The arguments of `_counted`: what the cards are made of."""
        students, batches, enrolled_in = zip(*self.members, strict=True)
        numbers = [version.version for version in self.versions]
        return {
            "batch_ids": [version.batch_id for version in self.versions],
            # Where nothing was published before, PostgreSQL is spared to plan what compares.
            "versions": None if set(numbers) == {1} else numbers,
            "term_id": str(self.found["term_id"]),
            "moment": moment,
            "members": array_text(students),
            # Where it is the same of all, PostgreSQL is spared to compute the figures of the cohort besides.
            "batches_of_members": None if len(set(batches)) == 1 else array_text(batches),
            "enrolled_in": array_text("NULL" if one is None else one for one in enrolled_in),
        }


def check_publication_filter(
    *,
    batch: UUID | None = None,
    cohort: UUID | None = None,
    term: str | None = None,
    session: str | None = None,
) -> None:
    """Tell whether there is what a filter of publications names. Raises Invalid."""
    if batch is not None:
        get_referenced(Batch, batch, "batch")
    if cohort is not None:
        get_referenced(Cohort, cohort, "cohort")
    if term is not None:
        check_term(term)
    if session is not None:
        find_session(session, "session")


def check_publication(*, id: UUID) -> None:
    """Tell whether there is a publication; raises NotFound."""
    get(Publication, id)


def publish(
    *,
    batches: Sequence[UUID],
    term: str,
    leave_out: Sequence[Mapping[str, Any]] = (),
    take_in: Sequence[UUID] = (),
) -> BoundQuery:
    """Publish the results of batches of a cohort in a term, all or none: the cards of whoever belongs to them.

    `term` is the id of a term or its name in the batches' session. What is reopened becomes the next version.
    `leave_out` are students who get no card, each with a reason, until `take_in` names them. Returns the read model of
    the publications, which are stored in the round trip that reads them. Raises Invalid for unknown ids, for a batch of
    another cohort, for whom to leave out who does not belong to the batches, and whom to take in who was not left out;
    and Conflict where something has to be done first, naming it.
    """
    judged = _judge(batches, term, leave_out, take_in)
    found, versions = judged.found, judged.versions
    moment, principal = now(), request_context().principal
    ids = [uuid4() for _ in versions]
    batch_ids = [version.batch_id for version in versions]
    term_id = found["term_id"]
    reasons = {str(one["student"]): one["reason"] for one in leave_out}
    for publication, version in zip(ids, versions, strict=True):
        of_batch = str(version.batch_id)
        new = {
            "state": PUBLISHED,
            "batch": of_batch,
            "term": term_id,
            "version": version.version,
            "students": len(version.students),
        }
        audit_change(ENTITY, publication, new=new)
        where = {"publication": publication, "batch": of_batch, "term": term_id, "version": version.version}
        audit_changes(
            ENTITY,
            [
                Change(UUID(student), None, {"left_out": True, "reason": reasons[student], **where})
                for student, batch in judged.leaving.items()
                if batch == of_batch
            ],
        )
        audit_changes(
            ENTITY,
            [
                Change(UUID(student), None, {"taken_in": True, **where})
                for student, batch in judged.coming.items()
                if batch == of_batch
            ],
        )
    number = sum(len(version.students) for version in versions)
    leaving = [UUID(one) for one in judged.leaving], [UUID(one) for one in judged.leaving.values()]
    return in_one_round_trip(
        _replace_cards(batch_ids, term_id),
        _supersede(batch_ids, term_id),
        *([_leave_out(*leaving, term_id)] if leave_out else []),
        *([_take_in(list(take_in), batch_ids, term_id)] if take_in else []),
        _insert(
            ids,
            batch_ids,
            [version.version for version in versions],
            orjson.dumps([version.left for version in versions]).decode(),
            term_id,
            found["session_id"],
            found["session_name"],
            moment,
            principal.actor if principal else OPERATOR,
            principal.actor_name if principal else OPERATOR,
        ),
        _freeze(
            **judged.cards(moment),
            publication_ids=ids,
            student_ids=array_text(one for version in versions for one in version.students),
            ids=array_text(new_ids(number)),
            codes=array_text(new_ids(number)),
        ),
        read=reads.published(ids),
    )


def rehearse(
    *,
    batches: Sequence[UUID],
    term: str,
    leave_out: Sequence[Mapping[str, Any]] = (),
    take_in: Sequence[UUID] = (),
) -> list[dict[str, Any]]:
    """Tell what `publish` would do, and store nothing; raises what it would raise."""
    judged = _judge(batches, term, leave_out, take_in)
    found, principal = judged.found, request_context().principal
    counted = fetch_row(_counted(**judged.cards(now())))
    numbers = orjson.loads(counted["numbers"]) if counted else {}
    missing = orjson.loads(counted["registers_missing"]) if counted and counted["by_registers"] else None
    return [
        {
            "id": None,
            "batch": version.batch_id,
            "batch_name": version.name,
            "cohort": found["cohort_id"],
            "session": {"id": found["session_id"], "name": found["session_name"]},
            "term": {"id": found["term_id"], "term": found["term"]},
            "version": version.version,
            "state": PUBLISHED,
            "published_at": None,
            "published_by": principal.actor if principal else OPERATOR,
            "published_by_name": principal.actor_name if principal else OPERATOR,
            "reopened_at": None,
            "reopened_by_name": None,
            "reason": None,
            **numbers[str(version.batch_id)],
            "left": version.left,
            **_missing_of(version, missing),
        }
        for version in judged.versions
    ]


def _missing_of(version: NewVersion, missing: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """The registers that a batch lacks, where the registers say how often students came."""
    if missing is None:
        return {}
    of_batch = [
        {**one, "date": date.fromisoformat(one["date"])}
        for one in missing
        if one["batch"] == str(version.batch_id)
    ]
    return {"registers_missing": of_batch}


def reopen(*, publication_id: UUID, reason: str, withdraw: bool = False) -> BoundQuery:
    """Reopen what is published, to be corrected and published again; or withdraw it, what is REOPENED too.

    Returns the read model of the publication, which is changed in the round trip that reads it. Raises NotFound, and
    Conflict where it is not PUBLISHED, results of a later term that rest on it are, or a promotion rests on it.
    """
    found = execute(
        reads.lock_cohort(publication_id),
        reads.lock_students_of(publication_id),
        reads.lock_cards_of(publication_id),
        reads.reopening(publication_id),
    )
    if found is None:
        raise not_found(Publication)
    state = found["state"]
    if state != PUBLISHED and not (withdraw and state == REOPENED):
        raise Conflict(f"This publication is {state}: only what is {PUBLISHED} can be reopened.")
    later = orjson.loads(found["later"])
    if later:
        raise Conflict(f"Later results rest on it: reopen {', '.join(later)} first.")
    if found["promoted"]:
        raise Conflict("A promotion rests on these results: undo that promotion first.")
    new = WITHDRAWN if withdraw else REOPENED
    audit_change(
        ENTITY,
        publication_id,
        old={"state": state, "version": found["version"]},
        new={"state": new, "version": found["version"], "reason": reason},
    )
    principal = request_context().principal
    reopening = _reopen(
        publication_id,
        new,
        reason,
        now(),
        principal.actor if principal else OPERATOR,
        principal.actor_name if principal else OPERATOR,
    )
    ending = [_end_cards(publication_id)] if withdraw else []
    return in_one_round_trip(reopening, *ending, read=reads.publication(publication_id))


def lock_open(*, cohort_id: UUID, batch_id: UUID, term_id: UUID) -> None:
    """Lock a cohort FOR NO KEY UPDATE, to enter what cards of a batch and term say; one round trip.

    Raises Conflict while the batch's results of that term are published.
    """
    found = execute(reads.lock_cohort_in_term(cohort_id, term_id), reads.is_open(batch_id, term_id))
    refuse_published(found["published"] if found else None)


def refuse_published(name: str | None) -> None:
    """Refuse to change what cards say that are published; raises Conflict.

    `name` is what `reads.published_name` selects, read while the cohort is locked, FOR SHARE at least.
    """
    if name is not None:
        raise Conflict(f"The results of {name}, are published: reopen that publication first.")


def _judge(
    batch_ids: Sequence[UUID],
    term: str,
    leave_out: Sequence[Mapping[str, Any]],
    take_in: Sequence[UUID],
) -> Judged:
    """Lock all that publishing concerns, and see that it may be done: each batch gets its next version."""
    ids, leaving = list(dict.fromkeys(batch_ids)), [one["student"] for one in leave_out]
    # None for an empty list: what nobody asks for is not planned.
    of = (ids[0], ids, term, leaving or None, list(take_in) or None)
    found = execute(
        reads.lock_cohorts(ids, term),
        reads.lock_students(ids, [*leaving, *take_in]),
        share_settings(),
        _share_bands(),
        reads.publishing(*of),
    )
    if found is None:
        _refuse_unknown(ids[0], term)
        raise RuntimeError("The batch and the term are there, and what decides was not found.")
    batches = orjson.loads(found["batches"])
    members = [tuple(one) for one in orjson.loads(found["roster"])]
    _refuse_batches(ids, batches, str(found["cohort_id"]))
    named = {name: dict(orjson.loads(found[name])) for name in ("leaving", "coming")}
    _refuse_strangers(leaving, take_in, **named)
    versions = [
        NewVersion(
            batch_id=UUID(one["id"]),
            name=one["arm"],
            version=one["latest"] + 1,
            students=[student for student, batch, _ in members if batch == one["id"]],
            left=sorted(student for student, batch, there in members if batch == one["id"] != there),
        )
        for one in batches
    ]
    empty = ", ".join(
        one["name"] for one, version in zip(batches, versions, strict=True) if not version.students
    )
    if empty:
        raise Conflict(f"There is nobody in: {empty}.")
    changing = fetch_row(reads.changing(*of)) if found["has_later"] else None
    _refuse_results(found, orjson.loads(changing["later"]) if changing else [])
    return Judged(found, versions, members, **named)


def _refuse_strangers(
    leave_out: Sequence[UUID],
    take_in: Sequence[UUID],
    leaving: Mapping[str, str],
    coming: Mapping[str, str],
) -> None:
    """Raise who is to be left out, or taken in, and can't be."""
    twice = [str(one) for one, times in Counter(leave_out).items() if times > 1]
    strangers = [str(one) for one in leave_out if str(one) not in leaving]
    not_out = [str(one) for one in take_in if str(one) not in coming]
    reasons = {
        "leave_out": {
            "named more than once": twice,
            "do not belong to these batches in that term": strangers,
        },
        "take_in": {"were not left out of these batches, or have a card of another": not_out},
    }
    wrong = {
        field: "; ".join(f"{reason}: {', '.join(names)}" for reason, names in of_field.items() if names)
        for field, of_field in reasons.items()
    }
    if any(wrong.values()):
        raise Invalid.fields({field: reason for field, reason in wrong.items() if reason})


def _refuse_unknown(batch_id: UUID, term: str) -> None:
    try:
        check_broadsheet(batch=batch_id, term=term)
    except Invalid as error:
        if "batch" in error.errors:
            raise unknown_reference(Batch, "batches") from None
        raise


def _refuse_batches(ids: Collection[UUID], batches: Sequence[Mapping[str, Any]], cohort_id: str) -> None:
    """Raise what is wrong with batches to publish, for themselves, naming them all."""
    known = {one["id"] for one in batches}
    unknown = [str(one) for one in ids if str(one) not in known]
    if unknown:
        raise Invalid.field("batches", f"no such batches: {', '.join(unknown)}")
    elsewhere = _names(one for one in batches if one["cohort"] != cohort_id)
    if elsewhere:
        raise Invalid.field("batches", f"not of the same cohort: {elsewhere}")
    done = _names(one for one in batches if one["state"] == PUBLISHED)
    if done:
        raise Conflict(f"Published already: {done}.")


def _refuse_results(found: Mapping[str, Any], later: Sequence[Mapping[str, Any]]) -> None:
    """Raise what is lacking in the results of a cohort that are to be published, or would change of `later` terms."""
    unsubmitted = orjson.loads(found["open"])
    if unsubmitted:
        subjects_and_arms = [
            f"{one['subject']} ({', '.join(one['arms'])})" if one["arms"] else one["subject"]
            for one in unsubmitted
        ]
        raise Conflict(
            f"Not submitted yet: {', '.join(subjects_and_arms)}.",
            {"subjects": [one["subject"] for one in unsubmitted]},
        )
    incomplete = orjson.loads(found["incomplete"])
    if incomplete:
        words = "; ".join(f"{one['subject']}: {', '.join(one['students'])}" for one in incomplete)
        raise Conflict(
            f"Something is blank since it was submitted. Reopen the subject, and enter what is missing. {words}.",
            {"incomplete": incomplete},
        )
    earlier = orjson.loads(found["earlier"])
    if earlier:
        raise Conflict(
            f"The results of the session rest on earlier terms: publish {_results(earlier)} first.",
            {"earlier": _shortened(earlier)},
        )
    if later:
        raise Conflict(
            f"The session results of later terms would change: reopen {_results(later)} first.",
            {"later": _shortened(later)},
        )


def _results(found: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(one["results"] for one in found)


def _shortened(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Results with their students, of whom at most MOST_NAMED are named."""
    return [{**one, "students": one["students"][:MOST_NAMED]} for one in found]


def _names(batches: Any) -> str:
    return ", ".join(one["name"] for one in batches)


@statement
def _replace_cards(batch_ids: list[UUID], term_id: UUID) -> Any:
    """Let the cards under review be in force no more: what is published has no others, and the index says so."""
    return (
        update(ReportCard)
        .where(
            ReportCard.publication_id == Publication.id,
            ReportCard.in_force,
            Publication.batch_id == any_(cast(batch_ids, ARRAY(Uuid))),
            Publication.term_id == term_id,
            Publication.state == REOPENED,
        )
        .values(in_force=False)
    )


@statement
def _end_cards(publication_id: UUID) -> Any:
    return (
        update(ReportCard)
        .where(ReportCard.publication_id == publication_id, ReportCard.in_force)
        .values(in_force=False)
    )


@statement
def _leave_out(student_ids: list[UUID], batch_ids: list[UUID], term_id: UUID) -> Any:
    rows = unnest_rows("leaving", student_id=(Uuid, student_ids), batch_id=(Uuid, batch_ids))
    values = select(rows.c.student_id, rows.c.batch_id, cast(term_id, Uuid))
    return insert(LeftOut).from_select(["student_id", "batch_id", "term_id"], values)


@statement
def _take_in(student_ids: list[UUID], batch_ids: list[UUID], term_id: UUID) -> Any:
    return delete(LeftOut).where(
        LeftOut.student_id == any_(cast(student_ids, ARRAY(Uuid))),
        LeftOut.batch_id == any_(cast(batch_ids, ARRAY(Uuid))),
        LeftOut.term_id == term_id,
    )


@statement
def _supersede(batch_ids: list[UUID], term_id: UUID) -> Any:
    """Let the versions under review be replaced: what is published stays, and the index of one in force says so."""
    return (
        update(Publication)
        .where(
            Publication.batch_id == any_(cast(batch_ids, ARRAY(Uuid))),
            Publication.term_id == term_id,
            Publication.state == REOPENED,
        )
        .values(state=SUPERSEDED)
    )


@statement
def _insert(
    ids: list[UUID],
    batch_ids: list[UUID],
    versions: list[int],
    left: str,
    term_id: UUID,
    session_id: UUID,
    session_name: str,
    moment: datetime,
    actor: str,
    actor_name: str,
) -> Any:
    rows = unnest_rows(
        "made", "number", id=(Uuid, ids), batch_id=(Uuid, batch_ids), version=(Integer, versions)
    )
    left_of_batch = cast(left, JSONB)[cast(rows.c.number - 1, Integer)]
    values: dict[str, Any] = {
        "id": rows.c.id,
        "batch_id": Batch.id,
        "cohort_id": Batch.cohort_id,
        "session_id": session_id,
        "term_id": term_id,
        "version": rows.c.version,
        "state": literal(PUBLISHED),
        "rules": rules(
            batch_name=Batch.name,
            session_name=session_name,
            subjects=subjects(Batch.id, Batch.cohort_id, term_id),
            left=left_of_batch,
        ),
        "logo_id": Letterhead.logo_id,
        "signature_id": Letterhead.signature_id,
        "published_at": moment,
        "published_by": cast(actor, Text),
        "published_by_name": cast(actor_name, Text),
    }
    made = (
        select(*values.values())
        .select_from(rows)
        .join(Batch, Batch.id == rows.c.batch_id)
        .outerjoin(ResultSettings, literal(True))
        .outerjoin(Letterhead, literal(True))
    )
    return insert(Publication).from_select(list(values), made, include_defaults=False)


@statement
def _freeze(
    batch_ids: list[UUID],
    versions: list[int] | None,
    term_id: str,
    moment: datetime,
    members: str,
    batches_of_members: str | None,
    enrolled_in: str,
    publication_ids: list[UUID],
    student_ids: str,
    ids: str,
    codes: str,
) -> Any:
    """Freeze the cards of batches, each in its publication: an id and a code are given for each of the students.

    Of the cohort there are its `members`; their batches are None where they all are in the one batch. These, and what
    is given for each student, are texts of arrays (`array_text`), which PostgreSQL reads faster than as many
    expressions as they have elements.
    """
    rows = unnest_rows("made", student_id=(Uuid, student_ids), id=(Uuid, ids), code=(Uuid, codes))
    publications = unnest_rows("publications", batch_id=(Uuid, batch_ids), id=(Uuid, publication_ids))
    found = _new_cards(batch_ids, versions, term_id, moment, members, batches_of_members, enrolled_in)
    values: dict[str, Any] = {
        "id": rows.c.id,
        "publication_id": publications.c.id,
        "student_id": found.c.student_id,
        "term_id": cast(term_id, Uuid),
        "code": rows.c.code,
        "average": found.c.average,
        "position": found.c.position,
        "in_force": literal(True),
        "changed": found.c.changed,
        "class_figures_changed": found.c.class_figures_changed,
        "card": found.c.card,
    }
    frozen = (
        select(*values.values())
        .select_from(found)
        # Outer joins, though each card has both: else PostgreSQL expects one card, and compares each with each.
        .outerjoin(rows, rows.c.student_id == found.c.student_id)
        .outerjoin(publications, publications.c.batch_id == found.c.batch_id)
    )
    return insert(ReportCard).from_select(list(values), frozen, include_defaults=False)


@read_model
def _counted(
    batch_ids: list[UUID],
    versions: list[int] | None,
    term_id: str,
    moment: datetime,
    members: str,
    batches_of_members: str | None,
    enrolled_in: str,
) -> Query:
    """Count the cards of versions to be, and those that differ from the versions before: JSON, by the batch's id.

    `by_registers` tells whether the registers say how often students came; `registers_missing` are those that are not
    submitted, of the term's days until today, a JSON array, empty where the registers say nothing.
    """
    found = _new_cards(batch_ids, versions, term_id, moment, members, batches_of_members, enrolled_in)
    counted = (
        select(
            found.c.batch_id,
            func.json_build_object(
                "students", func.count(),
                "changed", func.count().filter(found.c.changed),
                "class_figures_changed", func.count().filter(found.c.class_figures_changed),
            ).label("numbers"),
        )
        .group_by(found.c.batch_id)
        .subquery("counted")
    )  # fmt: skip
    return select(
        cast(func.json_object_agg(counted.c.batch_id, counted.c.numbers, type_=JSON), Text).label("numbers"),
        counts_registers().label("by_registers"),
        _registers_missing(batch_ids, term_id).label("registers_missing"),
    )


def _registers_missing(batch_ids: Any, term_id: Any) -> Any:
    def of_term(day: Any) -> Any:
        return (
            select(day).where(cast(TermCalendar.term_id, Text) == term_id).correlate(None).scalar_subquery()
        )

    first, last = of_term(TermCalendar.start_date), of_term(TermCalendar.end_date)
    missing = missing_registers.query(first, last).order_by(None).subquery("missing")
    one = func.json_build_object(
        "batch", missing.c.batch,
        "batch_name", missing.c.batch_name,
        "date", missing.c.date,
        "part", missing.c.part,
    )  # fmt: skip
    # MORNING comes before AFTERNOON.
    in_order = aggregate_order_by(one, missing.c.date, missing.c.part.desc())
    found = select(cast(func.coalesce(func.json_agg(in_order), literal_column("'[]'::json")), Text)).where(
        counts_registers(), missing.c.batch == any_(cast(batch_ids, ARRAY(Uuid)))
    )
    return found.scalar_subquery()


def _new_cards(
    batch_ids: Any,
    versions: Any,
    term_id: Any,
    moment: Any,
    members: Any,
    batches_of_members: Any,
    enrolled_in: Any,
) -> Any:
    of_one = batches_of_members is None
    roster: Any = unnest_rows(
        "members",
        student_id=(Uuid, members),
        **({} if of_one else {"batch_id": (Uuid, batches_of_members)}),
        enrolled_in=(Uuid, enrolled_in),
    )
    if of_one:
        batch = unnest_rows("batch", batch_id=(Uuid, batch_ids))
        roster = (
            select(roster.c.student_id, batch.c.batch_id, roster.c.enrolled_in)
            .select_from(roster.join(batch, literal(True)))
            .subquery("of_batch")
        )
    return new_cards(batch_ids, versions, term_id, moment, roster, one_batch=of_one).subquery("found")


@statement
def _reopen(
    publication_id: UUID, state: str, reason: str, moment: datetime, actor: str, actor_name: str
) -> Any:
    return (
        update(Publication)
        .where(Publication.id == publication_id)
        .values(
            state=state,
            reason=reason,
            reopened_at=moment,
            reopened_by=actor,
            reopened_by_name=actor_name,
        )
    )
