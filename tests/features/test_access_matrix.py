"""The rules of access for every operation of the document, so that none is forgotten."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from functools import cache, wraps
from uuid import uuid4

import pytest

from school_service.app import create_app
from school_service.auth.signing_key import SigningKey
from school_service.auth.tokens import issue_client_token
from school_service.config import Settings
from school_service.core.permissions import Permission
from tenants.registry.clients import create_client
from tests.client import ApiClient, Document
from tests.conftest import make_place
from tests.factories import Factory

ACCESS = {"GET": "read", "POST": "write", "PUT": "write", "PATCH": "write", "DELETE": "delete"}

# The section of an operation is the first part of its path, with these exceptions (docs/rules/tokens.md,
# "Permissions").
SECTIONS = {
    "attendance-codes": "settings",
    "attendance-settings": "settings",
    "batches": "cohorts",
    "departments": "settings",
    "employee-categories": "settings",
    "grade-configs": "settings",
    "guardians": "students",
    "invitations": "users",
    "letterhead": "settings",
    "mark-sheets": "gradebooks",
    "metric-definitions": "metrics",
    "broadsheets": "results",
    "oneroster": "users",
    "permissions": "roles",
    "positions": "settings",
    "registers": "attendance",
    "report-cards": "results",
    "promotion-rules": "settings",
    "promotions": "results",
    "role-reaches": "roles",
    "publications": "results",
    "result-settings": "settings",
    "school-days": "terms",
    "sessions": "terms",
    "subject-teachers": "teachers",
    "submissions": "results",
    "templates": "subjects",
}
# Ending sessions changes a user, lifting a stop the access of a guardian: nothing is deleted.
OF_ANOTHER_ACCESS = {
    ("DELETE", "/users/{id}/sessions"): "write",
    ("GET", "/users/{id}/sessions"): "write",
    ("DELETE", "/users/{id}/sessions/{session_id}"): "write",
    # A caller who may invite may take that back, and so with identities and photos.
    ("DELETE", "/users/{id}/identities/{identity_id}"): "write",
    ("DELETE", "/users/{id}/photo"): "write",
    ("DELETE", "/invitations/{id}"): "write",
    ("DELETE", "/students/{id}/guardians/{guardian_id}/stop"): "write",
}
OF_ANOTHER_SECTION = {
    ("POST", "/assessments/{id}/scoresheet"): "gradebooks",
    ("GET", "/assessments/{id}/absences"): "gradebooks",
    ("PUT", "/assessments/{id}/absences"): "gradebooks",
    ("GET", "/assessments/{id}/scores"): "gradebooks",
    ("PUT", "/assessments/{id}/scores"): "gradebooks",
    ("DELETE", "/assessments/{id}/absences/{student_id}"): "gradebooks",
    ("GET", "/students/{id}/report-card"): "results",
    ("GET", "/students/{id}/report-cards"): "results",
    ("GET", "/students/{id}/transcript/download"): "results",
    ("GET", "/students/{id}/attendance"): "attendance",
    ("PUT", "/registers/corrections"): "attendance-corrections",
    ("GET", "/comments"): "results",
    ("PUT", "/comments"): "metrics",
    ("GET", "/comments/download-sheet"): "results",
    ("POST", "/comments/upload-sheet"): "metrics",
    ("POST", "/cohort-subjects/{id}/submission"): "gradebooks",
    ("GET", "/cohort-subjects/{id}/mark-sheet"): "gradebooks",
    ("POST", "/cohort-subjects/{id}/mark-sheet"): "gradebooks",
    ("GET", "/cohort-subjects/{id}/scores"): "gradebooks",
    ("PUT", "/cohort-subjects/{id}/scores"): "gradebooks",
    ("POST", "/cohort-subjects/{id}/reopening"): "results",
    ("GET", "/cohort-subjects/{id}/results"): "results",
    ("GET", "/students/{id}/results"): "results",
    ("GET", "/students/{id}/transcript"): "results",
    ("POST", "/promotions"): "cohorts",
    ("DELETE", "/promotions/{id}"): "cohorts",
    ("PATCH", "/promotions/{id}/decisions/{student}"): "cohorts",
}
# More than one permission, or another access than the method's: erasing overwrites records, which stay.
SEVERAL = (
    {
        ("DELETE", f"/{section}/{{id}}/data"): (f"write:{section}", "write:users")
        for section in ("students", "employees")
    }
    | {
        (method, f"/guardians/{{id}}/{what}"): ("write:students", "write:users")
        for method, what in (("PUT", "account"), ("DELETE", "account"), ("DELETE", "data"))
    }
    | {("POST", "/guardians/accounts"): ("write:students", "write:users")}
    | {
        # They show guardians, and records of students.
        ("GET", "/attendance/absences"): ("read:attendance", "read:students"),
        ("GET", "/cohort-subjects/{id}/students"): ("read:cohort-subjects", "read:students"),
    }
    | {
        # All that is stored of a person needs the permission of each area in it.
        ("GET", "/students/{id}/data"): tuple(
            f"read:{area}"
            for area in (
                *("attendance", "audit", "cohorts", "contacts", "gradebooks", "graduates", "metrics"),
                *("results", "roles", "students", "users"),
            )
        ),
        ("GET", "/employees/{id}/data"): tuple(
            f"read:{area}" for area in ("audit", "contacts", "employees", "roles", "teachers", "users")
        ),
        ("GET", "/guardians/{id}/data"): tuple(
            f"read:{area}" for area in ("audit", "contacts", "roles", "students", "users")
        ),
    }
)
FOR_EVERY_TOKEN = {
    ("GET", "/me"),
    ("POST", "/users/login"),
    ("POST", "/users/login/invitation"),
    # For an outside token that is linked to nobody; another is refused once the body is valid.
    ("POST", "/me/identities"),
    ("GET", "/nationalities"),
    ("GET", "/states"),
    ("GET", "/lgas"),
}

# A caller without the permission reads the photos of related users: nobody is not there.
FOR_EVERY_USER = {("GET", "/users/{id}/photo")}

NO_UUIDS = ("", "x", "1", "{3fa85f64-5717-4562-b3fc-2c963f66afa6}", "3fa85f6457174562b3fc2c963f66afa6")


@cache
def documented_operations():
    # Needs no database: this application serves nothing but its document.
    settings = {
        "DATABASE_URL": "postgresql://nobody@localhost/nothing",
        "SIGNING_KEY": SigningKey.generate().to_pem(),
    }
    return Document(create_app(Settings.load(settings))).operations()


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    permissions: tuple[str, ...]
    secured: bool
    school_required: bool
    body: str | None
    query: tuple[str, ...]

    @classmethod
    def read(cls, method, path, operation):
        parameters = operation.get("parameters", ())
        header = next((p for p in parameters if p["name"] == "X-SCHOOL-ID"), {"required": False})
        picky = [p["name"] for p in parameters if p["in"] == "query" and is_picky(p["schema"])]
        return cls(
            method,
            path,
            tuple((operation.get("x-permission") or "").split()),
            bool(operation["security"]),
            header["required"],
            next(iter(operation["requestBody"]["content"])) if "requestBody" in operation else None,
            tuple(picky),
        )

    def __str__(self):
        return f"{self.method} {self.path}"

    @property
    def parameters(self):
        return re.findall(r"\{([^}]*)\}", self.path)

    def address(self, **ids):
        """The path with these ids, and ids of nothing for the others."""
        return re.sub(r"\{([^}]*)\}", lambda match: ids.get(match[1]) or str(uuid4()), self.path)

    def send(self, client, **options):
        """Send a request with ids of nothing in the path, and nothing in body or query but the given options."""
        return client.request(self.method, self.address(), **options)

    def wrong_input(self):
        """Where input can be wrong for its form alone, and such input; None where there is none."""
        if self.body == "application/json":
            return "json", {"json": {"no such member": 1}}
        if self.body:
            return "files", {"data": {}, "content_type": self.body}
        return ("query", {"query_string": {self.query[0]: "nonsense"}}) if self.query else None


def is_picky(schema):
    """Tell whether a query parameter of this schema can be wrong for its form alone."""
    return schema.get("type") == "integer" or schema.get("format") == "uuid" or "enum" in schema


OPERATIONS = [Operation.read(*key, operation) for key, operation in documented_operations().items()]
SECURED = [operation for operation in OPERATIONS if operation.secured]
NEEDING = [
    operation
    for operation in SECURED
    if operation.permissions and (operation.method, operation.path) not in FOR_EVERY_USER
]
PUBLIC = [operation for operation in OPERATIONS if not operation.secured]


def one_of(values, operation):
    """Give one of several values to an operation, the next to the next: all are judged by the same code."""
    return values[OPERATIONS.index(operation) % len(values)]


def each(operations):
    """Let one test ask all of these operations; where some fail, it names each of them.

    A test of its own for each would cost as much again as its requests do.
    """

    def asking_all(rule):
        @wraps(rule)
        def test(**fixtures):
            failed = []
            for operation in operations:
                try:
                    rule(operation=operation, **fixtures)
                except AssertionError as error:
                    error.add_note(f"at {operation}")
                    failed.append(error)
            if failed:
                raise ExceptionGroup("not all operations hold to it", failed)

        signature = inspect.signature(rule)
        fixtures = [given for name, given in signature.parameters.items() if name != "operation"]
        test.__signature__ = signature.replace(parameters=fixtures)
        return test

    assert operations
    return asking_all


@dataclass
class Callers:
    """Callers at a school of the matrix's own, all with tokens that are sound."""

    admin: ApiClient
    nobody: ApiClient
    foreigner: ApiClient
    everywhere: ApiClient
    given: ApiClient
    _made: dict[frozenset[str], ApiClient]

    def with_permissions(self, *permissions):
        chosen = frozenset(permissions)
        if chosen not in self._made:
            self._made[chosen] = Factory(self.admin).caller(*sorted(chosen))
        return self._made[chosen]


