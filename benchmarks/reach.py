"""The cost of access by relation: a teacher who reads their own records, beside an administrator who reads all.

    python -m benchmarks.reach [--rounds 25] [--students 480]

Starts a PostgreSQL of its own from the wheel, and a school with a class of 480 students in arms of 40, who take 12
subjects with 2 assessments each in a term: 11,520 scores. It has 60 classes more with 12 subjects each, and nobody in
them. An employee with the role Teacher, whose reach is OWN, looks after one arm of 40 and teaches two subjects there.
The service answers in this process, as WSGI.

Each read is asked for by the administrator, whose reach is SCHOOL, and by the teacher; they take turns, request after
request, so that other work of the machine meets both. Lists have no filter, so that the administrator's have more
rows; records of an arm, a student, a subject or an assessment are the same for both. `GET /me` stands beside `GET
/users/{id}` of the same account. Prints the median milliseconds of processor time, of this process and
PostgreSQL together, PostgreSQL's part, the ratio of both, and the aim: a list takes the teacher at
most 1 ms longer than the administrator; another read 1.5 times as long where the administrator's takes 5 ms or more,
else 3 ms of PostgreSQL's more; `/me` four times as long. Says of each whether that is met. Linux alone tells processor
time.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from benchmarks.results import VARIED, Processors
from benchmarks.schools import School, schools
from tenants.clock import now

STUDENTS, OF_ARM, SUBJECTS, ASSESSMENTS, CLASSES = 480, 40, 12, 2, 60
LISTS = ("/students", "/cohorts", "/cohort-subjects", "/gradebooks")
# Milliseconds: a read that takes as long is judged by its ratio, a shorter one by PostgreSQL's additional time.
LONG, MORE = 5.0, 3.0
LIST, READ, ME = 1.0, 1.5, 4.0
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")

EMPLOYEE = """
WITH contact AS (
    INSERT INTO contacts (id, owner_id, email_address, phone_number, physical_address, created_at)
    VALUES (gen_random_uuid(), '{user}', '', '', '', now()) RETURNING id
), employee AS (
    INSERT INTO employees (id, user_id, contact_id, department_id, category_id, position_id, middle_name, title, dob,
        join_date, marital_status, blood_group, lga_id, state_id, nationality_id, religion, status, created_at)
    SELECT gen_random_uuid(), '{user}', contact.id, (SELECT id FROM departments LIMIT 1),
        (SELECT id FROM employee_categories LIMIT 1), (SELECT id FROM positions LIMIT 1), '', 'Dr.', '1985-04-12',
        '2020-01-06', '', '', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '', '', now()
    FROM contact RETURNING id
), form_teacher AS (
    INSERT INTO form_teachers (batch_id, employee_id, created_at)
    SELECT cohort_subjects.cohort_id, employee.id, now() FROM cohort_subjects, employee
    WHERE cohort_subjects.id = '{first}'
)
INSERT INTO subject_teachers (id, cohort_subject_id, cohort_id, batch_id, employee_id, created_at)
SELECT gen_random_uuid(), subjects.id, subjects.cohort_id, subjects.cohort_id, employee.id, now()
FROM employee, cohort_subjects AS subjects WHERE subjects.id IN ('{first}', '{second}')
"""
OTHER_CLASSES = f"""
WITH rooms AS (
    INSERT INTO classrooms (id, name, level)
    SELECT gen_random_uuid(), 'Class ' || number, 'Junior Secondary' FROM generate_series(1, {CLASSES}) AS number
    RETURNING id
), made AS (
    INSERT INTO cohorts (id, classroom_id, session_id)
    SELECT gen_random_uuid(), rooms.id, sessions.id FROM rooms, sessions RETURNING id
), arms AS (
    INSERT INTO batches (id, cohort_id, number, name)
    SELECT id, id, 100 + row_number() OVER (), 'A' FROM made RETURNING id
)
INSERT INTO cohort_subjects (id, cohort_id, subject_id, elective)
SELECT gen_random_uuid(), arms.id, subjects.id, false FROM arms, subjects
"""


@dataclass(frozen=True)
class Cost:
    """Median milliseconds of processor time: of all, and of PostgreSQL alone."""

    processor: float
    database: float


def in_turn(school: School, *measured: Callable[[], object], rounds: int) -> list[Cost]:
    """Let them take turns; return the cost of each."""
    samples: list[list[tuple[float, float]]] = [[] for _ in measured]
    for request in measured:
        request()  # connects
    processors = Processors(school)
    for number in range(rounds + rounds // 10):
        for request, costs in zip(measured, samples, strict=True):
            here, all_of_it = time.process_time(), processors.milliseconds()
            request()
            here, all_of_it = time.process_time() - here, processors.milliseconds() - all_of_it
            if number >= rounds // 10:  # those before warm up
                costs.append((all_of_it, all_of_it - here * 1000))
    return [Cost(*(statistics.median(each) for each in zip(*costs, strict=True))) for costs in samples]


def of_list(school: Cost, own: Cost) -> tuple[bool, str]:
    """Judge a list without filters."""
    return own.processor <= school.processor + LIST, f"+ {LIST} ms"


def of_read(school: Cost, own: Cost) -> tuple[bool, str]:
    """Judge another read."""
    if school.processor >= LONG:
        return own.processor <= READ * school.processor, f"{READ} x"
    return own.database - school.database <= MORE, f"PostgreSQL + {MORE} ms"


def of_me(account: Cost, me: Cost) -> tuple[bool, str]:
    """Judge GET /me beside GET /users/{id}."""
    return me.processor <= ME * account.processor, f"{ME} x"


def value_of(school: School, query: str) -> str:
    """Select one value in the school's schema."""
    with school.connect() as connection:
        return str(connection.exec_driver_sql(query).scalar_one())


