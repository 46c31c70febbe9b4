"""Newcomers to an arm while its subjects are handed in, one after the other: the next submission judges them, too."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.features.results.publications.arms import Arms
from tests.features.results.submissions.classes import message
from tests.threads import run_concurrently

# One history in each run, the others before a release.
SEEDS = (1, *(pytest.param(seed, marks=pytest.mark.release) for seed in (2, 5)))
ACTS = 40


class HandedIn(Arms):
    """Two arms with two subjects, all marked, that are handed in one after the other."""

    def __init__(self, make: Any, students: int = 2, subjects: int = 2) -> None:
        super().__init__(make, students, subjects)
        self.mark(step=1)
        self.ids = [subject["id"] for subject in self.subjects]

    def hand_in(self, number: int, batch: str | None = None, **fields: Any) -> Any:
        """POST the submission of a subject."""
        body = {"term": "FIRST", **fields} | ({} if batch is None else {"batch": batch})
        return self.api.post(f"/cohort-subjects/{self.ids[number]}/submission", body)

    def take_back(self, number: int, batch: str | None = None) -> Any:
        """POST the reopening of a subject."""
        body = {"term": "FIRST", "reason": "A paper was found"} | ({} if batch is None else {"batch": batch})
        return self.api.post(f"/cohort-subjects/{self.ids[number]}/reopening", body)

    def come(self, batch: str) -> str:
        """Enroll somebody new."""
        (student,) = self.make.enrolled(self.cohort, self.make.student(first_name="Zainab"), batch=batch)
        return str(student)

    def rows(self) -> list[dict[str, Any]]:
        """The submissions of all arms."""
        query = {"cohort": self.cohort["id"], "term": "FIRST"}
        return self.api.ok(self.api.get("/submissions", query_string=query))

    def row(self, number: int, batch: str) -> tuple[str, int, int]:
        """State, takers and blanks of a subject in an arm."""
        (row,) = [
            row for row in self.rows() if (row["cohort_subject"], row["batch"]) == (self.ids[number], batch)
        ]
        return row["state"], row["takers"], row["blanks"]

    def paper(self, number: int) -> str:
        """The assessment of a subject."""
        return str(self.papers["FIRST", self.ids[number]]["id"])

    def away(self, number: int) -> dict[str, str]:
        """The absences of a subject, by student."""
        absences = self.api.ok(self.api.get(f"/assessments/{self.paper(number)}/absences"))
        return {absence["student"]["id"]: absence["status"] for absence in absences}


@pytest.fixture(scope="module", autouse=True)
def made_arms(prepared):
    return prepared(HandedIn)


def blanks(answer):
    """The admission numbers that a refusal names."""
    assert answer.status_code == 409, answer.get_json()
    return [number for blank in answer.get_json()["errors"]["json"]["blanks"] for number in blank["students"]]


@pytest.mark.parametrize("with_batch", [True, False])
def test_a_newcomer_between_two_subjects_is_blank_in_the_second(arms, with_batch):
    batch = arms.first if with_batch else None
    arms.api.ok(arms.hand_in(0, batch))
    late = arms.come(arms.first)

    assert arms.row(1, arms.first) == ("OPEN", 3, 1)
    assert blanks(arms.hand_in(1, batch)) == arms.admission_numbers([late])
    assert arms.away(1) == {}


@pytest.mark.parametrize("with_batch", [True, False])
@pytest.mark.parametrize("status", ["ABSENT", "EXCUSED"])
def test_the_blanks_of_a_newcomer_become_absences_and_all_is_published(arms, with_batch, status):
    batch = arms.first if with_batch else None
    arms.api.ok(arms.hand_in(0, batch))
    late = arms.come(arms.first)

    submitted = arms.api.ok(arms.hand_in(1, batch, blanks=status))

    assert (submitted["state"], submitted["blanks"]) == ("SUBMITTED", 0)
    assert submitted["takers"] == (3 if with_batch else 5)
    assert arms.away(1) == {late: status}
    # The subject handed in before they came lacks them: it is handed in once more.
    arms.api.ok(arms.hand_in(0))
    arms.api.ok(arms.hand_in(1))
    assert arms.row(0, arms.first) == ("SUBMITTED", 3, 1)
    answer = arms.publish()
    assert (answer.status_code, message(answer).count(arms.subjects[0]["subject"])) == (409, 1)
    arms.api.ok(arms.take_back(0, arms.first))
    assert blanks(arms.hand_in(0, batch)) == arms.admission_numbers([late])
    arms.api.ok(arms.hand_in(0, batch, blanks="ABSENT"))
    assert [publication["students"] for publication in arms.api.ok(arms.publish())] == [3, 2]


def test_a_newcomer_once_all_is_handed_in_has_no_part(arms):
    arms.submit()
    late = arms.come(arms.first)

    for number in range(2):
        assert arms.api.ok(arms.hand_in(number))["takers"] == 4
        assert arms.row(number, arms.first) == ("SUBMITTED", 2, 0)
    assert [publication["students"] for publication in arms.api.ok(arms.publish())] == [2, 2]
    assert arms.api.get(f"/students/{late}/report-card?term=FIRST").status_code == 404


def test_a_newcomer_is_judged_in_the_arm_that_is_handed_in_alone(arms):
    arms.api.ok(arms.hand_in(0))
    late = arms.come(arms.second)

    assert arms.api.ok(arms.hand_in(1, arms.first))["blanks"] == 0
    for batch in (arms.second, None):
        assert blanks(arms.hand_in(1, batch)) == arms.admission_numbers([late])
    arms.api.ok(arms.hand_in(1, blanks="EXCUSED"))
    assert arms.away(1) == {late: "EXCUSED"}


def test_a_mover_between_two_submissions_is_judged_in_the_new_arm(arms):
    """The scores of a mover go with them; a mover without one is blank in the new arm."""
    blank, scored = arms.students[arms.first]
    arms.api.ok(arms.hand_in(0, arms.second))
    paper = {"assessment": arms.paper(1), "student": blank}
    (entry,) = arms.api.ok(arms.api.get("/gradebooks", query_string=paper))["data"]
    arms.api.ok(arms.api.delete(f"/gradebooks/{entry['id']}"))
    for student in (blank, scored):
        arms.make.enrolled(arms.cohort, {"id": student}, batch=arms.second)

    assert blanks(arms.hand_in(1, arms.second)) == arms.admission_numbers([blank])
    submitted = arms.api.ok(arms.hand_in(1, arms.second, blanks="ABSENT"))
    assert (submitted["takers"], submitted["blanks"]) == (4, 0)


def test_a_student_come_and_gone_between_two_submissions_is_no_blank(arms):
    arms.api.ok(arms.hand_in(0))
    removed, withdrawn = arms.come(arms.first), arms.come(arms.first)
    body = {"student_ids": [removed]}
    arms.api.ok(arms.api.patch(f"/cohorts/{arms.cohort['id']}/remove_students", body))
    arms.api.ok(arms.api.patch(f"/students/{withdrawn}", {"status": "WITHDRAWN"}))

    assert arms.api.ok(arms.hand_in(1))["takers"] == 4


def test_a_newcomer_is_a_blank_of_an_elective_only_as_its_taker(arms):
    elective = arms.make.cohort_subject(arms.cohort, elective=True)
    arms.ids.append(elective["id"])
    arms.papers["FIRST", elective["id"]] = arms.make.assessment(elective, arms.terms["FIRST"])
    arms.api.ok(arms.hand_in(0))
    arms.come(arms.first)
    chosen = arms.come(arms.first)

    assert arms.row(2, arms.first) == ("OPEN", 0, 0)
    arms.api.ok(arms.api.patch(f"/cohort-subjects/{elective['id']}/students", [chosen]))

    # They are the first who take it: the arm is handed in, and another stays open.
    assert arms.row(2, arms.first) == ("OPEN", 1, 1)
    assert blanks(arms.hand_in(2)) == arms.admission_numbers([chosen])
    assert arms.api.ok(arms.hand_in(2, blanks="EXCUSED"))["state"] == "SUBMITTED"
    assert arms.row(2, arms.first) == ("SUBMITTED", 1, 0)
    assert arms.row(2, arms.second) == ("OPEN", 0, 0)


def test_a_correction_before_anything_is_published_judges_newcomers(arms):
    arms.submit()
    late = arms.come(arms.second)
    arms.api.ok(arms.take_back(0))

    assert arms.row(0, arms.second) == ("OPEN", 3, 1)
    assert blanks(arms.hand_in(0)) == arms.admission_numbers([late])
    assert arms.api.ok(arms.hand_in(0, blanks="ABSENT"))["blanks"] == 0


@pytest.mark.parametrize("positions", ["BOTH", "BATCH"])
def test_a_correction_of_published_results_lets_nobody_in(arms, positions):
    """An arm that is made later stays without a part, too, until it is handed in by itself."""
    arms.api.ok(arms.api.patch("/result-settings", {"positions": positions}))
    published = arms.published()
    late = arms.come(arms.first)
    new = arms.make.batch(arms.cohort)["id"]
    newest = arms.come(new)
    for publication in published:
        arms.api.ok(arms.reopen(publication))
    arms.api.ok(arms.take_back(0))

    assert arms.row(0, arms.first) == ("OPEN", 2, 0)
    assert arms.row(0, new) == ("OPEN", 0, 0)
    corrected = arms.api.ok(arms.hand_in(0))

    assert (corrected["state"], corrected["takers"]) == ("SUBMITTED", 4)
    assert arms.row(0, new) == ("OPEN", 0, 0)
    assert [publication["students"] for publication in arms.api.ok(arms.publish())] == [2, 2]
    assert arms.api.get(f"/students/{late}/report-card?term=FIRST").status_code == 404
    assert blanks(arms.hand_in(0, new)) == arms.admission_numbers([newest])
    for number in range(2):
        assert arms.api.ok(arms.hand_in(number, new, blanks="ABSENT"))["takers"] == 1
    assert arms.api.ok(arms.publish(new))[0]["students"] == 1


def test_students_of_a_later_arm_without_a_score_are_judged_with_scored_ones(arms):
    for publication in arms.published():
        arms.api.ok(arms.reopen(publication))
    new = arms.make.batch(arms.cohort)["id"]
    scored, blank = arms.come(new), arms.come(new)
    for number in range(2):
        arms.api.ok(arms.take_back(number))
        arms.make.entry(arms.papers["FIRST", arms.ids[number]], scored, new, 50)

    assert arms.row(0, new) == ("OPEN", 1, 0)
    assert blanks(arms.hand_in(0)) == arms.admission_numbers([blank])
    for number in range(2):
        arms.api.ok(arms.hand_in(number, blanks="ABSENT"))
        assert arms.row(number, new) == ("SUBMITTED", 2, 0)
    assert [row["students"] for row in arms.api.ok(arms.publish(arms.first, arms.second, new))] == [2, 2, 2]


def test_of_many_newcomers_beside_a_submission_none_is_blank_in_it(committing):
    """A newcomer before it is in it, and one after it has no part in the term."""
    arms = HandedIn(committing)
    arms.api.ok(arms.hand_in(0))
    coming = [arms.make.student() for _ in range(7)]

    def work(number):
        api = arms.api.using()
        if number == 7:
            body = {"term": "FIRST", "blanks": "EXCUSED", "batch": arms.first}
            return api.post(f"/cohort-subjects/{arms.ids[1]}/submission", body)
        body = {"batch": arms.first, "students": [coming[number]["id"]]}
        return api.post(f"/cohorts/{arms.cohort['id']}/enrollment", body)

    for answer in run_concurrently(8, work):
        arms.api.ok(answer)

    state, takers, missing = arms.row(1, arms.first)
    assert (state, missing) == ("SUBMITTED", 0)
    assert takers == 2 + len(arms.away(1))


# A random history


class Model:
    """The state of a history: arms of students, with the moments of coming, their scores, and subjects handed in."""

    def __init__(self, arms: HandedIn, random: Random) -> None:
        self.arms, self.random, self.moment = arms, random, 0
        self.batches = [arms.first, arms.second]
        self.place = {student: (batch, 0) for student, batch in arms.everyone}
        self.takes = {(number, student) for number in range(2) for student in self.place}
        self.marked = set(self.takes)
        self.held: dict[tuple[int, str], int] = {}
        self.refused: Counter[bool] = Counter()

    def belongs(self, student: str, *, at_submission: bool = False) -> bool:
        """Whether somebody belongs to their arm, or does once a subject is handed in."""
        batch, since = self.place[student]
        closed = max((at for (_, arm), at in self.held.items() if arm == batch), default=None)
        has_any = any(whose == student for _, whose in self.marked)
        return at_submission or closed is None or since <= closed or has_any

    def takers(self, number: int, batch: str, *, at_submission: bool = False) -> list[str]:
        return [
            student
            for student, (arm, _) in self.place.items()
            if arm == batch
            and (number, student) in self.takes
            and self.belongs(student, at_submission=at_submission)
        ]

    def missing(self, number: int, students: list[str]) -> list[str]:
        return [student for student in students if (number, student) not in self.marked]

    def act(self) -> None:
        self.moment += 1
        acts = {
            self.come: 3,
            self.move: 2,
            self.go: 1,
            self.choose: 2,
            self.score: 2,
            self.hand_in: 6,
            self.take_back: 4,
        }
        self.random.choices([*acts], [*acts.values()])[0]()

    def anyone(self) -> str:
        return self.random.choice([*self.place])

    def come(self) -> None:
        batch = self.random.choice(self.batches)
        student = self.arms.come(batch)
        self.place[student] = batch, self.moment
        self.takes |= {(number, student) for number in range(2)}

    def move(self) -> None:
        student = self.anyone()
        batch = next(batch for batch in self.batches if batch != self.place[student][0])
        self.arms.make.enrolled(self.arms.cohort, {"id": student}, batch=batch)
        self.place[student] = batch, self.moment

    def go(self) -> None:
        if len(self.place) < 3:
            return
        student = self.anyone()
        body = {"student_ids": [student]}
        path = f"/cohorts/{self.arms.cohort['id']}/remove_students"
        self.arms.api.ok(self.arms.api.patch(path, body))
        del self.place[student]
        self.takes = {pair for pair in self.takes if pair[1] != student}

    def choose(self) -> None:
        student = self.anyone()
        path = f"/cohort-subjects/{self.arms.ids[2]}/students"
        self.arms.api.ok(self.arms.api.patch(path, [student]))
        self.takes.add((2, student))

    def score(self) -> None:
        blank = [
            (number, student)
            # In the order in which they came: ids would be another history with each run.
            for number in range(3)
            for student in self.place
            if (number, student) in self.takes - self.marked
            and not any(which == number for which, _ in self.held)
        ]
        if blank:
            number, student = self.random.choice(blank)
            paper = self.arms.papers["FIRST", self.arms.ids[number]]
            self.arms.make.entry(paper, student, self.place[student][0], 50)
            self.marked.add((number, student))

    def hand_in(self) -> None:
        number, batch = self.random.randrange(3), self.random.choice([None, *self.batches])
        self.submit(number, batch, self.random.choice(["REFUSE", "ABSENT", "EXCUSED"]))

    def submit(self, number: int, batch: str | None, blank: str) -> None:
        """Hand in an arm or all, and hold the answer against the model."""
        open_ = [arm for arm in ([batch] if batch else self.batches) if (number, arm) not in self.held]
        takers = {arm: self.takers(number, arm, at_submission=True) for arm in open_}
        if batch is None:
            begun = any(which == number for which, _ in self.held)
            taken = {arm: students for arm, students in takers.items() if students}
            takers = taken if taken or begun else takers
        missing = self.missing(number, [student for students in takers.values() for student in students])
        answer = self.arms.hand_in(number, batch, blanks=blank)
        if missing:
            self.refused[blank == "REFUSE"] += 1
        if missing and blank == "REFUSE":
            assert sorted(blanks(answer)) == sorted(self.arms.admission_numbers(missing))
            return
        self.arms.api.ok(answer)
        self.marked |= {(number, student) for student in missing}
        self.held |= {(number, arm): self.moment for arm in takers}
        for arm in takers:
            assert self.arms.row(number, arm) == ("SUBMITTED", len(takers[arm]), 0)

    def take_back(self) -> None:
        if self.held:
            number, batch = self.random.choice([*self.held])
            self.arms.api.ok(self.arms.take_back(number, batch))
            del self.held[number, batch]

    def check(self) -> None:
        """Compare every row of the list."""
        begun = {batch for _, batch in self.held}
        for row in self.arms.rows():
            number, batch = self.arms.ids.index(row["cohort_subject"]), row["batch"]
            is_open = (number, batch) not in self.held
            takers = self.takers(number, batch, at_submission=is_open and batch in begun)
            told = row["state"], row["takers"], row["blanks"]
            state = "OPEN" if is_open else "SUBMITTED"
            assert told == (state, len(takers), len(self.missing(number, takers)))


@pytest.mark.parametrize("seed", SEEDS)
def test_in_random_histories_no_blank_is_handed_in_and_all_can_be_published(arms, seed):
    elective = arms.make.cohort_subject(arms.cohort, elective=True)
    arms.ids.append(elective["id"])
    paper = arms.make.assessment(elective, arms.terms["FIRST"], total_points=100)
    arms.papers["FIRST", elective["id"]] = paper
    model = Model(arms, Random(seed))
    for _ in range(ACTS):
        model.act()
        model.check()

    assert min(model.refused[refused] for refused in (True, False)) > 0
    for _ in range(2):  # A student let in by one subject is a blank of those handed in before.
        model.moment += 1
        for row in arms.rows():
            if row["state"] == "SUBMITTED" and row["blanks"]:
                number = arms.ids.index(row["cohort_subject"])
                arms.api.ok(arms.take_back(number, row["batch"]))
                del model.held[number, row["batch"]]
        for number in range(3):
            model.submit(number, None, "ABSENT")
        model.check()
    arms.api.ok(arms.publish(*dict.fromkeys(batch for batch, _ in model.place.values())))
