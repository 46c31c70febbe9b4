"""Point 5 that results must hold, in a backup: published results are answered as before, byte for byte."""

from __future__ import annotations

from uuid import uuid4

import pytest

from school_service.auth.tokens import issue_user_token
from tenants.backups.backup import back_up
from tenants.backups.restore import restore
from tests.client import ApiClient
from tests.features.results.publications.arms import Arms
from tests.features.results.publications.test_published import readings

pytestmark = pytest.mark.program


def test_point_5_a_restored_backup_answers_published_results_as_before(
    app, tenancy, document, committing, tmp_path
):
    arms, api = Arms(committing, 2, 1), committing.api
    first, _ = arms.published()
    api.ok(arms.reopen(first))
    before = readings(arms)
    path = tmp_path / "school.backup"
    back_up(tenancy, api.school, path)

    school = restore(tenancy, path, school_id=uuid4(), name="Restored")

    arms.api = ApiClient(app, document, token_of(app, tenancy, school), school.id)
    assert readings(arms) == before
    assert [publication["state"] for publication in arms.listed(batch=arms.first)] == ["REOPENED"]


def token_of(app, tenancy, school):
    """Issue a token for the administrator of a school."""
    administrator = f"SELECT id, session_number FROM {school.schema}.users WHERE username = 'admin'"
    with tenancy.admin.connect() as connection:
        user_id, session_number = connection.exec_driver_sql(administrator).one()
    with app.app_context():
        key = app.extensions["school-service"].verifier.key
        return issue_user_token(key, user_id, school.id, session_number)["access_token"]
