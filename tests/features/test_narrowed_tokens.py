"""A token that is narrowed to some permissions may do what somebody may who has these alone.

But on the caller's own account, and on related people, callers with a whole token need no permission: there a narrowed
one has to name it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import BytesIO
from random import Random
from typing import Any
from uuid import UUID
from zipfile import ZipFile

import pytest

from school_service.auth.tokens import issue_session_token
from school_service.core.permissions import Permission
from tenants.registry.clients import PeoplesOptions, create_client
from tests.client import ApiClient
from tests.factories import PASSWORD, Factory
from tests.features.audit.test_every_write import WRITES, Scene
from tests.features.invitations.test_invitations import in_school
from tests.features.reach.test_matrix import CASES, Place, make_places, with_publications
from tests.features.sign_in.rows import store_session, store_ways_in
from tests.features.test_access_matrix import SECURED, Operation
from tests.operations import STORED, having
from tests.savepoint_engine import uncommitted

CLIENT = "an app of narrowed tokens"

# Operations that let callers in without a permission: by their own account, or as the student or a guardian.
BY_ONESELF = {
    ("DELETE", "/invitations/{id}"),
    ("DELETE", "/users/{id}/identities/{identity_id}"),
    ("DELETE", "/users/{id}/sessions"),
    ("DELETE", "/users/{id}/sessions/{session_id}"),
    ("GET", "/students/{id}/attendance"),
    ("GET", "/students/{id}/report-card"),
    ("GET", "/students/{id}/report-cards"),
    ("GET", "/students/{id}/results"),
    ("GET", "/students/{id}/transcript"),
    ("GET", "/students/{id}/transcript/download"),
    ("GET", "/users/{id}/identities"),
    ("GET", "/users/{id}/photo"),
    ("GET", "/users/{id}/sessions"),
    ("PUT", "/users/{id}/password"),
}


@dataclass
class Person:
    """Somebody who may do everything, or one thing alone, by their only role; a guardian of a student with results."""

    api: ApiClient
    role: str
    session_number: int
    child: Place
    ids: dict[str, str]

    @property
    def whole(self) -> ApiClient:
        """A client with a token of theirs that nothing narrows."""
        return self._with_token(None)

    def narrowed(self, *permissions: str) -> ApiClient:
        """Make a client with a token of theirs that is narrowed to these permissions."""
        return self._with_token(permissions)

    def _with_token(self, permissions: tuple[str, ...] | None) -> ApiClient:
        api = self.api
        token = issue_session_token(
            api.app.extensions["school-service"].verifier.key,
            UUID(self.ids["users"]),
            UUID(str(api.school)),
            session_id=UUID(self.ids["session_id"]),
            session_number=self.session_number,
            client_id=CLIENT,
            client_session=0,
            scope="openid",
            permissions=permissions,
            lifetime=3600,
        )
        return api.using(token=token["access_token"])

    def may(self, *permissions: str, reach: str = "SCHOOL") -> None:
        """Let their role have these permissions and no others, with a reach."""
        changes = (
            "DELETE FROM role_permissions WHERE role_id = :role",
            "INSERT INTO role_permissions (role_id, permission_id) SELECT :role, id FROM permissions"
            " WHERE access || ':' || section = ANY (:names)",
            "UPDATE roles SET reach = :reach WHERE id = :role",
        )
        for change in changes:
            in_school(self.api, change, role=self.role, names=list(permissions), reach=reach)


def make_person(make: Factory) -> Person:
    """Make the person, with a session, an identity, an invitation and a photo."""
    api = make.api
    api.ok(api.patch("/attendance-settings", {"families_read": "MARKS"}))
    child = with_publications(make, {"own": make_places(make)["own"]})["own"]
    user, role, guardian = make.user()["user"], make.role("read:users"), make.guardian({"id": child.student})
    api.ok(api.put(f"/guardians/{guardian['id']}/account", {"user": user["id"]}))
    api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))
    in_school(
        api,
        "DELETE FROM user_roles WHERE user_id = :user AND role_id <> :role",
        user=user["id"],
        role=role["id"],
    )
    store_ways_in(api.school, user["id"])
    [(number,)] = in_school(api, "SELECT session_number FROM users WHERE id = :user", user=user["id"])
    [identity] = api.ok(api.get(f"/users/{user['id']}/identities"))
    ids = {
        "users": user["id"],
        "students": child.student,
        "guardians": guardian["id"],
        "invitations": api.ok(api.get(f"/invitations?user={user['id']}"))["data"][0]["id"],
        "identity_id": identity["id"],
        "session_id": store_session(api.school, user["id"], client_id=CLIENT),
    }
    return Person(api, role["id"], number, child, ids)


@pytest.fixture(scope="module")
def client_of_people(tenancy) -> None:
    """A client by which people sign in."""
    with tenancy.admin.begin() as connection:
        create_client(
            connection, client_id=CLIENT, all_schools=True, of_people=PeoplesOptions(is_public=True)
        )


@pytest.fixture(scope="module", autouse=True)
def scene(prepared: Callable[..., Any], client_of_people: None) -> Person:
    return prepared(make_person)


@pytest.fixture
def person(scene: Person, rehearsed: Any) -> Person:
    return replace(scene)


# Members of answers that differ from request to request: ids, moments, tokens, codes.
PASSING = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d[0-9:.+Z]*|eyJ[\w.-]+"
    r"|\b(?:[0-9A-Z]{4}-){2}[0-9A-Z]{4}\b"
)


def _unpacked(content: bytes) -> bytes:
    """Give the texts of a workbook, or of a zip of them."""
    if not content.startswith(b"PK"):
        return content
    with ZipFile(BytesIO(content)) as archive:
        return b"".join(_unpacked(archive.read(name)) for name in archive.namelist())


def answered(response: Any, role: str = "") -> tuple[int, str]:
    """The status and the body of an answer, without the id of the request and the permissions of a role.

    A paper counts as printed alone: it tells the time of that.
    """
    content = response.get_data()
    if content.startswith(b"%PDF"):
        content = b"%PDF"
    text = re.sub(r'"request_id": ?"[^"]*"', "", _unpacked(content).decode(errors="replace"))
    if role:
        text = re.sub(rf'("id":"{role}",[^[]*"permissions":)\[[^]]*\]', r"\1", text)
    return response.status_code, text


def is_same(answer: tuple[int, str], other: tuple[int, str]) -> bool:
    """Tell whether two answers say the same, but for ids, moments, tokens and codes that are new in each."""
    known = {*PASSING.findall(answer[1])} & {*PASSING.findall(other[1])}
    said = [
        PASSING.sub(lambda match: match[0] if match[0] in known else "", text) for _, text in (answer, other)
    ]
    return (answer[0], said[0]) == (other[0], said[1])


# Every operation, with ids of nothing.


def own_address(operation: Operation, person: Person) -> str:
    """The path of an operation with ids of the person and the child, and ids of nothing for all else."""
    section = operation.path.split("/")[1]
    return operation.address(**{"id": person.ids.get(section), **person.ids})


def drawn(which: str) -> dict[str, list[Operation]]:
    """Draw permissions for operations that need a token: of all each, or of some those they need and another.

    Those some are the operations that let in by another rule than the permission alone, and a sixth of the others.
    """
    random = Random(which)
    operations: dict[str, list[Operation]] = {str(permission): [] for permission in Permission}
    ordinary = having(policy="permission")
    some = {*random.sample(sorted(ordinary), len(ordinary) // 6), *(STORED.keys() - ordinary)}
    for operation in SECURED:
        needed = {*map(str, operation.permissions)}
        other = random.choice([permission for permission in operations if permission not in needed])
        if which == "all" or str(operation) in some:
            for permission in operations if which == "all" else sorted({*needed, other}):
                operations[permission].append(operation)
    return operations


@pytest.mark.parametrize("reach", ["SCHOOL", "OWN"])
@pytest.mark.parametrize("which", ["some", pytest.param("all", marks=pytest.mark.release)])
def test_an_operation_that_a_token_does_not_name_is_refused_also_where_others_need_no_permission(
    person, reach, which, uncommitted_engine
):
    def send(client: ApiClient, operation: Operation) -> tuple[int, str]:
        with uncommitted(uncommitted_engine):
            return answered(client.request(operation.method, own_address(operation, person)), person.role)

    let_in = set()
    for permission, operations in drawn(which).items():
        narrowed = person.narrowed(permission)
        person.may(*Permission, reach=reach)
        of_narrowed = [send(narrowed, operation) for operation in operations]
        person.may(permission, reach=reach)
        for operation, answer in zip(operations, of_narrowed, strict=True):
            of_alone = send(person.whole, operation)
            if not is_same(answer, of_alone):
                let_in.add((operation.method, operation.path))
                missing = ", ".join({*operation.permissions} - {permission})
                said = answer[0], f"This needs the permission {missing}." in answer[1]
                assert said == (403, True), (operation, permission, answer, of_alone)

    assert let_in == BY_ONESELF


# Requests in earnest.

# Requests with a query, and for records that WRITES does not make where marks were entered.
SENT: dict[str, dict[str, Any]] = {
    "POST /grade-configs": {"json": {"remarks": "changed"}},
    "PUT /grade-configs": {"json": [], "query_string": {"level": "Nursery"}},
    "PATCH /grade-configs/{id}": {"json": {"remarks": "changed"}},
    "DELETE /grade-configs/{id}": {},
    "GET /school-days": {"query_string": {"from": "2025-10-01", "to": "2025-10-31"}},
}
Send = Callable[[ApiClient], Any]


def prepared_request(operation: Operation, person: Person, api: ApiClient) -> Send:
    """Make the records that an operation needs, as the administrator; answers a function that sends it as a caller."""
    key, named = (operation.method, operation.path), str(operation)
    if key in WRITES and named not in SENT:
        # The function keeps the client that it was made with.
        client = api.using()
        send = WRITES[key][0](Scene(client, Factory(client)))

        def sending(caller: ApiClient) -> Any:
            client.token = caller.token
            return send()

        return sending
    if named in CASES:
        return lambda caller: caller.request(operation.method, CASES[named][0].path(person.child))
    ids = {}
    if operation.parameters:
        records = api.get(operation.path.partition("/{")[0]).get_json(silent=True)
        records = records.get("data", ()) if isinstance(records, dict) else records
        ids = {name: each["id"] for name in operation.parameters[:1] for each in (records or ())[:1]}
    address = operation.address(**ids)
    return lambda caller: caller.request(operation.method, address, **SENT.get(named, {}))


@pytest.mark.parametrize(
    "which", [pytest.param(10, id="a tenth"), pytest.param(1, id="all", marks=pytest.mark.release)]
)
def test_a_token_of_one_permission_is_answered_as_a_caller_with_that_alone(
    person, api, which, uncommitted_engine, subtests
):
    def send(request: Send, caller: ApiClient, *held: str, reach: str) -> tuple[int, str]:
        with uncommitted(uncommitted_engine):
            person.may(*held, reach=reach)
            return answered(request(caller), person.role)

    operations = [operation for operation in SECURED if operation.permissions]
    for operation in Random(which).sample(operations, len(operations) // which):
        with subtests.test(str(operation)), uncommitted(uncommitted_engine):
            request = prepared_request(operation, person, api)
            for permission in operation.permissions:
                for reach in ("SCHOOL", "OWN"):
                    of_narrowed = send(request, person.narrowed(permission), *Permission, reach=reach)
                    of_alone = send(request, person.whole, permission, reach=reach)
                    assert is_same(of_narrowed, of_alone), (permission, reach, of_narrowed, of_alone)


# On oneself.

TERM = {"query_string": {"term": "FIRST"}}
ON_ONESELF: dict[tuple[str, str], dict[str, Any]] = {
    **{key: {} for key in sorted(BY_ONESELF)},
    ("GET", "/students/{id}/attendance"): TERM,
    ("GET", "/students/{id}/report-card"): TERM,
    ("GET", "/students/{id}/results"): TERM,
    ("PUT", "/users/{id}/password"): {"json": {"password": "another of mine", "current_password": PASSWORD}},
}


@pytest.mark.parametrize(
    "operation",
    [operation for operation in SECURED if (operation.method, operation.path) in ON_ONESELF],
    ids=str,
)
def test_ones_own_needs_no_role_but_a_token_that_names_the_permission(person, operation, uncommitted_engine):
    def status(client: ApiClient) -> int:
        with uncommitted(uncommitted_engine):
            options = ON_ONESELF[operation.method, operation.path]
            answer = client.request(operation.method, own_address(operation, person), **options)
            return answer.status_code

    (permission,) = operation.permissions
    others = {*Permission} - {permission}
    for held in ((), Permission):
        person.may(*held)
        assert status(person.whole) == 200
        assert status(person.narrowed(permission)) == 200
        assert status(person.narrowed(*others)) == 403


def test_a_read_by_a_narrowed_token_is_one_message_also_where_it_is_refused(person, messages):
    person.may()
    path = f"/users/{person.ids['users']}/identities"
    for permission, status in (("read:users", 200), ("write:users", 403)):
        narrowed = person.narrowed(permission)
        with messages() as sent:
            assert narrowed.get(path).status_code == status
        assert len(sent) == 1
        # A refused request reads no rows.
        assert ("WHERE (SELECT false FROM caller)" in sent[0]) == (status == 403)


def test_me_answers_any_token_with_the_permissions_that_it_names(person):
    person.may("read:students")
    whole = person.whole.ok(person.whole.get("/me"))
    for permission, left in (("read:students", ["read:students"]), ("write:users", [])):
        narrowed = person.narrowed(permission)
        told = narrowed.ok(narrowed.get("/me"))
        assert [each["permission"] for each in told.pop("permissions")] == left
        assert told == {name: value for name, value in whole.items() if name != "permissions"}


def test_a_token_to_change_users_does_not_take_its_own_account(person, make):
    person.may(*Permission)
    thief, own = person.narrowed("write:users"), person.ids["users"]

    for answer in (
        thief.post("/invitations", {"users": [own], "everybody": True}),
        thief.post("/invitations/slips", {"users": [own], "everybody": True}),
        thief.post(f"/users/{own}/identities", {"issuer": "https://id.example.com", "subject": "thief"}),
    ):
        assert answer.status_code == 403
    for password in ({}, {"current_password": "guessed"}):
        answer = thief.put(f"/users/{own}/password", {"password": "of the thief", **password})
        assert "current_password" in answer.get_json()["errors"]["json"]
    # An account that the thief makes has nothing, and is given nothing.
    other = thief.ok(thief.post("/users", {
        "username": "thief", "password": "of the thief", "first_name": "A", "last_name": "B", "gender": "x",
    }))["user"]["id"]  # fmt: skip
    assert thief.put(f"/users/{other}/roles", {"role": person.role}).status_code == 403
    # A username is a name.
    assert thief.patch(f"/users/{own}", {"username": "renamed"}).status_code == 200
    assert person.whole.get("/me").status_code == 200
