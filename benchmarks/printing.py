"""The cost of printing report cards: processor time, the printer's process included, and memory.

    python -m benchmarks.printing [--rounds 10]

Starts a PostgreSQL of its own from the wheel, and a school with 40 students in a class, who take 12 subjects with 4
assessments each in a term; submits and publishes them. The service answers in this process, as WSGI, with a letterhead
that has a logo, and codes that verify the cards.

Prints milliseconds of processor time, the least of all rounds: other processes at the same time take caches and
processors from both. `empty` is Python that sets one word with typst. Cards, each of another student, and classes
are printed by a printer that starts for them (`new`), cards by one that has printed others, too. Then the
growth of this process over 20 classes, and the size of printers.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import psutil
from flask import current_app

from benchmarks.schools import schools

STUDENTS, SUBJECTS, ASSESSMENTS, CLASSES = 40, 12, 4, 20

EMPTY = """
import typst
typst.Compiler(ignore_system_fonts=True).compile({"main.typ": b"word"}, format="pdf")
"""


def printers() -> list[int]:
    """The process ids of the printers of this process, where the kernel says it, without looking at all processes."""
    children = [
        pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()
    ]
    return [int(pid) for pid in children if b"printing" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def processor_time() -> float:
    """Seconds of processor time of this process, its printers and those it has started that have ended."""
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    # The clock of another process, which Linux names so: /proc counts hundredths of a second.
    of_printers = sum(time.clock_gettime((~printer << 3) | 2) for printer in printers())
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime + of_printers


def least(work: Callable[[], object], rounds: int) -> float:
    """The least milliseconds of processor time of so many rounds."""
    times = []
    for _ in range(rounds):
        began = processor_time()
        work()
        times.append((processor_time() - began) * 1000)
    return min(times)


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
            students = connection.exec_driver_sql("SELECT id FROM students").scalars().all()
        for subject in subjects:
            school.post(f"/cohort-subjects/{subject}/submission", {"term": "FIRST"})
        school.post("/publications", {"term": "FIRST", "batches": [batch]})
        # Typst remembers its work: the same card again would cost less than another student's.
        cards = itertools.cycle(f"/students/{student}/report-card?term=FIRST" for student in students)
        together = f"/report-cards?batch={batch}&term=FIRST"

        def by_new(path: str) -> bytes:
            current_app.extensions["printers"].close()
            return school.get(path)

        command = [sys.executable, "-I", "-c", EMPTY]
        empty = least(lambda: subprocess.run(command, check=True, env={}), rounds)
        new_card = least(lambda: by_new(next(cards)), rounds)
        card = least(lambda: school.get(next(cards)), max(rounds, STUDENTS))
        (printer,) = printers()
        standing = psutil.Process(printer).memory_info().rss
        own = psutil.Process()
        school.get(together)
        before = own.memory_info().rss
        of_class = least(lambda: by_new(together), CLASSES)
        grown = own.memory_info().rss - before
        apart = least(lambda: by_new(f"{together}&format=zip"), 3)
        sizes = len(school.get(next(cards))), len(school.get(together))
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"empty           {empty:7.1f} ms")
    print(f"one card, new   {new_card:7.1f} ms, {sizes[0] / 1024:.0f} KiB")
    print(f"one card        {card:7.1f} ms")
    print(
        f"class of {STUDENTS}, new{of_class:7.1f} ms, {of_class / STUDENTS:.1f} ms a card, {sizes[1] / 1024:.0f} KiB"
    )
    print(f"the same, zip   {apart:7.1f} ms, {apart / STUDENTS:.1f} ms a card")
    print(f"after {CLASSES} classes {grown / 2**20:+.1f} MiB")
    print(
        f"a printer after {STUDENTS} cards {standing / 2**20:.0f} MiB, the largest of all {largest / 1024:.0f} MiB"
    )


if __name__ == "__main__":
    main()
