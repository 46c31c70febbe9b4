"""Report cards over HTTP: of a student, of a batch, as drafts; and the permissions to have them."""

from __future__ import annotations

import io
import json
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unicodedata import normalize

import pytest

from school_service.app import create_app
from school_service.core.texts import position_text
from school_service.features.results.report_cards import service
from school_service.printing.printers import Printers
from tests.client import ApiClient, Document
from tests.conftest import dispose, make_place
from tests.factories import PASSWORD, UNKNOWN_ID, Factory
from tests.features.results.promotions.ends import End
from tests.features.results.publications.arms import Arms
from tests.features.results.report_cards.papers import images_of, needs_poppler, pages_of, places_of, text_of
from tests.printing.pictures import png

pytestmark = pytest.mark.program

FIGURES = ("average", "lowest", "highest")


@pytest.fixture(scope="module", autouse=True)
def made_arms(prepared):
    return prepared(Arms.with_results)


def card(api, student, term="FIRST", **query):
    return api.get(f"/students/{student}/report-card", query_string={"term": term, **query})


def cards(api, batch, term="FIRST", **query):
    return api.get("/report-cards", query_string={"batch": batch, "term": term, **query})


def name_of(api, student):
    record = api.ok(api.get(f"/students/{student}"))
    return f"{record['admission_number'].replace('/', '-')} {record['last_name']} {record['first_name']}"


def check_page(page, result):
    """Assert that a page of a card has the name, letter by letter, and each figure that the API answers."""
    page = normalize("NFC", page)
    student = result["student"]
    assert normalize("NFC", f"{student['first_name']} {student['last_name']}") in page
    assert student["admission_number"] in page
    for subject in result["subjects"]:
        (row,) = (line for line in page.splitlines() if line.startswith(f"{subject['subject']['name']} "))
        batch = subject["batch"]
        place = position_text(batch["position"], tied=batch["tied"])
        figures = (
            subject["percent"],
            subject["grade"],
            place,
            subject["remark"],
            *(batch[name] for name in FIGURES),
        )
        assert " ".join(row.split()).endswith(" ".join(figures))
    facts = " ".join(page.split())
    in_class, in_all = result["batch_figures"], result["cohort_figures"]
    for label, fact in {
        "Total": f"{result['total']} of {result['obtainable']}",
        "Average": result["average"],
        "Grade": f"{result['grade']} · {result['remark']}",
        "Subjects passed": f"{result['passed']} of {result['passed'] + result['failed']}",
        "Position in class": f"{position_text(in_class['position'])} of {in_class['of']}",
        "Position in all arms": f"{position_text(in_all['position'])} of {in_all['of']}",
    }.items():
        assert label in facts
        assert fact in facts


@needs_poppler
def test_the_card_of_a_student_has_the_figures_of_the_api(arms, api, monkeypatch):
    state = api.app.extensions["school-service"]
    monkeypatch.setattr(state, "settings", replace(state.settings, public_url=None))
    arms.published(arms.first)
    student = arms.students[arms.first][0]
    result = api.ok(api.get(f"/students/{student}/results?term=FIRST"))

    answer = card(api, student)

    assert answer.status_code == 200
    assert answer.mimetype == "application/pdf"
    assert answer.headers["Content-Disposition"].startswith("inline; filename=")
    assert "draft" not in answer.headers["Content-Disposition"]
    text = text_of(answer.data, "-layout")
    assert "REPORT CARD" in text
    for subject in result["subjects"]:
        row = next(line for line in text.splitlines() if subject["subject"]["name"] in line)
        assert f"{subject['percent']:.2f}" in row.split()
        assert subject["grade"] in row.split()
    assert f"{result['total']:.2f} of {result['obtainable']}" in text
    assert pages_of(answer.data) == 1
    # Nothing verifies it without a PUBLIC_URL.
    assert "erify" not in text


