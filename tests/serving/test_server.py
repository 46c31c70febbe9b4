"""Starting to serve, and stopping without losing a request."""

import json
import signal
import socket
from configparser import ConfigParser
from contextlib import suppress

import psutil
import pytest
import urllib3

from tests.cli.program import DEADLINE, ROOT, run, running, serving, wait_for
from tests.printing.pictures import png
from tests.threads import run_concurrently

pytestmark = pytest.mark.program


def failed(done):
    assert (done.returncode, done.stdout) == (1, ""), done
    lines = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_a_port_that_is_taken_is_said_in_one_line(installed, folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run("serve", "--port", port, cwd=folder, settings=installed)

    assert failed(done).startswith(f"Error: Port {port} of 127.0.0.1 can't be taken: address already in use.")


def test_a_database_that_is_away_or_lacks_the_registry_is_said_in_one_line(installed, folder):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        away = f"postgresql://someone@127.0.0.1:{closed.getsockname()[1]}/db"
        done = run("serve", "--port", "0", cwd=folder, settings={**installed, "DATABASE_URL": away})
    assert failed(done).startswith("Error: The database of DATABASE_URL can't be used: ")

    admin = installed["ADMIN_DATABASE_URL"]
    name = admin.partition("/school_tests_")[2].partition("?")[0]
    empty = admin.replace(f"/school_tests_{name}", "/postgres")
    done = run("serve", "--port", "0", cwd=folder, settings={**installed, "DATABASE_URL": empty})
    assert "school-service tenants init" in failed(done)


def test_logins_that_were_not_made_yet_are_said_in_one_line(installed, folder):
    done = run("serve", "--port", "0", cwd=folder, settings={**installed, "SERVING_LOGINS": "3"})

    assert failed(done).startswith(
        "Error: SERVING_LOGINS is 3, and the database has not all of these logins."
    )
    assert "school-service tenants init" in done.stderr


def test_a_superuser_that_serves_is_warned_of_and_too_few_connections(installed, folder):
    settings = {**installed, "DATABASE_URL": installed["ADMIN_DATABASE_URL"], "POOL_SIZE": "2"}

    with serving("--threads", "3", cwd=folder, settings=settings) as service:
        warnings = [line["message"] for line in service.log if line["level"] == "WARNING"]
        assert service.end() == 0

    assert any("is a superuser" in warning for warning in warnings)
    assert "POOL_SIZE is less than --threads: requests will wait for a database connection" in warnings


def test_a_policy_of_passwords_that_is_not_strict_is_warned_of(installed, folder):
    # The registry, which `tenants init` has made, says strict.
    for given, warned in (
        ({"PASSWORD_POLICY": "strict"}, False),
        ({"PASSWORD_POLICY": "any"}, True),
        ({}, False),
    ):
        with serving(cwd=folder, settings={**installed, **given}) as service:
            warnings = [line["message"] for line in service.log if line["level"] == "WARNING"]
            assert service.end() == 0

        assert any(warning.startswith("PASSWORD_POLICY is not strict") for warning in warnings) == warned


@pytest.fixture
def begun():
    """Begin a request, whose body is still missing when it is half sent."""
    connections = []

    def begin(service):
        host, port = service.base_url.removeprefix("http://").split(":")
        connection = socket.create_connection((host, int(port)), timeout=60)
        connections.append(connection)
        connection.sendall(
            b"POST /auth/oauth/token HTTP/1.1\r\nHost: school\r\nContent-Type: application/json\r\n"
            b"Content-Length: 2\r\n\r\n{"
        )
        return connection

    yield begin
    for connection in connections:
        connection.close()


def has_stopped_listening(service):
    try:
        with socket.create_connection(service.base_url.removeprefix("http://").split(":"), timeout=60):
            return False
    except ConnectionRefusedError:
        return True


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name
)
def test_a_request_that_has_begun_is_answered_and_idle_connections_do_not_hold_the_end(
    installed, folder, begun, number
):
    with serving(cwd=folder, settings=installed) as service, urllib3.PoolManager() as kept_alive:
        assert kept_alive.request("GET", f"{service.base_url}/health").status == 200
        connection = begun(service)

        service.process.send_signal(number)
        service.wait_for_log("stopping")
        wait_for(lambda: has_stopped_listening(service), "the end of listening")
        assert service.process.poll() is None
        connection.sendall(b"}")
        answer = connection.makefile("rb").read().decode()

        assert service.process.wait(DEADLINE) == 0
    head, _, body = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 422 ")
    assert "\r\nConnection: close" in head
    assert json.loads(body)["code"] == 422


