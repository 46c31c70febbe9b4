"""Verification: a code tells the content of its card, and without one nothing is told."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from uuid import UUID, uuid4

import psycopg2
import pytest
from sqlalchemy import event, select, update
from sqlalchemy.exc import TimeoutError as PoolTimeout

from school_service.auth.login_throttle import limiter
from school_service.core.database import db
from school_service.core.read_models import CompiledStatement
from school_service.features.results.models import Publication, ReportCard
from school_service.features.results.report_cards import reads
from school_service.web.request_log import logged_path
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.registry.schools import schools
from tests.client import ApiClient
from tests.conftest import make_place
from tests.factories import UNKNOWN_ID, Factory
from tests.features.results.publications.arms import Arms
from tests.savepoint_engine import CountingCursor

HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
MEMBERS = {
    "state", "school", "student", "class", "session", "term", "version", "published_at", "replaced_at", "note",
    "average",
    "grade", "position", "of", "subjects",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def made_arms(prepared):
    return prepared(Arms.with_results)


@pytest.fixture
def anyone(api):
    """A holder of the paper: no token, no school."""
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


def test_a_code_tells_the_content_of_its_card_and_no_more(arms, api, anyone, place):
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
        {"name": row["subject"]["name"], "percent": row["percent"], "grade": row["grade"]}
        for row in result["subjects"]
    ]


def test_a_page_says_that_a_place_is_shared_as_the_card_does(arms, api, anyone, place):
    first, second = arms.students[arms.first]
    for number in range(2):
        arms.correct(second, 90, number)
    arms.published(arms.first)

    card = api.ok(api.get(f"/students/{first}/report-card?term=FIRST&format=json"))
    told = verify(anyone, place.id, code_of(api, first))
    page = verify(anyone, place.id, code_of(api, first), accept=HTML).get_data(as_text=True)

    assert card["figures"]["batch"]["text"] == "1st = of 2"
    assert "<dd>1st = of 2</dd>" in page
    assert told.get_json().keys() == MEMBERS


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
    pages = [verify(anyone, place.id, code, accept=HTML).get_data(as_text=True) for code in (code, new_code)]
    assert ["was replaced on" in page for page in pages] == [True, False]
    assert ["was withdrawn" in page for page in pages] == [False, True]
    # Of a withdrawn paper nothing is told that it could be compared with.
    assert ["says something else" in page for page in pages] == [True, False]
    assert "None" not in "".join(pages)


def test_positions_are_told_as_the_school_shows_them(arms, api, anyone, place):
    api.ok(api.patch("/result-settings", {"positions": "COHORT"}))
    arms.published(arms.first)

    told = verify(anyone, place.id, code_of(api, arms.students[arms.first][0])).get_json()

    assert (told["position"], told["of"]) == (None, None)


@pytest.fixture(scope="module")
def closed_place(app, tenancy):
    """A school whose row of the registry tests change."""
    return make_place(app, tenancy, "Methodist Boys High School, Lagos")


@pytest.fixture
def change(tenancy, closed_place):
    """Change the school's row of the registry, until the test ends."""

    def update_row(**values):
        with tenancy.admin.begin() as connection:
            connection.execute(update(schools).where(schools.c.id == closed_place.id).values(values))

    with tenancy.admin.connect() as connection:
        columns = (schools.c.status, schools.c.deletion, schools.c.revision)
        before = connection.execute(select(*columns).where(schools.c.id == closed_place.id)).one()
    yield update_row
    update_row(**before._mapping)


