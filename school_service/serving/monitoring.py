"""Metrics of one process for Prometheus: counted in requests, written when they are asked for.

docs/operators.md lists them. Only a process with METRICS_PORT imports this module.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.process_collector import ProcessCollector
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from school_service.core.database import METRICS_BIND, db, placement
from school_service.core.refused_shares import refusals
from school_service.printing.printers import Printers
from school_service.release import this_release
from school_service.web.app_state import AppState
from school_service.web.application import Service
from school_service.web.error_responses import ALL_CAUSES
from school_service.web.request_log import Answered
from tenants.connections.dialect import SessionPool
from tenants.driver_errors import first_line
from tenants.migrations.migration_sql import head, revisions
from tenants.registry.schools import backups, failed_migrations, schools

METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
REQUEST_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)  # seconds
QUEUE_BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)  # seconds
BUSIEST = 10  # schools that are named
BACKUPS_NAMED = 100  # schools whose newest backup is the oldest
WINDOW = 300.0  # seconds over which their requests are counted
SCHOOLS_COUNTED = 10_000  # in a window: the others of a larger installation are not
ASK_AFTER = 15.0  # seconds that an answer of the database's is used for
PATIENCE = 1.0  # seconds that a scrape waits for the database
STALE_AFTER = 120.0  # seconds after which an answer is none

# The sign-in page leads on with 303, and with 422 it asks once more.
_SIGN_INS = {
    200: "succeeded",
    303: "succeeded",
    401: "wrong",
    422: "wrong",
    429: "too_many",
    503: "unavailable",
}
_REFUSED = "refused"

_log = logging.getLogger(__name__)

# When each counter was made would be as many time series again.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Queue(Protocol):
    """The queue of requests for a thread."""

    def count_waiting(self) -> int:
        """Count them."""


class BusiestSchools:
    """How many requests of each school were answered in the last whole WINDOW seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._begun = clock()
        self._counts: dict[str, int] = {}
        self._last: dict[str, int] = {}

    def count(self, school: str) -> None:
        """Count a request of a school."""
        with self._lock:
            self._turn()
            counts = self._counts
            if school in counts:
                counts[school] += 1
            elif len(counts) < SCHOOLS_COUNTED:
                counts[school] = 1

    def top(self) -> list[tuple[str, int]]:
        """List the BUSIEST of them, the busiest first."""
        with self._lock:
            self._turn()
            counts = self._last.items()
        return sorted(counts, key=lambda item: (-item[1], item[0]))[:BUSIEST]

    def _turn(self) -> None:
        """End the window if it is over; if it has long been, an empty window follows it."""
        passed = self._clock() - self._begun
        if passed >= WINDOW:
            self._last = self._counts if passed < 2 * WINDOW else {}
            self._counts = {}
            self._begun += passed - passed % WINDOW


class Schools(NamedTuple):
    """The state of the registry: schools by revision, failed migrations, and the longest times without a backup.

    The moments (seconds since 1970) are those of a school's newest backup; if it has none, of the school's creation.
    """

    revisions: dict[str, int]
    failed_migrations: int
    backups: dict[str, float]


@dataclass
class DatabaseState:
    """The schools of the database, asked for by one thread at a time: a scrape waits PATIENCE for it at most.

    `ask` raises if the database does not answer.
    """

    ask: Callable[[], Schools]
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _asking: threading.Thread | None = None
    _begun: float | None = None
    _answers: bool = False
    _counts: tuple[Schools, float] | None = None

    def refresh(self) -> None:
        """Ask anew if the last time was more than ASK_AFTER seconds ago."""
        with self._lock:
            if self._asking is None and (self._begun is None or self.clock() - self._begun >= ASK_AFTER):
                self._begun = self.clock()
                self._asking = threading.Thread(target=self._run, name="metrics of schools", daemon=True)
                self._asking.start()
            asking = self._asking
        if asking is not None:
            asking.join(PATIENCE)

    def read(self) -> tuple[bool, Schools | None]:
        """Tell whether the database answers, and give its answer.

        None if the last answer is older than STALE_AFTER seconds.
        """
        with self._lock:
            fresh = self._counts is not None and self.clock() - self._counts[1] <= STALE_AFTER
            return self._answers and self._asking is None, self._counts[0] if self._counts and fresh else None

    def _run(self) -> None:
        schools: Schools | None = None
        try:
            schools = self.ask()
        except (DBAPIError, PoolTimeout) as error:
            reason = first_line(error.orig) if isinstance(error, DBAPIError) else str(error)
            _log.warning("the schools can't be counted for the metrics", extra={"reason": reason[:500]})
        finally:
            with self._lock:
                self._asking, self._answers = None, schools is not None
                if schools is not None:
                    self._counts = schools, self.clock()


