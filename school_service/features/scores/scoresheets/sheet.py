"""The score sheet of an assessment: downloaded to be filled in, and uploaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Text, and_, cast, exists, func, select

from school_service.auth.principal import CANONICAL_UUID
from school_service.core.columns import MIN_POINTS
from school_service.core.database import current_school
from school_service.core.errors import Invalid
from school_service.core.reach import Reach
from school_service.core.read_models import Query, array_of, fetch_row, json_object, read_model
from school_service.core.records import not_found
from school_service.core.statements import execute
from school_service.core.texts import term_title
from school_service.features.audit.service import EXPORT, audit_change
from school_service.features.classes.models import CohortSubject, SubjectEnrollment
from school_service.features.classes.subject_teachers.reads import teachers_of
from school_service.features.people.models import Student, User
from school_service.features.people.students.naming import name_with_number
from school_service.features.people.students.reads import BY_NAME
from school_service.features.people.students.sheet_rows import (
    ADMISSION_NUMBER,
    FIRST_NAME,
    LAST_NAME,
    SERIAL_NUMBER,
    STUDENT_COLUMNS,
    change_of,
    student_columns,
    without_serial_number,
)
from school_service.features.people.students.sheet_uploads import ClassSheetUpload, Replaced
from school_service.features.reach import scopes
from school_service.features.school.cohorts.class_sheets import find_batch
from school_service.features.school.models import (
    CURRENT,
    AcademicSession,
    Batch,
    Classroom,
    Cohort,
    Enrollment,
    Subject,
    Term,
)
from school_service.features.school.settings.service import name_order, time_zone
from school_service.features.scores.assessments.reads import in_reach
from school_service.features.scores.gradebooks.service import ComparedScores, storing
from school_service.features.scores.models import (
    ABSENCES,
    ABSENT,
    EXCUSED,
    NOT_DELETED,
    Absence,
    Assessment,
    GradebookEntry,
)
from school_service.features.scores.scoresheets.class_scores import (
    ABSENCE,
    SCORE,
    SCORE_TRAIL,
    ClassScores,
    EnteredMarks,
    MatchedRows,
    Taker,
    absence_errors,
    compare_with_stored,
    lock_class,
    plain,
    score_errors,
    scored_errors,
)
from school_service.features.scores.scoresheets.reads import looked_up
from school_service.sheets.columns import CellType, Column, NumberRange, SuggestedValues, composed_name
from school_service.sheets.downloads import CHANGED_DETAILS, Download, download_details, read_download
from school_service.sheets.row_errors import INVALID, RowError, raise_row_errors
from school_service.sheets.sheet_files import SheetFile
from school_service.sheets.sheet_reader import Row, SheetContent, check_details, read_details, read_sheet
from school_service.sheets.sheet_writer import Table, write_workbook
from school_service.sheets.uploads import RowCounts
from tenants.names import composed

SHEET = "Scores"
ARM = "arm"
_ARM_ID = "arm_id"  # which is in no column
_ENTRY = "entry"
ASSESSMENT = "Assessment"


def download(
    *, assessment_id: UUID, batch: UUID | None = None, absences: bool = False, arms: bool = False
) -> tuple[str, bytes]:
    """Write an assessment's score sheet to fill in: the file's name and the workbook.

    It has a row for every student with the subject, in any arm of the cohort or in the given `batch`, with the stored
    scores; with `absences` a column for these, too, and with `arms` one for the arm of each. Raises NotFound, and
    Invalid for an unknown batch and one of another cohort.
    """
    facts = fetch_row((_score_sheet_in_full if absences or arms else _score_sheet)(assessment_id, batch))
    if facts is None:
        raise not_found(Assessment)
    arm = None if batch is None else _find_arm(batch, facts["cohort_id"])
    rows = [{SERIAL_NUMBER.name: number, **row} for number, row in enumerate(orjson.loads(facts["rows"]), 1)]
    audit_change(EXPORT, assessment_id, new={"sheet": "scores", "students": len(rows)})
    students = student_columns(facts["name_order"])
    # Behind the others, whose places programs know that fill sheets in.
    columns = [
        *_columns(facts["total_points"], absences=absences, arms=arms, students=students),
        SERIAL_NUMBER,
    ]
    name = facts["file_name"]
    if not name.lower().endswith(".xlsx"):
        name += ".xlsx"
    if arm:
        name = f"{name[: -len('.xlsx')]} {arm.name}.xlsx"
    stored = {row[ADMISSION_NUMBER]: [row[SCORE], row[_ENTRY]] for row in rows if row[_ENTRY]}
    names = {row[_ARM_ID]: row[ARM] for row in rows if row[ARM]} if arms else None
    downloaded, hidden = download_details(facts["moment"], facts["time_zone"], stored, names)
    class_ = f"{arm.class_name} {facts['session']}" if arm else _class(facts)
    details = _details(facts, class_)
    titled = term_title(facts["term"], facts["session"])
    page_header = (
        f"{current_school().name}\n{arm.class_name if arm else facts['classroom']}\n{facts['subject']}",
        f"{facts['name']}\n{titled}\n{plain(facts['total_points'])} points",
    )
    return name, write_workbook(
        [Table(SHEET, columns, rows)],
        [*details, downloaded],
        hidden=hidden,
        page_header=page_header,
        signed_by="Subject teacher",
    )


def _find_arm(batch_id: UUID, cohort_id: str) -> Any:
    """Find an arm of a cohort, with its details for sheets. Raises Invalid."""
    batch = find_batch(batch_id, field="batch")
    if str(batch.cohort_id) != cohort_id:
        raise Invalid.field("batch", "is not of the assessment's cohort")
    return batch


@dataclass(kw_only=True)
class ScoreUpload(ClassSheetUpload[Taker]):
    """The upload of a score sheet: its scores and absences, all or none; counts rows as new, changed, unchanged, blank.

    With a `batch` all rows are of its students. A student missing in the sheet, or with neither there, keeps the stored
    score or absence. A score takes an absence away. Uploads for an assessment follow one another. `dry_run` stores
    nothing, and answers the changes to come, too, and the students missing in the sheet. Raises NotFound, Invalid for
    anything but a sheet of this assessment and for a batch unknown or of another cohort, InvalidRows naming every bad
    row, RowsChanged for scores changed since the sheet was downloaded, unless `force` replaces them, and Conflict if a
    row changes submitted results, or the results of all arms are submitted.
    """

    assessment_id: UUID
    batch: UUID | None = None
    scores: ClassScores = field(init=False)

    def find_record(self) -> None:
        cohort_id = _cohort_id(self.assessment_id)
        if self.batch is not None:
            _find_arm(self.batch, cohort_id)

    def read_details(self, workbook: SheetFile) -> None:
        details = read_details(workbook) or {}
        check_details(details, ASSESSMENT, self.assessment_id)
        self.download = read_download(details)

    def read_rows(self, workbook: SheetFile) -> SheetContent:
        content = without_serial_number(read_sheet(workbook, SHEET, _TO_READ))
        content.errors[:] = [_with_absence(error) for error in content.errors]
        return content

    def lock(self) -> None:
        self.scores = lock_class(self.assessment_id, self.batch)

    def match(self, content: SheetContent) -> MatchedRows:
        # In a sheet that was downloaded another arm means that rows were mixed up, or that the student has moved. One
        # that has another name since is called there as it was.
        arms = (
            {
                taker.admission_number: self.download.names.get(taker.batch_id, taker.arm)
                for taker in self.scores.takers
            }
            if self.download
            else {}
        )
        matched = self.match_class(
            content,
            self.scores.takers,
            not_in_class="does not take the subject" + " in this arm" * (self.batch is not None),
            validate=partial(_row_errors, total_points=self.scores.total_points, arms=arms),
        )
        errors = list(scored_errors(matched, "remove the score first, or leave the cell blank"))
        if errors:
            people = {row.number: name_with_number(taker) for taker, row in matched}
            raise_row_errors(errors, letters=self.letters, people=people)
        return matched

    def store(self, matched: MatchedRows) -> RowCounts:
        # A blank cell changes nothing.
        entered = compare_with_stored(matched, lambda _row, _name: False)
        changing = entered.changing
        self.scores.refuse_held(taker for taker, _ in matched if taker.id in changing)
        rows = self.refuse_changed(self._replaced(matched, entered.scores), SCORE_TRAIL)
        if self.dry_run:
            self.answer["changes"] = _changes(matched, entered)
        else:
            moment = self.download.moment if self.download else None
            scores = storing(
                assessment_id=self.assessment_id,
                scores=entered.scores,
                sheet=self.file_name,
                downloaded=moment,
                forced=frozenset(taker.id for taker, row in matched if row.number in rows),
            )
            absences = entered.absence_writes(self.assessment_id, sheet=self.file_name, downloaded=moment)
            if writes := [*scores, *absences]:
                execute(*writes)
        return _counts(matched, entered)

    def _replaced(self, matched: MatchedRows, compared: ComparedScores) -> Iterator[Replaced]:
        """Find the scores changed since the download, and to be replaced by the sheet."""
        if self.download is None:
            return
        changed = {score.student_id: score for score in compared.changed}
        if self.download.stored:
            changed |= {score.student_id: score for score in compared.new}
        for taker, row in matched:
            score = changed.get(taker.id)
            if score is None:
                continue
            then, entry_id = _stored_then(self.download, taker.admission_number)
            if then == score.stored:
                continue
            record_id = score.entry_id or entry_id
            stored = None if score.stored is None else plain(score.stored)
            yield Replaced(
                row.number, SCORE, name_with_number(taker), record_id, stored, plain(row.values[SCORE])
            )


def _stored_then(download: Download, admission_number: str) -> tuple[Decimal | None, str | None]:
    """Read the score of a student at the download, and the id of its entry. Raises Invalid."""
    entry = download.stored.get(admission_number)
    if entry is None:
        return None, None
    try:
        score, entry_id = entry
        # To make a UUID of each takes ten times as long as to see that it is one.
        is_canonical = CANONICAL_UUID.fullmatch(entry_id)
        return Decimal(str(score)), entry_id.lower() if is_canonical else str(UUID(entry_id))
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        raise Invalid(CHANGED_DETAILS) from None


def _changes(matched: MatchedRows, entered: EnteredMarks) -> list[dict[str, Any]]:
    """List the changes of an upload, by row."""
    scores = {score.student_id: score for score in (*entered.scores.new, *entered.scores.changed)}
    absences = {str(absence.student_id): absence for absence in entered.absences}
    changes = []
    for taker, row in matched:
        if score := scores.get(taker.id):
            changes.append(change_of(row, taker, SCORE, score.stored, score.score))
            if taker.absence:
                changes.append(change_of(row, taker, ABSENCE, taker.absence, None))
        if absence := absences.get(taker.id):
            changes.append(change_of(row, taker, ABSENCE, absence.before, absence.status))
    return changes


def _counts(matched: MatchedRows, entered: EnteredMarks) -> RowCounts:
    """Count the rows with a score, and those with an absence: no row has both."""
    scores, absences = entered.scores, entered.absences
    created = sum(change.before is None for change in absences)
    repeated = sum(ABSENCE in row.values for _, row in matched) - len(absences)
    return RowCounts(
        len(scores.new) + created,
        len(scores.changed) + len(absences) - created,
        scores.unchanged + repeated,
    )


def _cohort_id(assessment_id: UUID) -> str:
    """Find the cohort of an assessment, as a text. Raises NotFound."""
    row = fetch_row(_cohort(assessment_id))
    if row is None:
        raise not_found(Assessment)
    cohort_id: str = row["cohort_id"]
    return cohort_id


@read_model
def _cohort(assessment_id: UUID, reach: Reach | None = None) -> Query:
    """Select the cohort of an assessment, unless it is deleted."""
    query = select(cast(Assessment.cohort_id, Text).label("cohort_id")).where(
        Assessment.id == assessment_id, NOT_DELETED
    )
    return query if reach is None else query.where(in_reach(reach))


@read_model
def _score_sheet(assessment_id: UUID, batch_id: UUID | None = None, reach: Reach | None = None) -> Query:
    """The contents of an assessment's score sheet, its rows as JSON: every student with the subject, by name.

    Or, with a batch, those in it.
    """
    return _sheet(assessment_id, batch_id, reach, in_full=False)


@read_model
def _score_sheet_in_full(
    assessment_id: UUID, batch_id: UUID | None = None, reach: Reach | None = None
) -> Query:
    """The contents of an assessment's score sheet, its rows with the absences and arms of the students, by name."""
    return _sheet(assessment_id, batch_id, reach, in_full=True)


