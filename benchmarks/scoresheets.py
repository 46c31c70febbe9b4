"""The time of a score sheet in schools of different age.

    python -m benchmarks.scoresheets [--rounds 300]

Starts a PostgreSQL of its own from the wheel, and schools with 1, 3, 9 and 30 terms on record: a class of 40
students goes through them, with 12 subjects and 4 assessments of each in a term, everyone with every score
(57,600 gradebook entries in the end). The service answers in this process, as WSGI. The schools take turns,
request after request, so that other work of the machine meets all. Each request reads the score sheet
of the last term: 40 students with 4 scores each, after any past.
Prints the median milliseconds for each school, and the ratio of the longest past to the shortest.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time

from benchmarks.schools import School, Schools, Taught, schools

PASTS = (1, 3, 9, 30)  # terms
STUDENTS, SUBJECTS, ASSESSMENTS = 40, 12, 4
TERMS_OF_A_YEAR = 3


def school_with_a_past(here: Schools, terms: int) -> tuple[School, Taught]:
    """Make a school with so many terms; return it with the teaching of the last."""
    school = here.create(students=STUDENTS)
    year = 2000
    last: list[Taught] = []
    while terms:
        of_year = min(terms, TERMS_OF_A_YEAR)
        last = school.teach(year=year, terms=of_year, subjects=SUBJECTS, assessments=ASSESSMENTS)
        school.score(last)
        terms, year = terms - of_year, year + 1
    school.analyze()
    return school, last[-1]


def measure(measured: list[tuple[School, Taught]], rounds: int) -> list[float]:
    """Let the schools take turns; return the median milliseconds of each."""
    times: list[list[float]] = [[] for _ in measured]
    gc.collect()
    gc.freeze()
    for number in range(rounds + rounds // 10):
        for (school, last), durations in zip(measured, times, strict=True):
            began = time.perf_counter()
            answer = school.get(f"/scoresheets/{last.subject}/scoresheet?term={last.term}")
            took = (time.perf_counter() - began) * 1000
            if number >= rounds // 10:  # those before warm up
                durations.append(took)
            elif [len(line["gradebooks"]) for line in json.loads(answer)] != [ASSESSMENTS] * STUDENTS:
                raise SystemExit("the score sheet is not what it should be")
    return [statistics.median(durations) for durations in times]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    with schools() as here:
        medians = measure([school_with_a_past(here, terms) for terms in PASTS], rounds)
    for terms, median in zip(PASTS, medians, strict=True):
        print(f"{terms:2} terms  {median:5.2f} ms")
    print(f"ratio of {PASTS[-1]} terms to {PASTS[0]}: {medians[-1] / medians[0]:.2f}")


if __name__ == "__main__":
    main()
