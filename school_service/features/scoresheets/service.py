"""Score sheets: whether there is one, and the sheets that scores are entered with."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import IO
from uuid import UUID

from sqlalchemy import Text, and_, cast, select

from school_service.core.columns import more_than_two_places
from school_service.core.database import current_school, db
from school_service.core.read_models import Query
from school_service.core.records import get, get_referenced, not_found
from school_service.features.assessments.models import Assessment
from school_service.features.assessments.service import find_assessment
from school_service.features.classrooms.models import Classroom
from school_service.features.cohort_subjects.models import CohortSubject, SubjectEnrollment
from school_service.features.cohorts.models import CURRENT, Cohort, Enrollment
from school_service.features.gradebooks.models import GradebookEntry
from school_service.features.gradebooks.service import Score, enter_sheet
from school_service.features.sessions.models import AcademicSession, Term
from school_service.features.students.models import Student
from school_service.features.students.reads import BY_NAME
from school_service.features.students.sheet_rows import STUDENT_COLUMNS, match_students
from school_service.features.subjects.models import Subject
from school_service.features.users.models import User
from school_service.sheets.columns import CellType, Column, NumberRange
from school_service.sheets.row_errors import INVALID, RowError
from school_service.sheets.sheet_reader import Row, check_details, read_details, read_sheet
from school_service.sheets.sheet_writer import Table, write_workbook
from school_service.sheets.xlsx_reader import open_workbook

SHEET = "Scores"
SCORE = "score"
ASSESSMENT = "Assessment"


def check_scoresheet(*, id: UUID, term: UUID | None = None) -> None:
    """Tell whether there are the cohort subject and the term of a score sheet. Raises NotFound, Invalid."""
    get(CohortSubject, id)
    if term is not None:
        get_referenced(Term, term, "term")


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
    check_details(read_details(workbook) or {}, ASSESSMENT, assessment.id)
    content = read_sheet(workbook, SHEET, _columns(assessment))
    # Held from here on, when the file has proved to be one: reading it takes long.
    assessment = _find(assessment_id, for_update=True)
    takers = {row.admission_number: row for row in db.session.execute(_takers(assessment))}
    matched = match_students(
        content,
        takers,
        absent="This student does not take the subject.",
        judge=partial(_problems, total_points=assessment.total_points),
    )
    scores = [
        Score(taker.id, taker.batch_id, row.values[SCORE]) for taker, row in matched if SCORE in row.values
    ]
    tally = enter_sheet(assessment=assessment, scores=scores, sheet=file_name)
    return tally.of_rows(len(content.rows))


def _find(assessment_id: UUID, *, for_update: bool = False) -> Assessment:
    found = find_assessment(assessment_id, for_update=for_update)
    if found is None:
        raise not_found(Assessment)
    return found


def _columns(assessment: Assessment) -> list[Column]:
    return [
        *STUDENT_COLUMNS,
        Column(
            SCORE,
            CellType.NUMBER,
            required=True,
            rule=NumberRange(Decimal(0), assessment.total_points),
            width=12,
        ),
    ]


def _details(assessment: Assessment) -> list[tuple[str, str]]:
    about = db.session.execute(
        select(Subject.name, Classroom.name, AcademicSession.name, Term.display_name)
        .select_from(CohortSubject)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(Cohort, Cohort.id == CohortSubject.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .join(Term, Term.id == assessment.term_id)
        .where(CohortSubject.id == assessment.cohort_subject_id)
    ).one()
    subject, classroom, session, term = about
    return [
        ("School", current_school().name),
        (ASSESSMENT, assessment.name),
        ("Subject", subject),
        ("Class", f"{classroom} {session}"),
        ("Term", term),
        ("Total points", _plain(assessment.total_points)),
        (f"{ASSESSMENT} ID", str(assessment.id)),
    ]


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
            CURRENT,
        )
    )


def _problems(row: Row, total_points: Decimal) -> Iterator[RowError]:
    score = row.values.get(SCORE)
    if score is None:
        return
    if not 0 <= score <= total_points:
        yield RowError(row.number, SCORE, INVALID, f"Is not from 0 to {_plain(total_points)}.")
    elif more_than_two_places(score):
        yield RowError(row.number, SCORE, INVALID, "Has more than two decimal places.")


def _plain(points: Decimal) -> str:
    """Points without zeros at the end: 100, 12.5."""
    return f"{points.normalize():f}"
