"""Report cards and comments where the registers say how often students came."""

from __future__ import annotations

import json
from datetime import timedelta
from io import BytesIO
from uuid import UUID, uuid4

from sqlalchemy import select

from school_service.core.database import db
from school_service.core.read_models import fetch_made
from school_service.features.results.models import ReportCard
from school_service.features.results.report_cards.drafting import of_batch, of_student
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.attendance.classes import today
from tests.features.observations.comments.sheets import fill
from tests.features.results.publications.arms import Arms
from tests.features.scores.scoresheets.sheets import opened
from tests.naming import name_with_number
from tests.prepared import prepared_for_each

TYPED, REGISTERS = {"roll_up": "TYPED"}, {"roll_up": "REGISTERS"}


class Called(Arms):
    """Two arms, the first called on three days and the second on one; the typed-in figures are others."""

    def __init__(self, make):
        super().__init__(make, students=3, subjects=1)
        self.mark()
        self.term = self.terms["FIRST"]["id"]
        session = f"/sessions/{self.cohort['session']}"
        dates = {
            "start_date": str(today() - timedelta(days=120)),
            "end_date": str(today() + timedelta(days=120)),
        }
        self.api.ok(self.api.patch(session, dates))
        calendar = {"start_date": self.day(20), "end_date": self.day(-20), "times_opened": 90}
        self.api.ok(self.api.put(f"/terms/{self.term}/calendar", calendar))
        self.api.ok(
            self.api.patch("/attendance-settings", {"weekdays": [1, 2, 3, 4, 5, 6, 7], "lock_after": None})
        )
        self.one, self.two, self.three = self.students[self.first]
        typed = [
            {"student": pupil, "times_present": 50 + n} for n, pupil in enumerate(self.students[self.first])
        ]
        self.api.ok(self.comment(*typed))
        self.call(3, {self.one: "A"})
        self.call(2, {self.one: "L", self.two: "E"})
        self.call(1, {})
        # Of one student alone; the others of the second arm have no mark.
        self.api.ok(
            self.register(1, batch=self.second, marks=[{"student": self.students[self.second][0], "code": "A"}],
                          submit=True)
        )  # fmt: skip
        # A draft counts nowhere.
        self.api.ok(self.register(0, marks=[{"student": self.one, "code": "A"}]))

    def day(self, back):
        return str(today() - timedelta(days=back))

    def register(self, back, **body):
        return self.api.put(
            "/registers", {"batch": self.first, "date": self.day(back), "part": "DAY", **body}
        )

    def call(self, back, codes):
        marks = [{"student": student, "code": code} for student, code in codes.items()]
        return self.api.ok(self.register(back, marks=marks, default="P", submit=True))

    def correct_mark(self, back, student, code):
        row = {"student": student, "code": code, "reason": "The teacher was told"}
        body = {"batch": self.first, "date": self.day(back), "part": "DAY", "corrections": [row]}
        return self.api.ok(self.api.put("/registers/corrections", body))

    def comment(self, *comments, batch=None):
        body = {"batch": batch or self.first, "term": "FIRST", "comments": list(comments)}
        return self.api.put("/comments", body)

    def set(self, settings):
        self.api.ok(self.api.patch("/attendance-settings", settings))

    def present(self, batch=None):
        query = {"batch": batch or self.first, "term": "FIRST"}
        comments = self.api.ok(self.api.get("/comments", query_string=query))
        return {comment["student"]["id"]: comment["times_present"] for comment in comments}

    def cards(self, version=None):
        """The attendance on the cards of a version, by student."""
        cards = select(ReportCard.student_id, ReportCard.card)
        with in_transaction(SchoolBinding(self.api.school, read_only=True)):
            return {
                str(row.student_id): row.card
                for row in db.session.execute(cards)
                if version is None or row.card["version"] == version
            }

    def drafts(self):
        with in_transaction(SchoolBinding(self.api.school, read_only=True)):
            document = fetch_made(of_batch(UUID(self.first), self.term))
            cards = [row["card"] for row in json.loads(document["cards"])]
            return {card["student"]["id"]: card["attendance"] for card in cards}

    def sheet(self):
        query = {"batch": self.first, "term": "FIRST"}
        return opened(self.api.get("/comments/download-sheet", query_string=query))

    def upload(self, content):
        return self.api.post(
            "/comments/upload-sheet", query_string={"batch": self.first},
            data={"comments_sheet": (BytesIO(content), "comments.xlsx")}, content_type="multipart/form-data",
        )  # fmt: skip