@pytest.fixture(scope="module")
def callers(app, tenancy, document):
    place = make_place(app, tenancy, "Kings' College, Lagos")
    other = make_place(app, tenancy, "Barewa College, Zaria")
    admin = ApiClient(app, document, place.admin_token, place.id)
    with tenancy.admin.begin() as connection:
        create_client(connection, client_id="matrix", all_schools=True, all_permissions=True)
    with app.app_context():
        token = issue_client_token(app.extensions["school-service"].verifier.key, "matrix", [])[
            "access_token"
        ]
    strict = make_place(app, tenancy, "Hope Waddell, Calabar")
    return Callers(
        admin=admin,
        nobody=Factory(admin).caller(),
        foreigner=admin.using(token=other.admin_token),
        everywhere=admin.using(token=token),
        given=with_given_password(Factory(ApiClient(app, document, strict.admin_token, strict.id))),
        _made={},
    )


def with_given_password(make):
    """Make an administrator who has to change their password first."""
    api = make.api
    api.ok(api.patch("/settings", {"must_change_password": True}))
    user = make.user()["user"]
    (administrator,) = [role for role in api.ok(api.get("/roles")) if role["name"] == "Administrator"]
    api.ok(api.put(f"/users/{user['id']}/roles", {"role": administrator["id"]}))
    return make.signed_in(user)


