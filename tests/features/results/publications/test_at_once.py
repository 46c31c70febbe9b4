"""Point 6 that results must hold: all or nothing, with many at once, and when the server is killed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import urllib3
from sqlalchemy import text

from school_service.core.database import db
from school_service.features.results.models import ReportCard
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.cli.program import serving, wait_for
from tests.features.results.publications.arms import Arms
from tests.features.results.submissions.classes import Class
from tests.features.scores.scoresheets.test_killed_server import (
    GONE,
    environment,
    read_value,
    tables_locked,
    watching_schools,
)
from tests.threads import run_concurrently

WAITING = text(
    "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    " AND query LIKE :beginning"
)


def cards(api):
    """The frozen cards of the school, by publication and student."""
    with api.app.app_context(), in_transaction(SchoolBinding(api.school, read_only=True)):
        rows = db.session.query(ReportCard).all()
        return {(str(row.publication_id), str(row.student_id)): row.card for row in rows}


def test_point_6_of_twenty_publications_at_once_one_succeeds(committing):
    arms = Arms(committing)
    arms.mark()
    arms.submit()
    body = {"term": "FIRST", "batches": [arms.first, arms.second]}

    def work(number):
        turned = {**body, "batches": body["batches"][:: 1 if number % 2 else -1]}
        return committing.api.using().post("/publications", turned)

    answers = run_concurrently(20, work)

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 19
    published = arms.listed(cohort=arms.cohort["id"])
    assert [(row["version"], row["state"]) for row in published] == [(1, "PUBLISHED")] * 2
    assert set(cards(committing.api)) == {
        (row["id"], student) for row in published for student in arms.students[row["batch"]]
    }
    logged = committing.api.ok(committing.api.get("/audit", query_string={"entity": "publication"}))
    assert logged["total"] == 2


def test_cards_published_beside_changes_are_as_they_were_judged(committing):
    arms = Arms(committing, subjects=1)
    api, make = committing.api, committing
    arms.mark()
    elective = make.cohort_subject(arms.cohort, elective=True)
    make.assessment(elective, arms.terms["FIRST"])
    arms.submit()
    api.ok(api.post(f"/cohort-subjects/{elective['id']}/submission", {"term": "FIRST", "blanks": "ABSENT"}))
    late = [make.student()["id"] for _ in range(2)]
    student, classmate = arms.students[arms.first]
    subject = arms.subjects[0]["id"]

    def comment(api, words):
        body = {"batch": arms.first, "term": "FIRST"}
        said = {"student": student, "form_teacher_comment": words}
        return api.put("/comments", {**body, "comments": [said]})

    def enroll(api, who):
        return api.post(f"/cohorts/{arms.cohort['id']}/enrollment", {"students": [who], "batch": arms.first})

    acts = [
        lambda api: api.post("/publications", {"term": "FIRST", "batches": [arms.first, arms.second]}),
        lambda api: comment(api, "first"),
        lambda api: enroll(api, late[0]),
        lambda api: api.post(f"/cohort-subjects/{subject}/reopening", {"term": "FIRST", "reason": "x"}),
        lambda api: api.patch(f"/cohort-subjects/{elective['id']}/students", [classmate]),
        lambda api: comment(api, "second"),
        lambda api: api.post("/publications", {"term": "FIRST", "batches": [arms.second]}),
        lambda api: enroll(api, late[1]),
        lambda api: api.post(f"/cohort-subjects/{subject}/submission", {"term": "FIRST"}),
        lambda api: api.patch(f"/students/{arms.students[arms.second][1]}", {"status": "WITHDRAWN"}),
    ]

    answers = run_concurrently(len(acts), lambda number: acts[number](api.using()))

    assert {answer.status_code for answer in answers} <= {200, 409}, [answer.text for answer in answers]
    published = {publication["id"]: publication for publication in arms.listed(cohort=arms.cohort["id"])}
    frozen = cards(api)
    # Nobody has a card with a blank, and each publication has as many cards as it counts.
    assert all(row["status"] == "GRADED" for card in frozen.values() for row in card["subjects"])
    for identity, publication in published.items():
        assert sum(key[0] == identity for key in frozen) == publication["students"] > 0
    # The subject of a publication is submitted: it was not reopened meanwhile.
    if published:
        listed = api.ok(api.get("/submissions", query_string={"batch": arms.first, "term": "FIRST"}))
        assert {row["subject"]: row["state"] for row in listed}[arms.subjects[0]["subject"]] == "SUBMITTED"
    # A comment came before and is on the card, or was refused.
    of_first = [publication["id"] for publication in published.values() if publication["batch"] == arms.first]
    for identity in of_first:
        stored = api.ok(api.get("/comments", query_string={"batch": arms.first, "term": "FIRST"}))
        said = {row["student"]["id"]: row["form_teacher_comment"] for row in stored}
        assert frozen[identity, student]["comments"]["form_teacher"] == said[student]


def test_settings_and_bands_that_change_meanwhile_wait_until_it_is_published(committing, tenancy):
    """With POINTS the continuous assessment would count too, which nobody has a score of: nothing would be graded."""
    arms, make = Arms(committing, 1, 1), committing
    api = make.api
    weights = [{"level": None, "category": "EXAM", "weight": 100}]
    api.ok(api.patch("/result-settings", {"weighting": "CATEGORIES", "weights": weights}))
    arms.mark()
    make.assessment(arms.subjects[0], arms.terms["FIRST"], category="CA1")
    arms.submit()
    band = next(band for band in api.ok(api.get("/grade-configs")) if band["letter_grade"] == "A1")
    acts = (
        ("%settings%", lambda api: api.patch("/result-settings", {"weighting": "POINTS"})),
        ("%advisory%", lambda api: api.patch(f"/grade-configs/{band['id']}", {"letter_grade": "A"})),
    )

    with ThreadPoolExecutor() as threads, watching_schools(tenancy) as watching:
        # All is judged, and the cards have to wait.
        with tables_locked(tenancy, api.school, "report_cards"):
            publishing = threads.submit(arms.publish)
            wait_for(
                lambda: read_value(watching, WAITING, beginning="UPDATE%publications%"), "the publication"
            )
            changing = []
            for beginning, act in acts:
                changing.append(threads.submit(act, api.using()))
                wait_for(
                    lambda begun=beginning, last=changing[-1]: (
                        last.done() or read_value(watching, WAITING, beginning=begun)
                    ),
                    "the change, behind it or done",
                )
        published = publishing.result()
        assert [change.result().status_code for change in changing] == [200, 200]

    assert len(api.ok(published)) == 2
    subjects = [subject for card in cards(api).values() for subject in card["subjects"]]
    assert [(subject["status"], subject["grade"]) for subject in subjects] == [("GRADED", "A1")] * 2
    query = {"batch": arms.first, "term": "FIRST", "live": "true"}
    (student,) = api.ok(api.get("/broadsheets", query_string=query))["students"]
    assert student["status"] == "INCOMPLETE"


def test_reopening_and_publishing_follow_one_another(committing):
    arms = Arms(committing, 1, 1)
    first, _ = arms.published()
    api = committing.api

    def work(number):
        if number % 2:
            return api.using().post("/publications", {"term": "FIRST", "batches": [arms.first]})
        path = f"/publications/{first['id']}/reopening"
        return api.using().post(path, {"reason": "x", "withdraw": number % 4 == 0})

    answers = run_concurrently(12, work)

    assert {answer.status_code for answer in answers} <= {200, 409}
    versions = arms.listed(batch=arms.first)
    numbers = [version["version"] for version in versions]
    assert numbers == list(range(len(numbers), 0, -1))
    assert sum(version["state"] in {"PUBLISHED", "REOPENED"} for version in versions) <= 1
    assert {key[0] for key in cards(api)} >= {version["id"] for version in versions}


@pytest.mark.program
def test_point_6_a_server_that_is_killed_while_it_publishes_and_submits_leaves_nothing_of_it(
    committing, tenancy, settings, tmp_path
):
    arms, class_ = Arms(committing, 1, 1), Class(committing, 2, marked=1)
    api = committing.api
    first, second = arms.published()
    for publication in (first, second):
        api.ok(arms.reopen(publication))
    to_submit = {"term": "FIRST", "blanks": "ABSENT"}
    to_publish = {"term": "FIRST", "batches": [arms.first, arms.second]}
    before, frozen = arms.listed(cohort=arms.cohort["id"]), cards(api)
    open_, log = api.ok(class_.listed()), api.ok(api.get("/audit"))["total"]

    with (
        serving(cwd=tmp_path, settings=environment(settings)) as service,
        ThreadPoolExecutor() as threads,
        watching_schools(tenancy) as watching,
    ):
        # The versions before are superseded and the new ones made, when the first card has to wait; a submission
        # is made, when the absences that blanks become do.
        with tables_locked(tenancy, api.school, "report_cards", "absences"):
            publishing = threads.submit(post, service, api, "/publications", to_publish)
            submitting = threads.submit(
                post, service, api, f"/cohort-subjects/{class_.subject}/submission", to_submit
            )

            def blocked(answer, beginning):
                # On Citus tables bear the names of shards.
                assert not answer.done(), answer.result()
                return read_value(watching, WAITING, beginning=f"{beginning}%")

            pids = [
                wait_for(lambda: blocked(publishing, "UPDATE%publications"), "the publication at its cards"),
                wait_for(
                    lambda: blocked(submitting, "INSERT INTO%submissions"), "the submission at its blanks"
                ),
            ]
            service.process.kill()
            service.process.wait()
        for pid in pids:
            wait_for(
                lambda pid=pid: read_value(watching, GONE, pid=pid), "the end of the server's transaction"
            )
        assert [publishing.result(), submitting.result()] == [None, None]

    assert (arms.listed(cohort=arms.cohort["id"]), cards(api)) == (before, frozen)
    assert (api.ok(class_.listed()), api.ok(api.get("/audit"))["total"]) == (open_, log)
    assert api.ok(api.get(f"/assessments/{class_.assessment['id']}/absences")) == []
    published = api.ok(arms.publish())
    assert [(row["version"], row["state"]) for row in published] == [(2, "PUBLISHED")] * 2
    assert len(cards(api)) == 4
    assert api.ok(class_.submit(**to_submit))["state"] == "SUBMITTED"


def post(service, api, path, body):
    """POST; gives the answer, or None where there was none."""
    try:
        return urllib3.request(
            "POST",
            f"{service.base_url}{path}",
            headers={"Authorization": f"Bearer {api.token}", "X-SCHOOL-ID": str(api.school)},
            json=body,
            retries=False,
            timeout=180,
        ).data
    except urllib3.exceptions.HTTPError:
        return None
