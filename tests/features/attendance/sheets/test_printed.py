"""The printed register of a term: its totals are the students' sums, and LibreOffice prints all of it."""

from __future__ import annotations

import re
import shutil
import subprocess
from copy import copy, deepcopy
from datetime import date, timedelta
from io import BytesIO
from uuid import uuid4

import pytest
from openpyxl import load_workbook
from openpyxl.utils import get_column_letter as letter

from school_service.core.database import db
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.attendance.sheets.weeks import Week, monday
from tests.features.results.figures.classes import MOMENT, Store
from tests.sheets.libreoffice import needs_libreoffice, printed_by_libreoffice

# All of it: the term is made once for all tests that come one after the other.
pytestmark = pytest.mark.program

WEEKS = 14
KINDS = {"P": "PRESENT", "L": "LATE", "A": "ABSENT", "E": "EXCUSED"}
PARTS = ("MORNING", "AFTERNOON")
PEOPLE = (
    ("Ọláńrewájú", "Ògúnlẹ́yẹ", "MALE"), ("=1+1", "@SUM(A1)", "FEMALE"), ("Ɗanladi", "Ɓaɓangida", "MALE"),
    ("Oluwadámilọ́laOluwatóbilọ́ba", "Adébáyọ̀-Fágbénlé", "FEMALE"),
)  # fmt: skip


class Term(Week):
    """A class of 60 that was called twice a day in a term of 14 weeks, but for a holiday and a break."""

    def __init__(self, make, students=60):
        super().__init__(make, students=0)
        self.first = monday(back=WEEKS)
        self.calendar = {
            "start_date": str(self.first),
            "end_date": str(self.first + timedelta(weeks=WEEKS, days=-3)),
        }
        self.api.ok(self.api.put(f"/terms/{self.term['id']}/calendar", self.calendar))
        self.fill(students)
        self.closed = {
            self.at(2, 2): "Independence Day",
            self.at(6, 3): "Mid-term break",
            self.at(6, 4): "Mid-term break",
        }
        days = [{"date": str(day), "status": "CLOSED", "name": name} for day, name in self.closed.items()]
        half = {"date": str(self.at(9, 4)), "status": "CLOSED", "part": "AFTERNOON", "name": "Sports"}
        self.api.ok(self.api.put("/school-days", {"days": [*days, half]}))
        self.times = [
            (day, part)
            for week in range(WEEKS - 1)
            for weekday in range(5)
            for part in PARTS
            if (day := self.at(week, weekday)) not in self.closed
            and (day, part) != (self.at(9, 4), "AFTERNOON")
        ]
        self._store()

    def fill(self, students, year=2023):
        """Enroll so many students into the batch, numbered by the year of their admission."""
        made = [
            self.make.student(
                first_name=PEOPLE[n % 4][0], last_name=PEOPLE[n % 4][1], gender=PEOPLE[n % 4][2],
                admission_number=f"UHS/{year}/{n:03}",
            )
            for n in range(students)
        ]  # fmt: skip
        self.make.enrolled(self.cohort, *made, batch=self.batch)
        self.students = {student["admission_number"]: student["id"] for student in made}

    def small_arm(self):
        """Make another arm, of four students, who were called as often."""
        arm = copy(self)
        arm.batch = self.make.batch(self.cohort)["id"]
        arm.fill(4, year=2024)
        arm._store()
        return arm

    def at(self, week, weekday):
        return self.first + timedelta(weeks=week, days=weekday)

    def _store(self):
        registers = [str(uuid4()) for _ in self.times]
        several = len(registers)
        rows = [
            (register, student, "PPPPPPLPPAPPPPPPE"[(7 * n + 3 * number) % 17])
            for number, register in enumerate(registers)
            for n, student in enumerate(self.students.values())
        ]
        of, whose, codes = map(list, zip(*rows, strict=True))
        with in_transaction(SchoolBinding(self.api.school)):
            store = Store(db.session.connection())
            store.rows(
                "registers", id=("uuid", registers), batch_id=("uuid", [self.batch] * several),
                cohort_id=("uuid", [self.cohort["id"]] * several), session_id=("uuid", [self.session["id"]] * several),
                term_id=("uuid", [self.term["id"]] * several), date=("date", [str(day) for day, _ in self.times]),
                part=("text", [part for _, part in self.times]), state=("text", ["SUBMITTED"] * several),
                version=("integer", [1] * several), changed_at=("timestamptz", [MOMENT] * several),
            )  # fmt: skip
            store.rows(
                "marks", register_id=("uuid", of), student_id=("uuid", whose), code=("text", codes),
                kind=("text", [KINDS[code] for code in codes]), version=("integer", [1] * len(rows)),
            )  # fmt: skip

    def printed(self, api=None, **query):
        named = {"batch": self.batch, "term": "FIRST", **query}
        return (api or self.api).get("/registers/download", query_string=named)

    def sheet(self, **query):
        answer = self.printed(**query)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return load_workbook(BytesIO(answer.data))["Register"]


@pytest.fixture(scope="module", autouse=True)
def original(prepared):
    def make(factory):
        term = Term(factory)
        return term, term.sheet(), term.small_arm()

    return prepared(make)


