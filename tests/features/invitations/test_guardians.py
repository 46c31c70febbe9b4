"""Accounts and invitations for the guardians of a class."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.features.invitations.test_invitations import PASSWORD, take
from tests.threads import run_concurrently


class Family:
    """Two students of a class and one of another, with guardians: the first two of `mine` have no account."""

    def __init__(self, make):
        self.make, self.api = make, make.api
        self.cohort = make.cohort()
        self.batch = self.cohort["id"]
        first, second = make.student(last_name="Abara"), make.student(last_name="Bello")
        make.enrolled(self.cohort, first, second)
        other = make.student()
        make.enrolled(make.cohort(), other)
        self.students = [first["id"], second["id"]]
        self.mother = make.guardian(second, full_name="Ọlá Ògúnlẹ́yẹ")["id"]
        self.father = make.guardian(first, second, full_name="Ọlá Ògúnlẹ́yẹ")["id"]
        self.stopped = make.guardian(first, full_name="Stopped Person")["id"]
        stop = f"/students/{first['id']}/guardians/{self.stopped}/stop"
        self.api.ok(self.api.put(stop, {"reason": "A court order"}))
        self.known = make.guardian(first)["id"]
        self.api.ok(self.api.put(f"/guardians/{self.known}/account", {"username": "known"}))
        self.elsewhere = make.guardian(other)["id"]

    def give(self, api=None, **fields):
        return (api or self.api).post("/guardians/accounts", {"batch": self.batch, **fields})

    def account(self, guardian):
        return self.api.ok(self.api.get(f"/guardians/{guardian}"))["user"]


@pytest.fixture
def family(make):
    return Family(make)


def test_each_guardian_of_the_class_without_an_account_gets_one_and_a_code(family):
    made = family.api.ok(family.give())

    # By the class list, by their first child: the father's is the first student.
    assert [invitation["guardian"] for invitation in made] == [family.father, family.mother]
    assert [invitation["username"] for invitation in made] == ["ola.ogunleye", "ola.ogunleye2"]
    assert [family.account(invitation["guardian"]) for invitation in made] == [
        invitation["user"] for invitation in made
    ]
    assert family.account(family.stopped) is family.account(family.elsewhere) is None
    roles = family.api.ok(family.api.get(f"/users/{made[0]['user']}"))["roles"]
    assert len(roles) == 1


def test_a_code_that_is_taken_reads_of_the_children(family):
    (made, _) = family.api.ok(family.give(days=30))

    taken = family.api.ok(take(family.api, made["code"]))

    me = family.api.using(token=taken["access_token"]["access_token"])
    shown = me.ok(me.get("/me"))
    assert {child["student"] for child in shown["children"]} == {*family.students}
    assert (
        family.api.post("/users/login", {"username": made["username"], "password": PASSWORD}).status_code
        == 200
    )


def test_asked_again_nobody_is_left(family):
    family.api.ok(family.give())

    assert family.api.ok(family.give()) == []


def test_all_of_it_is_on_record(family):
    made = family.api.ok(family.give())

    def logged(entity, entity_id):
        entries = family.api.ok(family.api.get("/audit", query_string={"entity": entity, "id": entity_id}))[
            "data"
        ]
        return [change["new"] for change in entries]

    for invitation in made:
        assert {"user": invitation["user"]} in logged("guardian", invitation["guardian"])
        assert {"role": "Guardian"} in logged("user", invitation["user"])
        assert logged("invitation", invitation["id"])[0]["user"] == invitation["user"]


def test_inviting_guardians_needs_the_permissions_of_both_acts(family):
    every = {"write:students", "write:users", "read:results"}
    for missing in every:
        assert family.give(family.make.caller(*every - {missing})).status_code == 403, missing
    assert family.account(family.mother) is None

    assert len(family.api.ok(family.give(family.make.caller(*every)))) == 2


@pytest.mark.parametrize(
    "fields", [{"batch": str(uuid4())}, {"batch": ""}, {"batch": 1}, {"days": 0}, {"days": 31}, {"x": 1}]
)
def test_an_unknown_class_and_an_invalid_time_are_refused(family, fields):
    assert family.give(**fields).status_code == 422
    assert family.account(family.mother) is None


def test_the_other_schools_class_is_as_an_unknown_one(family, make_other):
    def refusal(batch):
        answer = family.give(batch=batch)
        return answer.status_code, answer.get_json()["message"]

    assert refusal(make_other.cohort()["id"]) == refusal(str(uuid4()))


def test_a_class_without_guardians_has_nobody_to_invite(api, make):
    assert api.ok(api.post("/guardians/accounts", {"batch": make.cohort()["id"]})) == []


@pytest.mark.parametrize("guardians", [1, 12])
def test_any_number_of_guardians_takes_as_many_messages(api, make, messages, guardians):
    cohort, student = make.cohort(), make.student()
    make.enrolled(cohort, student)
    for _ in range(guardians):
        make.guardian(student)

    with messages() as sent:
        assert len(api.ok(api.post("/guardians/accounts", {"batch": cohort["id"]}))) == guardians

    assert len(sent) == 7


def test_of_two_at_once_one_makes_the_accounts(committing):
    family = Family(committing)

    answers = run_concurrently(2, lambda _: family.give())

    made = [family.api.ok(answer) for answer in answers if answer.status_code == 200]
    assert sorted(map(len, made)) in ([0, 2], [2])
