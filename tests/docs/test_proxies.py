"""The proxies' configurations in docs/proxies work as docs/operators.md says, run by the proxies themselves."""

from __future__ import annotations

import gzip
import json
import random
import re
import select
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

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
from school_service.serving.channel import IDLE_TIMEOUT
from school_service.serving.parser import HEADER_LIMIT
from school_service.web.blueprint import SPREADSHEET
from school_service.web.entity_tags import COMPRESSED

pytestmark = [pytest.mark.program, pytest.mark.operate]

DOCS = Path(__file__).parents[2] / "docs"
PROXIES = DOCS / "proxies"
PAGE = (DOCS / "deployment" / "proxies.md").read_text(encoding="utf-8")
NAME = "schools.example.org"
DEADLINE = 180.0  # seconds that a proxy may take to start, or to stop


class Echo(BaseHTTPRequestHandler):
    """Stands for the service: answers with the headers and the length of the body that have come through."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body leave together: apart, the second would wait for the receipt of the first

    def do_POST(self) -> None:
        announced = int(self.headers["Content-Length"] or 0)
        length = len(self.rfile.read(announced))
        if length < announced:
            self.close_connection = True
            return
        body = json.dumps({"headers": dict(self.headers), "path": self.path, "length": length}).encode()
        self.send_response(200)
        if media_type := self.headers["X-Answer-Type"]:
            body *= int(self.headers["X-Answer-Times"])
            self.send_header("Content-Type", media_type)
            self.send_header("ETag", '"a-tag"')
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


class Brief(Echo):
    """An upstream that ends a connection after its answer, so that nothing of it is left once it is stopped."""

    protocol_version = "HTTP/1.0"


@contextmanager
def serving(port: int = 0, handler: type[Echo] = Echo) -> Iterator[int]:
    """Serve behind the proxy; yields the port."""
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def upstream() -> Iterator[int]:
    """The port of the server behind the proxy."""
    with serving() as port:
        yield port


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
    """Find a port that nobody has, below the range from which the system chooses ports itself: it stays free."""
    while True:
        port = random.randrange(20_000, 32_000)
        with suppress(OSError), socket.socket() as taken:
            taken.bind(("127.0.0.1", port))
            return port


def adapted(file: str, changes: dict[str, str], headings: tuple[str, ...]) -> str:
    """Read an example, changed as the page says under these headings, with the places and ports of this run.

    Every change must have something to change.
    """
    text = (PROXIES / file).read_text(encoding="utf-8")
    for heading in headings:
        text = changed(file, text, heading)
    for pattern, replacement in changes.items():
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        assert count, f"{file} has no {pattern}"
    return text


def changed(file: str, text: str, heading: str) -> str:
    """Change an example as the page says under a heading: lines that a diff takes away have to be there, once."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    diffs = re.findall(r"```diff\n(.*?)```", section, re.S)
    assert len(diffs) == 2, heading
    diff = diffs[0 if file == "nginx.conf" else 1].splitlines(keepends=True)
    for taken, given in re.findall(r"((?:-.*\n)+)((?:\+.*\n)+)", "".join(diff)):
        old, new = (re.sub(r"^.", "", lines, flags=re.M) for lines in (taken, given))
        assert text.count(old) == 1, old
        text = text.replace(old, new)
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
        self.folder = Path()
        self.ports = (plain, secure)

    def request(self, method: str = "GET", path: str = "/users", **options) -> urllib3.BaseHTTPResponse:
        headers = {"Host": NAME, **options.pop("headers", {})}
        return self.secure.request(method, path, headers=headers, **options)


def program(name: str) -> str:
    path = shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@pytest.fixture(scope="module")
