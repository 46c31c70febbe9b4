"""Promoting: dry runs, commits, and refusals."""

from __future__ import annotations

from copy import deepcopy
from uuid import uuid4

import pytest

from tests.factories import UNKNOWN_ID
from tests.features.results.promotions.ends import End, codes, of, outcomes
from tests.features.results.report_cards.papers import needs_poppler, text_of
from tests.features.results.submissions.classes import message
from tests.naming import name_with_number


@pytest.fixture(scope="module", autouse=True)
def published_end(prepared):
    return prepared(End.with_results)


@pytest.fixture
def end(make):
    return End(make)


@pytest.fixture
def published(rehearsed, published_end):
    return deepcopy(published_end)


def errors(answer):
    assert answer.status_code == 422, answer.get_json()
    return answer.get_json()["errors"]["json"]


def logged(api, entity, record):
    entries = api.ok(api.get("/audit", query_string={"entity": entity, "id": record}))["data"]
    return [(entry["action"], entry["old"], entry["new"]) for entry in entries]


# Dry runs and commits


def test_a_dry_run_shows_the_outcome_of_each_student(api, make, published):
    end = published
    end.rules({"minimum_average": 80, "trial_average": 76})
    first, second = end.students[end.second]

    seen = end.rehearsal()

    student = api.ok(api.get(f"/students/{first}"))
    session, following = (
        api.ok(api.get(f"/sessions/{identity}")) for identity in (end.session, end.next_session["id"])
    )
    assert seen == {
        "id": None,
        "session": {"id": session["id"], "name": session["name"]},
        "next_session": {"id": following["id"], "name": following["name"]},
        "fingerprint": seen["fingerprint"],
        "committed_at": None,
        "committed_by_name": None,
        "undone_at": None,
        "undone_by_name": None,
        "counts": {"PROMOTED": 3, "PROMOTED_ON_TRIAL": 0, "REPEATED": 1, "GRADUATED": 0, "LEFT_OUT": 0},
        "decisions": seen["decisions"],
    }
    assert outcomes(seen) == ["PROMOTED", "PROMOTED", "PROMOTED", "REPEATED"]
    assert of(seen, first) == {
        "student": {name: student[name] for name in ("id", "admission_number", "first_name", "last_name")},
        "from_batch": end.second,
        "average": 80,
        "terms": 1,
        "by_rule": "PROMOTED",
        "outcome": "PROMOTED",
        "reasons": [],
        "reason": None,
        "to_batch": end.above["id"],
        "amended": [],
    }
    repeats = of(seen, second)
    assert (repeats["average"], repeats["to_batch"]) == (75, end.again["id"])
    assert repeats["reasons"] == [{"code": "AVERAGE", "message": "The average is 75.00, below 80."}]
    end.rules({"minimum_average": 80, "trial_average": 75})
    assert of(end.rehearsal(), second)["outcome"] == "PROMOTED_ON_TRIAL"
    assert end.students_of(end.above) == end.students_of(end.again) == set()
    assert api.ok(api.get("/promotions"))["total"] == 0
    assert api.ok(api.get("/audit", query_string={"entity": "promotion"}))["total"] == 0


def test_a_commit_does_as_its_dry_run(api, published):
    end = published
    end.rules({"minimum_average": 80})
    repeats = end.students[end.second][1]
    seen = end.rehearsal()

    promotion = api.ok(end.commit(fingerprint=seen["fingerprint"]))

    of_commit = {name: promotion[name] for name in ("id", "committed_at", "committed_by_name")}
    assert None not in of_commit.values()
    assert promotion == {**seen, **of_commit}
    assert api.ok(api.get(f"/promotions/{promotion['id']}")) == promotion
    listed = {name: value for name, value in promotion.items() if name != "decisions"}
    assert api.ok(api.get("/promotions", query_string={"session": end.session}))["data"] == [listed]
    assert end.students_of(end.again) == {repeats}
    assert end.students_of(end.above) == set(end.everybody) - {repeats}
    # The old enrollment stays open: results of the session have their roster.
    assert end.students_of(end.cohort) == set(end.everybody)
    taken = [row for row in end.stored()["subject_enrollments"] if end.compulsory["id"] in row]
    assert len(taken) == 3
    assert not [row for row in end.stored()["subject_enrollments"] if end.elective["id"] in row]


def test_a_promotion_is_in_the_audit_log_once_and_each_enrollment(api, published):
    end = published
    promotion = end.promoted()

    new = {
        "session": end.session,
        "next_session": end.next_session["id"],
        "batches": [end.first, end.second],
        "counts": promotion["counts"],
    }
    assert logged(api, "promotion", promotion["id"]) == [("create", None, new)]
    for student in end.everybody:
        there = {"cohort": end.above["id"], "batch": end.above["id"]}
        assert logged(api, "enrollment", student)[0] == ("create", None, there)


