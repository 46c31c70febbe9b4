"""Publications: release the results of batches in a term, reopen and withdraw them; and the locks held meanwhile.

Publishing and reopening lock the cohort FOR NO KEY UPDATE, then the students FOR SHARE. Publishing locks the term
first, FOR KEY SHARE, and at last the settings and grade bands, for it reads them twice. Reopening locks the cards; a
promotion by a card, of any class, locks it, too. The submission or reopening of a subject, a change of its takers, the
enrollment and removal of students, and the entry of metrics and comments lock the cohort, too. So the results judged
are the results frozen, and of two publishers at once one finds the work done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import delete, or_, update

from school_service.core.errors import Conflict, InUse, Invalid, Unknown, refuse_named
from school_service.core.exact_json import write_json, written_moment
from school_service.core.reach import Reach
from school_service.core.read_models import BoundQuery, Made, RenderedRow, fetch_document, fetch_rows
from school_service.core.records import (
    check_of_filters,
    get,
    new_ids,
    not_found,
    one_of,
    unknown_reference,
)
from school_service.core.statements import (
    Executable,
    NewRow,
    NewRows,
    in_one_round_trip,
    new_row,
    statement,
    table_lock,
)
from school_service.features.audit.service import Change, acting, audit_change, audit_changes
from school_service.features.people.students.naming import names_of
from school_service.features.results.computing.cards import card, rules_of
from school_service.features.results.computing.comparing import class_figures, differences, differs
from school_service.features.results.computing.stored import StoredCard
from school_service.features.results.figures.service import check_broadsheet
from school_service.features.results.models import (
    PUBLISHED,
    REOPENED,
    SUPERSEDED,
    WITHDRAWN,
    LeftOut,
    Publication,
    ReportCard,
)
from school_service.features.results.publications import reads
from school_service.features.results.publications.chains import chain_of
from school_service.features.results.publications.judging import Judged, NewVersion, Plan, judge, lacks
from school_service.features.school.cohorts.service import find_session
from school_service.features.school.models import Batch, Cohort
from school_service.features.school.sessions.service import check_term
from school_service.features.school.settings.service import share_settings
from school_service.features.scores.models import GradeConfiguration
from school_service.printing.class_tables import class_table
from tenants.clock import now

ENTITY = "publication"
"""The name in the audit log; of a student left out or taken in, the id there is the student's."""

_share_bands = table_lock(GradeConfiguration, shared=True)


check_publication_filter = check_of_filters(
    batch=Batch, cohort=Cohort, term=lambda term, _name: check_term(term), session=find_session
)


def check_publication(*, id: UUID) -> None:
    """Tell whether there is a publication; raises NotFound."""
    get(Publication, id)


def changed_cards(*, publication_id: UUID) -> Made:
    """Answer ChangedCardSchema: the cards of a publication with changes since the version before, by name."""
    return Made(reads.changes(publication_id), _changed_cards)


def _changed_cards(row: Mapping[str, Any], _reach: Reach | None) -> list[dict[str, Any]]:
    return [
        {
            "student": StoredCard(after).student,
            "before": None if before is None else _main_figures(before),
            "after": _main_figures(after),
            "differs": [] if before is None else differences(before, after),
        }
        for after, before in row["changed"] or ()
    ]


def _main_figures(card: Mapping[str, Any]) -> dict[str, Any]:
    return {"average": card["average"], "position": card["batch_figures"]["position"]}


def publish(plan: Plan) -> BoundQuery:
    """Publish the results of batches of a cohort in a term, all or none: the cards of their members.

    A reopened publication becomes the next version. Returns the read model of the publications; they are stored in its
    round trip. Raises Invalid for unknown ids, a batch of another cohort, for students to leave out who do not belong
    to the batches, students to take in who were not left out, and subjects with something to publish; and Conflict if
    something has to be done first, naming it.
    """
    judged = _judge(plan)
    moment, scope = now(), judged.record.loaded.scope
    cards = _cards(judged, moment)
    ids = {version.batch: uuid4() for version in judged.versions}
    _audit(judged, ids, {str(entry["student"]): entry["reason"] for entry in plan.leave_out})
    batch_ids, term_id = [UUID(version.batch) for version in judged.versions], UUID(scope["term_id"])
    left_out = [
        new_row(LeftOut, student_id=student, batch_id=batch, term_id=term_id)
        for student, batch in judged.leaving.items()
    ]
    storing: tuple[Executable, ...] = (
        _replace_cards(batch_ids, term_id),
        _supersede(batch_ids, term_id),
        *([NewRows(left_out)] if left_out else []),
        *([_take_in(list(plan.take_in), batch_ids, term_id)] if plan.take_in else []),
        NewRows(_publications(judged, ids, moment, cards)),
    )
    publications = [ids[version.batch] for version in judged.versions for _ in version.people]
    freezing = reads.freezing(new_ids(len(cards)), new_ids(len(cards)), publications, _written(cards))
    read = reads.new_publications([*ids.values()])
    if all(version.version == 1 for version in judged.versions):
        return in_one_round_trip(*storing, freezing, read=read)
    changed, of_class = _compared(cards, in_one_round_trip(*storing, read=freezing))
    return in_one_round_trip(_mark([*ids.values()], changed, of_class), read=read)


