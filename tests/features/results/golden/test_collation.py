"""Results on a server with another collation: the golden files hold there too, and names are in its order.

A database of ICU's or of the C library's English is made where the server has them. Else PostgreSQL is started with a
locale that `localedef` compiles of the machine's sources; where these are not there either, the tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from flask import Flask
from sqlalchemy import URL, create_engine, text
from sqlalchemy.exc import DBAPIError

from school_service.cli import data_folder
from tenants.connections.engines import registry_url
from tenants.registry.installation import install
from tenants.tenancy import Tenancy
from tests import postgres
from tests.client import ApiClient, Document
from tests.conftest import Way, create_app, dispose, make_place, settings_of, tenancy_of
from tests.factories import Factory
from tests.features.results.golden.comparing import differences
from tests.features.results.golden.recordings import in_part, read_golden, record
from tests.features.results.golden.test_golden import MOST_NAMED

pytestmark = [postgres.on_postgresql_alone, pytest.mark.release]

ICU = "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
OF_LIBRARY = "TEMPLATE template0 LOCALE_PROVIDER libc LOCALE 'en_US.utf8'"
# Their order is another where capital letters come first.
SUBJECTS = ("art", "Biology", "chemistry", "Drama", "Éthics", "french")
ARMS = ("apple", "Banana", "cherry")
PAPERS = ("a1", "B1", "c1")
NUMBERS = ("a/1", "B/2", "c/3")


class There(NamedTuple):
    """An installation whose database has another collation."""

    app: Flask
    tenancy: Tenancy


def _can_have(server: URL, locale: str) -> bool:
    engine = create_engine(registry_url(server), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE school_tests_locale {locale}"))
            connection.execute(text("DROP DATABASE school_tests_locale"))
    except DBAPIError:
        return False
    finally:
        engine.dispose()
    return True


@contextmanager
def _with_compiled_locale() -> Iterator[URL]:
    """Start a PostgreSQL that has the C library's English, compiled for it alone."""
    if shutil.which("localedef") is None or os.environ.get("TEST_DATABASE_URL"):
        pytest.skip("The server has neither ICU nor the locale en_US.utf8, and none can be compiled for it.")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        Path(folder).chmod(0o755)
        done = subprocess.run(
            ["localedef", "-i", "en_US", "-f", "UTF-8", f"{folder}/en_US.utf8"],
            capture_output=True,
            check=False,
        )
        if not Path(folder, "en_US.utf8").is_dir():
            pytest.skip(f"The locale en_US.utf8 can't be compiled: {done.stderr.decode()}")
        run = subprocess.run

        def with_locale(*arguments: Any, env: dict[str, str] | None = None, **options: Any) -> Any:
            environment = env if env is None else {**env, "LOCPATH": folder}
            return run(*arguments, env=environment, **options)

        patch.setattr(data_folder.subprocess, "run", with_locale)
        with postgres.test_server() as server:
            yield server


@pytest.fixture(scope="module")
def there(server: URL) -> Iterator[There]:
    with ExitStack() as stack:
        locale = next((provider for provider in (ICU, OF_LIBRARY) if _can_have(server, provider)), None)
        if locale is None:
            server, locale = stack.enter_context(_with_compiled_locale()), OF_LIBRARY
        admin, serving = stack.enter_context(postgres.test_database(server, locale=locale))
        settings = settings_of(admin, serving, Way())
        tenancy = tenancy_of(settings)
        stack.callback(tenancy.admin.dispose)
        install(tenancy)
        app = create_app(settings)
        stack.callback(dispose, app)
        yield There(app, tenancy)


def test_the_golden_files_hold_under_another_collation(there):
    part = 8

    changes = differences(
        in_part(read_golden("school"), part), record("school", there.app, there.tenancy, part=part)
    )

    assert not changes, "\n".join([f"{len(changes)} readings differ.", *changes[:MOST_NAMED]])


