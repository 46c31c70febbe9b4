"""The packages of a deployment (requirements.txt): they fit setup.cfg, are whole, and are audited."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from configparser import ConfigParser
from importlib import metadata
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)(?: ; (.+?))? \\$", re.MULTILINE)
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}\b")


def blocks(text):
    """Divide the text into its pins, each with its line and its hashes."""
    starts = [match.start() for match in PIN.finditer(text)]
    return [text[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]


@pytest.fixture(scope="module")
def written():
    return (ROOT / "requirements.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pins(written):
    """The version of each package that is installed on this Python."""
    versions = {}
    for name, version, marker in PIN.findall(written):
        if not marker or Marker(marker).evaluate():
            assert canonicalize_name(name) not in versions
            versions[canonicalize_name(name)] = version
    return versions


def required():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = f"{setup['options']['install_requires']}\n{setup['options.extras_require']['redis']}"
    return [Requirement(line) for line in lines.splitlines() if line]


def test_every_requirement_of_setup_cfg_has_a_pin_within_its_bounds(pins):
    requirements = required()

    assert len(requirements) > 20
    for requirement in requirements:
        version = pins.get(canonicalize_name(requirement.name), "none")
        assert version in requirement.specifier, (str(requirement), version)


# These number their releases by the year, or let a number mean nothing but the order; they take nothing away without
# having warned of it for releases, or have no interface at all. Stubs follow the library that they are of.
WITHOUT_BOUND = {"argon2-cffi", "cryptography", "packaging", "pycountry", "tzdata"}


def test_no_later_major_release_is_installed_by_itself():
    """By the README's first command, which installs by setup.cfg."""
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = [setup["options"]["install_requires"], *setup["options.extras_require"].values()]
    requirements = [Requirement(line) for text in lines for line in text.splitlines() if line]

    unbounded = {
        requirement.name
        for requirement in requirements
        if not any(bound.operator in {"<", "<="} for bound in requirement.specifier)
    }

    assert len(requirements) > 40
    assert {name for name in unbounded if not name.startswith("types-")} == WITHOUT_BOUND


def test_every_pin_has_hashes(written):
    parts = blocks(written)

    assert len(parts) == len(re.findall(r"^\S+==", written, re.MULTILINE)) > 30
    for part in parts:
        assert HASH.search(part), part.splitlines()[0]


def test_the_requirements_of_pinned_packages_are_pinned_too(pins):
    """Else pip would refuse: with one hash given, it wants one for all."""
    for name in pins:
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # of an extra that is not installed here
        for need in map(Requirement, needs):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                version = pins.get(canonicalize_name(need.name))
                assert version is not None, f"{name} needs {need}"
                assert version in need.specifier, f"{name} needs {need}, not {version}"


# The audit


def audited(tmp_path, answer, status=0):
    program = tmp_path / "pip_audit.py"
    program.write_text(
        f"import sys; print({answer!r}); print('said why', file=sys.stderr); sys.exit({status})"
    )
    done = subprocess.run(
        [sys.executable, ROOT / ".ci" / "audit.py", sys.executable, program],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def report(*packages):
    return json.dumps({"dependencies": packages, "fixes": []})


SOUND = {"name": "flask", "version": "3.1.3", "vulns": []}
SKIPPED = {"name": "limits", "skip_reason": "not found"}
VULNERABLE = {
    "name": "urllib3",
    "version": "2.8.0",
    "vulns": [{"id": "PYSEC-2026-1", "fix_versions": ["2.8.1"], "aliases": [], "description": "…"}],
}


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (report(SOUND), 0, "no known vulnerabilities in 1 packages\n"),
        (report(SOUND, SKIPPED), 0, "no known vulnerabilities in 1 packages; not looked up: limits\n"),
        (
            report(SOUND, SKIPPED, VULNERABLE),
            1,
            "urllib3 2.8.0: PYSEC-2026-1, mended by 2.8.1\nvulnerable: 1 of 3 packages; not looked up: limits\n",
        ),
        (
            report(SKIPPED),
            0,
            "the advisories can't be reached, so nothing was looked up: they know none of the packages\n",
        ),
        ("Traceback", 0, "the advisories can't be reached, so nothing was looked up: said why\n"),
    ],
    ids=["none", "some not looked up", "one", "none looked up", "no answer"],
)
def test_the_audit_fails_for_a_vulnerability_alone(tmp_path, answer, status, said):
    ended, printed = audited(tmp_path, answer, status)

    *lines, last = printed.splitlines(keepends=True)
    assert (ended, "".join(lines)) == (status, said)
    assert last.startswith("never looked up here: what packages bring along that is not Python (libpq, ")