def test_a_card_is_the_same_bytes_after_all_changes(arms, api):
    (publication,) = arms.published(arms.first)
    student = arms.students[arms.first][0]
    before = card(api, student).data
    first = arms.terms["FIRST"]["id"]
    (band, *_) = api.ok(api.get("/grade-configs"))
    (room,) = (room for room in api.ok(api.get("/classrooms")) if room["name"] == arms.cohort["classroom"])

    for path, changes in {
        f"/students/{student}": {"first_name": "Renamed", "admission_number": "NEW/1", "dob": "2012-01-01"},
        "/letterhead": {"name": "Another school", "principal_name": "Another"},
        f"/grade-configs/{band['id']}": {"letter_grade": "Z", "remarks": "Changed"},
        "/result-settings": {"positions": "NONE", "percent_places": 0, "verification": False},
        f"/classrooms/{room['id']}": {"name": "Renamed", "level": "Another"},
    }.items():
        api.ok(api.patch(path, changes))
    api.ok(api.put(f"/terms/{first}/calendar", {"notice": "Changed", "times_opened": 3}))
    moved = {"students": [student], "batch": arms.second}
    api.ok(api.post(f"/cohorts/{arms.cohort['id']}/enrollment", moved))
    api.ok(arms.reopen(publication))

    assert before.startswith(b"%PDF-")
    assert card(api, student, term=first).data == before


@needs_poppler
def test_the_cards_of_a_batch_come_by_name_as_one_file_or_each_alone(arms, api):
    arms.published(arms.first, arms.second)
    students = api.ok(api.get(f"/students?batch={arms.first}"))["data"]
    assert len(students) > 1

    together, apart = cards(api, arms.first), cards(api, arms.first, format="zip")

    assert (together.mimetype, apart.mimetype) == ("application/pdf", "application/zip")
    pages = text_of(together.data, "-layout").split("\f")[:-1]
    assert len(pages) == len(students)
    for page, student in zip(pages, students, strict=True):
        check_page(
            page, json.loads(api.get(f"/students/{student['id']}/results?term=FIRST").data, parse_float=str)
        )
    with zipfile.ZipFile(io.BytesIO(apart.data)) as archive:
        files = {info.filename: archive.read(info) for info in archive.infolist()}
        assert {info.date_time[0] for info in archive.infolist()} == {2026}
    (folder,) = {name.split("/")[0] for name in files}
    assert folder.endswith(" A")
    assert list(files) == [f"{folder}/{name_of(api, student['id'])}.pdf" for student in students]
    assert cards(api, arms.first, format="zip").data == apart.data
    # Each is the card that its student gets.
    assert list(files.values()) == [card(api, student["id"]).data for student in students]


@needs_poppler
@pytest.mark.parametrize("draft", ["false", "true"])
def test_all_cards_of_a_class_look_alike_also_with_other_subjects(unmarked, make, api, draft):
    unmarked.mark()
    chosen = make.subject(name="Entrepreneurship and Bookkeeping of Cooperative Societies")
    elective = make.cohort_subject(unmarked.cohort, subject=chosen, elective=True)
    taker, other = unmarked.students[unmarked.first]
    api.ok(api.patch(f"/cohort-subjects/{elective['id']}/students", [taker]))
    paper = make.assessment(
        elective, unmarked.terms["FIRST"], category="CA1", total_points=50, publish_scores=True
    )
    make.entry(paper, taker, unmarked.first, 37.5)
    unmarked.subjects.append(elective)
    unmarked.published(unmarked.first)
    headings = ("Subject", "CA1", "Exam", "Total", "%", "Grade", "Pos.", "Remark", "Avg.", "Low", "High")

    alone = [places_of(card(api, student, draft=draft).data, headings) for student in (taker, other)]

    assert {word for word, *_ in alone[0][0]} == {*headings}
    assert alone[0] == alone[1]
    assert places_of(cards(api, unmarked.first, draft=draft).data, headings) == [*alone[0], *alone[1]]


@needs_poppler
def test_some_students_of_a_batch_are_printed_alone(arms, api):
    arms.published(arms.first)
    student, other = arms.students[arms.first]

    answer = cards(api, arms.first, students=[student, student])

    numbers = arms.admission_numbers([student, other])
    assert [number in text_of(answer.data) for number in numbers] == [True, False]


@needs_poppler
def test_a_draft_has_the_live_figures_and_says_that_it_is_one(unmarked, api):
    unmarked.mark(first=81.5)
    student = unmarked.students[unmarked.first][0]

    alone, together = card(api, student, draft="true"), cards(api, unmarked.first, draft="true")

    for answer in (alone, together):
        assert answer.status_code == 200
        text = text_of(answer.data)
        assert "Draft of" in text
        assert "81.50" in text
        assert "not published" in text
        assert "version" not in text
        assert "draft.pdf" in answer.headers["Content-Disposition"]
    assert card(api, student).status_code == 404
    assert cards(api, unmarked.first).status_code == 404


