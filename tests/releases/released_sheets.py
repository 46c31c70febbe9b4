"""Sheets that were downloaded before an update: people fill them in for weeks, so that the next release takes them.

    python -m tests.releases.released_sheets 0.3.0

makes the sheets of a release anew, by the release's own program, of the school in the backup of that release. It is
done once: for a release that writes sheets otherwise.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.features.results.golden.released import backup_of, run_released

FOLDER = Path(__file__).parent


def sheets_of(release: str) -> Path:
    """Find the folder with the sheets of a release."""
    return FOLDER / f"sheets-{release}"


def main(release: str) -> None:
    """Download the sheets of a release."""
    sheets_of(release).mkdir(exist_ok=True)
    run_released(release, FOLDER / "download_sheets.py", backup_of(release), sheets_of(release))


if __name__ == "__main__":
    main(*sys.argv[1:])
