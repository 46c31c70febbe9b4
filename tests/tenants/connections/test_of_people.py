"""Requests of people, through PgBouncer: signing in, a teacher's scores, and a register."""

from __future__ import annotations

from dataclasses import replace

import pytest

from school_service.app import create_app
from tests.client import Document
from tests.conftest import Way, dispose, make_place
from tests.factories import UNKNOWN_ID, Factory
from tests.features.attendance.classes import Kept
from tests.features.reach.conftest import Own, error_of, ids
from tests.features.sign_in.conftest import PUBLIC_URL, Entrance
from tests.features.sign_in.test_grants import works
from tests.postgres import with_one_server

WAYS = [
    pytest.param(Way(logins=2, pgbouncer=True), id="pgbouncer", marks=with_one_server),
]


@pytest.fixture(scope="module")
def entrance(settings, tenancy):
    app = create_app(replace(settings, public_url=PUBLIC_URL))
    yield Entrance(app, Document(app), tenancy, make_place(app, tenancy, "Ìjọba College"))
    dispose(app)


@pytest.fixture(scope="module")
def class_(entrance):
    """An arm of three students, in a school whose requests commit."""
    return Kept(entrance.make)


@pytest.fixture(scope="module")
def elsewhere(entrance, tenancy):
    """Another school, which has an arm of its own."""
    place = make_place(entrance.app, tenancy, "Mayflower School, Ikenne")
    return Kept(Factory(entrance.admin.using(token=place.admin_token, school=place.id)), students=1)


def test_a_session_that_ends_ends_its_tokens(entrance):
    person, client = entrance.person("read:classrooms"), entrance.client()
    token, other = (client.sign_in(person)["access_token"] for _ in range(2))
    assert works(entrance, token)

    assert client.revoke(token, token_type_hint="access_token").status_code == 200

    assert not works(entrance, token)
    assert works(entrance, other)


def test_a_teacher_reads_and_writes_their_own_scores(class_, elsewhere):
    make = class_.make
    subject, hidden = make.cohort_subject(class_.cohort), make.cohort_subject(class_.cohort)
    mine, theirs = (make.assessment(cohort_subject, class_.term) for cohort_subject in (subject, hidden))
    teacher = Own(make).subject_teacher(subject, class_.batch)

    def enter(assessment):
        body = {"score": 12.5, "student": class_.students["R/1"], "batch": class_.batch}
        return teacher.post("/gradebooks", {**body, "assessment": assessment})

    for _ in range(2):
        # Another school is served in between, on the same connections.
        assert len(ids(elsewhere.api, "/students")) == 1
        assert ids(teacher, "/students") == {*class_.students.values()}
    entry = teacher.ok(enter(mine["id"]))

    assert error_of(enter(theirs["id"])) == error_of(enter(UNKNOWN_ID))
    assert ids(teacher, "/gradebooks") == {entry["id"]}
    assert ids(elsewhere.api, "/gradebooks") == set()


def test_a_register_is_marked_by_the_arms_form_teacher(class_, elsewhere):
    teacher = Own(class_.make).form_teacher(class_.batch)

    register = teacher.ok(class_.put(api=teacher, codes={"R/2": "A"}, default="P", submit=True))

    assert class_.codes(register) == {"R/1": "P", "R/2": "A", "R/3": "P"}
    assert class_.get(api=teacher).get_json() == register
    unknown, other = (
        class_.put(api=teacher, batch=batch, default="P") for batch in (UNKNOWN_ID, elsewhere.batch)
    )
    assert error_of(other) == error_of(unknown)
    assert elsewhere.get().get_json()["id"] is None