def test_decisions_come_by_batch_in_the_order_of_the_moves_and_then_by_name(published):
    end = published
    backwards = [end.move(end.second), end.move(end.first)]

    seen = end.rehearsal(*backwards)

    assert [row["from_batch"] for row in seen["decisions"]] == [end.second] * 2 + [end.first] * 2
    names = [(row["student"]["last_name"], row["student"]["first_name"]) for row in seen["decisions"]]
    assert names == sorted(names[:2]) + sorted(names[2:])
    promotion = end.promoted(*backwards)
    assert promotion["decisions"] == seen["decisions"]


def test_must_hold_6_a_repeated_commit_changes_nothing(api, published):
    end = published
    fingerprint = end.rehearsal()["fingerprint"]
    first = api.ok(end.commit(fingerprint=fingerprint))
    before = end.stored()
    logged_before = api.ok(api.get("/audit"))["total"]

    again = api.ok(end.commit(fingerprint=fingerprint))

    assert again == first
    assert end.stored() == before
    assert api.ok(api.get("/audit"))["total"] == logged_before
    assert api.ok(api.get("/promotions"))["total"] == 1


def test_the_session_may_be_named(api, published):
    end = published
    name = api.ok(api.get(f"/sessions/{end.session}"))["name"]

    assert end.rehearsal(session=name) == end.rehearsal()


# Nobody commits without having seen


def test_a_commit_needs_a_fingerprint(published):
    end = published

    answer = end.commit(fingerprint=None)
    without = end.api.post("/promotions", end.body())
    of_another = end.commit(fingerprint="0" * 64)

    assert list(errors(answer)) == list(errors(without)) == ["fingerprint"]
    assert of_another.status_code == 409
    assert end.students_of(end.above) == set()


def test_changes_since_the_dry_run_have_to_be_seen_first(api, make, published):
    end = published
    changes = {
        "rules": lambda: end.rules({"minimum_average": 10}),
        "an override": lambda: end.decide(end.everybody[0], "REPEATED"),
        "a student": lambda: (
            make.enrolled(end.cohort, batch=end.first)
            and end.decide(sorted(end.students_of(end.cohort) - set(end.everybody))[0], "LEFT_OUT")
        ),
    }
    for name, change in changes.items():
        seen = end.rehearsal()["fingerprint"]
        assert end.rehearsal()["fingerprint"] == seen

        change()

        assert end.commit(fingerprint=seen).status_code == 409, name
        assert end.students_of(end.above) == set(), name
    assert end.commit().status_code == 200


def correct(end):
    """Publish both arms again, with cards that say the same."""
    for publication in end.listed(cohort=end.cohort["id"]):
        end.api.ok(end.reopen(publication))
    end.api.ok(end.publish())


def test_rules_of_other_levels_and_names_do_not_matter(api, make, published):
    end = published
    make.classroom(level="Primary")
    seen = end.rehearsal()["fingerprint"]

    end.rules({"level": "Primary", "minimum_average": 99})
    api.ok(api.patch(f"/students/{end.everybody[0]}", {"first_name": "Zacchaeus"}))

    assert end.commit(fingerprint=seen).status_code == 200


# Rules


def test_without_rules_an_average_of_40_is_enough(end):
    end.mark(first=40, step=0.01)
    end.published()

    seen = end.rehearsal()

    assert outcomes(seen) == ["PROMOTED", "REPEATED", "REPEATED", "REPEATED"]
    assert of(seen, end.everybody[1])["reasons"][0]["message"] == "The average is 39.99, below 40."


def test_the_rule_of_the_level_goes_before_the_general_one(published):
    end = published
    end.rules({"minimum_average": 100}, {"level": "Junior Secondary", "minimum_average": 20})
    assert set(outcomes(end.rehearsal())) == {"PROMOTED"}

    end.rules({"minimum_average": 100})
    assert set(outcomes(end.rehearsal())) == {"REPEATED"}


def test_all_that_speaks_against_is_named_in_figures(api, make, published):
    end = published
    base = end.base(end.subjects[0])
    latin = make.subject(name="Latin")
    end.rules(
        {
            "minimum_average": 90.5,
            "required_subjects": [base, latin["id"]],
            "required_percent": 87.5,
            "maximum_failed": 0,
            "minimum_terms": 2,
        }
    )
    api.ok(api.patch("/result-settings", {"pass_mark": 88}))
    correct(end)

    decision = of(end.rehearsal(), end.everybody[1])

    assert sorted(codes(decision)) == ["AVERAGE", "FAILED", "SUBJECT", "SUBJECT", "TERMS"]
    said = {reason["message"] for reason in decision["reasons"]}
    assert said == {
        "The average is 85.00, below 90.5.",
        f"{end.subjects[0]['subject']} is 85.00, below 87.5.",
        "Latin was not taken, and is required.",
        "Failed 2 subjects, more than 0.",
        "There are results of 1 term, fewer than 2.",
    }