class ProcessMetrics:
    """The metrics of an application in this process; `queue` holds its waiting requests, if the server has one."""

    def __init__(self, app: Service) -> None:
        self._app = app
        self._asks_database = True
        self.queue: Queue | None = None
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.busiest = BusiestSchools()
        self.database = DatabaseState(self._ask_registry)
        self._requests = Histogram(
            "school_service_request_seconds",
            "Time that the service worked on requests.",
            ("route", "method", "status"),
            buckets=REQUEST_BUCKETS,
            registry=self.registry,
        )
        # One for each kind of request: to find it by its labels would cost more than to count with it.
        self._of_kind = cache(self._make_kind)
        self._queue_seconds = Histogram(
            "school_service_queue_seconds",
            "Time that requests waited for a thread and for their school's share.",
            buckets=QUEUE_BUCKETS,
            registry=self.registry,
        )
        self._unavailable = Counter(
            "school_service_unavailable_total", "Answers of 503.", ("cause",), registry=self.registry
        )
        self._sign_ins = Counter(
            "school_service_sign_ins_total",
            "Attempts to sign in, of users and of clients at the token endpoint.",
            ("of", "outcome"),
            registry=self.registry,
        )
        # From the start, at 0: a counter that appears with its first event hides that from a rate.
        for cause in ALL_CAUSES:
            self._unavailable.labels(cause)
        for of in ("user", "client"):
            for outcome in {*_SIGN_INS.values(), _REFUSED}:
                self._sign_ins.labels(of, outcome)
        self.registry.register(self)

    def observe(self, answered: Answered) -> None:
        """Count an answered request, by the application or without it."""
        method = answered.method if answered.method in METHODS else "other"
        self._of_kind(answered.route, method, answered.status).observe(answered.took)
        self._queue_seconds.observe(answered.waited)
        if answered.status == 503 and answered.cause is not None:
            self._unavailable.labels(answered.cause).inc()
        if answered.attempt_of is not None:
            self._sign_ins.labels(answered.attempt_of, _SIGN_INS.get(answered.status, _REFUSED)).inc()
        # Of a school that was entered: anybody can write anything into a header.
        if answered.school_id is not None:
            self.busiest.count(str(answered.school_id))

    def write(self, *, database: bool) -> bytes:
        """Write all of them as Prometheus reads them, those of the database only if so wanted."""
        self._asks_database = database
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Read the present figures, as opposed to counts, for a scrape."""
        state: AppState = self._app.extensions["school-service"]
        release = this_release().as_labels()
        yield _figures("info", "The release that runs.", tuple(release), [(tuple(release.values()), 1)])
        waiting = state.shares.count_waiting() + (self.queue.count_waiting() if self.queue else 0)
        yield _figure("queue_length", "Requests that wait for a thread or their school's share.", waiting)
        yield _figures(
            "refused_by_shares",
            "Work that was refused since a share was used up, by resource.",
            ("share",),
            [((share,), count) for share, count in refusals().items()],
            CounterMetricFamily,
        )
        yield from self._printers()
        yield from self._pools()
        keys = state.verifier.outside_keys
        if keys is not None:
            age = keys.age()
            words = "Seconds since the identity provider's keys were fetched; +Inf: never."
            yield _figure("provider_keys_age_seconds", words, float("inf") if age is None else age)
        if self._asks_database:
            yield from self._schools()
        yield _figures(
            "busiest_school_requests",
            f"Requests of the {BUSIEST} busiest schools in the last whole {WINDOW:.0f} seconds.",
            ("school",),
            [((school,), count) for school, count in self.busiest.top()],
        )

    def describe(self) -> list[Metric]:
        """Name nothing beforehand: the registry would collect, and with it ask the database."""
        return []

    def _make_kind(self, route: str | None, method: str, status: int) -> Histogram:
        return self._requests.labels(route or "none", method, str(status))

    def _printers(self) -> Iterator[Metric]:
        of_app: Printers = self._app.extensions["printers"]
        yield _figure("printers_waiting", "Files that wait for a printer just now.", of_app.count_waiting())
        yield _figures(
            "prints",
            "Files that were to be printed, by how that ended.",
            ("outcome",),
            [((outcome,), count) for outcome, count in of_app.count_outcomes().items()],
            CounterMetricFamily,
        )

    def _pools(self) -> Iterator[Metric]:
        with self._app.app_context():
            engines = [*db.engines.items(), *placement().engines_by_server().items()]
            pools: list[tuple[str, Any]] = [(key or "schools", engine.pool) for key, engine in engines]
        used = [((name, "in_use"), pool.checkedout()) for name, pool in pools]
        idle = [((name, "idle"), pool.checkedin()) for name, pool in pools]
        yield _figures("pool_connections", "Connections of a pool.", ("pool", "state"), [*used, *idle])
        waits = [(name, pool.connections.waits) for name, pool in pools if isinstance(pool, SessionPool)]
        yield _figures(
            "pool_waiting",
            "Requests that wait for a connection of a pool.",
            ("pool",),
            [((name,), wait.waiting) for name, wait in waits],
        )
        waited = SummaryMetricFamily(
            "school_service_pool_wait_seconds",
            "Time that requests waited for a connection.",
            labels=("pool",),
        )
        for name, wait in waits:
            waited.add_metric((name,), wait.count, wait.seconds)
        yield waited

    def _schools(self) -> Iterator[Metric]:
        self.database.refresh()
        answers, schools = self.database.read()
        yield _figure("database_up", "Whether the database answers.", answers)
        if schools is None:
            return
        counts, older = schools.revisions, {*revisions()} - {head()}
        states = {
            "current": counts.get(head(), 0),
            "behind": sum(count for revision, count in counts.items() if revision in older),
        }
        states["newer"] = sum(counts.values()) - sum(states.values())
        yield _figures(
            "schools",
            "Schools by the revision of their schema: at this version's, behind it, newer.",
            ("state",),
            [((state,), count) for state, count in states.items()],
        )
        yield _figure("failed_migrations", "Schools whose last migration failed.", schools.failed_migrations)
        now = time.time()
        yield _figures(
            "backup_age_seconds",
            f"Seconds since a school's newest backup, or since it was made; of the {BACKUPS_NAMED} longest ago.",
            ("school",),
            [((school,), max(0.0, now - moment)) for school, moment in schools.backups.items()],
        )

    def _ask_registry(self) -> Schools:
        there = schools.c.deletion.is_(None)
        by_revision = (
            select(schools.c.revision, func.count().label("schools"))
            .where(there)
            .group_by(schools.c.revision)
        )
        failed = select(func.count()).select_from(failed_migrations)
        moment = func.coalesce(backups.c.taken_at, schools.c.created_at)
        oldest = (
            select(schools.c.id, moment.label("moment"))
            .outerjoin(backups, backups.c.school_id == schools.c.id)
            .where(there)
            .order_by(moment)
            .limit(BACKUPS_NAMED)
        )
        with self._app.app_context(), db.engines[METRICS_BIND].connect() as connection:
            return Schools(
                {row.revision: row.schools for row in connection.execute(by_revision)},
                connection.execute(failed).scalar_one(),
                {str(row.id): row.moment.timestamp() for row in connection.execute(oldest)},
            )


def count_requests(app: Service) -> ProcessMetrics:
    """Count the requests of an application from now on."""
    metrics = ProcessMetrics(app)
    app.observe = metrics.observe
    return metrics


def _figure(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(f"school_service_{name}", words, value)


def _figures(
    name: str,
    words: str,
    labels: tuple[str, ...],
    values: Iterable[tuple[tuple[str, ...], float]],
    kind: type[GaugeMetricFamily] | type[CounterMetricFamily] = GaugeMetricFamily,
) -> Metric:
    family = kind(f"school_service_{name}", words, labels=labels)
    for of, value in values:
        family.add_metric(of, value)
    return family
