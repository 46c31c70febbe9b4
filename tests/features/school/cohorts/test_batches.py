"""Batches: the arms of a cohort."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.threads import run_concurrently


def batches(api, cohort):
    return api.ok(api.get(f"/cohorts/{cohort['id']}/batches"))


def test_a_cohort_is_born_with_a_batch_that_has_its_id(api, make):
    cohort = make.cohort()

    assert batches(api, cohort) == [{"id": cohort["id"], "number": 1, "name": "A", "cohort": cohort["id"]}]


def new_cohort(make, names):
    body = {"classroom": make.classroom()["id"], "session_id": make.session()["id"], "batches": names}
    return make.api.post("/cohorts", body)


def test_a_cohort_is_born_with_the_batches_that_are_named(api, make):
    make.cohort()

    cohort = api.ok(new_cohort(make, [" Gold ", "Silver", "Àṣà"]))

    arms = {batch["name"]: batch for batch in batches(api, cohort)}
    assert {name: batch["number"] for name, batch in arms.items()} == {"Gold": 2, "Silver": 3, "Àṣà": 4}
    assert [name for name, batch in arms.items() if batch["id"] == cohort["id"]] == ["Gold"]
    assert make.batch(cohort)["number"] == 5
    logged = api.ok(api.get("/audit", query_string={"entity": "batch"}))["data"]
    assert [entry["new"]["name"] for entry in logged if entry["new"]["cohort"] == cohort["id"]][1:] == [
        "Àṣà", "Silver", "Gold",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "names", [[], None, "Gold", ["A", "A"], ["A", " A "], [""], [1], [None], ["x" * 121], ["x"] * 51, ["\0"]]
)
def test_names_that_are_none_are_refused_with_the_cohort(api, make, names):
    answer = new_cohort(make, names)

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, ["batches"])
    assert api.ok(api.get("/cohorts")) == []
    assert batches(api, make.cohort())[0]["number"] == 1


def test_a_cohort_that_is_there_takes_no_names(api, make):
    cohort = make.cohort()
    body = {"classroom": make.classroom()["id"], "session_id": cohort["session"], "batches": ["B"]}

    answer = api.patch(f"/cohorts/{cohort['id']}", body)

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, ["batches"])


def test_a_batch_is_added_and_listed_by_name(api, make):
    cohort = make.cohort()

    late, early = make.batch(cohort, name="Gold"), make.batch(cohort, name=" Àṣà ")

    assert early == {"id": early["id"], "number": 3, "name": "Àṣà", "cohort": cohort["id"]}
    assert sorted(batch["name"] for batch in batches(api, cohort)) == sorted(["A", "Gold", "Àṣà"])
    assert [batch["id"] for batch in batches(api, cohort) if batch != early] == [cohort["id"], late["id"]]


def test_numbers_count_the_schools_batches_without_gaps(api, make, make_other):
    first = make.cohort()
    make.batch(first, name="B")
    assert api.post(f"/cohorts/{first['id']}/batches", {"name": "B"}).status_code == 409
    second = make.cohort()

    foreign = make_other.cohort()

    numbers = [batch["number"] for cohort in (first, second) for batch in batches(api, cohort)]
    assert numbers == [1, 2, 3]
    assert batches(make_other.api, foreign)[0]["number"] == 1


def test_the_number_of_a_deleted_batch_is_not_given_anew(api, make):
    cohort = make.cohort()
    gone = make.batch(cohort)
    api.ok(api.delete(f"/batches/{gone['id']}"))

    assert make.batch(cohort)["number"] == gone["number"] + 1


def test_a_name_that_the_cohort_has_is_a_conflict(api, make):
    cohort, other = make.cohort(), make.cohort()

    answer = api.post(f"/cohorts/{cohort['id']}/batches", {"name": "A"})

    assert answer.status_code == 409
    assert answer.get_json()["message"] == "A batch with this cohort and name exists already."
    assert answer.get_json()["errors"] == {"json": {"name": ["already taken"]}}
    assert make.batch(other, name="B")["name"] == make.batch(cohort, name="B")["name"]


def test_names_are_one_however_they_are_composed_and_two_where_case_or_a_space_within_differs(api, make):
    cohort = make.cohort()
    for name in ("Àṣà 1", "àṣà 1", "Àṣà  1"):
        make.batch(cohort, name=name)

    for name in (" Àṣà 1 ", "A\u0300s\u0323a\u0300 1"):
        assert api.post(f"/cohorts/{cohort['id']}/batches", {"name": name}).status_code == 409
    assert len(batches(api, cohort)) == 4


@pytest.mark.parametrize(
    "body",
    [{}, {"name": None}, {"name": ""}, {"name": " "}, {"name": 1}, {"name": "x" * 121}, {"name": "\0"}, []],
)
def test_a_body_that_is_no_batch_is_refused(api, make, body):
    cohort = make.cohort()

    assert api.post(f"/cohorts/{cohort['id']}/batches", body).status_code == 422
    assert len(batches(api, cohort)) == 1


def test_the_batches_of_an_unknown_cohort_are_not_found(api, make, make_other):
    for unknown in (uuid4(), make_other.cohort()["id"], make.batch(make.cohort())["id"]):
        for answer in (
            api.get(f"/cohorts/{unknown}/batches"),
            api.post(f"/cohorts/{unknown}/batches", {"name": "B"}),
        ):
            assert (answer.status_code, answer.get_json()["message"]) == (404, "No such cohort.")


def test_each_operation_asks_for_its_permission(make):
    cohort = make.cohort()
    reader, writer = make.caller("read:cohorts"), make.caller("write:cohorts")

    assert reader.get(f"/cohorts/{cohort['id']}/batches").status_code == 200
    assert writer.get(f"/cohorts/{cohort['id']}/batches").status_code == 403
    assert reader.post(f"/cohorts/{cohort['id']}/batches", {"name": "B"}).status_code == 403
    assert writer.post(f"/cohorts/{cohort['id']}/batches", {"name": "B"}).status_code == 200


def test_the_list_costs_one_round_trip_however_long_it_is(api, make, messages):
    cohort = make.cohort()
    for size in (2, 20):
        for _ in range(size):
            make.batch(cohort)
        batches(api, cohort)
        with messages() as sent:
            batches(api, cohort)
        assert len(sent) == 1, sent


def test_many_at_once_leave_no_gap_between_numbers(committing):
    api, cohorts = committing.api, [committing.cohort() for _ in range(4)]

    def add(number):
        # Five names for each cohort, each of them requested twice where the numbers allow it.
        return api.using().post(
            f"/cohorts/{cohorts[number % 4]['id']}/batches", {"name": f"Arm {number % 12}"}
        )

    answers = run_concurrently(20, add)

    assert {answer.status_code for answer in answers} == {200, 409}
    numbers = sorted(batch["number"] for cohort in cohorts for batch in batches(api, cohort))
    assert numbers == list(range(1, 4 + 12 + 1))