def test_withdrawn_cards_are_not_printed(arms, api):
    (publication,) = arms.published(arms.first)
    student = arms.students[arms.first][0]
    assert card(api, student).status_code == 200

    api.ok(arms.reopen(publication, withdraw=True))

    assert card(api, student).status_code == 404
    assert cards(api, arms.first).status_code == 404


def test_ids_of_the_other_school_are_unknown(arms, api, make_other, other_api):
    arms.published(arms.first)
    theirs = Arms(make_other)
    theirs.published(theirs.first)
    student, stranger = arms.students[arms.first][0], theirs.students[theirs.first][0]
    assert card(other_api, stranger).status_code == 200

    assert card(api, stranger).status_code == 404
    assert card(api, student, term=theirs.terms["FIRST"]["id"]).status_code == 422
    assert cards(api, theirs.first).status_code == 422
    assert cards(api, arms.first, term=theirs.terms["FIRST"]["id"]).status_code == 422
    assert cards(api, arms.first, students=[student, stranger]).status_code == 422
    assert card(api, stranger, draft="true").status_code == 404
    assert cards(api, theirs.first, draft="true").status_code == 422
    assert card(other_api, student).status_code == 404
    assert card(api.using(school=other_api.school), stranger).status_code == 403


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"batch": UNKNOWN_ID}, "batch"),
        ({"batch": "x"}, "batch"),
        ({"term": UNKNOWN_ID}, "term"),
        ({"term": "FOURTH"}, "term"),
        ({"students": ["x"]}, "students"),
        ({"students": [UNKNOWN_ID]}, "students"),
        ({"students": [UNKNOWN_ID] * 201}, "students"),
        ({"format": "docx"}, "format"),
        ({"draft": "perhaps"}, "draft"),
    ],
)
def test_wrong_parameters_are_422(arms, api, query, named):
    arms.published(arms.first)

    answer = api.get("/report-cards", query_string={"batch": arms.first, "term": "FIRST", **query})

    assert answer.status_code == 422
    assert named in answer.get_json()["errors"]["query"]


def test_a_student_of_another_batch_is_named(arms, api):
    arms.published(arms.first, arms.second)
    other = arms.students[arms.second][0]

    answer = cards(api, arms.first, students=[*arms.students[arms.first], other])

    assert answer.status_code == 422
    assert answer.get_json()["errors"]["query"] == {"students": [f"not in the batch: {other}"]}


def test_a_caller_without_the_permission_to_read_results_gets_none(arms, make):
    arms.published(arms.first)
    student = arms.students[arms.first][0]

    for path in (
        f"/students/{student}/report-card?term=FIRST",
        f"/report-cards?batch={arms.first}&term=FIRST",
    ):
        refused = make.caller("read:students", "read:metrics", "write:results").get(path)
        assert refused.status_code == 403
        assert "read:results" in refused.get_json()["message"]
    assert make.caller("read:results").get(path).status_code == 200


def test_printing_is_in_the_audit_log(arms, api):
    arms.published(arms.first)
    student = arms.students[arms.first][0]

    card(api, student)
    cards(api, arms.first)

    entries = api.ok(api.get("/audit?entity=export"))["data"]
    assert [(entry["entity_id"], entry["new"]["paper"]) for entry in entries] == [
        (arms.first, "report cards"),
        (student, "report card"),
    ]
    assert entries[0]["new"]["students"] == 2


@pytest.mark.parametrize("students", [1, 3])
def test_a_card_and_a_class_of_cards_are_one_statement_each(make, api, messages, students):
    arms = Arms(make, students=students)
    arms.published(arms.first)

    for read in (
        lambda: card(api, arms.students[arms.first][0]),
        lambda: cards(api, arms.first),
        lambda: cards(api, arms.first, draft="true"),
    ):
        with messages() as sent:
            assert read().status_code == 200
        # Bound; read; the audit log with COMMIT.
        assert len(sent) == 3


# Students' own


def own(make, student):
    """A client with the token of a student's account."""
    user = make.api.ok(make.api.get(f"/students/{student}"))["user"]
    make.api.ok(make.api.put(f"/users/{user}/password", {"password": PASSWORD}))
    return make.signed_in(make.api.ok(make.api.get(f"/users/{user}")))


