"""Blocks of docs/deployment that write files of a server, run from the pages' own text in a folder of the tests.

Shell functions stand in for apt-get, systemd, certbot, npm and the groups of the machine.
"""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from school_service.auth.signing_key import SigningKey
from school_service.config import Settings
from tests.docs.test_deployment import FOLDER, ROOT, blocks
from tests.docs.test_proxies import free_port

pytestmark = pytest.mark.program

NAME = "schools.example.net"
DROP_INS = "etc/systemd/system/school-service@.service.d"
STANDING_IN = """
set -eu
for command in apt-get systemctl certbot npm node chgrp curl pip promtool; do
    eval "$command() { echo $command \\"\\$*\\"; }"
done
"""
with_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed.")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folders of a server's that its packages have made."""
    folders = ("school-service", "nginx", "caddy", "prometheus", "ssl/private")
    for folder in folders:
        (tmp_path / "etc" / folder).mkdir(parents=True)
    (tmp_path / "usr/local/src").mkdir(parents=True)
    (tmp_path / "usr/local/src/school-service").symlink_to(ROOT)
    return tmp_path


def block(page: str, beginning: str) -> str:
    """The only block of a page in which a text stands."""
    (text,) = [code for code in blocks(FOLDER / page) if beginning in code]
    return text


def below(text: str, root: Path) -> str:
    """A text with the folders of a server below one of the tests."""
    return re.sub(r"(?<![\w.}])/(etc|var|usr/local/src|srv|opt)/", rf"{root}/\1/", text)