def test_the_session_counts_and_not_the_last_term_alone(end):
    end.mark("FIRST", first=30, step=0)
    end.published(term="FIRST")
    end.mark("SECOND", first=70, step=0)
    end.published(term="SECOND")
    end.rules({"minimum_average": 50, "minimum_terms": 2})

    decisions = end.rehearsal()["decisions"]

    assert {(row["average"], row["terms"], row["outcome"]) for row in decisions} == {(50, 2, "PROMOTED")}


def test_a_subject_dropped_earlier_is_neither_failed_nor_taken(api, make, end):
    dropped = make.cohort_subject(end.cohort, elective=True)
    api.ok(api.patch(f"/cohort-subjects/{dropped['id']}/students", end.everybody))
    end.subjects.append(dropped)
    end.mark("FIRST", first=60, step=0)
    end.published(term="FIRST")
    for student in end.everybody:
        api.ok(api.delete(f"/cohort-subjects/{dropped['id']}/students/{student}"))
    end.subjects.pop()
    end.mark("SECOND", first=60, step=0)
    end.published(term="SECOND")
    end.rules({"minimum_average": 50, "required_subjects": [end.base(dropped)]})

    decision = of(end.rehearsal(), end.everybody[0])

    assert [reason["message"] for reason in decision["reasons"]] == [
        f"{dropped['subject']} was not taken, and is required."
    ]


# Graduating


def test_a_student_promoted_from_the_last_class_graduates(api, published):
    end = published
    end.rules({"minimum_average": 80, "trial_average": 10})
    moves = [end.move(batch, promote_to=None) for batch in (end.first, end.second)]

    promotion = end.promoted(*moves)

    assert outcomes(promotion) == ["GRADUATED"] * 3 + ["REPEATED"]
    *graduated, repeats = end.everybody
    assert [decision["student"]["id"] for decision in promotion["decisions"]] == end.everybody
    listed = api.ok(api.get("/graduates"))
    session = api.ok(api.get(f"/sessions/{end.session}"))["name"]
    assert [row["graduation_class"] for row in listed] == [f"{end.cohort['classroom']} {session}"] * 3
    known = [api.ok(api.get(f"/students/{student}")) for student in graduated]
    assert [row["student"] for row in listed] == [student["number"] for student in known]
    assert {student["status"] for student in known} == {"GRADUATED"}
    assert end.students_of(end.cohort) == end.students_of(end.again) == {repeats}
    assert end.students_of(end.above) == set()
    rows = end.stored()["subject_enrollments"]
    assert not [row for row in rows for student in graduated if student in row]


def test_a_graduate_leaves_on_the_day_of_the_move(api, published):
    end = published
    end.rules({"minimum_average": 80})
    start = int(api.ok(api.get(f"/sessions/{end.session}"))["start_date"][:4])
    day = f"{start + 1}-07-17"
    moves = [end.move(batch, promote_to=None, left_on=day) for batch in (end.first, end.second)]
    before = end.stored()
    assert (
        end.rehearsal(*moves)["fingerprint"]
        != end.rehearsal(*({**move, "left_on": None} for move in moves))["fingerprint"]
    )

    made = end.promoted(*moves)

    *graduated, repeats = end.everybody
    assert end.promoted(*moves, fingerprint=made["fingerprint"])["id"] == made["id"]
    for student in graduated:
        assert api.ok(api.get(f"/students/{student}"))["left_on"] == day
        (enrollment,) = api.ok(api.get(f"/students/{student}/data"))["enrollments"]
        assert enrollment["ended_on"] == day
    assert api.ok(api.get(f"/students/{repeats}"))["left_on"] is None
    api.ok(end.undo(made))
    after = end.stored()
    assert (after["students"], after["enrollments"]) == (before["students"], before["enrollments"])


def test_a_day_of_leaving_is_of_a_class_that_graduates_and_not_before_anybody_came(api, published):
    end = published
    start = int(api.ok(api.get(f"/sessions/{end.session}"))["start_date"][:4])
    late = end.everybody[0]
    api.ok(api.patch(f"/students/{late}", {"admitted_on": f"{start + 1}-03-02"}))
    moves = [
        end.move(batch, promote_to=None, left_on=f"{start + 1}-03-01") for batch in (end.first, end.second)
    ]

    (refused,) = errors(end.rehearse(end.move(left_on=f"{start + 1}-07-17")))["moves"]
    assert refused.endswith(": the students go on to a class, and a last day is of graduates")
    assert errors(end.rehearse(*moves)) == {
        "moves": [
            f"{name_with_number(api, late)}: the last day is before the admission, or the first day in the class"
        ]
    }


