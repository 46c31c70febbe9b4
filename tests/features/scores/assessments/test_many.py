"""The same assessment for several subjects of a cohort."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.features.scores.assessments.test_assessments import BODY
from tests.prepared import prepared_for_each
from tests.threads import run_concurrently


class Cohort:
    """A cohort with three subjects, and a term of its session."""

    def __init__(self, make, subjects=3):
        self.make, self.api = make, make.api
        self.cohort = make.cohort()
        self.term = make.term({"id": self.cohort["session"]})
        self.subjects = [make.cohort_subject(self.cohort)["id"] for _ in range(subjects)]

    def post(self, *subjects, api=None, headers=None, **fields):
        body = {**BODY, "subjects": list(subjects), "term": self.term["id"], **fields}
        return (api or self.api).post("/assessments/many", body, headers=headers or {})

    def number(self):
        """How many assessments each subject has."""
        query = {"cohort": self.cohort["id"], "term": "FIRST"}
        return [
            self.api.ok(self.api.get("/assessments", query_string={**query, "subject": subject}))["total"]
            for subject in self.subjects
        ]


original, taught = prepared_for_each(Cohort)


def places(answer, status=422):
    assert answer.status_code == status, answer.get_data(as_text=True)
    return answer.get_json()["errors"]["json"]


def test_each_subject_gets_it_in_the_order_given(taught):
    first, _, third = taught.subjects

    made = taught.api.ok(taught.post(third, first, term="FIRST"))

    assert [assessment["subject"] for assessment in made] == [third, first]
    shown = {name: value for name, value in BODY.items() if name != "description"}
    for assessment in made:
        assert assessment == {
            **shown,
            "id": assessment["id"],
            "subject": assessment["subject"],
            "term": taught.term["id"],
        }
        assert taught.api.ok(taught.api.get(f"/assessments/{assessment['id']}")) == assessment
    assert taught.number() == [1, 0, 1]
    log = taught.api.ok(taught.api.get("/audit?entity=assessment"))["data"]
    assert {entry["entity_id"] for entry in log[:2]} == {assessment["id"] for assessment in made}
    assert {entry["new"]["name"] for entry in log[:2]} == {BODY["name"]}


def test_the_same_key_makes_them_once(taught):
    key = {"Idempotency-Key": str(uuid4())}

    answers = [taught.api.ok(taught.post(*taught.subjects, headers=key)) for _ in range(2)]

    assert answers[0] == answers[1]
    assert taught.number() == [1, 1, 1]


def test_subjects_that_are_wrong_are_named_by_their_place(taught, make_other):
    first = taught.subjects[0]
    foreign = make_other.cohort_subject()["id"]

    errors = places(taught.post(first, str(uuid4()), foreign, first))

    assert errors == {
        "subjects": {
            "1": ["no such cohort subject"],
            "2": ["no such cohort subject"],
            "3": ["named more than once"],
        }
    }
    assert taught.number() == [0, 0, 0]


def test_subjects_of_several_cohorts(taught):
    other = taught.make.cohort_subject(taught.make.cohort(session={"id": taught.cohort["session"]}))["id"]

    assert places(taught.post(taught.subjects[0], other)) == {"subjects": ["are of several cohorts"]}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"subjects": []}, "subjects"),
        ({"subjects": None}, "subjects"),
        ({"subjects": "x"}, "subjects"),
        ({"subjects": ["x"]}, "subjects"),
        ({"subjects": [str(uuid4()) for _ in range(101)]}, "subjects"),
        ({"subject": str(uuid4())}, "subject"),
        ({"total_points": 0}, "total_points"),
        ({"category": "CA4"}, "category"),
        ({"term": "THIRD"}, "term"),
        ({"term": str(uuid4())}, "term"),
        ({"name": ""}, "name"),
    ],
)
def test_other_input_that_is_wrong(taught, fields, field):
    assert list(places(taught.post(*taught.subjects, **fields))) == [field]


def test_a_term_of_another_session(taught):
    assert places(taught.post(*taught.subjects, term=taught.make.term()["id"])) == {
        "term": ["is not of the cohort's session"]
    }


def test_no_subject_gets_an_assessment_where_one_is_submitted(taught):
    first, second, _ = taught.subjects
    taught.make.enrolled(taught.cohort)
    made = taught.make.assessment({"id": second}, taught.term)
    (student,) = taught.api.ok(taught.api.get(f"/assessments/{made['id']}/scores"))
    taught.make.entry(made, student["student"]["id"], taught.cohort["id"], 5)
    taught.api.ok(taught.api.post(f"/cohort-subjects/{second}/submission", {"term": "FIRST"}))

    answer = taught.post(first, second)

    assert answer.status_code == 409
    assert "are submitted: reopen them first" in answer.get_json()["message"]
    assert taught.number() == [0, 1, 0]


@pytest.mark.parametrize("subjects", [1, 25])
def test_round_trips_do_not_depend_on_how_many(make, messages, subjects):
    taught = Cohort(make, subjects)

    with messages() as sent:
        taught.api.ok(taught.post(*taught.subjects))

    assert len(sent) == 4


def test_six_at_once_in_opposite_order(committing):
    taught = Cohort(committing)

    def post(number):
        subjects = taught.subjects if number % 2 else reversed(taught.subjects)
        return taught.post(*subjects, api=taught.api.using()).status_code

    assert run_concurrently(6, post) == [200] * 6
    assert taught.number() == [6, 6, 6]
