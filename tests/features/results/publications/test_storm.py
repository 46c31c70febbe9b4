"""Eight clients submit, publish, reopen, enter scores and move students, all at once.

None of them waits in a circle. Published cards are made by the pure function of all entries at one moment: the one at
which the publication loaded them, and another connection reads them once more. Names change meanwhile, many of them
in one transaction.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any
from uuid import UUID

import psycopg2.extensions
import pytest
from sqlalchemy import select, text

from school_service.core import shares
from school_service.core.exact_json import read_json, write_json
from school_service.core.narrowing import judged_before
from school_service.core.read_models import Query, as_json_row
from school_service.features.results.computing.cards import ClassRecord, bands, card
from school_service.features.results.computing.class_term.entered import class_term
from school_service.features.results.computing.class_term.loaded import Loaded
from school_service.features.results.computing.class_term.record import record
from school_service.features.results.computing.class_term.scopes import scope_of_batch
from school_service.features.results.computing.compute import compute
from tenants.registry.schools import schema_name
from tests.client import ApiClient
from tests.factories import Factory
from tests.features.results.publications.arms import Arms
from tests.lock_order import LockOrder
from tests.postgres import on_postgresql_alone
from tests.watched_messages import watched_messages

CLIENTS = 8
TERM = "FIRST"
PAUSE = 0.1  # seconds
FEW, MANY = 2, 40  # publications
AT_WORK = text("SELECT count(*) FROM pg_stat_activity WHERE pid = ANY(:backends)")
DEADLOCKS = text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")

_ROW = "CAST(row_to_json(answer) AS TEXT) AS row"
# The moment at which a publication loads the class can be read from elsewhere until it commits.
_EXPORTED = f"{_ROW}, set_config('tests.loaded', pg_export_snapshot(), true) AS loaded"
_STORED = """
    SELECT p.batch_id::text, p.version, p.rules::text, c.student_id::text, c.card::text
    FROM publications p JOIN report_cards c ON c.publication_id = p.id
    WHERE p.xmin = pg_current_xact_id()::xid AND p.state = 'PUBLISHED'
