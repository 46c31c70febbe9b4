"""Cohort subjects: the subjects taught to a cohort."""

from __future__ import annotations

from datetime import date, timedelta
from uuid import uuid4

import pytest

from tests.threads import run_concurrently


def page(api, **filters):
    return api.ok(api.get("/cohort-subjects", query_string=filters))


def subject_ids(api, **filters):
    return [subject["id"] for subject in page(api, **filters)["data"]]


def test_a_cohort_subject_is_created_listed_and_shown(api, make):
    cohort, subject = make.cohort(), make.subject(name="Fisíìsì", code="PHY")

    made = make.cohort_subject(cohort, subject, elective=True)

    assert made == {
        "id": made["id"],
        "elective": True,
        "subject": "Fisíìsì",
        "code": "PHY",
        "cohort": cohort["id"],
    }
    assert api.ok(api.get(f"/cohort-subjects/{made['id']}")) == made
    assert page(api) == {"page_number": 0, "page_size": 50, "total_pages": 1, "total": 1, "data": [made]}


def test_the_list_is_in_order_of_names_and_paged(api, make):
    cohort = make.cohort()
    made = [make.cohort_subject(cohort, make.subject(name=name)) for name in ("Music", "Art", "Yoruba")]
    again = make.cohort_subject(make.cohort(), None)

    named = [subject["subject"] for subject in page(api)["data"]]
    pages = [subject_ids(api, pageNumber=number, pageSize=3) for number in range(3)]

    assert named == sorted(named)
    assert [len(part) for part in pages] == [3, 1, 0]
    assert sorted(pages[0] + pages[1]) == sorted([again["id"], *(subject["id"] for subject in made)])


def test_a_second_time_is_a_conflict(api, make):
    cohort, subject = make.cohort(), make.subject()
    make.cohort_subject(cohort, subject)

    body = {"cohort_id": cohort["id"], "subject_id": subject["id"], "elective": True}
    answer = api.post("/cohort-subjects", body)

    assert answer.status_code == 409
    assert answer.get_json()["message"] == "A cohort subject with this cohort and subject exists already."
    assert answer.get_json()["errors"] == {
        "json": {"cohort_id": ["already taken"], "subject_id": ["already taken"]}
    }


def test_any_batch_of_a_cohort_finds_its_subjects(api, make):
    cohort = make.cohort()
    arm = make.batch(cohort)
    made = make.cohort_subject(cohort)
    make.cohort_subject()

    assert subject_ids(api, batch=cohort["id"]) == subject_ids(api, batch=arm["id"]) == [made["id"]]


def test_the_base_finds_where_a_subject_is_taught(api, make):
    subject = make.subject()
    made = [make.cohort_subject(subject=subject)["id"] for _ in range(2)]
    make.cohort_subject()

    assert sorted(subject_ids(api, base=subject["id"])) == sorted(made)


def test_a_session_is_found_by_its_id_or_its_name(api, make):
    session = make.session(name="2025/2026 & %_'\"")
    made = make.cohort_subject(make.cohort(session=session))
    make.cohort_subject()

    assert (
        subject_ids(api, session=session["id"]) == subject_ids(api, session=session["name"]) == [made["id"]]
    )


def test_filters_narrow_each_other(api, make):
    session, subject = make.session(), make.subject()
    cohort = make.cohort(session=session)
    made = make.cohort_subject(cohort, subject)
    make.cohort_subject(cohort)
    make.cohort_subject(make.cohort(session=session), subject)
    other = make.session()

    assert subject_ids(api, batch=cohort["id"], base=subject["id"], session=session["id"]) == [made["id"]]
    assert subject_ids(api, batch=cohort["id"], session=other["id"]) == []


@pytest.mark.parametrize("name", ["batch", "base", "session"])
def test_an_unknown_filter_names_itself(api, make, make_other, name):
    foreign = {"batch": make_other.cohort, "base": make_other.subject, "session": make_other.session}[name]()

    for unknown in (str(uuid4()), foreign["id"]):
        answer = api.get("/cohort-subjects", query_string={name: unknown})
        assert answer.status_code == 422
        assert list(answer.get_json()["errors"]["query"]) == [name]


@pytest.mark.parametrize(
    "filters",
    [{"batch": "A"}, {"base": ""}, {"session": ""}, {"session": "\0"}, {"pageSize": 0}, {"pageNumber": "x"}],
)
def test_an_invalid_filter_is_refused(api, filters):
    assert api.get("/cohort-subjects", query_string=filters).status_code == 422


@pytest.mark.parametrize("member", ["cohort_id", "subject_id"])
def test_an_unknown_cohort_or_subject_names_its_field(api, make, make_other, member):
    body = {"cohort_id": make.cohort()["id"], "subject_id": make.subject()["id"], "elective": False}
    foreign = make_other.cohort() if member == "cohort_id" else make_other.subject()

    for unknown in (str(uuid4()), foreign["id"]):
        answer = api.post("/cohort-subjects", {**body, member: unknown})
        assert answer.status_code == 422
        assert list(answer.get_json()["errors"]["json"]) == [member]
    assert page(api)["total"] == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"cohort_id": None},
        {"cohort_id": "x"},
        {"cohort_id": ...},
        {"subject_id": 1},
        {"subject_id": ...},
        {"elective": None},
        {"elective": "false"},
        {"elective": 0},
        {"elective": ...},
        {"code": "PHY"},
    ],
)
def test_a_body_that_is_no_cohort_subject_is_refused(api, make, wrong):
    body = {"cohort_id": make.cohort()["id"], "subject_id": make.subject()["id"], "elective": False, **wrong}

    answer = api.post("/cohort-subjects", {name: value for name, value in body.items() if value is not ...})

    assert answer.status_code == 422
    assert page(api)["total"] == 0