@pytest.fixture
def statements(rehearsed, monkeypatch):
    """The statements that a block sends to the registry and to a school, whichever school it is.

    One that fails is told apart: PostgreSQL has left the rest of its message out. On Citus tables bear the number of
    the school's shard, and where the school is has been remembered since its first request.
    """
    execute, log = CountingCursor.execute, []

    def listen(_connection, _cursor, statement, *_others):
        if "pg_dist_placement" not in statement:
            log.append(statement)

    def record(cursor, query, parameters=None):
        if "pg_dist_placement" not in query:
            log.append(re.sub(r"(?<=school)_[0-9a-f]{32}|(?<=[a-z])_[0-9]{6,}\b", "", query))
        try:
            execute(cursor, query, parameters)
        except psycopg2.Error as error:
            log.append(f"failed: {error.pgcode}")
            raise

    monkeypatch.setattr(CountingCursor, "execute", record)
    registry = db.engines["registry"]

    @contextmanager
    def listening():
        log.clear()
        event.listen(registry, "before_cursor_execute", listen)
        yield log
        event.remove(registry, "before_cursor_execute", listen)

    return listening


def test_all_failures_of_verification_are_answered_the_same(
    rehearsed, document, closed_place, place, anyone, change, statements
):
    """The same status, bytes and header fields; and the same statements, so that it takes as long."""
    api = ApiClient(rehearsed, document, closed_place.admin_token, closed_place.id)
    arms = Arms(Factory(api), students=1, subjects=1)
    arms.published(arms.first)
    code, school = code_of(api, arms.students[arms.first][0]), closed_place.id
    right, revision = (
        f"/verify/{school}/{code}",
        rehearsed.extensions["school-service"].binding_options.serves[0],
    )
    responses = {}

    def ask(name, path):
        for method, accept in (("GET", "application/json"), ("GET", HTML), ("HEAD", HTML)):
            headers = {"X-Request-ID": "the-same", "Accept": accept}
            with statements() as sent:
                answer = anyone.request(method, path, headers=headers)
            sorted_headers = tuple(sorted(answer.headers))
            responses[name, method, accept] = (answer.status_code, answer.data, sorted_headers, tuple(sent))

    ask("right", right)
    for name, path in {
        "unknown code": f"/verify/{school}/{uuid4()}",
        "unknown school": f"/verify/{uuid4()}/{code}",
        "school after all others": f"/verify/{UUID(int=2**128 - 1)}/{code}",
        "code of another school": f"/verify/{place.id}/{code}",
        "malformed code": f"/verify/{school}/x",
        "code with a slash": f"/verify/{school}/{code}/x",
        "code that ends with a slash": f"/verify/{school}/{code}/",
        "code without dashes": f"/verify/{school}/{code.hex}",
        "malformed school": f"/verify/x/{code}",
        "hostile code": f"/verify/{school}/'; DROP TABLE report_cards; --",
        "id of the card's school": f"/verify/{school}/{school}",
        "nobody": f"/verify/{UNKNOWN_ID}/{UNKNOWN_ID}",
    }.items():
        ask(name, path)
    for name, values in {
        "suspended": {"status": "suspended"},
        "being deleted": {"status": "active", "deletion": "closed"},
        "being upgraded": {"deletion": None, "revision": "t0001"},
    }.items():
        change(**values)
        ask(name, right)
    change(revision=revision)
    limiter.limiter.storage.reset()
    ask("right again", right)
    api.ok(api.patch("/result-settings", {"verification": False}))
    ask("switched off", right)

    for method, accept in (("GET", "application/json"), ("GET", HTML), ("HEAD", HTML)):
        answers = {name: answer for (name, *how), answer in responses.items() if how == [method, accept]}
        status, _, _, told = answers.pop("right")
        assert answers.pop("right again")[0] == status == 200
        refused = answers["unknown code"]
        assert {name: answer for name, answer in answers.items() if answer != refused} == {}
        assert refused[0] == 404
        # The content is read after that, in one statement more.
        sent = refused[3]
        assert (told[: len(sent)], len(told)) == (sent, len(sent) + 1)


def test_where_no_school_can_be_entered_none_is_read(rehearsed, anyone, tenancy, statements, monkeypatch):
    state = rehearsed.extensions["school-service"]
    monkeypatch.setattr(state, "binding_options", replace(state.binding_options, serves=("t0000",)))

    with statements() as sent:
        assert verify(anyone, uuid4(), uuid4()).status_code == 404

    assert ["registry.schools" in statement for statement in sent] == [True]


