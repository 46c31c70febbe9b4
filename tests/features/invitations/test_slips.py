"""Slips of invitations, as they come out of the printer and the workbook."""

from __future__ import annotations

import subprocess
import unicodedata
from dataclasses import replace
from io import BytesIO

import pytest
import zxingcpp
from openpyxl import load_workbook
from PIL import Image

from school_service.printing.papers import PAPERS
from tenants.registry.schools import change_school
from tests.features.invitations.test_invitations import is_refused, take
from tests.features.results.report_cards.papers import misplaced, needs_poppler, pages_of, text_of

ISSUER = "https://schools.example.org/auth"
NAMES = (
    ("Ọlájùmọ̀kẹ́", "Ògúnlẹ́yẹ"), ("Ẹfẹ́", "Adébáyọ̀-Ọláníyì"), ("Ɗanladi", "Ƙyauta"), ("Ụzọamaka", "Ńgọ́zí"),
    ("=1+1", "@SUM(A1)"), ("W" * 120, "w" * 120), ("#let x = $1$ *b*", "\\u{41} <i>"), ("+cmd|' /C calc'!A0", "-1"),
)  # fmt: skip


def pages(pdf):
    """Draw a PDF."""
    drawn = subprocess.run(
        ["pdftoppm", "-r", "110", "-png"], input=pdf, capture_output=True, check=True
    ).stdout
    return [Image.open(BytesIO(b"\x89PNG" + part)) for part in drawn.split(b"\x89PNG")[1:]]


@pytest.fixture
def issuer(api, monkeypatch):
    """Let the service have sign-in pages."""
    state = api.app.extensions["school-service"]
    monkeypatch.setattr(
        state,
        "settings",
        replace(state.settings, public_url=ISSUER.removesuffix("/auth"), built_in_provider=True),
    )


def class_of(make, number):
    """A class of students, some with names that could do harm."""
    cohort = make.cohort()
    students = [
        make.student(first_name=first, last_name=last)
        for first, last in (NAMES[place % len(NAMES)] for place in range(number))
    ]
    make.enrolled(cohort, *students)
    return cohort["id"]


@pytest.fixture
def batch(make):
    """A class with each of the names."""
    return class_of(make, len(NAMES))


def slips(api, batch, format="pdf"):
    answer = api.post(f"/invitations/slips?format={format}", {"batch": batch, "days": 3})
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer


@needs_poppler
@pytest.mark.program
def test_a_class_of_twelve_has_ten_slips_on_its_first_page(api, make, issuer):
    batch = class_of(make, 12)
    answer = slips(api, batch)
    assert (answer.content_type, answer.headers["Cache-Control"]) == ("application/pdf", "no-store")
    pdf = answer.get_data()

    assert pages_of(pdf) == 2
    written = unicodedata.normalize("NFC", text_of(pdf, "-raw"))
    for name in (
        "Ọlájùmọ̀kẹ́ Ògúnlẹ́yẹ",
        "Ẹfẹ́ Adébáyọ̀-Ọláníyì",
        "Ɗanladi Ƙyauta",
        "Ụzọamaka Ńgọ́zí",
        "=1+1 @SUM(A1)",
    ):
        assert unicodedata.normalize("NFC", name) in " ".join(written.split())
    assert misplaced(pdf) == []
    # A person without a telephone types it, from one line: the page then knows the school.
    to_type = f"{ISSUER}/invitation?school={api.school}"
    assert written.split().count(to_type) == 12
    addresses = [[code.text for code in zxingcpp.read_barcodes(page)] for page in pages(pdf)]
    assert [len(page) for page in addresses] == [10, 2]
    codes = [
        address.removeprefix(f"{ISSUER}/{api.school}/invitation/") for page in addresses for address in page
    ]
    assert all(len(code) == 14 for code in codes)
    assert all(code in written for code in codes)
    assert len(set(codes)) == 12
    taken = [api.ok(take(api, code))["user"]["username"] for code in codes[:2]]
    assert len(set(taken)) == 2
    listed = api.ok(api.get(f"/invitations?batch={batch}"))
    assert listed["total"] == 10


