"""The score sheet of an assessment: downloaded to be filled in, and uploaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import IO, Any, NamedTuple
from uuid import UUID

import orjson
from sqlalchemy import ARRAY, Text, and_, cast, exists, func, literal_column, select
from sqlalchemy.dialects.postgresql import aggregate_order_by

from school_service.core.columns import MIN_POINTS, ScoreFault, score_fault
from school_service.core.database import current_school
from school_service.core.errors import Invalid
from school_service.core.reach import Reach
from school_service.core.read_models import Query, fetch_row, read_model
from school_service.core.records import get_referenced, not_found
from school_service.core.statements import execute, row_lock
from school_service.core.texts import composed
from school_service.features.audit.service import EXPORT, audit_change
from school_service.features.classes.models import CohortSubject, SubjectEnrollment
from school_service.features.people.models import Student, User
from school_service.features.people.students.reads import BY_NAME
from school_service.features.people.students.sheet_rows import (
    ADMISSION_NUMBER,
    STUDENT_COLUMNS,
    change_of,
    shown,
)
from school_service.features.people.students.sheet_uploads import ClassSheetUpload, Replaced
from school_service.features.reach import scopes
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
from school_service.features.scores.absences.service import AbsenceChange, storing
from school_service.features.scores.assessments.reads import holding_batches, in_reach
from school_service.features.scores.assessments.service import refuse_submitted
from school_service.features.scores.gradebooks.service import (
    ENTITY,
    ComparedScores,
    Score,
    compare_scores,
    store_sheet,
)
from school_service.features.scores.models import (
    ABSENCES,
    ABSENT,
    EXCUSED,
    NOT_DELETED,
    Absence,
    Assessment,
    GradebookEntry,
)
from school_service.sheets.columns import CellType, Column, NumberRange, SuggestedValues, composed_name
from school_service.sheets.downloads import CHANGED_DETAILS, Download, download_details, read_download
from school_service.sheets.row_errors import INVALID, RowError, raise_row_errors
from school_service.sheets.sheet_files import SheetFile
from school_service.sheets.sheet_reader import Row, SheetContent, check_details, read_details, read_sheet
from school_service.sheets.sheet_writer import Table, write_workbook
from school_service.sheets.uploads import RowCounts

SHEET = "Scores"
SCORE = "score"
ABSENCE = "absence"
ARM = "arm"
_ENTRY = "entry"
ASSESSMENT = "Assessment"

_STATUSES = {ABSENT: ABSENT, "ABS": ABSENT, EXCUSED: EXCUSED, "EXC": EXCUSED}
"""What a cell may say of an absence, in whichever case."""


class _Taker(NamedTuple):
    """Whoever takes the subject, with the arm that they are in, their absence, and the entry with their score.

    `held` are the arms whose submission holds what they have.
    """

    admission_number: str
    first_name: str
    middle_name: str | None
    last_name: str
    id: str
    batch_id: str
    absence: str | None
    note: str | None
    entry_id: str | None
    stored: str | None
    arm: str
    held: list[str]


_MatchedRows = list[tuple[_Taker, Row]]


def download(
    *, assessment_id: UUID, batch: UUID | None = None, absences: bool = False, arms: bool = False
) -> tuple[str, bytes]:
    """Write an assessment's score sheet to fill in: the file's name and the workbook.

    It has a row for everyone who takes the subject, in whichever arm of the cohort or in the `batch` that is given,
    with the scores that are stored; with `absences` a column for these, too, and with `arms` one for the arm of each.
    Raises NotFound, and Invalid for an unknown batch and one of another cohort.
    """
    found = fetch_row((_score_sheet_in_full if absences or arms else _score_sheet)(assessment_id, batch))
    if found is None:
        raise not_found(Assessment)
    arm = None if batch is None else _find_arm(batch, found["cohort_id"])
    rows = orjson.loads(found["rows"])
    audit_change(EXPORT, assessment_id, new={"sheet": "scores", "students": len(rows)})
    table = Table(SHEET, _columns(found["total_points"], absences=absences, arms=arms), rows)
    name = found["file_name"]
    if not name.lower().endswith(".xlsx"):
        name += ".xlsx"
    if arm:
        name = f"{name[: -len('.xlsx')]} {arm.name}.xlsx"
    stored = {row[ADMISSION_NUMBER]: [row[SCORE], row[_ENTRY]] for row in rows if row[_ENTRY]}
    downloaded, hidden = download_details(found["moment"], stored)
    class_ = f"{found['classroom']} {arm.name} {found['session']}" if arm else _class(found)
    details = _details(found, class_)
    page_header = (
        f"{current_school().name}\n{class_}\n{found['subject']}",
        f"{found['name']}\n{found['term']}\n{_plain(found['total_points'])} points",
    )
    return name, write_workbook([table], [*details, downloaded], hidden=hidden, page_header=page_header)


def upload(
    *,
    assessment_id: UUID,
    file: IO[bytes],
    file_name: str,
    batch: UUID | None = None,
    dry_run: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Enter the scores and absences of a score sheet, all or none, and count its rows: new, changed, unchanged, blank.

    With a `batch` all rows are of its students. A student who is not in the sheet, or has neither there, keeps what is
    stored. A score takes an absence away. Uploads for an assessment follow one another. `dry_run` stores nothing, and
    answers what would change, too, and who is not in the sheet. Raises NotFound, Invalid for what is no sheet of this
    assessment and for a batch that is unknown or of another cohort, InvalidRows naming every bad row, RowsChanged where
    scores were changed since the sheet was downloaded, unless `force` replaces them, and Conflict where a row changes
    what is submitted, or the results of all arms are.
    """
    found = fetch_row(_total_points(assessment_id))
    if found is None:
        raise not_found(Assessment)
    if batch is not None:
        _find_arm(batch, found["cohort_id"])
    sheet_upload = _ScoreUpload(
        assessment_id=assessment_id,
        total_points=found["total_points"],
        file_name=file_name,
        batch=batch,
        dry_run=dry_run,
        force=force,
    )
    return sheet_upload.run(file)


