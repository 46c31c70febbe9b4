"""The workbook of a broadsheet: its cells, and its pages as LibreOffice prints them."""

from __future__ import annotations

import re
import shutil
import subprocess
from decimal import Decimal
from io import BytesIO
from uuid import uuid4

import pytest
from openpyxl import load_workbook

from school_service.core.database import db
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.results.figures.classes import MOMENT, Store
from tests.sheets.libreoffice import all_printed_by_libreoffice, needs_libreoffice

# Every test finds the class, whether it asks for it or not.
pytestmark = pytest.mark.usefixtures("small")

SUBJECTS = (
    "Agricultural Science", "Basic Science", "Basic Technology", "Business Studies", "Civic Education",
    "Computer Studies", "Cultural and Creative Arts", "English Language", "French", "Hausa", "Home Economics", "Igbo",
    "Mathematics", "Music", "Physical and Health Education", "Religious Studies", "Social Studies", "Yorùbá",
)  # fmt: skip
PEOPLE = (
    ("Ọláńrewájú", "Ògúnlẹ́yẹ"), ("Ẹniọlá", "Ṣóyínká"), ("Ɗanladi", "Ɓaɓangida"), ("Ƙwaiyeri", "Ƴar'Adua"),
    ("Ngọzi", "Ọkọńjọ-Ịweala"), ("Adaeze Chidịmma", "Nwáchukwu"), ("=1+1", "@SUM(A1)"),
    ("Oluwadámilọ́láOluwatóbilọ́ba", "Adébáyọ̀-Fágbénlé"), ("Ebun", "Bello"), ("Musa", "Garba"),
)  # fmt: skip


class LargeClass:
    """30 students who take many subjects, each of one paper; the last takes no elective, one lacks a mark."""

    def __init__(self, make, subjects):
        self.make, self.api = make, make.api
        self.api.ok(self.api.patch("/result-settings", {"name_order": "SURNAME_FIRST"}))
        self.cohort = make.cohort(make.classroom(name="JSS 2"))
        term = make.term({"id": self.cohort["session"]})
        names = [(*person, "") for person in PEOPLE] + [(f"Chinedu {n}", "Ezẹ́", "Ọlá") for n in range(11, 31)]
        self.names = [" ".join(filter(None, (last, first, middle))) for first, last, middle in names]
        made = [
            make.student(
                first_name=first, last_name=last, middle_name=middle, admission_number=f"UHS/2023/{n:03}"
            )
            for n, (first, last, middle) in enumerate(names, 1)
        ]
        students = make.enrolled(self.cohort, *made)
        entries = []
        for number, name in enumerate(SUBJECTS[:subjects]):
            code = "".join(re.findall(r"[A-ZÀ-Ỹ]", name)) + name[1:3].upper()
            elective = number % 6 == 5
            subject = make.cohort_subject(self.cohort, make.subject(name=name, code=code), elective=elective)
            takers = students[:-1] if elective else students
            if elective:
                self.api.ok(self.api.patch(f"/cohort-subjects/{subject['id']}/students", takers))
            paper = make.assessment(subject, term, total_points=100)["id"]
            entries += [
                (paper, student, Decimal((37 * n + 13 * number) % 81 + 20))
                for n, student in enumerate(takers)
                if (n, number) != (5, 0)
            ]
        papers, whose, scores = map(list, zip(*entries, strict=True))
        several = len(entries)
        with in_transaction(SchoolBinding(self.api.school)):
            Store(db.session.connection()).rows(
                "gradebook_entries", id=("uuid", [str(uuid4()) for _ in entries]), score=("numeric", scores),
                assessment_id=("uuid", papers), student_id=("uuid", whose),
                batch_id=("uuid", [self.cohort["id"]] * several), created_at=("timestamptz", [MOMENT] * several),
                updated_at=("timestamptz", [MOMENT] * several),
            )  # fmt: skip


@pytest.fixture
def small(small):
    """The small class, of a school whose papers have the surname first."""
    small.api.ok(small.api.patch("/result-settings", {"name_order": "SURNAME_FIRST"}))
    return small


def download(small, arm="A", **query):
    query = {"batch": small.batches[arm], **(query or {"term": "FIRST"})}
    answer = small.api.get("/broadsheets/download", query_string=query)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer


def opened(answer):
    return load_workbook(BytesIO(answer.data))


def values(sheet):
    return [tuple(cell.value for cell in row) for row in sheet.iter_rows()]


def lines(sheet):
    """The lines above the table, and its rows, from the header on."""
    rows = values(sheet)
    header = next(number for number, row in enumerate(rows) if row[0] == "No.")
    return [row[0] for row in rows[:header]], rows[header:]


def test_a_workbook_has_the_figures_of_the_broadsheet(small):
    answer = download(small)
    workbook = opened(answer)
    year = small.broadsheet()["session"]["name"]
    (title, about, state, *key), (header, *rows) = lines(workbook["Broadsheet"])

    assert workbook.sheetnames == ["Broadsheet", "Subjects"]
    assert [title, about] == ["Queen's College, Yaba", f"Broadsheet of SSS 2 A, First Term, {year}"]
    assert re.fullmatch(r"PROVISIONAL: as of \d\d? [A-Z][a-z]+ \d{4}", state)
    assert "   ".join(key) == (
        "ENG = English   MAT = Mathematics   MUS = Music   – = not taken   "  # noqa: RUF001
        "inc = incomplete   bold, slanting: below the pass mark of 40   "
        "= behind a position: place shared with others"
    )
    assert header == (
        "No.", "Admission number", "Name", "ENG", "MAT", "MUS", "Total", "Average", "Grade", "Position",
        "Position in all arms", "Subjects graded",
    )  # fmt: skip
    assert rows == [
        (1, "UHS/1", "Bàlógun Ada", 70, 80, 60, 210, 70, "B2", "1st =", "1st =", 3),
        (2, "UHS/2", "Bàlógun Bọ́lá", 60, 80, "–", 140, 70, "B2", "1st =", "1st =", 2),  # noqa: RUF001
        (3, "UHS/3", "Bàlógun Chidi", 60, 50, 40, 150, 50, "C6", "3rd", "4th", 3),
        (None, None, "Average", 63.33, 70, 50, None, 63.33, None, None, None, None),
        (None, None, "Highest", 70, 80, 60, None, 70, None, None, None, None),
        (None, None, "Lowest", 60, 50, 40, None, 50, None, None, None, None),
        (None, None, "Passes", 3, 3, 2, None, 3, None, None, None, None),
    ]
    assert values(workbook["Subjects"]) == [
        ("Code", "Subject", "Teacher", "Takers", "Average", "Lowest", "Highest", "Passes", "Submitted by"),
        ("ENG", "English", None, 3, 63.33, 60, 70, 3, None),
        ("MAT", "Mathematics", None, 3, 70, 50, 80, 3, None),
        ("MUS", "Music", None, 2, 50, 40, 60, 2, None),
    ]
    name = f"Broadsheet SSS 2 A First Term {year.replace('/', '-')}.xlsx"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'


@pytest.mark.parametrize(
    ("positions", "shown_of_it"),
    [
        ("BOTH", ["Position", "Position in all arms"]),
        ("BATCH", ["Position"]),
        ("COHORT", ["Position in all arms"]),
        ("NONE", []),
    ],
)
def test_a_workbook_has_the_positions_that_the_school_shows(small, positions, shown_of_it):
    small.api.ok(small.api.patch("/result-settings", {"positions": positions}))

    _, (header, first, *_, passes) = lines(opened(download(small))["Broadsheet"])

    assert [heading for heading in header if heading.startswith("Position")] == shown_of_it
    assert len(first) == len(header) == len(passes)
    assert (first[-1], header[-1]) == (3, "Subjects graded")
    assert "cohort" not in str(values(opened(download(small))["Broadsheet"])).lower()


def test_names_stand_in_the_order_that_the_school_has_chosen(small):
    small.api.ok(small.api.patch("/result-settings", {"name_order": "GIVEN_FIRST"}))

    _, rows = lines(opened(download(small))["Broadsheet"])
    names = [row[2] for row in rows[1:4]]

    assert names == ["Ada Bàlógun", "Bọ́lá Bàlógun", "Chidi Bàlógun"]