@needs_poppler
@pytest.mark.program
def test_the_address_to_type_names_the_school_as_people_do(api, batch, issuer, tenancy):
    def rename(short_name):
        with tenancy.admin.begin() as connection:
            change_school(connection, api.school, short_name=short_name)
        # Its details are remembered for some seconds.
        api.app.extensions["school-service"]._schools._fresh._values.clear()

    rename("queen-amina-college-of-lagos-and-kaduna")
    try:
        pdf = slips(api, batch).get_data()
    finally:
        rename(None)

    address = f"{ISSUER}/invitation?school=queen-amina-college-of-lagos-and-kaduna"
    assert text_of(pdf, "-raw").split().count(address) == len(NAMES)
    assert misplaced(pdf) == []


@needs_poppler
@pytest.mark.program
def test_a_line_of_a_long_name_ends_between_words_or_at_a_hyphen(api, make, issuer):
    names = ("Oluwáṣèyífúnmitán-Adébọ̀wálé", "Ògúnlẹ́yẹ-Akinwándé")
    cohort = make.cohort()
    make.enrolled(cohort, make.student(first_name=names[0], middle_name="Ọláolúwakìítán", last_name=names[1]))

    pdf = slips(api, cohort["id"]).get_data()

    printed = unicodedata.normalize("NFC", text_of(pdf, "-raw"))
    for name in names:
        written = unicodedata.normalize("NFC", name)
        assert written in printed or written.replace("-", "-\n") in printed
    assert misplaced(pdf) == []


@pytest.mark.program
def test_without_pages_the_code_stands_alone(api, batch, monkeypatch):
    state = api.app.extensions["school-service"]
    monkeypatch.setattr(state, "settings", replace(state.settings, public_url=None))
    pdf = slips(api, batch).get_data()

    assert "Type the code where you are asked for it" in " ".join(text_of(pdf).split())
    assert [zxingcpp.read_barcodes(page) for page in pages(pdf)] == [[]]


def test_a_workbook_has_a_row_for_each_and_no_formula(api, batch, issuer):
    answer = slips(api, batch, "xlsx")

    sheet = load_workbook(BytesIO(answer.get_data())).active
    rows = [list(row) for row in sheet.iter_rows() if row[0].value is not None]
    heading = next(number for number, row in enumerate(rows) if row[0].value == "Name")
    assert [cell.value for cell in rows[heading]] == [
        "Name", "Class", "Username", "Code", "Valid until", "Address",
    ]  # fmt: skip
    people = rows[heading + 1 :]
    assert len(people) == len(NAMES)
    assert {cell.data_type for row in rows for cell in row if cell.value is not None} == {"s"}
    names = [row[0].value for row in people]
    assert {"=1+1 @SUM(A1)", "+cmd|' /C calc'!A0 -1"} <= set(names)
    code, address = people[0][3].value, people[0][5].value
    assert address == f"{ISSUER}/{api.school}/invitation/{code}"
    api.ok(take(api, code))
    assert is_refused(take(api, code))


def test_nobody_to_invite_is_an_empty_file_and_an_unknown_kind_is_refused(api, make):
    cohort = make.cohort()["id"]

    assert api.post("/invitations/slips?format=docx", {"batch": cohort}).status_code == 422
    assert api.post("/invitations/slips?format=xlsx", {"batch": cohort}).status_code == 200


def test_a_slip_takes_little_time():
    """Processor time of a slip, which is measured by hand: here it is made at all, for one and for five hundred."""
    slip = {
        "name": "Ọlájùmọ̀kẹ́ Ògúnlẹ́yẹ",
        "class": "JSS 1 A",
        "username": "QC/001",
        "code": "K7QM-4TZ9-XDR2",
        "url": None,
        "expires_at": "2026-12-07T10:40:00+00:00",
    }
    about = {
        "school": "Queen's College",
        "title": "Invitations",
        "address": None,
        "time_zone": "Africa/Lagos",
    }
    for count, expected in ((0, 1), (1, 1), (10, 1), (11, 2), (500, 50)):
        pdf = PAPERS["slips"](slips=[slip] * count, **about, made_at="2026-11-23T10:40:00+00:00")
        assert pages_of(pdf) == expected


def test_names_stand_in_the_order_of_the_papers_with_the_middle_name(api, make, issuer):
    cohort = make.cohort()
    make.enrolled(cohort, make.student(first_name="Ngọzi", middle_name="Ada", last_name="Eze"))

    def names():
        rows = load_workbook(BytesIO(slips(api, cohort["id"], "xlsx").get_data())).active.iter_rows()
        return [row[0].value for row in rows][-1]

    assert names() == "Ngọzi Ada Eze"
    api.ok(api.patch("/result-settings", {"name_order": "SURNAME_FIRST"}))
    assert names() == "Eze Ngọzi Ada"