def _find_arm(batch_id: UUID, cohort_id: str) -> Batch:
    """Find an arm of a cohort. Raises Invalid."""
    batch = get_referenced(Batch, batch_id, "batch")
    if str(batch.cohort_id) != cohort_id:
        raise Invalid.field("batch", "is not of the assessment's cohort")
    return batch


@dataclass(kw_only=True)
class _ScoreUpload(ClassSheetUpload[_Taker]):
    """The upload of an assessment's scores."""

    assessment_id: UUID
    total_points: Decimal
    batch: UUID | None
    cohort_subject_id: UUID = field(init=False)
    term_id: UUID = field(init=False)
    takers: list[_Taker] = field(init=False)

    def read_details(self, workbook: SheetFile) -> None:
        details = read_details(workbook) or {}
        check_details(details, ASSESSMENT, self.assessment_id)
        self.download = read_download(details)

    def read_rows(self, workbook: SheetFile) -> SheetContent:
        content = read_sheet(workbook, SHEET, _columns(self.total_points, absences=True, arms=True))
        content.errors[:] = [_with_absence(error) for error in content.errors]
        return content

    def lock(self) -> None:
        # The class is read after the lock, in one round trip with it: what was committed meanwhile is seen.
        found = execute(_lock(self.assessment_id), _class_list(self.assessment_id))
        if found is None:
            raise not_found(Assessment)
        self.cohort_subject_id, self.term_id = found["cohort_subject_id"], found["term_id"]
        self.total_points = found["total_points"]
        takers = [_Taker(*row) for row in orjson.loads(found["takers"])]
        if self.batch is not None:
            takers = [taker for taker in takers if taker.batch_id == str(self.batch)]
        if all(taker.held for taker in takers):
            self._refuse_submitted(takers, otherwise=found["submitted"])
        self.takers = takers

    def _refuse_submitted(self, takers: Iterable[_Taker], otherwise: Iterable[str] = ()) -> None:
        held = {batch for taker in takers for batch in taker.held}
        refuse_submitted(held or set(otherwise), self.cohort_subject_id, self.term_id)

    def match(self, content: SheetContent) -> _MatchedRows:
        # In a sheet that was downloaded another arm means that rows were mixed up, or that the student has moved.
        arms = {taker.admission_number: taker.arm for taker in self.takers} if self.download else {}
        matched = self.match_class(
            content,
            self.takers,
            not_in_class="is a student who does not take the subject"
            + " in this arm" * (self.batch is not None),
            validate=partial(_row_errors, total_points=self.total_points, arms=arms),
        )
        _refuse_scored(matched, self.letters)
        return matched

    def store(self, matched: _MatchedRows) -> RowCounts:
        compared = compare_scores([_score(taker, row) for taker, row in matched if SCORE in row.values])
        absences = [change for taker, row in matched if (change := _absence(taker, row))]
        changing = {score.student_id for score in (*compared.new, *compared.changed)}
        changing |= {str(change.student_id) for change in absences if change.status != change.before}
        self._refuse_submitted(taker for taker, _ in matched if taker.id in changing)
        rows = self.refuse_changed(
            self._replaced(matched, compared),
            entity=ENTITY,
            score_of=lambda score, _column: score,
            newest=1,  # each is of the score: a record has no other value
        )
        forced = frozenset(taker.id for taker, row in matched if row.number in rows)
        if self.dry_run:
            self.answer["changes"] = _changes(matched, compared)
            counts = RowCounts(len(compared.new), len(compared.changed), compared.unchanged)
        else:
            counts = store_sheet(
                assessment_id=self.assessment_id,
                scores=compared,
                sheet=self.file_name,
                downloaded=self.download.moment if self.download else None,
                forced=forced,
            )
            self._store_absences([change for change in absences if change.status != change.before])
        return _with_absences_counted(counts, absences)

    def _store_absences(self, changed: list[AbsenceChange]) -> None:
        if changed:
            source = {"source": "sheet", "file_name": self.file_name}
            execute(storing(self.assessment_id, changed, **source))

    def _replaced(self, matched: _MatchedRows, compared: ComparedScores) -> Iterator[Replaced]:
        """Find the scores that were changed since the download, and that the sheet would replace."""
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
            record_id = entry_id if score.entry_id is None else UUID(score.entry_id)
            stored = None if score.stored is None else _plain(score.stored)
            yield Replaced(row.number, SCORE, shown(taker), record_id, stored, _plain(score.score))


