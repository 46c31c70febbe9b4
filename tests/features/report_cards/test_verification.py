"""Verification: what a code tells, and that without one nothing is told."""

from __future__ import annotations

import json
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select, update

from school_service.auth.login_throttle import limiter
from school_service.core.database import db
from school_service.features.publications.models import Publication, ReportCard
from school_service.web.request_log import logged_path
from school_service.web.request_scope import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.registry.schools import schools
from tests.factories import UNKNOWN_ID
from tests.features.publications.arms import Arms

HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
MEMBERS = {
    "state", "school", "student", "class", "session", "term", "version", "published_at", "replaced_at", "average",
    "grade", "position", "of", "subjects",
}  # fmt: skip


@pytest.fixture
def arms(make):
    return Arms(make)


@pytest.fixture
def anyone(api):
    """Whoever holds the paper: no token, no school."""
    return api.using(token=None, school=None)


def code_of(api, student, version=1):
    """The code on a student's card."""
    with in_transaction(SchoolBinding(UUID(str(api.school)), read_only=True)):
        return db.session.scalar(
            select(ReportCard.code)
            .join(Publication, Publication.id == ReportCard.publication_id)
            .where(ReportCard.student_id == UUID(student), Publication.version == version)
        )


def verify(anyone, school, code, accept="application/json"):
    return anyone.get(f"/verify/{school}/{code}", headers={"Accept": accept})


def test_a_code_tells_what_its_card_says_and_no_more(arms, api, anyone, place):
    arms.published(arms.first)
    student = arms.students[arms.first][0]
    result = json.loads(api.get(f"/students/{student}/results?term=FIRST").data, parse_float=str)

    answer = verify(anyone, place.id, code_of(api, student))

    assert answer.status_code == 200
    told = json.loads(answer.data, parse_float=str)
    assert set(told) == MEMBERS
    who = result["student"]
    assert told["student"] == {
        "name": f"{who['first_name']} {who['last_name']}",
        "admission_number": who["admission_number"],
    }
    assert (told["state"], told["school"], told["version"], told["replaced_at"]) == (
        "CURRENT",
        place.name,
        1,
        None,
    )
    assert told["class"] == f"{result['classroom']} A"
    assert (told["session"], told["term"]) == (result["session"]["name"], "FIRST")
    # To the last digit.
    assert (told["average"], told["grade"]) == (result["average"], result["grade"])
    assert (told["position"], told["of"]) == (1, 2)
    assert told["subjects"] == [
        {"name": one["subject"]["name"], "percent": one["percent"], "grade": one["grade"]}
        for one in result["subjects"]
    ]


def test_a_new_version_replaces_and_a_withdrawn_one_says_nothing(arms, api, anyone, place):
    student = arms.students[arms.first][1]
    (first,) = arms.published(arms.first)
    code = code_of(api, student)
    before = verify(anyone, place.id, code).get_json()
    api.ok(arms.reopen(first))
    assert verify(anyone, place.id, code).get_json() == before

    arms.correct(student, 99)
    (second,) = api.ok(arms.publish(arms.first))

    replaced = verify(anyone, place.id, code).get_json()
    assert replaced["state"] == "REPLACED"
    assert replaced["replaced_at"] == second["published_at"]
    assert {**replaced, "state": "CURRENT", "replaced_at": None} == before
    new_code = code_of(api, student, version=2)
    assert verify(anyone, place.id, new_code).get_json()["average"] != before["average"]

    api.ok(arms.reopen(second, withdraw=True))

    withdrawn = verify(anyone, place.id, new_code).get_json()
    assert {name for name, value in withdrawn.items() if value is not None} == {
        "state", "school", "version", "published_at",
    }  # fmt: skip
    assert withdrawn["state"] == "WITHDRAWN"


def test_positions_are_told_as_the_school_shows_them(arms, api, anyone, place):
    api.ok(api.patch("/result-settings", {"positions": "COHORT"}))
    arms.published(arms.first)

    told = verify(anyone, place.id, code_of(api, arms.students[arms.first][0])).get_json()

    assert (told["position"], told["of"]) == (None, None)


@pytest.fixture
def refused(arms, api, anyone, place, other_place):
    """Addresses of what can't be verified, and one of what can."""
    arms.published(arms.first)
    code = code_of(api, arms.students[arms.first][0])
    addresses = {
        "unknown code": (place.id, uuid4()),
        "unknown school": (uuid4(), code),
        "code of another school": (other_place.id, code),
        "malformed code": (place.id, "x"),
        "code without dashes": (place.id, code.hex),
        "malformed school": ("x", code),
        "hostile code": (place.id, "'; DROP TABLE report_cards; --"),
        "id of the card's school": (place.id, place.id),
        "nobody": (UNKNOWN_ID, UNKNOWN_ID),
    }
    return addresses, (place.id, code)


def test_whatever_can_not_be_verified_is_the_same(refused, anyone, api):
    addresses, right = refused
    headers = {"X-Request-ID": "the-same"}
    assert verify(anyone, *right).status_code == 200

    answers = {
        name: anyone.get(f"/verify/{school}/{code}", headers=headers)
        for name, (school, code) in addresses.items()
    }
    api.ok(api.patch("/result-settings", {"verification": False}))
    answers["switched off"] = anyone.get("/verify/{}/{}".format(*right), headers=headers)

    assert {answer.status_code for answer in answers.values()} == {404}
    assert len({answer.data for answer in answers.values()}) == 1
    assert len({str(sorted(answer.headers)) for answer in answers.values()}) == 1


