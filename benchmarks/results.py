"""What computing results costs, against reading the scores that they are computed from.

    python -m benchmarks.results [--rounds 100]

Starts a PostgreSQL of its own from the wheel, and a school with a cohort of 80 students in two arms, who take 12
subjects with 4 assessments each in a term: 3,840 scores. The service answers in this process, as WSGI.

Broadsheet: GET /broadsheets of an arm, against a plain SELECT of the arm's 1,920 scores as JSON, on a connection of its
own. Both take turns, request after request, so that whatever else the machine does meets both.
Workbook: GET /broadsheets/download, against openpyxl alone writing the same cells.
Publishing: POST /publications of that arm, its 40 cards, against the same SELECT of its scores; what is published is
reopened in between, which is not measured.
Prints the median milliseconds of each and their ratio.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from io import BytesIO

from openpyxl import Workbook, load_workbook

from benchmarks.schools import School, schools

STUDENTS, ARMS, SUBJECTS, ASSESSMENTS = 80, 2, 12, 4

SCORES = """
SELECT json_agg(json_build_object('student', entry.student_id, 'subject', assessment.cohort_subject_id,
    'assessment', assessment.id, 'category', assessment.category, 'total_points', assessment.total_points,
    'score', entry.score))::text
FROM enrollments enrollment
JOIN gradebook_entries entry ON entry.student_id = enrollment.student_id
JOIN assessments assessment ON assessment.id = entry.assessment_id
WHERE enrollment.batch_id = '{batch}' AND enrollment.ended_at IS NULL AND assessment.cohort_id = '{batch}'
AND assessment.term_id = '{term}' AND assessment.deleted_at IS NULL
"""
# Scores of many values, some of them shared.
VARIED = "UPDATE gradebook_entries SET score = mod(abs(hashtext(id::text)), 81) / 4.0"


def medians(
    *measured: Callable[[], object], rounds: int, before: Callable[[object], object] = lambda _: None
) -> list[float]:
    """Let them take turns; return the median milliseconds of each. `before` prepares each, and is not measured."""
    times: list[list[float]] = [[] for _ in measured]
    gc.collect()
    gc.freeze()
    for number in range(rounds + rounds // 10):
        for one, durations in zip(measured, times, strict=True):
            before(one)
            began = time.perf_counter()
            one()
            took = (time.perf_counter() - began) * 1000
            if number >= rounds // 10:  # those before warm up
                durations.append(took)
    return [statistics.median(durations) for durations in times]


class Publishing:
    """The publication of an arm, again and again."""

    def __init__(self, school: School, batch: str, term: str) -> None:
        self._school, self._body = school, {"term": term, "batches": [batch]}
        self._published: str | None = None

    def __call__(self) -> None:
        """Publish the arm."""
        (made,) = self._school.post("/publications", self._body)
        self._published = made["id"]

    def reopen(self) -> None:
        """Reopen what was published last."""
        if self._published:
            self._school.post(f"/publications/{self._published}/reopening", {"reason": "again"})


def subjects_of(school: School) -> list[str]:
    """The ids of the cohort subjects."""
    with school.connect() as connection:
        return [str(one) for one in connection.exec_driver_sql("SELECT id FROM cohort_subjects").scalars()]


def made(school: School) -> tuple[str, str]:
    """Fill the school; return the ids of the first arm and of the term."""
    taught = school.teach(year=2025, terms=1, subjects=SUBJECTS, assessments=ASSESSMENTS, arms=ARMS)
    school.score(taught)
    school.execute(VARIED)
    school.analyze()
    with school.connect() as connection:
        cohort = connection.exec_driver_sql("SELECT id FROM cohorts").scalar_one()
    return str(cohort), str(taught[0].term)


def cells_of(workbook: bytes) -> list[list[list[object]]]:
    """Read what is in the cells of a workbook, by sheet and row."""
    opened = load_workbook(BytesIO(workbook))
    return [[list(row) for row in sheet.iter_rows(values_only=True)] for sheet in opened.worksheets]


def written_alone(sheets: list[list[list[object]]]) -> None:
    """Write the same cells with openpyxl, without styles."""
    workbook = Workbook()
    for rows in sheets:
        sheet = workbook.create_sheet()
        for row in rows:
            sheet.append(row)
    workbook.save(BytesIO())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=100)
    rounds = parser.parse_args().rounds
    with schools() as here:
        school = here.create(students=STUDENTS)
        batch, term = made(school)
        with school.connect() as connection:
            scores, broadsheet = medians(
                lambda: connection.exec_driver_sql(SCORES.format(batch=batch, term=term)).scalar_one(),
                lambda: school.get(f"/broadsheets?batch={batch}&term={term}"),
                rounds=rounds,
            )
        path = f"/broadsheets/download?batch={batch}&term={term}"
        sheets = cells_of(school.get(path))
        alone, workbook = medians(lambda: written_alone(sheets), lambda: school.get(path), rounds=rounds)
        term_body = {"term": term}
        for subject in subjects_of(school):
            school.post(f"/cohort-subjects/{subject}/submission", term_body)
        with school.connect() as connection:
            scores_again, publishing = medians(
                lambda: connection.exec_driver_sql(SCORES.format(batch=batch, term=term)).scalar_one(),
                Publishing(school, batch, term),
                rounds=max(10, rounds // 4),
                before=lambda one: one.reopen() if isinstance(one, Publishing) else None,
            )
    print(f"scores as JSON   {scores:6.2f} ms")
    print(f"broadsheet       {broadsheet:6.2f} ms, {broadsheet / scores:.2f} times as long")
    print(f"openpyxl alone   {alone:6.2f} ms")
    print(
        f"publishing 40    {publishing:6.2f} ms, {publishing / scores_again:.2f} times as long as the scores"
    )
    print(f"workbook         {workbook:6.2f} ms, {workbook / alone:.2f} times as long")


if __name__ == "__main__":
    main()