def test_figures_below_the_pass_mark_or_incomplete_are_seen_without_colour(small):
    sheet = opened(download(small, "B"))["Broadsheet"]
    failing = sheet["E8"]

    assert (failing.value, failing.font.b, failing.font.i, failing.font.color.rgb) == (
        35,
        True,
        True,
        "FF9C0006",
    )
    assert (sheet["E7"].value, sheet["E7"].font.b) == (90, False)
    assert sheet["D8"].value == "inc"
    assert (sheet["H8"].value, sheet["I8"].value) == ("F9", None)


def test_a_workbook_is_made_to_be_printed(small):
    sheet = opened(download(small))["Broadsheet"]

    assert sheet.freeze_panes == "D7"
    assert (sheet.print_title_rows, sheet.print_title_cols) == ("$6:$6", "$A:$C")
    assert (sheet.page_setup.orientation, int(sheet.page_setup.paperSize)) == ("landscape", 9)
    assert (sheet.sheet_properties.pageSetUpPr.fitToPage, sheet.page_setup.fitToHeight) == (True, 0)
    assert sheet.oddHeader.right.text == f"PROVISIONAL, First Term, {small.broadsheet()['session']['name']}"
    assert [sheet[cell].number_format for cell in ("A7", "D7", "H7", "D13")] == ["0", "0.00", "0.00", "0"]


def test_a_broadsheet_has_lines_to_sign_at_the_foot_of_each_page(small):
    workbook = opened(download(small))

    signing = workbook["Broadsheet"].oddFooter.left.text
    assert [who.strip() for who in re.findall(r"([A-Z][a-z ]+): _+", signing)] == [
        "Form teacher", "Date", "Principal", "Date",
    ]  # fmt: skip
    assert workbook["Subjects"].oddFooter.left.text is None


@pytest.mark.parametrize("is_published", [False, True])
def test_students_stand_by_position_or_by_name(small, is_published):
    small.score(small.paper("English", "SECOND"), {"Ada": 20, "Bọ́lá": 30, "Chidi": 90})
    if is_published:
        small.publish("SECOND", arms="A")

    def names(**query):
        _, (_, *rows) = lines(opened(download(small, term="SECOND", **query))["Broadsheet"])
        return [row[2].split()[-1] for row in rows[:3]]

    assert names() == names(order="position") == ["Chidi", "Bọ́lá", "Ada"]
    assert names(order="name") == ["Ada", "Bọ́lá", "Chidi"]
    query = {"batch": small.batches["A"], "term": "SECOND", "order": "name"}
    answer = small.api.ok(small.api.get("/broadsheets", query_string=query))
    assert [row["student"]["first_name"] for row in answer["students"]] == ["Ada", "Bọ́lá", "Chidi"]
    assert [row["position"] for row in answer["students"]] == [3, 2, 1]
    refused = small.api.get("/broadsheets", query_string={**query, "order": "age"})
    assert (refused.status_code, [*refused.get_json()["errors"]["query"]]) == (422, ["order"])


def test_titles_say_the_session_once(small):
    of = small.broadsheet()
    term, named = of["term"], f"First Term {of['session']['name']}"
    small.api.ok(small.api.patch(f"/terms/{term['id']}", {"display_name": named}))

    answer = download(small)

    sheet = opened(answer)["Broadsheet"]
    assert sheet["A2"].value == f"Broadsheet of SSS 2 A, {named}"
    assert sheet.oddHeader.left.text + sheet.oddHeader.right.text == (
        f"Queen's College, Yaba, SSS 2 APROVISIONAL, {named}"
    )
    name = f"Broadsheet SSS 2 A {named.replace('/', '-')}.xlsx"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'


def test_no_text_is_a_formula(small, make):
    name = {"first_name": "=1+1", "last_name": "@SUM(A1)", "admission_number": "=cmd|' /C calc'!A0"}
    make.enrolled(small.cohort, make.student(**name))

    sheet = opened(download(small))["Broadsheet"]

    cells = [cell for row in sheet.iter_rows() for cell in row if isinstance(cell.value, str)]
    assert {cell.data_type for cell in cells} == {"s"}
    assert {"=cmd|' /C calc'!A0", "@SUM(A1) =1+1"} <= {cell.value for cell in cells if cell.quotePrefix}


def test_the_same_records_are_the_same_bytes(small):
    small.publish()

    assert download(small).data == download(small).data