def test_a_card_published_without_verification_has_none_afterwards(arms, api, anyone, place):
    api.ok(api.patch("/result-settings", {"verification": False}))
    arms.published(arms.first)
    api.ok(api.patch("/result-settings", {"verification": True}))

    assert verify(anyone, place.id, code_of(api, arms.students[arms.first][0])).status_code == 404


def test_a_phone_gets_a_page_without_scripts(arms, api, anyone, place):
    arms.published(arms.first)
    student = arms.students[arms.first][0]
    name = "<script>alert(1)</script> & Ẹniọlá"
    told = api.ok(api.get(f"/students/{student}/results?term=FIRST"))
    assert name not in str(told)

    answer = verify(anyone, place.id, code_of(api, student), accept=HTML)

    assert answer.mimetype == "text/html"
    page = answer.get_data(as_text=True)
    assert "This report card is genuine" in page
    assert f"{told['average']:.2f}" in page
    assert told["student"]["last_name"] in page
    assert "<script" not in page
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert policy.rsplit("'nonce-", 1)[1].rstrip("'") in page
    # Errors are JSON all the same.
    assert verify(anyone, place.id, uuid4(), accept=HTML).mimetype == "application/json"


@pytest.mark.parametrize(
    ("accept", "mimetype"),
    [("*/*", "application/json"), ("text/html", "text/html"), ("", "application/json")],
)
def test_json_comes_first_where_both_will_do(arms, api, anyone, place, accept, mimetype):
    arms.published(arms.first)

    answer = verify(anyone, place.id, code_of(api, arms.students[arms.first][0]), accept=accept)

    assert answer.mimetype == mimetype
    assert answer.headers["Vary"] == "Accept"


def test_text_of_a_school_is_no_markup_of_the_page(arms, api, make, anyone, place):
    api.ok(api.patch(f"/students/{arms.students[arms.first][0]}", {"last_name": "Bàló<b>gun & Co"}))
    arms.published(arms.first)

    page = verify(anyone, place.id, code_of(api, arms.students[arms.first][0]), accept=HTML).get_data(
        as_text=True
    )

    assert "Bàló&lt;b&gt;gun &amp; Co" in page
    assert "<b>" not in page


def test_no_answer_is_stored_indexed_or_told_to_other_sites(arms, api, anyone, place):
    arms.published(arms.first)
    code = code_of(api, arms.students[arms.first][0])

    for answer in (verify(anyone, place.id, code), verify(anyone, place.id, uuid4())):
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Robots-Tag"] == "noindex"
        assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_an_address_may_ask_sixty_times_a_minute(anyone, place):
    statuses = [verify(anyone, "x", "x").status_code for _ in range(61)]

    assert statuses == [404] * 60 + [429]
    answer = verify(anyone, place.id, uuid4())
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 60
    assert "password" not in answer.get_json()["message"]
    # Others are not affected.
    elsewhere = anyone.get(f"/verify/x/{uuid4()}", environ_overrides={"REMOTE_ADDR": "203.0.113.9"})
    assert elsewhere.status_code == 404


def test_no_line_of_the_log_has_the_code(arms, api, anyone, place, logs):
    arms.published(arms.first)
    code = code_of(api, arms.students[arms.first][0])
    shown, wrong = f"/verify/{place.id}/{code}", (f"/VERIFY/{place.id}/{code}", f"/verify/{code}/")

    assert [anyone.get(path).status_code for path in (shown, *wrong)] == [200, 404, 404]
    assert anyone.get(shown, headers={"Accept": HTML}).status_code == 200

    lines = [line for line in logs() if line["logger"] == "school_service.access"]
    assert [line["path"] for line in lines[-4:]] == ["/verify/…", "/VERIFY/…", "/verify/…", "/verify/…"]
    assert str(code) not in str(logs())


@pytest.mark.parametrize("path", ["//verify/a/b", "/verify/a\nb", "/a/verify/b"])
def test_nor_has_one_of_an_address_that_is_none(path):
    assert logged_path(path).endswith("/verify/…")


@pytest.mark.parametrize("path", ["/verify", "/students", "/verify/", "/verified/a"])
def test_other_paths_are_logged_as_they_are(path):
    assert logged_path(path) == path


def test_verifying_is_one_message(arms, api, anyone, place, messages):
    arms.published(arms.first)
    code = code_of(api, arms.students[arms.first][0])

    with messages() as sent:
        assert verify(anyone, place.id, code).status_code == 200

    assert len(sent) == 1
    assert "transaction_read_only TO on" in sent[0]


def test_a_suspended_school_is_as_unknown_as_any(committing, tenancy, app):
    arms = Arms(committing, students=1, subjects=1)
    arms.published(arms.first)
    api, anyone = committing.api, committing.api.using(token=None, school=None)
    with app.app_context():
        code = code_of(api, arms.students[arms.first][0])
        limiter.limiter.storage.reset()
    headers = {"X-Request-ID": "the-same"}
    unknown = anyone.get(f"/verify/{api.school}/{uuid4()}", headers=headers)
    assert verify(anyone, api.school, code).status_code == 200

    with tenancy.admin.begin() as connection:
        connection.execute(update(schools).where(schools.c.id == api.school).values(status="suspended"))

    suspended = anyone.get(f"/verify/{api.school}/{code}", headers=headers)
    assert (suspended.status_code, suspended.data) == (404, unknown.data)
