"""The log, the metrics and the manifest of a backup name the running release."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import urllib3

from school_service import __version__
from tenants.migrations.migration_sql import head, registry_head
from tests.cli.program import ROOT

pytestmark = pytest.mark.program


def test_the_first_line_of_the_log_says_which_release_serves(service):
    first = service.log[0]

    assert (first["message"], first["level"]) == ("starting", "INFO")
    assert (first["version"], first["commit"]) == (__version__, None)
    assert first["revisions"] == {"registry": registry_head(), "schools": [head()]}


def test_nothing_that_is_imported_on_the_way_is_logged_before_it():
    written = (
        "from school_service.web.request_log import configure_logging; configure_logging('INFO');"
        "from school_service.release import log_release; log_release()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", written], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert [json.loads(line)["message"] for line in ended.stderr.splitlines()] == ["starting"]


def test_a_program_knows_its_release_without_alembic():
    asking = (
        "import sys; from school_service.release import this_release; this_release(); "
        "sys.exit('alembic' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", asking], cwd=ROOT, check=False).returncode == 0


def test_the_metrics_and_a_backup_say_it_too(service, cli, folder):
    port = next(line["address"] for line in service.log if line["message"] == "serving metrics")
    metrics = urllib3.request("GET", f"{port}/metrics").data.decode()
    (info,) = [line for line in metrics.splitlines() if line.startswith("school_service_info{")]
    for label in (
        f'version="{__version__}"',
        'commit="unknown"',
        f'registry="{registry_head()}"',
        f'schools="{head()}"',
    ):
        assert label in info

    school = json.loads(cli("tenants", "create", "Released College", "--json").stdout)["id"]
    file = folder / "released.zip"
    assert cli("tenants", "backup", school, str(file)).exit_code == 0
    manifest = json.loads(zipfile.ZipFile(file).read("manifest.json"))
    assert (
        manifest["program"] == f"{__version__} (commit unknown; registry {registry_head()}; schools {head()})"
    )
    assert cli("tenants", "delete", school, "--yes", "--no-backup").exit_code == 0


def test_a_build_takes_nothing_over_from_the_one_before(tmp_path):
    pytest.importorskip("setuptools")
    shutil.copy(ROOT / "setup.py", tmp_path)
    (tmp_path / "setup.cfg").write_text(
        "[metadata]\nname = x\n[options]\npackages = school_service\n", encoding="ascii"
    )
    for name in ("school_service/__init__.py", "build/lib/school_service/gone.py"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    for arguments in (("init", "-q"), ("add", "school_service"), ("commit", "-q", "-m", "x")):
        author = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *author, *arguments], cwd=tmp_path, check=True)

    def build() -> set[str]:
        command = [sys.executable, "-W", "ignore", "setup.py", "-q", "build_py"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        return {
            str(file.relative_to(tmp_path / "build/lib"))
            for file in Path(tmp_path / "build/lib").rglob("*.*")
        }

    assert build() == {"school_service/__init__.py", "school_service/commit.txt"}
    told = (tmp_path / "build/lib/school_service/commit.txt").read_text(encoding="ascii")
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert told == done.stdout
    # With files changed since, the commit is not told.
    (tmp_path / "school_service/__init__.py").write_text("changed = True\n", encoding="ascii")
    assert build() == {"school_service/__init__.py"}
