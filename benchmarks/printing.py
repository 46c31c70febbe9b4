"""What printing report cards costs: processor time, that of the printer's process included, and memory.

    python -m benchmarks.printing [--rounds 10]

Starts a PostgreSQL of its own from the wheel, and a school with 40 students in a class, who take 12 subjects with 4
assessments each in a term; submits and publishes them. The service answers in this process, as WSGI, with a letterhead
that has a logo, and codes that verify the cards.

Prints milliseconds of processor time, the least of all rounds: what other processes do at the same time takes caches
and processors from both. `empty` is a printer that sets one word. Then how much this process has grown over 20 classes,
and how large the largest printer was.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import zlib
from collections.abc import Callable

import psutil

from benchmarks.schools import schools

STUDENTS, SUBJECTS, ASSESSMENTS, CLASSES = 40, 12, 4, 20

EMPTY = """
import typst
typst.Compiler(ignore_system_fonts=True).compile({"main.typ": b"word"}, format="pdf")
"""


def processor_time() -> float:
    """Seconds of processor time of this process and of those that it has started and that have ended."""
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def least(work: Callable[[], object], rounds: int) -> float:
    """The least milliseconds of processor time of so many rounds."""
    found = []
    for _ in range(rounds):
        began = processor_time()
        work()
        found.append((processor_time() - began) * 1000)
    return min(found)


def logo() -> bytes:
    """A PNG of 240 by 240 pixels with a gradient."""
    rows = b"".join(b"\0" + bytes(value for x in range(240) for value in (x, y, 160)) for y in range(240))

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content).to_bytes(4, "big")
        return len(content).to_bytes(4, "big") + kind + content + checksum

    header = (240).to_bytes(4, "big") * 2 + bytes((8, 2, 0, 0, 0))
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    with schools(public_url="https://schools.example.org") as here:
        school = here.create(students=STUDENTS)
        taught = school.teach(year=2025, terms=1, subjects=SUBJECTS, assessments=ASSESSMENTS)
        school.score(taught)
        school.execute("UPDATE assessments SET publish_scores = true")
        school.execute("UPDATE gradebook_entries SET score = mod(abs(hashtext(id::text)), 81) / 4.0")
        school.upload("/letterhead/logo", "image", logo(), method="PUT")
        with school.connect() as connection:
            batch = str(connection.exec_driver_sql("SELECT id FROM batches").scalar_one())
            subjects = connection.exec_driver_sql("SELECT id FROM cohort_subjects").scalars().all()
            student = str(connection.exec_driver_sql("SELECT id FROM students LIMIT 1").scalar_one())
        for subject in subjects:
            school.post(f"/cohort-subjects/{subject}/submission", {"term": "FIRST"})
        school.post("/publications", {"term": "FIRST", "batches": [batch]})
        alone = f"/students/{student}/report-card?term=FIRST"
        together = f"/report-cards?batch={batch}&term=FIRST"
        command = [sys.executable, "-I", "-c", EMPTY]
        empty = least(lambda: subprocess.run(command, check=True, env={}), rounds)
        card = least(lambda: school.get(alone), rounds)
        own = psutil.Process()
        school.get(together)
        before = own.memory_info().rss
        of_class = least(lambda: school.get(together), CLASSES)
        grown = own.memory_info().rss - before
        apart = least(lambda: school.get(f"{together}&format=zip"), 3)
        sizes = len(school.get(alone)), len(school.get(together))
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"empty           {empty:7.1f} ms")
    print(f"one card        {card:7.1f} ms, {sizes[0] / 1024:.0f} KiB")
    print(
        f"class of {STUDENTS}     {of_class:7.1f} ms, {of_class / STUDENTS:.1f} ms a card, {sizes[1] / 1024:.0f} KiB"
    )
    print(f"the same, zip   {apart:7.1f} ms, {apart / STUDENTS:.1f} ms a card")
    print(f"after {CLASSES} classes {grown / 2**20:+.1f} MiB, the largest printer {largest / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
