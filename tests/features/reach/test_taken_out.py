"""Reach is taken out of each read model, lock and statement that narrows by it, in turn: each time an answer differs.

The requests are the matrix's, for records out of the caller's reach. They are sent once by the service as it is, and
the names that narrow each of them are noted; then, with each name taken out, its requests are sent again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from io import BytesIO
from pkgutil import walk_packages
from time import perf_counter
from typing import Any

import pytest
from sqlalchemy import true

import school_service.features
from school_service.core import narrowing
from school_service.core.narrowing import judged_before
from school_service.core.reach import SCOPES, Reach
from school_service.core.read_models import QueryTemplate, ReadModel
from school_service.features.reach.scopes import _EVERYBODYS
from school_service.features.results.computing.class_term.loaded import Loaded
from tests.client import ApiClient
from tests.factories import Factory
from tests.features.reach.conftest import OF_TEACHERS, Own
from tests.features.reach.test_matrix import ARM, CASES, Case, Place, answer, make_places, with_publications

Request = Callable[[], tuple[int, str]]

SHOWN_TO = f"{Loaded.__module__}.Loaded.shown_to"
"""It leaves students out of reach out of a class, once this is computed."""


@dataclass
class Taken:
    """Notes the names that narrow a request, and leaves out the `taken`: a read model, a table's scope, a function."""

    taken: str | None = None
    noted: set[str] = field(default_factory=set)

    def note(self, name: str) -> bool:
        """Note a name that narrows; answers whether it is taken out."""
        self.noted.add(name)
        return name == self.taken


@pytest.fixture
def notes(monkeypatch) -> Taken:
    notes = Taken()
    of_template = QueryTemplate.within

    def of_read_model(self: QueryTemplate, reach: Reach) -> QueryTemplate:
        # The template itself is of the text for the whole school.
        of = self.narrow
        return self if of is not None and notes.note(_name(of.func.__self__)) else of_template(self, reach)

    def of_scope(name: str, scope: Any) -> Any:
        return lambda reach, row: true() if notes.note(name) else scope(reach, row)

    def caller_has_own() -> bool:
        return has_own() and not notes.note(_caller())

    def within(query: Any, scope: Any, *columns: Any) -> Any:
        taken_out = has_own() and notes.note(_caller())
        return judged_before(query) if taken_out else of_statement(query, scope, *columns)

    has_own, of_statement = narrowing.caller_has_own, narrowing.within
    asking = {"within": within, "caller_has_own": caller_has_own}

    shown_to = Loaded.shown_to

    def of_class(self: Loaded, reach: Reach | None) -> Loaded:
        return shown_to(self, None if reach is not None and notes.note(SHOWN_TO) else reach)

    monkeypatch.setattr(QueryTemplate, "within", of_read_model)
    monkeypatch.setattr(Loaded, "shown_to", of_class)
    for name, scope in SCOPES.items():
        monkeypatch.setitem(SCOPES, name, of_scope(name, scope))
    for module in _modules():
        for name, hooked in asking.items():
            if getattr(module, name, None) is getattr(narrowing, name):
                monkeypatch.setattr(module, name, hooked)
    return notes


def _caller() -> str:
    """Name the function that calls the one which calls this."""
    frame = sys._getframe(2)
    return f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}"


def _modules() -> Iterator[Any]:
    for module in walk_packages(school_service.features.__path__, "school_service.features."):
        yield import_module(module.name)


def _name(model: ReadModel[Any]) -> str:
    return f"{model.query.__module__}.{model.query.__qualname__}"


def _more_cases(make: Factory, places: dict[str, Place]) -> list[tuple[str, Case]]:
    """Requests by further parameters, which read by a text of their own."""
    sessions = {
        place.cohort: make.api.ok(make.api.get(f"/cohorts/{place.cohort}"))["session"]
        for place in {**places, "unknown": places["own"]}.values()
    }

    def of_term(path: str, more: str = "") -> Callable[[Place], str]:
        return lambda place: f"{path.format(place)}term={place.term}{more}"

    def of_session(path: str) -> Callable[[Place], str]:
        return lambda place: f"{path}?batch={place.batch}&session={sessions[place.cohort]}"

    broadsheet = "/broadsheets{}?batch={{0.batch}}&"
    return [
        ("POST /assessments/{id}/scoresheet", Case(
            "T", lambda place: f"/assessments/{place.assessment}/scoresheet", others=("session",),
            files=lambda _: {"scoresheet": (BytesIO(b"no sheet"), "scores.xlsx")},
        )),
        ("GET /assessments/{id}/download-sheet", Case(
            "TF", lambda place: f"/assessments/{place.assessment}/download-sheet?absences=true", others=("session",),
        )),
        ("GET /broadsheets/download", Case("F", of_term(broadsheet.format("/download"), "&live=true"))),
        ("GET /broadsheets", Case("F", of_session("/broadsheets"), published=True)),
        ("GET /broadsheets/download", Case("F", of_session("/broadsheets/download"), published=True)),
        ("GET /report-cards", Case("F", of_term("/report-cards?batch={0.batch}&"), published=True)),
        *(
            ("POST /gradebooks", Case(
                "T", lambda _: "/gradebooks", lambda place: {
                    "assessment": place.assessment, "score": 1, "student": place.newcomer, "batch": place.batch,
                }, others=(ARM,), published=published,
            ))
            for published in (False, True)
        ),
        *(
            (f"GET /students/{{id}}/{what}", Case(
                "FSG", of_term(f"/students/{{0.student}}/{what}?", "&version=1"), apart="SG", published=True,
            ))
            for what in ("results", "report-card")
        ),
    ]  # fmt: skip