def _stored_then(download: Download, admission_number: str) -> tuple[Decimal | None, UUID | None]:
    """Read the score of a student at the download, and the id of its entry. Raises Invalid."""
    found = download.stored.get(admission_number)
    if found is None:
        return None, None
    try:
        score, entry_id = found
        return Decimal(str(score)), UUID(entry_id)
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        raise Invalid(CHANGED_DETAILS) from None


def _score(taker: _Taker, row: Row) -> Score:
    """Read the score of a row, beside the one that is stored."""
    stored = None if taker.stored is None else Decimal(taker.stored)
    return Score(taker.id, taker.batch_id, row.values[SCORE], taker.entry_id, stored, taker.absence)


def _changes(matched: _MatchedRows, compared: ComparedScores) -> list[dict[str, Any]]:
    """List what an upload would change, by row."""
    scores = {score.student_id: score for score in (*compared.new, *compared.changed)}
    changes = []
    for taker, row in matched:
        score = scores.get(taker.id)
        if score is not None:
            changes.append(change_of(row, taker, SCORE, score.stored, score.score))
            if taker.absence:
                changes.append(change_of(row, taker, ABSENCE, taker.absence, None))
        absence = _absence(taker, row)
        if absence and absence.status != absence.before:
            changes.append(change_of(row, taker, ABSENCE, absence.before, absence.status))
    return changes


def _absence(taker: _Taker, row: Row) -> AbsenceChange | None:
    """Read the absence of a row, beside the one that is stored; None where the cell is blank, which changes nothing."""
    if ABSENCE not in row.values:
        return None
    return AbsenceChange(UUID(taker.id), _STATUSES[_written(row)], taker.note, taker.absence)


def _with_absences_counted(counts: RowCounts, absences: list[AbsenceChange]) -> RowCounts:
    """Add the rows with an absence to those with a score: no row has both."""
    created = sum(change.before is None for change in absences)
    unchanged = sum(change.before == change.status for change in absences)
    return RowCounts(
        counts.created + created,
        counts.updated + len(absences) - created - unchanged,
        counts.unchanged + unchanged,
    )


@read_model
def _total_points(assessment_id: UUID, reach: Reach | None = None) -> Query:
    """Select the total points of an assessment, and its cohort, unless it is deleted."""
    found = select(Assessment.total_points, cast(Assessment.cohort_id, Text).label("cohort_id")).where(
        Assessment.id == assessment_id, NOT_DELETED
    )
    return found if reach is None else found.where(in_reach(reach))


_lock = row_lock(Assessment)


@read_model
def _score_sheet(assessment_id: UUID, batch_id: UUID | None = None, reach: Reach | None = None) -> Query:
    """What the score sheet of an assessment says, its rows as JSON: everyone who takes the subject, by name.

    Or, with a batch, those who are in it.
    """
    return _sheet(assessment_id, batch_id, reach, in_full=False)