def message(answer):
    return answer.get_json()["message"]


# The document


@each(OPERATIONS)
def test_an_operation_names_its_permission_or_needs_no_token(operation, document):
    said = document.operations()[operation.method, operation.path]

    assert ("x-permission" in said) == operation.secured


@each(SECURED)
def test_its_permission_fits_its_path_and_method(operation):
    key = (operation.method, operation.path)
    if key in FOR_EVERY_TOKEN:
        assert operation.permissions == ()
        return
    first = operation.path.split("/")[1]
    section = OF_ANOTHER_SECTION.get(key) or SECTIONS.get(first, first)
    access = OF_ANOTHER_ACCESS.get(key) or ACCESS[operation.method]
    assert operation.permissions == SEVERAL.get(key, (Permission(f"{access}:{section}"),))


def test_only_health_the_built_in_provider_and_verification_need_no_token():
    assert {(operation.method, operation.path) for operation in PUBLIC} == {
        ("GET", "/health"),
        ("GET", "/health/live"),
        ("GET", "/health/ready"),
        ("GET", "/verify/{school}/{code}"),
        ("POST", "/auth/oauth/token"),
        ("GET", "/auth/.well-known/jwks.json"),
        ("GET", "/.well-known/oauth-authorization-server"),
        ("GET", "/.well-known/oauth-authorization-server/auth"),
        ("GET", "/auth/.well-known/oauth-authorization-server"),
    }