def test_a_graduate_of_a_promotion_is_in_the_audit_log_as_of_a_graduation(api, published):
    end = published
    end.promoted(end.move(promote_to=None))

    (student, _) = end.students[end.first]
    entries = api.ok(api.get("/audit", query_string={"entity": "graduate"}))["data"]
    (entry,) = (entry for entry in entries if entry["new"]["student"] == student)
    assert entry["action"] == "create"
    assert set(entry["new"]) == {"number", "student", "graduation_class"}
    left = {"cohort": end.cohort["id"], "batch": end.first}
    assert logged(api, "enrollment", student)[0] == ("delete", left, None)


def test_letting_students_graduate_needs_that_permission_at_the_commit(make, published):
    end = published
    move = end.move(promote_to=None)
    end.api = make.caller("write:cohorts", "read:results")

    seen = end.rehearsal(move)
    answer = end.commit(move, fingerprint=seen["fingerprint"])

    assert (answer.status_code, message(answer)) == (
        403,
        "Letting students graduate needs the permission write:graduates.",
    )
    end.api = make.caller("write:cohorts", "write:graduates")
    assert end.commit(move, fingerprint=seen["fingerprint"]).status_code == 200


def test_a_promotion_without_graduates_needs_no_such_permission(make, published):
    end = published
    end.api = make.caller("write:cohorts")

    assert end.commit().status_code == 200


def test_averages_are_shown_to_readers_of_results_alone(api, make, published):
    """In a dry run and in the answer of the commit; the outcome of a student is shown to its deciders."""
    end = published
    end.rules({"minimum_average": 89, "maximum_failed": 0, "minimum_terms": 1})
    whole = end.rehearsal()
    end.api = make.caller("write:cohorts")

    seen = end.rehearsal()
    promotion = end.promoted()

    assert {**seen, "decisions": None} == {**whole, "decisions": None}
    assert promotion["decisions"] == seen["decisions"]
    assert any(decision["reasons"] for decision in seen["decisions"])
    for decision, before in zip(whole["decisions"], seen["decisions"], strict=True):
        words = [{"code": row["code"], "message": "The average is too low."} for row in decision["reasons"]]
        assert before == {**decision, "average": None, "reasons": words}
    again = end.commit(fingerprint=seen["fingerprint"]).get_json()
    assert again == promotion
    assert api.ok(api.get(f"/promotions/{promotion['id']}"))["decisions"] == whole["decisions"]


def test_where_all_graduate_there_is_no_next_session(published):
    end = published
    moves = [end.move(batch, promote_to=None, repeat_in=None) for batch in (end.first, end.second)]

    promotion = end.promoted(*moves)

    assert promotion["next_session"] is None
    assert promotion["counts"]["GRADUATED"] == 4


# Decisions of people


def test_a_decision_goes_before_the_rule_and_keeps_its_reason(make, published):
    end = published
    first, other, third, fourth = end.everybody
    arm = make.batch(end.above)["id"]
    end.decide(first, "REPEATED", reason="  Was ill\nfor long  ")
    end.decide(other, "PROMOTED", batch=arm)
    end.decide(third, "LEFT_OUT", reason="Moves to Jos")
    end.decide(fourth, batch=arm)

    promotion = end.promoted()

    decided = [
        (row["by_rule"], row["outcome"], row["reason"], row["to_batch"]) for row in promotion["decisions"]
    ]
    assert decided == [
        ("PROMOTED", "REPEATED", "Was ill\nfor long", end.again["id"]),
        ("PROMOTED", "PROMOTED", "As the staff decided", arm),
        ("PROMOTED", "LEFT_OUT", "Moves to Jos", None),
        ("PROMOTED", "PROMOTED", "As the staff decided", arm),
    ]
    assert end.students_of(end.above) == {other, fourth}
    assert end.students_of(end.again) == {first}


def test_a_student_without_result_needs_a_decision(make, published):
    end = published
    late = make.enrolled(end.cohort, batch=end.first)[0]
    number = end.admission_numbers([late])[0]

    seen = end.rehearsal()
    refused = end.commit(fingerprint=seen["fingerprint"])

    decision = of(seen, late)
    assert (decision["by_rule"], decision["outcome"], decision["average"], decision["terms"]) == (
        "NO_RESULT",
        None,
        None,
        None,
    )
    assert decision["reasons"] == [{"code": "NO_RESULT", "message": "There is no result of this session."}]
    assert number in errors(refused)["overrides"][0]
    assert end.students_of(end.above) == set()
    end.decide(late, "PROMOTED")
    assert of(end.promoted(), late)["outcome"] == "PROMOTED"