def _corrected(make: Factory, places: dict[str, Place]) -> dict[str, Place]:
    """Publish the results of each place, and a second version in which the student has another score."""
    api, reason = make.api, {"reason": "A mistake"}
    places = with_publications(make, places)
    for place in places.values():
        api.ok(api.post(f"/publications/{place.publication}/reopening", reason))
    for place in {each.cohort: each for each in places.values()}.values():
        api.ok(api.post(f"/cohort-subjects/{place.subject}/reopening", {"term": place.term, **reason}))
    for place in places.values():
        api.ok(api.patch(f"/gradebooks/{place.entry}", {"score": 2}))
    return with_publications(make, places)


def _requests(
    clients: dict[str, ApiClient], places: dict[str, Place], cases: list[tuple[str, Case]]
) -> Iterator[tuple[str, Request]]:
    """Make the requests out of reach: of other places, and of the own one for callers who reach nothing there.

    Each comes with its operation.
    """

    def sending(client: ApiClient, operation: str, case: Case, place: Place) -> Request:
        return lambda: answer(client, operation, case, place)

    for operation, case in cases:
        for relation, client in clients.items():
            reaches = relation in (case.relations if case.by is None else case.by)
            here = case.listed or case.every_arm or not (reaches or relation in case.apart)
            elsewhere = () if case.listed or not reaches else case.others
            for name in ("own",) * here + elsewhere:
                yield operation, sending(client, operation, case, places[name])


FORWARDED = {
    "school_service.features.people.contacts.service.contacts",
    "school_service.features.people.employees.reads.form_teachers",
    "school_service.features.scores.assessments.reads.assessments",
}
"""Read models that others narrow by, and that are never sent themselves."""
OF_CLASSES = {
    "school_service.features.results.figures.reads.subject_in_term",
    "school_service.features.results.report_cards.reads.drafted_of_batch",
    "school_service.features.results.report_cards.reads.drafted_of_student",
    "school_service.features.results.submissions.reads.classes",
}
"""Read models that tell of each row whether it is in reach, or which classes have one: else no row is shown."""
ITSELF = {"school_service.features.me.reads.me"}
"""Read models of the caller by any text: `/me` tells the caller's relations, which test_me has."""
ELSEWHERE = {"school_service.features.scores.assessments.reads.names_of_submissions"}
"""The names of submitted arms, tested by test_scores: in the matrix each arm is submitted, and none is named."""


def test_each_name_that_narrows_is_missed_when_taken_out(make: Factory, own: Own, notes: Taken):
    places = make_places(make)
    here = places["own"]
    clients = {
        "T": own.subject_teacher({"id": here.subject}, here.batch),
        "F": own.form_teacher(here.batch),
        "S": own.student(here.student, *OF_TEACHERS),
        "G": own.guardian(here.guardian, *OF_TEACHERS),
    }
    cases = [(operation, case) for operation, each in CASES.items() for case in each]
    cases += _more_cases(make, places)
    narrows: set[str] = set()
    missed: set[str] = set()
    for published in (False, True):
        if published:
            places = _corrected(make, places)
        now = [(operation, case) for operation, case in cases if case.published == published]
        said: dict[Request, tuple[int, str]] = {}
        cost: dict[Request, tuple[bool, float]] = {}  # deletions come last: others need the record
        requests: dict[str, list[Request]] = {}
        for operation, request in _requests(clients, places, now):
            notes.noted.clear()
            begun = perf_counter()
            said[request] = request()
            cost[request] = operation.startswith("DELETE "), perf_counter() - begun
            for name in notes.noted:
                requests.setdefault(name, []).append(request)
        narrows |= requests.keys()
        for notes.taken in sorted(requests.keys() - missed):
            cheapest_first = sorted(requests[notes.taken], key=cost.__getitem__)
            if any(request() != said[request] for request in cheapest_first):
                missed.add(notes.taken)
        notes.taken = None

    assert narrows - missed == OF_CLASSES
    assert SHOWN_TO in missed
    declared = {
        _name(member)
        for module in _modules()
        for member in vars(module).values()
        if isinstance(member, ReadModel) and "reach" in signature(member.query).parameters
    }
    assert declared - narrows == FORWARDED | ITSELF | ELSEWHERE
    assert SCOPES.keys() - narrows == {*_EVERYBODYS, "employees"}