def acme() -> Iterator[Path]:
    """A folder of proofs that nginx's workers may read, unlike pytest's own."""
    with TemporaryDirectory(prefix="school-tests-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        yield folder


@contextmanager
def running(
    name: str,
    folder: Path,
    acme: Path,
    upstreams: tuple[int, int],
    certificate: tuple[Path, Path],
    *headings: str,
) -> Iterator[Proxy]:
    """Run the proxy of an example, but for places and ports, changed as the page says under headings."""
    path = program(name)
    chain, key = certificate
    plain, secure = free_port(), free_port()
    changes = {
        r"/etc/ssl/schools\.example\.org\.pem": str(chain),
        r"/etc/ssl/private/schools\.example\.org\.key": str(key),
        r"127\.0\.0\.1:8000": f"127.0.0.1:{upstreams[0]}",
    }
    if SEVERAL in headings:
        changes[r"127\.0\.0\.1:8001"] = f"127.0.0.1:{upstreams[1]}"
    if name == "nginx":
        changes |= {
            r"^user www-data;$": "daemon off;",
            r"/run/nginx\.pid": f"{folder}/nginx.pid",
            r"/var/log/nginx": str(folder),
            r"/var/www/acme": str(acme),
            r"listen 80\b": f"listen 127.0.0.1:{plain}",
            r"listen 443\b": f"listen 127.0.0.1:{secure}",
        }
        written = folder / "nginx.conf"
        written.write_text(adapted("nginx.conf", changes, headings), encoding="utf-8")
        command = [path, "-p", str(folder), "-c", str(written)]
        checked = subprocess.run([*command, "-t"], capture_output=True, text=True, timeout=DEADLINE)
        assert checked.returncode == 0, checked.stderr
        assert "[warn]" not in checked.stderr
    else:
        changes |= {r"^\{$": f"{{\n\tadmin off\n\thttp_port {plain}\n\thttps_port {secure}"}
        written = folder / "Caddyfile"
        written.write_text(adapted("Caddyfile", changes, headings), encoding="utf-8")
        command = [path, "run", "--adapter", "caddyfile", "--config", str(written)]
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "output").open("wb") as output:
        started = subprocess.Popen(command, stdout=output, stderr=output, env=home, cwd=folder)
        try:
            await_port(secure, started, folder / "output")
            proxy = Proxy(plain, secure, chain)
            proxy.folder = folder
            yield proxy
        finally:
            started.terminate()
            started.wait(DEADLINE)


NAMES = ["nginx", "caddy"]
PATH, SEVERAL = "Below a path", "Several machines"


@pytest.fixture(scope="module", params=NAMES)
def proxy(
    request: pytest.FixtureRequest,
    acme: Path,
    upstream: int,
    certificate: tuple[Path, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Proxy]:
    """The proxy of an example."""
    folder = tmp_path_factory.mktemp(request.param)
    upstreams = (upstream, free_port())  # nobody listens at the second
    with running(request.param, folder, acme, upstreams, certificate) as proxy:
        yield proxy


@pytest.fixture(scope="module", params=NAMES)
def changed_proxy(
    request: pytest.FixtureRequest,
    acme: Path,
    upstream: int,
    certificate: tuple[Path, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Proxy]:
    """The proxy below a path, before two processes; one is away."""
    folder = tmp_path_factory.mktemp(f"changed-{request.param}")
    upstreams = (upstream, free_port())  # nobody listens at the second
    with running(request.param, folder, acme, upstreams, certificate, PATH, SEVERAL) as proxy:
        yield proxy


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
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains"


def test_the_clients_own_address_is_handed_on_and_no_forged_one(proxy):
    forged = {"X-Forwarded-For": "203.0.113.5, 10.0.0.1"}

    assert proxy.request(headers=forged).json()["headers"]["X-Forwarded-For"] == "127.0.0.1"


@pytest.mark.parametrize(
    "path",
    ["/docs", "/verify/a-school/a-code?page=1", "/auth/invitation", "/auth/a-school/invitation/a-code"],
)
def test_a_browser_without_tls_is_sent_to_tls(proxy, path):
    answer = proxy.plain.request("GET", path, headers={"Host": NAME}, redirect=False)

    assert answer.status in {301, 308}
    assert answer.headers["Location"] == f"https://{NAME}{path}"


@pytest.mark.parametrize(
    "path", ["/users", "/users/login", "/", "/docs/x", "/auth/oauth/token", "/auth/authorize", "/verify"]
)
def test_any_other_request_without_tls_is_refused(proxy, path):
    for method in ("GET", "POST"):
        answer = proxy.plain.request(method, path, headers={"Host": NAME}, redirect=False)

        assert (answer.status, answer.headers.get("Location")) == (403, None)


@pytest.mark.parametrize("proxy", ["nginx"], indirect=True)  # Caddy needs a module for that
def test_requests_without_a_token_are_refused_after_some_and_those_with_one_go_on(proxy):
    begun = time.monotonic()

    def ask(number: int) -> int:
        # 200 are let in from whomever, and 100 more in a second: the connections of the next test have their share.
        time.sleep(max(0.0, begun + (number - 50) / 100 - time.monotonic()))
        return proxy.request(path="/verify/a/secret-code").status

    answers = map(ask, range(5000))
    before = list(takewhile(lambda status: status != 429, answers))

    # A class of forty who sign in at once, behind one address.
    assert 400 <= len(before) < 5000
    assert set(before) == {200}
    authorized = {"Authorization": "Bearer x"}
    assert proxy.request(headers=authorized).status == 200
    for path in ("/auth/a/invitation/secret-code", "/auth/authorize?state=secret-code"):
        assert proxy.request(path=path, headers=authorized).status == 200
    for name in ("access.log", "error.log"):
        written = proxy.folder / name
        assert "secret-code" not in (written.read_text(encoding="utf-8") if written.exists() else "")


@pytest.mark.parametrize("proxy", ["nginx"], indirect=True)
def test_a_client_has_so_many_connections(proxy):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    # The head is whole, the body is not: the request goes on, or is refused at once.
    head = f"POST /users HTTP/1.1\r\nHost: {NAME}\r\nAuthorization: Bearer x\r\nContent-Length: 5\r\n\r\n"
    with ExitStack() as opened:
        held = []
        for _ in range(130):
            plain = opened.enter_context(socket.create_connection(("127.0.0.1", proxy.ports[1])))
            held.append(opened.enter_context(context.wrap_socket(plain, server_hostname=NAME)))
            held[-1].sendall(head.encode())
        answers: list[int] = []
        deadline = time.monotonic() + DEADLINE
        while len(answers) < 30 and time.monotonic() < deadline:
            for connection in select.select(held, [], [], 1)[0]:
                answers.append(int(connection.recv(100).split()[1]))
                held.remove(connection)

    assert answers == [429] * 30


def test_the_prefix_that_a_client_sends_is_dropped(proxy):
    headers = {"X-Forwarded-Prefix": "/forged"}

    assert not proxy.request(headers=headers).json()["headers"].get("X-Forwarded-Prefix")


@pytest.mark.parametrize("proxy", ["nginx"], indirect=True)  # Caddy gets its certificates itself
def test_a_certificate_authority_finds_its_proof_without_tls(proxy, acme):
    proof = acme / ".well-known" / "acme-challenge" / "token"
    proof.parent.mkdir(parents=True, exist_ok=True)
    proof.write_text("proof", encoding="utf-8")

    answer = proxy.plain.request("GET", "/.well-known/acme-challenge/token", headers={"Host": NAME})

    assert (answer.status, answer.data) == (200, b"proof")


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("/schools/", "/"),
        ("/schools/docs", "/docs"),
        ("/schools/students?search=Ad%C3%A0", "/students?search=Ad%C3%A0"),
        ("/schools/auth/oauth/token", "/auth/oauth/token"),
        ("/schools/auth/authorize?state=a%20b", "/auth/authorize?state=a%20b"),
        ("/schools/auth/a-school/invitation/a-code", "/auth/a-school/invitation/a-code"),
        ("/.well-known/oauth-authorization-server/schools", "/.well-known/oauth-authorization-server"),
        (
            "/.well-known/oauth-authorization-server/schools/auth",
            "/.well-known/oauth-authorization-server/auth",
        ),
    ],
)
def test_below_a_path_the_service_gets_the_rest_and_is_told_of_it(changed_proxy, path, there):
    # More often than there are processes: the absent one has its turn, too.
    for _ in range(3):
        answer = changed_proxy.request(path=path, headers={"X-Forwarded-Prefix": "/forged"})

        assert (answer.status, answer.json()["path"]) == (200, there)
        assert answer.json()["headers"]["X-Forwarded-Prefix"] == "/schools"