def test_a_batch_alone_decides_nothing_for_a_student_without_result(make, published):
    end = published
    late = make.enrolled(end.cohort, batch=end.first)[0]
    end.decide(late, batch=end.above["id"])

    assert (of(end.rehearsal(), late)["outcome"], of(end.rehearsal(), late)["to_batch"]) == (None, None)
    assert list(errors(end.commit())) == ["overrides"]


def test_a_repeater_of_a_move_without_repeat_in_needs_a_decision(published):
    end = published
    end.rules({"minimum_average": 80})
    repeats = end.everybody[-1]
    moves = [end.move(batch, repeat_in=None) for batch in (end.first, end.second)]

    seen = end.rehearsal(*moves)
    refused = end.commit(*moves)

    assert (of(seen, repeats)["outcome"], of(seen, repeats)["to_batch"]) == ("REPEATED", None)
    assert end.admission_numbers([repeats])[0] in errors(refused)["overrides"][0]
    end.decide(repeats, batch=end.again["id"])
    assert of(end.promoted(*moves), repeats)["to_batch"] == end.again["id"]


def test_a_student_not_active_is_left_out_and_can_be_nothing_else(api, published):
    end = published
    gone = end.everybody[0]
    api.ok(api.patch(f"/students/{gone}", {"status": "WITHDRAWN"}))

    seen = end.rehearsal()

    assert (of(seen, gone)["outcome"], of(seen, gone)["reason"]) == (
        "LEFT_OUT",
        "The student is WITHDRAWN.",
    )
    for outcome in ("PROMOTED", "PROMOTED_ON_TRIAL", "REPEATED", "GRADUATED", None):
        end.overrides.clear()
        batch = {} if outcome else {"batch": end.above["id"]}
        end.decide(gone, outcome, **batch)
        assert list(errors(end.rehearse())) == ["overrides"], outcome
    end.overrides.clear()
    end.decide(gone, "LEFT_OUT", reason="Left in May")
    promotion = end.promoted()
    assert of(promotion, gone)["reason"] == "Left in May"
    assert gone not in end.students_of(end.above)


def test_a_student_promoted_from_a_last_class_by_decision_needs_a_batch(published):
    end = published
    student = end.everybody[0]
    moves = [end.move(end.first, promote_to=None), end.move(end.second)]
    end.decide(student, "PROMOTED")
    assert list(errors(end.rehearse(*moves))) == ["overrides"]
    end.overrides.clear()
    end.decide(student, batch=end.above["id"])
    assert list(errors(end.rehearse(*moves))) == ["overrides"]
    end.overrides.clear()

    end.decide(student, "PROMOTED_ON_TRIAL", batch=end.above["id"])

    decision = of(end.promoted(*moves), student)
    assert (decision["by_rule"], decision["outcome"]) == ("GRADUATED", "PROMOTED_ON_TRIAL")
    assert student in end.students_of(end.above)


def test_overrides_that_are_none_are_refused(make, published):
    end = published
    student, outsider = end.everybody[0], make.student()["id"]
    for overrides in (
        [{"student": student, "reason": "x"}],
        [{"student": student, "outcome": "PROMOTED"}],
        [{"student": student, "outcome": "PROMOTED", "reason": " "}],
        [{"student": student, "outcome": "NO_RESULT", "reason": "x"}],
        [{"student": student, "outcome": "LEFT_OUT", "batch": end.above["id"], "reason": "x"}],
        [{"student": student, "outcome": "GRADUATED", "batch": end.above["id"], "reason": "x"}],
        [{"student": student, "outcome": "PROMOTED", "reason": "x", "to": "x"}],
        [{"student": student, "outcome": "PROMOTED", "reason": "x" * 2001}],
        [{"student": student, "batch": UNKNOWN_ID, "reason": "x"}],
        [{"student": student, "batch": end.second, "reason": "x"}],
        [{"student": outsider, "outcome": "LEFT_OUT", "reason": "x"}],
        [{"student": UNKNOWN_ID, "outcome": "LEFT_OUT", "reason": "x"}],
        [{"student": student, "outcome": outcome, "reason": "x"} for outcome in ("PROMOTED", "REPEATED")],
        {},
        "x",
        [None],
    ):
        assert list(errors(end.rehearse(overrides=overrides))) == ["overrides"], overrides


# Moves


