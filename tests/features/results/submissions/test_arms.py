"""Submissions by arm: the submission of one arm holds its own students, and writes that concern all arms."""

from __future__ import annotations

from io import BytesIO
from uuid import uuid4

import pytest

from tests.features.results.publications.arms import Arms
from tests.features.results.submissions.classes import message
from tests.features.results.submissions.test_submissions import logged
from tests.features.scores.scoresheets.sheets import opened, sheet_of
from tests.threads import run_concurrently


class TwoArms(Arms):
    """Two arms with an assessment in each subject, all marked."""

    def __init__(self, make, students=2, subjects=1):
        super().__init__(make, students, subjects)
        self.mark(step=1)
        self.subject = self.subjects[0]["id"]
        self.paper = self.papers["FIRST", self.subject]["id"]
        self.name = self.subjects[0]["subject"]
        batches = self.api.ok(self.api.get(f"/cohorts/{self.cohort['id']}/batches"))
        self.b = next(batch["name"] for batch in batches if batch["id"] == self.second)

    def refusal(self, arm):
        return f"The results of {self.name}, First term, are submitted for {arm}: reopen them first."

    def hand_in(self, batch=None, *, subject=None, **fields):
        body = {"term": "FIRST", **fields} | ({} if batch is None else {"batch": batch})
        return self.api.post(f"/cohort-subjects/{subject or self.subject}/submission", body)

    def take_back(self, batch=None, **fields):
        body = {"term": "FIRST", "reason": "A paper was found", **fields}
        body |= {} if batch is None else {"batch": batch}
        return self.api.post(f"/cohort-subjects/{self.subject}/reopening", body)

    def rows(self, **query):
        query = query or {"cohort": self.cohort["id"]}
        return self.api.ok(self.api.get("/submissions", query_string={"term": "FIRST", **query}))

    def states(self):
        return {row["batch_name"]: row["state"] for row in self.rows()}

    def entry(self, student):
        query = {"assessment": self.paper, "student": student}
        (entry,) = self.api.ok(self.api.get("/gradebooks", query_string=query))["data"]
        return f"/gradebooks/{entry['id']}"

    def upload(self, *rows, query=""):
        form = {"scoresheet": (BytesIO(sheet_of(*rows)), "scores.xlsx")}
        return self.api.post(f"/assessments/{self.paper}/scoresheet{query}", data=form)

    def row(self, student, score):
        (number,) = self.admission_numbers([student])
        return (number, None, None, score)

    def settings(self, positions):
        self.api.ok(self.api.patch("/result-settings", {"positions": positions}))


@pytest.fixture(scope="module", autouse=True)
def made_arms(prepared):
    return prepared(TwoArms)


def workbook_rows(answer):
    """The rows of a downloaded score sheet."""
    return [row for row in opened(answer)["Scores"].iter_rows(values_only=True) if any(row)]


def test_an_arm_is_submitted_by_itself(arms):
    submitted = arms.api.ok(arms.hand_in(arms.first))

    assert (submitted["batch"], submitted["batch_name"], submitted["state"]) == (arms.first, "A", "SUBMITTED")
    assert (submitted["takers"], submitted["assessments"], submitted["blanks"]) == (2, 1, 0)
    assert arms.states() == {"A": "SUBMITTED", arms.b: "OPEN"}
    # A subject is submitted when all its arms are, and then as the last of them was.
    last = arms.api.ok(arms.hand_in(arms.second))
    of_all = arms.api.ok(arms.hand_in())
    assert of_all == {**last, "batch": None, "batch_name": None, "takers": 4}
    assert arms.rows(batch=arms.first) == [submitted]
    assert arms.rows(batch=arms.second) == [last]
    assert arms.rows() == [submitted, last]


