"""The program of release 0.2.0, from this repository's history."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.cli.program import ROOT

COMMIT = "033e7bc2c3329f85536d932d89bf40463df328d3"
"""Of release 0.2.0: its program is pure Python, so that a wheel of it has the same files."""


@pytest.fixture(scope="session")
def release_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of release 0.2.0, as a PYTHONPATH takes it."""
    archive = subprocess.run(
        ["git", "archive", COMMIT, "school_service", "tenants", "migrations"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if archive.returncode:
        pytest.skip(f"the commit {COMMIT} is not in this clone: git fetch --unshallow brings it")
    folder = tmp_path_factory.mktemp("release") / "0.2.0"
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder
