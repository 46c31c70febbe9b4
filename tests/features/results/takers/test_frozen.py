"""A term that is published keeps its takers: published again it has its cards' takers, as changed while reopened."""

from __future__ import annotations

import pytest
from sqlalchemy import null, update

from school_service.core.database import db
from school_service.features.results.models import Publication
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.classes.cohort_subjects.test_taking import choose, drop, takers
from tests.features.results.publications.arms import Arms
from tests.features.results.takers.test_elective import change, entries


class Chosen(Arms):
    """Two arms with an elective, the last of the subjects, that one student of each has chosen; all is marked."""

    def __init__(self, make):
        super().__init__(make, 3, 1)
        self.elective = make.cohort_subject(self.cohort, elective=True)
        self.takers = [self.students[batch][0] for batch in (self.first, self.second)]
        self.api.ok(choose(self.api, self.elective, self.takers))
        self.mark()
        self.paper = make.assessment(self.elective, self.terms["FIRST"], category="EXAM", total_points=100)
        for student, batch in zip(self.takers, (self.first, self.second), strict=True):
            make.entry(self.paper, student, batch, 60)
        self.papers["FIRST", self.elective["id"]] = self.paper
        self.subjects.append(self.elective)

    def on_cards(self, version=None):
        """The students of the first arm with the elective on their card."""
        query = {"term": "FIRST", **({"version": version} if version else {})}
        return [
            student
            for student in self.students[self.first]
            if self.elective["id"] in self.subjects_of(student, **query)
        ]

    def subjects_of(self, student, **query):
        result = self.api.ok(self.api.get(f"/students/{student}/results", query_string=query))
        return [row["subject"]["id"] for row in result["subjects"]]

    def score(self, student, score):
        return self.make.entry(self.paper, student, self.first, score)

    def takers_in(self):
        """The takers of the elective in the first arm, by the list of submissions."""
        query = {"batch": self.first, "term": "FIRST"}
        listed = self.api.ok(self.api.get("/submissions", query_string=query))
        return next(row["takers"] for row in listed if row["cohort_subject"] == self.elective["id"])

    def reopened_subject(self):
        body = {"term": "FIRST", "batch": self.first, "reason": "x"}
        return self.api.post(f"/cohort-subjects/{self.elective['id']}/reopening", body)

    def submitted(self):
        body = {"term": "FIRST", "batch": self.first}
        return self.api.post(f"/cohort-subjects/{self.elective['id']}/submission", body)


@pytest.fixture(scope="module", autouse=True)
def made_arms(prepared):
    def build(make):
        # The subject is reopened for one arm alone.
        make.api.ok(make.api.patch("/result-settings", {"positions": "BATCH"}))
        return Chosen(make)

    return prepared(build)


def test_a_subject_made_compulsory_is_on_no_further_card_of_a_published_term(api, arms):
    first, _ = arms.published()
    api.ok(change(api, arms.elective, False))
    assert len(takers(api, arms.elective)) == 6

    api.ok(arms.reopen(first))
    api.ok(arms.reopened_subject())
    assert arms.takers_in() == 1
    # Nothing is blank: those who take it since were not examined.
    api.ok(arms.submitted())
    (again,) = api.ok(arms.publish(arms.first))

    assert (again["version"], again["changed"], arms.on_cards()) == (2, 0, arms.takers[:1])


def test_an_elective_dropped_after_the_publication_stays_on_the_card(api, arms):
    first, _ = arms.published()
    taker = arms.takers[0]
    api.ok(drop(api, arms.elective, taker))
    api.ok(arms.reopen(first))

    (again,) = api.ok(arms.publish(arms.first))

    assert (again["changed"], arms.on_cards()) == (0, [taker])
    live = api.ok(api.get(f"/students/{taker}/results", query_string={"term": "FIRST", "live": "true"}))
    assert arms.elective["id"] in [row["subject"]["id"] for row in live["subjects"]]


def test_an_elective_dropped_while_reopened_goes_from_the_card(api, arms):
    first, second = arms.published()
    taker = arms.takers[0]
    api.ok(arms.reopen(first))
    api.ok(drop(api, arms.elective, taker))

    (again,) = api.ok(arms.publish(arms.first))

    assert (arms.on_cards(), arms.on_cards(version=1)) == ([], [taker])
    # It was the act of that review: later ones begin with the cards in force.
    api.ok(choose(api, arms.elective, [taker]))
    api.ok(arms.reopen(again))
    api.ok(arms.publish(arms.first))
    assert arms.on_cards() == []
    assert api.ok(api.get(f"/publications/{second['id']}"))["state"] == "PUBLISHED"


