"""The metrics of all workers as those of one service, for the one port asked by Prometheus.

Counts are added up over the workers, ended ones among them: no count ever goes back. Gauges are added up over the
present workers. The database is asked by one worker alone.
"""

from __future__ import annotations

import logging
import socket
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from school_service.serving.worker import LENGTH, WITH_DATABASE, WITHOUT_DATABASE

PATIENCE = 2.0  # seconds that a scrape waits for the workers: more than one waits for the database
MOST_RECEIVED = 256 * 1024  # bytes at once
BUSIEST = "school_service_busiest_school_requests"
BUSIEST_NAMED = 10
LARGEST = frozenset(
    {
        "school_service_info",
        "school_service_provider_keys_age_seconds",
        "process_start_time_seconds",
        "process_max_fds",
    }
)
"""Metrics with one value for all workers, or with the worst as the value."""
_COUNTED = frozenset({"counter", "histogram", "summary"})

_Key = tuple[str, tuple[tuple[str, str], ...]]

_log = logging.getLogger(__name__)


class _Worker:
    """A worker, over the connection for asking it; `last` is its last answer."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unread = b""
        self._owes = False
        self.last: dict[str, Metric] = {}

    def ask(self, what: bytes) -> None:
        """Ask for its metrics, unless it still owes an answer, and then has to have come by now; raises OSError."""
        if self._owes:
            self.hear(time.monotonic())
        self._connection.sendall(what)
        self._owes = True

    def hear(self, deadline: float) -> None:
        """Read its answer, or its last word, until a moment of `time.monotonic`; raises OSError."""
        while self._owes and self._read(deadline):
            pass

    def hear_last(self) -> None:
        """Read all its words, once it has ended; raises OSError."""
        while self._read(time.monotonic() + PATIENCE):
            pass
        self._connection.close()

    def _read(self, deadline: float) -> bool:
        # 0: the bytes that have come by now; without any it raises BlockingIOError.
        self._connection.settimeout(max(0.0, deadline - time.monotonic()))
        part = self._connection.recv(MOST_RECEIVED)
        self._unread += part
        while len(self._unread) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self._unread)[0]
            if len(self._unread) < end:
                break
            self.last = _parse(zlib.decompress(self._unread[LENGTH.size : end]).decode())
            self._unread = self._unread[end:]
            self._owes = False
        return bool(part)


class MergedMetrics:
    """The metrics of so many workers, by the number of their process.

    One thread alone speaks with the workers: the caller of `add` or `remove` does not wait for it.
    """

    def __init__(self, workers: int) -> None:
        self._wanted = workers
        self._thread = ThreadPoolExecutor(1, "metrics of workers")
        self._workers: dict[int, _Worker] = {}
        self._ended: dict[str, Metric] = {}
        self._died = self._hung = 0
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def add(self, pid: int, connection: socket.socket) -> None:
        """Ask a worker from now on, over this connection."""
        self._thread.submit(self._add, pid, connection)

    def remove(self, pid: int, *, died: bool, hung: bool = False) -> None:
        """Keep the counts of an ended worker; of one that died or hung, as far as it was asked."""
        self._thread.submit(self._remove, pid, died, hung)

    def collect(self) -> Iterator[Metric]:
        """Ask every worker, and add up; for one without an answer in time, its last answer counts.

        One that owed an answer before is not waited for again: a worker that hangs costs one scrape PATIENCE.
        """
        yield from self._thread.submit(self._collect).result()

    def describe(self) -> list[Metric]:
        """Name nothing beforehand: the registry would collect."""
        return []

    def _add(self, pid: int, connection: socket.socket) -> None:
        self._workers[pid] = _Worker(connection)

    def _remove(self, pid: int, died: bool, hung: bool) -> None:
        self._died += died
        self._hung += hung
        worker = self._workers.pop(pid, None)
        if worker is None:
            return
        try:
            worker.hear_last()
        except OSError as error:
            _log.debug("a worker's last metrics are lost", extra={"reason": str(error)})
        counted = {name: metric for name, metric in worker.last.items() if metric.type in _COUNTED}
        self._ended = _merged([self._ended, counted])

    def _collect(self) -> list[Metric]:
        workers = list(self._workers.values())
        asked = []
        for number, worker in enumerate(workers):
            try:
                worker.ask(WITHOUT_DATABASE if number else WITH_DATABASE)
                asked.append(worker)
            except OSError as error:
                _log.debug("a worker was not asked for metrics", extra={"reason": str(error)})
        deadline = time.monotonic() + PATIENCE
        for worker in asked:
            try:
                worker.hear(deadline)
            except OSError as error:
                _log.warning("a worker did not tell its metrics in time", extra={"reason": str(error)})
        return [
            GaugeMetricFamily("school_service_workers_wanted", "Workers that are to serve.", self._wanted),
            GaugeMetricFamily("school_service_workers", "Workers that are there.", len(workers)),
            CounterMetricFamily("school_service_workers_died", "Workers that ended untold.", self._died),
            CounterMetricFamily("school_service_workers_hung", "Workers killed as they hung.", self._hung),
            *_merged([self._ended, *(worker.last for worker in workers)]).values(),
        ]


def _parse(content: str) -> dict[str, Metric]:
    return {metric.name: metric for metric in text_string_to_metric_families(content)}


def _merged(of_workers: list[dict[str, Metric]]) -> dict[str, Metric]:
    """Add up metrics of several workers, sample by sample."""
    merged: dict[str, Metric] = {}
    samples: dict[str, dict[_Key, Sample]] = {}
    for metrics in of_workers:
        for name, metric in metrics.items():
            if name not in merged:
                merged[name] = Metric(name, metric.documentation, metric.type)
                samples[name] = {}
            by_key = samples[name]
            for sample in metric.samples:
                key = sample.name, tuple(sorted(sample.labels.items()))
                before = by_key.get(key)
                if before is not None:
                    both = before.value, sample.value
                    sample = sample._replace(value=max(both) if name in LARGEST else sum(both))
                by_key[key] = sample
    for name, by_key in samples.items():
        kept = list(by_key.values())
        if name == BUSIEST:
            kept = sorted(kept, key=lambda sample: (-sample.value, sample.labels["school"]))[:BUSIEST_NAMED]
        merged[name].samples = kept
    return merged