def test_without_a_batch_every_arm_with_takers_is_submitted_as_one(arms):
    empty = arms.make.batch(arms.cohort, name="C")["id"]

    submitted = arms.api.ok(arms.hand_in())

    assert (submitted["batch"], submitted["batch_name"]) == (None, None)
    assert (submitted["state"], submitted["takers"]) == ("SUBMITTED", 4)
    assert arms.states() == {"A": "SUBMITTED", arms.b: "SUBMITTED", "C": "OPEN"}
    assert [row["batch"] for row in arms.rows(batch=empty)] == [empty]
    # A newcomer to an arm that was not submitted finds it open.
    arms.make.enrolled(arms.cohort, arms.make.student(), batch=empty)
    again = arms.api.ok(arms.hand_in(blanks="EXCUSED"))
    assert (again["state"], again["takers"]) == ("SUBMITTED", 5)
    assert set(arms.states().values()) == {"SUBMITTED"}


def test_the_rest_is_submitted_when_no_batch_is_named(arms):
    arms.api.ok(arms.hand_in(arms.first))

    partly = arms.rows(batch=arms.first)
    assert arms.api.ok(arms.hand_in())["state"] == "SUBMITTED"

    assert arms.rows(batch=arms.first) == partly
    entries = logged(arms.api, "submission", arms.subject)
    assert [new["batches"] for _, _, new in entries] == [[arms.second], [arms.first]]
    assert [new["takers"] for _, _, new in entries] == [2, 2]


def test_the_blanks_of_an_arm_are_its_own(arms):
    (newcomer,) = arms.make.enrolled(arms.cohort, arms.make.student(), batch=arms.second)
    (number,) = arms.admission_numbers([newcomer])

    assert arms.api.ok(arms.hand_in(arms.first))["blanks"] == 0
    for batch in (arms.second, None):
        answer = arms.hand_in(batch)
        assert answer.status_code == 409
        (blank,) = answer.get_json()["errors"]["json"]["blanks"]
        assert blank["students"] == [number]
    assert [(row["batch_name"], row["blanks"]) for row in arms.rows()] == [("A", 0), (arms.b, 1)]

    arms.api.ok(arms.hand_in(arms.second, blanks="ABSENT"))
    away = arms.api.ok(arms.api.get(f"/assessments/{arms.paper}/absences"))
    assert [absence["student"]["id"] for absence in away] == [newcomer]


def test_scores_of_a_submitted_arm_are_held_and_of_the_other_are_open(arms):
    api, (first, second) = arms.api, (arms.students[arms.first][0], arms.students[arms.second][0])
    api.ok(api.delete(arms.entry(arms.students[arms.first][1])))
    api.ok(api.delete(arms.entry(arms.students[arms.second][1])))
    api.ok(arms.hand_in(arms.first, blanks="EXCUSED"))
    blank, open_ = arms.students[arms.first][1], arms.students[arms.second][1]
    away = f"/assessments/{arms.paper}/absences"

    def score(student, batch):
        body = {"assessment": arms.paper, "student": student, "batch": batch, "score": 3}
        return api.post("/gradebooks", body)

    def absent(*students):
        return api.put(away, {"absences": [{"student": student, "status": "ABSENT"} for student in students]})

    for answer in (
        score(blank, arms.first),
        api.patch(arms.entry(first), {"score": 3}),
        api.delete(arms.entry(first)),
        absent(blank),
        absent(open_, blank),
        api.delete(f"{away}/{blank}"),
        arms.upload(arms.row(first, 3), arms.row(second, 3)),
        arms.upload(arms.row(first, 3), query="?dry_run=true"),
        arms.upload(arms.row(first, 3), query=f"?batch={arms.first}"),
    ):
        assert (answer.status_code, message(answer)) == (409, arms.refusal("A"))

    api.ok(absent(open_))
    api.ok(api.delete(f"{away}/{open_}"))
    api.ok(score(open_, arms.second))
    api.ok(api.patch(arms.entry(second), {"score": 3}))
    api.ok(api.delete(arms.entry(open_)))
    counts = api.ok(arms.upload(arms.row(first, 90), arms.row(open_, 7), arms.row(second, 8)))
    # A row that repeats a score of a submitted arm changes nothing.
    assert (counts["created"], counts["updated"], counts["unchanged"]) == (1, 1, 1)