@needs_poppler
def test_students_print_their_own_published_results_and_nothing_else(unmarked, make, api):
    unmarked.mark(publish_scores=False, first=88)
    api.ok(api.patch("/result-settings", {"positions": "NONE"}))
    first, second = unmarked.students[unmarked.first]
    me = own(make, first)
    assert card(me, first).status_code == 404

    unmarked.published(unmarked.first)

    mine = card(me, first)
    assert mine.status_code == 200
    assert mine.data == card(api, first).data
    # A score that is not published singly is on no card.
    assert "Exam" not in text_of(mine.data)
    assert "88.00" in text_of(mine.data)
    transcript = me.get(f"/students/{first}/transcript/download")
    assert transcript.status_code == 200
    assert "88.00" in text_of(transcript.data)
    # Positions as the school shows them; its staff see them all the same.
    assert "Position" not in text_of(mine.data) + text_of(transcript.data)
    assert "Position" in text_of(api.get(f"/students/{first}/transcript/download").data)
    for refused in (
        card(me, second),
        card(me, first, draft="true"),
        cards(me, unmarked.first),
        me.get(f"/students/{second}/transcript/download"),
    ):
        assert refused.status_code == 403


def test_a_student_of_the_other_school_prints_nothing_here(arms, make_other, api):
    arms.published(arms.first)
    theirs = Arms(make_other)
    theirs.published(theirs.first)
    stranger = own(make_other, theirs.students[theirs.first][0])
    student = arms.students[arms.first][0]

    assert card(stranger, student).status_code == 403
    assert card(stranger.using(school=api.school), student).status_code == 403
    assert stranger.get(f"/students/{student}/transcript/download").status_code == 403


# Transcripts


@needs_poppler
def test_a_transcript_has_the_figures_of_the_api(arms, api):
    arms.published(arms.first)
    student = arms.students[arms.first][0]
    told = json.loads(api.get(f"/students/{student}/transcript").data, parse_float=str)

    answer = api.get(f"/students/{student}/transcript/download")

    assert answer.mimetype == "application/pdf"
    text = text_of(answer.data, "-layout")
    (session,) = told["sessions"]
    for subject in session["subjects"]:
        row = next(line for line in text.splitlines() if subject["name"] in line)
        assert row.split()[-3:] == [subject["FIRST"], subject["percent"], subject["grade"]]
    (term,) = session["terms"]
    below = {
        line.split()[0]: line.split()[1:] for line in text.splitlines() if line.startswith(("Average", "Pos"))
    }
    assert below["Average"] == [term["average"], session["average"], session["grade"]]
    assert " ".join(below["Position"]) == " ".join(
        f"{position_text(period['position'])} of {period['of']}" for period in (term, session)
    )
    # Letter by letter, with their marks.
    names = (told["school"]["name"], f"{told['student']['first_name']} {told['student']['last_name']}")
    assert [normalize("NFC", name) in normalize("NFC", text) for name in names] == [True, True]
    assert "Page 1 of 1" in text


@needs_poppler
def test_a_transcript_without_anything_published_is_for_staff_alone(arms, make, api):
    student = arms.students[arms.first][0]

    answer = api.get(f"/students/{student}/transcript/download")

    assert "No results are published" in text_of(answer.data)
    assert own(make, student).get(f"/students/{student}/transcript/download").status_code == 404


def test_a_transcript_of_the_other_schools_student_is_404(arms, api, make_other):
    theirs = Arms(make_other)

    assert api.get(f"/students/{theirs.students[theirs.first][0]}/transcript/download").status_code == 404
    assert api.get(f"/students/{UNKNOWN_ID}/transcript/download").status_code == 404


def test_a_transcript_is_one_statement(arms, api, messages):
    arms.published(arms.first)

    with messages() as sent:
        assert api.get(f"/students/{arms.students[arms.first][0]}/transcript/download").status_code == 200

    assert len(sent) == 3


# The letterhead's pictures, and printers


@needs_poppler
def test_a_card_has_the_pictures_that_it_was_published_with(arms, api):
    student = arms.students[arms.first][0]
    images = {"logo": png(80, 80), "signature": png(90, 30, (0, 0, 90))}
    for name, image in images.items():
        files = {"image": (io.BytesIO(image), f"{name}.png")}
        api.ok(api.put(f"/letterhead/{name}", data=files, content_type="multipart/form-data"))
    arms.published(arms.first)

    before = card(api, student).data
    api.ok(api.delete("/letterhead/logo"))
    transcript = api.get(f"/students/{student}/transcript/download").data

    assert [images_of(pdf) for pdf in (before, cards(api, arms.first).data, transcript)] == [
        {(80, 80), (90, 30)}
    ] * 3
    assert card(api, student).data == before


