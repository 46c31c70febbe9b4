"""Score sheets: whether there is one, and the sheets that scores are entered with."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from decimal import Decimal
from typing import IO
from uuid import UUID

from sqlalchemy import Text, and_, cast, select

from school_service.assessments.models import Assessment
from school_service.assessments.service import find_assessment
from school_service.classrooms.models import Classroom
from school_service.cohort_subjects.models import CohortSubject, SubjectEnrollment
from school_service.cohorts.models import OPEN, Cohort, Enrollment
from school_service.database import chosen_school, get, missing, referred
from school_service.errors import Invalid
from school_service.extensions import db
from school_service.gradebooks.models import GradebookEntry
from school_service.gradebooks.service import Score, enter_sheet
from school_service.points import more_than_two_places
from school_service.reading import Query
from school_service.scoresheets.reads import BY_NAME
from school_service.sessions.models import Session, Term
from school_service.sheets.columns import Between, Column, Kind
from school_service.sheets.package import Workbook, open_workbook
from school_service.sheets.problems import DUPLICATE, INVALID, REQUIRED, UNKNOWN, Problem, refuse
from school_service.sheets.reading import Content, read_details, read_sheet
from school_service.sheets.writing import Table, write_workbook
from school_service.students.models import Student
from school_service.subjects.models import Subject
from school_service.users.models import User

SHEET = "Scores"
NUMBER, SCORE = "admission_number", "score"
ASSESSMENT_ID = "Assessment ID"


def check_scoresheet(*, cohort_subject_id: UUID, term_id: UUID | None) -> None:
    """Tell whether there are the cohort subject and the term of a score sheet. Raises NotFound, Invalid."""
    get(CohortSubject, cohort_subject_id)
    if term_id is not None:
        referred(Term, term_id, "term")


def write_sheet(*, assessment_id: UUID) -> tuple[str, bytes]:
    """Write an assessment's score sheet to fill in: the file's name and the workbook.

    It has a row for everyone who takes the subject, in whichever arm of the cohort, with the scores that
    there are. Raises NotFound.
    """
    assessment = _find(assessment_id)
    entered = and_(GradebookEntry.student_id == Student.id, GradebookEntry.assessment_id == assessment.id)
    shown = (
        select(Student.admission_number, User.first_name, User.last_name, GradebookEntry.score)
        .select_from(SubjectEnrollment)
        .join(Student, Student.id == SubjectEnrollment.student_id)
        .join(User, User.id == Student.user_id)
        .outerjoin(GradebookEntry, entered)
        .where(SubjectEnrollment.cohort_subject_id == assessment.cohort_subject_id)
        .order_by(*BY_NAME)
    )
    rows = [dict(row) for row in db.session.execute(shown).mappings()]
    table = Table(SHEET, _columns(assessment), rows)
    name = assessment.file_name
    if not name.lower().endswith(".xlsx"):
        name += ".xlsx"
    return name, write_workbook([table], _details(assessment))


def upload_sheet(*, assessment_id: UUID, file: IO[bytes], file_name: str) -> dict[str, int]:
    """Enter the scores of a score sheet, all or none, and count its rows: new, changed, as they were, blank.

    A student who is not in the sheet, or has no score there, keeps theirs. Uploads for an assessment follow
    one another. Raises NotFound, Invalid for what is no sheet of this assessment, InvalidRows naming every
    bad row.
    """
    assessment = _find(assessment_id)
    workbook = open_workbook(file)
    _check_details(workbook, assessment)
    content = read_sheet(workbook, SHEET, _columns(assessment))
    # Held from here on, when the file has proved to be one: reading it takes long.
    assessment = _find(assessment_id, lock=True)
    takers = {row.admission_number: row for row in db.session.execute(_takers(assessment))}
    refuse(_problems(content, assessment, takers))
    scores = [
        Score(takers[number].id, takers[number].batch_id, row.values[SCORE])
        for number, row in zip(_numbers(content), content.rows, strict=True)
        if SCORE in row.values
    ]
    tally = enter_sheet(assessment=assessment, scores=scores, sheet=file_name)
    return {
        "rows": len(content.rows),
        "created": tally.created,
        "updated": tally.updated,
        "unchanged": tally.unchanged,
        "blank": len(content.rows) - len(scores),
    }


def _find(assessment_id: UUID, *, lock: bool = False) -> Assessment:
    found = find_assessment(assessment_id, lock=lock)
    if found is None:
        raise missing(Assessment)
    return found


def _columns(assessment: Assessment) -> list[Column]:
    return [
        Column(NUMBER, required=True, locked=True, width=20),
        Column("first_name", locked=True, width=20),
        Column("last_name", locked=True, width=20),
        Column(
            SCORE, Kind.NUMBER, required=True, rule=Between(Decimal(0), assessment.total_points), width=12
        ),
    ]


def _details(assessment: Assessment) -> list[tuple[str, str]]:
    about = db.session.execute(
        select(Subject.name, Classroom.name, Session.name, Term.display_name)
        .select_from(CohortSubject)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(Cohort, Cohort.id == CohortSubject.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(Session, Session.id == Cohort.session_id)
        .join(Term, Term.id == assessment.term_id)
        .where(CohortSubject.id == assessment.cohort_subject_id)
    ).one()
    subject, classroom, session, term = about
    return [
        ("School", chosen_school().name),
        ("Assessment", assessment.name),
        ("Subject", subject),
        ("Class", f"{classroom} {session}"),
        ("Term", term),
        ("Total points", _plain(assessment.total_points)),
        (ASSESSMENT_ID, str(assessment.id)),
    ]


def _check_details(workbook: Workbook, assessment: Assessment) -> None:
    details = read_details(workbook) or {}
    named = details.get(ASSESSMENT_ID.casefold())
    if named is not None and named.casefold() != str(assessment.id):
        raise Invalid(f"The sheet is that of another assessment: {details.get('assessment', named)}.")


def _takers(assessment: Assessment) -> Query:
    """Whoever takes the subject, with the batch that they are in; ids as texts, as a Score has them."""
    return (
        select(
            Student.admission_number,
            cast(Student.id, Text).label("id"),
            cast(Enrollment.batch_id, Text).label("batch_id"),
        )
        .select_from(SubjectEnrollment)
        .join(Student, Student.id == SubjectEnrollment.student_id)
        .join(Enrollment, Enrollment.student_id == Student.id)
        .where(
            SubjectEnrollment.cohort_subject_id == assessment.cohort_subject_id,
            Enrollment.cohort_id == assessment.cohort_id,
            OPEN,
        )
    )


def _numbers(content: Content) -> list[str]:
    """The admission number of each row, empty where there is none."""
    return [str(row.values.get(NUMBER, "")).strip() for row in content.rows]


def _problems(content: Content, assessment: Assessment, takers: Collection[str]) -> Iterator[Problem]:
    """Find all that is wrong with a sheet's rows; the names in it are for people, and are not looked at."""
    yield from (problem for problem in content.problems if problem.column in (NUMBER, SCORE))
    numbers = _numbers(content)
    known = _known(set(numbers).difference(takers))
    first: dict[str, int] = {}
    for number, row in zip(numbers, content.rows, strict=True):
        if NUMBER in row.bad:
            pass
        elif not number:
            yield Problem(row.number, NUMBER, REQUIRED, "Is missing.")
        elif first.setdefault(number, row.number) != row.number:
            yield Problem(row.number, NUMBER, DUPLICATE, f"Is on row {first[number]} already.")
        elif number not in takers and number in known:
            yield Problem(row.number, NUMBER, INVALID, "This student does not take the subject.")
        elif number not in takers:
            yield Problem(row.number, NUMBER, UNKNOWN, "No student has this admission number.")
        if SCORE in row.values:
            yield from _problems_of_score(row.number, row.values[SCORE], assessment.total_points)


def _known(numbers: set[str]) -> set[str]:
    """Tell which admission numbers the school knows."""
    if not numbers:
        return set()
    return set(
        db.session.scalars(select(Student.admission_number).where(Student.admission_number.in_(numbers)))
    )


def _problems_of_score(row: int, score: Decimal, total_points: Decimal) -> Iterator[Problem]:
    if not 0 <= score <= total_points:
        yield Problem(row, SCORE, INVALID, f"Is not from 0 to {_plain(total_points)}.")
    elif more_than_two_places(score):
        yield Problem(row, SCORE, INVALID, "Has more than two decimal places.")


def _plain(points: Decimal) -> str:
    """Points without zeros at the end: 100, 12.5."""
    return f"{points.normalize():f}"
