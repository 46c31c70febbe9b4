"""Choices of a school for its papers: the order of names, signatures, its time zone; and a class with a single arm."""

from __future__ import annotations

import io
import re
import zipfile
from datetime import UTC, datetime
from io import BytesIO
from unicodedata import normalize
from zoneinfo import ZoneInfo

import pytest
from openpyxl import load_workbook

from tests.features.results.publications.arms import Arms
from tests.features.results.report_cards.papers import needs_poppler, text_of
from tests.features.results.report_cards.test_printing import card, cards
from tests.features.results.report_cards.test_verification import HTML, code_of, verify
from tests.prepared import prepared_for_each

pytestmark = [pytest.mark.program, needs_poppler]


def plain_text(pdf):
    return normalize("NFC", " ".join(text_of(pdf).split()))


class SingleArm(Arms):
    """A cohort with one arm."""

    def __init__(self, make):
        self.make, self.api = make, make.api
        self.cohort = make.cohort(make.classroom(name="SSS 1"))
        self.first = self.cohort["id"]
        self.subjects = [make.cohort_subject(self.cohort)]
        student = make.student(first_name="Ada", last_name="Okeke", middle_name="Ngozi")
        self.students = {self.first: make.enrolled(self.cohort, student)}
        self.terms, self.papers, self.submitted_terms = {}, {}, set()

    @property
    def student(self):
        return self.students[self.first][0]


original, arm = prepared_for_each(SingleArm)


def days(moment):
    """The days on which something was published, in two zones that never have the same."""
    at = datetime.fromisoformat(moment)
    dates = {}
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        day = at.astimezone(ZoneInfo(zone))
        dates[zone] = f"{day.day} {day:%B %Y}"
    assert len(set(dates.values())) == 2
    return dates


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_papers_and_pages_tell_days_in_the_schools_time_zone(arm, api, place, zone):
    api.ok(api.patch("/settings", {"time_zone": zone}))
    (publication,) = arm.published(arm.first)
    day = days(publication["published_at"])[zone]
    paper = card(api, arm.student).data
    assert f"Published {day}" in plain_text(paper)

    # A later choice changes no published card.
    api.ok(api.patch("/settings", {"time_zone": "Africa/Cairo"}))

    assert card(api, arm.student).data == paper
    page = verify(api.using(token=None, school=None), place.id, code_of(api, arm.student), accept=HTML)
    assert f"{day}, version 1" in page.get_data(as_text=True)
    sheet = api.get(f"/broadsheets/download?batch={arm.first}&term=FIRST").data
    assert load_workbook(BytesIO(sheet))["Broadsheet"]["A3"].value == f"PUBLISHED: version 1 of {day}"


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_a_transcript_and_a_draft_are_of_the_schools_day(arm, api, zone):
    api.ok(api.patch("/settings", {"time_zone": zone}))
    (publication,) = arm.published(arm.first)
    day = days(publication["published_at"])[zone]

    assert f"Issued on {day}" in plain_text(api.get(f"/students/{arm.student}/transcript/download").data)
    assert f"Draft of {day}" in plain_text(card(api, arm.student, draft="true").data)


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_a_provisional_broadsheet_is_of_the_schools_day(arm, api, zone):
    api.ok(api.patch("/settings", {"time_zone": zone}))
    arm.mark()

    answer = api.get(f"/broadsheets/download?batch={arm.first}&term=FIRST")

    made = load_workbook(BytesIO(answer.data))["Broadsheet"]["A3"].value
    assert made == f"PROVISIONAL: as of {days(datetime.now(UTC).isoformat())[zone]}"


def test_the_note_on_class_figures_tells_the_schools_day(make, api, place):
    api.ok(api.patch("/settings", {"time_zone": "Pacific/Kiritimati"}))
    arms = Arms(make)
    (first,) = arms.published(arms.first)
    best, other = arms.students[arms.first]
    code = code_of(api, best)
    api.ok(arms.reopen(first))
    arms.correct(other, 1)
    (second,) = api.ok(arms.publish(arms.first))

    told = verify(api.using(token=None, school=None), place.id, code).get_json()

    assert told["state"] == "CURRENT"
    assert days(second["published_at"])["Pacific/Kiritimati"] in told["note"]


@pytest.mark.parametrize(
    ("order", "name"), [("SURNAME_FIRST", "Okeke Ada Ngozi"), ("GIVEN_FIRST", "Ada Ngozi Okeke")]
)
def test_names_stand_in_the_order_that_was_chosen_when_they_were_published(arm, api, place, order, name):
    api.ok(api.patch("/result-settings", {"name_order": order}))
    arm.published(arm.first)
    paper = card(api, arm.student).data
    assert name in plain_text(paper)
    assert name in plain_text(api.get(f"/students/{arm.student}/transcript/download").data)

    api.ok(
        api.patch("/result-settings", {"name_order": "GIVEN_FIRST" if order[0] == "S" else "SURNAME_FIRST"})
    )

    assert card(api, arm.student).data == paper
    told = verify(api.using(token=None, school=None), place.id, code_of(api, arm.student)).get_json()
    assert told["student"]["name"] == name
    sheet = api.get(f"/broadsheets/download?batch={arm.first}&term=FIRST").data
    assert name in [cell.value for cell in load_workbook(BytesIO(sheet))["Broadsheet"]["C"]]