def test_an_assessment_of_all_arms_is_held_once_any_is_submitted(arms):
    api = arms.api
    api.ok(arms.hand_in(arms.second))
    paper = {**arms.papers["FIRST", arms.subject], "description": "x", "subject": arms.subject}
    paper.pop("id")

    for answer in (api.delete(f"/assessments/{arms.paper}"), api.post("/assessments", paper)):
        assert (answer.status_code, message(answer)) == (409, arms.refusal(arms.b))

    api.ok(arms.take_back(arms.second))
    api.ok(api.delete(f"/assessments/{arms.paper}"))
    api.ok(api.post("/assessments", paper))


def test_both_arms_are_named_as_the_whole(arms):
    arms.api.ok(arms.hand_in())

    answer = arms.api.delete(f"/assessments/{arms.paper}")

    assert message(answer) == f"The results of {arms.name}, First term, are submitted: reopen them first."


def test_an_arm_is_reopened_by_itself(arms):
    arms.api.ok(arms.hand_in())

    opened = arms.api.ok(arms.take_back(arms.first))

    assert (opened["batch"], opened["state"], opened["submitted_at"]) == (arms.first, "OPEN", None)
    assert arms.states() == {"A": "OPEN", arms.b: "SUBMITTED"}
    arms.api.ok(arms.api.patch(arms.entry(arms.students[arms.first][0]), {"score": 3}))
    assert arms.api.patch(arms.entry(arms.students[arms.second][0]), {"score": 3}).status_code == 409
    assert arms.api.ok(arms.take_back(arms.first)) == opened
    _, old, new = logged(arms.api, "submission", arms.subject)[0]
    term = arms.terms["FIRST"]["id"]
    assert old == {"state": "SUBMITTED", "term": term, "batches": [arms.first]}
    assert new == {"state": "OPEN", "term": term, "batches": [arms.first], "reason": "A paper was found"}
    # Without a batch all that is submitted.
    assert arms.api.ok(arms.take_back())["state"] == "OPEN"
    assert set(arms.states().values()) == {"OPEN"}


def test_an_arm_that_was_never_submitted_cant_be_reopened(arms):
    arms.api.ok(arms.hand_in(arms.first))

    answer = arms.take_back(arms.second)

    assert (answer.status_code, message(answer)) == (
        409,
        "The results of this subject and term were never submitted.",
    )


def test_scores_of_a_mover_between_arms_are_held_by_both(arms):
    """The submission that had the student stays as it was, and so does the one of their present arm."""
    student = arms.students[arms.first][0]
    arms.api.ok(arms.hand_in(arms.first))
    arms.make.enrolled(arms.cohort, {"id": student}, batch=arms.second)

    assert message(arms.api.patch(arms.entry(student), {"score": 3})) == arms.refusal("A")
    arms.api.ok(arms.take_back(arms.first))
    arms.api.ok(arms.api.patch(arms.entry(student), {"score": 3}))

    arms.api.ok(arms.hand_in(arms.second))
    assert message(arms.api.patch(arms.entry(student), {"score": 4})) == arms.refusal(arms.b)
    # A submission after they left is not about them.
    arms.api.ok(arms.hand_in(arms.first))
    arms.api.ok(arms.take_back(arms.second))
    arms.api.ok(arms.api.patch(arms.entry(student), {"score": 5}))


def test_a_score_of_a_leaver_of_the_cohort_is_held_once_any_arm_is_submitted(arms):
    student = arms.students[arms.first][0]
    path = arms.entry(student)
    body = {"student_ids": [student]}
    arms.api.ok(arms.api.patch(f"/cohorts/{arms.cohort['id']}/remove_students", body))
    arms.api.ok(arms.hand_in(arms.second))

    assert arms.api.patch(path, {"score": 3}).status_code == 409
    arms.api.ok(arms.take_back(arms.second))
    arms.api.ok(arms.api.patch(path, {"score": 3}))