@pytest.fixture
def term(rehearsed, original):
    return deepcopy(original[0])


@pytest.fixture
def arm(rehearsed, original):
    """A small arm of the cohort: its sheet is read sooner."""
    return deepcopy(original[2])


@pytest.fixture(scope="module")
def sheet(original):
    """The printed register of the term as it was made."""
    return original[1]


def headings(sheet):
    """The number of the last row of the header, and the columns by their headings in it."""
    (number,) = (row[0].row for row in sheet.iter_rows() if row[1].value == "Admission number")
    return number, {cell.value: cell.column for cell in sheet[number] if cell.value}


def rows_of(sheet):
    """The rows of students, by admission number."""
    number, _ = headings(sheet)
    return {row[1].value: row for row in sheet.iter_rows(min_row=number + 1) if row[1].value}


def totals(sheet):
    """Times opened, present and absent of each student, as the last columns have them."""
    _, places = headings(sheet)
    columns = [places["Times opened"], places["Times opened"] + 1, places["Absent"]]
    return {who: tuple(row[column - 1].value for column in columns) for who, row in rows_of(sheet).items()}


def sums_of(term):
    sums = term.api.ok(
        term.api.get("/attendance/summary", query_string={"term": term.term["id"], "batch": term.batch})
    )
    return {
        row["student"]["admission_number"]: (row["opened"], row["present"], row["absent"]) for row in sums
    }


def test_the_totals_are_the_sums_of_the_students(api, term, sheet):
    assert totals(sheet) == sums_of(term)
    assert len(rows_of(sheet)) == 60
    below = {row[2].value: row for row in sheet.iter_rows() if row[2].value in SUMMARY}
    _, places = headings(sheet)
    column = places["Times opened"]
    whole = [below[name][column].value for name in ("Boys present", "Girls present", "Present")]
    assert whole[0] + whole[1] == whole[2] == sum(present for _, present, _ in totals(sheet).values())
    assert below["Times opened"][column].value == len(term.times)
    assert below["Average present"][column].value == round(whole[2] / len(term.times), 2)
    assert [below[name][4].value for name in ("Boys present", "Girls present", "Times opened")] == [
        sum(row[4].value in {"P", "L"} for row in rows_of(sheet).values() if row[3].value == sex)
        for sex in "MF"
    ] + [1]


SUMMARY = ("Boys present", "Girls present", "Present", "Times opened", "Average present")


def test_how_it_is_printed(api, term, sheet):
    assert (sheet.page_setup.orientation, sheet.page_setup.paperSize) == ("landscape", 8)
    number, _ = headings(sheet)
    assert sheet.print_title_cols == "$A:$D"
    assert sheet.print_title_rows == f"${number - 2}:${number}"
    assert not any(cell.data_type == "f" for row in sheet.iter_rows() for cell in row)
    assert {row[2].value for row in rows_of(sheet).values()} >= {"=1+1 @SUM(A1)", "Ɗanladi Ɓaɓangida"}
    days = {cell.value: cell.column for cell in sheet[number - 1] if cell.value}
    holiday = term.at(2, 2)
    column = days[f"{holiday:%a} {holiday.day}"]
    assert sheet.cell(number + 1, column).value == "Independence Day"
    # One cell over all students, in another colour than the days beside it.
    assert f"{letter(column)}{number + 1}:{letter(column + 1)}{number + 60}" in map(
        str, sheet.merged_cells.ranges
    )
    fills = [
        sheet.cell(row, of).fill.fgColor.rgb for row in (number, number + 1) for of in (column, column - 1)
    ]
    assert fills[0] == fills[2]
    assert fills[0] not in {fills[1], fills[3]}
    friday = term.at(9, 4)
    assert sheet.cell(number + 1, days[f"{friday:%a} {friday.day}"] + 1).value == "Sports"
    codes = {cell.value for row in rows_of(sheet).values() for cell in row[4:14]}
    assert codes <= {"P", "L", "A", "E"}


def test_each_print_is_on_record_as_an_export(api, term):
    before = term.log("export")
    assert term.printed().status_code == 200

    (exported,) = term.log("export")[len(before) :]
    assert exported[2] == {"sheet": "printed-register", "students": 60}


def test_names_stand_in_the_order_of_the_papers(api, arm):
    api.ok(api.patch("/result-settings", {"name_order": "SURNAME_FIRST"}))

    assert {row[2].value for row in rows_of(arm.sheet()).values()} >= {
        "@SUM(A1) =1+1", "Ɓaɓangida Ɗanladi",
    }  # fmt: skip


def test_a_long_name_is_printed_whole_in_several_lines(api, arm):
    number, student = next(iter(arm.students.items()))
    name = {
        "first_name": "Oluwadamilola Kelechukwunyerem",
        "last_name": "Chukwuemeka-Adéyẹmí Ọládùn-Bàbátúndé",
    }
    api.ok(api.patch(f"/students/{student}", name))

    rows = rows_of(arm.sheet())

    sheet = rows[number][2].parent
    assert rows[number][2].value == " ".join(name.values())
    assert all(row[2].alignment.wrap_text for row in rows.values())
    heights = [sheet.row_dimensions[row[2].row].height for row in rows.values()]
    shortest = sheet.row_dimensions[rows["UHS/2024/001"][2].row].height
    assert (sheet.row_dimensions[rows[number][2].row].height, min(heights)) == (45, shortest)
    assert 15 <= shortest < 30