def _sheet(assessment_id: UUID, batch_id: UUID | None, reach: Reach | None, *, in_full: bool) -> Query:
    of_assessment = and_(
        GradebookEntry.student_id == Student.id, GradebookEntry.assessment_id == Assessment.id
    )
    row = {
        ADMISSION_NUMBER: Student.admission_number,
        FIRST_NAME: User.first_name,
        LAST_NAME: User.last_name,
        SCORE: GradebookEntry.score,
        _ENTRY: GradebookEntry.id,
    }
    if in_full:
        row |= {ABSENCE: _absence_status(Assessment.id), **_arm(Assessment.cohort_id)}
    is_listed = [SubjectEnrollment.cohort_subject_id == Assessment.cohort_subject_id]
    if reach is not None:
        is_mine = scopes.scores_to_fill_in if batch_id is None else scopes.scores_in_reach
        is_listed.append(is_mine(reach, SubjectEnrollment.cohort_subject_id, Student.id))
    if batch_id is not None:
        is_listed.append(
            exists()
            .where(Enrollment.student_id == Student.id, Enrollment.batch_id == batch_id, CURRENT)
            .correlate_except(Enrollment)
        )
    rows = (
        select(cast(array_of(json_object(**row), *BY_NAME), Text))
        .select_from(SubjectEnrollment)
        .join(Student, Student.id == SubjectEnrollment.student_id)
        .join(User, User.id == Student.user_id)
        .outerjoin(GradebookEntry, of_assessment)
        .where(*is_listed)
        .correlate(Assessment)
        .scalar_subquery()
    )
    query = (
        select(
            cast(Assessment.id, Text).label("id"),
            Assessment.name,
            Assessment.file_name,
            Assessment.total_points,
            cast(Assessment.cohort_id, Text).label("cohort_id"),
            looked_up(Subject.name, Subject.id == CohortSubject.subject_id).label("subject"),
            looked_up(Classroom.name, Classroom.id == Cohort.classroom_id).label("classroom"),
            looked_up(AcademicSession.name, AcademicSession.id == Cohort.session_id).label("session"),
            looked_up(Term.display_name, Term.id == Assessment.term_id).label("term"),
            func.statement_timestamp().label("moment"),
            time_zone().label("time_zone"),
            name_order().label("name_order"),
            cast(teachers_of(Assessment.cohort_subject_id, batch_id), Text).label("teachers"),
            rows.label("rows"),
        )
        .join(CohortSubject, CohortSubject.id == Assessment.cohort_subject_id)
        .join(Cohort, Cohort.id == CohortSubject.cohort_id)
        .where(Assessment.id == assessment_id, NOT_DELETED)
    )
    return query if reach is None else query.where(in_reach(reach))