def paste(root: Path, *scripts: str) -> str:
    """Run blocks one after the other, in the folder of the source; return their output."""
    text = "\n".join(scripts).replace("schools.example.org\nmkdir", f"{NAME}\nmkdir")
    text = text.replace("schools.example.org\napt-get", f"{NAME}\napt-get")
    # A program that the page names by its path is a function here, too.
    text = text.replace("/opt/school-service/bin/pip", "pip")
    done = subprocess.run(
        ["bash", "-c", STANDING_IN + below(text, root)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


# proxies.md


def certificates(root: Path) -> tuple[Path, Path]:
    return root / f"etc/ssl/{NAME}.pem", root / f"etc/ssl/private/{NAME}.key"


@with_openssl
def test_nginx_answers_by_the_name_and_the_certificate_that_the_blocks_make(root):
    scripts = (block("proxies.md", "nginx.conf >"), block("proxies.md", "nginx -t"))
    own = 'nginx() { echo nginx "$*"; }\n'

    said = paste(root, own, *scripts)

    assert "nginx -t\nsystemctl restart nginx\n" in said
    assert f"--resolve {NAME}:443:127.0.0.1 https://{NAME}/health" in said
    configuration = (root / "etc/nginx/nginx.conf").read_text(encoding="utf-8")
    assert "schools.example.org" not in configuration
    for file in certificates(root):
        assert file.stat().st_size > 0
        assert below(configuration, root).count(str(file)) == 1
    names = subprocess.run(
        ["openssl", "x509", "-noout", "-ext", "subjectAltName", "-in", certificates(root)[0]],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert f"DNS:{NAME}" in names.stdout


def test_certbot_renews_the_certificate_that_nginx_reads(root):
    paste(root, block("proxies.md", "nginx.conf >"))
    file = root / "etc/nginx/nginx.conf"
    file.write_text(below(file.read_text(encoding="utf-8"), root), encoding="utf-8")

    said = paste(root, f"NAME={NAME}", block("proxies.md", "certbot certonly"))

    assert re.findall(r"^(?:systemctl|certbot) \S+", said, re.M) == [
        "systemctl stop",
        "certbot certonly",
        "systemctl start",
        "certbot reconfigure",
    ]
    configuration = file.read_text(encoding="utf-8")
    assert re.findall(r"ssl_certificate(?:_key)? (\S+);", configuration) == [
        f"{root}/etc/letsencrypt/live/{NAME}/{name}.pem" for name in ("fullchain", "privkey")
    ]
    # The files of a challenge are where nginx looks for them.
    (webroot,) = re.findall(r"--webroot-path (\S+)", said)
    assert Path(webroot).is_dir()
    assert webroot in configuration


@with_openssl
def test_caddy_may_read_its_key_and_others_may_not(root):
    said = paste(root, block("proxies.md", "caddy/Caddyfile"))

    chain, key = certificates(root)
    assert f"chgrp caddy {key.parent} {key}" in said
    assert mode(key) == 0o640
    assert mode(key.parent) & stat.S_IXGRP
    configuration = (root / "etc/caddy/Caddyfile").read_text(encoding="utf-8")
    assert f"tls {chain} {key}" in below(configuration, root)


# debian.md


def settings(root: Path) -> Settings:
    """The settings that the service reads from the file, with a key of the tests."""
    key = root / "etc/school-service/key.pem"
    key.write_text(SigningKey.generate().to_pem(), encoding="utf-8")
    key.chmod(0o600)
    lines = (root / "etc/school-service/env").read_text(encoding="utf-8").split()
    return Settings.load(
        {
            "DATABASE_URL": "postgresql://u@h/schools",
            "SIGNING_KEY_FILE": str(key),
            **dict(line.split("=", 1) for line in lines),
        }
    )


def test_the_service_reads_workers_and_redis_from_the_file_they_are_appended_to(root):
    said = paste(root, block("debian.md", "WORKERS=4"), block("debian.md", "redis-server"))

    server = settings(root)
    assert server.pool_size == 32
    assert server.rate_limit_storage == "redis://127.0.0.1:6379"
    assert "WORKERS=4\n" in (root / "etc/school-service/env").read_text(encoding="utf-8")
    assert said.count("systemctl restart school-service@8000") == 2


def unit(file: Path) -> configparser.SectionProxy:
    """The service of a unit; of a setting that is there twice, the last."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(re.sub(r"\\\n\s*", "", file.read_text(encoding="utf-8")))
    return parser["Service"]


def test_gunicorn_takes_the_command_of_the_unit_that_the_block_writes(root):
    said = paste(root, block("debian.md", "gunicorn.conf <<"))

    assert "pip install -q gunicorn >= 27.0.1\nsystemctl daemon-reload\n" in said
    command = shlex.split(
        unit(root / DROP_INS / "gunicorn.conf")["ExecStart"].replace("%i", str(free_port()))
    )
    assert Path(command[0]).name == "gunicorn"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from gunicorn.app.wsgiapp import run; sys.exit(run())",
            *command[1:-1],
            "--check-config",
            "wsgiref.simple_server:demo_app",
        ],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=180,
        check=False,
    )
    assert (done.returncode, command[-1]) == (0, "wsgi:app"), done.stderr


# The monitoring page


def test_metrics_are_where_prometheus_scrapes_them(root):
    page = "monitoring/README.md"

    # grep of the block finds the line, or the block fails.
    scraped = 'curl() { [ "$2" = http://127.0.0.1:18000/metrics ]; echo school_service_info; }\n'
    said = paste(root, scraped, block(page, "METRICS_PORT"), block(page, "prometheus.yml <<"))

    port = unit(root / DROP_INS / "metrics.conf")["Environment"].removeprefix("METRICS_PORT=")
    assert port.replace("%i", "8000") == "18000"
    assert "\nschool_service_info\n" in said
    file = root / "etc/prometheus/prometheus.yml"
    (job,) = yaml.safe_load(file.read_text(encoding="utf-8"))["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["127.0.0.1:18000"]}]
    for name in yaml.safe_load(file.read_text(encoding="utf-8"))["rule_files"]:
        copied = (file.parent / name).read_text(encoding="utf-8")
        assert copied == (FOLDER / "monitoring/alerts.yml").read_text(encoding="utf-8")
    assert f"promtool check config {file}\nsystemctl restart prometheus\n" in said


# identity-providers.md


@with_openssl
def test_the_provider_has_the_clients_whose_secret_the_page_asks_a_token_with(root):
    page = "identity-providers.md"

    said = paste(root, block(page, "clients.json <<"), block(page, "SECRET="))

    folder = root / "srv/oidc-provider"
    assert f"node {(folder / 'oidc-provider.mjs').name}" in said
    (client,) = json.loads((folder / "clients.json").read_text(encoding="utf-8"))
    assert mode(folder / "clients.json") == 0o600
    assert re.fullmatch("[0-9a-f]{48}", client["secret"])
    assert f"--user front-end:{client['secret']} " in said