def test_a_printer_that_hangs_ends_with_503_and_takes_no_connection_meanwhile(settings, tenancy):
    app = create_app(replace(settings, pool_size=1, public_url="https://schools.example.org"))
    place = make_place(app, tenancy, "Kings College, Lagos")
    make = Factory(ApiClient(app, Document(app), place.admin_token, place.id))
    arms = Arms(make, students=1, subjects=1)
    arms.published(arms.first)
    begun, go = threading.Event(), threading.Event()

    class Hanging(Printers):
        """Printers that tell when one has begun, and hang from when they may."""

        def _run(self, task):
            begun.set()
            assert go.wait(60)
            return super()._run(task)

    sleeping = (sys.executable, "-I", "-c", "import time; time.sleep(600)")
    app.extensions["printers"] = Hanging(1, command=sleeping, timeout=0.2)
    with ThreadPoolExecutor(1) as threads:
        printed = threads.submit(lambda: card(make.api.using(), arms.students[arms.first][0]))
        assert begun.wait(60)
        # The pool has one connection.
        assert make.api.using().get("/classrooms").status_code == 200
        assert not printed.done()
        go.set()
        refused = printed.result()

    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "2")
    # The address stands on cards of an application that people find.
    app.extensions["printers"] = Printers(1)
    paper = make.api.get(f"/students/{arms.students[arms.first][0]}/report-card?term=FIRST").data
    assert f"https://schools.example.org/verify/{place.id}/" in "".join(text_of(paper).split())
    dispose(app)


# The outcome of a student


@needs_poppler
def test_the_outcome_is_on_the_card_that_has_the_sessions_result_and_on_no_other(make, api):
    end = End(make)
    student, left_out = end.students[end.first]
    first, second = (
        end.published(end.first, end.second, term=term)[0]["term"]["id"] for term in ("FIRST", "SECOND")
    )
    end.decide(left_out, "LEFT_OUT")
    before = {term: card(api, student, term=term).data for term in (first, second)}
    of_class = {term: cards(api, end.first, term=term).data for term in (first, second)}

    promotion = end.promoted()

    assert "Promoted to " in " ".join(text_of(card(api, student, term=second).data).split())
    assert card(api, student, term=first).data == before[first]
    assert text_of(cards(api, end.first, term=second).data).count("Promoted") == 1
    assert cards(api, end.first, term=first).data == of_class[first]
    assert "Outcome" not in text_of(cards(api, end.first, term=first, draft="true").data)
    # As the transcript has it.
    (session,) = api.ok(api.get(f"/students/{student}/transcript"))["sessions"]
    assert session["outcome"] == "PROMOTED"
    api.ok(end.undo(promotion))
    assert {term: card(api, student, term=term).data for term in (first, second)} == before


# Limits, and erased students


def test_more_cards_than_a_file_may_have_are_422(arms, api, monkeypatch):
    arms.published(arms.first)
    monkeypatch.setattr(service, "MAX_CARDS", 1)

    refused = cards(api, arms.first)

    assert refused.status_code == 422
    assert refused.get_json()["errors"]["query"] == {"students": ["2 cards; at most 1 are printed at once"]}
    assert cards(api, arms.first, students=arms.students[arms.first][:1]).status_code == 200


@needs_poppler
def test_the_card_of_an_erased_student_has_figures_and_neither_name_nor_number(arms, api):
    arms.published(arms.first)
    student = arms.students[arms.first][0]
    record = api.ok(api.get(f"/students/{student}"))
    told = [record[name] for name in ("first_name", "last_name", "admission_number")]
    assert set(told) <= set(text_of(card(api, student).data).split())
    api.ok(api.patch(f"/cohorts/{arms.cohort['id']}/remove_students", {"student_ids": [student]}))
    api.ok(api.delete(f"/students/{student}/data"))

    text = text_of(card(api, student, term=arms.terms["FIRST"]["id"]).data)

    assert not set(told) & set(text.split())
    assert "90.00" in text
    assert record["admission_number"] not in text_of(cards(api, arms.first).data)
    assert api.get(f"/students/{student}/transcript/download").status_code == 200
