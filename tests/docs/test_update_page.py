"""docs/deployment/update.md: nginx's file and the unit replace the files of 0.2.0, by the page's own blocks."""

from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import urllib3

from tests.cli.program import ROOT, wait_for
from tests.docs.test_proxies import NAME as EXAMPLE
from tests.docs.test_proxies import Echo, free_port, program
from tests.docs.test_proxies import serving as answering
from tests.features.results.golden.released import COMMITS

pytestmark = [pytest.mark.program, pytest.mark.operate]

PAGE = (ROOT / "docs" / "deployment" / "update.md").read_text(encoding="utf-8")
UNIT = "docs/deployment/systemd/school-service@.service"
NAME = "classes.example.com"


def block(name: str) -> str:
    """The block of the page with this name in its first line."""
    (text,) = re.findall(rf"^```sh\n# {re.escape(name)}\n(.*?)^```", PAGE, re.S | re.M)
    return text


def of_0_2_0(path: str) -> str:
    """Read a file of release 0.2.0."""
    done = subprocess.run(
        ["git", "show", f"{COMMITS['0.2.0']}:{path}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("release 0.2.0 is not in this clone: git fetch --unshallow brings it")
    return done.stdout


def pasted(folder: Path, script: str, functions: str) -> str:
    """Paste a block, with the folders of the server below another one; it must end well, or its last line says why."""
    preamble = f"set -eu\nRELEASE=0.4.0 BEFORE=0.2.0\n{functions}\n"
    places = "|".join(("/etc/systemd", "/etc/nginx", "/opt/"))
    script = re.sub(rf"(?<![\w.])({places})", rf"{folder}\1", script)
    script = script.replace("/usr/local/src/school-service", str(ROOT))
    done = subprocess.run(
        ["bash", "-c", preamble + script], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, (script, done.stdout, done.stderr)
    return done.stdout


# nginx


@pytest.fixture
def server():
    """A folder for a server's files that nginx's workers may read."""
    with TemporaryDirectory(prefix="school-tests-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        yield folder


def adapted(text: str, folder: Path, secure: int, upstream: int) -> str:
    """A configuration of nginx with places and ports of this test."""
    for old, new in (
        (r"^user www-data;$", "daemon off;"),
        (r"/run/nginx\.pid", f"{folder}/nginx.pid"),
        (r"/var/log/nginx", str(folder)),
        (r"127\.0\.0\.1:8000", f"127.0.0.1:{upstream}"),
        (r"listen 80\b", f"listen 127.0.0.1:{secure + 1}"),
        (r"listen 443\b", f"listen 127.0.0.1:{secure}"),
    ):
        text, count = re.subn(old, new, text, flags=re.M)
        assert count, old
    return text


def logged(folder: Path, configuration: str, path: str) -> str:
    """The lines of a request in nginx's access log."""
    secure = free_port()
    with answering(handler=Echo) as upstream:
        file = folder / "served.conf"
        file.write_text(adapted(configuration, folder, secure, upstream), encoding="utf-8")
        command = [program("nginx"), "-p", str(folder), "-c", str(file)]
        log = folder / "access.log"
        log.unlink(missing_ok=True)
        with (folder / "output").open("wb") as output:
            started = subprocess.Popen(command, stdout=output, stderr=output)
            try:
                pool = urllib3.HTTPSConnectionPool(
                    "127.0.0.1",
                    secure,
                    cert_reqs="CERT_NONE",
                    assert_hostname=False,
                    server_hostname=NAME,
                    retries=False,
                )

                def answer() -> int | None:
                    assert started.poll() is None, (folder / "output").read_text(encoding="utf-8")
                    with suppress(urllib3.exceptions.HTTPError):
                        return pool.request("GET", path, headers={"Host": NAME}).status
                    return None

                assert wait_for(answer, "nginx") == 200
                pool.close()
                return wait_for(lambda: log.exists() and log.read_text(encoding="utf-8"), "its log")
            finally:
                started.terminate()
                started.wait(60)


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed.")
def test_nginx_of_0_2_0_gets_the_file_of_this_release_with_its_name_and_certificate(server):
    nginx = program("nginx")
    (server / "etc/nginx").mkdir(parents=True)
    chain, key = server / "live.pem", server / "live.key"
    made = (
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-subj",
        f"/CN={NAME}",
    )
    subprocess.run(["openssl", *made, "-out", chain, "-keyout", key], check=True, capture_output=True)
    configuration = server / "etc/nginx/nginx.conf"
    was = of_0_2_0("docs/proxies/nginx.conf")
    was = was.replace(f"/etc/ssl/{EXAMPLE}.pem", str(chain)).replace(
        f"/etc/ssl/private/{EXAMPLE}.key", str(key)
    )
    configuration.write_text(was.replace(EXAMPLE, NAME), encoding="utf-8")
    path = "/auth/queens/invitation/K7QM-4TZ9-XDR2"
    # So it is without the step.
    assert path in logged(server, configuration.read_text(encoding="utf-8"), path)

    functions = (
        f'nginx() {{ sed "s#/var/log/nginx#{server}#" {configuration} > {server}/tested.conf &&'
        f' {nginx} "$@" -p {server} -c {server}/tested.conf; }}\n'
        'systemctl() { echo "$*"; }'
    )
    said = pasted(server, block("nginx").replace(f"NAME={EXAMPLE}", f"NAME={NAME}"), functions)

    assert said == "reload nginx\n"
    assert (server / "etc/nginx/nginx.conf-0.2.0").read_text(encoding="utf-8") == was.replace(EXAMPLE, NAME)
    text = configuration.read_text(encoding="utf-8")
    assert EXAMPLE not in text
    for line in (f"server_name {NAME};", f"ssl_certificate {chain};", f"ssl_certificate_key {key};"):
        assert line in text
    lines = logged(server, text, path)
    assert "/auth/.../invitation/..." in lines
    assert "K7QM" not in lines


# The unit

STANDING_IN = """
school-service() { echo "$PROGRAM $*" | sed "s#.*/opt#/opt#" >> $LOG; }
systemctl() {
    echo "systemctl $*" >> $LOG
    [ "$1" != disable ] || rm "$WANTED/$3"
    [ "$1" != enable ] || ln -s ../school-service@.service "$WANTED/$3.service"
}
"""


def test_the_unit_of_0_2_0_gives_way_to_workers_and_comes_back(tmp_path):
    systemd = tmp_path / "etc/systemd/system"
    wanted = systemd / "multi-user.target.wants"
    for folder in (wanted, systemd / "school-service@.service.d", tmp_path / "opt/school-service-0.2.0"):
        folder.mkdir(parents=True)
    unit = systemd / "school-service@.service"
    old = of_0_2_0(UNIT)
    unit.write_text(old, encoding="utf-8")
    beside = "[Service]\nCPUAffinity=%i\n"
    (systemd / "school-service@.service.d/affinity.conf").write_text(beside, encoding="utf-8")
    for number in (0, 1):
        (wanted / f"school-service@{number}.service").symlink_to("../school-service@.service")
    link = tmp_path / "opt/school-service"
    link.symlink_to(tmp_path / "opt/school-service-0.2.0")
    log = tmp_path / "log"
    functions = f"LOG={log} WANTED={wanted} PROGRAM=/opt/school-service\n{STANDING_IN}"

    pasted(tmp_path, block("from 0.2.0"), functions)

    assert log.read_text(encoding="utf-8").splitlines() == [
        "/opt/school-service-0.4.0 tenants init",
        "systemctl disable --now school-service@0.service",
        "systemctl disable --now school-service@1.service",
        "systemctl daemon-reload",
        "systemctl enable --now school-service@8000",
        "/opt/school-service tenants migrate",
    ]
    assert unit.read_text(encoding="utf-8") == (ROOT / UNIT).read_text(encoding="utf-8")
    assert [file.name for file in wanted.iterdir()] == ["school-service@8000.service"]
    assert not (systemd / "school-service@.service.d").exists()
    assert link.readlink().name == "school-service-0.4.0"
    kept = tmp_path / "opt/school-service-0.2.0"
    assert (kept / "school-service@.service.d/affinity.conf").read_text(encoding="utf-8") == beside

    enabled = wanted / "school-service@8000.service"
    enabled.rename(wanted / "school-service@8000")
    pasted(tmp_path, block("back to the unit of 0.2.0"), functions)

    assert unit.read_text(encoding="utf-8") == old
    assert [file.name for file in wanted.iterdir()] == ["school-service@0.service"]
    assert link.readlink().name == "school-service-0.2.0"
