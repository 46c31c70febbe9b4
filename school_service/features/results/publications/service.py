"""Publications: release the results of batches in a term, reopen and withdraw them; and what they hold meanwhile.

Whoever publishes or reopens locks the cohort FOR NO KEY UPDATE, whoever publishes then the students FOR SHARE, and
the settings and grade bands, which it reads anew for each arm. Whoever submits or reopens a subject, enrolls and
removes students, enters metrics and comments locks the cohort too, and who changes what students take locks the
students. So what is judged is what is frozen, and of two who publish at once one finds that it is done.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import orjson
from sqlalchemy import ARRAY, Integer, Text, Uuid, any_, cast, func, insert, literal, select, update

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
from school_service.core.statements import execute, in_one_message, statement, table_lock
from school_service.features.audit.service import OPERATOR, audit_change
from school_service.features.results.figures.service import check_broadsheet
from school_service.features.results.models import (
    PUBLISHED,
    REOPENED,
    SUPERSEDED,
    WITHDRAWN,
    Letterhead,
    Publication,
    ReportCard,
    ResultSettings,
)
from school_service.features.results.publications import reads
from school_service.features.results.publications.cards import compared_cards, rules, subjects
from school_service.features.school.cohorts.service import find_session
from school_service.features.school.models import Batch, Cohort
from school_service.features.school.sessions.service import check_term
from school_service.features.school.settings.service import sharing_settings
from school_service.features.scores.models import GradeConfiguration
from tenants.clock import now

ENTITY = "publication"

_share_bands = table_lock(GradeConfiguration, shared=True)

NewVersion = dict[str, Any]
"""A batch to publish, as `reads.publishing` has it, with the `version` to be."""


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


def publish(*, batches: Sequence[UUID], term: str) -> BoundQuery:
    """Publish the results of arms of one cohort in a term, all or none: freeze a report card for each student.

    `term` is the id of a term or its name in the batches' session. Returns the read model of the publications, which
    are stored in one message with being read. Raises Invalid for unknown ids and for a batch of another cohort, and
    Conflict where something has to be done first, naming it.
    """
    found, versions = _judge(batches, term)
    moment, principal = now(), request_context().principal
    ids = {version["id"]: uuid4() for version in versions}
    publications = [ids[version["id"]] for version in versions]
    term_id = found["term_id"]
    audits = [
        {
            "state": PUBLISHED,
            "batch": version["id"],
            "term": term_id,
            "version": version["version"],
            "students": len(version["students"]),
        }
        for version in versions
    ]
    for publication, new in zip(publications, audits, strict=True):
        audit_change(ENTITY, publication, new=new)
    return in_one_message(
        _supersede([UUID(version["id"]) for version in versions], term_id),
        _insert(
            publications,
            [UUID(version["id"]) for version in versions],
            [version["version"] for version in versions],
            term_id,
            found["session_id"],
            found["session_name"],
            moment,
            principal.actor if principal else OPERATOR,
            principal.actor_name if principal else OPERATOR,
        ),
        *(
            _freeze(
                ids[version["id"]],
                UUID(version["id"]),
                str(term_id),
                version["version"],
                moment,
                array_text(version["students"]),
                array_text(new_ids(len(version["students"]))),
                array_text(new_ids(len(version["students"]))),
            )
            for version in versions
        ),
        read=reads.published(publications),
    )


def rehearse(*, batches: Sequence[UUID], term: str) -> list[dict[str, Any]]:
    """Tell what `publish` would do, and store nothing; raises what it would raise."""
    found, versions = _judge(batches, term)
    principal = request_context().principal
    return [
        {
            "id": None,
            "batch": version["id"],
            "batch_name": version["arm"],
            "cohort": found["cohort_id"],
            "session": {"id": found["session_id"], "name": found["session_name"]},
            "term": {"id": found["term_id"], "term": found["term"]},
            "version": version["version"],
            "state": PUBLISHED,
            "published_at": None,
            "published_by": principal.actor if principal else OPERATOR,
            "published_by_name": principal.actor_name if principal else OPERATOR,
            "reopened_at": None,
            "reopened_by_name": None,
            "reason": None,
            **(
                fetch_row(_counted(UUID(version["id"]), str(found["term_id"]), version["version"], now()))
                or {}
            ),
        }
        for version in versions
    ]


def reopen(*, publication_id: UUID, reason: str, withdraw: bool = False) -> BoundQuery:
    """Reopen what is published, to be corrected and published again; or withdraw it, what is REOPENED too.

    Returns the read model of the publication, which is changed in one message with being read. Raises NotFound, and
    Conflict where it is not PUBLISHED, results of a later term that rest on it are, or a promotion rests on it.
    """
    found = execute(reads.lock_cohort(publication_id), reads.reopening(publication_id))
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
    return in_one_message(reopening, read=reads.publication(publication_id))


def lock_open(*, cohort_id: UUID, batch_id: UUID, term_id: UUID) -> None:
    """Lock a cohort FOR NO KEY UPDATE, to enter what cards of a batch and term say; one message.

    Raises Conflict while the batch's results of that term are published.
    """
    found = execute(reads.lock_cohort_by_id(cohort_id), reads.is_open(batch_id, term_id))
    refuse_published(found["published"] if found else None)


def refuse_published(name: str | None) -> None:
    """Refuse to change what cards say that are published; raises Conflict.

    `name` is what `reads.published_name` selects, read while the cohort is locked, FOR SHARE at least.
    """
    if name is not None:
        raise Conflict(f"The results of {name}, are published: reopen that publication first.")


def _judge(batch_ids: Sequence[UUID], term: str) -> tuple[dict[str, Any], list[NewVersion]]:
    """Lock all that publishing concerns, and see that it may be done: each batch gets its next version."""
    ids = list(dict.fromkeys(batch_ids))
    found = execute(
        reads.lock_cohorts(ids),
        reads.lock_students(ids),
        sharing_settings(),
        _share_bands(),
        reads.publishing(ids[0], ids, term),
    )
    if found is None:
        _refuse_unknown(ids[0], term)
        raise RuntimeError("The batch and the term are there, and what decides was not found.")
    batches = orjson.loads(found["batches"])
    _refuse_batches(ids, batches, str(found["cohort_id"]))
    _refuse_results(found)
    return found, [{**one, "version": one["latest"] + 1} for one in batches]


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
    empty = _names(one for one in batches if not one["students"])
    if empty:
        raise Conflict(f"There is nobody in: {empty}.")


def _refuse_results(found: Mapping[str, Any]) -> None:
    """Raise what is lacking in the results of a cohort that are to be published."""
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
            f"The results of the session rest on earlier terms: publish {', '.join(earlier)} first."
        )


def _names(batches: Any) -> str:
    return ", ".join(one["name"] for one in batches)


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
    term_id: UUID,
    session_id: UUID,
    session_name: str,
    moment: datetime,
    actor: str,
    actor_name: str,
) -> Any:
    rows = unnest_rows("made", id=(Uuid, ids), batch_id=(Uuid, batch_ids), version=(Integer, versions))
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
    publication_id: UUID,
    batch_id: UUID,
    term_id: str,
    version: int,
    moment: datetime,
    student_ids: str,
    ids: str,
    codes: str,
) -> Any:
    """Freeze the cards of a batch: an id and a code are given for each of its students.

    The three are texts of arrays (`array_text`), which PostgreSQL reads faster than as many expressions as they have
    elements.
    """
    rows = unnest_rows("made", student_id=(Uuid, student_ids), id=(Uuid, ids), code=(Uuid, codes))
    found = compared_cards(batch_id, term_id, version, moment).subquery("found")
    values: dict[str, Any] = {
        "id": rows.c.id,
        "publication_id": publication_id,
        "student_id": found.c.student_id,
        "code": rows.c.code,
        "average": found.c.average,
        "position": found.c.position,
        "changed": found.c.changed,
        "card": found.c.card,
    }
    frozen = select(*values.values()).select_from(found.join(rows, rows.c.student_id == found.c.student_id))
    return insert(ReportCard).from_select(list(values), frozen, include_defaults=False)


@read_model
def _counted(batch_id: UUID, term_id: str, version: int, moment: datetime) -> Query:
    """Count the cards of a version to be, and those that differ from the version before."""
    found = compared_cards(batch_id, term_id, version, moment).subquery("found")
    return select(
        func.count().label("students"), func.count().filter(found.c.changed).label("changed")
    ).select_from(found)


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
