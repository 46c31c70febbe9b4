"""The recipes of docs/contributing.md are followed as they are written, in a copy of the project.

The steps by hand of a recipe are a patch; the other files are written by the recipe's scripts. The quick run asserts
that the patch fits, names no file but the recipe's, and changes the document as the recipe says; before a release the
checks named by the recipe have nothing to say.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from school_service.auth.signing_key import SigningKey

ROOT = Path(__file__).parents[2]
PATCHES = Path(__file__).with_name("recipes")


@dataclass(frozen=True)
class Recipe:
    """A recipe by its heading: the patch, the scripts that are run after it, and the members of the document then."""

    heading: str
    patch: str
    scripts: tuple[tuple[str, ...], ...]
    made: tuple[str, ...]

    @property
    def text(self) -> str:
        """The recipe as it is written."""
        page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
        return page.partition(f"\n## {self.heading}\n")[2].partition("\n## ")[0]

    @property
    def files(self) -> set[str]:
        """The files that the patch changes."""
        return set(re.findall(r"^\+\+\+ b/(.+)$", (PATCHES / self.patch).read_text(encoding="utf-8"), re.M))

    @property
    def checks(self) -> list[str]:
        """The modules of tests named by the recipe's table, and the changed ones."""
        table = self.text.partition("| forgotten |")[2]
        named = {*re.findall(r"`(tests/[\w/]+\.py)`", table), *self.files}
        return sorted(name for name in named if re.search(r"/test_\w+\.py$", name))


RECIPES = (
    Recipe(
        "Add a field",
        "field.patch",
        (
            ("-m", "school_service", "tenants", "revision", "Blood group of students"),
            ("-m", "school_service", "tenants", "check"),
            ("docs/write_facts.py",),
            ("docs/write_api_guide.py",),
            ("docs/write_examples.py",),
        ),
        ("components", "schemas", "Student", "properties", "blood_group"),
    ),
    Recipe(
        "Add an operation",
        "operation.patch",
        (("docs/write_examples.py",), ("docs/write_api_guide.py",), ("-m", "tests.write_operations")),
        ("paths", "/grade-configs/{id}", "get"),
    ),
)
each = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.heading)


def run(copy: Path, *arguments: str, **settings: str) -> str:
    """Run Python in the copy, on the modules of the copy; it must end well."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(copy), **settings},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, (arguments, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


def tracked() -> list[str]:
    """List the files of the project, the new ones too."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(listing, cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout
    return [name for name in output.split("\0") if name and (ROOT / name).is_file()]


def patched(folder: Path, *recipes: Recipe) -> Path:
    """Copy the project with its compiled modules, and apply the recipes' steps by hand."""
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
        if name.endswith(".py") and (compiled := Path(cache_from_source(str(ROOT / name)))).is_file():
            (folder / compiled.relative_to(ROOT)).parent.mkdir(exist_ok=True)
            shutil.copy2(compiled, folder / compiled.relative_to(ROOT))
    for recipe in recipes:
        apply = ["git", "apply", "--unsafe-paths", f"--directory={folder}", str(PATCHES / recipe.patch)]
        done = subprocess.run(apply, cwd="/", capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stderr
    return folder


@each
def test_no_other_files_are_written_than_the_recipe_names(recipe):
    assert len(recipe.files) >= 4
    assert {name for name in recipe.files if f"`{name}`" not in recipe.text} == set()
    assert all((ROOT / name).is_file() for name in recipe.checks)


@pytest.mark.program
def test_the_patched_program_documents_the_recipes(tmp_path):
    copy = patched(tmp_path / "copy", *RECIPES)

    settings = {
        "DATABASE_URL": "postgresql://user@host/schools",
        "SIGNING_KEY": SigningKey.generate().to_pem(),
    }
    document = json.loads(run(copy, "-m", "school_service", "openapi", "print", **settings))
    for recipe in RECIPES:
        part = document
        for member in recipe.made:
            assert member in part
            part = part[member]
    modules = {name for recipe in RECIPES for name in recipe.files if name.endswith(".py")}
    run(copy, "-m", "ruff", "check", "--no-cache", *sorted(modules))


def write_revision(copy: Path) -> None:
    """Name the newest revision in the changelog; its number depends on the migrations that are there."""
    newest = max(path.name[:5] for path in (copy / "migrations" / "tenant" / "versions").glob("t*.py"))
    page = copy / "CHANGELOG.md"
    text = page.read_text(encoding="utf-8")
    row = re.sub(r"(\| schools \| `t\d+` to )`t\d+`", rf"\1`{newest}`", text, count=1)
    page.write_text(row, encoding="utf-8")


@pytest.mark.release
@pytest.mark.program
@each
def test_the_checks_have_nothing_to_say(recipe, tmp_path):
    copy = patched(tmp_path / "copy", recipe)

    for script in recipe.scripts:
        run(copy, *script)
    write_revision(copy)
    run(copy, "-m", "pytest", "-n", "0", "-q", "-x", "-m", "not program and not release", *recipe.checks)
