"""Violated constraints, as a Citus coordinator reports them too: named in the message alone, with a shard's number."""

from __future__ import annotations

from types import SimpleNamespace

import psycopg2
import pytest
from sqlalchemy.exc import IntegrityError, InternalError, OperationalError

from school_service.core.database import db
from school_service.web import integrity_errors
from school_service.web.error_responses import handle


class Reported(psycopg2.Error):
    """An error whose diagnostics name nothing."""

    pgcode = None
    diag = SimpleNamespace(constraint_name=None, table_name=None, column_name=None, message_primary=None)


def answered(app, kind, pgcode, message):
    """Answer an error of the database as a request does; give status, message and errors."""
    reported = type("Reported", (Reported,), {"pgcode": pgcode})(message)
    with app.test_request_context("/classrooms", method="POST"):
        body = handle(kind("INSERT", {}, reported)).get_json()
    return body["code"], body["message"], body.get("errors")


DUPLICATE = 'duplicate key value violates unique constraint "uq_classrooms_name{}"\nDETAIL:  Key (name)=(x).'
TAKEN = (409, "A classroom with this name exists already.", {"json": {"name": ["already taken"]}})


@pytest.mark.parametrize("suffix", ["", "_102046", "_1000000042"])
def test_the_number_of_a_shard_is_cut_off(app, suffix):
    assert answered(app, IntegrityError, "23505", DUPLICATE.format(suffix)) == TAKEN


def test_a_violation_within_a_copy_is_told_by_its_words(app):
    assert answered(app, InternalError, "XX000", DUPLICATE.format("_102046")) == TAKEN


def test_a_reference_that_dangles_on_a_shard_names_the_field(app):
    message = (
        'insert or update on table "cohorts_102050" violates foreign key constraint '
        '"fk_cohorts_classroom_id_102050"'
    )

    for kind, state in ((IntegrityError, "23503"), (InternalError, "XX000")):
        status, _, errors = answered(app, kind, state, message)
        assert (status, errors) == (422, {"json": {"classroom": ["does not exist"]}})


def test_a_record_in_use_on_a_shard_is_named(app):
    message = (
        'update or delete on table "classrooms_102049" violates foreign key constraint '
        '"fk_cohorts_classroom_id_102050" on table "cohorts_102050"'
    )

    status, words, _ = answered(app, IntegrityError, "23503", message)

    assert (status, words) == (409, "The classroom is in use by a cohort.")


@pytest.mark.parametrize(
    "message",
    [
        'new row for relation "x_102001" violates check constraint "ck_x_102001"',
        'null value in column "name" of relation "classrooms_102046" violates not-null constraint',
    ],
)
def test_a_value_that_a_shard_refuses_is_the_callers(app, message):
    assert answered(app, InternalError, "XX000", message)[0] == 422


def test_any_other_internal_error_is_a_failure(app):
    assert answered(app, InternalError, "XX000", "could not open shard")[0] == 500


def test_a_node_that_the_coordinator_can_not_reach_is_503(app):
    assert answered(app, OperationalError, "08006", "connection to the remote node failed")[0] == 503


@pytest.fixture
def own_message(monkeypatch):
    """Gives a constraint of the models a message of its own."""

    def give(name, message):
        constraint = next(
            constraint
            for table in db.metadata.tables.values()
            for constraint in table.constraints
            if constraint.name == name
        )
        monkeypatch.setitem(constraint.info, "message", message)
        integrity_errors._constraints.cache_clear()

    yield give
    monkeypatch.undo()
    integrity_errors._constraints.cache_clear()


def test_a_constraint_may_bring_its_own_message(app, own_message):
    own_message("uq_classrooms_name", "Two classrooms can't have one name.")

    _, *said = answered(app, IntegrityError, "23505", DUPLICATE.format(""))

    assert said == ["Two classrooms can't have one name.", {"json": {"name": ["already taken"]}}]


def test_a_check_and_a_reference_may_bring_their_message(app, own_message):
    own_message("ck_sessions_dates", "A session must not end before it starts.")
    own_message("fk_cohorts_classroom_id", "The classroom still has cohorts.")
    check = 'new row for relation "sessions" violates check constraint "ck_sessions_dates"'

    used = 'update or delete on table "classrooms" violates foreign key constraint "fk_cohorts_classroom_id"'

    assert answered(app, IntegrityError, "23514", check)[:2] == (
        422,
        "A session must not end before it starts.",
    )
    assert answered(app, IntegrityError, "23503", used)[:2] == (409, "The classroom still has cohorts.")
