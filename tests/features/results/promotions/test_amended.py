"""Amending a promotion: one student's decision is replaced, and undone with the promotion."""

from __future__ import annotations

from copy import deepcopy
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select

from school_service.core.database import db
from school_service.features.results.models import ReportCard
from school_service.printing.wording import long_date
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.results.promotions.ends import End, of
from tests.features.results.promotions.test_undo import elective, score
from tests.features.results.submissions.classes import message
from tests.prepared import prepared_for_each

original, end = prepared_for_each(End.with_results)


def read_promotion(end, promotion):
    return end.api.ok(end.api.get(f"/promotions/{promotion['id']}"))


def amended(end, promotion, student, outcome, batch=None):
    return end.api.ok(end.amend(promotion, student, outcome, batch))


def audited(end, student):
    entries = end.api.ok(end.api.get("/audit", query_string={"entity": "promotion", "id": student}))["data"]
    return [(entry["action"], entry["old"], entry["new"]) for entry in entries]


def refused(end, answer, status=409):
    assert answer.status_code == status, answer.get_json()
    return message(answer)


# Amendments


def test_a_student_repeats_after_all_and_is_told_so_from_then_on(api, end):
    before = end.stored()
    seen = end.rehearsal()
    promotion = end.promoted()
    student, *others = end.everybody
    assert of(promotion, student)["amended"] == []

    answer = amended(end, promotion, student, "REPEATED", end.again["id"])

    (amendment,) = answer["amended"]
    assert answer == {
        **of(promotion, student),
        "outcome": "REPEATED",
        "to_batch": end.again["id"],
        "amended": [amendment],
    }
    assert amendment == {
        "outcome": "REPEATED",
        "to_batch": end.again["id"],
        "reason": "The staff met again",
        "by_name": promotion["committed_by_name"],
        "at": amendment["at"],
    }
    now = read_promotion(end, promotion)
    assert of(now, student) == answer
    assert now["counts"] == {**promotion["counts"], "PROMOTED": 3, "REPEATED": 1}
    assert [of(now, other) for other in others] == [of(promotion, other) for other in others]
    assert (end.students_of(end.again), end.students_of(end.above)) == ({student}, set(others))
    assert not [
        row for row in end.stored()["subject_enrollments"] if student in row and end.compulsory["id"] in row
    ]
    # The same commit again answers the promotion as it is now.
    assert api.ok(end.commit(fingerprint=seen["fingerprint"])) == now
    assert audited(end, student) == [
        (
            "update",
            {"promotion": promotion["id"], "outcome": "PROMOTED", "batch": end.above["id"]},
            {
                "promotion": promotion["id"],
                "outcome": "REPEATED",
                "batch": end.again["id"],
                "reason": "The staff met again",
            },
        )
    ]
    api.ok(end.undo(promotion))
    assert end.stored() == before


def test_the_same_outcome_again_changes_nothing(end):
    promotion = end.promoted()
    student = end.everybody[0]
    stored = end.stored()

    answer = amended(end, promotion, student, "PROMOTED", end.above["id"])

    assert answer == of(promotion, student) == of(read_promotion(end, promotion), student)
    assert (end.stored(), audited(end, student)) == (stored, [])


def test_a_student_amended_to_another_arm_keeps_subjects_and_scores(api, end):
    promotion = end.promoted()
    student = end.everybody[0]
    score(end, student)
    elective(end, student)
    arm = end.make.batch(end.above)["id"]

    amended(end, promotion, student, "PROMOTED_ON_TRIAL", arm)

    taken = [row for row in end.stored()["subject_enrollments"] if student in row]
    assert len([row for row in taken if end.elective["id"] in row or end.compulsory["id"] in row]) == 2
    (listed,) = [
        row for row in api.ok(api.get(f"/cohorts/{end.above['id']}/students")) if row["id"] == student
    ]
    assert api.ok(api.get(f"/students/{student}"))["id"] == listed["id"]
    entries = api.ok(api.get("/gradebooks", query_string={"student": student}))["data"]
    assert [entry["score"] for entry in entries if entry["batch"] == end.above["id"]] == [0]


