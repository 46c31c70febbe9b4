"""Taking records back by DELETE: the rules of all records alike, and the records in the way of each."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest

from school_service.features.classes.enrollments import service as enrollments
from school_service.features.school.cohorts import service as cohorts
from tests.cli.program import wait_for
from tests.features.observations.metrics.sheets import Observed
from tests.postgres import on_postgresql_alone
from tests.tenants.installations import execute
from tests.threads import pausing, run_concurrently


@dataclass(frozen=True)
class Made:
    """A record that was created: its path, how it is created once more, and how it comes to be in use."""

    path: str
    create: Callable[[], Any]
    use: Callable[[Any], Any] | None
    correct: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Record:
    """A kind of record: the records in the way of deleting it, and its name in the audit log."""

    entity: str
    make: Callable[[Any], Made]
    in_use: str = ""
    section: str = ""

    def __str__(self):
        return self.entity


def creating(make, kind, path, use, *fixed, correct=None, **fields):
    """Make a record by the factory, with these fields so that the same can be made again."""
    made = getattr(make, kind)(*fixed, **fields)
    return Made(
        f"{path}/{made['id']}",
        lambda: getattr(make, kind)(*fixed, **fields),
        use and use(made),
        correct or {},
    )


def make_session(make):
    def use(made):
        body = {"session_id": made["id"], "term": "FIRST", "display_name": "First term"}
        return lambda api: api.post("/terms", body)

    return creating(make, "session", "/sessions", use, name="2025/2062", correct={"name": "2025/2026"})


def make_term(make):
    subject = make.cohort_subject(cohort := make.cohort())

    def use(made):
        return lambda api: api.post("/assessments", assessment_of(subject, made))

    session = {"id": cohort["session"]}
    return creating(
        make, "term", "/terms", use, session, display_name="Frist", correct={"display_name": "First"}
    )


def assessment_of(subject, term):
    return {
        "category": "CA1",
        "subject": subject["id"],
        "name": "Test",
        "abbreviation": "T",
        "due_date": "2025-10-17",
        "total_points": 20,
        "term": term["id"],
        "description": "x",
        "file_name": "test.xlsx",
        "include_in_final": True,
        "publish_scores": False,
    }


def make_classroom(make):
    session = make.session()["id"]

    def use(made):
        return lambda api: api.post("/cohorts", {"classroom": made["id"], "session_id": session})

    return creating(make, "classroom", "/classrooms", use, name="JSSS 1", correct={"name": "JSS 1"})


def enrolling(cohort, student, batch):
    body = {"students": [student["id"]], "batch": batch}
    return lambda api: api.post(f"/cohorts/{cohort['id']}/enrollment", body)


def make_cohort(make):
    student, room, other = make.student(), make.classroom(), make.classroom()
    session = make.session()
    correct = {"classroom": other["id"], "session_id": session["id"]}
    return creating(
        make,
        "cohort",
        "/cohorts",
        lambda made: enrolling(made, student, made["id"]),
        classroom=room,
        session=session,
        correct=correct,
    )


def make_batch(make):
    student, cohort = make.student(), make.cohort()

    def use(made):
        return enrolling(cohort, student, made["id"])

    return creating(make, "batch", "/batches", use, cohort, name="Glod", correct={"name": "Gold"})


def make_cohort_subject(make):
    cohort, subject = make.cohort(), make.subject()
    term = make.term({"id": cohort["session"]})

    def use(made):
        return lambda api: api.post("/assessments", assessment_of(made, term))

    return creating(make, "cohort_subject", "/cohort-subjects", use, cohort, subject)


def make_subject(make):
    cohort = make.cohort()

    def use(made):
        body = {"cohort_id": cohort["id"], "subject_id": made["id"], "elective": True}
        return lambda api: api.post("/cohort-subjects", body)

    return creating(
        make, "subject", "/templates", use, name="Mathmatics", code="MTH", correct={"name": "Mathematics"}
    )


def make_trait(make):
    def create():
        body = {"name": "Punctuallity", "metric_type": "PSYCHOMOTOR"}
        return make.api.ok(make.api.post("/metric-definitions", body))

    made = create()
    traits = [
        definition["name"]
        for definition in make.api.ok(make.api.get("/metric-definitions"))
        if definition["metric_type"] == "PSYCHOMOTOR"
    ]
    seen = Observed(make, 1, traits=traits)
    content = seen.sheet({number: {made["name"]: 3} for number in seen.students})
    path = f"/metric-definitions/{made['id']}"
    return Made(path, create, lambda api: seen.upload(content, api=api), {"name": "Punctuality"})


def make_role(make):
    user = make.user()["user"]["id"]

    def use(made):
        return lambda api: api.put(f"/users/{user}/roles", {"role": made["id"]})

    return creating(make, "role", "/roles", use, name="Libarian", correct={"name": "Librarian"})


def make_contact(make):
    owner = make.user()["user"]
    fields = {"email_address": "ada@exmaple.com"}
    correct = {"email_address": "ada@example.com"}
    return creating(make, "contact", "/contacts", None, owner, **fields, correct=correct)


def make_student(make):
    cohort = make.cohort()
    fields = {"first_name": "Chidinmma", "admission_number": "QC/1", "username": "chidinma"}
    return creating(
        make,
        "student",
        "/students",
        lambda made: enrolling(cohort, made, cohort["id"]),
        **fields,
        correct={"first_name": "Chidinma"},
    )


def make_metric(make):
    seen = Observed(make, 1)
    content = seen.sheet({number: {seen.traits[0]: 3} for number in seen.students})

    def create():
        make.api.ok(seen.upload(content))
        (record,) = make.api.ok(make.api.get("/metrics", query_string={"batchId": seen.batch}))
        return record

    return Made(f"/metrics/{create()['id']}", create, None)


def make_assessment(make):
    taught = make.taught(0)
    return creating(
        make,
        "assessment",
        "/assessments",
        None,
        taught.subject,
        taught.term,
        name="Frist test",
        correct={"name": "First test", "total_points": 25},
    )


def make_named(kind, path):
    """Prepare one of the names that employees have."""

    def prepare(make):
        def use(made):
            body = make.employee_body(**{kind.removeprefix("employee_"): made["id"]})
            return lambda api: api.post("/employees", body)

        return creating(make, kind, path, use, name="Accuonts", correct={"name": "Accounts"})

    return prepare


RECORDS = [
    Record("department", make_named("department", "/departments"), "1 employee", "settings"),
    Record(
        "employee-category",
        make_named("employee_category", "/employee-categories"),
        "1 employee",
        "settings",
    ),
    Record("position", make_named("position", "/positions"), "1 employee", "settings"),
    Record("assessment", make_assessment),
    Record("session", make_session, "1 term", "terms"),
    Record("term", make_term, "1 assessment"),
    Record("classroom", make_classroom, "1 cohort"),
    Record("cohort", make_cohort, "1 enrollment"),
    Record("batch", make_batch, "1 enrollment", "cohorts"),
    Record("cohort-subject", make_cohort_subject, "1 assessment"),
    Record("subject", make_subject, "1 cohort subject", "subjects"),
    Record("metric-definition", make_trait, "1 trait score", "metrics"),
    Record("role", make_role, "1 user"),
    Record("contact", make_contact),
    Record("metric", make_metric),
    Record("student", make_student, "1 enrollment"),
]
each = pytest.mark.parametrize("record", RECORDS, ids=str)
each_used = pytest.mark.parametrize("record", [record for record in RECORDS if record.in_use], ids=str)


def audited(api, record, made):
    """List the deletions of a record in the audit log, as its values before."""
    query = {"entity": record.entity, "id": made.path.split("/")[2]}
    entries = api.ok(api.get("/audit", query_string=query))["data"]
    return [entry["old"] for entry in entries if entry["action"] == "delete"]


def message(answer):
    return answer.get_json()["message"]


@each
def test_a_misspelt_record_is_corrected_deleted_and_made_again(api, make, record):
    made = record.make(make)
    if made.correct:
        api.ok(api.patch(made.path, made.correct))

    answer = api.ok(api.delete(made.path))

    assert answer == {"id": made.path.split("/")[2], "deleted": True}
    assert api.get(made.path).status_code in {404, 405}
    assert api.delete(made.path).status_code == 404
    assert len(audited(api, record, made)) == 1
    made.create()


@each_used
def test_a_record_in_use_stays_and_the_answer_counts_the_records_that_use_it(api, make, record):
    made = record.make(make)
    api.ok(made.use(api))

    answer = api.delete(made.path)

    assert answer.status_code == 409
    name = record.entity.replace("-", " ")
    assert message(answer).startswith(f"The {name} is in use by ")
    said = message(answer).removeprefix(f"The {name} is in use by ").removesuffix(".").split(", ")
    assert record.in_use in said
    assert "errors" not in answer.get_json()
    assert audited(api, record, made) == []
    api.ok(api.get(made.path))


@each
def test_an_unknown_record_is_not_found(api, make, record):
    path = record.make(make).path.split("/")[1]

    answer = api.delete(f"/{path}/{uuid4()}")

    assert answer.status_code == 404
    assert message(answer) == f"No such {record.entity.replace('-', ' ')}."


@each
def test_the_other_schools_record_is_not_found(api, other_api, make, record):
    made = record.make(make)

    assert other_api.delete(made.path).status_code == 404
    assert other_api.using(school=api.school).delete(made.path).status_code == 403
    assert api.using(school=other_api.school).delete(made.path).status_code == 403
    assert audited(api, record, made) == []
    assert api.delete(made.path).status_code == 200


@each
def test_a_deletion_needs_the_permission_to_delete(api, make, record):
    made = record.make(make)
    section = record.section or made.path.split("/")[1]
    for caller in (make.caller(), make.caller(f"read:{section}", f"write:{section}")):
        answer = caller.delete(made.path)

        assert answer.status_code == 403
        assert f"delete:{section}" in message(answer)
    assert make.caller(f"delete:{section}").delete(made.path).status_code == 200


# Beginning, locks and counts, deletion, commit; and of an account, its permissions.
MOST_MESSAGES = 4


@each
def test_a_deletion_costs_four_round_trips(api, make, messages, record):
    made = record.make(make)
    with messages() as sent:
        api.ok(api.delete(made.path))

    assert len(sent) <= MOST_MESSAGES, sent


@each_used
def test_a_refused_deletion_costs_three_round_trips(api, make, messages, record):
    made = record.make(make)
    api.ok(made.use(api))
    with messages() as sent:
        assert api.delete(made.path).status_code == 409

    assert len(sent) < MOST_MESSAGES, sent


@each
def test_of_four_deletions_at_once_one_succeeds(committing, record):
    made = record.make(committing)
    api = committing.api

    answers = run_concurrently(4, lambda _: api.using().delete(made.path).status_code)

    assert sorted(answers) == [200, 404, 404, 404]
    assert len(audited(api, record, made)) == 1


WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


# A backend that waits for a lock on a node is not in the coordinator's pg_stat_activity.
@on_postgresql_alone
@pytest.mark.parametrize("with_tag", [False, True])
def test_an_arm_into_which_somebody_is_being_enrolled_is_not_deleted(
    committing, tenancy, monkeypatch, with_tag
):
    api = committing.api
    student, cohort = committing.student(), committing.cohort()
    arm = committing.batch(cohort)
    path = f"/batches/{arm['id']}"
    headers = {"If-Match": api.get(path).headers["ETag"]} if with_tag else {}
    judged, go_on = pausing(monkeypatch, enrollments, "_active")
    with ThreadPoolExecutor(2) as threads:
        enrolled = threads.submit(enrolling(cohort, student, arm["id"]), api.using())
        assert judged.wait(60)
        deleted = threads.submit(api.using().delete, path, headers=headers)
        wait_for(lambda: deleted.done() or execute(tenancy.admin_url, WAITING), "the deletion that waits")
        go_on.set()

    assert (enrolled.result().status_code, deleted.result().status_code) == (200, 409)
    assert api.ok(api.get(path))["id"] == arm["id"]


@on_postgresql_alone
def test_a_cohort_that_is_being_deleted_gets_no_arm(committing, tenancy, monkeypatch):
    api = committing.api
    path = f"/cohorts/{committing.cohort()['id']}"
    locked, go_on = pausing(monkeypatch, cohorts, "audit_changes")
    with ThreadPoolExecutor(2) as threads:
        deleted = threads.submit(api.using().delete, path)
        assert locked.wait(60)
        made = threads.submit(api.using().post, f"{path}/batches", {"name": "B"})
        wait_for(lambda: made.done() or execute(tenancy.admin_url, WAITING), "the arm that waits")
        go_on.set()

    assert (deleted.result().status_code, made.result().status_code) == (200, 404)
    assert message(made.result()) == "No such cohort."


@each_used
def test_of_a_deletion_and_a_write_that_refers_to_the_record_one_is_done(committing, record):
    made = record.make(committing)
    api = committing.api

    deleted, used = run_concurrently(
        2, lambda number: made.use(api.using()) if number else api.using().delete(made.path)
    )

    outcome = deleted.status_code, used.status_code
    assert outcome == (409, 200) or (deleted.status_code == 200 and used.status_code in {404, 422}), outcome
    assert api.get(made.path).status_code == (200 if deleted.status_code == 409 else 404)
    if deleted.status_code == 409:
        assert record.in_use in message(deleted)
