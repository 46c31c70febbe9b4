"""The students of a batch in a term: they leave, move and arrive, and somebody's card is corrected."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError

from school_service.core.database import db
from school_service.features.results.models import ReportCard
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.results.publications.arms import Arms
from tests.features.results.report_cards.test_verification import HTML, code_of, verify
from tests.features.results.submissions.classes import message
from tests.naming import name_with_number


@pytest.fixture(scope="module", autouse=True)
def made_arms(prepared):
    return prepared(lambda make: Arms.with_results(make, 3))


@pytest.fixture
def anyone(api):
    return api.using(token=None, school=None)


def result(api, student, term="FIRST", **query):
    return api.get(f"/students/{student}/results", query_string={"term": term, **query})


def card_of(api, student, term="FIRST"):
    return api.ok(result(api, student, term))


def broadsheet(api, batch, **query):
    return api.ok(api.get("/broadsheets", query_string={"batch": batch, **query}))


def listed(sheet):
    return [row["student"]["id"] for row in sheet["students"]]


def corrected(arms, student, score=99, *batches, term="FIRST", **fields):
    """Reopen all that is published of a term, correct a score, and publish it again; answers the new versions."""
    published = [
        row for row in arms.listed(cohort=arms.cohort["id"], term=term) if row["state"] == "PUBLISHED"
    ]
    for publication in published:
        arms.api.ok(arms.reopen(publication))
    arms.correct(student, score, term=term)
    body = {"term": term, "batches": batches or [row["batch"] for row in published], **fields}
    return {row["batch"]: row for row in arms.api.ok(arms.api.post("/publications", body))}


# They leave


def withdraw(arms, student):
    arms.api.ok(arms.api.patch(f"/students/{student}", {"status": "WITHDRAWN"}))


def graduate(arms, student):
    arms.make.graduate({"id": student})


def remove(arms, student):
    arms.api.ok(arms.api.patch(f"/cohorts/{arms.cohort['id']}/remove_students", {"student_ids": [student]}))


def move(arms, student):
    arms.make.enrolled(arms.cohort, {"id": student}, batch=arms.second)


def go_elsewhere(arms, student):
    remove(arms, student)
    arms.make.enrolled(arms.make.cohort(session={"id": arms.cohort["session"]}), {"id": student})


LEAVING = pytest.mark.parametrize("leave", [withdraw, graduate, remove, move, go_elsewhere])


@LEAVING
def test_a1_a_correction_for_one_keeps_the_card_of_a_leaver(api, make, anyone, place, arms, leave):
    elective = make.cohort_subject(arms.cohort, elective=True)
    corrected_one, stays, leaver = arms.students[arms.first]
    path = f"/cohort-subjects/{elective['id']}/students"
    api.ok(api.patch(path, [leaver, corrected_one]))
    paper = make.assessment(elective, arms.terms["FIRST"], total_points=50)
    for student in (leaver, corrected_one):
        make.entry(paper, student, arms.first, 40)
    arms.subjects.append(elective)
    arms.submit()
    arms.published()
    before, code = card_of(api, leaver), code_of(api, leaver)
    transcript = api.ok(api.get(f"/students/{leaver}/transcript"))["sessions"]
    told = verify(anyone, place.id, code).get_json()
    leave(arms, leaver)

    again = corrected(arms, corrected_one, 91)[arms.first]

    assert (again["version"], again["students"], again["left"]) == (2, 3, [leaver])
    assert again["changed"] == 1
    assert again["class_figures_changed"] == 2
    after = card_of(api, leaver)
    own = ("student", "batch", "status", "total", "average", "grade", "passed")
    assert {name: after[name] for name in own} == {name: before[name] for name in own}
    assert [row["scores"] for row in after["subjects"]] == [row["scores"] for row in before["subjects"]]
    place_of = {"position": 3, "tied": False, "of": 3}
    assert {name: after["batch_figures"][name] for name in place_of} == place_of
    assert {name: after["cohort_figures"][name] for name in place_of} == {**place_of, "of": 6}
    now = verify(anyone, place.id, code).get_json()
    assert now == {**told, "note": now["note"]}
    assert now["note"].startswith("Class figures were corrected on ")
    assert now["note"].endswith("; the student's own results are the same.")
    assert now["note"] in verify(anyone, place.id, code, accept=HTML).get_data(as_text=True).replace(
        "&#39;", "'"
    )
    sessions = api.ok(api.get(f"/students/{leaver}/transcript"))["sessions"]
    for session in (*transcript, *sessions):
        for term in session["terms"]:
            del term["version"], term["published_at"]
    assert sessions == transcript
    # All that names the members of the batch.
    assert set(listed(broadsheet(api, arms.first, term="FIRST"))) == {*arms.students[arms.first]}
    assert set(listed(broadsheet(api, arms.first, term="FIRST", live="true"))) == {*arms.students[arms.first]}
    assert listed(broadsheet(api, arms.second, term="FIRST", live="true")) == arms.students[arms.second]
    query = {"batch": arms.first, "term": "FIRST"}
    assert {comment["student"]["id"] for comment in api.ok(api.get("/comments", query_string=query))} == {
        *arms.students[arms.first]
    }
    for live in ("false", "true"):
        asked = {"term": "FIRST", "live": live}
        results = api.ok(api.get(f"/cohort-subjects/{elective['id']}/results", query_string=asked))
        assert {row["student"]["id"] for row in results} == {leaver, corrected_one}
    workbook = api.get("/broadsheets/download", query_string={**query, "live": "true"})
    assert workbook.status_code == 200
    cards = api.ok(api.get(f"/publications/{again['id']}/cards"))
    assert {row["student"]["id"]: (row["average"], row["position"], row["version"]) for row in cards} == {
        student: (shown["average"], shown["batch_figures"]["position"], 2)
        for student in (corrected_one, stays, leaver)
        for shown in [card_of(api, student)]
    }


@LEAVING
def test_a2_a_dry_run_names_leavers(api, arms, leave):
    (first,) = arms.published(arms.first)
    leaver = arms.students[arms.first][1]
    leave(arms, leaver)
    api.ok(arms.reopen(first))

    (rehearsed,) = api.ok(arms.publish(arms.first, query="?dry_run=true"))
    (published,) = api.ok(arms.publish(arms.first))

    for name in ("without_assessments", "comments_missing", "traits_missing", "photos_missing"):
        rehearsed.pop(name)
    assert (rehearsed["left"], rehearsed["students"], rehearsed["changed"]) == ([leaver], 3, 0)
    assert published == {
        **rehearsed,
        **{name: published[name] for name in ("id", "published_at")},
    }
    assert api.ok(api.get(f"/publications/{published['id']}")) == published


def test_a1_the_score_of_a_leaver_is_corrected_too(api, anyone, place, arms):
    arms.published(arms.first)
    leaver = arms.students[arms.first][0]
    withdraw(arms, leaver)

    again = corrected(arms, leaver, 50)[arms.first]

    assert card_of(api, leaver)["average"] == 70
    assert again["changed"] == 3
    assert verify(anyone, place.id, code_of(api, leaver)).get_json()["state"] == "REPLACED"


def test_a3_a_mover_before_either_arm_is_published_is_judged_in_the_new_one(api, arms):
    mover = arms.students[arms.first][0]
    move(arms, mover)

    api.ok(arms.publish(arms.first))
    api.ok(arms.publish(arms.second))

    assert card_of(api, mover)["batch"] == arms.second
    assert [publication["students"] for publication in arms.listed(cohort=arms.cohort["id"])] == [4, 2]


@pytest.mark.parametrize("together", [True, False])
def test_a3_a_student_with_a_card_of_one_arm_gets_none_in_the_other(api, arms, together):
    (first,) = arms.published(arms.first)
    mover = arms.students[arms.first][0]
    move(arms, mover)

    (second,) = api.ok(arms.publish(arms.second))

    assert (second["students"], card_of(api, mover)["batch"]) == (3, arms.first)
    for publication in (first, second):
        api.ok(arms.reopen(publication))
    if together:
        again = api.ok(arms.publish())
    else:
        again = [api.ok(arms.publish(batch))[0] for batch in (arms.second, arms.first)]
    assert {row["batch"]: row["students"] for row in again} == {arms.first: 3, arms.second: 3}
    assert {row["batch"]: row["left"] for row in again} == {arms.first: [mover], arms.second: []}


def test_a3_an_index_says_that_a_card_of_a_term_is_in_force_once(api, arms):
    (first,) = arms.published(arms.first)
    api.ok(arms.reopen(first))
    api.ok(arms.publish(arms.first))
    student = UUID(arms.students[arms.first][0])

    with (
        pytest.raises(IntegrityError, match="uq_report_cards_student_id_term_id"),
        in_transaction(SchoolBinding(UUID(str(api.school)))),
    ):
        db.session.execute(update(ReportCard).where(ReportCard.student_id == student).values(in_force=True))


# They move, and a session goes on


def test_a5_a_mover_between_arms_keeps_every_term_of_the_session(api, arms):
    corrected_one, mover, _ = arms.students[arms.first]
    arms.published()
    move(arms, mover)
    arms.students[arms.first].remove(mover)
    arms.students[arms.second].append(mover)
    corrected(arms, corrected_one, 91)

    arms.published(term="SECOND")

    cumulative = card_of(api, mover, "SECOND")["cumulative"]
    assert (cumulative["terms"], card_of(api, mover)["batch"]) == (2, arms.first)
    second = card_of(api, mover, "SECOND")["average"]
    assert cumulative["average"] == (85 + second) / 2


def test_a5_a_mover_between_cohorts_keeps_every_term_too(api, make, arms):
    arms.published(arms.first)
    corrected_one, mover, _ = arms.students[arms.first]
    remove(arms, mover)
    cohort = make.cohort(session={"id": arms.cohort["session"]})
    make.enrolled(cohort, {"id": mover})
    base = api.ok(api.get("/templates"))
    named = {template["name"]: template for template in base}
    subject = make.cohort_subject(cohort, named[arms.subjects[0]["subject"]])
    second = make.term({"id": arms.cohort["session"]}, term="SECOND")
    paper = make.assessment(subject, second, total_points=100)
    make.entry(paper, mover, cohort["id"], 65)
    api.ok(api.post(f"/cohort-subjects/{subject['id']}/submission", {"term": "SECOND"}))
    corrected(arms, corrected_one, 91)

    api.ok(api.post("/publications", {"term": "SECOND", "batches": [cohort["id"]]}))

    shown = card_of(api, mover, second["id"])["cumulative"]
    assert (shown["terms"], shown["average"]) == (2, 75)


def test_a1_a_leaver_keeps_the_subjects_of_their_newest_card(api, arms):
    """A subject that was taken up for the second version stays theirs in the third, when they have gone."""
    leaver = arms.students[arms.first][0]
    (first,) = arms.published(arms.first)
    api.ok(arms.reopen(first))
    elective = arms.make.cohort_subject(arms.cohort, elective=True)
    api.ok(api.patch(f"/cohort-subjects/{elective['id']}/students", [leaver]))
    paper = arms.make.assessment(elective, arms.terms["FIRST"], category="EXAM", total_points=100)
    arms.make.entry(paper, leaver, arms.first, 30)
    api.ok(api.post(f"/cohort-subjects/{elective['id']}/submission", {"term": "FIRST"}))
    (second,) = api.ok(arms.publish(arms.first))
    before = card_of(api, leaver)
    remove(arms, leaver)
    api.ok(arms.reopen(second))

    (third,) = api.ok(arms.publish(arms.first))

    after = card_of(api, leaver)
    assert (third["version"], third["changed"], third["left"]) == (3, 0, [leaver])
    assert [row["subject"]["id"] for row in after["subjects"]].count(elective["id"]) == 1
    assert after["subjects"] == before["subjects"]


# They arrive


def newcomer(arms, batch):
    """Somebody who comes now, with scores in the second term."""
    (student,) = arms.make.enrolled(arms.cohort, arms.make.student(first_name="Zainab"), batch=batch)
    for subject in arms.subjects:
        arms.make.entry(arms.papers["SECOND", subject["id"]], student, batch, 55)
    return student


@pytest.mark.parametrize("together", [True, False])
def test_a1_a_newcomer_in_the_second_term_has_no_part_in_the_first(api, arms, together):
    arms.published()
    arms.mark("SECOND")
    late = newcomer(arms, arms.first)
    arms.submit("SECOND")

    batches = [[arms.first, arms.second]] if together else [[arms.first], [arms.second]]
    published = [row for each in batches for row in api.ok(arms.publish(*each, term="SECOND"))]

    assert {row["batch"]: row["students"] for row in published} == {arms.first: 4, arms.second: 3}
    assert card_of(api, late, "SECOND")["cumulative"]["terms"] == 1
    assert result(api, late, live="true").status_code == 404
    for live in ("false", "true"):
        assert late not in listed(broadsheet(api, arms.first, term="FIRST", live=live))
    comments = api.ok(api.get("/comments", query_string={"batch": arms.first, "term": "FIRST"}))
    assert late not in {comment["student"]["id"] for comment in comments}
    for publication in published:
        api.ok(arms.reopen(publication))
    again = corrected(arms, arms.students[arms.first][0])
    assert (again[arms.first]["students"], again[arms.first]["changed"]) == (3, 1)
    assert result(api, late).status_code == 404


def test_a1_a_newcomer_with_an_absence_has_a_part(api, arms):
    (first,) = arms.published(arms.first)
    (late,) = arms.make.enrolled(arms.cohort, batch=arms.first)
    api.ok(arms.reopen(first))
    for number, subject in enumerate(arms.subjects):
        api.ok(arms.reopen_subject(number))
        paper = arms.papers["FIRST", subject["id"]]
        api.ok(arms.make.absences(paper, {late: "ABSENT"}))
    arms.submit()

    (again,) = api.ok(arms.publish(arms.first))

    assert (again["students"], card_of(api, late)["average"]) == (4, 0)


def test_a1_a_newcomer_once_all_is_handed_in_has_no_part(api, arms):
    (late,) = arms.make.enrolled(arms.cohort, batch=arms.first)

    assert result(api, late, live="true").status_code == 404
    assert late not in listed(broadsheet(api, arms.first, term="FIRST"))
    assert [publication["students"] for publication in api.ok(arms.publish())] == [3, 3]
    # In the next term, in which nothing is handed in, they are there.
    arms.mark("SECOND")
    assert late in listed(broadsheet(api, arms.first, term="SECOND"))


def test_a1_a_score_in_an_assessment_that_was_deleted_gives_no_part(api, arms):
    (first,) = arms.published(arms.first)
    (late,) = arms.make.enrolled(arms.cohort, batch=arms.first)
    api.ok(arms.reopen(first))
    api.ok(arms.reopen_subject())
    term = arms.terms["FIRST"]
    paper = arms.make.assessment(arms.subjects[0], term, category="CA1", include_in_final=False)
    arms.make.entry(paper, late, arms.first, 5)
    assert late in listed(broadsheet(api, arms.first, term="FIRST", live="true"))

    api.ok(api.delete(f"/assessments/{paper['id']}"))

    assert late not in listed(broadsheet(api, arms.first, term="FIRST", live="true"))


def test_a1_an_arm_that_was_empty_when_its_cohort_was_published_takes_nobody_in(api, arms):
    new = arms.make.batch(arms.cohort, name="NEW")["id"]
    arms.published()
    (late,) = arms.make.enrolled(arms.cohort, batch=new)

    assert result(api, late, live="true").status_code == 404
    assert "There is nobody in" in message(arms.publish(new))


@LEAVING
def test_a1_an_arm_that_all_had_left_when_its_cohort_was_published_takes_nobody_in(api, arms, leave):
    left = arms.make.batch(arms.cohort, name="NEW")["id"]
    (leaver,) = arms.make.enrolled(arms.cohort, batch=left)
    leave(arms, leaver)
    arms.published()
    (late,) = arms.make.enrolled(arms.cohort, batch=left)

    assert result(api, late, live="true").status_code == 404
    assert "There is nobody in" in message(arms.publish(left))


def test_a1_a_comment_on_a_student_without_a_part_is_refused(api, arms):
    (first,) = arms.published(arms.first)
    (late,) = arms.make.enrolled(arms.cohort, batch=arms.first)
    leaver = arms.students[arms.first][2]
    withdraw(arms, leaver)
    api.ok(arms.reopen(first))

    def say(student):
        said = [{"student": student, "form_teacher_comment": "Ó ṣe dáadáa."}]
        return api.put("/comments", {"batch": arms.first, "term": "FIRST", "comments": said})

    assert say(late).status_code == 422
    api.ok(say(leaver))
    (again,) = api.ok(arms.publish(arms.first))
    assert again["changed"] == 1
    (changed,) = api.ok(api.get(f"/publications/{again['id']}/changes"))
    assert changed["student"]["id"] == leaver


# An arm made in the second term


def with_new_arm(arms, movers=(1,)):
    """Make an arm in the second term, for some of the first arm and somebody new; mark and submit the term."""
    make = arms.make
    new = make.batch(arms.cohort, name="NEW")["id"]
    moved = [arms.students[arms.first][number] for number in movers]
    for student in moved:
        make.enrolled(arms.cohort, {"id": student}, batch=new)
        arms.students[arms.first].remove(student)
    (late,) = make.enrolled(arms.cohort, make.student(first_name="Zainab"), batch=new)
    arms.students[new] = [*moved, late]
    arms.mark("SECOND")
    arms.submit("SECOND")
    return new, moved, late


@pytest.mark.parametrize("together", [True, False])
def test_a4_a_new_arm_in_the_second_term_is_published(api, arms, together):
    arms.published()
    before = {student: result(api, student).data for student, _ in arms.everyone}
    new, (mover,), late = with_new_arm(arms)

    batches = [[arms.first, arms.second, new]] if together else [[new], [arms.first], [arms.second]]
    for each in batches:
        api.ok(arms.publish(*each, term="SECOND"))

    # "2 of 3 in A" stays so.
    assert {student: result(api, student).data for student in before} == before
    assert (card_of(api, mover, "SECOND")["batch"], card_of(api, mover, "SECOND")["cumulative"]["terms"]) == (
        new,
        2,
    )
    assert card_of(api, late, "SECOND")["cumulative"]["terms"] == 1
    # Nobody belongs to it in the first term.
    answer = arms.publish(new, term="FIRST")
    assert (answer.status_code, "There is nobody in" in message(answer)) == (409, True)


def test_a4_a_student_with_a_part_in_an_earlier_term_and_no_card_is_named(api, arms):
    api.ok(arms.publish(arms.second))
    new, (mover,), _ = with_new_arm(arms)
    (number,) = arms.admission_numbers([mover])
    name = arms.cohort["classroom"]

    answer = arms.publish(new, term="SECOND")

    assert (answer.status_code, f"publish First term of {name} NEW first" in message(answer)) == (409, True)
    assert answer.get_json()["errors"]["json"]["earlier"] == [
        {"results": f"First term of {name} NEW", "students": [number]}
    ]
    api.ok(arms.publish(new, term="FIRST"))
    api.ok(arms.publish(new, term="SECOND"))
    assert card_of(api, mover)["batch"] == new


def test_a4_a_term_under_review_is_in_force(api, arms):
    (first,) = arms.published(arms.first)
    arms.mark("SECOND")
    arms.submit("SECOND")
    api.ok(arms.reopen(first))

    (second,) = api.ok(arms.publish(arms.first, term="SECOND"))

    # The first term may be published again where it changes nobody's session.
    unchanged = api.ok(arms.publish(arms.first, query="?dry_run=true"))
    assert unchanged[0]["version"] == 2
    arms.correct(arms.students[arms.first][2], 99)
    (number,) = arms.admission_numbers(arms.students[arms.first][2:])
    answer = arms.publish(arms.first)
    words = f"reopen Second term of {arms.cohort['classroom']} A first"
    assert (answer.status_code, words in message(answer)) == (409, True)
    assert answer.get_json()["errors"]["json"]["later"][0]["students"] == [number]
    api.ok(arms.reopen(second))
    assert arms.publish(arms.first).status_code == 200


def test_a4_at_most_twenty_are_named(api, make):
    arms = Arms(make, 21, subjects=1)
    arms.mark(first=99, step=1)
    arms.mark("SECOND", first=99, step=1)
    arms.submit()
    arms.submit("SECOND")

    answer = arms.publish(arms.first, term="SECOND")

    (earlier,) = answer.get_json()["errors"]["json"]["earlier"]
    assert (answer.status_code, len(earlier["students"])) == (409, 20)


# Left out, and taken in


def left_out(*students, reason="Never was in this class"):
    return {"leave_out": [{"student": student, "reason": reason} for student in students]}


def publish(arms, *batches, term="FIRST", query="", **fields):
    return arms.api.post(f"/publications{query}", {"term": term, "batches": batches, **fields})


def test_a2_a_student_left_out_has_no_card_until_they_are_taken_in(api, anyone, place, arms):
    (first,) = arms.published(arms.first)
    top, second, third = arms.students[arms.first]
    codes = {pupil: code_of(api, pupil) for pupil in (top, second, third)}
    api.ok(arms.reopen(first))
    (rehearsed,) = api.ok(publish(arms, arms.first, query="?dry_run=true", **left_out(top)))

    (again,) = api.ok(publish(arms, arms.first, **left_out(top)))

    assert (rehearsed["students"], again["students"], again["changed"]) == (2, 2, 2)
    (entry,) = api.ok(api.get("/audit", query_string={"entity": "publication", "id": top}))["data"]
    where = {"batch": arms.first, "term": arms.terms["FIRST"]["id"]}
    reason = {"left_out": True, "reason": "Never was in this class"}
    assert entry["new"] == {**reason, "publication": again["id"], "version": 2, **where}
    assert card_of(api, second)["batch_figures"]["position"] == 1
    assert verify(anyone, place.id, codes[top]).get_json()["state"] == "WITHDRAWN"
    assert verify(anyone, place.id, codes[second]).get_json()["state"] == "REPLACED"
    assert api.ok(api.get(f"/students/{top}/transcript"))["sessions"] == []
    assert api.ok(result(api, top, version=1))["average"] == 90
    assert result(api, top, live="true").status_code == 404
    assert listed(broadsheet(api, arms.first, term="FIRST", live="true")) == [second, third]
    assert arms.publish(arms.second).status_code == 200
    # The second term does not ask for the card, and has the student.
    arms.mark("SECOND")
    arms.submit("SECOND")
    (later,) = api.ok(arms.publish(arms.first, term="SECOND"))
    assert (later["students"], card_of(api, top, "SECOND")["cumulative"]["terms"]) == (3, 1)
    api.ok(arms.reopen(later))
    api.ok(arms.reopen(again))
    # Again and again, until they are taken in.
    (third_version,) = api.ok(arms.publish(arms.first))
    assert third_version["students"] == 2
    api.ok(arms.reopen(third_version))
    (fourth,) = api.ok(publish(arms, arms.first, take_in=[top]))
    assert (fourth["students"], fourth["changed"]) == (3, 3)
    assert [verify(anyone, place.id, codes[pupil]).get_json()["state"] for pupil in codes] == ["CURRENT"] * 3
    entry, _ = api.ok(api.get("/audit", query_string={"entity": "publication", "id": top}))["data"]
    assert entry["new"] == {"taken_in": True, "publication": fourth["id"], "version": 4, **where}
    api.ok(arms.reopen(fourth))
    assert api.ok(arms.publish(arms.first))[0]["students"] == 3


def test_a2_a_graduate_is_left_out_and_taken_in_again(api, arms):
    (first,) = arms.published(arms.first)
    leaver = arms.students[arms.first][1]
    graduate(arms, leaver)
    before = card_of(api, leaver)
    api.ok(arms.reopen(first))
    (again,) = api.ok(publish(arms, arms.first, **left_out(leaver)))
    assert result(api, leaver).status_code == 404
    api.ok(arms.reopen(again))

    (third,) = api.ok(publish(arms, arms.first, take_in=[leaver]))

    assert (third["students"], third["left"]) == (3, [leaver])
    after = card_of(api, leaver)
    assert after == {**before, "version": 3, "published_at": after["published_at"]}


def test_a2_a_student_left_out_may_be_in_the_results_of_another_arm(api, arms):
    (first,) = arms.published(arms.first)
    mover = arms.students[arms.first][0]
    move(arms, mover)
    api.ok(arms.reopen(first))
    api.ok(publish(arms, arms.first, **left_out(mover)))

    (second,) = api.ok(arms.publish(arms.second))

    assert (second["students"], card_of(api, mover)["batch"]) == (4, arms.second)
    (first, *_) = arms.listed(batch=arms.first)
    api.ok(arms.reopen(first))
    answer = publish(arms, arms.first, take_in=[mover])
    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, ["take_in"])


def test_a2_a_student_left_out_of_both_arms_is_taken_into_their_own(api, arms):
    (first,) = arms.published(arms.first)
    mover = arms.students[arms.first][0]
    api.ok(arms.reopen(first))
    (first,) = api.ok(publish(arms, arms.first, **left_out(mover)))
    move(arms, mover)
    (second,) = api.ok(publish(arms, arms.second, **left_out(mover)))
    for publication in (first, second):
        api.ok(arms.reopen(publication))

    published = api.ok(publish(arms, arms.first, arms.second, take_in=[mover]))

    assert {row["batch"]: row["students"] for row in published} == {arms.first: 2, arms.second: 4}
    assert card_of(api, mover)["batch"] == arms.second
    for publication in published:
        api.ok(arms.reopen(publication))
    assert {row["batch"]: row["students"] for row in api.ok(arms.publish())} == {
        arms.first: 2,
        arms.second: 4,
    }


def test_a2_everybody_left_out_is_nobody(api, arms):
    answer = publish(arms, arms.first, **left_out(*arms.students[arms.first]))

    assert (answer.status_code, "There is nobody in" in message(answer)) == (409, True)


def test_a2_a_student_outside_the_batch_is_neither_left_out_nor_taken_in(api, make, make_other, arms):
    member, stranger = arms.students[arms.first][0], arms.students[arms.second][0]
    foreign, ours = make_other.student()["id"], make.student()["id"]
    for who in (stranger, str(uuid4()), foreign, ours):
        for fields in (left_out(who), {"take_in": [who]}):
            answer = publish(arms, arms.first, **fields)
            assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [*fields])
            known = who in (stranger, ours)
            assert (name_with_number(api, who) if known else who) in answer.get_json()["message"]
    answer = publish(arms, arms.first, **left_out(member, member))
    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, ["leave_out"])
    answer = publish(arms, arms.first, take_in=[member])
    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, ["take_in"])


@pytest.mark.parametrize(
    "fields",
    [
        {"leave_out": [{"student": str(uuid4())}]},
        {"leave_out": [{"student": "x", "reason": "x"}]},
        {"leave_out": [{"student": str(uuid4()), "reason": ""}]},
        {"leave_out": None},
        {"leave_out": [str(uuid4())]},
        {"leave_out": [{"student": str(uuid4()), "reason": "x"}] * 101},
        {"take_in": "x"},
        {"take_in": [1]},
        {"take_in": [str(uuid4())] * 101},
    ],
)
def test_a2_leave_out_and_take_in_of_a_wrong_form_are_refused(api, arms, fields):
    answer = publish(arms, arms.first, **fields)

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [*fields])