original, called = prepared_for_each(Called)


def attendance(opened, present):
    return {"opened": opened, "present": present, "absent": None if present is None else opened - present}


def test_typed_in_figures_count_by_default(called):
    called.published()

    shown = {student: card["attendance"] for student, card in called.cards().items()}
    assert [shown[student] for student in called.students[called.first]] == [
        attendance(90, 50), attendance(90, 51), attendance(90, 52),
    ]  # fmt: skip
    assert shown[called.students[called.second][0]] == attendance(90, None)
    assert list(called.present().values()) == [50, 51, 52]


def test_cards_drafts_comments_and_their_sheet_show_the_roll_up(called):
    called.set(REGISTERS)
    expected = dict(
        zip(
            called.students[called.first], (attendance(3, 2), attendance(3, 2), attendance(3, 3)), strict=True
        )
    )

    assert called.drafts() == expected
    assert called.present() == {student: figures["present"] for student, figures in expected.items()}
    first, *others = called.students[called.second]
    assert called.present(called.second) == {first: 0, **dict.fromkeys(others)}
    column = [cell.value for cell in called.sheet()["Comments"]["D"]]
    assert column[1:] == [2, 2, 3]
    called.published()
    shown = {student: card["attendance"] for student, card in called.cards().items()}
    nothing = {"opened": None, "present": None, "absent": None}
    assert shown == {**expected, first: attendance(1, 0), **dict.fromkeys(others, nothing)}
    assert called.cards()[called.one]["calendar"]["times_opened"] == 90

    called.set(TYPED)
    assert list(called.present().values()) == [50, 51, 52]
    assert called.drafts()[called.one] == attendance(90, 50)


def test_a_mover_between_arms_takes_the_marks_along(called, make):
    called.set(REGISTERS)
    make.enrolled(called.cohort, {"id": called.three}, batch=called.second)
    called.api.ok(called.register(0, batch=called.second, default="P", submit=True))
    # Of two registers of one day, the one where they were.
    called.api.ok(
        called.register(1, batch=called.second, marks=[{"student": called.three, "code": "A"}], version=1)
    )

    assert called.present(called.second)[called.three] == 4


def test_another_figure_cannot_be_typed_in(called):
    called.set(REGISTERS)

    refused = called.comment(
        {"student": called.one, "times_present": 3}, {"student": called.two, "times_present": 2}
    )
    assert refused.status_code == 409
    assert refused.get_json()["message"] == (
        f"{name_with_number(called.api, called.one)}: how often a student was present comes from the "
        "registers; something else was given."
    )
    assert called.comment({"student": called.one, "times_present": None}).status_code == 409
    # An equal figure or none is accepted, and the typed-in one stays.
    called.api.ok(
        called.comment({"student": called.one, "times_present": 2, "form_teacher_comment": "Came late"})
    )
    called.api.ok(
        called.comment(
            {"student": called.students[called.second][1], "times_present": None}, batch=called.second
        )
    )
    called.set(TYPED)
    assert list(called.present().values()) == [50, 51, 52]
    called.api.ok(called.comment({"student": called.one, "times_present": 51}))


def test_the_calendar_bounds_a_figure_that_is_typed_in_alone(called):
    api = called.api
    for student in called.students[called.first]:
        api.ok(called.comment({"student": student, "times_present": None}))
    (term,) = (term["id"] for term in called.terms.values() if term["term"] == "FIRST")
    api.ok(api.put(f"/terms/{term}/calendar", {"times_opened": 1}))
    present = {"student": called.one, "times_present": 2}
    assert called.comment(present).status_code == 422

    called.set(REGISTERS)

    api.ok(called.comment(present))


