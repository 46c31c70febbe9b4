"""Correcting records by PATCH: the rules of all records alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any
from uuid import uuid4

import pytest

from tests.threads import run_concurrently

NO_TEXTS = {
    "dob",
    "join_date",
    "employee",
    "email_address",
    "avatar",
    "category",
    "metric_type",
    "term",
    "due_date",
    "total_points",
    "include_in_final",
    "publish_scores",
}


@dataclass(frozen=True)
class Record:
    """A kind of record: `make` answers the path of a new one and the id that the audit log knows it by.

    `changes` are other values of all members, without the `hidden` in the answer; `stored` names those
    that the audit log has under another name, `shown` those that the answer has. Of `private` records the log has the
    names of members alone. `section` is that of the permission, where the path does not begin with it.
    """

    entity: str
    make: Callable[[Any], tuple[str, str]]
    changes: dict[str, Any]
    hidden: frozenset[str] = frozenset()
    stored: dict[str, Any] = field(default_factory=dict)
    private: bool = True
    shown: dict[str, str] = field(default_factory=dict)
    section: str = ""

    def __str__(self):
        return self.entity

    @property
    def texts(self) -> list[str]:
        """The members that are texts of any form."""
        return [name for name in self.changes if name not in NO_TEXTS]


def make_classroom(make):
    made = make.classroom()
    return f"/classrooms/{made['id']}", made["id"]


def make_contact(make):
    made = make.contact()
    return f"/contacts/{made['id']}", made["id"]


def make_user(make):
    made = make.user()["user"]
    return f"/users/{made['id']}", made["id"]


def make_employee(make):
    made = make.employee()
    return f"/employees/{made['id']}", made["id"]


def make_bank_account(make):
    made = make.employee()
    return f"/employees/{made['id']}/bank-account", made["bank_details"]


def make_next_of_kin(make):
    made = make.employee()
    return f"/employees/{made['id']}/nextofkin", made["next_of_kin"]


def make_subject(make):
    made = make.subject()
    return f"/templates/{made['id']}", made["id"]


def maker_of(kind, path):
    def make_named(make):
        made = getattr(make, kind)()
        return f"{path}/{made['id']}", made["id"]

    return make_named


def make_batch(make):
    made = make.batch(make.cohort())
    return f"/batches/{made['id']}", made["id"]


def make_term(make):
    made = make.term()
    return f"/terms/{made['id']}", made["id"]


def make_role(make):
    made = make.role()
    return f"/roles/{made['id']}", made["id"]


def make_trait(make):
    body = {"name": "Whistling", "metric_type": "PSYCHOMOTOR"}
    made = make.api.ok(make.api.post("/metric-definitions", body))
    return f"/metric-definitions/{made['id']}", made["id"]


def make_assessment(make):
    made = make.assessment(make.cohort_subject(cohort := make.cohort()), make.term({"id": cohort["session"]}))
    return f"/assessments/{made['id']}", made["id"]


RECORDS = [
    Record(
        "subject",
        make_subject,
        {"name": "Ìṣirò", "code": "ÌṢ"},
        private=False,
        section="subjects",
    ),
    *(
        Record(
            kind.replace("_", "-"), maker_of(kind, path), {"name": "Ẹ̀kọ́"}, private=False, section="settings"
        )
        for kind, path in (
            ("department", "/departments"),
            ("employee_category", "/employee-categories"),
            ("position", "/positions"),
        )
    ),
    Record("batch", make_batch, {"name": "Wúrà"}, private=False, section="cohorts"),
    Record(
        "term",
        make_term,
        {"display_name": "Ìgbà kejì", "term": "SECOND"},
        shown={"display_name": "displayName"},
        private=False,
    ),
    Record(
        "role",
        make_role,
        {"name": "Olùkọ́", "avatar": -5},
        shown={"avatar": "avatarNumber"},
        private=False,
    ),
    Record(
        "metric-definition",
        make_trait,
        {"name": "Ìwà"},
        private=False,
        section="metrics",
    ),
    Record(
        "assessment",
        make_assessment,
        {
            "name": "Ìdánwò",
            "category": "EXAM",
            "abbreviation": "ÌD",
            "due_date": "2026-02-28",
            "total_points": 60.25,
            "description": "Gbogbo rẹ̀",
            "file_name": "ìdánwò.xlsx",
            "include_in_final": False,
            "publish_scores": True,
        },
        hidden=frozenset({"description"}),
        private=False,
    ),
    Record(
        "classroom",
        make_classroom,
        {"name": "Ìdí 1", "level": "Upper"},
        hidden=frozenset({"level"}),
        private=False,
    ),
    Record(
        "contact",
        make_contact,
        {
            "email_address": "ọmọ@example.com",
            "phone_number": "0803",
            "physical_address": "1 Ọba Street\nIbadan",
        },
    ),
    Record(
        "user",
        make_user,
        {"username": "ọmọ", "first_name": "Ọmọ", "last_name": "Ẹ̀bùn", "gender": "MALE"},
        private=False,
    ),
    Record(
        "employee",
        make_employee,
        {
            "middle_name": "",
            "title": "Dr",
            "marital_status": "SINGLE",
            "blood_group": "AB-",
            "religion": "Ìṣẹ̀ṣe",
            "status": "ON LEAVE",
            "dob": "1990-02-28",
            "join_date": "2021-01-01",
        },
    ),
    Record(
        "bank-account",
        make_bank_account,
        {
            "bank_name": "Zenith",
            "account_name": "Ọmọ",
            "account_number": "0001",
            "bank_sort_code": "057",
            "employee_no": "E/0",
            "account_type": "CURRENT",
            "employee": 7,
        },
        hidden=frozenset({"employee_no", "employee"}),
        stored={"employee": "employee_ref"},
    ),
    Record(
        "next-of-kin",
        make_next_of_kin,
        {
            "full_name": "Ẹ̀bùn",
            "relationship": "sister",
            "phone_number": "0803",
            "physical_address": "Ilé-Ifẹ̀",
            "employee": 7,
        },
        hidden=frozenset({"employee"}),
        stored={"employee": "employee_ref"},
    ),
]
MEMBERS = [pytest.param(record, name, id=f"{record}-{name}") for record in RECORDS for name in record.changes]
each = pytest.mark.parametrize("record", RECORDS, ids=str)
each_member = pytest.mark.parametrize(("record", "member"), MEMBERS)


def audited(api, entity, record_id):
    """List the updates of a record, the oldest first: old and new."""
    entries = api.ok(api.get("/audit", query_string={"entity": entity, "id": record_id}))["data"]
    return [(entry["old"], entry["new"]) for entry in reversed(entries) if entry["action"] == "update"]


@each_member
def test_a_correction_changes_its_members_alone(api, make, record, member):
    path, record_id = record.make(make)
    before = api.ok(api.patch(path, {}))
    value = record.changes[member]

    changed = api.ok(api.patch(path, {member: value}))

    shown = record.shown.get(member, member)
    assert changed == (before if member in record.hidden else {**before, shown: value})
    assert api.ok(api.patch(path, {})) == changed
    ((old, new),) = audited(api, record.entity, record_id)
    name = record.stored.get(member, member)
    if record.private:
        assert (old, new) == ({}, {"changed": [name]})
        return
    assert new == {name: value}
    assert set(old) == {name}
    if member not in record.hidden:
        assert old[name] == before[shown]


@each
def test_all_members_are_corrected_at_once_and_again_nothing_is(api, make, record):
    path, record_id = record.make(make)

    changed = api.ok(api.patch(path, record.changes))
    again = api.ok(api.patch(path, record.changes))

    assert {
        name: changed[record.shown.get(name, name)] for name in record.changes.keys() - record.hidden
    } == {name: value for name, value in record.changes.items() if name not in record.hidden}
    assert again == changed
    # Nothing new, nothing written.
    assert len(audited(api, record.entity, record_id)) == 1


@each
def test_a_correction_without_members_changes_nothing(api, make, record):
    path, record_id = record.make(make)

    assert api.ok(api.patch(path, {})) == api.ok(api.patch(path, {}))
    assert audited(api, record.entity, record_id) == []


@each
def test_null_is_refused(api, make, record):
    path, _ = record.make(make)

    for member in record.changes:
        answer = api.patch(path, {member: None})

        assert (answer.status_code, answer.get_json()["errors"]["json"].keys()) == (422, {member})


@each
def test_a_value_that_is_no_text_is_refused(api, make, record):
    path, record_id = record.make(make)

    for member, value in product(record.texts, (5, True, ["x"], {}, "x\0y", "\ud800", "x" * 2001)):
        answer = api.patch(path, {**record.changes, member: value})

        refusal = (answer.status_code, answer.get_json()["errors"]["json"].keys())
        assert refusal == (422, {member}), value
    assert audited(api, record.entity, record_id) == []


@each
def test_an_empty_text_is_refused(api, make, record):
    path, _ = record.make(make)

    for member, value in product(record.texts, ("", "  \n")):
        if member not in {"middle_name", "description"}:
            assert api.patch(path, {member: value}).status_code == 422, (member, value)


@each
def test_an_unknown_member_and_a_body_that_is_no_object_are_refused(api, make, record):
    path, record_id = record.make(make)
    for name in ("id", "no member", "deleted_at", "owner", "password", "school"):
        answer = api.patch(path, {**record.changes, name: str(uuid4())})

        assert (answer.status_code, answer.get_json()["errors"]["json"].keys()) == (422, {name})
    for body in ([], "x", None, 5):
        assert api.patch(path, body).status_code == 422
    assert audited(api, record.entity, record_id) == []


@each
def test_an_unknown_record_is_not_found(api, make, record):
    path, _ = record.make(make)
    parts = path.split("/")
    parts[2] = str(uuid4())

    assert api.patch("/".join(parts), record.changes).status_code == 404


@each
def test_the_other_schools_record_is_not_found(api, other_api, make, record):
    path, record_id = record.make(make)

    assert other_api.patch(path, record.changes).status_code == 404
    assert other_api.using(school=api.school).patch(path, record.changes).status_code == 403
    assert api.using(school=other_api.school).patch(path, record.changes).status_code == 403
    assert audited(api, record.entity, record_id) == []
    assert api.patch(path, record.changes).status_code == 200


@each
def test_a_correction_needs_the_permission_to_write(api, make, record):
    path, record_id = record.make(make)
    section = record.section or path.split("/")[1]
    for caller in (make.caller(), make.caller(f"read:{section}", f"delete:{section}")):
        answer = caller.patch(path, record.changes)

        assert answer.status_code == 403
        assert f"write:{section}" in answer.get_json()["message"]
    assert audited(api, record.entity, record_id) == []
    assert make.caller(f"write:{section}").patch(path, record.changes).status_code == 200


@each
def test_a_correction_costs_seven_round_trips_at_most(api, make, messages, record):
    path, _ = record.make(make)
    api.ok(api.patch(path, {}))

    with messages() as sent:
        api.ok(api.patch(path, record.changes))

    # Beginning, lock, permissions of a user, change, audit, answer, commit.
    assert len(sent) <= 7, sent


@each
def test_each_of_eight_corrections_at_once_is_on_record_with_its_change(committing, record):
    path, record_id = record.make(committing)
    api = committing.api
    name = next(name for name in record.texts if name not in record.hidden)

    answers = run_concurrently(8, lambda number: api.using().patch(path, {name: f"Value {number}"}))

    assert {answer.status_code for answer in answers} == {200}
    steps = audited(api, record.entity, record_id)
    assert len(steps) == 8
    if record.private:
        assert all(step == ({}, {"changed": [name]}) for step in steps)
        return
    for (_, before), (after, _) in pairwise(steps):
        assert after == before
    assert api.ok(api.patch(path, {}))[record.shown.get(name, name)] == steps[-1][1][name]
