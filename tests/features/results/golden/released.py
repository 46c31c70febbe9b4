"""Backups of a school with published results, made by each release: its documents stay readable for ever.

    python -m tests.features.results.golden.released 0.2.0

makes the backup of a release anew, by the release's own program from this repository's history. It is done once: for a
release that stores documents of a new kind, name its commit here.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from school_service.auth.signing_key import SigningKey
from tests.cli.program import ROOT, environment
from tests.postgres import addresses, test_database, test_server

# Release 0.1.0 had no results.
COMMITS = {
    "0.2.0": "033e7bc2c3329f85536d932d89bf40463df328d3",
    "0.3.0": "026aabb7d91b370249061fbe59296892e39f3c07",
}
FOLDER = Path(__file__).parent
PASSWORD = "correct horse battery staple"


def backup_of(release: str) -> Path:
    """Find the backup of a release."""
    return FOLDER / f"release-{release}.zip"


def main(release: str) -> None:
    """Make the backup of a release."""
    backup_of(release).unlink(missing_ok=True)
    run_released(release, FOLDER / "fill_released.py", PASSWORD, backup_of(release))


def run_released(release: str, script: Path, *arguments: str | Path) -> None:
    """Run a script on the modules of a release, from this repository's history, with a server of its own."""
    archive = ["git", "archive", COMMITS[release], "school_service", "tenants", "migrations"]
    packed = subprocess.run(archive, cwd=ROOT, capture_output=True, check=True).stdout
    with (
        TemporaryDirectory() as folder,
        tarfile.open(fileobj=io.BytesIO(packed)) as files,
        test_server() as server,
        test_database(server) as (admin, serving),
    ):
        files.extractall(folder, filter="data")
        settings = {
            **addresses(admin, serving),
            "SIGNING_KEY": SigningKey.generate().to_pem(),
            "LOG_LEVEL": "ERROR",
        }
        subprocess.run(
            [sys.executable, script, *arguments],
            cwd=folder,
            env=environment(**settings, PYTHONPATH=folder),
            check=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