def test_a_second_signal_ends_it_at_once(installed, folder, begun):
    with serving(cwd=folder, settings=installed) as service:
        begun(service)
        service.process.send_signal(signal.SIGTERM)
        service.wait_for_log("stopping")

        assert service.end(signal.SIGINT) == 1


def test_no_printer_is_left_where_the_service_ends(installed, folder, cli):
    school = json.loads(cli("tenants", "create", "Printing College", "--json").stdout)["id"]
    client = json.loads(
        cli("clients", "create", "printing", "--school", school, "--all-permissions", "--json").stdout
    )
    with serving(cwd=folder, settings=installed) as service:
        token = service.client_token(client["client_id"], client["client_secret"])
        printed = service.send(
            "PUT",
            "/letterhead/logo",
            headers={"Authorization": f"Bearer {token}", "X-SCHOOL-ID": school},
            fields={"image": ("logo.png", png())},
        )
        assert printed.status == 200, printed.data
        (printer,) = psutil.Process(service.process.pid).children()
        assert "school_service.printing" in " ".join(printer.cmdline())

        assert service.end() == 0

        wait_for(lambda: not printer.is_running(), "the end of the printer")


def test_a_body_beyond_our_limit_gets_our_own_answer(each_server):
    host, port = each_server.base_url.removeprefix("http://").split(":")
    size = 12 * 2**20
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(
            b"POST /auth/oauth/token HTTP/1.1\r\nHost: school\r\nContent-Type: application/json\r\n"
            b"Connection: close\r\nContent-Length: %d\r\n\r\n" % size
        )
        with suppress(ConnectionError):  # it need not be read to its end
            connection.sendall(b" " * size)
        head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 413 ")
    # The server's name is nobody's business; gunicorn can't be kept from saying it.
    assert b"\r\nServer: waitress" not in head
    assert json.loads(body)["code"] == 413


def exchange(service, *parts):
    """Send bytes on one connection until the service ends it, or answers two requests; read all that it answers."""
    host, port = service.base_url.removeprefix("http://").split(":")
    answers = b""
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(b"".join(parts))
        while answers.count(b"HTTP/1.1 ") + answers.count(b"HTTP/1.0 ") < 2:
            received = connection.recv(65536)
            if not received:
                break
            answers += received
    return answers


HEALTH = b"GET /health HTTP/1.1\r\nHost: school\r\n\r\n"
CHUNKED = b"POST /nothing HTTP/1.1\r\nHost: school\r\nTransfer-Encoding: chunked\r\n%b\r\n0\r\n\r\n"
LENGTH = b"POST /nothing HTTP/1.%d\r\nHost: school\r\nContent-Length: 5\r\n%b\r\nhello"
KEEP_ALIVE = b"Connection: keep-alive\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        CHUNKED % b"Content-Length: 5\r\n",
        CHUNKED % b"Content-Length: 0\r\n",
        CHUNKED % b"content-length: 5\r\nConnection: keep-alive\r\n",
        LENGTH % (0, KEEP_ALIVE + b"Transfer-Encoding: chunked\r\n"),
        LENGTH % (0, KEEP_ALIVE + b"Transfer-Encoding: identity\r\n"),
    ],
    ids=["both", "length 0", "keep-alive", "HTTP/1.0", "HTTP/1.0, another coding"],
)
def test_a_request_with_two_lengths_ends_its_connection(each_server, request_):
    answers = exchange(each_server, request_, HEALTH)

    # waitress goes by one of the two, gunicorn by none.
    assert answers.startswith((b"HTTP/1.1 404 ", b"HTTP/1.0 404 ", b"HTTP/1.1 400 "))
    assert b"\r\nConnection: close\r\n" in answers
    assert b'"database"' not in answers


@pytest.mark.parametrize(
    "fields",
    [
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"\tchunked\r\n",
        b" , chunked\r\n",
    ],
    ids=["twice", "another", "continued", "named twice"],
)
def test_a_transfer_encoding_that_is_not_sound_is_refused_and_ends_its_connection(each_server, fields):
    answers = exchange(each_server, CHUNKED % fields, HEALTH)

    # gunicorn knows no coding beside chunked, and reads no line that goes on in the next.
    assert answers.startswith((b"HTTP/1.0 400 ", b"HTTP/1.1 400 ", b"HTTP/1.1 501 "))
    assert b"\r\nConnection: close\r\n" in answers
    assert b'"database"' not in answers


