"""The metric sheet of a batch, a term and a metric type: downloaded to be filled in, and uploaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from school_service.core.database import current_school, db
from school_service.core.errors import SAID_BACK, Invalid
from school_service.core.statements import execute
from school_service.core.texts import term_title
from school_service.features.audit.service import EXPORT, audit_change
from school_service.features.observations.metrics.reads import class_list
from school_service.features.observations.metrics.service import (
    TRAIL,
    CommonColumns,
    Scores,
    compare_scores,
    list_traits,
    storing,
)
from school_service.features.observations.published import lock_open
from school_service.features.people.students.naming import name_with_number
from school_service.features.people.students.sheet_rows import (
    ADMISSION_NUMBER,
    STUDENT_COLUMNS,
    change_of,
    student_columns,
)
from school_service.features.people.students.sheet_uploads import ClassSheetUpload, Replaced
from school_service.features.results.models import BEST, METRIC_TYPES, POOREST
from school_service.features.school.cohorts.class_sheets import (
    BATCH,
    TERM,
    about_class,
    detail,
    find_batch,
    find_term,
    judge_batch,
    judge_term,
    named_details,
    place_of,
)
from school_service.features.school.models import Term
from school_service.sheets.columns import CellType, Column, NumberRange, normalized_name
from school_service.sheets.downloads import download_details, read_download
from school_service.sheets.row_errors import INVALID, RowError
from school_service.sheets.sheet_files import SheetFile
from school_service.sheets.sheet_reader import (
    ANY_NUMBER,
    DETAILS,
    Row,
    SheetContent,
    read_details,
    read_sheet,
)
from school_service.sheets.sheet_writer import Table, write_workbook
from school_service.sheets.uploads import RowCounts

SHEET = "Metrics"
METRIC_TYPE = "Metric type"
BATCH_FIELD = "batchId"
_SCALE = f"write a whole number from {POOREST}, poor, to {BEST}, excellent"
_NAMED = ((f"{BATCH} ID", BATCH), (f"{TERM} ID", TERM), (METRIC_TYPE,))

_MatchedRows = list[tuple[Any, Row]]
"""Each row with its student of the batch, as `class_list` selects them."""


def download(*, batch_id: UUID, term: str, metric_type: str) -> tuple[str, bytes]:
    """Write a metric sheet to fill in: the file's name and the workbook.

    It has a row for each student in the batch now, with the stored scores. `term` is FIRST, SECOND or THIRD of the
    batch's session, or the id of a term. Raises Invalid for an unknown batch or term, and for a term of another
    session.
    """
    batch = find_batch(batch_id, field=BATCH_FIELD)
    of_term = find_term(term, batch)
    traits = {str(trait.id): trait.name for trait in list_traits() if trait.metric_type == metric_type}
    rows = []
    for row in db.session.execute(class_list(batch.id, of_term.id, metric_type)).mappings():
        scores = row["scores"] or {}
        rows.append(({column.name: row[column.name] for column in STUDENT_COLUMNS} | scores, scores))
    audit_change(
        EXPORT, batch.id, new={"sheet": "metrics", "metric_type": metric_type, "students": len(rows)}
    )
    table = Table(
        SHEET, _columns(traits.values(), student_columns(batch.name_order)), [columns for columns, _ in rows]
    )
    titled = partial(term_title, of_term.display_name, batch.session)
    stored = {columns[ADMISSION_NUMBER]: scores for columns, scores in rows if scores}
    downloaded, hidden = download_details(batch.moment, batch.time_zone, stored, traits)
    details = [*_details(batch, of_term, metric_type), downloaded]
    page_header = (
        f"{current_school().name}\n{batch.class_name}",
        f"{metric_type}, {titled()}\n{BEST} (excellent) to {POOREST} (poor)",
    )
    name = f"{batch.class_name} {titled(' ')} {metric_type.lower()}.xlsx"
    return name, write_workbook([table], details, hidden=hidden, page_header=page_header)


@dataclass(kw_only=True)
class MetricUpload(ClassSheetUpload[Any]):
    """The upload of a metric sheet: its scores, all or none; counts rows as new, changed, unchanged, blank.

    `batch` is an id, or a number in the school. `term` and `metric_type` are for a sheet without its own. A student
    missing in the sheet, and a blank score there, stay as they are. Uploads for a cohort follow one another. `dry_run`
    stores nothing, and answers the changes to be made, too, and the students missing in the sheet. Raises Invalid for
    an unknown batch and a file other than a sheet of this batch, InvalidRows naming every bad row, and RowsChanged if
    scores were changed since the sheet was downloaded, unless `force` replaces them, and Conflict while the batch's
    results of the term are published.
    """

    batch: UUID | int
    term: str | None = None
    metric_type: str | None = None
    arm: Any = field(init=False)
    of_term: Term = field(init=False)
    of_type: str = field(init=False)
    trait_ids: dict[str, UUID] = field(init=False)
    renamed: dict[str, str] = field(init=False)

    def find_record(self) -> None:
        self.arm = find_batch(self.batch, field=BATCH_FIELD)

    def read_details(self, workbook: SheetFile) -> None:
        details, named = read_details(workbook), {TERM: self.term, METRIC_TYPE: self.metric_type}
        self.of_term, self.of_type = _judge_details(details, self.arm, named)
        self.download = read_download(details or {})

    def read_rows(self, workbook: SheetFile) -> SheetContent:
        traits = list_traits()
        self.trait_ids = {trait.name: trait.id for trait in traits if trait.metric_type == self.of_type}
        self.renamed = self._renamed()
        names = [*self.renamed, *(name for name in self.trait_ids if name not in self.renamed.values())]
        content = read_sheet(
            workbook, SHEET, _columns(names), unknown_column=partial(_unknown_trait, traits=traits)
        )
        # A word such as Excellent: the sheet has the meanings of the scores.
        content.errors[:] = [
            replace(error, remedy=_SCALE) if error.column in names and error.remedy == ANY_NUMBER else error
            for error in content.errors
        ]
        return content.with_columns_named(self.renamed) if self.renamed else content

    def _renamed(self) -> dict[str, str]:
        """Find the traits with another name since the download: their present names, by the former ones.

        Raises Invalid if a trait without a column in the sheet has one of the old names by now.
        """
        then = self.download.names if self.download else {}
        called = {
            then[str(trait_id)]: name for name, trait_id in self.trait_ids.items() if str(trait_id) in then
        }
        renamed = {was: name for was, name in called.items() if was != name}
        if any(name in renamed for name, trait_id in self.trait_ids.items() if str(trait_id) not in then):
            raise Invalid("The traits are others since the sheet was downloaded: download it again.")
        return renamed

    def lock(self) -> None:
        lock_open(cohort_id=self.arm.cohort_id, batch_id=self.arm.id, term_id=self.of_term.id)

    def match(self, content: SheetContent) -> _MatchedRows:
        listed = db.session.execute(class_list(self.arm.id, self.of_term.id, self.of_type)).all()
        return self.match_class(
            content,
            listed,
            not_in_class="is not in the batch",
            validate=partial(_score_errors, names=self.trait_ids),
        )

    def store(self, matched: _MatchedRows) -> RowCounts:
        students = [
            (student, {name: int(row.values[name]) for name in self.trait_ids if name in row.values})
            for student, row in matched
        ]
        compared = compare_scores(students)
        rows = self.refuse_changed(self._replaced(matched, compared.changed), TRAIL)
        forced = frozenset(student.student_id for student, row in matched if row.number in rows)
        if self.dry_run:
            self.answer["changes"] = [
                change_of(row, student, name, (student.scores or {}).get(name), score)
                for student, row in matched
                for name, score in compared.changed.get(student.student_id, {}).items()
            ]
        elif writes := storing(
            scores=compared,
            trait_ids=self.trait_ids,
            common=CommonColumns(place_of(self.arm, self.of_term.id), self.of_type, self.file_name),
            downloaded=self.download.moment if self.download else None,
            forced=forced,
        ):
            execute(*writes)
        return compared.counts

    def _replaced(self, matched: _MatchedRows, changed: Mapping[str, Scores]) -> Iterator[Replaced]:
        """Find the scores changed since the download, to be replaced by the sheet."""
        if self.download is None:
            return
        for student, row in matched:
            values = self.download.values_of(student.admission_number)
            then = {self.renamed.get(name, name): score for name, score in values.items()}
            stored = student.scores or {}
            for name, score in changed.get(student.student_id, {}).items():
                if name in stored and stored[name] != then.get(name):
                    yield Replaced(
                        row.number, name, name_with_number(student), student.metric_id, stored[name], score
                    )


def _columns(names: Iterable[str], students: Iterable[Column] = STUDENT_COLUMNS) -> list[Column]:
    rule = NumberRange(Decimal(POOREST), Decimal(BEST), whole=True)
    return [*students, *(Column(name, CellType.NUMBER, required=True, rule=rule) for name in names)]


def _details(batch: Any, term: Term, metric_type: str) -> list[tuple[str, str]]:
    words, ids = about_class(batch, term)
    scale = ("Scores", f"{BEST} (excellent) to {POOREST} (poor)")
    return [*words, (METRIC_TYPE, metric_type), scale, *ids]


def _judge_details(
    details: Mapping[str, str] | None, batch: Any, named: Mapping[str, str | None]
) -> tuple[Term, str]:
    """Find the term and the metric type of a sheet. Raises Invalid, for a sheet of another batch too.

    A sheet not downloaded before may name batch and term without their ids: the batch by its number, the term as FIRST,
    SECOND or THIRD. If a sheet Details is missing, as in a .csv file, they are `named` by the request.
    """
    details = named_details(details, batch, named)
    # Lacking details are refused first.
    _, _, metric_type = (detail(details, *labels) for labels in _NAMED)
    judge_batch(details, batch)
    if metric_type.upper() not in METRIC_TYPES:
        raise Invalid(f"{METRIC_TYPE} on the sheet {DETAILS}: is none of {' and '.join(METRIC_TYPES)}.")
    return judge_term(details, batch), metric_type.upper()


def _unknown_trait(name: str, traits: Iterable[Any]) -> str:
    """Say why a column is not one of the sheet's traits."""
    others = [trait.metric_type for trait in traits if normalized_name(trait.name) == normalized_name(name)]
    return (
        f"{name} is {others[0]}, and has a sheet of that type"
        if others
        else f"there is no trait {name[:SAID_BACK]}"
    )


def _score_errors(row: Row, names: Iterable[str]) -> Iterator[RowError]:
    for name in names:
        score = row.values.get(name)
        if score is not None and not (POOREST <= score <= BEST and score == int(score)):
            yield RowError(row.number, name, INVALID, "is no score", f"{score.normalize():f}", _SCALE)
