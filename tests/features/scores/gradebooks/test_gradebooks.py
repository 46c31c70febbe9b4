"""Gradebook entries: the scores of students in assessments."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from tenants.registry.schools import schema_name
from tests.features.scores.scoresheets.test_killed_server import watching_schools
from tests.prepared import prepared_for_each
from tests.threads import run_concurrently

original, taught = prepared_for_each(lambda make: make.taught(2))


@pytest.fixture
def assessment(make, taught):
    return make.assessment(taught.subject, taught.term, total_points=20)


def body(taught, assessment, /, **fields):
    ids = {"student": taught.students[0], "batch": taught.cohort["id"]}
    return {"assessment": assessment["id"], "score": 12.5, **ids, **fields}


def page(api, **query):
    return api.ok(api.get("/gradebooks", query_string=query))


def ids(api, **query):
    return [entry["id"] for entry in page(api, **query)["data"]]


def logged(api, entry_id):
    entries = api.ok(api.get("/audit", query_string={"entity": "gradebook", "id": entry_id}))["data"]
    return [(change["action"], change["old"], change["new"]) for change in entries]


def reasons(answer, location="json"):
    assert answer.status_code == 422, answer.get_data(as_text=True)
    return answer.get_json()["errors"][location]


def test_a_score_is_entered_and_shown(api, taught, assessment):
    made = api.ok(api.post("/gradebooks", body(taught, assessment)))

    assert made == {
        "id": made["id"],
        "assessment": assessment["id"],
        "assessment_category": "CA1",
        "score": 12.5,
        "student": taught.students[0],
        "batch": taught.cohort["id"],
        "subject": taught.subject["id"],
    }
    assert api.ok(api.get(f"/gradebooks/{made['id']}")) == made
    assert page(api) == {"page_number": 0, "page_size": 50, "total_pages": 1, "total": 1, "data": [made]}


def test_entering_it_is_in_the_audit_log(api, taught, assessment):
    made = api.ok(api.post("/gradebooks", body(taught, assessment)))

    assert logged(api, made["id"]) == [("create", None, {"score": 12.5, "source": "hand"})]


def test_removing_it_keeps_the_score_in_the_audit_log(api, taught, assessment):
    made = api.ok(api.post("/gradebooks", body(taught, assessment)))

    assert api.ok(api.delete(f"/gradebooks/{made['id']}")) == {"id": made["id"], "deleted": True}

    assert logged(api, made["id"])[0] == ("delete", {"score": 12.5, "source": "hand"}, None)
    assert page(api)["data"] == []
    assert api.get(f"/gradebooks/{made['id']}").status_code == 404
    assert api.delete(f"/gradebooks/{made['id']}").status_code == 404
    assert api.post("/gradebooks", body(taught, assessment, score=13)).status_code == 200


def test_a_second_score_is_a_conflict(api, taught, assessment):
    made = api.ok(api.post("/gradebooks", body(taught, assessment)))

    answer = api.post("/gradebooks", body(taught, assessment, score=1))

    assert answer.status_code == 409
    message = "A gradebook entry with this assessment and student exists already."
    assert answer.get_json()["message"] == message
    assert page(api)["data"] == [made]
    assert len(logged(api, made["id"])) == 1


def test_of_twenty_at_once_one_is_entered(committing):
    taught = committing.taught()
    assessment = committing.assessment(taught.subject, taught.term)

    def enter(number):
        answer = committing.api.using().post("/gradebooks", body(taught, assessment, score=number))
        return answer.status_code, number

    answers = run_concurrently(20, enter)

    assert sorted(status for status, _ in answers) == [200] + [409] * 19
    (entry,) = page(committing.api)["data"]
    assert entry["score"] == dict(answers)[200]
    new = {"score": entry["score"], "source": "hand"}
    assert logged(committing.api, entry["id"]) == [("create", None, new)]


@pytest.mark.parametrize(("deleted", "status"), [(True, 422), (False, 200)])
def test_a_score_waits_for_an_assessment_that_is_being_deleted(committing, tenancy, deleted, status):
    taught = committing.taught()
    assessment = committing.assessment(taught.subject, taught.term)
    schema = schema_name(committing.api.school)
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

    with (
        tenancy.admin.connect() as deleting,
        watching_schools(tenancy) as watching,
        ThreadPoolExecutor(1) as thread,
    ):
        deleting.exec_driver_sql(
            f'UPDATE "{schema}".assessments SET deleted_at = now() WHERE id = %s', (assessment["id"],)
        )
        entering = thread.submit(committing.api.using().post, "/gradebooks", body(taught, assessment))
        while not watching.exec_driver_sql(waiting).scalar_one():
            assert not entering.done()
        if deleted:
            deleting.commit()
        else:
            deleting.rollback()
        answer = entering.result()

    assert answer.status_code == status
    if deleted:
        assert reasons(answer) == {"assessment": ["no such assessment"]}
    assert page(committing.api)["total"] == (not deleted)


def test_removing_it_twice_at_once_removes_it_once(committing):
    taught = committing.taught()
    assessment = committing.assessment(taught.subject, taught.term)
    made = committing.entry(assessment, taught.students[0], taught.cohort["id"])

    answers = run_concurrently(
        2, lambda _: committing.api.using().delete(f"/gradebooks/{made['id']}").status_code
    )

    assert sorted(answers) == [200, 404]
    assert [change[0] for change in logged(committing.api, made["id"])] == ["delete", "create"]


@pytest.mark.parametrize(
    "score", ["0", "0.0", "-0.0", "20", "20.00", "2e1", "0.01", "19.99", "7.1000000000000000"]
)
def test_a_score_is_from_0_to_the_total_points(api, taught, assessment, score):
    assert send(api, taught, assessment, score).get_json()["score"] == float(score)


@pytest.mark.parametrize(
    "score",
    [
        "-0.01",
        "20.01",
        "20.000000000000000000000000000000001",
        "0.001",
        "12.345",
        "1e99",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "NaN",
        "Infinity",
        "-Infinity",
        "false",
        "null",
        '"12"',
        "{}",
    ],
)
def test_any_other_score_is_refused_and_not_rounded(api, taught, assessment, score):
    assert list(reasons(send(api, taught, assessment, score))) == ["score"]
    assert page(api)["total"] == 0


def send(api, taught, assessment, score):
    text = api.app.json.dumps(body(taught, assessment, score="SCORE")).replace('"SCORE"', score)
    return api.request("POST", "/gradebooks", data=text, content_type="application/json")


def test_the_highest_score_is_the_total_of_the_assessment(api, make, taught):
    assessment = make.assessment(taught.subject, taught.term, total_points=12.5)

    assert reasons(api.post("/gradebooks", body(taught, assessment, score=12.51))) == {
        "score": ["is more than the assessment's 12.50 points"]
    }


@pytest.mark.parametrize(
    ("field", "reason"),
    [("assessment", "no such assessment"), ("student", "no such student"), ("batch", "no such batch")],
)
def test_unknown_ids_are_named(api, taught, assessment, field, reason):
    answer = api.post("/gradebooks", body(taught, assessment, **{field: str(uuid4())}))

    assert reasons(answer) == {field: [reason]}
    assert list(reasons(api.post("/gradebooks", body(taught, assessment, **{field: "x"})))) == [field]


@pytest.mark.parametrize("field", ["assessment", "score", "student", "batch"])
def test_every_member_is_needed(api, taught, assessment, field):
    sent = body(taught, assessment)
    del sent[field]

    assert list(reasons(api.post("/gradebooks", sent))) == [field]


def test_the_batch_must_be_of_the_assessments_cohort(api, make, taught, assessment):
    elsewhere = make.cohort()

    answer = api.post("/gradebooks", body(taught, assessment, batch=elsewhere["id"]))

    assert reasons(answer) == {"batch": ["is not of the assessment's cohort"]}


def test_the_student_must_be_in_that_batch_and_no_other(api, make, taught, assessment):
    arm = make.batch(taught.cohort)
    (student,) = make.enrolled(taught.cohort, batch=arm["id"])
    outside = make.student()["id"]

    for who, where in (
        (taught.students[0], arm["id"]),
        (student, taught.cohort["id"]),
        (outside, taught.cohort["id"]),
    ):
        answer = api.post("/gradebooks", body(taught, assessment, student=who, batch=where))
        assert reasons(answer) == {"student": ["is not in the batch"]}
    made = api.ok(api.post("/gradebooks", body(taught, assessment, student=student, batch=arm["id"])))
    assert made["batch"] == arm["id"]


def test_the_student_must_take_the_subject(api, make, taught):
    elective = make.cohort_subject(taught.cohort, elective=True)
    assessment = make.assessment(elective, taught.term)

    answer = api.post("/gradebooks", body(taught, assessment))
    assert reasons(answer) == {"student": ["does not take the subject"]}

    api.ok(api.patch(f"/cohort-subjects/{elective['id']}/students", [taught.students[0]]))
    assert api.post("/gradebooks", body(taught, assessment)).status_code == 200


def test_a_student_who_left_the_cohort_gets_no_score_and_keeps_stored_ones(api, make, taught, assessment):
    made = make.entry(assessment, taught.students[0], taught.cohort["id"])
    later = make.assessment(taught.subject, taught.term)
    left = {"student_ids": [taught.students[0]]}
    api.ok(api.patch(f"/cohorts/{taught.cohort['id']}/remove_students", left))

    assert reasons(api.post("/gradebooks", body(taught, later))) == {"student": ["is not in the batch"]}
    assert api.ok(api.get(f"/gradebooks/{made['id']}")) == made


def test_scores_are_listed_by_batch_the_cohort_being_its_first(api, make, taught, assessment):
    arm = make.batch(taught.cohort)
    (student,) = make.enrolled(taught.cohort, batch=arm["id"])
    first = make.entry(assessment, taught.students[0], taught.cohort["id"])
    second = make.entry(assessment, student, arm["id"])

    assert ids(api) == [first["id"], second["id"]]
    assert ids(api, batch=taught.cohort["id"]) == [first["id"]]
    assert ids(api, batch=arm["id"]) == [second["id"]]
    assert ids(api, batch=make.batch(taught.cohort)["id"]) == []


def test_scores_come_in_order_of_creation_and_by_page(api, make, taught):
    made = [
        make.entry(make.assessment(taught.subject, taught.term), taught.students[0], taught.cohort["id"])
        for _ in range(3)
    ]

    pages = [page(api, pageNumber=number, pageSize=2) for number in range(3)]

    assert [page["data"] for page in pages] == [made[:2], made[2:], []]
    assert {(page["total"], page["total_pages"]) for page in pages} == {(3, 2)}


def test_scores_are_listed_by_student_assessment_and_term_and_all_of_these(api, make, taught, assessment):
    first, second = taught.students[0], *make.enrolled(taught.cohort)
    later_term = make.term({"id": taught.cohort["session"]}, term="SECOND")
    later = make.assessment(taught.subject, later_term)
    batch = taught.cohort["id"]
    made = [
        make.entry(exam, student, batch)["id"] for exam in (assessment, later) for student in (first, second)
    ]

    assert ids(api) == made
    assert ids(api, student=first) == [made[0], made[2]]
    assert ids(api, assessment=assessment["id"]) == made[:2]
    assert ids(api, term=later_term["id"]) == made[2:]
    everything = {"batch": batch, "student": second, "assessment": later["id"], "term": later_term["id"]}
    assert ids(api, **everything) == [made[3]]
    assert ids(api, **{**everything, "term": taught.term["id"]}) == []
    assert ids(api, student=make.student()["id"]) == []
    api.ok(api.delete(f"/assessments/{later['id']}"))
    assert ids(api, student=first) == [made[0]]
    answer = api.get("/gradebooks", query_string={"assessment": later["id"]})
    assert reasons(answer, "query") == {"assessment": ["no such assessment"]}


@pytest.mark.parametrize("filtered", ["batch", "student", "assessment", "term"])
def test_a_filter_must_name_a_record_of_this_school(api, filtered, make_other):
    theirs = make_other.taught()
    elsewhere = {
        "batch": theirs.cohort["id"],
        "student": theirs.students[0],
        "assessment": make_other.assessment(theirs.subject, theirs.term)["id"],
        "term": theirs.term["id"],
    }
    for value in (str(uuid4()), "x", "", elsewhere[filtered]):
        answer = api.get("/gradebooks", query_string={filtered: value})
        assert list(reasons(answer, "query")) == [filtered]


def test_a_list_costs_one_round_trip_however_long_it_is(api, make, messages):
    taught = make.taught(10)
    for _ in range(2):
        assessment = make.assessment(taught.subject, taught.term)
        for student in taught.students:
            make.entry(assessment, student, taught.cohort["id"])
        by_all = {"student": taught.students[0], "assessment": assessment["id"], "term": taught.term["id"]}
        for query in ({}, {"batch": taught.cohort["id"]}, by_all):
            page(api, **query)
            with messages() as sent:
                page(api, **query)
            assert len(sent) == 1, sent


def test_the_other_school_has_its_own(api, make, other_api, make_other, taught, assessment):
    made = make.entry(assessment, taught.students[0], taught.cohort["id"])
    theirs = make_other.taught()
    their_assessment = make_other.assessment(theirs.subject, theirs.term)

    assert other_api.get(f"/gradebooks/{made['id']}").status_code == 404
    assert other_api.delete(f"/gradebooks/{made['id']}").status_code == 404
    for field, value in body(taught, assessment).items():
        if field != "score":
            answer = other_api.post("/gradebooks", body(theirs, their_assessment, **{field: value}))
            assert list(reasons(answer)) == [field]
    answer = other_api.get("/gradebooks", query_string={"batch": taught.cohort["id"]})
    assert list(reasons(answer, "query")) == ["batch"]
    assert page(other_api)["data"] == []
    assert api.ok(api.get(f"/gradebooks/{made['id']}")) == made
