"""The cost of computing results, against reading their scores.

    python -m benchmarks.results [--rounds 100]

Starts a PostgreSQL of its own from the wheel, and a school with a cohort of 80 students in two arms, who take 12
subjects with 4 assessments each in a term: 3,840 scores. The service answers in this process, as WSGI.

Broadsheet: GET /broadsheets of an arm, against a plain SELECT of the arm's 1,920 scores as JSON, on a connection of its
own. Both take turns, request after request, so that other work of the machine meets both.
Workbook: GET /broadsheets/download, against openpyxl alone writing the same cells.
Publishing: POST /publications of that arm, its 40 cards, against the same SELECT of its scores. For the first time:
the publication is deleted in between. And once more: it is reopened in between, and each card is compared with the card
of the version before. Neither is measured.
Publishing 200: POST /publications of a cohort of 200 in five arms, all at once, against GET /broadsheets?live=true of
each of them, first and once more, as above. And of a single arm of 200, against its broadsheet, also after a correction
of a student's scores in all subjects, which changes every class figure.
Readings: of the arm, each alone, live and then published.
Prints the median milliseconds of each and their ratio: of processor time, of this process and PostgreSQL
together, and of time. On a machine with other work look at the first. Linux alone tells it.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path

from openpyxl import Workbook, load_workbook
from sqlalchemy import Connection

from benchmarks.schools import School, Schools, schools

STUDENTS, ARMS, SUBJECTS, ASSESSMENTS = 80, 2, 12, 4
MANY, MANY_ARMS = 200, 5

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
# The scores of one student: 0 to 16, one more each time.
CORRECTED = """
UPDATE gradebook_entries SET score = mod(score::integer + 1, 17)
WHERE student_id = (SELECT student_id FROM gradebook_entries ORDER BY student_id LIMIT 1)
"""


@dataclass(frozen=True)
class Cost:
    """Median milliseconds: of the processors, and until the answer."""

    processor: float
    time: float


class Processors:
    """The processor time of this process and of the server processes that serve it."""

    def __init__(self, school: School) -> None:
        with school.connect() as connection:
            pids = connection.exec_driver_sql(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
            ).scalars()
            self._servers = [Path(f"/proc/{pid}") for pid in pids]

    def milliseconds(self) -> float:
        """Tell it until now."""
        return time.process_time() * 1000 + sum(map(self._of, self._servers))

    @staticmethod
    def _of(server: Path) -> float:
        # The time of a process since the scheduler's last tick is added once it sleeps.
        while (server / "stat").read_text().rpartition(")")[2].split()[0] != "S":
            time.sleep(0.0002)
        return int((server / "schedstat").read_text().split()[0]) / 1_000_000


def costs(
    school: School,
    *measured: Callable[[], object],
    rounds: int,
    before: Callable[[object], object] = lambda _: None,
) -> list[Cost]:
    """Let them take turns; return the cost of each. `before` prepares each, and is not measured."""
    samples: list[list[tuple[float, float]]] = [[] for _ in measured]
    for request in measured:
        before(request)
        request()  # connects
    processors = Processors(school)
    gc.collect()
    gc.freeze()
    for number in range(rounds + rounds // 10):
        for request, durations in zip(measured, samples, strict=True):
            before(request)
            used, began = processors.milliseconds(), time.perf_counter()
            request()
            took = (time.perf_counter() - began) * 1000
            if number >= rounds // 10:  # those before warm up
                durations.append((processors.milliseconds() - used, took))
    return [
        Cost(*(statistics.median(each) for each in zip(*durations, strict=True))) for durations in samples
    ]


class Publishing:
    """The publication of arms: `again` and again as the next version, or each time as the first."""

    def __init__(self, school: School, *batches: str, term: str, again: bool) -> None:
        self._again = again
        self._school, self._body = school, {"term": term, "batches": batches}
        self._published: list[str] = []

    def __call__(self) -> None:
        """Publish the arms."""
        self._published = [made["id"] for made in self._school.post("/publications", self._body)]

    def prepare(self) -> None:
        """Let them be published: reopen the last publication, or delete all."""
        if self._again and self._published:
            for publication in self._published:
                self._school.post(f"/publications/{publication}/reopening", {"reason": "again"})
        else:
            self._school.execute("DELETE FROM report_cards; DELETE FROM publications")


class Correcting(Publishing):
    """The next version after a correction: a student has other scores in all subjects."""

    def prepare(self) -> None:
        """Reopen the last publication, and correct the scores."""
        super().prepare()
        self._school.execute(CORRECTED)


def subjects_of(school: School) -> list[str]:
    """The ids of the cohort subjects."""
    with school.connect() as connection:
        return [
            str(subject) for subject in connection.exec_driver_sql("SELECT id FROM cohort_subjects").scalars()
        ]


def fill_school(school: School, arms: int = ARMS) -> tuple[str, str]:
    """Fill the school; return the ids of the first arm and of the term."""
    taught = school.teach(year=2025, terms=1, subjects=SUBJECTS, assessments=ASSESSMENTS, arms=arms)
    school.score(taught)
    school.execute(VARIED)
    school.analyze()
    with school.connect() as connection:
        cohort = connection.exec_driver_sql("SELECT id FROM cohorts").scalar_one()
    return str(cohort), str(taught[0].term)


def cells_of(workbook: bytes) -> list[list[list[object]]]:
    """Read the cells of a workbook, by sheet and row."""
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
        batch, term = fill_school(school)
        with school.connect() as connection:
            select_scores = partial(_select, connection, SCORES.format(batch=batch, term=term))
            scores, broadsheet = costs(
                school,
                select_scores,
                lambda: school.get(f"/broadsheets?batch={batch}&term={term}"),
                rounds=rounds,
            )
        read = readings(school, batch, term, "live", rounds=rounds)
        path = f"/broadsheets/download?batch={batch}&term={term}"
        sheets = cells_of(school.get(path))
        alone, workbook = costs(
            school, lambda: written_alone(sheets), lambda: school.get(path), rounds=rounds
        )
        for subject in subjects_of(school):
            school.post(f"/cohort-subjects/{subject}/submission", {"term": term})
        published = []
        for again in (False, True):
            with school.connect() as connection:
                select_scores = partial(_select, connection, SCORES.format(batch=batch, term=term))
                published.append(
                    costs(
                        school,
                        select_scores,
                        Publishing(school, batch, term=term, again=again),
                        rounds=max(10, rounds // 4),
                        before=lambda request: request.prepare() if isinstance(request, Publishing) else None,
                    )
                )
        read += readings(school, batch, term, "published", rounds=rounds)
        names = ("first", "the next version", "after a correction")
        together = [
            (f"200 in {arms}: {name}", *cost)
            for arms in (MANY_ARMS, 1)
            for name, cost in zip(
                names, publishing_a_cohort(here, arms, rounds=max(5, rounds // 10)), strict=True
            )
        ]
    print(f"{'processor':>44}{'time':>12}")
    for name, counterpart, cost in (
        ("broadsheet", scores, broadsheet),
        ("publishing 40", *published[0]),
        ("publishing again", *published[1]),
    ):
        _print("scores as JSON", counterpart)
        _print(name, cost, counterpart)
    for name, counterpart, cost in together:
        _print("their broadsheets", counterpart)
        _print(name, cost, counterpart)
    _print("openpyxl alone", alone)
    _print("workbook", workbook, alone)
    for name, cost in read:
        _print(name, cost)


def readings(school: School, batch: str, term: str, state: str, *, rounds: int) -> list[tuple[str, Cost]]:
    """Read the results of an arm, of a subject and of a student, how far the subjects are, and the session's."""
    with school.connect() as connection:
        select_one = "SELECT student_id FROM enrollments WHERE ended_at IS NULL ORDER BY student_id LIMIT 1"
        student = connection.exec_driver_sql(select_one).scalar_one()
        session = connection.exec_driver_sql("SELECT id FROM sessions").scalar_one()
    paths = {
        "broadsheet": f"/broadsheets?batch={batch}&term={term}",
        "workbook": f"/broadsheets/download?batch={batch}&term={term}",
        "subject": f"/cohort-subjects/{subjects_of(school)[0]}/results?term={term}",
        "student": f"/students/{student}/results?term={term}",
        "submissions": f"/submissions?batch={batch}&term={term}",
    }
    if state == "published":
        paths["session"] = f"/broadsheets?batch={batch}&session={session}"
    return [
        (f"{state} {name}", costs(school, partial(school.get, path), rounds=rounds)[0])
        for name, path in paths.items()
    ]


