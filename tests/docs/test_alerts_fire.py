"""Prometheus, as docs/deployment/monitoring has it: each alert fires, and is sent to Alertmanager."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import urllib3
import yaml

from tests.cli.program import ROOT, wait_for
from tests.cli.program import serving as serving_the_service
from tests.docs.test_proxies import free_port

pytestmark = [pytest.mark.program, pytest.mark.operate]

FOLDER = ROOT / "docs" / "deployment" / "monitoring"
PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")
ALERTS = (FOLDER / "alerts.yml").read_text(encoding="utf-8")
NAMES = {rule["alert"] for group in yaml.safe_load(ALERTS)["groups"] for rule in group["rules"]}
PROGRAM = shutil.which("prometheus")
# The metrics of a service in distress after `n` seconds: enough for each alert but the one for an absent service.
DISTRESS = """
school_service_database_up 0
school_service_workers 1
school_service_workers_wanted 2
school_service_workers_died_total {n}
school_service_workers_hung_total {n}
school_service_unavailable_total{{cause="lock_timeout"}} {n}
school_service_refused_by_shares_total{{share="printers"}} {n}
school_service_request_seconds_count{{route="/users",status="500"}} {n}
school_service_request_seconds_bucket{{route="/users",le="1"}} {n}
school_service_request_seconds_bucket{{route="/users",le="5"}} {n}0
school_service_request_seconds_bucket{{route="/users",le="+Inf"}} {n}0
school_service_schools{{state="behind"}} 4
school_service_schools{{state="newer"}} 1
school_service_failed_migrations 3
school_service_backup_age_seconds{{school="s"}} 200000
school_service_prints_total{{outcome="failed"}} {n}
school_service_printers_waiting 20
school_service_pool_waiting{{pool="schools"}} 1
school_service_provider_keys_age_seconds 4000
school_service_sign_ins_total{{of="user",outcome="wrong"}} {n}0
process_open_fds 3900
process_max_fds 4096
"""


class Both(BaseHTTPRequestHandler):
    """A service in distress for Prometheus, and a stand-in for Alertmanager, which is sent the alerts."""

    begun = time.monotonic()
    received: dict[str, dict[str, str]]

    def do_GET(self) -> None:
        self._answer(DISTRESS.format(n=int(time.monotonic() - self.begun) + 1).encode())

    def do_POST(self) -> None:
        for alert in json.loads(self.rfile.read(int(self.headers["Content-Length"]))):
            self.received[alert["labels"]["alertname"]] = alert
        self._answer(b"")

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def started(*command: str, folder):
    """Run a program until the block ends."""
    with (folder / "output").open("ab") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


def configuration(**ports: int) -> str:
    """Prometheus' configuration of the page, with ports of this test and a service in distress and a dead one."""
    (text,) = re.findall(r"^cat > /etc/prometheus/prometheus\.yml <<'YML'\n(.*?)^YML", PAGE, re.S | re.M)
    targets = ", ".join(f'"127.0.0.1:{ports[name]}"' for name in ("service", "distress", "nobody"))
    for old, new in (
        ("scrape_interval: 15s", "scrape_interval: 1s"),
        ("evaluation_interval: 30s", "evaluation_interval: 1s"),
        ("127.0.0.1:9093", f"127.0.0.1:{ports['alertmanager']}"),
        ('"127.0.0.1:18000"', targets),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.mark.skipif(PROGRAM is None, reason="prometheus is not installed.")
def test_each_alert_fires_and_comes_with_its_action(tmp_path, installed):
    # Minutes are seconds here.
    rules = re.sub(r"\bfor: \d+[mh]$", "for: 2s", ALERTS, flags=re.M)
    rules = re.sub(r"\[\d+m\]", "[10s]", rules)
    (tmp_path / "school-service.yml").write_text(rules, encoding="utf-8")
    Both.received = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Both)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    ports = {name: free_port() for name in ("service", "nobody", "prometheus")}
    ports["distress"] = ports["alertmanager"] = server.server_port
    (tmp_path / "prometheus.yml").write_text(configuration(**ports), encoding="utf-8")
    prometheus = f"http://127.0.0.1:{ports['prometheus']}"

    def query(expression: str) -> list[dict]:
        answer = urllib3.request("GET", f"{prometheus}/api/v1/query", fields={"query": expression})
        return answer.json()["data"]["result"]

    settings = {**installed, "METRICS_PORT": str(ports["service"])}
    try:
        with (
            serving_the_service("--workers", "2", cwd=tmp_path, settings=settings),
            started(
                PROGRAM,
                "--config.file=prometheus.yml",
                f"--web.listen-address=127.0.0.1:{ports['prometheus']}",
                "--storage.tsdb.path=series",
                folder=tmp_path,
            ),
        ):
            wait_for(lambda: set(Both.received) >= NAMES or None, "all alerts")
            real = f'instance="127.0.0.1:{ports["service"]}"'
            (up,) = query(f"up{{{real}}}")
            workers = wait_for(lambda: query(f"school_service_workers{{{real}}}"), "the service's metrics")
            fires = query(f'ALERTS{{{real}, alertstate="firing"}}')
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

    assert set(Both.received) == NAMES
    for alert in Both.received.values():
        assert alert["annotations"]["summary"]
        assert alert["annotations"]["action"]
    # The service that is well, beside it.
    assert (up["value"][1], workers[0]["value"][1], fires) == ("1", "2", [])