def rehearse(plan: Plan) -> list[dict[str, Any]]:
    """Answer as `publish` would, and store nothing; raises the same errors, but for subjects without assessments.

    The answer names these subjects, and the gaps in the cards.
    """
    judged = _judge(plan, rehearsed=True)
    changed: list[UUID] = []
    of_class: list[UUID] = []
    if any(version.version > 1 for version in judged.versions):
        cards = _cards(judged, now())
        changed, of_class = _compared(cards, reads.comparing(_written(cards)))
    scope, (actor, actor_name) = judged.record.loaded.scope, acting()
    missing = judged.row["registers_missing"]
    return [
        {
            "id": None,
            "batch": version.batch,
            "batch_name": version.name,
            "cohort": scope["cohort_id"],
            "session": {"id": scope["session_id"], "name": scope["session_name"]},
            "term": judged.record.loaded.term,
            "version": version.version,
            "state": PUBLISHED,
            "published_at": None,
            "published_by": actor,
            "published_by_name": actor_name,
            "reopened_at": None,
            "reopened_by_name": None,
            "reason": None,
            "students": len(version.people),
            "changed": sum(UUID(person.id) in changed for person in version.people),
            "class_figures_changed": sum(UUID(person.id) in of_class for person in version.people),
            "left": version.left,
            **_missing_of(version, missing),
            **lacks(judged, version),
        }
        for version in judged.versions
    ]