def test_a_published_workbook_says_its_version(small):
    small.publish(state="REOPENED")

    sheet = opened(download(small))["Broadsheet"]

    assert sheet["A3"].value == "REOPENED: version 1 of 8 September 2025"
    assert (
        sheet.oddHeader.right.text
        == f"REOPENED, version 1, First Term, {small.broadsheet()['session']['name']}"
    )
    live = opened(download(small, term="FIRST", live="true"))["Broadsheet"]
    assert live["A3"].value.startswith("PROVISIONAL")
    assert values(live)[3:] == values(sheet)[3:]


def test_a_workbook_of_a_session_has_the_averages_of_its_terms(small):
    small.publish("FIRST")
    for name in ("Mathematics", "English"):
        small.score(small.paper(name, "SECOND"), {"Ada": 61, "Bọ́lá": 72.5, "Chidi": 50})
    small.publish("SECOND", arms="A")

    answer = download(small, session=small.session["id"])

    (_, about, *_), (header, first, *_) = lines(opened(answer)["Broadsheet"])
    assert about == f"Broadsheet of SSS 2 A, {small.broadsheet()['session']['name']}"
    assert header[3:12] == (
        "ENG", "MAT", "MUS", "First term", "Second term", "Third term", "Total", "Average", "Grade",
    )  # fmt: skip
    assert first[2:12] == (
        "Bàlógun Bọ́lá", 66.25, 76.25, "–", 70, 72.5, None, 142.5, 71.25, "B2",  # noqa: RUF001
    )  # fmt: skip


def test_a_mover_has_no_later_term_in_the_session_of_the_first_arm(small):
    small.publish("FIRST")
    enrollment = {"students": [small.students["Ada"]], "batch": small.batches["B"]}
    small.api.ok(small.api.post(f"/cohorts/{small.cohort['id']}/enrollment", enrollment))
    paper = small.paper("English", "SECOND")
    small.make.entry(paper, small.students["Ada"], small.batches["B"], 61)
    small.publish("SECOND", arms="B")

    def averages(arm):
        answer = download(small, arm, session=small.session["id"])
        _, (header, *rows) = lines(opened(answer)["Broadsheet"])
        (row,) = (dict(zip(header, row, strict=False)) for row in rows if row[2] == "Bàlógun Ada")
        return row["First term"], row["Second term"]

    assert averages("A") == (70, None)
    assert averages("B") == (70, 61)


def test_a_download_is_on_record_and_costs_three_messages(small, messages):
    with messages() as sent:
        download(small)

    # Binding, the broadsheet, and the entry of the audit log with COMMIT.
    assert len(sent) == 3
    (entry, *_) = small.api.ok(small.api.get("/audit", query_string={"entity": "export"}))["data"]
    assert (entry["entity_id"], entry["new"]) == (small.batches["A"], {"sheet": "broadsheet", "students": 3})


@pytest.mark.program
@needs_libreoffice
@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="poppler is not installed (no pdftotext)")
def test_libreoffice_prints_all_of_a_workbook(make, make_other, tmp_path):
    """A class that takes 8 subjects is printed on A4, one that takes 18 on A3."""
    classes = [(LargeClass(make, 8), 8, "841"), (LargeClass(make_other, 18), 18, "1190")]
    answers = [
        large.api.get(f"/broadsheets/download?batch={large.cohort['id']}&term=FIRST") for large, *_ in classes
    ]

    pdfs = all_printed_by_libreoffice([answer.data for answer in answers], tmp_path)

    def run(*command):
        return subprocess.run([*command], check=True, capture_output=True, text=True, timeout=180).stdout

    for (large, subjects, width), pdf in zip(classes, pdfs, strict=True):
        about = run("pdfinfo", "-l", "9", pdf)
        assert re.findall(r"Page +\d+ size: +([\d.]+) x", about)[0].startswith(width)
        assert re.search(r"Pages: +(\d+)", about)[1] == "2"
        text = run("pdftotext", "-layout", pdf, "-")
        page = text.split("\f")[0]
        assert [name for name in large.names if name not in page] == []
        assert ["inc" in page, "–" in page, "30" in page.split()] == [True] * 3  # noqa: RUF001
        assert [name for name in SUBJECTS[:subjects] if name not in text.split("\f")[1]] == []
        assert "#" not in text  # a number that is wider than its column
