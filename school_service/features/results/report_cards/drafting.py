"""Drafts of report cards: printed results as they are now, made of the entries."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from school_service.core.exact_json import write_json
from school_service.core.reach import Reach
from school_service.core.read_models import Made
from school_service.features.results.computing.cards import ClassRecord, card, rules_of
from school_service.features.results.computing.class_term.loaded import Loaded
from school_service.features.results.computing.compute import compute
from school_service.features.results.report_cards import reads
from school_service.printing.class_tables import class_table


def of_batch(batch_id: UUID, term: str, student_ids: Collection[UUID] | None = None) -> Made:
    """Make the contents of a batch's printed cards, by name, as `reads.printed_of_batch` does; None without a card."""
    students = None if student_ids is None else {*map(str, student_ids)}
    return Made(reads.drafted_of_batch(batch_id, term), partial(_drafted, students))


def of_student(student_id: UUID, term: str, user_id: UUID | None = None, session: str | None = None) -> Made:
    """Make the contents of a student's printed card; `user_id` owns the token: the student's own account gets none."""
    read = reads.drafted_of_student(student_id, term, user_id, session)
    return Made(read, partial(_drafted, {str(student_id)}))


def _drafted(
    students: Collection[str] | None, row: Mapping[str, Any], reach: Reach | None
) -> dict[str, Any] | None:
    whole = Loaded.of(row)
    if whole is None:
        return None
    loaded = whole.shown_to(reach)
    batch = loaded.scope["batch_id"]
    people = [
        person
        for person in loaded.people
        if person.batch == batch and (students is None or person.id in students)
    ]
    if not people:
        return None
    record, computed = ClassRecord(loaded, row["record"]), compute(loaded.entered)
    of_batch = {
        person.id: card(record, computed, person, version=None, published_at=None)
        for person in loaded.everyone
        if person.batch == batch
    }
    rules = rules_of(loaded)
    # The draft of one student says the same alone as among those of the class.
    rules["table"] = class_table([*of_batch.values()], rules)
    photos = {loaded.everyone[int(number)].id: photo for number, photo in (row["photos"] or {}).items()}
    outcomes = {loaded.everyone[number].id: of for number, *of in row["outcomes"] or ()}
    cards = []
    for person in people:
        outcome, outcome_class = outcomes.get(person.id, (None, None))
        said = {"card": of_batch[person.id], "code": None, "rules": rules, "photo": photos.get(person.id)}
        cards.append({**said, "outcome": outcome, "outcome_class": outcome_class})
    scope, student = loaded.scope, people[0].student
    about = {
        "class": record.arms[batch].class_name,
        "session": scope["session_name"],
        "term": scope["term_id"],
        "term_name": scope["term_name"],
        **{name: student[name] for name in ("last_name", "first_name", "admission_number")},
    }
    return {
        "cards": write_json(cards).decode(),
        "pictures": row["pictures"],
        "photo": row.get("photo"),
        "students": [person.id for person in people],
        "about": write_json(about).decode(),
    }
