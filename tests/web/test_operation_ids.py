"""Operation ids are by the rule of docs/contributing.md, "Name an operation": verb and noun, and no part of a path."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from school_service.core.database import db
from school_service.core.records import singular
from school_service.web.openapi import documentation

PAGE = (Path(__file__).parents[2] / "docs" / "contributing.md").read_text(encoding="utf-8")
RULE = PAGE.partition("\n### Name an operation\n")[2].partition("\n## ")[0]
METHODS = {
    verb: set(methods.split(", "))
    for verbs, methods in re.findall(r"^  \| (`[^|]+) \| ([A-Z, ]+) \|", RULE, re.M)
    for verb in re.findall(r"`([a-z]+)`", verbs)
}
LISTED = set(re.findall(r"\w+", RULE.partition("tables' names, and: ")[2].partition(".\n")[0]))
WORDS = {singular(word) for table in db.metadata.tables for word in table.split(".")[-1].split("_")} | {
    singular(word) for word in LISTED
}


def words_of(name: str) -> list[str]:
    """Divide an id into its verb and the words of its noun: `list`, `cohort`, `subject` of `listCohortSubjects`."""
    verb, *noun = re.findall(r"^[a-z]+|[A-Z][a-z]*", name)
    return [verb, *(singular(word.lower()) for word in noun)]


def against_the_rule(operation: str, name: str) -> list[str]:
    """List the parts of a name that break the rule."""
    verb, *noun = words_of(name)
    wrong = [f"no word of the field: {word}" for word in noun if word not in WORDS]
    if not noun:
        wrong.append("no noun")
    if operation.split()[0] not in METHODS.get(verb, ()):
        wrong.append(f"no verb of this method: {verb}")
    return wrong


@pytest.fixture(scope="module")
def operations(document) -> dict[str, dict[str, Any]]:
    return {f"{method} {path}": operation for (method, path), operation in document.operations().items()}


def test_each_id_is_a_verb_and_a_noun_of_the_field(operations):
    ids = {operation: said["operationId"] for operation, said in operations.items()}

    assert len(set(ids.values())) == len(ids) > 200
    assert {
        operation: wrong for operation, name in ids.items() if (wrong := against_the_rule(operation, name))
    } == {}


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        ("POST /auth/oauth/revoke", "createAuthOauthRevoke"),
        ("POST /users/login/invitation", "createUsersLoginInvitation"),
        ("GET /oneroster/csv", "listOnerosterCsv"),
        ("GET /registers/download", "listRegistersDownload"),
        ("GET /health/live", "listHealthLive"),
        ("GET /auth/.well-known/openid-configuration", "listAuthWellKnownOpenidConfiguration"),
        ("POST /sessions/{id}/copy-from", "createSessionCopyFrom"),
        ("POST /registers/upload-sheet", "createRegistersUploadSheet"),
        ("POST /assessments/many", "createAssessmentsMany"),
        ("PUT /guardians/{id}/account", "putGuardianAccount"),
        ("GET /assessments/{id}", "deleteAssessment"),
        ("GET /health", "get"),
    ],
)
def test_a_name_made_of_a_path_is_against_the_rule(operation, name):
    assert against_the_rule(operation, name)


def test_list_is_the_verb_of_arrays_and_pages(operations, document):
    answers = {}
    for operation, said in operations.items():
        content = said["responses"]["200"].get("content", {}).get("application/json")
        if operation.startswith("GET ") and content:
            schema = content["schema"]
            schema = document.spec["components"]["schemas"].get(
                schema.get("$ref", "").rpartition("/")[2], schema
            )
            answers[said["operationId"]] = schema.get("type") == "array" or "data" in schema.get(
                "properties", ()
            )

    assert {name for name, several in answers.items() if several != name.startswith("list")} == set()


def test_the_rule_lists_nothing_that_no_id_uses(operations):
    ids = [words_of(said["operationId"]) for said in operations.values()]

    assert {verb for verb, *_ in ids} == METHODS.keys()
    assert {word for _, *noun in ids for word in noun} >= {singular(word) for word in LISTED}
    assert documentation("operation_ids").keys() == operations.keys()


def test_tags_are_spelled_in_one_way(document):
    tags = [tag["name"] for tag in document.spec["tags"]]

    assert [tag for tag in tags if not re.fullmatch("[a-z]+(-[a-z]+)*", tag)] == []
