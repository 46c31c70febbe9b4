"""The cost of registers, against older reads and writes.

    python -m benchmarks.attendance [--rounds 100]

Starts a PostgreSQL of its own from the wheel, and a school with an arm of 40 students, whose first term has 60 days of
registers, twice a day: 4,800 marks. The service answers in this process, as WSGI.

Marking: PUT /registers of 40, against POST /gradebooks. Both make rows that are deleted in between, unmeasured.
Reading: GET /registers of 40, against GET /scoresheets of 40 students and 4 assessments.
Summary: GET /attendance/summary of the arm, against a plain SELECT that counts the arm's marks.
Publishing: POST /publications of the arm's 40 cards with the roll-up of registers, against one with typed figures.
Missing: GET /registers/missing of one day of another school with 60 arms, against GET /classrooms with 20.
All take turns, request after request, so that other work of the machine meets each.
Telephones: 100 PUT /registers at once, each of a class of its own with 40 students, answered by as many threads as
`serve` has by default. Prints how long the last one waited.
Prints the median milliseconds of each and their ratio, as `benchmarks.results` does.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from benchmarks.results import Cost, Publishing, costs
from benchmarks.schools import Schools, schools

STUDENTS, ARMS_OF_SCHOOL, CLASSROOMS, TELEPHONES, THREADS = 40, 60, 20, 100, 8
DAY, FIRST, LAST = "2026-01-15", "2025-09-15", "2025-12-05"

REGISTERS = """
INSERT INTO registers (id, batch_id, cohort_id, session_id, term_id, date, part, state, version)
SELECT gen_random_uuid(), b.id, b.cohort_id, c.session_id, '{term}', d::date, p.part, 'SUBMITTED', 1
FROM batches b
JOIN cohorts c ON c.id = b.cohort_id
CROSS JOIN generate_series(date '{first}', date '{last}', interval '1 day') AS d
CROSS JOIN (VALUES ('MORNING'), ('AFTERNOON')) AS p (part)
WHERE extract(isodow FROM d) <= 5;
INSERT INTO marks (register_id, student_id, code, kind, version)
SELECT r.id, e.student_id, k.code, k.kind, 1
FROM registers r
JOIN enrollments e ON e.batch_id = r.batch_id AND e.ended_at IS NULL
CROSS JOIN LATERAL (
    SELECT CASE WHEN mod(abs(hashtext(r.id::text || e.student_id::text)), 10) = 0 THEN 'A' ELSE 'P' END AS code
) AS c
JOIN (VALUES ('A', 'ABSENT'), ('P', 'PRESENT')) AS k (code, kind) ON k.code = c.code
"""
COUNT = """
SELECT json_agg(json_build_object('student', each.student_id, 'kind', each.kind, 'times', each.times))::text
FROM (
    SELECT m.student_id, m.kind, count(*) AS times
    FROM registers r
    JOIN marks m ON m.register_id = r.id
    WHERE r.batch_id = '{batch}' AND r.term_id = '{term}' AND r.state = 'SUBMITTED'
    GROUP BY m.student_id, m.kind
) AS each
"""


def _class(here: Schools, rounds: int) -> list[tuple[str, Cost, str, Cost]]:
    school = here.create(students=STUDENTS)
    taught = school.teach(year=2025, terms=1, subjects=12, assessments=4)
    school.score(taught)
    term, (subject, *_) = str(taught[0].term), [str(course.subject) for course in taught]
    assessment = str(taught[0].assessments[0])
    with school.connect() as connection:
        batch = str(connection.exec_driver_sql("SELECT id FROM batches").scalar_one())
        student = str(connection.exec_driver_sql("SELECT student_id FROM enrollments LIMIT 1").scalar_one())
    school.put(f"/terms/{term}/calendar", {"start_date": "2025-09-08", "end_date": "2026-03-31"})
    school.patch("/attendance-settings", {"parts": "HALF_DAYS"})
    school.execute(REGISTERS.format(term=term, first=FIRST, last=LAST))
    school.analyze()
    key = {"batch": batch, "date": DAY, "part": "MORNING"}
    marked = {**key, "default": "P", "submit": True}
    score = {"assessment": assessment, "score": 12.5, "student": student, "batch": batch}

    def mark() -> object:
        return school.put("/registers", marked)

    def enter() -> object:
        return school.post("/gradebooks", score)

    def take_away(measured: object = None) -> None:
        if measured is mark:
            school.execute(
                f"DELETE FROM marks WHERE register_id IN (SELECT id FROM registers WHERE date = '{DAY}');"
                f"DELETE FROM registers WHERE date = '{DAY}'"
            )
        else:
            school.execute(
                f"DELETE FROM gradebook_entries WHERE assessment_id = '{assessment}' AND student_id = '{student}'"
            )

    take_away()
    entering, marking = costs(school, enter, mark, rounds=rounds, before=take_away)
    mark()
    query = "&".join(f"{name}={value}" for name, value in key.items())
    scoresheet, reading = costs(
        school,
        lambda: school.get(f"/scoresheets/{subject}/scoresheet"),
        lambda: school.get(f"/registers?{query}"),
        rounds=rounds,
    )
    with school.connect() as connection:
        counting, summary = costs(
            school,
            lambda: connection.exec_driver_sql(COUNT.format(batch=batch, term=term)).scalar_one(),
            lambda: school.get(f"/attendance/summary?term={term}&batch={batch}"),
            rounds=rounds,
        )
    for course in taught:
        school.post(f"/cohort-subjects/{course.subject}/submission", {"term": term})
    typed, rolled_up = (Publishing(school, batch, term=term, again=False) for _ in range(2))

    def set_roll_up(measured: Any) -> None:
        measured.prepare()
        school.patch("/attendance-settings", {"roll_up": "TYPED" if measured is typed else "REGISTERS"})

    publishing = costs(school, typed, rolled_up, rounds=max(10, rounds // 4), before=set_roll_up)
    return [
        ("POST /gradebooks", entering, "PUT of 40", marking),
        ("scoresheet of 40", scoresheet, "GET of 40", reading),
        ("plain SELECT", counting, "summary", summary),
        ("publishing, typed", publishing[0], "of registers", publishing[1]),
    ]


def _whole_school(here: Schools, rounds: int) -> list[tuple[str, Cost, str, Cost]]:
    school = here.create(students=4 * ARMS_OF_SCHOOL)
    term = school.classes(CLASSROOMS, ARMS_OF_SCHOOL // CLASSROOMS)
    school.put(f"/terms/{term}/calendar", {"start_date": "2025-09-08", "end_date": "2026-03-31"})
    school.patch("/attendance-settings", {"parts": "HALF_DAYS"})
    school.execute(REGISTERS.format(term=term, first=FIRST, last=LAST))
    school.analyze()
    classrooms, missing = costs(
        school,
        lambda: school.get("/classrooms"),
        lambda: school.get(f"/registers/missing?date={DAY}"),
        rounds=rounds,
    )
    return [("GET /classrooms", classrooms, "missing of 60", missing)]


def _telephones(here: Schools) -> list[float]:
    school = here.create(students=STUDENTS * TELEPHONES)
    term = school.classes(TELEPHONES, 1)
    school.put(f"/terms/{term}/calendar", {"start_date": "2025-09-08", "end_date": "2026-03-31"})
    school.analyze()
    with school.connect() as connection:
        batches = [str(batch) for batch in connection.exec_driver_sql("SELECT id FROM batches").scalars()]

    def mark(day: str, began: float, batch: str) -> float:
        school.put("/registers", {"batch": batch, "date": day, "part": "DAY", "default": "P", "submit": True})
        return time.perf_counter() - began

    waited = []
    with ThreadPoolExecutor(THREADS) as threads:
        for day in ("2026-01-15", "2026-01-16", "2026-01-19"):
            waited.append(max(threads.map(partial(mark, day, time.perf_counter()), batches)))
    return waited


def _print(name: str, cost: Cost, counterpart: Cost | None = None) -> None:
    line = f"{name:18}{cost.processor:9.2f} ms{cost.time:9.2f} ms"
    if counterpart:
        line += f", {cost.processor / counterpart.processor:.2f} and {cost.time / counterpart.time:.2f} times as long"
    print(line)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=100)
    rounds = parser.parse_args().rounds
    with schools() as here:
        compared = [*_class(here, rounds), *_whole_school(here, rounds)]
        waited = _telephones(here)
    print("                     processor        time")
    for name, cost, other, measured in compared:
        _print(name, cost)
        _print(other, measured, cost)
    print(f"100 telephones: the last was answered after {', '.join(f'{each:.2f}' for each in waited)} s")


if __name__ == "__main__":
    main()