def test_another_figure_in_a_sheet_is_an_error_of_the_row(called):
    called.set(REGISTERS)
    first, second, third = called.admission_numbers(called.students[called.first])

    answer = called.upload(
        fill(called.sheet(), {second: {"times_present": 1, "form_teacher_comment": "Good"}})
    )

    assert answer.status_code == 422
    (row,) = answer.get_json()["errors"]["rows"]
    assert (row["row"], row["column"]) == (3, "times_present")
    assert "comes from the registers" in row["message"]
    sheet = called.sheet()
    called.correct_mark(3, called.one, "P")
    # The figure of the download stands there: nobody has typed it in.
    cells = {
        first: {"form_teacher_comment": "Good"},
        third: {"times_present": None, "principal_comment": "Fine"},
    }
    answer = called.upload(fill(sheet, cells))
    assert answer.status_code == 200, answer.get_data(as_text=True)
    assert called.present()[called.one] == 3
    called.set(TYPED)
    assert list(called.present().values()) == [50, 51, 52]


def test_a_mark_corrected_after_publication_changes_the_next_version_of_that_student_alone(called):
    called.set(REGISTERS)
    first, _ = called.published()
    before = called.cards()

    called.correct_mark(3, called.one, "P")
    called.api.ok(called.register(2, marks=[{"student": called.two, "code": "P"}, {"student": called.one, "code": "P"}],
                                  version=1))  # fmt: skip

    assert called.cards() == before
    # A late comer is present: of the two whose mark changed, one has other sums.
    called.api.ok(called.reopen(first))
    (again,) = called.api.ok(called.publish(called.first))
    assert (again["version"], again["changed"], again["class_figures_changed"]) == (2, 2, 0)
    changed = called.api.ok(called.api.get(f"/publications/{again['id']}/changes"))
    assert {change["student"]["id"] for change in changed} == {called.one, called.two}
    assert called.cards(version=2)[called.three]["attendance"] == before[called.three]["attendance"]
    called.correct_mark(3, called.one, "E")
    called.api.ok(called.reopen(again))
    (third,) = called.api.ok(called.publish(called.first))
    assert third["changed"] == 1
    (changed,) = called.api.ok(called.api.get(f"/publications/{third['id']}/changes"))
    assert changed["student"]["id"] == called.one


def test_a_dry_run_names_the_registers_that_are_missing(called):
    called.submit()
    typed = called.api.ok(called.publish(query="?dry_run=true"))
    assert all("registers_missing" not in row for row in typed)
    called.set(REGISTERS)

    rehearsed = called.api.ok(called.publish(query="?dry_run=true"))

    taken = {called.first: {1, 2, 3}, called.second: {1}}
    for row in rehearsed:
        days = [called.day(back) for back in range(20, -1, -1) if back not in taken[row["batch"]]]
        assert row["registers_missing"] == [
            {"batch": row["batch"], "batch_name": row["batch_name"], "date": day, "part": "DAY"}
            for day in days
        ]
    assert all("registers_missing" not in row for row in called.api.ok(called.publish()))


def test_registers_cost_no_message(called, messages):
    called.submit()
    for row in called.api.ok(called.publish(called.first)):  # later versions are compared with the one before
        called.api.ok(called.reopen(row))
    numbers = []
    for settings in (TYPED, REGISTERS):
        called.set(settings)
        with messages() as listed:
            called.present()
        with messages() as commented:
            called.api.ok(called.comment({"student": called.one, "form_teacher_comment": str(uuid4())}))
        with messages() as rehearsed:
            called.api.ok(called.publish(query="?dry_run=true"))
        with messages() as published:
            made = called.api.ok(called.publish(called.first))
        for row in made:
            called.api.ok(called.reopen(row))
        numbers.append([len(sent) for sent in (listed, commented, rehearsed, published)])

    assert numbers[0] == numbers[1]
    assert numbers[0][0] == 1


def test_a_draft_to_print_is_of_the_registers(called):
    called.set(REGISTERS)
    with in_transaction(SchoolBinding(called.api.school, read_only=True)):
        document = fetch_made(of_student(UUID(called.one), "FIRST"))
    assert '"attendance":{"opened":3,"present":2,"absent":1}' in document["cards"]
