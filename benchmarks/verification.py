"""The time of `GET /verify/{school}/{code}` where it tells nothing, for its time may tell nothing either.

    python -m benchmarks.verification [--rounds 500]

Starts a PostgreSQL of its own from the wheel, with three schools, one of them suspended and one in which cards can't be
verified; each has published one card. The service answers in this process, as WSGI, the cases in turn, each from an
address of its own. Prints the median of each in microseconds, and between which bounds the middle half is.
"""

from __future__ import annotations

import argparse
import time
from statistics import median, quantiles
from uuid import uuid4

from flask import current_app

from benchmarks.schools import School, schools


def published(school: School) -> str:
    """Publish a card; its code."""
    taught = school.teach(year=2025, terms=1, subjects=1, assessments=1)
    school.score(taught)
    school.post(f"/cohort-subjects/{taught[0].subject}/submission", {"term": "FIRST"})
    with school.connect() as connection:
        batch = str(connection.exec_driver_sql("SELECT id FROM batches").scalar_one())
    school.post("/publications", {"term": "FIRST", "batches": [batch]})
    with school.connect() as connection:
        return str(connection.exec_driver_sql("SELECT code FROM report_cards").scalar_one())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=500)
    rounds = parser.parse_args().rounds
    with schools() as here:
        places = [here.create(students=1) for _ in range(3)]
        codes = [published(school) for school in places]
        ids = [school.id for school in places]
        places[1].execute(f"UPDATE registry.schools SET status = 'suspended' WHERE id = '{ids[1]}'")
        places[2].patch("/result-settings", {"verification": False})
        unknown = [uuid4() for _ in range(rounds)]
        cases = {
            "told": lambda _: (ids[0], codes[0]),
            "unknown code": lambda code: (ids[0], code),
            "malformed code": lambda _: (ids[0], "x"),
            "unknown school": lambda school: (school, codes[0]),
            "malformed school": lambda _: ("x", codes[0]),
            "suspended": lambda _: (ids[1], codes[1]),
            "switched off": lambda _: (ids[2], codes[2]),
        }
        client = current_app.test_client()
        took: dict[str, list[float]] = {name: [] for name in cases}
        for number, value in enumerate(unknown):
            for name, address in cases.items():
                school_id, code = address(value)
                environ = {"REMOTE_ADDR": f"10.{number >> 8 & 255}.{number & 255}.1"}
                began = time.perf_counter()
                status = client.get(f"/verify/{school_id}/{code}", environ_overrides=environ).status_code
                took[name].append((time.perf_counter() - began) * 1_000_000)
                if status != (200 if name == "told" else 404):
                    raise SystemExit(f"{name}: {status}")
    for name, times in took.items():
        low, _, high = quantiles(times)
        print(f"{name:18}{median(times):8.0f} us   ({low:.0f} to {high:.0f})")


if __name__ == "__main__":
    main()
