"""A school to try on a real server: filled as the demo's, and nobody enters with a password that was not printed."""

import json
import re
from uuid import UUID

import pytest
from sqlalchemy import make_url

from school_service.demo import sample
from school_service.demo.fill_school import STEPS
from school_service.demo.sample_schools import SCHOOLS
from school_service.demo.students import make_guardians
from tenants.registry.schools import schema_name
from tests.cli.program import ROOT, in_this_process, run
from tests.tenants.installations import execute

pytestmark = pytest.mark.program

ACCOUNTS = ("admin", "teacher", "guardian", "student")


def create_sample(name, installed, folder, *arguments):
    # The operator's verbs sign nothing.
    settings = {key: value for key, value in installed.items() if key != "SIGNING_KEY"}
    done = run("tenants", "create", name, "--sample", "--json", *arguments, cwd=folder, settings=settings)
    assert (done.returncode, done.stderr) == (0, ""), done
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def school(installed, folder):
    return create_sample("Grace College", installed, folder, "--motto", "Light", "--short-name", "grace")


@pytest.fixture
def token(school, service):
    return service.client_token(school["client_id"], school["client_secret"])


def passwords(school):
    """The username and the password of each account that was printed."""
    named = [("admin", "password"), *((role, f"{role}_password") for role in ACCOUNTS[1:])]
    return {school[role]: school[password] for role, password in named}


def sign_in(service, school, token, username, password):
    body = {"username": username, "password": password}
    return service.request("POST", "/users/login", token=token, school=school["id"], body=body)


def test_its_name_begins_with_sample_and_its_details_are_those_given(school, service, token):
    told = service.ok("GET", "/me", token=token, school=school["id"])["school"]

    assert school["name"] == told["name"] == "Sample Grace College"
    assert told["motto"] == "Light"
    assert told["address"] == SCHOOLS[0].address
    assert school["id"] != str(SCHOOLS[0].id)


def test_the_sample_school_is_filled_as_a_school_of_the_demo(school, service, token):
    def get(path):
        return service.ok("GET", path, token=token, school=school["id"])

    assert [session["current"] for session in get("/sessions")].count(True) == 1
    assert get("/students?pageSize=1&status=ACTIVE")["total"] >= 60
    assert len(get("/classrooms")) == 6
    assert get("/gradebooks?pageSize=1")["total"] > 1000
    assert len(get("/publications")) >= 1


def test_the_printed_passwords_let_in(school, service, token):
    for username, password in passwords(school).items():
        answer = sign_in(service, school, token, username, password)

        assert answer.status == 200, username


def test_a_teacher_a_guardian_and_a_student_see_their_own_records(school, service, token):
    def me(role):
        signed_in = sign_in(service, school, token, school[role], school[f"{role}_password"]).json()
        own = signed_in["access_token"]["access_token"]
        return service.ok("GET", "/me", token=own, school=school["id"])

    student = me("student")["student"]["id"]
    assert student in [child["student"] for child in me("guardian")["children"]]
    assert me("teacher")["classes"]


def test_no_account_has_a_password_that_was_not_printed(school, installed):
    rows = execute(
        make_url(installed["ADMIN_DATABASE_URL"]),
        f'SELECT username FROM "{schema_name(UUID(school["id"]))}".users WHERE password_hash IS NOT NULL',
    )

    assert {row[0] for row in rows} == set(passwords(school))


def known_passwords():
    """Words of the demo, and of the documentation, that somebody would try."""
    passwords = {
        "admin",
        "demo",
        "password",
        "correct horse battery staple",
        *(each.code for each in SCHOOLS),
    }
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        passwords |= set(re.findall(r'"(?:current_)?password": "([^"]+)"', page.read_text(encoding="utf-8")))
    return sorted(passwords)


def test_words_that_are_known_from_the_demo_let_nobody_in(school, service, token):
    words = known_passwords()
    assert "correct horse battery staple" in words
    assert set(passwords(school).values()).isdisjoint({*words, *passwords(school)})

    for username, word in zip(passwords(school), ("admin", "password", "guardian", words[0]), strict=True):
        assert sign_in(service, school, token, username, word).status == 401


@pytest.fixture
def few_steps(monkeypatch):
    """Let a school that is made in this process have people alone."""
    monkeypatch.setattr(sample, "STEPS", STEPS[: STEPS.index(make_guardians) + 1])


@in_this_process
def test_another_sample_school_has_other_passwords_and_another_secret(school, service, token, cli, few_steps):
    other = json.loads(cli("tenants", "create", "Sample Mercy College", "--sample", "--json").stdout)

    assert other["name"] == "Sample Mercy College"
    assert set(passwords(school).values()).isdisjoint(passwords(other).values())
    assert other["client_secret"] != school["client_secret"]
    theirs = service.client_token(other["client_id"], other["client_secret"])
    for username, password in passwords(school).items():
        assert sign_in(service, other, theirs, username, password).status == 401


def test_its_client_enters_no_other_school(school, installed, folder, service, token, cli):
    real = json.loads(cli("tenants", "create", "Real College", "--json").stdout)

    assert service.request("GET", "/users", token=token, school=real["id"]).status == 403
    assert service.request("GET", "/users", token=token, school=school["id"]).status == 200


def test_a_password_of_ones_own_is_no_word_for_it(cli):
    refused = cli("tenants", "create", "Grace College", "--sample", "--password-stdin", stdin=b"x" * 20)

    assert refused.exit_code == 2
    assert "--sample makes every password itself" in refused.stderr


def test_a_name_that_is_too_long_with_its_first_word_is_refused(cli):
    refused = cli("tenants", "create", "G" * 120, "--sample")

    assert refused.exit_code == 2
    assert "a name has 1 to 120 characters" in refused.stderr


@in_this_process
def test_a_school_that_can_not_be_filled_is_not_there(cli, monkeypatch, few_steps):
    def fail(*_arguments, **_options):
        raise RuntimeError("no more room")

    monkeypatch.setattr(sample, "create_client", fail)

    with pytest.raises(RuntimeError):
        cli("tenants", "create", "Broken College", "--sample")

    assert "Broken" not in cli("tenants", "list", "--json").stdout