def _absence_status(assessment_id: Any) -> Any:
    of_student = and_(Absence.assessment_id == assessment_id, Absence.student_id == Student.id)
    # Within the rows' own subquery: without it, SQLAlchemy would read all assessments once more, and not the sheet's.
    return select(Absence.status).where(of_student).correlate_except(Absence).scalar_subquery()


def _arm(cohort_id: Any) -> dict[str, Any]:
    """The name and the id of a student's arm in a cohort, as members of a JSON object."""
    return {
        member: select(column)
        .join(Enrollment, Enrollment.batch_id == Batch.id)
        .where(Enrollment.student_id == Student.id, Enrollment.cohort_id == cohort_id, CURRENT)
        .correlate_except(Batch, Enrollment)
        .scalar_subquery()
        for member, column in ((ARM, Batch.name), (_ARM_ID, Batch.id))
    }


def _columns(
    total_points: Decimal, *, absences: bool, arms: bool, students: Iterable[Column] = STUDENT_COLUMNS
) -> list[Column]:
    rule = NumberRange(MIN_POINTS, total_points)
    score = Column(
        SCORE,
        CellType.NUMBER,
        required=True,
        rule=rule,
        width=12,
        heading="Score",
        also=("scores", "mark", "marks"),
    )
    absence = Column(
        ABSENCE, rule=SuggestedValues(ABSENCES), width=12, heading="Absence", also=("absences", "absent")
    )
    arm = Column(ARM, locked=True, width=12, heading="Arm")
    return [*students, *([arm] if arms else []), score, *([absence] if absences else [])]


