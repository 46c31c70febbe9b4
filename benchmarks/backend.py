"""The cost of a school and its callers to a backend of PostgreSQL: memory, and the reading of a caller's state.

    python -m benchmarks.backend [--schools 40] [--rounds 2000]

Starts a PostgreSQL of its own from the wheel, and schools with the same records. The service answers in this process,
with one connection.

Memory: GET /classrooms, and then a score sheet of 40 by 4 as well, twice in each school: the growth of
the backend's own memory for each school beyond the first ten, by PostgreSQL's memory contexts.
State: the transaction with which each request begins, which reads the caller's state and nothing else: processor time
of the backend beyond a transaction that reads a constant, for several callers in turn.
Linux alone tells both.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from uuid import UUID

from flask import Flask
from sqlalchemy import text

from benchmarks.entering import private_memory
from benchmarks.installation import Installation, installation
from benchmarks.many_schools import Callers, make_schools
from benchmarks.throughput import Caller
from school_service.app import create_app
from school_service.auth.tokens import issue_user_token
from school_service.core.database import db, engine_of
from school_service.web.app_state import app_state
from tenants.connections.binding import Reading, SchoolBinding
from tenants.connections.statements import read

FIRST = 10
CONTEXTS = "SELECT name, sum(total_bytes)::float / 1024 FROM pg_backend_memory_contexts GROUP BY 1"
SHOWN = 6
CONSTANT = Reading("SELECT '1'::text AS body, false AS empty")


class Backend:
    """The one backend of the service's schools, asked on its own connection."""

    def __init__(self, app: Flask) -> None:
        self._app = app

    def _ask(self, statement: str) -> list[tuple[object, ...]]:
        with (
            self._app.app_context(),
            closing(db.engine.raw_connection()) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
            rows: list[tuple[object, ...]] = cursor.fetchall()
            connection.rollback()
        return rows

    @property
    def process(self) -> Path:
        """Its folder below /proc."""
        return Path(f"/proc/{self._ask('SELECT pg_backend_pid()')[0][0]}")

    def memory(self) -> float:
        """Its memory of its own, in KB: without the shared buffers."""
        return private_memory(int(self.process.name)) * 1024

    def contexts(self) -> dict[str, float]:
        """The memory that PostgreSQL has asked for, in KB, by the name of the context."""
        return {str(name): float(str(kilobytes)) for name, kilobytes in self._ask(CONTEXTS)}


def memory(app: Flask, asked: Callers, paths: Sequence[str]) -> None:
    """Ask for these paths in every school, and print the cost of a school."""
    client, backend = app.test_client(), Backend(app)
    with app.app_context():
        db.engine.dispose()

    def visit(callers: Sequence[Caller]) -> None:
        for caller in callers:
            for path in (*paths, *paths):
                answer = client.get(path, headers=caller.headers)
                if answer.status_code != 200:
                    raise SystemExit(answer.text)

    visit(asked.callers[:FIRST])
    before, contexts = backend.memory(), backend.contexts()
    visit(asked.callers[FIRST:])
    schools = len(asked.callers) - FIRST
    grown = {name: (kb - contexts.get(name, 0)) / schools for name, kb in backend.contexts().items()}
    largest = sorted(grown.items(), key=lambda item: -item[1])[:SHOWN]
    print(
        f"memory of a school, {len(paths)} requests: {(backend.memory() - before) / schools:.0f} KB ("
        + ", ".join(f"{name} {kilobytes:.0f}" for name, kilobytes in largest)
        + ")"
    )


def state(here: Installation, app: Flask, school: Caller, rounds: int) -> None:
    """Read the state of several callers in turn, and print the time of each."""
    with here.tenancy.admin.begin() as connection:
        # One of the users that the records have, who teaches nobody, as a teacher.
        connection.exec_driver_sql(f'SET LOCAL search_path TO "{school.schema}"')
        teacher = connection.execute(
            text(
                "INSERT INTO user_roles (user_id, role_id, created_at) SELECT u.id, r.id, now() "
                "FROM users u, roles r WHERE u.username = 'user01' AND r.name = 'Teacher' RETURNING user_id"
            )
        ).scalar_one()
    school_id = UUID(school.school)
    backend = Backend(app)
    with app.app_context():
        settings = app_state()
        token = issue_user_token(settings.verifier.key, teacher, school_id, 1)["access_token"]
        reads: dict[str, Callable[[], object]] = {
            "a constant": lambda: read(
                engine_of(school_id),
                SchoolBinding(school_id, read_only=True),
                settings.binding_options,
                CONSTANT,
            )
        }
        for name, bearer, relations in (
            ("the administrator", school.token, False),
            ("the administrator, with relations", school.token, True),
            ("a teacher of nobody", token, False),
        ):
            binding = settings.verifier.verify(bearer).bind_to(
                school_id, settings.user_state, read_only=True, relations=relations
            )
            reads[name] = lambda binding=binding: read(  # type: ignore[misc]
                engine_of(school_id), binding, settings.binding_options
            )
        used: dict[str, list[float]] = {name: [] for name in reads}
        for send in reads.values():
            send()
        schedule = backend.process / "schedstat"
        for _ in range(rounds // 100):
            for name, send in reads.items():
                before = int(schedule.read_text().split()[0])
                for _ in range(100):
                    send()
                used[name].append((int(schedule.read_text().split()[0]) - before) / 100_000)
    least, *others = (statistics.median(times) for times in used.values())
    for name, time in zip(list(used)[1:], others, strict=True):
        print(f"state of {name}: {time - least:.0f} us (all of the transaction {time:.0f})")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schools", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=2000)
    arguments = parser.parse_args()
    with installation(on_disk=False) as here:
        asked = make_schools(here, arguments.schools)
        with here.tenancy.admin.begin() as connection:
            connection.exec_driver_sql(
                "GRANT SELECT ON pg_backend_memory_contexts TO public;"
                "GRANT EXECUTE ON FUNCTION pg_get_backend_memory_contexts() TO public"
            )
        here.environment.update({"POOL_SIZE": "1", "LOG_LEVEL": "ERROR"})
        app = create_app(here.settings)
        memory(app, asked, asked.paths[:1])
        memory(app, asked, asked.paths)
        state(here, app, asked.callers[0], arguments.rounds)
        with app.app_context():
            db.engine.dispose()


if __name__ == "__main__":
    main()