@pytest.mark.parametrize(
    "request_", [CHUNKED % b"", LENGTH % (1, b""), LENGTH % (0, KEEP_ALIVE)], ids=["chunked", "length", "1.0"]
)
def test_a_request_with_one_length_does_not(each_server, request_):
    answers = exchange(each_server, request_, HEALTH)

    assert answers.startswith((b"HTTP/1.1 404 ", b"HTTP/1.0 404 "))
    assert b"\r\nHTTP/1.1 200 OK\r\n" in answers.replace(b"}HTTP", b"}\r\nHTTP")
    assert b"\r\nConnection: close\r\n" not in answers


def test_every_request_is_a_line_of_json_in_the_log(each_server):
    answer = each_server.request("GET", "/health")

    line = each_server.wait_for(
        lambda: next(
            (line for line in each_server.log if line.get("request_id") == answer.headers["X-Request-ID"]),
            None,
        ),
        "the line of the request",
    )
    assert (line["method"], line["path"], line["status"], line["level"]) == ("GET", "/health", 200, "INFO")
    assert line["route"] == "/health"
    assert 0 <= line["queue_ms"] < 60_000


def test_metrics_are_served_on_a_port_of_their_own(each_server):
    each_server.request("GET", "/health/live")
    address = each_server.wait_for_log("serving metrics")["address"]

    text = urllib3.request("GET", address, timeout=60).data.decode()

    assert address.startswith("http://127.0.0.1:")
    assert 'school_service_request_seconds_count{method="GET",route="/health/live",status="200"}' in text
    assert "school_service_database_up 1.0" in text
    assert 'school_service_schools{state="behind"} 0.0' in text
    assert "school_service_queue_length 0.0" in text


def test_all_that_use_a_new_token_at_once_are_answered(service, cli):
    """As a page does that asks for twenty things when somebody has signed in."""
    school = json.loads(cli("tenants", "create", "Mayflower School", "--json").stdout)["id"]
    made = json.loads(
        cli("clients", "create", "front end", "--all-schools", "--all-permissions", "--json").stdout
    )
    for _ in range(3):
        token = service.client_token(made["client_id"], made["client_secret"])

        def ask(_number, token=token):
            return service.request("GET", "/classrooms", token=token, school=school).status

        assert run_concurrently(20, ask) == [200] * 20


@pytest.mark.parametrize("times", [2, pytest.param(8, marks=pytest.mark.release)])
def test_memory_goes_back_when_lists_that_are_too_long_have_been_refused(service, cli, times):
    school = json.loads(cli("tenants", "create", f"Long Lists College {times}", "--json").stdout)["id"]
    made = json.loads(
        cli("clients", "create", f"lists-{times}", "--all-schools", "--all-permissions", "--json").stdout
    )
    token = service.client_token(made["client_id"], made["client_secret"])
    headers = {"Authorization": f"Bearer {token}", "X-SCHOOL-ID": school, "Content-Type": "application/json"}
    longest = b"[" + b",".join([b"{}"] * 330_000) + b"]"

    def refused(body):
        def send(_number):
            path = f"/metrics?batch={school}&term=FIRST"
            answer = urllib3.request(
                "PUT", service.base_url + path, body=body, headers=headers, timeout=DEADLINE
            )
            return answer.status, answer.json()["errors"]

        return run_concurrently(6, send)

    def resident():
        return psutil.Process(service.process.pid).memory_info().rss

    refused(b"[]")
    before = resident()
    told = (422, {"json": {"metrics": ["Length must be between 1 and 500."]}})
    rounds = []
    for _ in range(times):
        assert refused(longest) == [told] * 6
        rounds.append(resident() - before)

    # Python keeps some of it for the next.
    assert max(rounds) < 96 * 2**20, rounds


def test_a_token_as_long_as_may_be_is_read(each_server):
    answer = each_server.request("GET", "/classrooms", token="a" * 16_384)

    assert (answer.status, answer.json()["code"]) == (401, 401)


def test_wsgi_py_serves(installed, folder):
    # And it offers the application to any server: gunicorn, of `each_server`, takes it, in an interpreter of its own.
    script = (
        "import runpy, sys; sys.argv = ['wsgi.py', '--port', '0'];"
        f"runpy.run_path({str(ROOT / 'wsgi.py')!r}, run_name='__main__')"
    )
    with running("no", "verb", cwd=folder, settings=installed, script=script) as service:
        service.base_url = service.wait_for_log("serving")["address"]
        assert service.ok("GET", "/health")["status"] == "ok"
        assert service.end() == 0


def test_wsgi_py_is_installed_with_the_package():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")

    assert setup["options"]["py_modules"].split() == ["wsgi"]
    assert (ROOT / "wsgi.py").is_file()