# Token


@each(PUBLIC)
def test_an_operation_without_security_answers_any_token(operation, callers):
    for token in (None, "nonsense"):
        assert operation.send(callers.admin.using(token=token, school=None)).status_code not in {401, 403}


@each(SECURED)
def test_without_a_token_it_is_401(operation, callers):
    school = one_of((callers.admin.school, None, "nonsense"), operation)
    answer = operation.send(callers.admin.using(token=None, school=school))

    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")


@each(SECURED)
def test_with_a_malformed_token_it_is_401(operation, callers):
    token = one_of(("nonsense", "a.b.c", "", callers.admin.token[:-4]), operation)
    answer = operation.send(callers.admin.using(token=token))

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'


@each([operation for operation in OPERATIONS if operation.parameters])
def test_an_id_in_the_path_that_is_no_uuid_is_404_before_the_token_is_looked_at(operation, callers):
    for wrong in operation.parameters:
        path = operation.address(**{wrong: one_of(NO_UUIDS[1:], operation)})

        answer = callers.admin.using(token=None).request(operation.method, path)

        assert (answer.status_code, message(answer)) == (404, "There is nothing at this address."), path


# School


@each(SECURED)
def test_the_token_of_another_schools_user_is_403(operation, callers):
    answer = operation.send(callers.foreigner)

    assert (answer.status_code, message(answer)) == (403, "The token does not cover this school.")


@each(SECURED)
def test_a_users_token_in_an_unknown_school_is_403_and_not_404(operation, callers):
    answer = operation.send(callers.admin.using(school=uuid4()))

    assert (answer.status_code, message(answer)) == (403, "The token does not cover this school.")


@each([operation for operation in SECURED if operation.school_required])
def test_a_missing_header_is_400_for_a_token_of_one_school_and_of_all(operation, callers):
    caller = one_of((callers.admin, callers.everywhere), operation)
    assert operation.send(caller.using(school=None)).status_code == 400


@each([operation for operation in SECURED if not operation.school_required])
def test_where_the_header_is_optional_the_token_names_the_school(operation, callers):
    with_header, without = operation.send(callers.admin), operation.send(callers.admin.using(school=None))

    assert without.status_code == with_header.status_code


@each([operation for operation in SECURED if not operation.school_required])
def test_where_the_header_is_optional_a_token_without_a_school_is_400(operation, callers):
    answer = operation.send(callers.everywhere.using(school=None))

    assert (answer.status_code, "X-SCHOOL-ID" in message(answer)) == (400, True)


@each(SECURED)
def test_a_header_that_is_no_uuid_is_400(operation, callers):
    caller = one_of((callers.admin, callers.everywhere), operation)
    answer = operation.send(caller.using(school=one_of(NO_UUIDS, operation)))

    assert (answer.status_code, message(answer)) == (400, "The header X-SCHOOL-ID must be a uuid.")


@each(SECURED)
def test_an_unknown_school_is_404_to_a_client_of_every_school(operation, callers):
    answer = operation.send(callers.everywhere.using(school=uuid4()))

    assert (answer.status_code, message(answer)) == (404, "No such school.")


