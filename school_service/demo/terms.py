"""The school's years and classes: sessions, classrooms, subjects, cohorts; and the calendar of the current session.

Of its first term, everything for a report card beside the scores.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import and_, func, insert, select

from school_service.core.database import db
from school_service.core.statements import execute
from school_service.demo.context import THIS_SESSION, THIS_YEAR, TODAY, DemoContext, first_day
from school_service.features.audit.service import Change, audit_changes
from school_service.features.classes.cohort_subjects.service import create_cohort_subject
from school_service.features.classes.enrollments.service import enroll
from school_service.features.classes.models import SubjectEnrollment
from school_service.features.observations.comments.service import ENTITY as COMMENT
from school_service.features.people.models import Student, User
from school_service.features.results.takers.service import take_subject
from school_service.features.school.classrooms.service import create_classroom
from school_service.features.school.cohorts.service import create_batch, create_cohort
from school_service.features.school.models import CURRENT, TERMS, Enrollment
from school_service.features.school.sessions.service import create_session, create_term
from school_service.features.school.subjects.service import create_subject
from school_service.features.scores.absences.service import absence_values
from school_service.features.scores.assessments.service import ABSENCE_ENTITY
from school_service.features.scores.models import ABSENT, EXCUSED, Absence, Assessment, GradebookEntry
from school_service.features.year.models import TermComment
from school_service.features.year.term_calendars.service import set_calendar
from tenants.clock import now

CLASSROOMS = tuple(
    (f"{short} {year}", level)
    for short, level in (("JSS", "Junior Secondary"), ("SSS", "Senior Secondary"))
    for year in (1, 2, 3)
)
SUBJECTS = (
    ("English Language", "ENG"),
    ("Mathematics", "MTH"),
    ("Civic Education", "CVE"),
    ("Computer Studies", "CMP"),
    ("Agricultural Science", "AGR"),
    ("Biology", "BIO"),
    ("Chemistry", "CHM"),
    ("Physics", "PHY"),
    ("Economics", "ECO"),
)
_YEAR = timedelta(weeks=46) - timedelta(days=3)  # from a Monday in September to a Friday in July


def make_sessions(context: DemoContext) -> None:
    """Make last year's session and the current one, each with its three terms."""
    for year in (THIS_YEAR - 1, THIS_YEAR):
        name, begin = f"{year}/{year + 1}", first_day(year)
        end = max(begin + _YEAR, term_dates()[-1][1]) if year == THIS_YEAR else begin + _YEAR
        made = create_session(name=name, start_date=begin, end_date=end, current=year == THIS_YEAR)
        context.sessions[name] = made.id
        for term in TERMS:
            display_name = f"{term.title()} Term {name}"
            context.terms[name, term] = create_term(
                session_id=made.id, term=term, display_name=display_name
            ).id


def make_classrooms(context: DemoContext) -> None:
    """Make the six classes of a secondary school."""
    for name, level in CLASSROOMS:
        context.classrooms[name] = create_classroom(name=name, level=level).id


def make_subjects(context: DemoContext) -> None:
    """Make the subjects, the language of the school's region among them."""
    for name, code in (*SUBJECTS, context.school.language):
        context.subjects[name] = create_subject(name=name, code=code).id


SECOND_ARM = "B"
# Compulsory for juniors; seniors choose.
ELECTIVES = {"Economics", "Agricultural Science"}


def make_cohorts(context: DemoContext) -> None:
    """Make a cohort of each classroom, and enroll its students into the two arms in turn."""
    for classroom, room_id in context.classrooms.items():
        cohort_id = create_cohort(classroom=room_id, session_id=THIS_SESSION).id
        # A cohort's first arm bears its id.
        arms = (cohort_id, create_batch(cohort_id=cohort_id, name=SECOND_ARM).id)
        students = context.students[classroom]
        for number, arm in enumerate(arms):
            enroll(cohort_id=cohort_id, batch=arm, students=students[number::2])
        context.cohorts[classroom] = cohort_id
        context.arms[classroom] = arms