def test_an_elective_taken_while_reopened_comes_onto_the_card_once_it_is_marked(api, arms):
    first, _ = arms.published()
    taker, other, third = arms.students[arms.first]
    api.ok(choose(api, arms.elective, [third]))
    api.ok(arms.reopen(first))
    api.ok(arms.reopened_subject())
    api.ok(choose(api, arms.elective, [other]))

    assert arms.takers_in() == 2
    refused = arms.submitted()
    (blank,) = refused.get_json()["errors"]["json"]["blanks"]
    assert (refused.status_code, blank["students"]) == (409, arms.admission_numbers([other]))
    arms.score(other, 44)
    api.ok(arms.submitted())
    api.ok(arms.publish(arms.first))

    # The third has it since, and not in that term.
    assert arms.on_cards() == [taker, other]


def test_a_taker_already_is_put_into_reopened_results_once(api, arms):
    first, _ = arms.published()
    other = arms.students[arms.first][1]
    api.ok(change(api, arms.elective, False))
    api.ok(arms.reopen(first))
    api.ok(arms.reopened_subject())

    for _ in range(2):
        api.ok(choose(api, arms.elective, [other]))

    assert arms.takers_in() == 2
    noted = entries(api, entity="subject-enrollment", id=other)
    assert [entry["new"] for entry in noted] == [{"cohort_subject": arms.elective["id"]}]


def test_the_last_act_on_a_student_holds(api, arms):
    first, _ = arms.published()
    taker = arms.takers[0]
    api.ok(arms.reopen(first))

    for act in (drop(api, arms.elective, taker), choose(api, arms.elective, [taker])):
        api.ok(act)
    assert arms.takers_in() == 1
    api.ok(drop(api, arms.elective, taker))
    assert arms.takers_in() == 0
    api.ok(choose(api, arms.elective, [taker]))
    (again,) = api.ok(arms.publish(arms.first))

    assert (again["changed"], arms.on_cards()) == (0, [taker])


def test_each_reopened_publication_of_the_cohort_notes_a_choice_and_no_other_does(api, make, arms):
    first, second = arms.published()
    other, elsewhere = arms.students[arms.first][1], make.cohort_subject(elective=True)
    api.ok(arms.reopen(first))
    api.ok(choose(api, arms.elective, [other]))
    api.ok(choose(api, elsewhere, []))

    with api.app.app_context(), in_transaction(SchoolBinding(api.school, read_only=True)):
        changed = {str(row.id): row.takers_changed for row in db.session.query(Publication)}

    noted = {"in": [other], "out": []}
    assert changed == {first["id"]: {arms.elective["id"]: noted}, second["id"]: {}}


def test_a_taker_excused_from_everything_is_still_one(api, arms):
    """The card is without the subject; a score that is found later brings it there."""
    taker = arms.takers[0]
    (entry,) = api.ok(
        api.get("/gradebooks", query_string={"assessment": arms.paper["id"], "student": taker})
    )["data"]
    api.ok(api.delete(f"/gradebooks/{entry['id']}"))
    api.ok(arms.make.absences(arms.paper, {taker: "EXCUSED"}))
    first, _ = arms.published()
    assert arms.on_cards() == []
    api.ok(drop(api, arms.elective, taker))
    api.ok(choose(api, arms.elective, [taker]))

    api.ok(arms.reopen(first))
    api.ok(arms.reopened_subject())
    assert arms.takers_in() == 1
    arms.score(taker, 71)
    api.ok(arms.submitted())
    api.ok(arms.publish(arms.first))

    assert arms.on_cards() == [taker]


def test_a_subject_made_since_the_publication_has_its_present_takers(api, make, arms):
    first, _ = arms.published()
    api.ok(arms.reopen(first))
    forgotten = make.cohort_subject(arms.cohort)
    paper = make.assessment(forgotten, arms.terms["FIRST"], category="EXAM", total_points=100)
    for student, batch in arms.everyone:
        make.entry(paper, student, batch, 50)
    api.ok(api.post(f"/cohort-subjects/{forgotten['id']}/submission", {"term": "FIRST"}))

    api.ok(arms.publish(arms.first))

    for student in arms.students[arms.first]:
        assert forgotten["id"] in arms.subjects_of(student, term="FIRST")