CHAINS = (
    [("LEFT_OUT", None)],
    [("GRADUATED", None)],
    [("GRADUATED", None), ("PROMOTED", "above")],
    [("GRADUATED", None), ("LEFT_OUT", None), ("REPEATED", "again")],
    [("REPEATED", "again"), ("PROMOTED", "above"), ("GRADUATED", None)],
    [("REPEATED", "again"), ("PROMOTED", "above"), ("LEFT_OUT", None), ("GRADUATED", None)],
)


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: "-".join(outcome for outcome, _ in chain))
@pytest.mark.parametrize("move", ["up", "out", "there already"])
def test_undoing_takes_every_amendment_back(make, end, chain, move):
    student = end.everybody[-1]
    if move == "there already":
        make.enrolled(end.above, {"id": student})
    moves = [end.move(end.first), end.move(end.second, promote_to=None if move == "out" else end.above["id"])]
    before = end.stored()
    promotion = end.promoted(*moves)
    first = of(promotion, student)
    batches = {"above": end.above["id"], "again": end.again["id"], None: None}

    for outcome, batch in chain:
        answer = amended(end, promotion, student, outcome, batches[batch])
        assert (answer["outcome"], answer["to_batch"]) == (outcome, batches[batch])

    assert len(answer["amended"]) == len(chain) - (chain[0][0] == first["outcome"])
    status = end.api.ok(end.api.get(f"/students/{student}"))["status"]
    assert status == ("GRADUATED" if outcome == "GRADUATED" else "ACTIVE")
    places = {cohort["id"] for cohort in (end.above, end.again) if student in end.students_of(cohort)}
    if batch is not None:
        assert places == {batches[batch]}
    elif len(chain) == 1 and (move, outcome) == ("there already", "LEFT_OUT"):
        # The place is none that the promotion made.
        assert places == {end.above["id"]}
    else:
        assert places == set()
    end.api.ok(end.undo(promotion))
    assert end.stored() == before


def test_undoing_gives_back_a_place_and_an_elective_that_were_there_before(api, make, end):
    student = end.everybody[0]
    make.enrolled(end.above, {"id": student})
    elective(end, student)
    before = end.stored()
    promotion = end.promoted()

    amended(end, promotion, student, "REPEATED", end.again["id"])

    assert end.stored()["subject_enrollments"] != before["subject_enrollments"]
    api.ok(end.undo(promotion))
    assert end.stored() == before


def test_a_student_moved_by_hand_is_amended_from_there_and_has_not_moved_since(api, make, end):
    arm = make.batch(end.above)["id"]
    before = end.stored()
    promotion = end.promoted()
    moved, other = end.students[end.first]
    make.enrolled(end.above, {"id": moved}, {"id": other}, batch=arm)
    assert end.undo(promotion).status_code == 409

    # One is said to be where they are, the other goes on to the class below.
    amended(end, promotion, moved, "PROMOTED", arm)
    amended(end, promotion, other, "REPEATED", end.again["id"])

    assert (end.students_of(end.again), moved in end.students_of(end.above)) == ({other}, True)
    api.ok(end.undo(promotion))
    assert end.stored() == before


def test_a_student_moved_after_an_amendment_has_moved_since(make, end):
    promotion = end.promoted()
    student = end.everybody[0]
    amended(end, promotion, student, "PROMOTED_ON_TRIAL", end.above["id"])
    make.enrolled(end.above, {"id": student}, batch=make.batch(end.above)["id"])

    answer = end.undo(promotion)

    (named,) = answer.get_json()["errors"]["json"]["students"]
    assert (answer.status_code, named["what"]) == (409, "moved or removed since")


def test_scores_of_the_class_before_hold_the_undoing(end):
    promotion = end.promoted()
    student = end.everybody[0]
    score(end, student)
    amended(end, promotion, student, "LEFT_OUT")

    answer = end.undo(promotion)

    (named,) = answer.get_json()["errors"]["json"]["students"]
    assert (answer.status_code, named["what"]) == (409, "a score")


def test_a_score_of_the_next_session_holds_no_amendment(end):
    promotion = end.promoted()
    student = end.everybody[0]
    score(end, student)

    amended(end, promotion, student, "REPEATED", end.again["id"])

    assert end.students_of(end.again) == {student}


def code_of(end, student):
    """The code of the student's newest card."""
    with end.api.app.app_context(), in_transaction(SchoolBinding(end.api.school)):
        newest = select(ReportCard.code).where(ReportCard.student_id == UUID(student), ReportCard.in_force)
        return db.session.scalar(newest)


def verification(end, student, code=None):
    """The answer of verification about the student's newest card, or about the one with the code."""
    code = code or code_of(end, student)
    answer = end.api.ok(end.api.using(token=None).get(f"/verify/{end.api.school}/{code}"))
    return answer["state"], answer["note"]


def test_a_card_with_the_outcome_stays_current_and_is_verified_with_the_day_of_the_change(api, end):
    promotion = end.promoted()
    student, other = end.everybody[:2]
    assert verification(end, student) == ("CURRENT", None)

    amended(end, promotion, student, "LEFT_OUT")

    day = long_date(of(read_promotion(end, promotion), student)["amended"][0]["at"], "Africa/Lagos")
    assert verification(end, student) == ("CURRENT", f"The promotion was changed on {day}.")
    assert verification(end, other) == ("CURRENT", None)
    api.ok(end.undo(promotion))
    assert verification(end, student) == ("CURRENT", None)


