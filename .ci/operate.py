"""Runs the tests marked `operate`: recipes of docs/deployment with the programs that operators have beside ours.

    python .ci/operate.py [pytest's arguments]

Programs that need no installation come from Debian's packages into a folder of their own. Each other that is missing
is named, and the exit status is 1, since its tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
# By the program: the package of Debian that has it, and whether a copy of its files runs.
PROGRAMS = {
    "prometheus": ("prometheus", True),
    "promtool": ("prometheus", True),
    "nginx": ("nginx", False),
    "caddy": ("caddy", True),
    "openssl": ("openssl", False),
    "pgbouncer": ("pgbouncer", False),
    "redis-server": ("redis-server", False),
    "systemd-analyze": ("systemd", False),
}


def missing(path: str) -> list[str]:
    """List the programs that are not there."""
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


def unpack(packages: set[str], folder: Path) -> None:
    """Unpack packages of Debian into a folder, as far as they can be had."""
    for package in sorted(packages):
        done = subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=False)
        if done.returncode == 0:
            for file in folder.glob(f"{package}_*.deb"):
                subprocess.run(["dpkg", "-x", file, folder], check=True)


def main(arguments: list[str]) -> int:
    """Find or unpack the programs, and run the tests."""
    with tempfile.TemporaryDirectory(prefix="school-operate-") as made:
        folder = Path(made)
        wanted = {package for name in missing(PATH) for package, copied in [PROGRAMS[name]] if copied}
        if wanted and shutil.which("apt-get"):
            unpack(wanted, folder)
        path = f"{PATH}:{folder}/usr/bin"
        absent = missing(path)
        for name in absent:
            print(f"{name} is missing, its tests are skipped: apt-get install {PROGRAMS[name][0]}")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-n", "0", "-m", "operate", *arguments],
            env={**os.environ, "PATH": path},
            check=False,
        )
    return done.returncode or bool(absent)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
