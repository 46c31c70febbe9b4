"""A subject becomes compulsory while others enroll, submit and publish; students choose while results are reopened."""

from __future__ import annotations

from school_service.core.database import db
from school_service.features.results.models import Publication
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.classes.cohort_subjects.test_taking import choose, drop, takers
from tests.features.results.publications.arms import Arms
from tests.features.results.publications.test_at_once import cards
from tests.features.results.takers.test_elective import change
from tests.features.results.takers.test_frozen import Chosen
from tests.threads import run_concurrently


def noted(api, publication):
    """The changes of takers that a publication notes."""
    with api.app.app_context(), in_transaction(SchoolBinding(api.school, read_only=True)):
        return db.session.get(Publication, publication["id"]).takers_changed


def reopen(api, publication):
    return api.post(f"/publications/{publication['id']}/reopening", {"reason": "x"})


def test_students_enrolled_meanwhile_take_a_subject_that_becomes_compulsory(committing):
    api, cohort = committing.api, committing.cohort()
    subjects = [committing.cohort_subject(cohort, elective=True) for _ in range(8)]
    students = [committing.student()["id"] for _ in range(12)]

    def work(number):
        if number < len(students):
            body = {"students": [students[number]], "batch": cohort["id"]}
            return api.using().post(f"/cohorts/{cohort['id']}/enrollment", body)
        return change(api.using(), subjects[number - len(students)], False)

    answers = run_concurrently(20, work)

    assert {answer.status_code for answer in answers} == {200}
    for subject in subjects:
        assert takers(api, subject) == sorted(students)


def test_students_who_leave_meanwhile_take_no_subject_that_becomes_compulsory(committing):
    api, cohort = committing.api, committing.cohort()
    subjects = [committing.cohort_subject(cohort, elective=True) for _ in range(6)]
    students = committing.enrolled(cohort, *(committing.student() for _ in range(28)))

    def work(number):
        if number < 6:
            return change(api.using(), subjects[number], False)
        if number < 13:
            leaving = students[:14][number - 6 :: 7]
            return api.using().patch(f"/cohorts/{cohort['id']}/remove_students", {"student_ids": leaving})
        for leaving in students[14:][number - 13 :: 7]:
            answer = api.using().post("/graduates", {"student": leaving})
        return answer

    answers = run_concurrently(20, work)

    assert {answer.status_code for answer in answers} == {200}
    assert [takers(api, subject) for subject in subjects] == [[]] * 6


def test_of_several_changes_at_once_the_audit_log_has_each_that_was_made(committing):
    api, subject = committing.api, committing.cohort_subject()

    answers = run_concurrently(8, lambda number: change(api.using(), subject, bool(number % 2)))

    assert {answer.status_code for answer in answers} == {200}
    entries = api.ok(api.get("/audit", query_string={"id": subject["id"]}))["data"]
    steps = [entry["new"]["elective"] for entry in reversed(entries) if entry["action"] == "update"]
    assert steps == [number % 2 == 0 for number in range(len(steps))]
    assert api.ok(api.get(f"/cohort-subjects/{subject['id']}"))["elective"] is bool(len(steps) % 2)


def test_a_submission_at_the_same_moment_has_the_takers_of_before_or_of_after(committing):
    for _ in range(4):
        arms = Arms(committing, 2, 1)
        api = arms.api
        elective = committing.cohort_subject(arms.cohort, elective=True)
        arms.mark()
        committing.assessment(elective, arms.terms["FIRST"], category="EXAM")
        api.ok(choose(api, elective, arms.students[arms.first][:1]))
        body = {"term": "FIRST", "blanks": "ABSENT"}
        path = f"/cohort-subjects/{elective['id']}/submission"
        arms.submit()

        def work(number, elective=elective, api=api, path=path, body=body):
            return change(api.using(), elective, False) if number else api.using().post(path, body)

        submitted, changed = run_concurrently(2, work)

        assert submitted.status_code == 200
        assert changed.status_code in {200, 409}
        # Nothing is blank that was submitted.
        api.ok(arms.publish())
        taking = 4 if changed.status_code == 200 else 1
        frozen = [row for card in cards(api).values() for row in card["subjects"]]
        assert sum(row["subject"]["id"] == elective["id"] for row in frozen) == taking


def test_a_publication_at_the_same_moment_has_the_takers_of_before(committing):
    for _ in range(4):
        arms = Chosen(committing)
        api = arms.api
        arms.submit()

        def work(number, arms=arms, api=api):
            if number:
                return change(api.using(), arms.elective, False)
            body = {"term": "FIRST", "batches": [arms.first, arms.second]}
            return api.using().post("/publications", body)

        published, changed = run_concurrently(2, work)

        assert published.status_code == 200
        # Before the publication the submission holds the subject.
        assert changed.status_code in {200, 409}
        assert arms.on_cards() == arms.takers[:1]


def test_choices_and_drops_at_once_are_all_noted(committing):
    arms = Chosen(committing)
    api = arms.api
    first, second = arms.published()
    everyone = [student for student, _ in arms.everyone]
    others = [student for student in everyone if student not in arms.takers]

    for publication in (first, second):
        api.ok(arms.reopen(publication))

    def act(number):
        if number < len(others):
            return choose(api.using(), arms.elective, [others[number]])
        return drop(api.using(), arms.elective, arms.takers[number - len(others)])

    assert {answer.status_code for answer in run_concurrently(len(everyone), act)} == {200}
    for publication in (first, second):
        of_subject = noted(api, publication)[arms.elective["id"]]
        assert sorted(of_subject["in"]) == sorted(others)
        assert sorted(of_subject["out"]) == sorted(arms.takers)


def test_a_choice_and_the_reopening_at_once_are_noted_if_the_reopening_came_before(committing):
    arms = Chosen(committing)
    api = arms.api
    first, _ = arms.published()
    other = arms.students[arms.first][1]

    def work(number):
        return choose(api.using(), arms.elective, [other]) if number else reopen(api.using(), first)

    assert {answer.status_code for answer in run_concurrently(2, work)} == {200}

    assert noted(api, first) in ({}, {arms.elective["id"]: {"in": [other], "out": []}})
    assert other in takers(api, arms.elective)


def test_a_choice_and_the_next_version_at_once_agree(committing):
    """A student who is put in before it is published is blank there: 409; after it, only takes the subject from now."""
    for _ in range(4):
        arms = Chosen(committing)
        api = arms.api
        first, _ = arms.published()
        api.ok(arms.reopen(first))
        other = arms.students[arms.first][1]

        def work(number, api=api, arms=arms, other=other):
            if number:
                return choose(api.using(), arms.elective, [other])
            return api.using().post("/publications", {"term": "FIRST", "batches": [arms.first]})

        published, chosen = run_concurrently(2, work)

        assert chosen.status_code == 200
        assert published.status_code in {200, 409}
        assert arms.on_cards() == arms.takers[:1]
        if published.status_code == 200:
            assert noted(api, published.get_json()[0]) == {}
