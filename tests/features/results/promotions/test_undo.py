"""Undoing a promotion: all is as it was, as long as nothing rests on it."""

from __future__ import annotations

import pytest

from tests.features.observations.metrics.sheets import PSYCHOMOTOR, TRAITS, Observed
from tests.features.results.promotions.ends import End
from tests.features.results.submissions.classes import message
from tests.prepared import prepared_for_each

original, end = prepared_for_each(End.with_results)


def refused(end, promotion):
    """See that undoing is refused and changes nothing; answers the named students, each with what rests on it."""
    before = end.stored()
    answer = end.undo(promotion)
    assert answer.status_code == 409, answer.get_json()
    assert end.stored() == before
    assert end.api.ok(end.api.get(f"/promotions/{promotion['id']}")) == promotion
    return {row["student"]: row["what"] for row in answer.get_json()["errors"]["json"]["students"]}


def test_must_hold_12_seen_before_done_as_seen_and_taken_back(api, end):
    end.rules({"minimum_average": 80})
    moves = [end.move(end.first, promote_to=None), end.move(end.second)]
    end.decide(end.students[end.second][1], "PROMOTED", batch=end.again["id"])
    before = end.stored()
    seen = end.rehearsal(*moves)
    assert end.stored() == before

    promotion = end.promoted(*moves)

    assert promotion["decisions"] == seen["decisions"]
    assert end.stored() != before
    assert api.ok(end.undo(promotion)) == {"id": promotion["id"], "deleted": True}
    assert end.stored() == before
    undone = api.ok(api.get(f"/promotions/{promotion['id']}"))
    assert undone == {
        **promotion,
        "undone_at": undone["undone_at"],
        "undone_by_name": promotion["committed_by_name"],
    }
    assert undone["undone_at"] is not None
    # The same can be done again, by the same fingerprint, and is another promotion.
    again = api.ok(end.commit(*moves, fingerprint=seen["fingerprint"]))
    assert again["id"] != promotion["id"]
    assert again["decisions"] == seen["decisions"]
    assert api.ok(api.get("/promotions"))["total"] == 2


def test_a_promotion_is_undone_once(end):
    promotion = end.promoted()
    end.api.ok(end.undo(promotion))

    answer = end.undo(promotion)

    assert (answer.status_code, message(answer)) == (409, "The promotion is undone already.")


def test_taking_graduates_back_needs_that_permission_too(api, make, end):
    everybody_goes_on = end.promoted(end.move(end.second))
    promotion = end.promoted(end.move(end.first, promote_to=None))
    end.api = make.caller("delete:cohorts")
    before = end.stored()

    answer = end.undo(promotion)

    assert (answer.status_code, message(answer)) == (
        403,
        "Taking back that students graduated needs the permission write:graduates.",
    )
    assert end.stored() == before
    assert end.undo(everybody_goes_on).status_code == 200
    end.api = make.caller("delete:cohorts", "write:graduates")
    assert end.undo(promotion).status_code == 200


def test_undoing_is_in_the_audit_log(api, end):
    promotion = end.promoted(end.move(end.first, promote_to=None), end.move(end.second))
    (graduate, _), (student, _) = end.students[end.first], end.students[end.second]
    number = api.ok(api.get("/graduates"))[0]["id"]

    api.ok(end.undo(promotion))

    def newest(entity, record=None):
        query = {"entity": entity, **({"id": record} if record else {})}
        return api.ok(api.get("/audit", query_string=query))["data"][0]

    entry = newest("promotion", promotion["id"])
    assert (entry["action"], entry["old"], entry["new"]) == (
        "delete",
        {"counts": promotion["counts"]},
        None,
    )
    entry = newest("enrollment", student)
    there = {"cohort": end.above["id"], "batch": end.above["id"]}
    assert (entry["action"], entry["old"]) == ("delete", there)
    entry = newest("enrollment", graduate)
    assert (entry["action"], entry["new"]) == ("create", {"cohort": end.cohort["id"], "batch": end.first})
    numbers = {
        entry["old"]["number"]
        for entry in api.ok(api.get("/audit", query_string={"entity": "graduate"}))["data"]
        if entry["action"] == "delete"
    }
    assert number in numbers
    assert len(numbers) == 2


def score(end, student):
    term = end.make.term(end.next_session)
    end.make.entry(end.make.assessment(end.compulsory, term), student, end.above["id"], 0)


def absence(end, student):
    term = end.make.term(end.next_session)
    end.api.ok(end.make.absences(end.make.assessment(end.compulsory, term), {student: "EXCUSED"}))


def comment(end, student):
    end.make.term(end.next_session)
    comments = [{"student": student, "times_present": 0}]
    end.api.ok(end.api.put("/comments", {"batch": end.above["id"], "term": "FIRST", "comments": comments}))


def traits(end, student):
    seen = Observed.__new__(Observed)
    seen.make, seen.api = end.make, end.api
    seen.cohort, seen.batch = end.above, end.above["id"]
    seen.metric_type, seen.traits = PSYCHOMOTOR, TRAITS
    seen.term = end.make.term(end.next_session)
    number = end.admission_numbers([student])[0]
    assert seen.send({number: {TRAITS[0]: 5}}).status_code == 200


