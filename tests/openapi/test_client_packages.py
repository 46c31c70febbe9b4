"""The packages of typed clients that a release has: strict types, and the examples on a demo with the package alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from html import unescape
from importlib import util
from pathlib import Path
from textwrap import indent
from zipfile import ZipFile

import pytest

from school_service import __version__
from tests.cli.program import running, working_directory
from tests.openapi.test_node_tools import HERE, STRICT, TOOLS

ROOT = Path(__file__).parents[2]
EXAMPLES = {
    "python": ROOT / "examples" / "enter_score.py",
    "typescript": ROOT / "examples" / "enter-score.ts",
}
# As STRICT, for Node, whose modules are found by their names.
NODE = (
    *(
        word
        for word in STRICT
        if word not in ("--noEmit", "--module", "esnext", "--moduleResolution", "bundler")
    ),
    *("--module", "nodenext"),
)

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(
        util.find_spec("openapi_python_client") is None
        or shutil.which("npm") is None
        or not (TOOLS / "tsc").exists(),
        reason="openapi-python-client or Node's tools are not installed: tox -e openapi installs and runs them.",
    ),
]


def do(*command, cwd, **settings):
    """Run a program to its good end; gives its output."""
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **settings}, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def packages(document, app, tmp_path_factory):
    """The folder of both packages."""
    folder = tmp_path_factory.mktemp("clients")
    written = folder / "openapi.json"
    written.write_text(app.json.dumps(document.spec), encoding="utf-8")
    do(sys.executable, ROOT / ".ci" / "clients.py", written, folder / "built", cwd=folder)
    return folder / "built"


@pytest.fixture(scope="module")
def python_client(packages, tmp_path_factory):
    """The folder that has the Python package installed."""
    folder = tmp_path_factory.mktemp("python")
    with ZipFile(packages / f"school_service_client-{__version__}-py3-none-any.whl") as wheel:
        wheel.extractall(folder)
    shutil.copy(EXAMPLES["python"], folder)
    return folder


@pytest.fixture(scope="module")
def typescript_client(packages, tmp_path_factory):
    """The folder with the TypeScript package and its dependencies installed, and the compiler's types of Node."""
    folder = tmp_path_factory.mktemp("typescript")
    modules = folder / "node_modules"
    modules.mkdir()
    for name in ("openapi-fetch", "openapi-typescript-helpers", "@types"):
        (modules / name).symlink_to(HERE / "node_modules" / name, target_is_directory=True)
    with tarfile.open(packages / f"school-service-client-{__version__}.tgz") as archive:
        archive.extractall(folder, filter="data")
    (folder / "package").rename(modules / "school-service-client")
    shutil.copy(EXAMPLES["typescript"], folder)
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def demo():
    """A demo, as an example takes it: its address, a school, its administrator's token, and an open assessment."""
    with working_directory() as cwd, running("demo", "--port", "0", cwd=cwd) as service:
        service.wait_for(lambda: "Ctrl-C stops" in service.printed, "the demo")
        details = json.loads((cwd / "school-data" / "demo.json").read_text(encoding="utf-8"))
        service.base_url, school = details["base_url"], details["schools"][0]
        client = service.client_token(details["client_id"], details["client_secret"])
        signed_in = service.ok(
            "POST", "/users/login", token=client, school=school["id"], body=school["admin"]
        )
        token = signed_in["access_token"]["access_token"]
        yield (service.base_url, school["id"], token, open_assessment(service, school["id"], token))
        service.end()


def open_assessment(service, school, token):
    """Name an assessment of a subject that is submitted for no arm."""
    rows = service.ok("GET", "/submissions?term=FIRST", token=token, school=school)
    submitted = {row["cohort_subject"] for row in rows if row["state"] != "OPEN"}
    row = next(row for row in rows if row["cohort_subject"] not in submitted)
    query = f"cohort={row['cohort']}&subject={row['cohort_subject']}&term={row['term']['id']}"
    return service.ok("GET", f"/assessments?{query}", token=token, school=school)["data"][0]["id"]