# Publishing


@pytest.mark.parametrize("positions", ["BOTH", "COHORT"])
def test_with_positions_in_the_cohort_every_arm_has_to_be_submitted(arms, positions):
    arms.settings(positions)
    arms.api.ok(arms.hand_in(arms.first))

    answer = arms.publish(arms.first)

    assert (answer.status_code, message(answer)) == (409, f"Not submitted yet: {arms.name} ({arms.b}).")
    assert answer.get_json()["errors"]["json"]["subjects"] == [arms.name]
    arms.api.ok(arms.hand_in(arms.second))
    arms.api.ok(arms.publish(arms.first))
    # The submissions under it are held, of each arm.
    for batch in (arms.first, arms.second, None):
        assert "reopen those publications first" in message(arms.take_back(batch))


@pytest.mark.parametrize("positions", ["BATCH", "NONE"])
def test_without_them_an_arm_is_published_by_itself(arms, positions):
    arms.settings(positions)
    arms.make.enrolled(arms.cohort, arms.make.student(), batch=arms.second)
    arms.api.ok(arms.hand_in(arms.first))

    assert arms.publish(arms.second).status_code == 409
    (made,) = arms.api.ok(arms.publish(arms.first))

    assert (made["batch"], made["students"]) == (arms.first, 2)
    for batch in (arms.first, None):
        assert "reopen those publications first" in message(arms.take_back(batch))
    # The other arm goes on by itself: it is submitted, reopened, and published later.
    arms.api.ok(arms.hand_in(arms.second, blanks="EXCUSED"))
    arms.api.ok(arms.take_back(arms.second))
    arms.api.ok(arms.hand_in(arms.second))
    assert arms.api.ok(arms.publish(arms.second))[0]["students"] == 3


def test_a_newcomer_to_an_open_arm_belongs_to_it_when_another_is_published(arms):
    arms.settings("BATCH")
    arms.api.ok(arms.hand_in(arms.first))
    arms.api.ok(arms.publish(arms.first))
    (late,) = arms.make.enrolled(arms.cohort, arms.make.student(), batch=arms.second)

    answer = arms.hand_in(arms.second)

    (blank,) = answer.get_json()["errors"]["json"]["blanks"]
    assert blank["students"] == arms.admission_numbers([late])
    arms.api.ok(arms.hand_in(arms.second, blanks="ABSENT"))
    assert arms.api.ok(arms.publish(arms.second))[0]["students"] == 3


def test_an_arm_published_by_itself_rests_on_its_own_submission_also_after_new_settings(arms):
    arms.settings("BATCH")
    arms.api.ok(arms.hand_in())
    arms.api.ok(arms.publish(arms.first))
    arms.settings("BOTH")

    assert arms.take_back(arms.first).status_code == 409
    arms.api.ok(arms.take_back(arms.second))


def test_a_broadsheet_says_of_its_own_arm_whether_it_is_submitted(arms):
    arms.api.ok(arms.hand_in(arms.first))

    def submitted(batch):
        query = {"batch": batch, "term": "FIRST"}
        sheet = arms.api.ok(arms.api.get("/broadsheets", query_string=query))
        return [subject["submitted"] for subject in sheet["subjects"]]

    assert (submitted(arms.first), submitted(arms.second)) == ([True], [False])


def test_a_mover_from_a_submitted_arm_is_published_in_the_new_one(arms):
    """An arm that is made later, of students whose results are handed in: there is nothing more to hand in."""
    arms.api.ok(arms.hand_in())
    new = arms.make.batch(arms.cohort)["id"]
    student = arms.students[arms.first][0]
    arms.make.enrolled(arms.cohort, {"id": student}, batch=new)

    (made,) = arms.api.ok(arms.publish(new))

    assert (made["batch"], made["students"]) == (new, 1)


# Score sheets


