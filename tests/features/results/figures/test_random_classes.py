"""Classes made at random: the service's figures always equal an exact second computing."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest

from school_service.core.database import db
from school_service.web.rendering import render_list
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.results.figures import live
from tests.features.results.figures.classes import RandomClass, Store
from tests.features.results.figures.oracle import TERMS, term_results

MOST_STUDENTS = 45
# The least cases of each kind in results of 250 classes: a rule that no class comes near is not tested.
SEEN_AT_LEAST = {
    "COMPLETE": 1000, "INCOMPLETE": 100, "TOO_FEW": 50, "NONE": 20, "tied": 100, "brought in": 30,
    "earlier terms": 300, "dropped": 10, "CATEGORIES": 50, "two batches": 100, "no grade": 30,
    "not ranked in session": 30,
}  # fmt: skip


class _Undone(Exception):
    """Ends a class: nothing of it stays."""


# Of how many classes how much of that is seen at least.
@pytest.mark.parametrize(
    ("classes", "part"),
    [pytest.param(50, 10, id="a few"), pytest.param(250, 1, id="many", marks=pytest.mark.release)],
)
def test_the_figures_equal_an_exact_second_computing(api, make, classes, part):
    people = sorted(make.student()["id"] for _ in range(MOST_STUDENTS))
    seen: Counter[str] = Counter()
    for number in range(classes):
        with suppress(_Undone), in_transaction(SchoolBinding(api.school)):
            _compare(RandomClass(number, people), Store(db.session.connection()), seen)
            raise _Undone
    assert {what: seen[what] for what, least in SEEN_AT_LEAST.items() if seen[what] < least // part} == {}


def _compare(drawn: RandomClass, store: Store, seen: Counter[str]) -> None:
    random = drawn.random
    # The tables are full of rows of the classes before, which were undone: they are not to be read each time.
    store.execute("SET LOCAL enable_seqscan TO off")
    store.class_(drawn)
    seen[drawn.sample.rules.weighting] += 1
    seen["two batches"] += len(drawn.batches) - 1
    published: dict[str, dict[str, Any]] = {}
    until = random.choice((1, 1, 1, 2, 2, 3))
    for term in TERMS[random.choice((0, 0, 0, 1)) : until]:
        store.papers(drawn, *drawn.draw(term))
        answers: dict[str, dict[str, Any]] = {}
        for batch in drawn.batches:
            answers[batch] = _read(batch, drawn.terms[term] if random.random() < 0.5 else term)
        shown = {student: _figures(row) for of_batch in answers.values() for student, row in of_batch.items()}

        expected = term_results(drawn.sample, term, published)

        assert shown.keys() == expected.keys(), f"class {drawn.number}, {term}"
        for student, result in expected.items():
            differences = [*_differences(shown[student], _as_text(result))]
            assert differences == [], f"class {drawn.number}, {term}, student {student}"
            _count(result, seen)
        for batch, cards in answers.items():
            state = random.choice(("PUBLISHED", "PUBLISHED", "REOPENED", "WITHDRAWN", "SUPERSEDED"))
            store.publication(
                batch=batch, cohort=drawn.cohort, session=drawn.session, term=drawn.terms[term], state=state,
                cards={student: _card(result) for student, result in cards.items()},
            )  # fmt: skip
            if state in {"PUBLISHED", "REOPENED"}:
                _publish(published, drawn, term, {student: expected[student] for student in cards})
        dropped = drawn.drop()
        store.moves(drawn.move(), dropped)
        seen["dropped"] += len(dropped)


def _read(batch: str, term: str) -> dict[str, Any]:
    body = render_list(live.term_results(UUID(batch), term)).body
    listed = json.loads(
        body if isinstance(body, bytes) else b"".join(body), parse_float=_marked, parse_int=_marked
    )
    return {result["student"]["id"]: result for result in listed}


def _marked(number: str) -> str:
    """A number as it is written, which JSON would read as another: 76.50 as 76.5."""
    return f"#{number}#"


def _card(result: dict[str, Any]) -> str:
    """Write a result as it was answered."""
    return re.sub(r'"#([^"]*)#"', r"\1", json.dumps(result))


def _figures(result: dict[str, Any]) -> Any:
    """The figures of an answer, in the form of the second computing."""
    cumulative = result["cumulative"]
    members = ("status", "total", "obtainable", "average", "grade", "remark", "passed", "failed")
    figures = ("batch_figures", "cohort_figures")
    of_subject = (
        "status",
        "score",
        "points",
        "marks",
        "marks_sum",
        "weights_present",
        "percent",
        "grade",
        "remark",
        "batch",
        "cohort",
    )
    return _as_text(
        {
            **{name: result[name] for name in (*members, *figures)},
            "subjects": {
                row["subject"]["id"]: {name: row[name] for name in of_subject} for row in result["subjects"]
            },
            "cumulative": {
                **{name: cumulative[name] for name in ("terms", "average", "grade", "remark", *figures)},
                "subjects": {
                    subject["base"]: {name: subject[name] for name in ("terms", "percent", "grade")}
                    for subject in cumulative["subjects"]
                },
            },
        }
    )


def _as_text(value: Any) -> Any:
    """Numbers as they are written: 76.5 and 76.50 are not the same."""
    if isinstance(value, dict):
        return {key: _as_text(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_as_text(element) for element in value]
    if isinstance(value, str):
        return value.strip("#")
    return value if value is None or isinstance(value, bool) else str(value)


def _differences(shown: Any, expected: Any, *path: str) -> Iterator[str]:
    """Name the figures that differ, and how."""
    if isinstance(shown, dict) and isinstance(expected, dict) and shown.keys() == expected.keys():
        for key in shown:
            yield from _differences(shown[key], expected[key], *path, key)
    elif shown != expected:
        yield f"{'.'.join(path)}: {shown} for {expected}"


def _publish(published: dict[str, Any], drawn: RandomClass, term: str, results: dict[str, Any]) -> None:
    for student, result in results.items():
        published.setdefault(student, {})[term] = {
            drawn.sample.base_of[subject]: figures["percent"]
            for subject, figures in result["subjects"].items()
            if figures["percent"] is not None
        }


def _count(result: dict[str, Any], seen: Counter[str]) -> None:
    cumulative = result["cumulative"]
    seen[result["status"]] += 1
    seen["tied"] += result["batch_figures"]["tied"]
    seen["earlier terms"] += cumulative["terms"] > 1
    seen["no grade"] += result["average"] is not None and result["grade"] is None
    seen["not ranked in session"] += (
        result["cohort_figures"]["position"] is not None and cumulative["cohort_figures"]["position"] is None
    )
    in_terms = sum(
        percent is not None for row in cumulative["subjects"].values() for percent in row["terms"].values()
    )
    seen["brought in"] += cumulative["terms"] <= 1 and in_terms > len(result["subjects"])