def handled(printed):
    """The example listed students, entered a score, and entered one once more after the sheet was stale."""
    *students, saved, stale, again = printed.splitlines()
    assert len(students) == 5
    assert (saved, again) == ("saved 1.25", "saved 3")
    assert stale.startswith("read the sheet again: ")


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_an_example_has_thirty_lines_at_most_and_no_cast(example):
    text = example.read_text(encoding="utf-8")

    assert len(text.splitlines()) <= 30
    loosened = {".py": ("cast", "Any", "type: ignore"), ".ts": (" as ", "any", "!.", "@ts-")}[example.suffix]
    assert [word for word in loosened if word in text] == []


def test_a_package_shows_the_example_and_names_the_version(packages, python_client, typescript_client):
    (about,) = python_client.glob("*.dist-info/METADATA")
    shown = (typescript_client / "node_modules" / "school-service-client" / "README.md").read_text(
        encoding="utf-8"
    )

    assert f"School Service {__version__} " in about.read_text(encoding="utf-8")
    assert EXAMPLES["python"].read_text(encoding="utf-8") in about.read_text(encoding="utf-8")
    assert f"School Service {__version__} " in shown
    assert EXAMPLES["typescript"].read_text(encoding="utf-8") in shown


def test_the_python_client_and_its_example_are_strictly_typed(python_client):
    (python_client / "mypy.ini").write_text("[mypy]\nstrict = True\n", encoding="utf-8")

    do(sys.executable, "-m", "mypy", "school_service_client", "enter_score.py", cwd=python_client)


def test_the_python_example_lists_students_enters_a_score_and_handles_a_stale_sheet(python_client, demo):
    printed = do(sys.executable, "enter_score.py", *demo, cwd=python_client, PYTHONPATH=str(python_client))

    handled(printed)


def test_the_typescript_example_compiles_strictly_and_does_the_same(typescript_client, demo):
    do(TOOLS / "tsc", *NODE, "enter-score.ts", cwd=typescript_client)

    handled(do("node", "enter-score.js", *demo, cwd=typescript_client))


def requests_of_guide(form):
    """The requests of the guide in a form."""
    page = (ROOT / "school_service" / "web" / "documentation" / "guide.html").read_text(encoding="utf-8")
    blocks = re.findall(rf'<pre data-form="{form}" hidden><code[^>]*>(.*?)</code>', page, re.DOTALL)
    assert len(blocks) > 80
    return [unescape(text) for text in blocks]


def test_the_requests_of_the_guide_in_python_are_strictly_typed(python_client):
    begin = "from school_service_client import AuthenticatedClient\n\nschool = ''\n"
    begin += "client = AuthenticatedClient(base_url='', token='')\n"
    functions = [
        f"def request_{number}() -> None:\n{indent(text, '    ')}"
        for number, text in enumerate(requests_of_guide("python"))
    ]
    (python_client / "guide.py").write_text("\n".join([begin, *functions]), encoding="utf-8")

    do(sys.executable, "-m", "mypy", "--strict", "guide.py", cwd=python_client)


def test_the_requests_of_the_guide_in_typescript_compile_strictly(typescript_client):
    begin = """import { schoolClient } from "school-service-client";
        const client = schoolClient("", "");
        const header = { "X-SCHOOL-ID": "" };
        declare const file: File;
    """
    blocks = [f"{{\n{text}\n}}" for text in requests_of_guide("typescript")]
    (typescript_client / "guide.ts").write_text("\n".join([begin, *blocks]), encoding="utf-8")

    do(TOOLS / "tsc", *NODE, "--noEmit", "guide.ts", cwd=typescript_client)


@pytest.mark.parametrize("program", ["postman", "bruno"])
def test_an_importer_takes_every_operation(program, document, app, tmp_path):
    if not (HERE / "node_modules" / "openapi-to-postmanv2").exists():
        pytest.skip("npm has not installed the importers: tox -e openapi does.")
    (tmp_path / "openapi.json").write_text(app.json.dumps(document.spec), encoding="utf-8")

    counted = do("node", HERE / "import.mjs", program, tmp_path / "openapi.json", cwd=HERE)

    assert int(counted) == len(document.operations())