def teacher(school: School, subjects: list[UUID]) -> UUID:
    """Make an employee who looks after the first arm, and teaches the first two subjects there.

    Answers the id of their account. The role Teacher of a new school has the reach OWN.
    """
    person = {"first_name": "Ngozi", "last_name": "Abah", "username": "ngozi", "gender": "FEMALE"}
    user = school.post("/users", {**person, "password": "a password of her own"})["user"]["id"]
    role = next(each["id"] for each in json.loads(school.get("/roles")) if each["name"] == "Teacher")
    school.put(f"/users/{user}/roles", {"role": role})
    school.execute(EMPLOYEE.format(user=user, first=subjects[0], second=subjects[1]))
    return UUID(user)


def reads(school: School, term: UUID, assessment: UUID, subject: UUID) -> list[str]:
    """The reads that are the same for both: of an arm, a student, a subject or an assessment."""
    batch = value_of(school, f"SELECT cohort_id FROM cohort_subjects WHERE id = '{subject}'")
    student = value_of(school, f"SELECT student_id FROM enrollments WHERE batch_id = '{batch}' LIMIT 1")
    return [
        f"/scoresheets/{subject}/scoresheet",
        f"/assessments/{assessment}/download-sheet?batch={batch}",
        f"/students/{student}",
        f"/students/{student}/results?term={term}",
        f"/cohort-subjects/{subject}/results?term={term}&batch={batch}",
        f"/broadsheets?batch={batch}&term={term}",
        f"/comments?batch={batch}&term={term}",
        f"/submissions?batch={batch}&term={term}",
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--students", type=int, default=STUDENTS)
    arguments = parser.parse_args()
    rounds, students = arguments.rounds, arguments.students
    print(f"{'':52}{'SCHOOL':>16}{'OWN':>18}    ratio   more of PostgreSQL's")
    with schools() as here:
        school = here.create(students=students)
        # The session of this year: relations count in a session that is not long over.
        taught = school.teach(
            year=now().year, terms=1, subjects=SUBJECTS, assessments=ASSESSMENTS, arms=students // OF_ARM
        )
        school.score(taught)
        school.execute(VARIED)
        school.execute(OTHER_CLASSES)
        user = teacher(school, [each.subject for each in taught])
        school.analyze()
        own = school.reader(user)
        gc.collect()
        gc.freeze()
        first = taught[0]
        for path in LISTS:
            show(path, of_list, compared(school, path, school.get, own, rounds))
        for path in reads(school, first.term, first.assessments[0], first.subject):
            show(path, of_read, compared(school, path, school.get, own, rounds))
        account = in_turn(school, lambda: school.get(f"/users/{user}"), lambda: own("/me"), rounds=rounds)
        show("/me beside /users/{id}", of_me, account)


def compared(
    school: School, path: str, everything: Callable[[str], bytes], own: Callable[[str], bytes], rounds: int
) -> list[Cost]:
    """The cost of a path to both."""
    return in_turn(school, lambda: everything(path), lambda: own(path), rounds=rounds)


def show(path: str, judge: Callable[[Cost, Cost], tuple[bool, str]], costs: list[Cost]) -> None:
    """Print the cost of a read to both, and whether the aim is met."""
    school, own = costs
    met, bound = judge(school, own)
    shown = [f"{each.processor:6.2f} ({each.database:5.2f}) ms" for each in costs]
    print(
        f"{ID.sub('{id}', path):52}{shown[0]}{shown[1]:>20}{own.processor / school.processor:7.2f}"
        f"{own.database - school.database:+8.2f} ms   {bound}: {'met' if met else 'NOT MET'}"
    )


if __name__ == "__main__":
    main()