def test_letters_are_printed_in_8_points_or_more(sheet):
    number, _ = headings(sheet)
    sizes = {
        cell.font.sz for row in sheet.iter_rows(min_row=number - 2) for cell in row if cell.value is not None
    }
    assert min(sizes) * sheet.page_setup.scale / 100 >= 8


def test_the_code_of_an_absence_alone_is_bold_and_red(sheet):
    cells = [cell for row in rows_of(sheet).values() for cell in row[4:] if cell.value in KINDS]

    shown = {(cell.value, bool(cell.font.b), cell.font.color.rgb[-6:]) for cell in cells if cell.font.color}
    marked = {code for code, bold, _ in shown if bold}
    assert marked == {"A", "E"}
    assert {colour for code, _, colour in shown if code in marked}.isdisjoint(
        colour for code, _, colour in shown if code not in marked
    )


def test_corrections_count_and_a_draft_does_not(api, make, arm):
    before = totals(arm.sheet())
    number = next(iter(arm.students))
    day, part = arm.times[0]
    api.ok(arm.correct(date=str(day), part=part, codes={number: "E"}))
    another = make.batch(arm.cohort)
    api.ok(arm.put(date=str(arm.at(WEEKS - 1, 0)), part="MORNING", codes={number: "A"}))

    assert totals(arm.sheet()) == before | {
        number: (before[number][0], before[number][1] - 1, before[number][2] + 1)
    }
    # A mover takes the marks along.
    make.enrolled(arm.cohort, {"id": arm.students[number]}, batch=another["id"])
    moved = totals(arm.sheet(batch=another["id"]))
    assert moved == {number: (before[number][0], before[number][1] - 1, before[number][2] + 1)}
    assert totals(arm.sheet()) == sums_of(arm) | {number: moved[number]}


def test_a_student_who_came_after_the_term_is_not_printed_nor_summed_and_a_leaver_of_its_last_day_is(
    api, make, arm
):
    later, leaver = make.student(), make.student()
    ends = date.fromisoformat(arm.calendar["end_date"])
    path = f"/cohorts/{arm.cohort['id']}"
    for student, day in ((later, ends + timedelta(days=1)), (leaver, ends)):
        body = {"students": [student["id"]], "batch": arm.batch, "started_on": str(day)}
        api.ok(api.post(f"{path}/enrollment", body))
    removal = {"student_ids": [leaver["id"]], "ended_on": str(ends)}
    api.ok(api.patch(f"{path}/remove_students", removal))

    assert totals(arm.sheet()) == sums_of(arm)
    assert sums_of(arm).keys() == {*arm.students, leaver["admission_number"]}


def test_unknown_arms_and_terms_are_refused_and_an_empty_arm_has_no_rows(api, make, term, make_other):
    theirs = make_other.cohort()["id"]
    assert term.printed(batch=theirs).get_json()["errors"]["query"] == {"batch": ["no such batch"]}
    assert term.printed(batch=str(uuid4())).get_json()["errors"]["query"] == {"batch": ["no such batch"]}
    assert term.printed(term="THIRD").get_json()["errors"]["query"] == {"term": ["no such term"]}
    elsewhere = make.term()
    refused = term.printed(term=elsewhere["id"])
    assert (refused.status_code, refused.get_json()["errors"]["query"]) == (
        422, {"term": ["is not of the batch's session"]},
    )  # fmt: skip
    empty = make.batch(term.cohort)
    assert rows_of(term.sheet(batch=empty["id"])) == {}


@needs_libreoffice
@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="poppler is not installed (no pdftotext)")
def test_libreoffice_prints_all_of_it(api, term, tmp_path):
    pdf = printed_by_libreoffice(term.printed().data, tmp_path)

    shown = subprocess.run(["pdfinfo", pdf], check=True, capture_output=True, text=True).stdout
    pages = int(re.search(r"Pages:\s+(\d+)", shown)[1])
    assert "1190.55 x 841.89" in shown or "1191 x 842" in shown
    assert pages == 2 * 5  # three weeks on each, and 60 students on two below each other
    text = subprocess.run(
        ["pdftotext", "-layout", pdf, "-"], check=True, capture_output=True, text=True
    ).stdout
    of_pages = text.split("\f")[:pages]
    for upper in (True, False):
        weeks = [re.findall(r"Week \d+", page) for page in of_pages[not upper :: 2]]
        assert [name for page in weeks for name in page] == [f"Week {week}" for week in range(1, WEEKS + 1)]
    for above, below in zip(of_pages[::2], of_pages[1::2], strict=True):
        assert sorted(re.findall(r"UHS/2023/\d+", above + below)) == sorted(term.students)
    assert all("Queen's College, Yaba" in page for page in of_pages)
    assert date.fromisoformat(term.calendar["start_date"]) == term.first