def make_cohort_subjects(context: DemoContext) -> None:
    """Teach every subject to every cohort; each elective of the seniors is taken by half of them."""
    for classroom, cohort_id in context.cohorts.items():
        for name, subject_id in context.subjects.items():
            elective = classroom.startswith("SSS") and name in ELECTIVES
            made = create_cohort_subject(cohort_id=cohort_id, subject_id=subject_id, elective=elective)
            if elective:
                students = context.students[classroom]
                takers = context.population.random.sample(students, len(students) // 2)
                take_subject(cohort_subject_id=made.id, student_ids=takers)
            context.cohort_subjects[classroom, name] = made.id


_FIRST, *_ = TERMS
# For each term: the weeks of the session in which it begins and ends, and how many times school opens.
_TERMS = ((0, 13, 124), (17, 28, 112), (31, 43, 118))
_EXCUSED = 0.4  # fraction of students who missed an assessment
_SAID = (
    (75, "An excellent result. {name} works with care, and helps others.", "Outstanding. Stay on this path."),
    (60, "A good result. {name} takes part, and can reach more.", "A good term's work."),
    (50, "{name} works steadily. Reading at home would help.", "A fair result: more is within reach."),
    (0, "{name} needs more practice, and should ask when something is not clear.", "Work harder next term."),
)
"""The comments on a student with so many percent: the form teacher's, and the principal's."""


def term_dates() -> list[tuple[date, date]]:
    """The first and the last day of each term of the current session.

    If the demo is made between two of them, the one before lasts until then: so there is a register of the day.
    """
    begin = first_day(THIS_YEAR)
    usual = [
        (begin + timedelta(weeks=first), begin + timedelta(weeks=last, days=4)) for first, last, _ in _TERMS
    ]
    next_begins = (*(start for start, _ in usual[1:]), first_day(THIS_YEAR + 1))
    return [
        (start, max(end, TODAY) if start <= TODAY < after else end)
        for (start, end), after in zip(usual, next_begins, strict=True)
    ]


def make_calendars(context: DemoContext) -> None:
    """Set the calendar of each term of the current session."""
    next_begins = (*(start for start, _ in term_dates()[1:]), first_day(THIS_YEAR + 1))
    for term, (_, _, opened), (start, end), after in zip(
        TERMS, _TERMS, term_dates(), next_begins, strict=True
    ):
        calendar: dict[str, Any] = {
            "start_date": start,
            "end_date": end,
            "times_opened": opened,
            "next_term_begins": after,
            "notice": f"Fees are due by {after.day} {after:%B %Y}.",
        }
        execute(set_calendar(term_id=context.terms[THIS_SESSION, term], **calendar))


def make_absences(context: DemoContext) -> None:
    """Enter an absence for everybody without a score in an assessment of the first term."""
    random, moment = context.population.random, now()
    absences: list[dict[str, Any]] = []
    for assessment_id, student_id in _blanks(context):
        excused = random.random() < _EXCUSED
        absences.append(
            {
                "assessment_id": assessment_id,
                "student_id": student_id,
                "status": EXCUSED if excused else ABSENT,
                "note": "A letter from home" if excused else None,
                "created_at": moment,
            }
        )
    db.session.execute(insert(Absence), absences)
    audit_changes(
        ABSENCE_ENTITY,
        (
            Change(
                absence["assessment_id"],
                None,
                absence_values(absence["student_id"], absence["status"], source="hand"),
            )
            for absence in absences
        ),
    )


def make_comments(context: DemoContext) -> None:
    """Write how often each student came in the first term, with the comments of form teacher and principal."""
    random, moment = context.population.random, now()
    term_id = context.terms[THIS_SESSION, _FIRST]
    _, _, opened = _TERMS[0]
    rows = []
    for enrolled in _results(context):
        form_teacher, principal = next(
            (of_teacher, of_principal)
            for least, of_teacher, of_principal in _SAID
            if enrolled.percent >= least
        )
        rows.append(
            {
                "student_id": enrolled.student_id,
                "term_id": term_id,
                "batch_id": enrolled.batch_id,
                "cohort_id": enrolled.cohort_id,
                "session_id": context.sessions[THIS_SESSION],
                "times_present": opened - min(opened, int(random.expovariate(0.2))),
                "form_teacher_comment": form_teacher.format(name=enrolled.first_name),
                "principal_comment": principal,
                "created_at": moment,
                "updated_at": moment,
            }
        )
    db.session.execute(insert(TermComment), rows)
    changed = ["form_teacher_comment", "principal_comment", "times_present"]
    audit_changes(
        COMMENT,
        (
            Change(
                row["student_id"],
                None,
                {
                    "term": term_id,
                    "times_present": row["times_present"],
                    "changed": changed,
                    "source": "hand",
                },
            )
            for row in rows
        ),
    )


def _of_first_term(context: DemoContext) -> Any:
    return Assessment.term_id == context.terms[THIS_SESSION, _FIRST]


def _blanks(context: DemoContext) -> list[tuple[UUID, UUID]]:
    """Find the students without a score in an assessment of the first term, in order of the ids."""
    score = and_(
        GradebookEntry.assessment_id == Assessment.id,
        GradebookEntry.student_id == SubjectEnrollment.student_id,
    )
    rows = db.session.execute(
        select(Assessment.id, SubjectEnrollment.student_id)
        .join(SubjectEnrollment, SubjectEnrollment.cohort_subject_id == Assessment.cohort_subject_id)
        .outerjoin(GradebookEntry, score)
        .where(_of_first_term(context), GradebookEntry.id.is_(None))
    )
    return sorted((row[0], row[1]) for row in rows)


def _results(context: DemoContext) -> Any:
    """Find the students of all classes, with their first name and their result of the first term, in percent."""
    percent = 100 * func.sum(GradebookEntry.score) / func.sum(Assessment.total_points)
    return db.session.execute(
        select(
            Enrollment.student_id,
            Enrollment.batch_id,
            Enrollment.cohort_id,
            User.first_name,
            percent.label("percent"),
        )
        .join(Student, Student.id == Enrollment.student_id)
        .join(User, User.id == Student.user_id)
        .join(GradebookEntry, GradebookEntry.student_id == Enrollment.student_id)
        .join(Assessment, Assessment.id == GradebookEntry.assessment_id)
        .where(CURRENT, _of_first_term(context))
        .group_by(
            Enrollment.student_id, Enrollment.batch_id, Enrollment.cohort_id, Student.number, User.first_name
        )
        .order_by(Student.number)
    ).all()
