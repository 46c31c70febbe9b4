"""Random classes under random rules against a second computing, and a session of a thousand students."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from hashlib import md5
from random import Random
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest

from school_service.core.database import db
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.connections.engines import execute_script
from tests.features.results.promotions.ends import End
from tests.features.results.promotions.test_rules import says

TERMS = ("FIRST", "SECOND", "THIRD")
PASS_MARK = Decimal("45.50")

# Students of batches, and the cards that are given: each a line of JSON that PostgreSQL takes apart.
STUDENTS = """
INSERT INTO users (id, username, username_key, first_name, last_name, gender, session_number, created_at)
SELECT md5('u' || n)::uuid, 'many' || n, 'many' || n, 'Adaeze', 'Okafor', 'FEMALE', 0, now()
FROM generate_series(1, {count}) n;
INSERT INTO students (id, number, user_id, admission_number, status, created_at)
SELECT md5('s' || n)::uuid, 1000000 + n, md5('u' || n)::uuid, 'MANY/' || n, 'ACTIVE', now()
FROM generate_series(1, {count}) n;
INSERT INTO enrollments (id, student_id, batch_id, cohort_id, session_id, started_at)
SELECT md5('e' || n)::uuid, md5('s' || n)::uuid, CASE n % 2 WHEN 0 THEN '{first}'::uuid ELSE '{second}' END,
    '{cohort}', '{session}', now()
FROM generate_series(1, {count}) n;
"""
PUBLICATIONS = """
INSERT INTO publications (id, batch_id, cohort_id, session_id, term_id, version, state, rules,
                          published_at, published_by, published_by_name)
SELECT (p->>'id')::uuid, (p->>'batch')::uuid, '{cohort}', '{session}', (p->>'term')::uuid, 1, 'PUBLISHED', '{{}}',
       now(), 'x', 'x'
FROM jsonb_array_elements('{publications}') p;
INSERT INTO report_cards (id, publication_id, student_id, term_id, code, in_force, changed, class_figures_changed,
                          card)
SELECT gen_random_uuid(), p.id, md5('s' || (c->>'number'))::uuid, p.term_id, gen_random_uuid(), true, false, false,
       c->'card'