@read_model
def _score_sheet_in_full(
    assessment_id: UUID, batch_id: UUID | None = None, reach: Reach | None = None
) -> Query:
    """What the score sheet of an assessment says, its rows with the absences and arms of the students, by name."""
    return _sheet(assessment_id, batch_id, reach, in_full=True)


def _sheet(assessment_id: UUID, batch_id: UUID | None, reach: Reach | None, *, in_full: bool) -> Query:
    of_assessment = and_(
        GradebookEntry.student_id == Student.id, GradebookEntry.assessment_id == Assessment.id
    )
    row = func.json_build_object(
        ADMISSION_NUMBER,
        Student.admission_number,
        "first_name",
        User.first_name,
        "last_name",
        User.last_name,
        SCORE,
        GradebookEntry.score,
        _ENTRY,
        GradebookEntry.id,
        *((ABSENCE, _absence_status(Assessment.id), ARM, _arm(Assessment.cohort_id)) if in_full else ()),
    )
    is_listed = [SubjectEnrollment.cohort_subject_id == Assessment.cohort_subject_id]
    if reach is not None:
        is_listed.append(scopes.scores_in_reach(reach, SubjectEnrollment.cohort_subject_id, Student.id))
    if batch_id is not None:
        is_listed.append(
            exists()
            .where(Enrollment.student_id == Student.id, Enrollment.batch_id == batch_id, CURRENT)
            .correlate_except(Enrollment)
        )
    rows = (
        select(
            cast(
                func.coalesce(func.json_agg(aggregate_order_by(row, *BY_NAME)), literal_column("'[]'")), Text
            )
        )
        .select_from(SubjectEnrollment)
        .join(Student, Student.id == SubjectEnrollment.student_id)
        .join(User, User.id == Student.user_id)
        .outerjoin(GradebookEntry, of_assessment)
        .where(*is_listed)
        .correlate(Assessment)
        .scalar_subquery()
    )
    found = (
        select(
            cast(Assessment.id, Text).label("id"),
            Assessment.name,
            Assessment.file_name,
            Assessment.total_points,
            cast(Assessment.cohort_id, Text).label("cohort_id"),
            Subject.name.label("subject"),
            Classroom.name.label("classroom"),
            AcademicSession.name.label("session"),
            Term.display_name.label("term"),
            func.statement_timestamp().label("moment"),
            rows.label("rows"),
        )
        .join(CohortSubject, CohortSubject.id == Assessment.cohort_subject_id)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(Cohort, Cohort.id == CohortSubject.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .join(Term, Term.id == Assessment.term_id)
        .where(Assessment.id == assessment_id, NOT_DELETED)
    )
    return found if reach is None else found.where(in_reach(reach))


def _absence_status(assessment_id: Any) -> Any:
    of_student = and_(Absence.assessment_id == assessment_id, Absence.student_id == Student.id)
    # Within the rows' own subquery: without it, SQLAlchemy would read all assessments once more, and not the sheet's.
    return select(Absence.status).where(of_student).correlate_except(Absence).scalar_subquery()


def _arm(cohort_id: Any) -> Any:
    """The name of the arm of a cohort in which a student is."""
    return (
        select(Batch.name)
        .join(Enrollment, Enrollment.batch_id == Batch.id)
        .where(Enrollment.student_id == Student.id, Enrollment.cohort_id == cohort_id, CURRENT)
        .correlate_except(Batch, Enrollment)
        .scalar_subquery()
    )


def _columns(total_points: Decimal, *, absences: bool, arms: bool) -> list[Column]:
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
    return [*STUDENT_COLUMNS, *([arm] if arms else []), score, *([absence] if absences else [])]


def _class(sheet: Mapping[str, Any]) -> str:
    return f"{sheet['classroom']} {sheet['session']}"


def _details(sheet: Mapping[str, Any], class_: str) -> list[tuple[str, str]]:
    return [
        ("School", current_school().name),
        (ASSESSMENT, sheet["name"]),
        ("Subject", sheet["subject"]),
        ("Class", class_),
        ("Term", sheet["term"]),
        ("Total points", _plain(sheet["total_points"])),
        (f"{ASSESSMENT} ID", sheet["id"]),
    ]


@read_model
def _class_list(assessment_id: UUID, reach: Reach | None = None) -> Query:
    """Select what is compared with the sheet of an assessment: whoever takes the subject, each as a `_Taker`, by name.

    There is a row unless the assessment is deleted. Numbers are texts, as JSON has no decimals.
    """
    taker = func.json_build_array(
        Student.admission_number,
        User.first_name,
        Student.middle_name,
        User.last_name,
        Student.id,
        Enrollment.batch_id,
        Absence.status,
        Absence.note,
        GradebookEntry.id,
        cast(GradebookEntry.score, Text),
        Batch.name,
        holding_batches(Student.id),
    )
    found = (
        select(
            cast(
                func.coalesce(func.json_agg(aggregate_order_by(taker, *BY_NAME)), literal_column("'[]'")),
                Text,
            )
        )
        .select_from(SubjectEnrollment)
        .join(Student, Student.id == SubjectEnrollment.student_id)
        .join(User, User.id == Student.user_id)
        .join(Enrollment, Enrollment.student_id == Student.id)
        .join(Batch, Batch.id == Enrollment.batch_id)
        .outerjoin(Absence, and_(Absence.assessment_id == Assessment.id, Absence.student_id == Student.id))
        .outerjoin(
            GradebookEntry,
            and_(GradebookEntry.assessment_id == Assessment.id, GradebookEntry.student_id == Student.id),
        )
        .where(
            SubjectEnrollment.cohort_subject_id == Assessment.cohort_subject_id,
            Enrollment.cohort_id == Assessment.cohort_id,
            CURRENT,
        )
        .correlate(Assessment)
    )
    if reach is not None:
        found = found.where(scopes.scores_in_reach(reach, SubjectEnrollment.cohort_subject_id, Student.id))
    takers = found.scalar_subquery()
    listed = select(
        Assessment.cohort_subject_id,
        Assessment.term_id,
        Assessment.total_points,
        cast(Assessment.submitted_batches, ARRAY(Text)).label("submitted"),
        takers.label("takers"),
    ).where(Assessment.id == assessment_id, NOT_DELETED)
    return listed if reach is None else listed.where(in_reach(reach))


def _row_errors(row: Row, total_points: Decimal, arms: Mapping[str, str]) -> Iterable[RowError]:
    errors = _score_errors(row, total_points)
    if ABSENCE in row.values:
        errors = (*errors, *_absence_errors(row))
    return (*errors, *_arm_errors(row, arms)) if ARM in row.values else errors


def _with_absence(error: RowError) -> RowError:
    """Say of an absence in the column of scores where it belongs."""
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
    """Compare the arm of a row with that of its student, by admission number, where it is among `arms`."""
    number, written = composed(str(row.values.get(ADMISSION_NUMBER, ""))), row.values[ARM]
    arm = arms.get(number)
    if arm is not None and composed_name(str(written)) != composed_name(arm):
        problem = f"is not the arm of {number}, who is in {arm}"
        yield RowError(row.number, ARM, INVALID, problem, written, "download the sheet again")


def _absence_errors(row: Row) -> Iterator[RowError]:
    written = row.values[ABSENCE]
    if _written(row) not in _STATUSES:
        remedy = f"write {' or '.join(ABSENCES)}, or leave the cell blank"
        yield RowError(row.number, ABSENCE, INVALID, "is no absence", written, remedy)
    elif SCORE in row.values:
        yield RowError(
            row.number, ABSENCE, INVALID, "is beside a score", written, "leave one of the two blank"
        )


def _written(row: Row) -> str:
    return str(row.values[ABSENCE]).strip().upper()


def _refuse_scored(matched: _MatchedRows, letters: Mapping[str, str]) -> None:
    """Refuse an absence for a student who has a score that the sheet does not show. Raises InvalidRows."""
    scored = [(taker, row) for taker, row in matched if ABSENCE in row.values and taker.entry_id]
    remedy = "remove the score first, or leave the cell blank"
    raise_row_errors(
        (
            RowError(
                row.number,
                ABSENCE,
                INVALID,
                "is instead of a score that is stored",
                row.values[ABSENCE],
                remedy,
            )
            for _, row in scored
        ),
        letters=letters,
        people={row.number: shown(taker) for taker, row in scored},
    )


def _score_errors(row: Row, total_points: Decimal) -> tuple[RowError, ...]:
    score = row.values.get(SCORE)
    fault = None if score is None else score_fault(score, total_points)
    if score is None or fault is None:
        return ()
    if fault is ScoreFault.OUT_OF_RANGE:
        problem, remedy = "is no score", f"write a number from 0 to {_plain(total_points)}"
    else:
        problem, remedy = "has more than two decimal places", "round it to two"
    return (RowError(row.number, SCORE, INVALID, problem, _plain(score), remedy),)


def _plain(points: Decimal) -> str:
    """Points without zeros at the end: 100, 12.5."""
    return f"{points.normalize():f}"