def publishing_a_cohort(here: Schools, arms: int, *, rounds: int) -> list[list[Cost]]:
    """Publish a cohort of MANY students in so many arms, against their broadsheets: first, next, and corrected."""
    school = here.create(students=MANY)
    _, term = fill_school(school, arms)
    for subject in subjects_of(school):
        school.post(f"/cohort-subjects/{subject}/submission", {"term": term})
    with school.connect() as connection:
        batches = [str(batch) for batch in connection.exec_driver_sql("SELECT id FROM batches").scalars()]

    def broadsheets() -> None:
        for batch in batches:
            school.get(f"/broadsheets?batch={batch}&term={term}&live=true")

    return [
        costs(
            school,
            broadsheets,
            published,
            rounds=rounds,
            before=lambda request: request.prepare() if isinstance(request, Publishing) else None,
        )
        for published in (
            Publishing(school, *batches, term=term, again=False),
            Publishing(school, *batches, term=term, again=True),
            Correcting(school, *batches, term=term, again=True),
        )
    ]


def _select(connection: Connection, statement: str) -> object:
    return connection.exec_driver_sql(statement).scalar_one()


def _print(name: str, cost: Cost, counterpart: Cost | None = None) -> None:
    line = f"{name:32}{cost.processor:9.2f} ms{cost.time:9.2f} ms"
    if counterpart:
        line += f", {cost.processor / counterpart.processor:.2f} and {cost.time / counterpart.time:.2f} times as long"
    print(line)


if __name__ == "__main__":
    main()