def _missing_of(version: NewVersion, missing: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """The registers missing in a batch, if attendance is taken from the registers."""
    if missing is None:
        return {}
    of_batch = [
        {**register, "date": date.fromisoformat(register["date"])}
        for register in missing
        if register["batch"] == version.batch
    ]
    return {"registers_missing": of_batch}


def _judge(plan: Plan, *, rehearsed: bool = False) -> Judged:
    """Lock all rows of a publication, load them, and check that it may be made."""
    ids, leaving, coming = plan.batch_ids, plan.left_out, list(plan.take_in)
    # None for an empty list: PostgreSQL plans no part of the statement for it.
    read = reads.publishing(ids[0], ids, plan.term, leaving or None, coming or None, rehearsed or None)
    locks = (
        reads.lock_cohorts(ids, plan.term),
        reads.lock_students(ids, [*leaving, *coming]),
        share_settings(),
        _share_bands(),
    )
    row = fetch_document(in_one_round_trip(*locks, read=read))
    if row is None:
        _refuse_unknown(ids[0], plan.term)
        raise RuntimeError("The batch and the term are there, and their facts were not found.")
    return judge(row, plan, names=names_of, rehearsed=rehearsed)


def _audit(judged: Judged, ids: Mapping[str, UUID], reasons: Mapping[str, str]) -> None:
    """Put versions on record, and the students left out of them, or taken in."""
    term_id = judged.record.loaded.scope["term_id"]
    batch_of = {**judged.leaving, **judged.coming}
    said: dict[str, dict[str, Any]] = {
        **{student: {"left_out": True, "reason": reasons[student]} for student in judged.leaving},
        **{student: {"taken_in": True} for student in judged.coming},
    }
    for version in judged.versions:
        publication = ids[version.batch]
        where = {"batch": version.batch, "term": term_id, "version": version.version}
        without = {"without_subjects": version.without_subjects} if version.without_subjects else {}
        new = {"state": PUBLISHED, **where, "students": len(version.people), **without}
        audit_change(ENTITY, publication, new=new)
        changes = [
            Change(UUID(student), None, {**change, "publication": publication, **where})
            for student, change in said.items()
            if batch_of[student] == version.batch
        ]
        audit_changes(ENTITY, changes)


def _publications(
    judged: Judged, ids: Mapping[str, UUID], moment: datetime, cards: Mapping[str, dict[str, Any]]
) -> list[NewRow]:
    """The rows of the publications to be."""
    scope = judged.record.loaded.scope
    logo, signature = judged.record.document["pictures"] or (None, None)
    actor, actor_name = acting()
    return [
        new_row(
            Publication,
            id=ids[version.batch],
            batch_id=version.batch,
            cohort_id=scope["cohort_id"],
            session_id=scope["session_id"],
            term_id=scope["term_id"],
            version=version.version,
            state=PUBLISHED,
            logo_id=logo,
            signature_id=signature,
            published_at=moment,
            published_by=actor,
            published_by_name=actor_name,
            rules=write_json(_rules(judged, version, cards)).decode(),
            takers_changed=write_json(_takers_without_result(judged, version)).decode(),
        )
        for version in judged.versions
    ]


def _rules(judged: Judged, version: NewVersion, cards: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The settings and bands of the results of a version, the table of its cards, and other facts of the moment."""
    loaded = judged.record.loaded
    submitted = {
        subject: by for subject, batch, _, _, *by in judged.row["submissions"] if batch == version.batch
    }
    rules = rules_of(loaded)
    return {
        **rules,
        "table": class_table([cards[person.id] for person in version.people], rules),
        "batch_name": version.name,
        "session_name": loaded.scope["session_name"],
        "subjects": {
            subject.id: {
                "base": subject.base,
                "elective": subject.elective,
                "position": subject.position,
                "submitted_by": by[0],
                "submitted_by_name": by[1],
                "teachers": loaded.teachers(subject.id, version.batch),
            }
            for subject in loaded.subjects
            for by in (submitted.get(subject.id, (None, None)),)
        },
        "left": version.left,
        "without_subjects": version.without_subjects,
    }


def _takers_without_result(judged: Judged, version: NewVersion) -> dict[str, Any]:
    """The takers of subjects without a result on their card, by subject: there nothing counts for them yet."""
    members = {person.id for person in version.people}
    by_subject: dict[str, Any] = {}
    for subject in judged.record.loaded.entered.subjects:
        results = judged.computed.subjects[subject.id]
        takers = [taker for taker in subject.takers if taker in members and taker not in results]
        if takers:
            by_subject[subject.id] = {"in": takers, "out": []}
    return by_subject


def _cards(judged: Judged, moment: datetime) -> dict[str, dict[str, Any]]:
    """The cards of the versions to be, in their order, by student."""
    written = written_moment(moment)
    return {
        person.id: card(judged.record, judged.computed, person, version=version.version, published_at=written)
        for version in judged.versions
        for person in version.people
    }


def _written(cards: Mapping[str, dict[str, Any]]) -> list[str]:
    return [write_json(card).decode() for card in cards.values()]


def _compared(cards: Mapping[str, dict[str, Any]], read: BoundQuery) -> tuple[list[UUID], list[UUID]]:
    """Find the students whose own figures differ from the version before, and those with other class figures alone.

    `read` names the cards that PostgreSQL finds to differ. A student without a card in the version before has other
    figures.
    """
    changed: list[UUID] = []
    of_class: list[UUID] = []
    for row in fetch_rows(read):
        new, old = cards[row["student"]], row["old"]
        if old is None or differs(old, new):
            changed.append(UUID(row["student"]))
        elif class_figures(new) != class_figures(old):
            of_class.append(UUID(row["student"]))
    return changed, of_class


def reopen(
    *,
    publication_id: UUID,
    reason: str | None = None,
    withdraw: bool = False,
    subjects: Sequence[UUID] = (),
) -> BoundQuery:
    """Reopen a publication, to be corrected and published again; or withdraw it, a REOPENED one too.

    Returns the read model of the publication; it is changed in the read model's round trip. Raises Invalid without a
    reason and for `subjects`, which are those of a dry run; NotFound, and Conflict unless it is PUBLISHED, and while
    published results of a later term or a promotion rest on it.
    """
    if reason is None:
        raise Invalid.field("reason", "Missing data for required field.")
    if subjects:
        raise Invalid.field("subjects", "are named in a dry run")
    locks = (
        reads.lock_cohort_of(publication_id),
        reads.lock_students_of(publication_id),
        reads.lock_cards_of(publication_id),
    )
    facts = fetch_document(in_one_round_trip(*locks, read=reads.reopening(publication_id)))
    if facts is None:
        raise not_found(Publication)
    state = facts["state"]
    if state != PUBLISHED and not (withdraw and state == REOPENED):
        raise _not_published(state)
    if later := facts["later"]:
        raise InUse(f"Later results rest on it: reopen {', '.join(later)} first.")
    if facts["promoted"]:
        raise _promoted()
    new = WITHDRAWN if withdraw else REOPENED
    audit_change(
        ENTITY,
        publication_id,
        old={"state": state, "version": facts["version"]},
        new={"state": new, "version": facts["version"], "reason": reason},
    )
    reopening = _reopen(publication_id, new, reason, now(), *acting())
    ending = [_end_cards(publication_id)] if withdraw else []
    return in_one_round_trip(reopening, *ending, read=reads.publication(publication_id))


def rehearse_reopening(
    *,
    publication_id: UUID,
    reason: str | None = None,
    withdraw: bool = False,
    subjects: Sequence[UUID] = (),
) -> RenderedRow:
    """Answer a publication with the `chain` of acts by which it is reopened, corrected and published again.

    `subjects` are the cohort subjects to be changed. Nothing is stored, the reason neither. Raises NotFound, Invalid
    for subjects of another cohort and for a withdrawal, which nothing follows, and Conflict if the publication is not
    in force, or if a promotion rests on one to be reopened.
    """
    del reason
    if withdraw:
        raise Invalid.field("withdraw", "is no part of a dry run")
    facts = fetch_document(reads.chain(publication_id, list(subjects) or None))
    if facts is None:
        raise not_found(Publication)
    if facts["state"] not in (PUBLISHED, REOPENED):
        raise _not_published(facts["state"])
    strangers = [str(subject) for subject in subjects if str(subject) not in facts["subjects"]]
    refuse_named({"subjects": {Unknown("not of the cohort"): strangers}})
    if any(
        publication["promoted"] for publication in facts["publications"] if publication["state"] == PUBLISHED
    ):
        raise _promoted()
    acts = chain_of(facts, str(publication_id), [str(subject) for subject in dict.fromkeys(subjects)])
    answer = fetch_document(reads.publication(publication_id))
    return RenderedRow(write_json({**answer, "chain": acts}))


def _not_published(state: str) -> Conflict:
    return Conflict(f"This publication is {state}: only what is {PUBLISHED} can be reopened.")


def _promoted() -> InUse:
    return InUse("A promotion rests on these results: undo that promotion first.")


def _refuse_unknown(batch_id: UUID, term: str) -> None:
    try:
        check_broadsheet(batch=batch_id, term=term)
    except Invalid as error:
        if "batch" in error.errors:
            raise unknown_reference(Batch, "batches") from None
        raise


@statement
def _replace_cards(batch_ids: list[UUID], term_id: UUID) -> Any:
    """Let the cards under review be in force no more: a student has one card in force, by a unique index."""
    return (
        update(ReportCard)
        .where(
            ReportCard.publication_id == Publication.id,
            ReportCard.in_force,
            Publication.batch_id == one_of(batch_ids),
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
def _take_in(student_ids: list[UUID], batch_ids: list[UUID], term_id: UUID) -> Any:
    return delete(LeftOut).where(
        LeftOut.student_id == one_of(student_ids),
        LeftOut.batch_id == one_of(batch_ids),
        LeftOut.term_id == term_id,
    )


@statement
def _supersede(batch_ids: list[UUID], term_id: UUID) -> Any:
    """Let the versions under review be replaced: a published one stays, and the index refuses a second in force."""
    return (
        update(Publication)
        .where(
            Publication.batch_id == one_of(batch_ids),
            Publication.term_id == term_id,
            Publication.state == REOPENED,
        )
        .values(state=SUPERSEDED)
    )


@statement
def _mark(publication_ids: list[UUID], changed: list[UUID], of_class: list[UUID]) -> Any:
    """Mark the cards with changes in the student's own figures, and those with changes in class figures alone."""
    is_changed, is_of_class = (ReportCard.student_id == one_of(students) for students in (changed, of_class))
    return (
        update(ReportCard)
        .where(ReportCard.publication_id == one_of(publication_ids), or_(is_changed, is_of_class))
        .values(changed=is_changed, class_figures_changed=is_of_class)
    )


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
