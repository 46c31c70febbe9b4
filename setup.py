"""What setup.cfg can't say: a package is built from what is there now, and knows the commit that it is built from."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).parent
COMMIT_FILE = Path("school_service", "commit.txt")  # school_service/release.py reads it


def commit() -> str | None:
    """Name the commit of the work tree; None where there is none, or files of it were changed."""
    written = ROOT / COMMIT_FILE
    if written.is_file():  # of a source distribution
        return written.read_text(encoding="ascii")
    if not (ROOT / ".git").exists():  # git would look in the folders above
        return None
    try:
        changed = _git("status", "--porcelain", "--untracked-files=no")
        return None if changed else _git("rev-parse", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def write_commit(folder: str) -> None:
    """Write the commit below a folder that is being packed."""
    if (name := commit()) is not None:
        (Path(folder) / COMMIT_FILE).write_text(name, encoding="ascii")


class BuildPackages(build_py):
    """Copies the packages, and nothing that an earlier build has left: a file that is gone would be installed again."""

    def run(self) -> None:
        """Copy the packages into an empty folder."""
        if self.editable_mode:
            super().run()
            return
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        write_commit(self.build_lib)


class SourceDistribution(sdist):
    """Packs the sources with the commit that they are of."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Copy the sources."""
        super().make_release_tree(base_dir, files)
        write_commit(base_dir)


setup(cmdclass={"build_py": BuildPackages, "sdist": SourceDistribution})
