"""Alerts and dashboard of docs/deployment/monitoring: Prometheus' own tool passes them, and their names are known."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "deployment" / "monitoring"
ALERTS = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
# As the page of operators names them; tests/serving/test_monitoring.py sees that the page has all that there are.
NAMED = set(
    re.findall(r"`(school_service_\w+)`", (ROOT / "docs" / "operators.md").read_text(encoding="utf-8"))
)
OF_PROCESS = {
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_max_fds",
    "process_resident_memory_bytes",
}

promtool = shutil.which("promtool")
with_promtool = pytest.mark.skipif(promtool is None, reason="promtool is not installed.")


def run(*arguments, stdin=""):
    return subprocess.run(
        [promtool, *arguments],
        cwd=FOLDER,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def unknown(query):
    names = set(re.findall(r"\b(?:school_service|process)_\w+", query))
    return {re.sub(r"_(?:bucket|sum|count)$", "", name) for name in names} - NAMED - OF_PROCESS


def test_each_alert_has_an_action_and_asks_for_known_metrics():
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len(set(names)) >= 15
    for rule in RULES:
        assert set(rule["annotations"]) == {"summary", "action"}, rule["alert"]
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert unknown(rule["expr"]) == set(), rule["alert"]
    assert unknown("school_service_no_such_metric > 0")


def test_the_dashboard_asks_for_metrics_that_there_are():
    assert len(QUERIES) >= 15
    for query in QUERIES:
        assert unknown(query) == set(), query
    places = [tuple(panel["gridPos"].values()) for panel in DASHBOARD["panels"]]
    assert len(places) == len(set(places))


def test_each_alert_is_tested():
    tested = (FOLDER / "alerts_test.yml").read_text(encoding="utf-8")
    assert [rule["alert"] for rule in RULES if rule["alert"] not in tested] == []


@with_promtool
@pytest.mark.operate
def test_promtool_finds_the_rules_sound_and_each_fires_where_it_should(tmp_path):
    for arguments in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        done = run(*arguments)
        assert (done.returncode, "SUCCESS" in done.stdout) == (0, True), done.stdout + done.stderr
    # With Grafana's value in place of its variable; as rules, since promtool parses no lone query.
    records = [
        {"record": f"dashboard:query_{number}", "expr": query.replace("$instance", ".*")}
        for number, query in enumerate(QUERIES)
    ]
    file = tmp_path / "dashboard.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": records}]}), encoding="utf-8")
    done = run("check", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