@pytest.fixture
def before_reading(monkeypatch):
    """Do something, once, before a message goes to a school."""
    execute, doing = CountingCursor.execute, []

    def execute_then(cursor, query, parameters=None):
        if doing and "registry.enter(" in query:
            doing.pop()(lambda statement: execute(cursor, statement))
        execute(cursor, query, parameters)

    monkeypatch.setattr(CountingCursor, "execute", execute_then)
    return doing.append


def test_a_school_that_has_been_moved_is_looked_for_once_more(arms, api, anyone, place, before_reading):
    """A node of Citus says that the school is there no more."""
    arms.published(arms.first)
    code, moved = code_of(api, arms.students[arms.first][0]), []

    def move(send):
        moved.append(True)
        send("SAVEPOINT request; DO $$ BEGIN RAISE EXCEPTION 'elsewhere' USING ERRCODE = 'SC421'; END $$")

    before_reading(move)

    assert verify(anyone, place.id, code).status_code == 200
    assert moved


def test_a_school_that_is_suspended_between_the_two_statements_is_as_unknown_as_any(
    rehearsed, closed_place, anyone, change, before_reading
):
    unknown = anyone.get(f"/verify/{closed_place.id}/{uuid4()}", headers={"X-Request-ID": "the-same"})
    before_reading(lambda _send: change(status="suspended"))

    suspended = anyone.get(f"/verify/{closed_place.id}/{uuid4()}", headers={"X-Request-ID": "the-same"})

    assert (suspended.status_code, suspended.data) == (404, unknown.data)


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