"""
# Members of a publication's rules beside settings and bands.
_OF_BATCH = {"table", "batch_name", "session_name", "subjects", "left", "without_subjects"}
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_RENAMED = (
    "UPDATE terms SET display_name = 'First term no. {0}'",
    "UPDATE subjects SET name = split_part(name, ' no. ', 1) || ' no. {0}'",
    "UPDATE users SET last_name = split_part(last_name, ' no. ', 1) || ' no. {0}' WHERE username <> 'admin'",
    "UPDATE term_calendars SET notice = 'Notice no. {0}'",
    "UPDATE letterheads SET name = 'School no. {0}'",
)


@judged_before
def as_entered(batch_id: UUID, term: str) -> Query:
    """Select the entries that cards of a batch in a term are made of."""
    of = class_term(scope_of_batch(batch_id, term))
    return select(*of.columns(), record(of).label("record"))


class Witness:
    """Compares the cards of each transaction, before it commits, with the entries as it loaded the class."""

    def __init__(self, tenancy: Any, school: UUID) -> None:
        self._admin, self._schema = tenancy.admin, schema_name(school)
        self.publications = self.cards = 0
        self.wrong: list[str] = []
        self.locks: dict[int, LockOrder] = {}
        self.backends: set[int] = set()
        self._publishing: set[int] = set()

    def look(self, connection: Any, message: str) -> str:
        """See a message that is about to be sent."""
        key = id(connection)
        self.backends.add(connection.info.backend_pid)
        locks = self.locks.setdefault(key, LockOrder())
        # There a transaction begins with a savepoint, as in `rehearsed`.
        locks.take(re.sub("^BEGIN", "SAVEPOINT", message))
        if message.startswith(("BEGIN", "ROLLBACK")):
            self._publishing.discard(key)
        elif "INSERT INTO publications" in message:
            self._publishing.add(key)
            # Rows without a lock have time to change between loading and storing.
            time.sleep(PAUSE)
        elif message.endswith("COMMIT") and key in self._publishing:
            self._publishing.discard(key)
            with connection.cursor(cursor_factory=psycopg2.extensions.cursor) as cursor:
                self._compare(cursor)
        elif "registers_missing" in message:
            return message.replace(_ROW, _EXPORTED)
        return message

    def _compare(self, publishing: Any) -> None:
        publishing.execute(_STORED)
        stored = publishing.fetchall()
        publishing.execute("SELECT current_setting('tests.loaded')")
        (snapshot,) = publishing.fetchone()
        for batch in {row[0] for row in stored}:
            of_batch = [row[1:] for row in stored if row[0] == batch]
            loaded = self._entered(batch, snapshot)
            self.wrong += _differences(batch, loaded, of_batch)
            publishing.execute(*as_entered(UUID(batch), TERM).batch(as_json_row))
            self.wrong += _changed(loaded, Entered(publishing.fetchone()[0]), {row[2] for row in of_batch})
            self.publications += 1
            self.cards += len(of_batch)

    def _entered(self, batch: str, snapshot: str) -> Entered:
        """Read the entries of a batch at the moment of a snapshot."""
        with self._admin.connect() as connection:
            connection.execution_options(isolation_level="REPEATABLE READ")
            connection.exec_driver_sql(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
            connection.exec_driver_sql(f"SET LOCAL search_path TO {self._schema}; SET LOCAL time zone 'UTC'")
            text_, parameters = as_entered(UUID(batch), TERM).batch(as_json_row)
            return Entered(connection.exec_driver_sql(text_, parameters).scalar_one())


class Entered:
    """The entries of a class, and its cards by the pure function."""

    def __init__(self, row: str) -> None:
        document = read_json(row)
        loaded = Loaded.of(document)
        assert loaded is not None
        self.loaded = loaded.shown_to(None)
        self.record = ClassRecord(self.loaded, document["record"])

    def cards(self, batch: str, version: int, published_at: str) -> dict[str, Any]:
        """Make the cards of a batch, by student."""
        computed = compute(self.loaded.entered)
        return {
            pupil.id: _written(card(self.record, computed, pupil, version=version, published_at=published_at))
            for pupil in self.loaded.people
            if pupil.batch == batch
        }

    def rules(self) -> dict[str, Any]:
        """Give the settings and bands, as a publication has them."""
        rules: dict[str, Any] = _written({**self.loaded.settings, "bands": bands(self.loaded)})
        return rules


def _written(document: Any) -> Any:
    return read_json(write_json(document))


def _differences(batch: str, entered: Entered, stored: list[Any]) -> Iterator[str]:
    """Name members of a publication that are not as the pure function makes them of the entries."""
    version, rules, _, document = stored[0]
    said = {name: rule for name, rule in read_json(rules).items() if name not in _OF_BATCH}
    yield from _differing("rules", said, {name: entered.rules().get(name) for name in said})
    made = entered.cards(batch, version, read_json(document)["published_at"])
    yield from _differing("cards", {student: read_json(said) for _, _, student, said in stored}, made)


def _changed(loaded: Entered, now: Entered, students: set[str]) -> Iterator[str]:
    """Name locked values that have changed between loading and now, as the publication commits."""
    yield from _differing("rules until it commits", loaded.rules(), now.rules())
    said, said_now = ({pupil: of.record.comments.get(pupil) for pupil in students} for of in (loaded, now))
    yield from _differing("comments until it commits", said, said_now)


def _differing(where: str, stored: Any, entered: Any) -> Iterator[str]:
    """Name the members that differ."""
    if isinstance(stored, dict) and isinstance(entered, dict):
        for name in stored.keys() | entered.keys():
            yield from _differing(f"{where}.{name}", stored.get(name), entered.get(name))
    elif isinstance(stored, list) and isinstance(entered, list) and len(stored) == len(entered):
        for place, pair in enumerate(zip(stored, entered, strict=True)):
            yield from _differing(f"{where}[{place}]", *pair)
    elif stored != entered:
        yield f"{where}: {stored} is stored, and {entered} was entered"


class Storm:
    """Two arms, their papers of two categories, and the acts of the clients."""

    def __init__(self, make: Factory) -> None:
        arms = Arms(make, students=5, subjects=2)
        self.api = api = make.api
        arms.mark()
        self.first, self.second = arms.first, arms.second
        self.ids = [student for student, _ in arms.everyone]
        elective = make.cohort_subject(arms.cohort, elective=True)
        self.papers = {paper["id"]: (subject, 100) for (_, subject), paper in arms.papers.items()}
        for subject, category, points in ((arms.subjects[0], "CA1", 40), (elective, "EXAM", 60)):
            paper = make.assessment(subject, arms.terms[TERM], category=category, total_points=points)
            self.papers[paper["id"]] = subject["id"], points
        self.elective = elective["id"]
        self.taught = [*(subject["id"] for subject in arms.subjects), self.elective]
        api.ok(api.patch(f"/cohort-subjects/{self.elective}/students", self.ids[:6]))
        calendar = {"start_date": None, "end_date": None, "times_opened": 120, "next_term_begins": None}
        api.ok(api.put(f"/terms/{arms.terms[TERM]['id']}/calendar", {**calendar, "notice": "Notice"}))
        api.ok(api.patch("/letterhead", {"name": "School"}))
        weights = [
            {"level": None, "category": category, "weight": weight}
            for category, weight in (("CA1", 30), ("EXAM", 70))
        ]
        api.ok(api.patch("/result-settings", {"weights": weights}))
        self.band = api.ok(api.get("/grade-configs"))[0]["id"]
        self.seen: Counter[tuple[str, int]] = Counter()
        self._acts = {
            self.publish: 8, self.correct: 6, self.score: 2, self.hand_in: 2, self.take_back: 1, self.rehearse: 1,
            self.go: 4, self.withdraw: 1, self.come_back: 2, self.choose: 2, self.say: 3, self.set: 1,
            self.rename_band: 1, self.read: 1,
        }  # fmt: skip

    def blow(self, seed: int, until: float) -> None:
        """Send requests until a moment of the monotonic clock."""
        random, api = Random(seed), self.api.using()
        # One of the clients changes settings, above all.
        acts = {**self._acts, self.set: 60, self.rename_band: 30} if seed == 0 else self._acts
        while time.monotonic() < until:
            (act,) = random.choices([*acts], [*acts.values()])
            for answer in act(api, random):
                request = answer.request
                operation = f"{request.method} {_ID.sub('{id}', request.full_path.partition('=')[0])}"
                self.seen[operation, answer.status_code] += 1
                assert answer.status_code < 500, (operation, answer.get_data(as_text=True))

    def _batches(self, random: Random) -> list[str]:
        return random.choice(
            ([self.first], [self.second], [self.first, self.second], [self.second, self.first])
        )

    def hand_in(self, api: ApiClient, random: Random) -> Iterator[Any]:
        subject, blanks = random.choice(self.taught), random.choice(("REFUSE", "ABSENT", "EXCUSED"))
        batch = random.choice(({}, {"batch": random.choice((self.first, self.second))}))
        yield api.post(f"/cohort-subjects/{subject}/submission", {"term": TERM, "blanks": blanks, **batch})

    def publish(self, api: ApiClient, random: Random) -> Iterator[Any]:
        for subject in self.taught:
            yield api.post(f"/cohort-subjects/{subject}/submission", {"term": TERM, "blanks": "ABSENT"})
        yield api.post("/publications", {"term": TERM, "batches": self._batches(random)})

    def rehearse(self, api: ApiClient, random: Random) -> Iterator[Any]:
        yield api.post("/publications?dry_run=true", {"term": TERM, "batches": self._batches(random)})

    def take_back(self, api: ApiClient, random: Random) -> Iterator[Any]:
        query = {"cohort": self.first, "term": TERM}
        for publication in api.ok(api.get("/publications", query_string=query))["data"]:
            if publication["state"] == "PUBLISHED":
                body = {"reason": "A paper was found", "withdraw": random.random() < 0.1}
                yield api.post(f"/publications/{publication['id']}/reopening", body)

    def correct(self, api: ApiClient, random: Random) -> Iterator[Any]:
        yield from self.take_back(api, random)
        paper = random.choice([*self.papers])
        body = {"term": TERM, "reason": "A paper was found"}
        yield api.post(f"/cohort-subjects/{self.papers[paper][0]}/reopening", body)
        yield from self.score(api, random, paper)

    def score(self, api: ApiClient, random: Random, paper: str | None = None) -> Iterator[Any]:
        paper = paper or random.choice([*self.papers])
        rows = [
            {"student": student, "score": random.randint(0, self.papers[paper][1])}
            if random.random() < 0.8
            else {"student": student, "absence": random.choice(("ABSENT", "EXCUSED"))}
            for student in random.sample(self.ids, random.choice((1, 2, 4)))
        ]
        yield api.put(f"/assessments/{paper}/scores", rows)

    def go(self, api: ApiClient, random: Random) -> Iterator[Any]:
        some = random.sample(self.ids, random.choice((1, 1, 2)))
        body = {"students": some, "batch": random.choice((self.first, self.second))}
        yield api.post(f"/cohorts/{self.first}/enrollment", body)

    def withdraw(self, api: ApiClient, random: Random) -> Iterator[Any]:
        yield api.patch(f"/students/{random.choice(self.ids)}", {"status": "WITHDRAWN"})

    def come_back(self, api: ApiClient, random: Random) -> Iterator[Any]:
        for student in random.sample(self.ids, 3):
            yield api.patch(f"/students/{student}", {"status": "ACTIVE"})

    def say(self, api: ApiClient, random: Random) -> Iterator[Any]:
        said = {"student": random.choice(self.ids), "form_teacher_comment": f"Said {random.random()}"}
        batch = random.choice((self.first, self.second))
        yield api.put("/comments", {"batch": batch, "term": TERM, "comments": [said]})

    def set(self, api: ApiClient, random: Random) -> Iterator[Any]:
        settings = {
            "weighting": random.choice(("POINTS", "CATEGORIES")),
            "percent_places": random.choice((0, 1, 2)),
            "rank_by": random.choice(("AVERAGE", "TOTAL")),
            "positions": random.choice(("BOTH", "BOTH", "COHORT", "BATCH")),
        }
        yield api.patch("/result-settings", dict(random.sample([*settings.items()], 2)))

    def rename_band(self, api: ApiClient, random: Random) -> Iterator[Any]:
        yield api.patch(f"/grade-configs/{self.band}", {"letter_grade": f"A{random.randint(1, 99)}"})

    def choose(self, api: ApiClient, random: Random) -> Iterator[Any]:
        path, student = f"/cohort-subjects/{self.elective}/students", random.choice(self.ids)
        if random.random() < 0.5:
            yield api.patch(path, [student])
        else:
            yield api.delete(f"{path}/{student}")

    def read(self, api: ApiClient, random: Random) -> Iterator[Any]:
        query = {"batch": random.choice((self.first, self.second)), "term": TERM}
        yield api.get("/broadsheets", query_string={**query, "live": random.choice(("true", "false"))})


def rename(tenancy: Any, storm: Storm, until: float) -> int:
    """Give names another generation, in one transaction each time; answers how many there were."""
    generation = 0
    while time.monotonic() < until:
        with tenancy.admin.begin() as connection:
            connection.exec_driver_sql(f"SET LOCAL search_path TO {schema_name(storm.api.school)}")
            for statement in _RENAMED:
                connection.exec_driver_sql(statement.format(generation))
        generation += 1
        time.sleep(0.02)
    return generation


def at_work(tenancy: Any, witness: Witness) -> int:
    """Count the backends of the storm that have not ended."""
    with tenancy.admin.connect() as connection:
        return int(connection.scalar(AT_WORK, {"backends": [*witness.backends]}))


@on_postgresql_alone
@pytest.mark.parametrize(
    ("seconds", "publications"), [(5, FEW), pytest.param(60, MANY, marks=pytest.mark.release)]
)
def test_cards_published_in_a_storm_are_made_of_entries_at_one_moment(
    app, tenancy, settings, committing, monkeypatch, seconds, publications
):
    # As in several processes, classes are computed at once.
    monkeypatch.setattr(shares.computing, "_turns", shares.Turns(CLIENTS, waiting=100, total=CLIENTS))
    storm, witness = Storm(committing), Witness(tenancy, committing.api.school)
    rename(tenancy, storm, time.monotonic() + 0.001)
    with tenancy.admin.connect() as connection:
        before = connection.scalar(DEADLOCKS)

    with (
        watched_messages(app, tenancy, settings, witness.look, connections=CLIENTS),
        ThreadPoolExecutor(CLIENTS + 1) as threads,
    ):
        until = time.monotonic() + seconds
        renaming = threads.submit(rename, tenancy, storm, until)
        list(threads.map(storm.blow, range(CLIENTS), [until] * CLIENTS))
        assert renaming.result() > seconds

    assert witness.wrong == []
    assert [wrong for locks in witness.locks.values() for wrong in locks.wrong] == []
    done = Counter({operation: number for (operation, status), number in storm.seen.items() if status == 200})
    assert witness.publications >= done["POST /publications?"] >= publications, storm.seen
    if publications == MANY:
        assert {operation for operation, _ in storm.seen if not done[operation]} == set(), storm.seen
    # A backend tells its counts when it ends, at the latest.
    while at_work(tenancy, witness):
        time.sleep(PAUSE)
    with tenancy.admin.connect() as connection:
        assert connection.scalar(DEADLOCKS) == before