def test_a_paper_has_the_note_on_class_figures_and_then_the_one_on_the_promotion(api, end):
    first, corrected = end.students[end.first]
    codes = {student: code_of(end, student) for student in (first, corrected)}
    for publication in end.listed(cohort=end.cohort["id"]):
        api.ok(end.reopen(publication))
    end.correct(corrected, 86)
    api.ok(end.publish())
    day = long_date(end.listed(batch=end.first)[0]["published_at"], "Africa/Lagos")
    figures = f"Class figures were corrected on {day}; the student's own results are the same."
    assert verification(end, first, codes[first]) == ("CURRENT", figures)
    promotion = end.promoted()

    for student in (first, corrected):
        amended(end, promotion, student, "REPEATED", end.again["id"])

    # Of the newest paper the promotion alone, and of one that is replaced neither.
    promoted = f"The promotion was changed on {day}."
    assert verification(end, first, codes[first]) == ("CURRENT", f"{figures} {promoted}")
    assert verification(end, first) == ("CURRENT", promoted)
    assert verification(end, corrected, codes[corrected]) == ("REPLACED", None)
    assert verification(end, corrected) == ("CURRENT", promoted)
    api.ok(end.undo(promotion))
    assert verification(end, first, codes[first]) == ("CURRENT", figures)


# Refusals


def published_in_next_session(end, student):
    """Publish results of the next session in which a student of the class above has a score."""
    api = end.api
    score(end, student)
    path = f"/cohort-subjects/{end.compulsory['id']}/submission"
    api.ok(api.post(path, {"term": "FIRST", "blanks": "EXCUSED"}))
    (made,) = api.ok(api.post("/publications", {"term": "FIRST", "batches": [end.above["id"]]}))
    return made


def test_a_report_card_of_the_next_session_holds_the_decision(api, end):
    promotion = end.promoted()
    student = end.everybody[0]
    publication = published_in_next_session(end, student)
    number, name = end.admission_numbers([student])[0], promotion["next_session"]["name"]
    stored = end.stored()

    answer = end.amend(promotion, student, "REPEATED", end.again["id"])

    words = f"{number} has a report card of {name}: its results are published."
    assert refused(end, answer) == words
    assert (end.stored(), read_promotion(end, promotion)) == (stored, promotion)
    api.ok(end.reopen(publication))
    assert refused(end, end.amend(promotion, student, "LEFT_OUT")) == words
    api.ok(end.reopen(publication, withdraw=True))
    assert end.amend(promotion, student, "LEFT_OUT").status_code == 200


def test_an_undone_promotion_is_not_amended(api, end):
    promotion = end.promoted()
    api.ok(end.undo(promotion))

    answer = end.amend(promotion, end.everybody[0], "LEFT_OUT")

    assert refused(end, answer) == "The promotion is undone."


def test_only_the_last_graduate_is_none_after_all(api, end):
    promotion = end.promoted(end.move(end.first, promote_to=None), end.move(end.second))
    first, last = end.students[end.first]
    number = end.admission_numbers([first])[0]

    answer = end.amend(promotion, first, "REPEATED", end.again["id"])

    assert refused(end, answer) == f"Others graduated since: {number} is not the last graduate any more."
    amended(end, promotion, last, "REPEATED", end.again["id"])
    amended(end, promotion, first, "REPEATED", end.again["id"])
    assert api.ok(api.get("/graduates")) == []
    assert end.make.graduate()["id"] == 1


def test_a_later_promotion_holds_the_decision(api, make, end):
    promotion = end.promoted()
    student = end.everybody[0]
    beyond = make.cohort(session=make.session())
    overrides = [{"student": pupil, "outcome": "LEFT_OUT", "reason": "x"} for pupil in end.everybody]
    moves = [{"batch": end.above["id"], "promote_to": beyond["id"], "repeat_in": None}]
    body = {"session": end.next_session["id"], "moves": moves, "overrides": overrides}
    seen = api.ok(api.post("/promotions?dry_run=true", body))
    api.ok(api.post("/promotions", {**body, "fingerprint": seen["fingerprint"]}))

    assert "A later promotion rests on it" in refused(end, end.amend(promotion, student, "LEFT_OUT"))


def test_a_withdrawn_student_goes_into_no_class_and_does_not_graduate(api, end):
    promotion = end.promoted()
    student = end.everybody[0]
    api.ok(api.patch(f"/students/{student}", {"status": "WITHDRAWN"}))
    number = end.admission_numbers([student])[0]

    for outcome, batch in (("REPEATED", end.again["id"]), ("GRADUATED", None)):
        answer = end.amend(promotion, student, outcome, batch)
        assert answer.get_json()["errors"]["json"] == {"outcome": [f"{number} is WITHDRAWN"]}
    assert amended(end, promotion, student, "LEFT_OUT")["outcome"] == "LEFT_OUT"


