"""Several workers: none of their ends loses a request that it had not begun, and counts are the machine's."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urlsplit

import psutil
import pytest
import urllib3
from prometheus_client.parser import text_string_to_metric_families

from school_service.config import Settings
from school_service.serving import merged_metrics, supervisor
from school_service.serving.parts import Part, waiting_of_each
from tests.cli.program import ROOT, run, serving

CLIENTS = 16


@pytest.fixture(scope="module")
def address(installed, tmp_path_factory):
    """A file with the address of the database."""
    address = tmp_path_factory.mktemp("service") / "database-url"
    address.write_text(installed["DATABASE_URL"])
    return address


@pytest.fixture(scope="module")
def service(installed, folder, address):
    """A service of two workers."""
    settings = {**installed, "METRICS_PORT": "0", "DATABASE_URL_FILE": str(address)}
    del settings["DATABASE_URL"]
    with serving("--workers", "2", cwd=folder, settings=settings) as service:
        yield service


class Storm:
    """Clients that send one request after the other, on connections that they keep as long as they may."""

    def __init__(self, service, path="/health"):
        self.outcomes = Counter()
        self.longest = 0.0  # seconds that a client has waited
        self._address, self._path = urlsplit(service.base_url).netloc, path
        self._ending = threading.Event()
        self._counted = threading.Condition()
        self._threads = [threading.Thread(target=self._run) for _ in range(CLIENTS)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.wait_for_more()
        return self

    def __exit__(self, *_):
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def wait_for_more(self, requests=100):
        """Wait until so many more have been answered."""
        with self._counted:
            until = self.outcomes[200] + requests
            assert self._counted.wait_for(lambda: self.outcomes[200] >= until, 60)

    def _run(self):
        connection = None
        while not self._ending.is_set():
            began = time.monotonic()
            connection = connection or http.client.HTTPConnection(self._address, timeout=60)
            try:
                connection.request("GET", self._path)
                answer = connection.getresponse()
                answer.read()
                outcome, ends = answer.status, answer.getheader("Connection") == "close"
            except ConnectionRefusedError:
                outcome, ends = "refused", True
                self._ending.wait(0.01)
            except (OSError, http.client.HTTPException):
                outcome, ends = "lost", True
            with self._counted:
                self.outcomes[outcome] += 1
                self.longest = max(self.longest, time.monotonic() - began)
                self._counted.notify_all()
            if ends:
                connection.close()
                connection = None
        if connection is not None:
            connection.close()


def workers_of(service):
    children = []
    for child in psutil.Process(service.process.pid).children():
        # One may end at this moment.
        with suppress(psutil.Error):
            if "--worker" in child.cmdline():
                children.append(child)
    return children


def lines(service, message):
    return [line for line in service.log if line["message"] == message]


def metrics_of(service):
    text = urllib3.request("GET", service.wait_for_log("serving metrics")["address"], timeout=60).data
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in text_string_to_metric_families(text.decode())
        for sample in metric.samples
    }


@pytest.mark.program
def test_the_service_says_the_threads_and_connections_of_each_worker(service):
    serving_line = service.wait_for_log("serving")

    assert (serving_line["workers"], serving_line["threads_of_each"]) == (2, 4)
    assert (serving_line["pool_size_of_each"], serving_line["school_requests_of_each"]) == (5, 2)
    assert len(workers_of(service)) == 2


def send_wrong_secret(service, client_id):
    body = {"client_id": client_id, "client_secret": "x", "audience": "school-service"}
    return service.request(
        "POST", "/auth/oauth/token", body={**body, "grant_type": "client_credentials"}
    ).status


@pytest.mark.program
def test_wrong_secrets_are_counted_for_all_workers_together(service):
    answers = Counter(send_wrong_secret(service, "nobody") for _ in range(16))

    # Ten wrong ones in a minute, whichever worker they came to.
    assert answers == {401: 10, 429: 6}


@pytest.mark.program
def test_a_client_that_is_revoked_is_let_in_by_no_worker(service, cli):
    made = json.loads(
        cli("clients", "create", "briefly", "--all-schools", "--all-permissions", "--json").stdout
    )
    school = json.loads(cli("tenants", "create", "Revoking College", "--json").stdout)["id"]
    token = service.client_token(made["client_id"], made["client_secret"])

    def statuses():
        return {service.request("GET", "/classrooms", token=token, school=school).status for _ in range(8)}

    assert statuses() == {200}
    assert cli("clients", "revoke", "briefly").exit_code == 0
    assert statuses() == {401}


@pytest.mark.program
def test_each_worker_prints_the_same_paper(service, cli):
    made = json.loads(
        cli("clients", "create", "papers", "--all-schools", "--all-permissions", "--json").stdout
    )
    school = json.loads(cli("tenants", "create", "Printing College", "--json").stdout)["id"]
    caller = {"token": service.client_token(made["client_id"], made["client_secret"]), "school": school}
    body = {"first_name": "Ọlá", "last_name": "Obi", "admission_number": "1"}
    path = f"/students/{service.ok('POST', '/students', body=body, **caller)['id']}/transcript/download"

    # Each on a connection of its own: the next may be another worker's.
    headers = {"Authorization": f"Bearer {caller['token']}", "X-SCHOOL-ID": school, "Connection": "close"}

    def printed(_=None):
        answer = service.send("GET", path, headers=headers)
        if answer.status == 503:
            # On a busy machine a printer, which has lower priority, may come too late.
            return None
        assert (answer.status, answer.data[:5]) == (200, b"%PDF-")
        return answer.data

    def printers():
        # One may end at this moment.
        with suppress(psutil.Error):
            return [worker.children() for worker in workers_of(service)]

    papers = set()
    with ThreadPoolExecutor(6) as threads:

        def each_has_printed():
            papers.update(filter(None, threads.map(printed, range(6))))
            return all(printers() or [()])

        service.wait_for(each_has_printed, "a paper of each worker")
    # The same paper, whichever worker printed it.
    assert len(papers) == 1


@pytest.mark.release
@pytest.mark.program
def test_a_worker_that_is_killed_costs_the_requests_it_had_and_comes_back(service):
    assert {send_wrong_secret(service, "nobody else") for _ in range(10)} == {401}
    before = metrics_of(service)
    victim = workers_of(service)[0]

    with Storm(service) as storm:
        victim.kill()
        storm.wait_for_more()
        service.wait_for(
            lambda: len(lines(service, "worker serves")) == 3, "the worker that was started anew"
        )
        storm.wait_for_more()

    assert storm.outcomes["lost"] <= CLIENTS
    assert set(storm.outcomes) <= {200, "lost"}
    ended = service.wait_for_log("a worker has ended, and is started anew")
    assert (ended["pid"], ended["exit_code"]) == (victim.pid, -signal.SIGKILL)
    after = metrics_of(service)
    assert after["school_service_workers_died_total",] == 1
    assert after["school_service_workers",] == after["school_service_workers_wanted",] == 2
    if promtool := shutil.which("promtool"):
        text = urllib3.request("GET", service.wait_for_log("serving metrics")["address"], timeout=60).data
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    # The counts of the dead worker, when it was last asked, are still there.
    of_token = ("school_service_request_seconds_count", "POST", "/auth/oauth/token", "401")
    assert after[of_token] >= before[of_token] >= 10
    assert after["school_service_database_up",] == 1


def test_a_worker_is_silent_once_it_gave_no_sign_for_its_time_while_the_supervisor_ran():
    worker = supervisor.WorkerProcess(1, 0, process=None, control=None)
    looks = int(supervisor.SILENT / supervisor.LOOK_INTERVAL)

    # One of an earlier release gives no sign.
    assert not any(worker.is_silent(supervisor.LOOK_INTERVAL) for _ in range(2 * looks))
    worker.silence = 0.0
    assert [worker.is_silent(supervisor.LOOK_INTERVAL) for _ in range(looks + 1)] == [False] * looks + [True]
    worker.silence = 0.0
    assert not worker.is_silent(13.0)


@pytest.fixture(scope="module")
def hanging(installed, folder, tmp_path_factory):
    """A service of two workers; each holds its interpreter for a minute at SIGUSR1."""
    planted = tmp_path_factory.mktemp("planted")
    # A function of C that is called by PyDLL keeps the interpreter's lock.
    (planted / "sitecustomize.py").write_text(
        "import ctypes, signal\nsignal.signal(signal.SIGUSR1, lambda *_: ctypes.PyDLL(None).sleep(60))\n"
    )
    settings = {**installed, "METRICS_PORT": "0", "PYTHONPATH": f"{planted}{os.pathsep}{ROOT}"}
    with serving("--workers", "2", cwd=folder, settings=settings) as service:
        yield service


@pytest.mark.release
@pytest.mark.program
@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGUSR1])
def test_a_worker_that_hangs_is_replaced_and_costs_the_requests_it_had(hanging, how):
    before = metrics_of(hanging)
    served = len(lines(hanging, "worker serves"))
    victim = workers_of(hanging)[0]

    with Storm(hanging) as storm:
        victim.send_signal(how)
        scrapes = 0
        while len(lines(hanging, "worker serves")) == served:
            assert metrics_of(hanging)["school_service_workers_wanted",] == 2
            scrapes += 1
        storm.wait_for_more()

    assert set(storm.outcomes) <= {200, "lost"}
    assert storm.outcomes["lost"] <= CLIENTS
    assert storm.longest < supervisor.SILENT + 3
    # None but the first waited for it.
    assert scrapes > supervisor.SILENT / merged_metrics.PATIENCE
    assert victim.pid in [
        line["pid"] for line in lines(hanging, "a worker gives no sign of life, and is killed")
    ]
    after = metrics_of(hanging)
    assert after["school_service_workers_hung_total",] == before["school_service_workers_hung_total",] + 1
    assert after["school_service_workers",] == 2


@pytest.mark.release
@pytest.mark.program
def test_a_supervisor_that_was_stopped_itself_kills_no_worker(hanging):
    workers, hung = workers_of(hanging), metrics_of(hanging)["school_service_workers_hung_total",]

    with Storm(hanging) as storm:
        hanging.process.send_signal(signal.SIGSTOP)
        time.sleep(supervisor.SILENT + 4)
        hanging.process.send_signal(signal.SIGCONT)
        # Two looks later it has judged.
        time.sleep(4 * supervisor.LOOK_INTERVAL)

    assert set(storm.outcomes) == {200}
    assert workers_of(hanging) == workers
    assert metrics_of(hanging)["school_service_workers_hung_total",] == hung


@pytest.mark.release
@pytest.mark.program
def test_a_reload_loses_no_request_and_replaces_every_worker(service):
    before = {worker.pid for worker in workers_of(service)}

    with Storm(service) as storm:
        service.process.send_signal(signal.SIGHUP)
        service.wait_for_log("reloaded")
        service.wait_for(
            lambda: not before & {worker.pid for worker in workers_of(service)}, "the end of the old ones"
        )
        storm.wait_for_more()

    assert set(storm.outcomes) == {200}
    assert len(workers_of(service)) == 2


@pytest.mark.program
def test_a_reload_whose_worker_can_not_serve_is_given_up(service, installed, address):
    before = {worker.pid for worker in workers_of(service)}
    reloaded = len(lines(service, "reloaded"))
    address.write_text("no address")
    service.process.send_signal(signal.SIGHUP)
    service.wait_for_log("the reload has failed: the workers go on as they are")
    assert "DATABASE_URL" in service.wait_for_log("a worker can't serve")["reason"]

    assert {worker.pid for worker in workers_of(service)} == before
    assert service.request("GET", "/health").status == 200
    # The next one finds it mended.
    address.write_text(installed["DATABASE_URL"])
    service.process.send_signal(signal.SIGHUP)
    service.wait_for(lambda: len(lines(service, "reloaded")) > reloaded, "the next reload")


@pytest.mark.program
def test_the_end_loses_no_request(service):
    """The last of this module: it ends the service."""

    def stopped():
        return len([line for line in lines(service, "stopping") if "worker" in line])

    # A reload has stopped others before.
    before = stopped()
    with Storm(service) as storm:
        assert service.end() == 0

    assert set(storm.outcomes) <= {200, "refused"}
    assert stopped() - before == 2


def test_a_reload_follows_the_link_by_which_the_command_was_called(tmp_path, monkeypatch):
    """As /opt/school-service leads to the environment of one release, and then of another."""
    bin_of_release, elsewhere = tmp_path / "release" / "bin", tmp_path / "elsewhere"
    for folder in (bin_of_release, elsewhere):
        folder.mkdir(parents=True)
        (folder / "python3").touch()
    (tmp_path / "link").symlink_to("release")
    monkeypatch.setattr("sys.executable", str(bin_of_release / "python3"))

    for called, python in (
        (tmp_path / "link" / "bin" / "school-service", tmp_path / "link" / "bin" / "python3"),
        # Another Python, and none.
        (elsewhere / "school-service", bin_of_release / "python3"),
        (tmp_path / "school_service" / "__main__.py", bin_of_release / "python3"),
    ):
        monkeypatch.setattr("sys.argv", [str(called)])
        assert supervisor.name_python() == str(python)


@pytest.mark.program
def test_the_reason_that_keeps_a_worker_from_serving_is_said_once(installed, folder):
    done = run(
        "serve", "--workers", "2", "--port", "0", cwd=folder, settings={**installed, "SERVING_LOGINS": "3"}
    )

    assert done.returncode == 1
    assert "Error:" not in done.stderr
    logged = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    (said,) = [line for line in logged if line["level"] == "ERROR"]
    assert (said["message"], said["worker"]) == ("a worker can't serve", 1)
    assert said["reason"].startswith("SERVING_LOGINS is 3")


def test_settings_are_divided_and_rounded_up(installed):
    def part(workers, threads=None, **given):
        environment = {**installed, **given}
        return Part.of(Settings.load(environment), environment, workers, threads)

    assert part(2) == Part(threads=4, pool_size=5, school_requests=2)
    assert part(8) == Part(threads=4, pool_size=5, school_requests=2)
    assert part(3, 10, POOL_SIZE="10", SCHOOL_REQUESTS="2") == Part(4, 4, 1)
    assert [waiting_of_each(workers) for workers in (1, 2, 3, 8)] == [100, 50, 34, 13]