def test_the_sheet_of_an_arm_has_its_students_alone(arms):
    path = f"/assessments/{arms.paper}/download-sheet"
    whole = workbook_rows(arms.api.get(path))
    numbers = {batch: set(arms.admission_numbers(students)) for batch, students in arms.students.items()}

    for batch in (arms.first, arms.second):
        rows = workbook_rows(arms.api.get(f"{path}?batch={batch}"))
        assert rows[0] == whole[0]
        assert {row[0] for row in rows[1:]} == numbers[batch]
    with_arms = workbook_rows(arms.api.get(f"{path}?arms=true"))
    assert [row[:3] + row[4:] for row in with_arms] == whole
    assert with_arms[0][3] == "arm"
    arm_of = {row[0]: row[3] for row in with_arms[1:]}
    assert arm_of == {number: "A" if number in numbers[arms.first] else arms.b for number in arm_of}


def test_an_upload_for_an_arm_takes_its_students_alone(arms):
    first, second = arms.students[arms.first][0], arms.students[arms.second][0]

    answer = arms.upload(arms.row(first, 1), arms.row(second, 2), query=f"?batch={arms.second}")

    assert answer.status_code == 422
    (row,) = answer.get_json()["errors"]["rows"]
    assert (row["row"], row["column"]) == (2, "admission_number")
    assert "in this arm" in row["message"]
    counts = arms.api.ok(arms.upload(arms.row(second, 2), query=f"?batch={arms.second}&dry_run=true"))
    assert len(counts["not_in_sheet"]) == 1
    assert arms.api.ok(arms.upload(arms.row(second, 2), query=f"?batch={arms.second}"))["updated"] == 1


def test_a_sheet_with_arms_is_sent_back(arms):
    path = f"/assessments/{arms.paper}"
    for query in (
        "?arms=true",
        "?arms=true&absences=true",
        f"?batch={arms.first}",
        f"?batch={arms.first}&arms=true",
    ):
        workbook = arms.api.get(f"{path}/download-sheet{query}").data
        form = {"scoresheet": (BytesIO(workbook), "scores.xlsx")}
        counts = arms.api.ok(arms.api.post(f"{path}/scoresheet", data=form))
        assert counts["unchanged"] == counts["rows"] == (2 if "batch" in query else 4)
        assert "ignored_columns" not in counts


def test_a_sheet_that_says_another_arm_is_refused_where_it_was_downloaded(arms):
    workbook = arms.api.get(f"/assessments/{arms.paper}/download-sheet?arms=true").data
    student = arms.students[arms.first][0]
    (number,) = arms.admission_numbers([student])
    arms.make.enrolled(arms.cohort, {"id": student}, batch=arms.second)

    form = {"scoresheet": (BytesIO(workbook), "scores.xlsx")}
    answer = arms.api.post(f"/assessments/{arms.paper}/scoresheet", data=form)

    assert answer.status_code == 422
    (row,) = answer.get_json()["errors"]["rows"]
    assert row["column"] == "arm"
    assert f"is not the arm of {number}, who is in {arms.b}" in row["message"]


# Input, and the other school


@pytest.mark.parametrize("act", ["hand_in", "take_back"])
def test_a_batch_is_one_of_the_cohort(arms, make, make_other, act):
    elsewhere, theirs = make.cohort()["id"], make_other.cohort()["id"]
    refusals = {
        batch: getattr(arms, act)(batch).get_json()["errors"]["json"]["batch"]
        for batch in (elsewhere, theirs, str(uuid4()))
    }

    assert list(refusals.values()) == [["is not of the cohort"], ["no such batch"], ["no such batch"]]
    for wrong in ("x", 1, None, [], ""):
        answer = arms.api.post(
            f"/cohort-subjects/{arms.subject}/submission", {"term": "FIRST", "batch": wrong}
        )
        assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, ["batch"])


