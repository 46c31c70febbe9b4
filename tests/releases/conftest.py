"""The programs of earlier releases, from this repository's history."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.cli.program import ROOT
from tests.features.results.golden.released import COMMITS


@pytest.fixture(scope="session")
def release_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of release 0.2.0, as a PYTHONPATH takes it."""
    return _release("0.2.0", tmp_path_factory)


@pytest.fixture(scope="session")
def release_0_3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of release 0.3.0."""
    return _release("0.3.0", tmp_path_factory)


def _release(version: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    # A release is pure Python, so that a wheel of it has the same files.
    archive = subprocess.run(
        ["git", "archive", COMMITS[version], "school_service", "tenants", "migrations"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if archive.returncode:
        pytest.skip(f"the commit {COMMITS[version]} is not in this clone: git fetch --unshallow brings it")
    folder = tmp_path_factory.mktemp("release") / version
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder
