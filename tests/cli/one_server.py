"""Runs every verb on an installation of one server, in this one process, and lists the imported modules.

    python -m tests.cli.one_server FOLDER

Prints a JSON object: the verbs that were run, and the modules that are there afterwards.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import shutil
import signal
import sys
import threading
import urllib.request
from pathlib import Path
from uuid import uuid4

import click
from click.testing import CliRunner

from school_service.cli.program import program
from tenants.migrations.migration_sql import TENANT

SCHOOL, CLIENT = str(uuid4()), "robot"


def verbs(folder: Path) -> list[tuple[int, list[str]]]:
    """List calls of the program, each with its exit status, in an order in which they can be run."""
    archive, history = str(folder / "school.zip"), str(folder / "history")
    shutil.copytree(TENANT, history)
    return [
        (0, ["tenants", "init"]),
        (0, ["tenants", "create", "Kings College", "--id", SCHOOL]),
        (0, ["tenants", "list"]),
        (0, ["tenants", "show", SCHOOL]),
        (0, ["tenants", "status"]),
        (1, ["tenants", "status", "--nodes"]),
        (1, ["tenants", "move", SCHOOL, "elsewhere:5432"]),
        (0, ["tenants", "migrate"]),
        (0, ["tenants", "suspend", SCHOOL]),
        (0, ["tenants", "resume", SCHOOL]),
        (0, ["tenants", "rename", SCHOOL, "Queens College"]),
        (0, ["tenants", "edit", SCHOOL, "--motto", "Pass on the torch"]),
        (0, ["tenants", "end-sessions", SCHOOL]),
        (0, ["tenants", "reset-admin", SCHOOL]),
        (0, ["tenants", "switch-roles", SCHOOL, "--add-seeded", "--yes"]),
        (0, ["tenants", "erase-audit", SCHOOL]),
        (0, ["tenants", "prune-audit", SCHOOL, str(folder / "log.ndjson"), "--older-than", "365"]),
        (0, ["tenants", "export", SCHOOL, str(folder / "school.ndjson")]),
        (0, ["tenants", "export-oneroster", SCHOOL, str(folder / "session.zip")]),
        (0, ["clients", "create", CLIENT, "--school", SCHOOL, "--permission", "read:classrooms"]),
        (0, ["clients", "list"]),
        (0, ["clients", "edit", CLIENT, "--tells-addresses"]),
        (0, ["clients", "rotate", CLIENT]),
        (0, ["clients", "revoke", CLIENT]),
        (0, ["tenants", "backup", SCHOOL, archive]),
        (0, ["tenants", "verify"]),
        (0, ["tenants", "restore", archive, "--id", str(uuid4())]),
        (0, ["serve", "--port", "0"]),
        (0, ["tenants", "delete", SCHOOL, "--yes", "--no-backup"]),
        (0, ["tenants", "check"]),
        (0, ["check"]),
        (0, ["tenants", "revision", "Nothing", "--empty", "--history", history]),
        (0, ["tenants", "baseline", "--history", history]),
    ]


class Visitor(logging.Handler):
    """Asks the service for its health once it serves, and stops it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Begin where the record says that the service serves."""
        if record.getMessage() == "serving":
            threading.Thread(target=self._visit, args=(record.__dict__["address"],)).start()

    def _visit(self, address: str) -> None:
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=60) as answer:
                answer.read()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)


def main(folder: Path) -> None:
    """Run the verbs; ends with an AssertionError where one has another exit status than it should."""
    gc.disable()  # imported modules live on
    logging.getLogger("school_service").addHandler(Visitor())
    calls = verbs(folder)
    for status, arguments in calls:
        done = CliRunner().invoke(program, arguments)
        assert done.exit_code == status, (arguments, done.output, done.exception)
    groups = {name: group for name, group in program.commands.items() if isinstance(group, click.Group)}
    run = {(arguments[0], arguments[1] if arguments[0] in groups else "") for _, arguments in calls}
    left = [
        f"{name} {verb}"
        for name, group in groups.items()
        for verb in group.commands
        if (name, verb) not in run
    ]
    json.dump({"not run": left, "modules": sorted(sys.modules)}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