def test_a_student_graduated_by_hand_does_not_graduate_again(make, end):
    promotion = end.promoted()
    student = end.everybody[0]
    make.graduate({"id": student})

    assert "has graduated already" in refused(end, end.amend(promotion, student, "GRADUATED"))


def test_an_erased_student_stays_as_they_were_decided(api, end):
    promotion = end.promoted(end.move(end.first, promote_to=None), end.move(end.second))
    student = end.students[end.first][-1]
    api.ok(api.delete(f"/students/{student}/data"))

    assert "were erased" in refused(end, end.amend(promotion, student, "REPEATED", end.again["id"]))


def test_a_batch_is_one_of_the_next_session(end, make, make_other):
    promotion = end.promoted()
    student, name = end.everybody[0], promotion["next_session"]["name"]
    third = make.cohort(session=make.session())["id"]
    theirs = make_other.cohort()["id"]
    for batch, words in (
        (end.first, f"is not of {name}"),
        (third, f"is not of {name}"),
        (theirs, "no such batch"),
        (str(uuid4()), "no such batch"),
    ):
        answer = end.amend(promotion, student, "PROMOTED", batch)
        assert answer.status_code == 422
        assert answer.get_json()["errors"]["json"] == {"batch": [words]}


def test_where_nobody_goes_on_there_is_no_next_session_to_go_to(end):
    promotion = end.promoted(end.move(end.first, promote_to=None, repeat_in=None))
    last = end.students[end.first][-1]

    answer = end.amend(promotion, last, "REPEATED", end.again["id"])

    words = "the promotion enrolled nobody in a next session"
    assert answer.get_json()["errors"]["json"] == {"batch": [words]}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"outcome": "PROMOTED"}, "batch"),
        ({"outcome": "LEFT_OUT", "batch": str(uuid4())}, "batch"),
        ({"outcome": "GRADUATED", "batch": str(uuid4())}, "batch"),
        ({"outcome": "NO_RESULT"}, "outcome"),
        ({"outcome": None}, "outcome"),
        ({"outcome": "PROMOTED", "batch": "x"}, "batch"),
        ({"outcome": "LEFT_OUT", "reason": ""}, "reason"),
        ({"outcome": "LEFT_OUT", "reason": " "}, "reason"),
        ({"outcome": "LEFT_OUT", "reason": "Ọ" * 2001}, "reason"),
        ({"outcome": "LEFT_OUT", "reason": None}, "reason"),
    ],
)
def test_a_body_is_refused_by_its_member(end, body, field):
    promotion = end.promoted()
    path = f"/promotions/{promotion['id']}/decisions/{end.everybody[0]}"

    answer = end.api.patch(path, {"reason": "Ọ̀rọ̀", **body})

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [field])


def test_an_unknown_promotion_or_student_is_404(end, make, make_other):
    promotion = end.promoted()
    student = end.everybody[0]
    for of_promotion, of_student in (
        (str(uuid4()), student),
        (promotion["id"], str(uuid4())),
        (promotion["id"], make.student()["id"]),
        (promotion["id"], make_other.student()["id"]),
    ):
        assert end.amend({"id": of_promotion}, of_student, "LEFT_OUT").status_code == 404
    other = deepcopy(end)
    other.api = make_other.api
    assert other.amend(promotion, student, "LEFT_OUT").status_code == 404


def test_to_and_from_graduating_needs_that_permission_too(make, end):
    promotion = end.promoted(end.move(end.first, promote_to=None), end.move(end.second))
    graduate, student = end.students[end.first][-1], end.students[end.second][0]
    end.api = make.caller("write:cohorts")
    for pupil, outcome, batch in ((graduate, "REPEATED", end.again["id"]), (student, "GRADUATED", None)):
        words = "Changing that a student graduates needs the permission write:graduates."
        assert refused(end, end.amend(promotion, pupil, outcome, batch), 403) == words
    end.api = make.caller("write:cohorts", "write:graduates")
    answer = amended(end, promotion, graduate, "REPEATED", end.again["id"])
    # Figures are for readers of results.
    assert (answer["average"], answer["outcome"]) == (None, "REPEATED")


def test_the_reason_goes_with_the_persons_data(api, end):
    promotion = end.promoted()
    student = end.everybody[0]
    amended(end, promotion, student, "LEFT_OUT")
    api.ok(api.patch(f"/cohorts/{end.cohort['id']}/remove_students", {"student_ids": [student]}))

    api.ok(api.delete(f"/students/{student}/data"))

    (amendment,) = of(read_promotion(end, promotion), student)["amended"]
    assert (amendment["reason"], amendment["outcome"]) == (None, "LEFT_OUT")