def test_beside_the_path_there_is_nothing_and_the_path_leads_to_its_root(changed_proxy):
    beside = [changed_proxy.request(path=path).status for path in ("/", "/users", "/schoolsides")]
    root = changed_proxy.request(path="/schools", redirect=False)

    assert beside == [404] * 3
    assert (root.status, root.headers["Location"].removeprefix(f"https://{NAME}")) == (308, "/schools/")


def compressed(proxy, path, media_type, times=100):
    """Tell whether an answer comes compressed, and all of it."""
    headers = {
        "X-Answer-Type": media_type,
        "X-Answer-Times": str(times),
        "Accept-Encoding": "gzip",
        "Authorization": "Bearer x",
    }
    answer = proxy.request(path=path, headers=headers, decode_content=False)
    assert answer.status == 200
    if answer.headers.get("Content-Encoding") != "gzip":
        assert len(answer.data) >= 100
        return False
    unpacked = gzip.decompress(answer.data)
    assert len(unpacked) > 5 * len(answer.data)
    assert unpacked.count(b'"path"') == times
    assert "Accept-Encoding" in answer.headers["Vary"]
    return True


@pytest.mark.parametrize(
    "media_type",
    [
        *("application/json", "application/x-ndjson", "text/csv; charset=utf-8", "text/html; charset=utf-8"),
        *("application/javascript", "text/css; charset=utf-8"),
    ],
)
def test_json_csv_ndjson_and_pages_of_documentation_are_compressed(proxy, media_type):
    assert compressed(proxy, "/users?pageSize=50", media_type)
    # An answer not asked for compressed comes as it is.
    assert "Content-Encoding" not in proxy.request(path="/users").headers


@pytest.mark.parametrize("media_type", ["application/pdf", "application/zip", "image/png", SPREADSHEET])
def test_an_answer_compressed_already_is_not_compressed_again(proxy, media_type):
    assert not compressed(proxy, "/students/1/report-card", media_type)


@pytest.mark.parametrize(
    "path",
    [
        *("/auth/authorize?state=x", "/auth/invitation", "/auth/a-school/invitation/a-code", "/auth/logout"),
        *("/auth/oauth/token", "/auth/userinfo", "/users/login", "/users/login/invitation"),
    ],
)
def test_nothing_of_signing_in_is_compressed(proxy, changed_proxy, path):
    for media_type in ("text/html", "application/json"):
        assert not compressed(proxy, path, media_type)
        assert not compressed(changed_proxy, f"/schools{path}", media_type)


def test_below_a_path_all_else_is_compressed(changed_proxy):
    for path in ("/schools/users", "/schools/docs", "/schools/users/loginsides"):
        assert compressed(changed_proxy, path, "application/json")


def test_a_small_answer_is_not_compressed(proxy):
    assert not compressed(proxy, "/users/1", "application/json", times=1)


def test_the_tag_of_a_compressed_answer_is_one_that_the_service_takes_back(proxy):
    headers = {"X-Answer-Type": "application/json", "X-Answer-Times": "100", "Accept-Encoding": "gzip"}

    tag = proxy.request(path="/users/1", headers=headers).headers["ETag"]

    assert re.fullmatch(rf'(W/)?"a-tag({COMPRESSED})?"', tag)


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


@pytest.mark.parametrize("name", NAMES)
def test_processes_that_are_restarted_in_turn_leave_no_request_without_an_answer(
    name, tmp_path, acme, certificate
):
    first, second = free_port(), free_port()
    with running(name, tmp_path, acme, (first, second), certificate, SEVERAL) as proxy:
        for port in (first, second, first):
            with serving(port, Brief):
                assert [proxy.request().status for _ in range(3)] == [200] * 3


@pytest.mark.parametrize(
    ("file", "pattern"), [("nginx.conf", r"keepalive_timeout (\d+)s"), ("Caddyfile", r"keepalive (\d+)s")]
)
def test_idle_connections_are_closed_by_the_proxy_first(file, pattern):
    (seconds,) = re.findall(pattern, (PROXIES / file).read_text(encoding="utf-8"))

    assert int(seconds) < IDLE_TIMEOUT