def test_a_newcomer_with_a_part_in_the_term_has_the_present_subjects(api, make, arms):
    first, _ = arms.published()
    api.ok(change(api, arms.elective, False))
    (late,) = make.enrolled(arms.cohort)
    api.ok(arms.reopen(first))
    for paper, subject in ((arms.papers["FIRST", subject["id"]], subject) for subject in arms.subjects):
        body = {"term": "FIRST", "batch": arms.first, "reason": "x"}
        api.ok(api.post(f"/cohort-subjects/{subject['id']}/reopening", body))
        make.entry(paper, late, arms.first, 30)
        body = {"term": "FIRST", "batch": arms.first}
        api.ok(api.post(f"/cohort-subjects/{subject['id']}/submission", body))
    (again,) = api.ok(arms.publish(arms.first))

    assert again["students"] == 4
    assert arms.elective["id"] in arms.subjects_of(late, term="FIRST")
    assert arms.on_cards() == arms.takers[:1]


def test_a_publication_of_an_earlier_release_is_published_anew_with_the_present_takers(api, arms):
    first, _ = arms.published()
    with api.app.app_context(), in_transaction(SchoolBinding(api.school)):
        db.session.execute(update(Publication).values(takers_changed=null()))
    api.ok(drop(api, arms.elective, arms.takers[0]))
    api.ok(arms.reopen(first))
    api.ok(choose(api, arms.elective, [arms.students[arms.first][1]]))

    refused = arms.publish(arms.first)

    assert refused.status_code == 409
    api.ok(drop(api, arms.elective, arms.students[arms.first][1]))
    api.ok(arms.publish(arms.first))
    assert arms.on_cards() == []


def test_the_chain_submits_a_subject_that_everyone_has_dropped_since(api, arms):
    first, _ = arms.published()
    api.ok(drop(api, arms.elective, arms.takers[0]))
    api.ok(arms.reopen(first))
    api.ok(arms.reopened_subject())

    answer = api.post(f"/publications/{first['id']}/reopening?dry_run=true", {})

    acts = [(act["act"], act["cohort_subject"]) for act in api.ok(answer)["chain"]]
    assert acts == [("SUBMIT", arms.elective["id"]), ("PUBLISH", None)]


def test_a_wrong_subject_is_taken_back_with_its_scores(api, arms):
    """It was taught to nobody: reopened, its assessment is deleted, and then it goes itself."""
    first, second = arms.published()
    for publication in (first, second):
        api.ok(arms.reopen(publication))
    body = {"term": "FIRST", "reason": "It is not taught here"}
    api.ok(api.post(f"/cohort-subjects/{arms.elective['id']}/reopening", body))
    api.ok(api.delete(f"/assessments/{arms.paper['id']}"))
    held = api.delete(f"/cohort-subjects/{arms.elective['id']}")
    assert (held.status_code, held.get_json()["message"]) == (
        409,
        "The cohort subject is in use by 2 subject enrollments.",
    )
    for student in arms.takers:
        api.ok(drop(api, arms.elective, student))
    api.ok(api.delete(f"/cohort-subjects/{arms.elective['id']}"))

    assert [publication["version"] for publication in api.ok(arms.publish())] == [2, 2]
    assert arms.on_cards() == []
    scores = [entry for entry in entries(api, entity="gradebook") if entry["action"] == "delete"]
    assert [entry["old"]["score"] for entry in scores] == [60, 60]


def test_the_score_of_a_mover_is_held_by_the_arm_of_their_card(api, make, arms):
    """The only one who takes the elective moves, is corrected under review, and is published again with the old arm."""
    taker, other = arms.takers
    api.ok(drop(api, arms.elective, other))
    first, _ = arms.published()
    make.enrolled(arms.cohort, {"id": taker}, batch=arms.second)
    query = {"assessment": arms.paper["id"], "student": taker}
    (entry,) = api.ok(api.get("/gradebooks", query_string=query))["data"]

    def correct(score):
        return api.patch(f"/gradebooks/{entry['id']}", {"score": score})

    assert correct(61).status_code == 409
    api.ok(arms.reopen(first))
    api.ok(arms.reopened_subject())
    assert correct(62).status_code == 200
    api.ok(arms.submitted())
    api.ok(arms.publish(arms.first))

    answer = correct(63)

    assert answer.status_code == 409
    assert "are submitted" in answer.get_json()["message"]
    assert api.delete(f"/gradebooks/{entry['id']}").status_code == 409
