"""The part of each of several workers in the service's threads, connections and requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from school_service.config import Settings

WAITING = 100
"""Requests of one school that wait for a thread, of all workers together; further ones are refused."""

DEFAULT_THREADS = 8  # two fewer than the default POOL_SIZE: no request waits for a connection
THREADS, CONNECTIONS = (
    4,
    5,
)  # of a worker where nothing else is said: a slow request leaves some to the others


@dataclass(frozen=True)
class Part:
    """A worker's part, rounded up: of the threads, the connections to the database, and a school's requests."""

    threads: int
    pool_size: int
    school_requests: int

    @classmethod
    def of(
        cls, settings: Settings, environment: Mapping[str, str], workers: int, threads: int | None
    ) -> Part:
        """Divide the figures of the settings, and `threads`, among so many workers; None: 8, or 4 for each worker.

        So is POOL_SIZE, if the environment has none: 10, or 5 for each.
        """
        pool_size = settings.pool_size
        if not environment.get("POOL_SIZE", "").strip():
            pool_size = max(pool_size, CONNECTIONS * workers)
        its_threads = _part(threads or max(DEFAULT_THREADS, THREADS * workers), workers)
        requests = settings.school_requests
        return cls(
            threads=its_threads,
            pool_size=_part(pool_size, workers),
            school_requests=max(1, its_threads // 2) if requests is None else _part(requests, workers),
        )

    def environment(self) -> dict[str, str]:
        """Write the settings of a worker."""
        return {
            "POOL_SIZE": str(self.pool_size),
            "SCHOOL_REQUESTS": str(self.school_requests),
        }


def waiting_of_each(workers: int) -> int:
    """Divide WAITING among so many workers."""
    return _part(WAITING, workers)


def _part(of: int, workers: int) -> int:
    return -(-of // workers)