def shown_error(answer):
    """The page of an error: it has no scripts, and its style is let through by its hash."""
    assert answer.mimetype == "text/html"
    assert answer.headers["Vary"] == "Accept"
    page = answer.get_data(as_text=True)
    (style,) = re.findall("<style>(.*?)</style>", page, re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert policy.endswith(f"style-src 'sha256-{digest}'")
    assert "<script" not in page
    assert "None" not in page
    return page


def test_a_browser_is_shown_that_there_is_no_card(rehearsed, anyone, place):
    limiter.limiter.storage.reset()
    answer = verify(anyone, place.id, uuid4(), accept=HTML)

    assert answer.status_code == 404
    page = shown_error(answer)
    assert "There is no report card with this code. Ask the school." in page
    # The request is not repeated in it.
    for school, code in ((uuid4(), uuid4()), (place.id, "x"), (place.id, "a/b"), ("x", "<b>bold")):
        other = verify(anyone, school, code, accept=HTML)
        assert (other.status_code, other.get_data(as_text=True)) == (404, page)
    # JSON where that is asked for, as ever.
    told = verify(anyone, place.id, uuid4())
    assert (told.status_code, told.mimetype) == (404, "application/json")
    assert told.headers["Vary"] == "Accept"


def test_a_browser_is_shown_when_to_come_back(anyone, place):
    limiter.limiter.storage.reset()
    for _ in range(60):
        verify(anyone, "x", "x")

    answer = verify(anyone, place.id, uuid4(), accept=HTML)

    assert answer.status_code == 429
    after = int(answer.headers["Retry-After"])
    assert f"Come back in {after} second" in shown_error(answer)
    assert verify(anyone, place.id, uuid4()).get_json()["message"].startswith("Too many codes")


def test_a_browser_is_shown_when_the_service_can_answer_again(anyone, place, monkeypatch):
    limiter.limiter.storage.reset()

    def wait_in_vain(**_traces):
        raise PoolTimeout

    monkeypatch.setattr(reads, "verifiable", wait_in_vain)

    answer = verify(anyone, place.id, uuid4(), accept=HTML)

    assert answer.status_code == 503
    assert f"Come back in {answer.headers['Retry-After']} seconds" in shown_error(answer)


def test_a_browser_is_shown_a_page_for_an_unforeseen_error(anyone, place, monkeypatch, logs):
    limiter.limiter.storage.reset()

    def fail(**_traces):
        raise ZeroDivisionError

    monkeypatch.setattr(reads, "verifiable", fail)

    answer = verify(anyone, place.id, uuid4(), accept=HTML)

    assert answer.status_code == 500
    assert "could not be looked up" in shown_error(answer)


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


def test_an_address_may_ask_for_sixty_unknown_codes_a_minute_and_for_any_number_of_known_ones(
    arms, api, anyone, place
):
    arms.published(arms.first)
    code = code_of(api, arms.students[arms.first][0])
    limiter.limiter.storage.reset()

    # Codes that are found are not counted.
    assert {verify(anyone, place.id, code).status_code for _ in range(61)} == {200}
    statuses = [verify(anyone, "x", "x").status_code for _ in range(61)]

    assert statuses == [404] * 60 + [429]
    answer = verify(anyone, place.id, uuid4())
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 60
    assert "password" not in answer.get_json()["message"]
    # An admissions office behind the same address goes on, by JSON and by the page.
    assert verify(anyone, place.id, code).status_code == 200
    assert verify(anyone, place.id, code, accept=HTML).status_code == 200
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
def test_a_malformed_address_is_logged_without_its_code(path):
    assert logged_path(path).endswith("/verify/…")


@pytest.mark.parametrize("path", ["/verify", "/students", "/verify/", "/verified/a"])
def test_other_paths_are_logged_as_they_are(path):
    assert logged_path(path) == path


def test_verifying_is_a_statement_of_the_registry_and_a_message_to_the_school_or_two(
    arms, api, anyone, place, statements
):
    """Every code is looked up; the content of the paper is read where there is one."""
    arms.published(arms.first)
    code = code_of(api, arms.students[arms.first][0])

    with statements() as sent:
        assert verify(anyone, place.id, uuid4()).status_code == 404
    of_registry, of_school = of_trying = tuple(sent)
    assert "registry.schools" in of_registry
    assert "transaction_read_only TO on" in of_school

    with statements() as told:
        assert verify(anyone, place.id, code).status_code == 200
    assert tuple(told[:2]) == of_trying
    assert [("transaction_read_only TO on" in query, "card" in query) for query in told[2:]] == [(True, True)]


def test_no_statement_has_the_code(arms, api, anyone, place, monkeypatch):
    """PostgreSQL's log has statements that failed, or took long."""
    arms.published(arms.first)
    code = code_of(api, arms.students[arms.first][0])
    execute, said = CountingCursor.execute, []

    def record(cursor, query, parameters=None):
        said.append(cursor.mogrify(query, parameters).decode())
        execute(cursor, query, parameters)

    monkeypatch.setattr(CountingCursor, "execute", record)

    assert verify(anyone, place.id, code).status_code == 200
    assert verify(anyone, place.id, uuid4()).status_code == 404

    text = "\n".join(said)
    assert str(place.id).replace("-", "") in text
    # Its first 32 bits are there, and no others in plain.
    assert str(code)[:8] in text
    plain = text.replace("-", "")
    assert not [at for at in range(8, 25) if code.hex[at : at + 8] in plain]


def test_a_code_that_begins_as_another_is_not_taken_for_it(arms, api, anyone, place):
    arms.published(arms.first)
    code = code_of(api, arms.students[arms.first][0])

    assert verify(anyone, place.id, UUID(int=code.int ^ 1)).status_code == 404
    assert verify(anyone, place.id, str(code).upper()).status_code == 200


def test_the_code_is_found_by_its_index(api):
    bound = reads.paper_of_code(UNKNOWN_ID, UNKNOWN_ID, "")
    statement = CompiledStatement(bound.template.query)

    with in_transaction(SchoolBinding(UUID(str(api.school)), read_only=True)):
        connection = db.session.connection()
        connection.exec_driver_sql("SET LOCAL enable_seqscan TO off")
        parameters = statement.parameters(bound.values)
        plan = "\n".join(connection.exec_driver_sql(f"EXPLAIN {statement.sql}", parameters).scalars())

    assert "uq_report_cards_code" in plan
