"""Processor time of processes: the cost of work on a machine that has other work, too."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import psutil


def processor_time(processes: Iterable[psutil.Process]) -> float:
    """Add up the processor time of processes, in seconds."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def postgres_processes(folder: Path) -> list[psutil.Process]:
    """Find the processes of the benchmark's PostgreSQL, whose data are in the folder.

    Without workers of autovacuum, which end at any moment.
    """
    processes = []
    for process in psutil.process_iter():
        try:
            of_server = process.name() == "postgres" and str(folder) in process.cwd()
            if of_server and "autovacuum worker" not in " ".join(process.cmdline()):
                processes.append(process)
        except psutil.Error:
            continue
    return processes