def test_moves_that_are_none_are_refused(api, make, published):
    end = published
    earlier = make.cohort(session=make.session(start_date="1990-09-08", end_date="1991-07-24"))
    elsewhere = make.cohort(session=make.session())
    for moves in (
        [end.move(UNKNOWN_ID)],
        [end.move(promote_to=UNKNOWN_ID)],
        [end.move(repeat_in=UNKNOWN_ID)],
        [end.move(), end.move()],
        [end.move(elsewhere["id"])],
        [end.move(promote_to=end.second)],
        [end.move(repeat_in=end.first)],
        [end.move(promote_to=earlier["id"])],
        [end.move(promote_to=elsewhere["id"])],
        [{"batch": end.first}],
        [{"batch": None, "promote_to": None, "repeat_in": None}],
        [{**end.move(), "note": "x"}],
        [],
        {},
        [end.move()] * 101,
    ):
        assert list(errors(end.rehearse(moves=moves))) == ["moves"], moves
    for session in (UNKNOWN_ID, "1950/1951", "", 5, None):
        assert list(errors(end.rehearse(session=session))) == ["session"], session
    other = api.ok(api.get(f"/sessions/{end.next_session['id']}"))["id"]
    assert list(errors(end.rehearse(session=other))) == ["moves"]
    assert end.rehearse().status_code == 200


def test_a_batch_is_promoted_once_until_that_is_undone(api, published):
    end = published
    promotion = end.promoted(end.move(end.first))

    for answer in (end.rehearse(), end.rehearse(end.move(end.first))):
        assert answer.status_code == 409
        assert message(answer) == (
            f"Promoted already: {end.cohort['classroom']} A. Undo that promotion first."
        )
    assert end.commit(end.move(end.second)).status_code == 200
    api.ok(end.undo(promotion))
    assert end.commit(end.move(end.first)).status_code == 200


def test_results_have_to_be_published(api, end):
    end.mark()
    end.submit()
    api.ok(end.publish(end.first))

    answer = end.rehearse()

    arm = next(
        batch["name"]
        for batch in api.ok(api.get(f"/cohorts/{end.cohort['id']}/batches"))
        if batch["id"] == end.second
    )
    name = f"First term of {end.cohort['classroom']} {arm}"
    assert (answer.status_code, message(answer)) == (
        409,
        f"A promotion rests on published results: publish {name} first.",
    )
    assert end.rehearse(end.move(end.first)).status_code == 200
    (publication,) = end.listed(batch=end.first)
    api.ok(end.reopen(publication))
    assert end.rehearse(end.move(end.first)).status_code == 409


def test_a_promotion_rests_on_the_latest_term_in_which_something_counts(api, end):
    end.published(term="FIRST")
    end.mark("THIRD", include_in_final=False)
    assert end.rehearse().status_code == 200

    end.mark("SECOND")

    answer = end.rehearse()
    assert answer.status_code == 409
    assert "Second term" in message(answer)


def test_where_nothing_ever_counted_no_student_has_a_result(end):
    end.mark(include_in_final=False)

    seen = end.rehearsal()

    assert {(row["by_rule"], row["outcome"]) for row in seen["decisions"]} == {("NO_RESULT", None)}


def test_a_category_without_weight_does_not_count(api, end):
    weights = [{"level": None, "category": "EXAM", "weight": 100}]
    api.ok(api.patch("/result-settings", {"weighting": "CATEGORIES", "weights": weights}))
    end.published(term="FIRST")
    end.mark("SECOND", category="CA1")

    assert end.rehearse().status_code == 200


def test_categories_count_by_the_weights_of_each_class_itself(api, make, end):
    senior = make.cohort(make.classroom(level="Senior"), {"id": end.session})
    weights = [
        {"level": None, "category": "EXAM", "weight": 100},
        {"level": "Senior", "category": "CA1", "weight": 100},
    ]
    api.ok(api.patch("/result-settings", {"weighting": "CATEGORIES", "weights": weights}))
    end.mark()

    answers = [end.rehearse(end.move(), *others) for others in ((), (end.move(senior["id"]),))]

    assert [answer.status_code for answer in answers] == [409, 409]
    assert message(answers[0]) == message(answers[1])


def test_a_student_in_another_batch_of_the_next_session_is_named(make, published):
    end = published
    student, other = end.students[end.first]
    make.enrolled(end.again, {"id": student})

    answer = end.rehearse()

    assert answer.status_code == 409
    assert end.admission_numbers([student])[0] in message(answer)
    assert end.admission_numbers([other])[0] not in message(answer)


