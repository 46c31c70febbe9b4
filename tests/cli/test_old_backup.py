"""A backup of an earlier release, restored by the command line: submissions of then are told arm by arm."""

from __future__ import annotations

import json
import shutil
from uuid import uuid4

import pytest

from tests.cli.program import ROOT

pytestmark = pytest.mark.program

# Made by the release at t0012, in which a submission was of all arms: JSS 1 has the arms A and B with a student each,
# Physics and Music with an examination each, in which both have scores; Physics is submitted.
BACKUP = ROOT / "tests/tenants/backups/t0012.zip"
PASSWORD = "correct horse battery staple"


@pytest.fixture
def send(cli, service, folder):
    """Send a request to the restored school, as its administrator; answers the body."""
    shutil.copy(BACKUP, folder / "old.zip")
    done = cli("tenants", "restore", "old.zip", "--id", str(uuid4()), "--name", "Restored", "--json")
    school = json.loads(done.stdout)["id"]
    name = f"front-{uuid4().hex[:8]}"
    client = json.loads(
        cli("clients", "create", name, "--school", school, "--permission", "read:users", "--json").stdout
    )
    token = service.client_token(name, client["client_secret"])
    body = {"username": "admin", "password": PASSWORD}
    signed_in = service.ok("POST", "/users/login", token=token, school=school, body=body)
    own = signed_in["access_token"]["access_token"]

    def send(method, path, body=None, status=200):
        answer = service.request(method, path, token=own, school=school, body=body)
        assert answer.status == status, answer.data
        return json.loads(answer.data)

    yield send
    cli("tenants", "delete", school, "--yes", "--no-backup")


def test_a_submission_of_all_arms_is_one_of_each(send):
    (cohort,) = send("GET", "/cohorts")
    arms = {arm["name"]: arm["id"] for arm in send("GET", f"/cohorts/{cohort['id']}/batches")}

    listed = send("GET", f"/submissions?cohort={cohort['id']}&term=FIRST")

    submissions = {(row["subject"], row["batch_name"]): row for row in listed}
    assert {
        place: (row["batch"], row["state"], row["takers"], row["blanks"]) for place, row in submissions.items()
    } == {
        ("Music", "A"): (arms["A"], "OPEN", 1, 0),
        ("Music", "B"): (arms["B"], "OPEN", 1, 0),
        ("Physics", "A"): (arms["A"], "SUBMITTED", 1, 0),
        ("Physics", "B"): (arms["B"], "SUBMITTED", 1, 0),
    }  # fmt: skip
    for arm in arms:
        assert submissions["Physics", arm]["submitted_at"].startswith("2026-11-23T08:09:24")
        assert submissions["Physics", arm]["submitted_by_name"] == "School Administrator"

    # Submitted results are held, of both arms; one of them alone is reopened.
    physics = submissions["Physics", "A"]["cohort_subject"]
    entries = {
        (gradebook["subject"], gradebook["batch"]): gradebook
        for gradebook in send("GET", "/gradebooks")["data"]
    }
    of_arms = [entries[physics, arms[name]]["id"] for name in ("A", "B")]
    for entry in of_arms:
        refused = send("PATCH", f"/gradebooks/{entry}", {"score": 50}, status=409)
        assert "are submitted" in refused["message"]
    reopening = {"term": "FIRST", "reason": "A paper was found", "batch": arms["A"]}
    send("POST", f"/cohort-subjects/{physics}/reopening", reopening)
    assert send("PATCH", f"/gradebooks/{of_arms[0]}", {"score": 50})["score"] == 50
    send("PATCH", f"/gradebooks/{of_arms[1]}", {"score": 50}, status=409)


def test_a_class_that_was_submitted_then_is_published_now(send):
    (cohort,) = send("GET", "/cohorts")
    arms = [arm["id"] for arm in send("GET", f"/cohorts/{cohort['id']}/batches")]
    listed = send("GET", f"/submissions?cohort={cohort['id']}&term=FIRST")
    music = next(submission["cohort_subject"] for submission in listed if submission["subject"] == "Music")
    send("POST", f"/cohort-subjects/{music}/submission", {"term": "FIRST"})

    published = send("POST", "/publications", {"term": "FIRST", "batches": arms})

    assert [publication["state"] for publication in published] == ["PUBLISHED"] * 2
    states = {
        submission["state"] for submission in send("GET", f"/submissions?cohort={cohort['id']}&term=FIRST")
    }
    assert states == {"SUBMITTED"}