def elective(end, student):
    end.api.ok(end.api.patch(f"/cohort-subjects/{end.elective['id']}/students", [student]))


def moved(end, student):
    arm = end.make.batch(end.above)
    end.make.enrolled(end.above, {"id": student}, batch=arm["id"])


def removed(end, student):
    end.api.ok(end.api.patch(f"/cohorts/{end.above['id']}/remove_students", {"student_ids": [student]}))


def graduated(end, student):
    end.make.graduate({"id": student})


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (score, "a score"),
        (absence, "an absence"),
        (comment, "a comment"),
        (traits, "traits"),
        (elective, "an elective"),
        (moved, "moved or removed since"),
        (removed, "moved or removed since"),
        (graduated, "moved or removed since"),
    ],
)
def test_a_promotion_is_not_undone_when_something_rests_on_it(end, act, what):
    promotion = end.promoted()
    student = end.students[end.second][0]

    act(end, student)

    assert refused(end, promotion) == {end.admission_numbers([student])[0]: what}


def test_records_taken_back_rest_on_a_promotion_no_more(api, end):
    promotion = end.promoted()
    student = end.everybody[0]
    elective(end, student)
    term = end.make.term(end.next_session)
    paper = end.make.assessment(end.compulsory, term)
    entry = end.make.entry(paper, student, end.above["id"], 0)
    assert refused(end, promotion) == {end.admission_numbers([student])[0]: "a score, an elective"}

    api.ok(api.delete(f"/gradebooks/{entry['id']}"))
    api.ok(api.delete(f"/cohort-subjects/{end.elective['id']}/students/{student}"))

    assert end.undo(promotion).status_code == 200


def test_records_of_another_session_do_not_rest_on_a_promotion(api, make, end):
    promotion = end.promoted()
    student = end.everybody[0]
    term = end.make.term({"id": end.session}, term="SECOND")
    make.entry(make.assessment(end.subjects[0], term), student, end.first, 5)
    later = make.cohort(session=make.session())
    make.enrolled(later, {"id": student})

    assert end.undo(promotion).status_code == 200


def test_records_of_students_left_out_or_there_already_do_not_rest_on_a_promotion(make, end):
    left_out, there = end.students[end.first]
    end.decide(left_out, "LEFT_OUT")
    make.enrolled(end.above, {"id": there})
    promotion = end.promoted()
    make.enrolled(end.again, {"id": left_out})
    elective(end, there)

    assert end.undo(promotion).status_code == 200
    assert end.students_of(end.above) == {there}
    assert end.students_of(end.again) == {left_out}


def test_a_later_promotion_rests_on_the_earlier(api, make, end):
    promotion = end.promoted()
    term = make.term(end.next_session)
    assert term
    third = make.session()
    beyond = make.cohort(session=third)
    end.overrides = []
    for student in end.everybody:
        end.decide(student, "LEFT_OUT")
    body = {
        "session": end.next_session["id"],
        "moves": [{"batch": end.above["id"], "promote_to": beyond["id"], "repeat_in": None}],
        "overrides": end.overrides,
    }
    seen = api.ok(api.post("/promotions?dry_run=true", body))
    later = api.ok(api.post("/promotions", {**body, "fingerprint": seen["fingerprint"]}))

    assert set(refused(end, promotion).values()) == {"a later promotion"}
    api.ok(end.undo(later))
    assert end.undo(promotion).status_code == 200


def test_graduates_of_an_undone_promotion_have_to_be_the_last_ones(api, make, end):
    promotion = end.promoted(end.move(promote_to=None))
    listed = api.ok(api.get("/graduates"))
    make.graduate()

    named = refused(end, promotion)

    assert set(named.values()) == {"others graduated since"}
    assert set(named) == set(end.admission_numbers(end.students[end.first]))
    assert api.ok(api.get("/graduates"))[:-1] == listed


def test_numbers_of_graduates_go_on_without_a_gap(api, make, end):
    first = make.graduate()["id"]
    promotion = end.promoted(end.move(promote_to=None))

    api.ok(end.undo(promotion))

    assert make.graduate()["id"] == first + 1


def test_a_graduate_whose_data_were_erased_stays_one(api, end):
    promotion = end.promoted(end.move(promote_to=None))
    student = end.students[end.first][0]
    api.ok(api.delete(f"/students/{student}/data"))
    promotion = api.ok(api.get(f"/promotions/{promotion['id']}"))

    assert list(refused(end, promotion).values()) == ["their data were erased"]


def test_a_student_again_takes_subjects_that_are_compulsory_since(api, make, end):
    promotion = end.promoted(end.move(promote_to=None))
    since = make.cohort_subject(end.cohort)

    api.ok(end.undo(promotion))

    rows = [row for row in end.stored()["subject_enrollments"] if since["id"] in row]
    assert len(rows) == len(end.everybody)


def test_at_most_twenty_are_named(make):
    end = End(make, students=11, subjects=1)
    end.mark(first=90, step=1)
    end.published()
    promotion = end.promoted()
    api, taken = end.api, f"/cohort-subjects/{end.elective['id']}/students"
    api.ok(api.patch(taken, end.everybody))

    assert len(refused(end, promotion)) == 20
