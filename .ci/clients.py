"""Build the typed clients of a release, a Python package and one for TypeScript, from the service's OpenAPI document.

    python .ci/clients.py DOCUMENT FOLDER

Both have the version of the document. Needs the extra `openapi`, and Node's tools of tests/openapi/package.json.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / "tests" / "openapi" / "node_modules"
MODULE = "school_service_client"
STRICT = (
    *("--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes"),
    *("--target", "es2022", "--lib", "es2022,dom", "--module", "nodenext", "--moduleResolution", "nodenext"),
)


def main(document: Path, folder: Path) -> int:
    """Build both into the folder; returns the exit status."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="clients-") as name:
        build_python(document, Path(name), folder)
        build_typescript(document, Path(name), folder)
    return 0


def build_python(document: Path, work: Path, folder: Path) -> None:
    """Build the wheel of the Python client, of which a type checker has nothing to say."""
    place = begin(document, work, "python", ROOT / "examples" / "enter_score.py")
    settings = work / "settings.json"
    settings.write_text(json.dumps(generator_settings(json.loads(document.read_text(encoding="utf-8")))))
    generator = ("-m", "openapi_python_client", "generate", "--path", document, "--config", settings)
    run(sys.executable, *generator, "--meta", "none", "--output-path", place / MODULE, "--fail-on-warning")
    (place / MODULE / "py.typed").touch()
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, place)


def generator_settings(document: dict[str, Any]) -> dict[str, Any]:
    """Name the module of a model otherwise where the generator would give a member and the record one variable."""
    clashing = {
        name: {"class_name": name, "module_name": f"{snake_case(name)}_model"}
        for name, schema in document["components"]["schemas"].items()
        if snake_case(name) in schema.get("properties", {})
    }
    # Lines of JSON are a file to the generator, which knows no type for them.
    files = {"application/x-ndjson": "application/octet-stream"}
    return {
        "post_hooks": [],
        "package_name_override": MODULE,
        "class_overrides": clashing,
        "content_type_overrides": files,
    }


def snake_case(name: str) -> str:
    """Write a name as a module is named."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def build_typescript(document: Path, work: Path, folder: Path) -> None:
    """Compile the TypeScript client, and pack it."""
    place = begin(document, work, "typescript", ROOT / "examples" / "enter-score.ts")
    (place / "node_modules").symlink_to(TOOLS, target_is_directory=True)
    schema = place / "src" / "schema.ts"
    # A member of a body that has a default may be left out.
    options = ("--output", schema, "--root-types", "--default-non-nullable=false")
    run(TOOLS / ".bin" / "openapi-typescript", document, *options, cwd=place)
    built = ("--declaration", "--outDir", "dist", "src/index.ts")
    run(TOOLS / ".bin" / "tsc", *STRICT, *built, cwd=place)
    run("npm", "pack", "--silent", "--pack-destination", folder, cwd=place)


def begin(document: Path, work: Path, language: str, example: Path) -> Path:
    """Copy the frame of a package, with the version, the example and the licence; answers its folder."""
    version = json.loads(document.read_text(encoding="utf-8"))["info"]["version"]
    place = work / language
    shutil.copytree(ROOT / ".ci" / "clients" / language, place)
    shutil.copy(ROOT / "LICENSE", place)
    for file in place.iterdir():
        if file.is_file():
            text = file.read_text(encoding="utf-8").replace("VERSION", version)
            file.write_text(
                text.replace("EXAMPLE", example.read_text(encoding="utf-8").strip()), encoding="utf-8"
            )
    return place


def run(*command: str | Path, cwd: Path | None = None) -> None:
    """Run a program to its good end."""
    try:
        done = subprocess.run(
            [str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        sys.exit(
            f"{command[0]} is not installed: tox -e release and tox -e openapi install it, with Node and npm"
        )
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")


if __name__ == "__main__":
    sys.exit(main(*(Path(name).resolve() for name in sys.argv[1:])))