# Permission


@each(SECURED)
def test_without_any_permission_it_is_403_naming_the_permission(operation, callers):
    answer = operation.send(callers.nobody)

    if operation not in NEEDING:
        assert answer.status_code not in {401, 403}
    else:
        word = "permission" if len(operation.permissions) == 1 else "permissions"
        needed = ", ".join(sorted(operation.permissions))
        assert (answer.status_code, message(answer)) == (403, f"This needs the {word} {needed}.")


@each(NEEDING)
def test_with_every_other_permission_it_is_403(operation, callers):
    for permission in operation.permissions:
        others = callers.with_permissions(*(set(Permission) - {permission}))

        answer = operation.send(others)

        assert (answer.status_code, message(answer)) == (403, f"This needs the permission {permission}.")


@each([operation for operation in SECURED if operation.permissions])
def test_with_exactly_its_permission_it_is_allowed(operation, callers):
    answer = operation.send(callers.with_permissions(*operation.permissions))

    assert answer.status_code in {200, 400, 404, 409, 415, 422}, answer.get_data(as_text=True)


@each(SECURED)
def test_with_a_password_that_others_gave_it_is_403_until_that_is_changed(operation, callers):
    """Of every operation, with any permissions; but for one's own password, in `users/test_given_passwords.py`.

    GET /me says so, and answers.
    """
    if operation.path == "/me":
        assert operation.send(callers.given).get_json()["must_change_password"]
        return
    _, wrong = operation.wrong_input() or (None, {})
    answer = operation.send(callers.given, **one_of(({}, wrong), operation))

    assert answer.status_code == 403
    assert message(answer).startswith("Your password was given to you and must be changed first")


# The order of the answers


@each([operation for operation in NEEDING if operation.wrong_input()])
def test_permission_is_checked_before_the_input_is_looked_at(operation, callers):
    _, wrong = operation.wrong_input()

    assert operation.send(callers.nobody, **wrong).status_code == 403


@each([operation for operation in SECURED if operation.permissions and operation.body])
def test_permission_is_checked_before_the_body_is_read(operation, callers):
    bodies = (
        {},
        {"data": b"", "content_type": "application/json"},
        {"data": b"{", "content_type": "application/json"},
        {"data": b"<a/>", "content_type": "text/xml"},
    )
    assert operation.send(callers.nobody, **one_of(bodies, operation)).status_code == 403


@each([operation for operation in SECURED if operation.wrong_input()])
def test_the_input_is_looked_at_before_any_work(operation, callers):
    """The ids in the path are of nothing, which only the work itself could tell."""
    place, wrong = operation.wrong_input()

    answer = operation.send(callers.admin, **wrong)

    assert (answer.status_code, set(answer.get_json()["errors"])) == (422, {place})


# HEAD and OPTIONS

# To make the answer is all of the work.
WITHOUT_HEAD = {"/export"}


@each([operation for operation in SECURED if operation.method == "GET"])
def test_head_needs_the_permission_of_get_and_answers_without_a_body(operation, callers):
    path = operation.address()
    if path.partition("?")[0] in WITHOUT_HEAD:
        assert callers.admin.request("HEAD", path).status_code == 405
        return

    refused, status = one_of(((callers.admin.using(token=None), 401), (callers.nobody, 403)), operation)
    if status == 401 or operation in NEEDING:
        assert refused.request("HEAD", path).status_code == status
    shown, known = callers.admin.get(path), callers.admin.request("HEAD", path)
    assert (known.status_code, known.get_data()) == (shown.status_code, b"")
    assert known.content_type == shown.content_type


@each(OPERATIONS)
def test_options_tells_the_methods_to_anyone(operation, callers):
    path = operation.address()

    answer = callers.admin.using(token=None, school=None).request("OPTIONS", path)

    assert (answer.status_code, answer.get_data()) == (200, b"")
    assert {operation.method, "OPTIONS"} <= set(answer.headers["Allow"].split(", "))