def test_cards_have_the_signatures_chosen_when_they_were_published(arm, api):
    papers = {}
    (publication,) = arm.published(arm.first)
    for number, signatures in enumerate(("NONE", "LINES", "PICTURES"), start=2):
        api.ok(arm.reopen(publication))
        api.ok(api.patch("/result-settings", {"signatures": signatures}))
        (publication,) = api.ok(arm.publish(arm.first))
        papers[signatures] = card(api, arm.student).data
        api.ok(api.patch("/result-settings", {"signatures": "NONE"}))
        assert card(api, arm.student).data == papers[signatures]
        assert publication["version"] == number

    assert {name: "School stamp" in plain_text(paper) for name, paper in papers.items()} == {
        "NONE": False,
        "LINES": True,
        # There is no picture.
        "PICTURES": True,
    }
    assert "Form teacher" in plain_text(papers["LINES"])


def test_a_card_explains_its_signs(arm, api):
    arm.published(arm.first)

    text = plain_text(card(api, arm.student).data)

    for sign in (
        "ABS absent, which counts 0",
        "EXC excused, which does not count",
        "inc incomplete",
        "= place shared with others",
    ):
        assert sign in text
    assert "Scan to verify" in text


def test_a_cohort_with_a_single_arm_is_printed_without_it(arm, api, place):
    (publication,) = arm.published(arm.first)
    papers = {
        "card": card(api, arm.student).data,
        "sheet": api.get(f"/broadsheets/download?batch={arm.first}&term=FIRST").data,
    }
    code = code_of(api, arm.student)
    anyone = api.using(token=None, school=None)

    assert "SSS 1" in plain_text(papers["card"])
    for paper in (papers["card"], api.get(f"/students/{arm.student}/transcript/download").data):
        assert not re.search(r"SSS 1 A\b", plain_text(paper))
    assert verify(anyone, place.id, code).get_json()["class"] == "SSS 1"
    with zipfile.ZipFile(io.BytesIO(cards(api, arm.first, format="zip").data)) as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {"SSS 1"}
    title = load_workbook(BytesIO(papers["sheet"]))["Broadsheet"]["A2"].value
    assert title.startswith("Broadsheet of SSS 1, First term")
    # A workbook to fill in is of that arm, since others may come.
    comments = api.get(f"/comments/download-sheet?batch={arm.first}&term=FIRST")
    assert "SSS 1 A" in str(comments.headers["Content-Disposition"])
    # The API names the arm as ever.
    assert publication["batch_name"] == "A"
    assert api.ok(api.get(f"/students/{arm.student}/results?term=FIRST"))["batch_name"] == "A"

    # A second arm changes nothing that is published; live readings have two arms.
    arm.make.batch(arm.cohort, name="B")

    assert card(api, arm.student).data == papers["card"]
    assert api.get(f"/broadsheets/download?batch={arm.first}&term=FIRST").data == papers["sheet"]
    assert verify(anyone, place.id, code).get_json()["class"] == "SSS 1"
    assert "SSS 1 A" in plain_text(card(api, arm.student, draft="true").data)
    live = api.get(f"/broadsheets/download?batch={arm.first}&term=FIRST&live=true").data
    assert load_workbook(BytesIO(live))["Broadsheet"]["A2"].value.startswith("Broadsheet of SSS 1 A,")
    score_sheet = api.get(
        f"/assessments/{arm.papers['FIRST', arm.subjects[0]['id']]['id']}/download-sheet?batch={arm.first}"
    ).data
    assert "SSS 1 A" in str(load_workbook(BytesIO(score_sheet))["Scores"].oddHeader.left.text)


def test_no_paper_calls_a_class_a_cohort(make, api):
    arms = Arms(make)
    arms.published()
    student = arms.students[arms.first][0]

    assert "cohort" not in plain_text(card(api, student).data).lower()
    assert "cohort" not in plain_text(api.get(f"/students/{student}/transcript/download").data).lower()
    sheet = load_workbook(BytesIO(api.get(f"/broadsheets/download?batch={arms.first}&term=FIRST").data))
    shown = [str(cell.value) for each in sheet for row in each.iter_rows() for cell in row]
    assert [text for text in shown if "cohort" in text.lower()] == []


def test_the_details_of_a_workbook_are_hidden(arm, api):
    arm.mark()
    paper = arm.papers["FIRST", arm.subjects[0]["id"]]["id"]

    for path in (
        f"/assessments/{paper}/download-sheet",
        f"/comments/download-sheet?batch={arm.first}&term=FIRST",
        f"/metrics/download-sheet?batchId={arm.first}&term=FIRST&metric_type=AFFECTIVE",
    ):
        answer = api.get(path)
        assert answer.status_code == 200, path
        workbook = load_workbook(BytesIO(answer.data))
        assert {sheet.title: sheet.sheet_state for sheet in workbook} == {
            workbook.worksheets[0].title: "visible",
            "Details": "hidden",
        }
