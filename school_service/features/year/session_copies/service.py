"""Set up an academic session as another one was: terms, cohorts, subjects, assessments and form teachers, by choice.

Present records stay as they are, so a copy repeated makes nothing again. Copies into a session follow one another: each
locks the session FOR NO KEY UPDATE, and then its cohorts, as the addition of a subject to a cohort does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from typing import Any
from uuid import UUID, uuid4

import orjson

from school_service.auth.principal import Principal
from school_service.core.columns import NAME_LENGTH
from school_service.core.counters import BATCHES, next_numbers
from school_service.core.errors import Invalid
from school_service.core.permissions import Permission
from school_service.core.records import not_found
from school_service.core.statements import execute
from school_service.features.audit.service import audit_change
from school_service.features.classes.cohort_subjects.service import take_new_subjects
from school_service.features.classes.models import CohortSubject
from school_service.features.classes.subject_teachers.reads import lock_subjects_of_session
from school_service.features.people.employees.service import FORM_TEACHER
from school_service.features.people.models import FormTeacher
from school_service.features.school.cohorts.service import NO_SESSION
from school_service.features.school.models import AcademicSession, Batch, Cohort, Term, TermCalendar
from school_service.features.scores.models import Assessment
from school_service.features.year.session_copies import reads
from school_service.features.year.session_copies.parts import (
    ASSESSMENTS,
    COHORTS,
    FORM_TEACHERS,
    LEFT_OUT,
    MADE,
    PRESENT,
    SUBJECTS,
    TERMS,
)
from school_service.features.year.term_calendars.service import ENTITY as CALENDAR
from tenants.clock import now
from tenants.connections.engines import json_text

NEEDED = {
    TERMS: Permission.TERMS_WRITE,
    COHORTS: Permission.COHORTS_WRITE,
    SUBJECTS: Permission.COHORT_SUBJECTS_WRITE,
    ASSESSMENTS: Permission.ASSESSMENTS_WRITE,
    FORM_TEACHERS: Permission.TEACHERS_WRITE,
}
"""The permission for a part, the same as for making its records one by one."""

Fields = Mapping[str, Any]
"""The fields of a record that is there, in one of the sessions."""


def copy_session(
    *, session_id: UUID, session: str, parts: Collection[str], principal: Principal, dry_run: bool = False
) -> dict[str, Any]:
    """Make the records of another session in a session, all or none; answers each record and its outcome.

    `session` is the other one's id or name. Dates are shifted by the days between the first days of both, and kept
    within the session. With `dry_run` nothing is stored. Raises Forbidden naming the permissions for the parts,
    NotFound, and Invalid for an unknown session and for the same one.
    """
    principal.require([NEEDED[part] for part in parts], "Copying these parts")
    facts = execute(
        reads.lock_session(session_id),
        reads.lock_cohorts(session_id),
        lock_subjects_of_session(session_id),
        reads.lock_teachers(session),
        reads.both(session_id, session),
    )
    if facts is None:
        raise not_found(AcademicSession)
    if facts["source"] is None:
        raise Invalid.field("session", NO_SESSION)
    copy = _Copy(**{name: orjson.loads(text) for name, text in facts.items()})
    if copy.source["id"] == copy.target["id"]:
        raise Invalid.field("session", "is the same session")
    for part, make in copy.makers.items():
        if part in parts:
            make()
    if not dry_run:
        copy.store()
    outcomes = Counter(row["outcome"] for row in copy.rows)
    return {
        "session": session_id,
        "copied_from": UUID(copy.source["id"]),
        "dry_run": dry_run,
        "made": outcomes[MADE],
        "present": outcomes[PRESENT],
        "left_out": outcomes[LEFT_OUT],
        "rows": [{**row, "id": None} if dry_run and row["outcome"] == MADE else row for row in copy.rows],
    }


@dataclass
class _Copy:
    """The records of both sessions, each list with those of both; and the new records, in memory.

    `new` are the rows to insert, by model; `rows` the outcome of each record of the source.
    """

    target: Fields
    source: Fields
    terms: list[Fields]
    cohorts: list[Fields]
    batches: list[Fields]
    subjects: list[Fields]
    assessments: list[Fields]
    teachers: list[Fields]
    submissions: list[Fields]
    rows: list[dict[str, Any]] = field(default_factory=list)
    new: dict[type[Any], list[dict[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        of_target = self.target["id"]
        self._term_names = {term["id"]: term["display_name"] for term in self.terms}
        self._classes = {cohort["id"]: cohort["name"] for cohort in self.cohorts}
        # Records that the target has, or gets here, by the keys of the source's.
        self._terms = {term["term"]: term["id"] for term in self.terms if term["session_id"] == of_target}
        self._cohorts = {
            cohort["classroom_id"]: cohort["id"]
            for cohort in self.cohorts
            if cohort["session_id"] == of_target
        }
        own = set(self._cohorts.values())
        self._batches = {
            (batch["cohort_id"], batch["name"]): batch["id"]
            for batch in self.batches
            if batch["cohort_id"] in own
        }
        self._subjects = {
            (subject["cohort_id"], subject["subject_id"]): subject["id"]
            for subject in self.subjects
            if subject["cohort_id"] in own
        }
        # The classroom of each cohort of both sessions.
        self._classrooms = {cohort["id"]: cohort["classroom_id"] for cohort in self.cohorts}

    @property
    def makers(self) -> dict[str, Callable[[], None]]:
        """The method for each part, in the order of their dependence."""
        return {
            TERMS: self._copy_terms,
            COHORTS: self._copy_cohorts,
            SUBJECTS: self._copy_subjects,
            ASSESSMENTS: self._copy_assessments,
            FORM_TEACHERS: self._copy_teachers,
        }

    @cached_property
    def shift(self) -> timedelta:
        """The days between the first days of both sessions."""
        first, other = (date.fromisoformat(session["start_date"]) for session in (self.target, self.source))
        return first - other

    def shifted(self, day: str | None) -> date | None:
        """Shift a day, and keep it within the session."""
        first, last = (date.fromisoformat(self.target[name]) for name in ("start_date", "end_date"))
        return self._shifted_within(day, first, last)

    def _shifted_within(self, day: str | None, first: date, last: date) -> date | None:
        """Shift a day, and keep it between two: by its number, as there are no dates beyond the year 9999."""
        if day is None:
            return None
        number = date.fromisoformat(day).toordinal() + self.shift.days
        return date.fromordinal(min(max(number, first.toordinal()), last.toordinal()))

    def store(self) -> None:
        """Insert the new rows, in one round trip, and one more for the numbers of arms if there are any."""
        if not self.new:
            return
        batches = self.new.get(Batch, [])
        if batches:
            for batch, number in zip(batches, next_numbers(BATCHES, len(batches)), strict=True):
                batch["number"] = number
        self._audit()
        compulsory = [
            UUID(subject["id"]) for subject in self.new.get(CohortSubject, []) if not subject["elective"]
        ]
        execute(
            *(
                insertion(json_text(self.new[model]))
                for model, insertion in reads.INSERTIONS.items()
                if model in self.new
            ),
            *([take_new_subjects(compulsory, now())] if compulsory else []),
        )

    def _copy_terms(self) -> None:
        calendars = {
            term["term"]: term["calendar"]
            for term in self.terms
            if term["session_id"] == self.target["id"] and term["calendar"]["term_id"]
        }
        for term in self._of_source(self.terms):
            # A name with the source's name has the target's instead.
            display_name = term["display_name"].replace(self.source["name"], self.target["name"])
            about = TERMS, "term", display_name
            present = self._terms.get(term["term"])
            if present:
                self._row(*about, PRESENT, present)
            else:
                self._terms[term["term"]] = self._make(
                    Term,
                    session_id=self.target["id"],
                    term=term["term"],
                    display_name=display_name[:NAME_LENGTH],
                )
                self._row(*about, MADE, self._terms[term["term"]])
            self._copy_calendar(term, display_name, present=term["term"] in calendars)

    def _copy_calendar(self, term: Fields, display_name: str, *, present: bool) -> None:
        calendar = term["calendar"]
        if calendar["start_date"] is None and calendar["end_date"] is None:
            return
        term_id = self._terms[term["term"]]
        start, end = (self.shifted(calendar[name]) for name in ("start_date", "end_date"))
        if not present:
            self._add(
                TermCalendar,
                term_id=term_id,
                start_date=start,
                end_date=end,
                # The term after the last one is of another session.
                next_term_begins=self._shifted_within(calendar["next_term_begins"], date.min, date.max),
            )
        about = TERMS, CALENDAR, f"{display_name}: calendar"
        if present:
            self._row(*about, PRESENT, term_id)
        else:
            self._row(*about, MADE, term_id, start_date=start, end_date=end)

    def _copy_cohorts(self) -> None:
        for cohort in self._of_source(self.cohorts):
            about = COHORTS, "cohort", cohort["name"]
            present = self._cohorts.get(cohort["classroom_id"])
            if present:
                self._row(*about, PRESENT, present)
            else:
                made = self._make(Cohort, classroom_id=cohort["classroom_id"], session_id=self.target["id"])
                self._cohorts[cohort["classroom_id"]] = made
                self._row(*about, MADE, made)
            self._copy_arms(cohort, is_new=not present)

    def _copy_arms(self, cohort: Fields, *, is_new: bool) -> None:
        cohort_id = self._cohorts[cohort["classroom_id"]]
        for batch in self.batches:
            if batch["cohort_id"] != cohort["id"]:
                continue
            about = COHORTS, "batch", f"{cohort['name']} {batch['name']}"
            present = self._batches.get((cohort_id, batch["name"]))
            if present:
                self._row(*about, PRESENT, present)
                continue
            # The first arm of a cohort has its id.
            is_first = is_new and batch["id"] == cohort["id"]
            made = self._make(
                Batch, id=cohort_id if is_first else None, cohort_id=cohort_id, name=batch["name"]
            )
            self._batches[cohort_id, batch["name"]] = made
            self._row(*about, MADE, made)

    def _copy_subjects(self) -> None:
        for subject in self._in_source(self.subjects):
            about = SUBJECTS, "cohort-subject", self._taught(subject)
            cohort_id = self._counterpart(subject["cohort_id"])
            if cohort_id is None:
                self._row(*about, LEFT_OUT, reason=self._no_cohort(subject["cohort_id"]))
                continue
            present = self._subjects.get((cohort_id, subject["subject_id"]))
            if present:
                self._row(*about, PRESENT, present)
                continue
            made = self._make(
                CohortSubject,
                cohort_id=cohort_id,
                subject_id=subject["subject_id"],
                elective=subject["elective"],
            )
            self._subjects[cohort_id, subject["subject_id"]] = made
            self._row(*about, MADE, made)

    def _copy_assessments(self) -> None:
        terms = {term["id"]: term["term"] for term in self.terms}
        subjects = {subject["id"]: subject for subject in self.subjects}
        submitted = {
            (submission["cohort_subject_id"], terms[submission["term_id"]]) for submission in self.submissions
        }
        own = {subject["id"] for subject in self.subjects if subject["cohort_id"] in self._cohorts.values()}

        def key(assessment: Fields, cohort_subject_id: str) -> tuple[str, ...]:
            return cohort_subject_id, terms[assessment["term_id"]], assessment["category"], assessment["name"]

        # A subject may have the same assessment twice: each of the source's has one of the target's.
        present: dict[tuple[str, ...], list[str]] = {}
        for planned in self.assessments:
            if planned["cohort_subject_id"] in own:
                present.setdefault(key(planned, planned["cohort_subject_id"]), []).append(planned["id"])
        for planned in self.assessments:
            subject = subjects[planned["cohort_subject_id"]]
            if subject["id"] in own:
                continue
            term = terms[planned["term_id"]]
            name = f"{self._taught(subject)}, {self._term_names[planned['term_id']]}: {planned['name']}"
            about = ASSESSMENTS, "assessment", name
            cohort_id = self._counterpart(subject["cohort_id"])
            subject_id = self._subjects.get((cohort_id or "", subject["subject_id"]))
            if cohort_id is None:
                self._row(*about, LEFT_OUT, reason=self._no_cohort(subject["cohort_id"]))
            elif subject_id is None:
                taught = f"{subject['name']} is not taught in {self._classes[subject['cohort_id']]}"
                self._row(*about, LEFT_OUT, reason=f"{taught} in {self.target['name']}.")
            elif term not in self._terms:
                reason = f"{self.target['name']} has no term {term}."
                self._row(*about, LEFT_OUT, reason=reason)
            elif there := present.get(key(planned, subject_id)):
                self._row(*about, PRESENT, there.pop(0))
            elif (subject_id, term) in submitted:
                self._row(*about, LEFT_OUT, reason="The results of the subject and term are submitted.")
            else:
                due_date = self.shifted(planned["due_date"])
                made = self._make(
                    Assessment,
                    cohort_subject_id=subject_id,
                    cohort_id=cohort_id,
                    session_id=self.target["id"],
                    term_id=self._terms[term],
                    **{name: planned[name] for name in reads.ASSESSMENT_FIELDS if name != "due_date"},
                    total_points=planned["total_points"],
                    due_date=due_date,
                )
                self._row(*about, MADE, made, due_date=due_date)

    def _copy_teachers(self) -> None:
        batches = {batch["id"]: batch for batch in self.batches}
        own = set(self._batches.values())
        present = {
            (teacher["batch_id"], teacher["employee_id"])
            for teacher in self.teachers
            if teacher["batch_id"] in own
        }
        for teacher in self.teachers:
            if teacher["batch_id"] in own:
                continue
            batch = batches[teacher["batch_id"]]
            arm = f"{self._classes[batch['cohort_id']]} {batch['name']}"
            about = FORM_TEACHERS, FORM_TEACHER, f"{arm}: {teacher['name']}"
            batch_id = self._batches.get((self._counterpart(batch["cohort_id"]) or "", batch["name"]))
            if teacher["deleted"]:
                self._row(*about, LEFT_OUT, reason=f"{teacher['name']} is no longer an employee.")
            elif batch_id is None:
                self._row(*about, LEFT_OUT, reason=f"There is no {arm} in {self.target['name']}.")
            elif (batch_id, teacher["employee_id"]) in present:
                self._row(*about, PRESENT, teacher["employee_id"])
            else:
                self._add(FormTeacher, batch_id=batch_id, employee_id=teacher["employee_id"])
                self._row(*about, MADE, teacher["employee_id"])

    def _of_source(self, records: Iterable[Fields]) -> list[Fields]:
        return [record for record in records if record["session_id"] == self.source["id"]]

    def _in_source(self, records: Iterable[Fields]) -> list[Fields]:
        cohorts = {cohort["id"] for cohort in self._of_source(self.cohorts)}
        return [record for record in records if record["cohort_id"] in cohorts]

    def _counterpart(self, cohort_id: str) -> str | None:
        """Find the cohort of the same classroom in the target."""
        return self._cohorts.get(self._classrooms[cohort_id])

    def _no_cohort(self, cohort_id: str) -> str:
        return f"{self._classes[cohort_id]} has no cohort in {self.target['name']}."

    def _taught(self, subject: Fields) -> str:
        return f"{self._classes[subject['cohort_id']]} {subject['name']}"

    def _make(self, model: type[Any], *, id: str | None = None, **values: Any) -> str:
        """Add a row with an id, and return the id."""
        made = id or str(uuid4())
        self._add(model, id=made, **values)
        return made

    def _add(self, model: type[Any], **values: Any) -> None:
        self.new.setdefault(model, []).append(values)

    def _row(
        self,
        part: str,
        record: str,
        name: str,
        outcome: str,
        id: str | None = None,
        *,
        reason: str | None = None,
        **dates: date | None,
    ) -> None:
        days = {"start_date": None, "end_date": None, "due_date": None, **dates}
        self.rows.append(
            {
                "part": part,
                "record": record,
                "name": name,
                "outcome": outcome,
                "reason": reason,
                "id": None if id is None else UUID(id),
                **days,
            }
        )

    def _audit(self) -> None:
        """Write the new records to the audit log, each as if it were made by itself."""
        moment = now()
        # The latest form teacher of an arm is the one that papers name.
        for model in (Assessment, FormTeacher):
            for number, row in enumerate(self.new.get(model, [])):
                row["created_at"] = moment + timedelta(microseconds=number)
        self._log(Assessment, "assessment", name="name", category="category", total_points="total_points")
        self._log(FormTeacher, FORM_TEACHER, of="batch_id", teacher="employee_id")
        self._log(Term, "term", session="session_id", term="term", display_name="display_name")
        for row in self.new.get(TermCalendar, []):
            dates = {name: value for name, value in row.items() if name != "term_id" and value is not None}
            audit_change(CALENDAR, UUID(row["term_id"]), old=dict.fromkeys(dates), new=dates)
        self._log(Cohort, "cohort", classroom="classroom_id", session="session_id")
        self._log(Batch, "batch", cohort="cohort_id", name="name", number="number")
        self._log(
            CohortSubject, "cohort-subject", cohort="cohort_id", subject="subject_id", elective="elective"
        )

    def _log(self, model: type[Any], entity: str, *, of: str = "id", **members: str) -> None:
        """Write the new records of a model to the log, with these members, each of a column; `of` has their id."""
        for row in self.new.get(model, []):
            logged = {member: row[column] for member, column in members.items()}
            audit_change(entity, UUID(row[of]), new=logged)
