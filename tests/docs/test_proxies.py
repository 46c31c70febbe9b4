"""The proxies' configurations in docs/proxies do what docs/operators.md says, run by the proxies themselves."""

from __future__ import annotations

import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import urllib3
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from school_service.app import FORM_OVERHEAD
from school_service.auth.tokens import MAX_TOKEN_LENGTH
from school_service.config import Settings
from school_service.server import HEADER_LIMIT, IDLE_TIMEOUT

pytestmark = pytest.mark.program

PROXIES = Path(__file__).parents[2] / "docs" / "proxies"
NAME = "schools.example.org"
DEADLINE = 20.0  # seconds that a proxy may take to start, or to stop


class Echo(BaseHTTPRequestHandler):
    """Stands for the service: answers with the headers and the length of the body that have come through."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        announced = int(self.headers["Content-Length"] or 0)
        length = len(self.rfile.read(announced))
        if length < announced:
            self.close_connection = True
            return
        body = json.dumps({"headers": dict(self.headers), "path": self.path, "length": length}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass

    def handle(self) -> None:
        # The proxy may break a request off.
        with suppress(ConnectionError):
            super().handle()


@pytest.fixture(scope="module")
def upstream() -> Iterator[int]:
    """The port of the server behind the proxy."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate of the proxy's name, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(hours=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    chain, secret = folder / "certificate.pem", folder / "key.pem"
    chain.write_bytes(made.public_bytes(Encoding.PEM))
    secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return chain, secret


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def adapted(file: str, changes: dict[str, str]) -> str:
    """Read an example with the places and ports of this run: every change must have something to change."""
    text = (PROXIES / file).read_text(encoding="utf-8")
    for pattern, replacement in changes.items():
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        assert count, f"{file} has no {pattern}"
    return text


class Proxy:
    """A proxy that runs, and how a client reaches it."""

    def __init__(self, plain: int, secure: int, chain: Path) -> None:
        context = ssl.create_default_context(cafile=str(chain))
        self.secure = urllib3.HTTPSConnectionPool(
            "127.0.0.1",
            secure,
            ssl_context=context,
            server_hostname=NAME,
            assert_hostname=NAME,
            retries=False,
        )
        self.plain = urllib3.HTTPConnectionPool("127.0.0.1", plain, retries=False)
        self.ports = (plain, secure)

    def request(self, method: str = "GET", path: str = "/users", **options) -> urllib3.BaseHTTPResponse:
        headers = {"Host": NAME, **options.pop("headers", {})}
        return self.secure.request(method, path, headers=headers, **options)


def program(name: str) -> str:
    found = shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def proxy(
    request: pytest.FixtureRequest,
    upstream: int,
    certificate: tuple[Path, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Proxy]:
    """The proxy of an example, as it is but for places and ports."""
    path = program(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    chain, key = certificate
    plain, secure = free_port(), free_port()
    common = {
        r"/etc/ssl/schools\.example\.org\.pem": str(chain),
        r"/etc/ssl/private/schools\.example\.org\.key": str(key),
        r"127\.0\.0\.1:8000": f"127.0.0.1:{upstream}",
    }
    if request.param == "nginx":
        changes = {
            **common,
            r"^user www-data;$": "daemon off;",
            r"/run/nginx\.pid": f"{folder}/nginx.pid",
            r"/var/log/nginx": str(folder),
            r"listen 80\b": f"listen 127.0.0.1:{plain}",
            r"listen 443\b": f"listen 127.0.0.1:{secure}",
        }
        written = folder / "nginx.conf"
        written.write_text(adapted("nginx.conf", changes), encoding="utf-8")
        command = [path, "-p", str(folder), "-c", str(written)]
        checked = subprocess.run([*command, "-t"], capture_output=True, text=True, timeout=DEADLINE)
        assert checked.returncode == 0, checked.stderr
        assert "[warn]" not in checked.stderr
    else:
        changes = {**common, r"^\{$": f"{{\n\tadmin off\n\thttp_port {plain}\n\thttps_port {secure}"}
        written = folder / "Caddyfile"
        written.write_text(adapted("Caddyfile", changes), encoding="utf-8")
        command = [path, "run", "--adapter", "caddyfile", "--config", str(written)]
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "output").open("wb") as output:
        running = subprocess.Popen(command, stdout=output, stderr=output, env=home, cwd=folder)
        try:
            await_port(secure, running, folder / "output")
            yield Proxy(plain, secure, chain)
        finally:
            running.terminate()
            running.wait(DEADLINE)


def await_port(port: int, running: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        assert running.poll() is None, output.read_text(encoding="utf-8")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(output.read_text(encoding="utf-8"))


def test_requests_come_through_by_tls_and_browsers_are_told_to_stay_with_it(proxy):
    answer = proxy.request(path="/students?search=Ad%C3%A0")

    assert (answer.status, answer.json()["path"]) == (200, "/students?search=Ad%C3%A0")
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"


def test_the_clients_address_is_handed_on_and_not_what_it_says_itself(proxy):
    forged = {"X-Forwarded-For": "203.0.113.5, 10.0.0.1"}

    assert proxy.request(headers=forged).json()["headers"]["X-Forwarded-For"] == "127.0.0.1"


def test_without_tls_one_is_sent_to_tls(proxy):
    answer = proxy.plain.request("GET", "/users", headers={"Host": NAME}, redirect=False)

    assert answer.status in {301, 308}
    assert answer.headers["Location"].startswith(f"https://{NAME}")


def test_another_name_gets_no_answer(proxy):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    with (
        socket.create_connection(("127.0.0.1", proxy.ports[1])) as connection,
        pytest.raises(ssl.SSLError),
        context.wrap_socket(connection, server_hostname="other.example.org"),
    ):
        pass


def test_the_largest_upload_of_the_service_comes_through_and_much_more_does_not(proxy):
    largest = Settings.load({"DATABASE_URL": "postgresql://u@h/d"}).max_upload_bytes + FORM_OVERHEAD

    assert proxy.request("POST", body=b"x" * (largest + 1)).json()["length"] == largest + 1
    try:
        # Caddy may find 11 MiB exceeded only while it hands the body on.
        assert proxy.request("POST", body=b"x" * (2 * largest)).status in {413, 502}
    except (urllib3.exceptions.SSLError, urllib3.exceptions.ProtocolError):
        # Or closes the connection while the client still writes.
        assert proxy.request().status == 200


def test_the_longest_token_of_the_service_comes_through(proxy):
    token = f"Bearer {'x' * MAX_TOKEN_LENGTH}"
    assert len(token) < HEADER_LIMIT

    assert proxy.request(headers={"Authorization": token}).json()["headers"]["Authorization"] == token


@pytest.mark.parametrize(
    ("file", "pattern"), [("nginx.conf", r"keepalive_timeout (\d+)s"), ("Caddyfile", r"keepalive (\d+)s")]
)
def test_idle_connections_are_closed_by_the_proxy_first(file, pattern):
    (seconds,) = re.findall(pattern, (PROXIES / file).read_text(encoding="utf-8"))

    assert int(seconds) < IDLE_TIMEOUT
