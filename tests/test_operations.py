"""Each operation declares its row of tests/operations.json."""

from __future__ import annotations

from tests import operations
from tests.operations import MEASURED, STORED, having


def test_each_operation_declares_its_stored_row():
    stored = {
        name: {key: said for key, said in row.items() if key not in MEASURED} for name, row in STORED.items()
    }

    assert operations.declared() == stored, "python -m tests.write_operations, and read the diff"


def test_the_stored_operations_are_the_documented_ones():
    paths = operations._app().test_client().get("/openapi.json").get_json()["paths"]
    documented = {
        f"{method.upper()} {path}": operation["operationId"]
        for path, methods in paths.items()
        for method, operation in methods.items()
        if "operationId" in operation
    }

    assert documented == {name: row["id"] for name, row in STORED.items()}


# Messages of reads, for SCHOOL and OWN, that are more.
MORE = {
    # Of a file, which is read in a transaction.
    "GET /letterhead/logo": (3, 3),
    "GET /letterhead/signature": (3, 2),
    # A list that is empty, whose filter is checked.
    "GET /publications/{id}/changes": (4, 5),
    "GET /users/{id}/identities": (1, 5),
    # The changes after a cursor, once it was found; all records, by a COPY of each resource.
    "GET /changes": (2, 1),
    "GET /export": (49, 1),
    # A list of all classes, which are read before their results.
    "GET /submissions": (4, 4),
    # The names of clients are the registry's.
    "GET /users/{id}/sessions": (5, 3),
}


def test_messages_are_as_few_as_they_are_to_be():
    """A read of a relation is two for OWN, any other read one; for SCHOOL every read is one."""
    for name, row in STORED.items():
        if name.startswith("GET ") and row.get("run") == "BY_METHOD" and "messages" in row:
            related = row.get("own") not in {None, "EVERYTHING", "REFUSED"}
            school, own = MORE.get(name, (1, 2 if related else 1))
            assert row["messages"] == {"SCHOOL": school, "OWN": own}, name


# Printed and computed answers, and operations for tokens of people's clients or of an outside provider.
UNMEASURED = {
    "GET /broadsheets/download",
    "GET /oneroster/csv",
    "GET /report-cards",
    "GET /students/{id}/report-card",
    "GET /students/{id}/transcript/download",
    "GET /auth/userinfo",
    "POST /auth/userinfo",
    "POST /me/identities",
    "POST /users/{id}/identities",
}


def test_every_other_operation_is_measured():
    needing_a_token = STORED.keys() - having(policy="public")

    assert {name for name in needing_a_token if "messages" not in STORED[name]} == UNMEASURED
