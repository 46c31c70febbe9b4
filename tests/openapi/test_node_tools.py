"""The document for TypeScript: openapi-typescript's types under --strict; and the findings of Spectral and Redocly."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TOOLS = HERE / "node_modules" / ".bin"

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(
        shutil.which("node") is None or not (TOOLS / "tsc").exists(),
        reason="Node's tools of tests/openapi/package.json are not installed: tox -e openapi installs and runs them.",
    ),
]

# No tool asks for newer versions of itself, or tells anybody that it was used.
QUIET = {
    "REDOCLY_TELEMETRY": "off",
    "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
    "DO_NOT_TRACK": "1",
    "CI": "true",
}
STRICT = (
    *("--strict", "--noEmit", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes"),
    *("--target", "es2022", "--lib", "es2022,dom", "--module", "esnext", "--moduleResolution", "bundler"),
)


@pytest.fixture(scope="module")
def written(document, app, tmp_path_factory):
    """The document as a file, beside the tools."""
    folder = tmp_path_factory.mktemp("node")
    (folder / "node_modules").symlink_to(HERE / "node_modules", target_is_directory=True)
    path = folder / "openapi.json"
    path.write_text(json.dumps(json.loads(app.json.dumps(document.spec)), indent=1), encoding="utf-8")
    return path


def run(name, *arguments, cwd):
    """Run a tool; gives its exit status, its output, and its complaints."""
    return subprocess.run(
        [TOOLS / name, *arguments],
        cwd=cwd,
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_generated_types_fit_a_year_under_strict(written):
    folder = written.parent
    made = run("openapi-typescript", written.name, "--output", "schema.d.ts", cwd=folder)
    assert made.returncode == 0, made.stdout + made.stderr
    shutil.copy(HERE / "year.ts", folder)

    compiled = run("tsc", *STRICT, "year.ts", cwd=folder)

    assert (compiled.returncode, compiled.stdout) == (0, "")


@pytest.mark.parametrize("sound", [True, False], ids=["as it is", "with an operation spoilt"])
def test_spectral_has_nothing_to_say(written, sound):
    path = written if sound else spoilt(written)

    said = run(
        *("spectral", "lint", path.name, "--ruleset", HERE / "spectral.yaml", "--format", "json"),
        *("--fail-severity", "hint", "--quiet"),
        cwd=path.parent,
    )

    problems = {problem["code"] for problem in json.loads(said.stdout or "[]")}
    assert (said.returncode, problems) == ((0, set()) if sound else (1, {"operation-operationId"})), (
        said.stderr
    )


@pytest.mark.parametrize("sound", [True, False], ids=["as it is", "with an operation spoilt"])
def test_redocly_has_nothing_to_say(written, sound):
    path = written if sound else spoilt(written)

    said = run(
        "redocly", "lint", path.name, "--config", HERE / "redocly.yaml", "--format", "json", cwd=path.parent
    )

    problems = {problem["ruleId"] for problem in json.loads(said.stdout)["problems"]}
    assert (said.returncode, problems) == ((0, set()) if sound else (1, {"operation-operationId"})), (
        said.stderr
    )


def spoilt(path):
    """The document with an operation that has no id."""
    spec = json.loads(path.read_text(encoding="utf-8"))
    del spec["paths"]["/classrooms"]["get"]["operationId"]
    other = path.with_name("spoilt.json")
    other.write_text(json.dumps(spec), encoding="utf-8")
    return other