@pytest.fixture
def make(there) -> Factory:
    place = make_place(there.app, there.tenancy, "School of another order")
    return Factory(ApiClient(there.app, Document(there.app), place.admin_token, place.id))


def in_order(there: There, names: tuple[str, ...]) -> list[str]:
    """Ask PostgreSQL for the order of names, which is not Python's."""
    with there.tenancy.admin.connect() as connection:
        rows = connection.execute(
            text("SELECT name FROM unnest(:names) name ORDER BY name"), {"names": [*names]}
        )
        ordered = [*rows.scalars()]
    assert ordered != sorted(names)
    return ordered


def test_subjects_arms_papers_and_numbers_are_in_the_order_of_postgresql(there, make):
    api, cohort = make.api, make.cohort()
    first = cohort["id"]
    api.ok(api.patch(f"/batches/{first}", {"name": ARMS[0]}))
    arms = {ARMS[0]: first, **{name: make.batch(cohort, name=name)["id"] for name in ARMS[1:]}}
    term = make.term({"id": cohort["session"]})
    subjects = [make.cohort_subject(cohort, make.subject(name=name)) for name in SUBJECTS]
    paper = {"category": "EXAM", "include_in_final": True, "due_date": "2025-10-17"}
    papers = [make.assessment(subjects[0], term, **paper, abbreviation=name) for name in PAPERS]
    papers += [make.assessment(subject, term, **paper) for subject in subjects[1:]]
    students = {arm: [make.student(admission_number=f"{arm}/{number}") for number in NUMBERS] for arm in ARMS}
    for arm, some in students.items():
        make.enrolled(cohort, *some, batch=arms[arm])
    of_class = {"batch": first, "term": "FIRST"}
    names, places = in_order(there, SUBJECTS), in_order(there, ARMS)
    numbers = in_order(there, tuple(f"{arm}/{number}" for arm in ARMS for number in NUMBERS))

    def names_of(rows: list[dict[str, Any]]) -> list[str]:
        return [
            row["subject"]["name"] if isinstance(row["subject"], dict) else row["subject"] for row in rows
        ]

    refused = api.post(f"/cohort-subjects/{subjects[0]['id']}/submission", {"term": "FIRST"}).get_json()
    blanks = refused["errors"]["json"]["blanks"]
    assert [blank["abbreviation"] for blank in blanks] == in_order(there, PAPERS)
    assert [blank["students"] for blank in blanks] == [numbers] * 3
    listed = api.ok(api.get("/submissions", query_string={"cohort": first, "term": "FIRST"}))
    assert [(submission["subject"], submission["batch_name"]) for submission in listed] == [
        (name, arm) for name in names for arm in places
    ]
    unsubmitted = api.post("/publications", {"term": "FIRST", "batches": [*arms.values()]}).get_json()
    assert unsubmitted["errors"]["json"]["subjects"] == names

    for assessment in papers:
        rows = [{"student": each["id"], "score": 5} for some in students.values() for each in some]
        api.ok(api.put(f"/assessments/{assessment['id']}/scores", rows))
    for subject in subjects:
        api.ok(api.post(f"/cohort-subjects/{subject['id']}/submission", {"term": "FIRST"}))
    published = api.ok(api.post("/publications", {"term": "FIRST", "batches": [*arms.values()]}))
    assert [publication["batch_name"] for publication in published] == places
    someone = students[ARMS[0]][0]["id"]
    for live in ("true", "false"):
        sheet = api.ok(api.get("/broadsheets", query_string={**of_class, "live": live}))
        assert [subject["name"] for subject in sheet["subjects"]] == names
        query = {"term": "FIRST", "live": live}
        result = api.ok(api.get(f"/students/{someone}/results", query_string=query))
        assert names_of(result["subjects"]) == names
        assert [subject["name"] for subject in result["cumulative"]["subjects"]] == names
    session = api.ok(api.get("/broadsheets", query_string={"batch": first, "session": cohort["session"]}))
    assert [subject["name"] for subject in session["subjects"]] == names