FROM jsonb_array_elements('{cards}') c JOIN publications p ON p.id = (c->>'publication')::uuid;
"""


class Many:
    """A session whose students and cards are stored as they are, without a score: with any figures of cards."""

    def __init__(self, make: Any, count: int, random: Random) -> None:
        self.end, self.random, self.count = End(make, students=1, subjects=0), random, count
        self.api = make.api
        removed = {"student_ids": self.end.everybody}
        self.api.ok(self.api.patch(f"/cohorts/{self.end.cohort['id']}/remove_students", removed))
        self.subjects = {make.subject()["id"]: None for _ in range(4)}
        session = {"id": self.end.session}
        self.terms = [make.term(session, term=term)["id"] for term in TERMS]
        self.results: dict[int, Any] = {}
        self.store()

    def store(self) -> None:
        end = self.end
        places = {
            "session": end.session,
            "cohort": end.cohort["id"],
            "first": end.first,
            "second": end.second,
        }
        publications = [
            {"id": str(uuid4()), "batch": batch, "term": term}
            for batch in (end.first, end.second)
            for term in self.terms
        ]
        cards = [card for number in range(1, self.count + 1) for card in self.cards_of(number, publications)]
        published = PUBLICATIONS.format(
            publications=orjson.dumps(publications).decode(), cards=orjson.dumps(cards).decode(), **places
        )
        with self.api.app.app_context(), in_transaction(SchoolBinding(UUID(str(self.api.school)))):
            connection = db.session.connection()
            execute_script(connection, STUDENTS.format(count=self.count, **places))
            execute_script(connection, published)

    def cards_of(self, number: int, publications: list[dict[str, str]]) -> list[dict[str, Any]]:
        """Make the cards of a student: of some terms, in whichever batch they were then; the last one counts."""
        random, cards = self.random, []
        for place in sorted(random.sample(range(3), random.choice([0, 1, 2, 3, 3]))):
            publication = random.choice(publications[place::3])
            percents = {
                base: self.figure() for base in random.sample(list(self.subjects), random.randint(1, 4))
            }
            taken = random.sample(list(percents), random.randint(1, len(percents)))
            average = random.choice([None, *[self.mean([percents[base] for base in taken])] * 9])
            terms = len(cards) + 1
            card = {
                "pass_mark": float(PASS_MARK),
                "subjects": [{"subject": {"base": base}} for base in taken],
                "cumulative": {
                    "average": None if average is None else float(average),
                    "terms": terms,
                    "subjects": [{"base": base, "percent": float(mark)} for base, mark in percents.items()],
                },
            }
            cards.append({"publication": publication["id"], "number": number, "card": card})
            counting = {base: percents[base] for base in taken}
            self.results[number] = None if average is None else (average, terms, PASS_MARK, counting)
        return cards

    def figure(self) -> Decimal:
        """A percent with two places, often one that a rule names."""
        named = [Decimal(figure) for figure in ("40", "45", "45.50", "50", "55")]
        return self.random.choice([*named, Decimal(self.random.randint(2000, 9000)) / 100])

    def mean(self, figures: list[Decimal]) -> Decimal:
        return (sum(figures, Decimal()) / len(figures)).quantize(Decimal("0.01"), ROUND_HALF_UP)


@pytest.mark.parametrize("seed", range(3))
def test_must_hold_12_a_preview_equals_a_second_computing_and_the_commit(make, seed):
    random = Random(seed)
    many = Many(make, 120, random)
    end, api = many.end, make.api
    required = random.sample(list(many.subjects), min(seed, 1))
    figures = {"minimum": Fraction(50), "percent": Fraction(45), "trial": [None, Fraction("45.5")][seed % 2]}
    limits = {"failed": random.choice([None, 1, 2]), "terms": random.randint(1, 2)}
    end.rules(
        {
            "minimum_average": 50,
            "trial_average": figures["trial"] and float(figures["trial"]),
            "required_subjects": required,
            "required_percent": 45,
            "maximum_failed": limits["failed"],
            "minimum_terms": limits["terms"],
        }
    )
    moves = {move["batch"]: move for move in (end.move(end.first), end.move(end.second, promote_to=None))}
    withdrawn = {student_id(number) for number in random.sample(range(1, many.count + 1), 4)}
    for student in withdrawn:
        api.ok(api.patch(f"/students/{student}", {"status": "WITHDRAWN"}))

    def preview():
        seen = end.rehearsal(*moves.values())
        assert len(seen["decisions"]) == many.count
        overrides = {override["student"]: override for override in end.overrides}
        for decision in seen["decisions"]:
            student, move = decision["student"], moves[decision["from_batch"]]
            result = exactly(many.results.get(int(student["admission_number"].split("/")[1])))
            last = move["promote_to"] is None
            by_rule = says(**figures, **limits, required=required, result=result, last=last)
            outcome, batch = becomes(by_rule, student["id"] in withdrawn, overrides.get(student["id"]), move)
            average = result and float(result[0])
            assert (decision["by_rule"], decision["average"]) == (by_rule, average), decision
            assert (decision["outcome"], decision["to_batch"]) == (outcome, batch), decision
        return seen

    decide_some(end, preview()["decisions"], random)
    seen = preview()
    outcomes = {decision["outcome"] for decision in seen["decisions"]}
    assert outcomes >= {"PROMOTED", "REPEATED", "GRADUATED", "LEFT_OUT"}
    assert figures["trial"] is None or "PROMOTED_ON_TRIAL" in outcomes
    there, elsewhere, *_ = [
        decision["student"]
        for decision in seen["decisions"]
        if decision["to_batch"] == end.above["id"] and decision["reason"] is None
    ]
    make.enrolled(end.again, {"id": elsewhere["id"]})
    refused = end.rehearse(*moves.values())
    assert refused.status_code == 409
    assert refused.get_json()["errors"]["json"] == {"students": [elsewhere["admission_number"]]}
    api.ok(api.patch(f"/cohorts/{end.again['id']}/remove_students", {"student_ids": [elsewhere["id"]]}))
    make.enrolled(end.above, {"id": there["id"]})
    before = end.stored()
    seen = preview()
    promotion = api.ok(end.commit(*moves.values(), fingerprint=seen["fingerprint"]))
    of_commit = {name: promotion[name] for name in ("id", "committed_at", "committed_by_name")}
    assert promotion == {**seen, **of_commit}
    for cohort in (end.above, end.again):
        sent = {row["student"]["id"] for row in seen["decisions"] if row["to_batch"] == cohort["id"]}
        assert end.students_of(cohort) == sent
    graduated = {row["student"]["id"] for row in seen["decisions"] if row["outcome"] == "GRADUATED"}
    listed = api.ok(api.get("/students?status=GRADUATED&pageSize=100"))["data"]
    assert {student["id"] for student in listed} == graduated
    api.ok(end.undo(promotion))
    assert end.stored() == before


def student_id(number: int) -> str:
    """The id of a student of `Many`."""
    return str(UUID(md5(f"s{number}".encode(), usedforsecurity=False).hexdigest()))


def exactly(result: Any) -> Any:
    """A result of `Many` in fractions."""
    if result is None:
        return None
    average, terms, pass_mark, percents = result
    exact = {subject: Fraction(percent) for subject, percent in percents.items()}
    return Fraction(average), terms, Fraction(pass_mark), exact


def decide_some(end: End, decisions: list[dict[str, Any]], random: Random) -> None:
    """Decide all students who need a decision, and some others, in every way that there is."""
    above = end.above["id"]
    # Batches and students of equal names come in the order of their ids, which each run has others of.
    for decision in sorted(decisions, key=lambda row: row["student"]["admission_number"]):
        student, by_rule = decision["student"]["id"], decision["by_rule"]
        last = decision["from_batch"] == end.second
        if decision["outcome"] is None:
            end.decide(student, random.choice(["LEFT_OUT", "REPEATED"]))
        elif decision["reason"] is None and random.random() < 0.2:
            outcome = random.choice(["PROMOTED", "PROMOTED_ON_TRIAL", "REPEATED", "GRADUATED", None])
            if outcome is None and by_rule != "GRADUATED":
                end.decide(student, batch=above)
            elif outcome in ("GRADUATED", "REPEATED") or (outcome and not last):
                end.decide(student, outcome)
            elif outcome:
                end.decide(student, outcome, batch=above)


def becomes(
    by_rule: str, withdrawn: bool, override: dict[str, Any] | None, move: dict[str, Any]
) -> tuple[str | None, str | None]:
    """The outcome of a student in other words, and the batch."""
    if override is None and withdrawn:
        return "LEFT_OUT", None
    outcome = (override or {}).get("outcome") or (None if by_rule == "NO_RESULT" else by_rule)
    if outcome in (None, "GRADUATED", "LEFT_OUT"):
        return outcome, None
    by_move = {"REPEATED": move["repeat_in"]}.get(outcome, move["promote_to"])
    return outcome, (override or {}).get("batch") or by_move


def test_must_hold_11_a_thousand_students_are_promoted_in_few_statements(make, messages):
    many = Many(make, 1000, Random(1000))
    end, api = many.end, make.api
    moves = [end.move(end.first), end.move(end.second, promote_to=None)]
    for decision in end.rehearsal(*moves)["decisions"]:
        if decision["outcome"] is None:
            end.decide(decision["student"]["id"], "LEFT_OUT")
    fingerprint = end.rehearsal(*moves)["fingerprint"]

    with messages() as sent:
        promotion = api.ok(end.commit(*moves, fingerprint=fingerprint))

    assert len(promotion["decisions"]) == 1000
    assert statements(sent) <= 12 + 6 * len(moves)
    with messages() as sent:
        api.ok(end.undo(promotion))
    assert statements(sent) <= 12 + 6 * len(moves)


def statements(sent):
    """Count the statements of messages, the binding and the commit apart."""
    count = sum(message.count(";\n") + 1 for message in sent[1:-1])
    assert count > 5
    return count