def test_a_list_is_of_a_batch_or_of_a_cohort(arms, make_other):
    theirs = make_other.cohort()["id"]
    for query, named in (
        ({"batch": arms.first, "cohort": arms.cohort["id"]}, "batch"),
        ({"cohort": arms.second}, "cohort"),
        ({"cohort": theirs}, "cohort"),
        ({"batch": theirs}, "batch"),
        ({"cohort": str(uuid4())}, "cohort"),
    ):
        answer = arms.api.get("/submissions", query_string={"term": "FIRST", **query})
        assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, [named])


def test_a_sheet_is_of_an_arm_of_the_assessments_cohort(arms, make, make_other):
    elsewhere, theirs = make.cohort()["id"], make_other.cohort()["id"]
    row = arms.row(arms.students[arms.first][0], 1)
    for batch, reason in (
        (elsewhere, "is not of the assessment's cohort"),
        (theirs, "no such batch"),
        (str(uuid4()), "no such batch"),
    ):
        download = arms.api.get(f"/assessments/{arms.paper}/download-sheet?batch={batch}")
        for answer in (download, arms.upload(row, query=f"?batch={batch}")):
            assert (answer.status_code, answer.get_json()["errors"]["query"]) == (422, {"batch": [reason]})


# Several at once


def test_scores_of_an_arm_beside_its_submission_are_in_it_or_refused(committing):
    """The submission makes an absence of each blank that it finds; the other arm takes no notice."""
    arms = TwoArms(committing, students=10)
    api = arms.api
    for student, _ in arms.everyone:
        api.ok(api.delete(arms.entry(student)))

    def work(number):
        if number == 10:
            path = f"/cohort-subjects/{arms.subject}/submission"
            body = {"term": "FIRST", "blanks": "ABSENT", "batch": arms.first}
            return api.using().post(path, body)
        student, batch = arms.everyone[number if number < 10 else number - 1]
        body = {"assessment": arms.paper, "student": student, "batch": batch, "score": 5}
        return api.using().post("/gradebooks", body)

    answers = run_concurrently(21, work)

    submitted = answers.pop(10)
    assert submitted.status_code == 200
    of_arm, of_other = answers[:10], answers[10:]
    assert {answer.status_code for answer in of_other} == {200}
    assert {answer.status_code for answer in of_arm} <= {200, 409}
    assert {message(answer) for answer in of_arm if answer.status_code == 409} <= {arms.refusal("A")}
    # Each student of the arm has a score or an absence, as it was when it was submitted.
    results = api.ok(api.get(f"/cohort-subjects/{arms.subject}/results?term=FIRST&batch={arms.first}"))
    scored = {result["student"]["id"] for result in results if result["scores"][0]["score"] is not None}
    away = {result["student"]["id"] for result in results if result["scores"][0]["absence"] == "ABSENT"}
    students = arms.students[arms.first]
    assert scored == {
        student for student, answer in zip(students, of_arm, strict=True) if answer.status_code == 200
    }
    assert away == set(students) - scored


def test_of_both_arms_submitted_at_once_both_are(committing):
    arms = TwoArms(committing)

    def work(number):
        body = {"term": "FIRST", "batch": (arms.first, arms.second)[number % 2]}
        return arms.api.using().post(f"/cohort-subjects/{arms.subject}/submission", body)

    answers = run_concurrently(10, work)

    assert {answer.status_code for answer in answers} == {200}
    assert arms.states() == {"A": "SUBMITTED", arms.b: "SUBMITTED"}
    assert len(logged(arms.api, "submission", arms.subject)) == 2
    assert arms.api.patch(arms.entry(arms.students[arms.first][0]), {"score": 1}).status_code == 409
    assert arms.api.patch(arms.entry(arms.students[arms.second][0]), {"score": 1}).status_code == 409


# Messages


def test_submitting_an_arm_takes_as_few_messages(arms, messages):
    with messages() as submitted:
        arms.api.ok(arms.hand_in(arms.first))
    with messages() as reopened:
        arms.api.ok(arms.take_back(arms.first))
    with messages() as listed:
        arms.rows()

    assert (len(submitted), len(reopened), len(listed)) == (4, 4, 1)