def test_a_student_in_the_very_batch_already_stays_there(make, published):
    end = published
    student = end.everybody[0]
    make.enrolled(end.above, {"id": student})
    before = end.stored()

    promotion = end.promoted()

    assert of(promotion, student)["to_batch"] == end.above["id"]
    assert end.students_of(end.above) == set(end.everybody)
    end.api.ok(end.undo(promotion))
    assert end.stored() == before
    assert end.students_of(end.above) == {student}


def test_a_class_with_nobody_in_it_is_promoted(make, end):
    empty = make.batch(end.cohort)["id"]

    promotion = end.promoted(end.move(empty))

    assert promotion["decisions"] == []


def test_a_mover_between_arms_has_the_result_of_the_former_arm(api, make, end):
    end.mark()
    end.published()
    student = end.students[end.first][0]
    api.ok(api.post(f"/cohorts/{end.cohort['id']}/enrollment", {"students": [student], "batch": end.second}))

    decision = of(end.rehearsal(), student)

    assert (decision["from_batch"], decision["average"]) == (end.second, 90)


# A promotion as seen elsewhere


def test_a_publication_under_a_promotion_is_not_reopened(api, published):
    end = published
    promotion = end.promoted(end.move(end.first))
    publications = {publication["batch"]: publication for publication in end.listed(cohort=end.cohort["id"])}

    for withdraw in (False, True):
        answer = end.reopen(publications[end.first], withdraw=withdraw)
        assert (answer.status_code, message(answer)) == (
            409,
            "A promotion rests on these results: undo that promotion first.",
        )
    assert end.reopen(publications[end.second]).status_code == 200
    api.ok(end.undo(promotion))
    assert end.reopen(publications[end.first]).status_code == 200


def test_a_publication_under_the_promotion_of_another_arm_is_not_reopened(api, published):
    """A student who has gone to the other arm since is promoted there, by the card that they have here."""
    end = published
    student = end.students[end.first][0]
    api.ok(api.post(f"/cohorts/{end.cohort['id']}/enrollment", {"students": [student], "batch": end.second}))
    promotion = end.promoted(end.move(end.second))
    (of_first,) = (row for row in end.listed(cohort=end.cohort["id"]) if row["batch"] == end.first)

    for withdraw in (False, True):
        assert end.reopen(of_first, withdraw=withdraw).status_code == 409
    api.ok(end.undo(promotion))
    assert end.reopen(of_first).status_code == 200


def test_results_of_an_arm_that_left_a_student_out_may_be_reopened(api, end):
    end.mark()
    (of_first,) = end.published(end.first)
    student = end.students[end.first][0]
    api.ok(api.post(f"/cohorts/{end.cohort['id']}/enrollment", {"students": [student], "batch": end.second}))
    api.ok(end.reopen(of_first))
    leaving = {"leave_out": [{"student": student, "reason": "Was in the other arm"}]}
    body = {"term": "FIRST", "batches": [end.first, end.second], **leaving}
    of_first, _ = api.ok(api.post("/publications", body))
    (of_second,) = end.listed(batch=end.second)
    api.ok(end.reopen(of_second))
    api.ok(end.publish(end.second))
    end.promoted(end.move(end.second))

    assert end.reopen(of_first).status_code == 200


def test_a_card_of_another_arm_on_which_a_promotion_rests_is_not_reopened(api, end):
    end.mark()
    (of_first, _) = end.published()
    student = end.students[end.first][0]
    api.ok(api.post(f"/cohorts/{end.cohort['id']}/enrollment", {"students": [student], "batch": end.second}))
    promotion = end.promoted(end.move(end.second))
    assert of(promotion, student)["average"] == 90

    answer = end.reopen(of_first)

    assert (answer.status_code, "A promotion rests on these results" in message(answer)) == (409, True)
    api.ok(end.undo(promotion))
    assert end.reopen(of_first).status_code == 200


def test_nobody_is_promoted_by_a_card_of_another_arm_that_is_under_review(api, end):
    end.mark()
    (of_first, _) = end.published()
    student = end.students[end.first][0]
    api.ok(api.post(f"/cohorts/{end.cohort['id']}/enrollment", {"students": [student], "batch": end.second}))
    api.ok(end.reopen(of_first))

    answer = end.rehearse(end.move(end.second))

    name = f"First term of {end.cohort['classroom']} A"
    assert (answer.status_code, name in message(answer)) == (409, True)


def test_an_arm_that_was_made_later_is_promoted_by_the_cards_of_the_others(api, make, end):
    end.mark()
    end.published()
    student = end.students[end.first][0]
    new = make.batch(end.cohort)["id"]
    api.ok(api.post(f"/cohorts/{end.cohort['id']}/enrollment", {"students": [student], "batch": new}))

    promotion = end.promoted(end.move(new))

    assert (of(promotion, student)["average"], of(promotion, student)["outcome"]) == (90, "PROMOTED")


