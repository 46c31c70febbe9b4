"""Handing in a subject while its term is deleted: a request that refers to a term locks it before the assessments."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from tenants.registry.schools import schema_name
from tests.cli.program import wait_for
from tests.features.results.promotions.test_concurrency import WAITING
from tests.features.results.submissions.classes import Class
from tests.features.scores.scoresheets.test_killed_server import read_value, watching_schools

SUBMITTING = "SELECT terms.id%JOIN cohorts%"
DELETING = "SELECT terms.id%FOR UPDATE%"


@pytest.mark.parametrize("act", ["submit", "reopen"])
def test_a_term_that_is_deleted_meanwhile_is_no_deadlock(committing, tenancy, act):
    taught = Class(committing)
    if act == "reopen":
        taught.api.ok(taught.submit())
    taught.api, api = taught.api.using(), taught.api
    assessments = f"{schema_name(api.school)}.assessments"

    with ThreadPoolExecutor() as threads, watching_schools(tenancy) as watching:
        with tenancy.admin.begin() as locking:
            locking.execute(text(f"SELECT FROM {assessments} FOR UPDATE"))
            acting = threads.submit(getattr(taught, act))
            wait_for(
                lambda: read_value(watching, WAITING, query=SUBMITTING), "who hands in, at the assessment"
            )
            deleting = threads.submit(api.using().delete, f"/terms/{taught.term['id']}")
            wait_for(lambda: read_value(watching, WAITING, query=DELETING), "who deletes, at the term")
        acted, deleted = acting.result(), deleting.result()

    assert (acted.status_code, deleted.status_code) == (200, 409)
    assert "is in use by 1 assessment" in deleted.get_json()["message"]
