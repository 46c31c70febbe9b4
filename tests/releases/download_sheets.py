"""Downloads the sheets of a restored school by the program of a release: run on that release's modules.

    python download_sheets.py BACKUP FOLDER

Its terms are opened again before. Sheets have the scores of a paper, and the comments, traits and registers of an arm;
the sheet of the import has the headings alone.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from uuid import uuid4

from school_service.app import create_app, tenancy_of
from school_service.auth.tokens import issue_user_token
from school_service.config import Settings
from tenants.backups.restore import restore
from tenants.registry.installation import install


def main(backup: str, folder: str) -> None:
    settings = Settings.load(os.environ)
    tenancy = tenancy_of(settings)
    install(tenancy)
    school = restore(tenancy, Path(backup), school_id=uuid4(), name="Released School")
    app = create_app(settings)
    with tenancy.admin.connect() as connection:
        asked = f"SELECT id, session_number FROM \"{school.schema}\".users WHERE username = 'admin'"
        administrator, number = connection.exec_driver_sql(asked).one()
    with app.app_context():
        key = app.extensions["school-service"].verifier.key
        token = issue_user_token(key, administrator, school.id, number)["access_token"]
    client = app.test_client()
    headers = {"X-SCHOOL-ID": str(school.id), "Authorization": f"Bearer {token}"}

    def get(path: str) -> bytes:
        answer = client.get(path, headers=headers)
        assert answer.status_code == 200, (path, answer.get_data(as_text=True))
        return answer.data

    def read(path: str) -> list[dict[str, str]]:
        answer = client.get(path, headers=headers).get_json()
        return answer["data"] if isinstance(answer, dict) else answer

    for made in read("/publications?pageSize=50"):
        if made["state"] == "PUBLISHED":
            body = {"reason": "A score was wrong"}
            answer = client.post(f"/publications/{made['id']}/reopening", headers=headers, json=body)
            assert answer.status_code == 200, answer.get_data(as_text=True)
    (cohort,) = read("/cohorts")
    batch = read(f"/cohorts/{cohort['id']}/batches")[0]["id"]
    term = next(term["id"] for term in read("/terms") if term["term"] == "SECOND")
    subjects = read("/cohort-subjects?pageSize=50")
    subject = next(subject["id"] for subject in subjects if subject["subject"] == "Mathematics")
    papers = read(f"/assessments?cohort={cohort['id']}&subject={subject}&term={term}")
    paper = next(paper["id"] for paper in papers if paper["category"] == "EXAM")
    sheets = {
        "scores": f"/assessments/{paper}/download-sheet",
        "comments": f"/comments/download-sheet?batch={batch}&term=SECOND",
        "traits": f"/metrics/download-sheet?batchId={batch}&term=SECOND&metric_type=AFFECTIVE",
        "register": f"/registers/download-sheet?batch={batch}&week=2025-10-06",
        "import": "/students/import-template",
    }
    for name, path in sheets.items():
        Path(folder, f"{name}.xlsx").write_bytes(get(path))


main(*sys.argv[1:])