# The limits of numbers to type in do not matter in a sheet to be read.
_TO_READ = _columns(MIN_POINTS, absences=True, arms=True)


def _class(sheet: Mapping[str, Any]) -> str:
    return f"{sheet['classroom']} {sheet['session']}"


def _details(sheet: Mapping[str, Any], class_: str) -> list[tuple[str, str]]:
    return [
        ("School", current_school().name),
        (ASSESSMENT, sheet["name"]),
        ("Subject", sheet["subject"]),
        ("Teacher", ", ".join(orjson.loads(sheet["teachers"]))),
        ("Class", class_),
        ("Term", sheet["term"]),
        ("Total points", plain(sheet["total_points"])),
        (f"{ASSESSMENT} ID", sheet["id"]),
    ]


def _row_errors(row: Row, total_points: Decimal, arms: Mapping[str, str]) -> Iterator[RowError]:
    yield from score_errors(row, total_points)
    yield from absence_errors(row, "leave one of the two blank")
    if ARM in row.values:
        yield from _arm_errors(row, arms)


def _with_absence(error: RowError) -> RowError:
    """Name the right column for an absence in the column of scores."""
    written = (error.value or "").strip(".").casefold()
    if error.column != SCORE or written not in _ABSENT_IN_WORDS:
        return error
    status = EXCUSED if written in _EXCUSED_IN_WORDS else ABSENT
    remedy = (
        f"write {status} into the column {ABSENCE}, which download-sheet?absences=true has, "
        "and leave the score blank"
    )
    return replace(error, remedy=remedy)


_EXCUSED_IN_WORDS = {"exc", "excused", "exempt", "sick"}
_ABSENT_IN_WORDS = {"absent", "abs", "ab", "a", *_EXCUSED_IN_WORDS}


def _arm_errors(row: Row, arms: Mapping[str, str]) -> Iterator[RowError]:
    """Compare the arm of a row with its student's, by admission number, if it is among `arms`."""
    number, written = composed(str(row.values.get(ADMISSION_NUMBER, ""))), row.values[ARM]
    arm = arms.get(number)
    if arm is not None and composed_name(str(written)) != composed_name(arm):
        problem = f"is not the arm of {number}, who is in {arm}"
        yield RowError(row.number, ARM, INVALID, problem, written, "download the sheet again")
