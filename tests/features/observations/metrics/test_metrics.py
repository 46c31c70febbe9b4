"""Metric records: the scores entered in a batch."""

from __future__ import annotations

from uuid import uuid4

import pytest
from sqlalchemy import delete

from school_service.core.database import db
from school_service.features.school.models import Enrollment
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.observations.metrics.sheets import AFFECTIVE, Observed
from tests.features.scores.scoresheets.sheets import counts


def test_a_record_is_of_a_student_a_term_and_a_type(make):
    seen = Observed(make, 0)
    student = make.student(first_name="Ada", last_name="Àdé", admission_number="Q/1")
    make.enrolled(seen.cohort, student)
    counts(seen.send({"Q/1": {"painting": 5, "handwriting": 1}}))

    (record,) = seen.records()

    assert {**record, "id": None} == {
        "id": None,
        "student_name": "Ada Àdé",
        "admission_number": "Q/1",
        "term": "FIRST",
        "batch": seen.batch,
        "metric_type": "PSYCHOMOTOR",
        "metric_scores": {"handwriting": 1, "painting": 5},
    }
    assert list(record["metric_scores"]) == ["handwriting", "painting"]


def test_metrics_come_by_name_number_term_and_type(make):
    seen = Observed(make, 0)
    people = [("Zainab", "Bello", "4"), ("Ada", "Eze", "3"), ("Ada", "Eze", "2"), ("Ada", "Bello", "1")]
    made = [make.student(first_name=f, last_name=n, admission_number=a) for f, n, a in people]
    make.enrolled(seen.cohort, *made)
    second = make.term({"id": seen.cohort["session"]}, term="SECOND")
    traits = {"PSYCHOMOTOR": seen.traits, "AFFECTIVE": affective(seen.api)}
    for term in (second, seen.term):
        for seen.metric_type, seen.traits in traits.items():
            scores = {seen.traits[0]: 3}
            details = seen.details(term=term["id"])
            counts(seen.upload(seen.sheet({str(number): scores for number in range(1, 5)}, details)))

    shown = [(record["admission_number"], record["term"], record["metric_type"]) for record in seen.records()]

    of_student = [(term, name) for term in ("FIRST", "SECOND") for name in ("AFFECTIVE", "PSYCHOMOTOR")]
    assert shown == [(number, *columns) for number in ("1", "4", "2", "3") for columns in of_student]


def affective(api):
    return [
        definition["name"]
        for definition in api.ok(api.get("/metric-definitions"))
        if definition["metric_type"] == AFFECTIVE
    ]


@pytest.mark.parametrize(("again", "done"), [(3, (1, 0, 1, 0, 0)), (2, (1, 0, 0, 1, 0))])
def test_a_record_goes_with_the_student_when_the_new_arms_sheet_is_entered(make, again, done):
    seen = Observed(make)
    arm = make.batch(seen.cohort)["id"]
    counts(seen.send({"A/1": {"painting": 2}, "A/2": {"painting": 5}}))
    before = {record["admission_number"]: record for record in seen.records()}

    make.enrolled(seen.cohort, {"id": seen.students["A/1"]}, batch=arm)
    assert len(seen.records()) == 2
    of_arm = seen.sheet({"A/1": {"painting": again}}, seen.details(batch=arm))
    assert counts(seen.upload(of_arm, batch=arm)) == done

    assert seen.records() == [before["A/2"]]
    assert seen.records(arm) == [{**before["A/1"], "batch": arm, "metric_scores": {"painting": again}}]


def test_a_student_who_left_keeps_their_scores(api, make):
    seen = Observed(make)
    counts(seen.send({"A/1": {"painting": 2}}))

    left = {"student_ids": [seen.students["A/1"]]}
    api.ok(api.patch(f"/cohorts/{seen.cohort['id']}/remove_students", left))

    assert seen.scores() == {"A/1": {"painting": 2}}


def test_a_batch_in_which_nothing_was_entered_has_none(make):
    assert Observed(make).records() == []


def test_a_cohorts_id_is_its_first_arm_alone(make):
    seen = Observed(make)
    arm = make.batch(seen.cohort)["id"]
    make.enrolled(seen.cohort, make.student(admission_number="B/1"), batch=arm)
    counts(seen.upload(seen.sheet({"B/1": {"painting": 2}}, seen.details(batch=arm)), batch=arm))

    assert seen.records(seen.cohort["id"]) == []
    assert [record["batch"] for record in seen.records(arm)] == [arm]


@pytest.mark.parametrize("query", [{}, {"batchId": ""}, {"batchId": "1"}, {"batchId": "A"}])
def test_the_batch_is_a_uuid(api, query):
    answer = api.get("/metrics", query_string=query)

    assert answer.status_code == 422
    assert list(answer.get_json()["errors"]["query"]) == ["batchId"]


def test_an_unknown_batch_is_named(api, make_other):
    foreign = Observed(make_other)
    counts(foreign.send({"A/1": {"painting": 2}}))

    for unknown in (uuid4(), foreign.batch):
        answer = api.get("/metrics", query_string={"batchId": unknown})

        assert answer.status_code == 422
        assert answer.get_json()["errors"]["query"] == {"batchId": ["no such batch"]}


def test_the_other_school_has_its_own(api, other_api, make, make_other):
    here, there = Observed(make), Observed(make_other)
    counts(here.send({"A/1": {"painting": 2}}))
    counts(there.send({"A/1": {"painting": 4}}))

    assert (here.scores(), there.scores()) == ({"A/1": {"painting": 2}}, {"A/1": {"painting": 4}})
    path = f"/metrics?batchId={here.batch}"
    assert other_api.using(school=api.school).get(path).status_code == 403
    assert api.using(school=None).get(path).status_code == 400


def test_any_number_of_metrics_costs_one_round_trip(make, messages):
    costs = []
    for size in (1, 40):
        seen = Observed(make, 0)
        made = [make.student() for _ in range(size)]
        make.enrolled(seen.cohort, *made)
        all_of_them = dict.fromkeys(seen.traits, 4)
        counts(seen.send({student["admission_number"]: all_of_them for student in made}))
        with messages() as sent:
            assert len(seen.records()) == size
        costs.append(len(sent))

    assert costs == [1, 1]


def test_metrics_tie_a_cohort_to_its_session(api, make, place):
    seen = Observed(make)
    counts(seen.send({"A/1": {"painting": 2}}))
    with in_transaction(SchoolBinding(place.id)):
        # Enrollments tie it too; without them, the records do.
        db.session.execute(delete(Enrollment).where(Enrollment.cohort_id == seen.cohort["id"]))

    path = f"/cohorts/{seen.cohort['id']}"
    answer = api.patch(path, {"classroom": make.classroom()["id"], "session_id": make.session()["id"]})

    assert (answer.status_code, answer.get_json()["message"]) == (409, "The cohort is in use by a metric.")
    assert api.ok(api.get(path)) == seen.cohort