def test_a_transcript_tells_the_outcome_while_it_stands(api, published):
    end = published
    student, left_out = end.students[end.first]
    end.decide(left_out, "LEFT_OUT")

    def outcome(student):
        (session,) = api.ok(api.get(f"/students/{student}/transcript"))["sessions"]
        return session["outcome"]

    assert outcome(student) is None
    promotion = end.promoted()
    assert outcome(student) == "PROMOTED"
    assert outcome(left_out) is None
    api.ok(end.undo(promotion))
    assert outcome(student) is None


@needs_poppler
def test_a_card_tells_the_outcome_while_it_stands_and_is_else_as_it_was(api, published):
    end = published
    student = end.students[end.first][0]

    def card():
        answer = api.get(f"/students/{student}/report-card?term={end.terms['FIRST']['id']}")
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return answer.data

    before = card()
    promotion = end.promoted()
    assert "Promoted" not in text_of(before)
    assert "Promoted to " in " ".join(text_of(card()).split())
    api.ok(end.undo(promotion))
    assert card() == before


# Others


def test_must_hold_10_ids_of_the_other_school_are_unknown(api, other_api, make_other, published):
    end = published
    theirs = End(make_other)
    theirs.published()
    promotion = end.promoted(end.move(end.first))
    other = make_other.student()["id"]
    there = make_other.subject()["id"]

    # Theirs in ours.
    second = end.move(end.second)
    for moves in (
        [end.move(theirs.first)],
        [{**second, "promote_to": theirs.above["id"]}],
        [{**second, "repeat_in": theirs.again["id"]}],
    ):
        assert list(errors(end.rehearse(moves=moves))) == ["moves"]
    assert list(errors(end.rehearse(second, session=theirs.session))) == ["session"]
    for override in (
        {"student": other, "outcome": "LEFT_OUT"},
        {"student": end.students[end.second][0], "batch": theirs.above["id"]},
    ):
        answer = end.rehearse(second, overrides=[{**override, "reason": "x"}])
        assert list(errors(answer)) == ["overrides"]
    rule = {"minimum_average": 40, "required_subjects": [there]}
    assert api.put("/promotion-rules", [rule]).status_code == 422
    # Ours in theirs.
    for method in ("get", "delete"):
        assert getattr(other_api, method)(f"/promotions/{promotion['id']}").status_code == 404
    assert other_api.ok(other_api.get("/promotions"))["data"] == []
    query = {"session": end.session}
    assert other_api.get("/promotions", query_string=query).status_code == 422
    fingerprint = promotion["fingerprint"]
    assert theirs.commit(theirs.move(theirs.first), fingerprint=fingerprint).status_code == 409
    # The token of one school with the header of the other.
    foreign = api.using(school=other_api.school)
    for method, path, body in (
        ("get", "/promotions", None),
        ("get", f"/promotions/{promotion['id']}", None),
        ("delete", f"/promotions/{promotion['id']}", None),
        ("post", "/promotions", theirs.body()),
        ("get", "/promotion-rules", None),
        ("put", "/promotion-rules", []),
    ):
        answer = foreign.request(method.upper(), path, **({} if body is None else {"json": body}))
        assert answer.status_code == 403, (method, path)
    assert api.ok(api.get(f"/promotions/{promotion['id']}")) == promotion


def test_unknown_promotions_are_not_found(api):
    unknown = str(uuid4())

    for method in ("get", "delete"):
        answer = getattr(api, method)(f"/promotions/{unknown}")
        assert (answer.status_code, message(answer)) == (404, "No such promotion.")
    assert api.get("/promotions", query_string={"session": unknown}).status_code == 422


def test_must_hold_11_statements_do_not_depend_on_the_number_of_students(make, messages):
    """A dry run is a message beside the binding, a commit two or three, reading one, undoing two."""
    for students in (1, 4):
        end = End(make, students=students)
        end.published()
        moves = [end.move(end.first), end.move(end.second, promote_to=None)]
        with messages() as sent:
            seen = end.api.ok(end.rehearse(*moves))
        assert len(sent) == 3
        with messages() as sent:
            promotion = end.api.ok(end.commit(*moves, fingerprint=seen["fingerprint"]))
        assert len(sent) == 5
        with messages() as sent:
            end.api.ok(end.api.get(f"/promotions/{promotion['id']}"))
        assert len(sent) == 1
        with messages() as sent:
            end.api.ok(end.api.get("/promotions"))
        assert len(sent) == 1
        with messages() as sent:
            end.api.ok(end.undo(promotion))
        assert len(sent) == 4