def test_a_subject_that_is_taught_can_not_be_deleted(api, make):
    subject = make.subject()
    make.cohort_subject(subject=subject)

    answer = api.delete(f"/templates/{subject['id']}")

    assert (answer.status_code, answer.get_json()["message"]) == (
        409,
        "The subject is in use by 1 cohort subject.",
    )


def test_a_cohort_with_subjects_alone_may_change_its_session(api, make):
    cohort, classroom, session = make.cohort(), make.classroom(), make.session()
    made = make.cohort_subject(cohort)

    api.ok(api.patch(f"/cohorts/{cohort['id']}", {"classroom": classroom["id"], "session_id": session["id"]}))

    assert subject_ids(api, session=session["id"]) == [made["id"]]


def test_an_unknown_cohort_subject_is_not_found(api, make_other):
    foreign = make_other.cohort_subject()["id"]

    for unknown in (uuid4(), foreign):
        answer = api.get(f"/cohort-subjects/{unknown}")
        assert (answer.status_code, answer.get_json()["message"]) == (404, "No such cohort subject.")
    assert page(api)["total"] == 0


def test_each_operation_asks_for_its_permission(make):
    made = make.cohort_subject()
    body = {"cohort_id": make.cohort()["id"], "subject_id": make.subject()["id"], "elective": False}
    reader, writer = make.caller("read:cohort-subjects"), make.caller("write:cohort-subjects")
    others = make.caller("read:cohorts", "write:cohorts", "delete:cohort-subjects", "read:subjects")

    for caller, reads, writes in ((others, 403, 403), (reader, 200, 403), (writer, 403, 200)):
        assert caller.get("/cohort-subjects").status_code == reads
        assert caller.get(f"/cohort-subjects/{made['id']}").status_code == reads
        assert caller.post("/cohort-subjects", body).status_code == writes


def test_the_list_costs_one_round_trip_however_long_it_is(api, make, messages):
    cohort = make.cohort()
    for size in (2, 20):
        for _ in range(size):
            make.cohort_subject(cohort)
        for filters in ({}, {"batch": cohort["id"]}):
            page(api, **filters)
            with messages() as sent:
                page(api, **filters)
            assert len(sent) == 1, sent


def test_twenty_at_once_make_one_cohort_subject(committing):
    api = committing.api
    body = {
        "cohort_id": committing.cohort()["id"],
        "subject_id": committing.subject()["id"],
        "elective": False,
    }

    answers = run_concurrently(20, lambda _: api.using().post("/cohort-subjects", body))

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 19
    assert page(api)["total"] == 1


class TestWithoutTeacher:
    """GET /cohort-subjects?without_teacher=true."""

    @staticmethod
    def wanting(client, **query):
        """The arms without a teacher, by subject."""
        answer = client.ok(client.get("/cohort-subjects", query_string={"without_teacher": "true", **query}))
        assert answer["total"] == len(answer["data"])
        return {
            subject["id"]: [arm["batch_name"] for arm in subject["arms_without_teacher"]]
            for subject in answer["data"]
        }

    def test_subjects_with_takers_in_an_arm_without_a_teacher_are_listed(self, api, make, arms, own):
        subject, other, empty = arms.subject["id"], arms.other["id"], make.cohort_subject(arms.cohort)
        make.batch(arms.cohort, name="C")  # without takers

        # A later subject is taken by all who are there, and an elective by nobody.
        elective = make.cohort_subject(arms.cohort, elective=True)
        seen = self.wanting(api, session=arms.session["id"])
        assert seen == {key: ["A", "B"] for key in (subject, other, empty["id"])}
        assert elective["id"] not in seen
        teacher = make.employee()
        own.assign(teacher, arms.subject, arms.b)
        own.assign(teacher, arms.other, None)
        assert self.wanting(api, batch=arms.a) == {subject: ["A"], empty["id"]: ["A", "B"]}
        api.ok(api.delete(f"/employees/{teacher['id']}?release=true"))
        assert self.wanting(api, batch=arms.a) == seen

    def test_dates_and_accounts_count(self, api, make, arms, own):
        today = date.fromisoformat(own.today())
        yesterday, tomorrow = (str(today + timedelta(days=days)) for days in (-1, 1))
        own.assign(make.employee(), arms.subject, None, ends_on=yesterday)
        own.assign(make.employee(), arms.subject, None, starts_on=tomorrow)
        closed = make.employee()
        own.assign(closed, arms.subject, None)
        assert arms.subject["id"] not in self.wanting(api)

        api.ok(api.delete(f"/users/{make.account_of(closed)['id']}/delete"))

        assert self.wanting(api)[arms.subject["id"]] == ["A", "B"]

    def test_to_a_form_teacher_arms_in_reach_are_told(self, make, arms, own):
        own.assign(make.employee(), arms.other, arms.a)

        assert self.wanting(own.form_teacher(arms.a)) == {arms.subject["id"]: ["A"]}
        assert self.wanting(own.form_teacher(arms.b)) == {
            arms.subject["id"]: ["B"],
            arms.other["id"]: ["B"],
        }
        assert self.wanting(own.teacher()[1]) == {}

    def test_without_the_filter_no_arms_are_told_and_it_is_one_message(self, api, arms, messages):
        for query in ("", "?without_teacher=false"):
            listed = api.ok(api.get(f"/cohort-subjects{query}"))["data"]
            assert {subject["id"] for subject in listed} >= {arms.subject["id"], arms.other["id"]}
            assert all("arms_without_teacher" not in subject for subject in listed)
        with messages() as sent:
            self.wanting(api)
        assert len(sent) == 1
        assert api.get("/cohort-subjects?without_teacher=perhaps").status_code == 422
