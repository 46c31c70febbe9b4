"""Transcripts as they are issued: each has a code, by which the holder of the paper verifies it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select

from school_service.core.database import db
from school_service.features.results.models import IssuedTranscript
from school_service.features.results.report_cards import service
from school_service.web.transactions import in_transaction
from tenants.clock import now
from tenants.connections.binding import SchoolBinding
from tests.features.results.publications.arms import Arms
from tests.features.results.report_cards.papers import needs_poppler, text_of
from tests.features.results.report_cards.test_printing import own
from tests.features.results.report_cards.test_verification import HTML, MEMBERS, verify

pytestmark = pytest.mark.program

OF_A_TERM = ("class", "session", "term", "version", "average", "grade", "position", "of", "subjects")


@pytest.fixture(scope="module", autouse=True)
def made_arms(prepared):
    return prepared(Arms.with_results)


@pytest.fixture
def anyone(api):
    """A holder of the paper: no token, no school."""
    return api.using(token=None, school=None)


def transcript(api, student):
    answer = api.get(f"/students/{student}/transcript/download")
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.data


def issued(api, student):
    """The codes of a student's transcripts, in the order in which they were issued."""
    with in_transaction(SchoolBinding(UUID(str(api.school)), read_only=True)):
        query = select(IssuedTranscript.code).where(IssuedTranscript.student_id == UUID(student))
        return list(db.session.scalars(query.order_by(IssuedTranscript.issued_at)))


def issue(api, student):
    """Print a transcript: the code of the last that was issued."""
    transcript(api, student)
    return issued(api, student)[-1]


def test_a_code_tells_the_content_of_its_transcript_and_no_more(arms, api, anyone, place):
    arms.published()
    student = arms.students[arms.first][1]
    shown = json.loads(api.get(f"/students/{student}/transcript").data, parse_float=str)

    told = json.loads(verify(anyone, place.id, issue(api, student)).data, parse_float=str)

    assert set(told) == MEMBERS | {"sessions"}
    assert {name for name in OF_A_TERM if told[name] is not None} == set()
    assert (told["state"], told["school"], told["replaced_at"], told["note"]) == (
        "CURRENT",
        shown["school"]["name"],
        None,
        None,
    )
    who = shown["student"]
    assert told["student"] == {
        "name": f"{who['first_name']} {who['last_name']}",
        "admission_number": who["admission_number"],
    }
    ((session,), (of_session,)) = shown["sessions"], told["sessions"]
    figures = ("average", "grade", "position", "of")
    assert {name: of_session[name] for name in figures} == {name: session[name] for name in figures}
    assert (of_session["session"], of_session["class"]) == (
        session["session"]["name"],
        f"{session['classroom']} A",
    )
    members = ("name", "FIRST", "SECOND", "THIRD", "percent", "grade")
    assert of_session["subjects"] == [{name: row[name] for name in members} for row in session["subjects"]]


@needs_poppler
def test_paper_and_page_say_that_a_place_is_shared(arms, api, anyone, place):
    student, other = arms.students[arms.first]
    for number in range(2):
        arms.correct(other, 90, number)
    arms.published()

    paper = " ".join(text_of(transcript(api, student)).split())
    (code,) = issued(api, student)
    page = verify(anyone, place.id, code, accept=HTML).get_data(as_text=True)

    assert paper.count("1st = of 2") == 2  # of the term and of the session
    assert '<td colspan="5">1st = of 2</td>' in page
    # A transcript of before says the places alone, as its paper does.
    with in_transaction(SchoolBinding(UUID(str(api.school)))):
        db.session.connection().exec_driver_sql(_WITHOUT_TIED)
    page = verify(anyone, place.id, code, accept=HTML).get_data(as_text=True)
    assert '<td colspan="5">1st of 2</td>' in page


_WITHOUT_TIED = """
    UPDATE issued_transcripts SET transcript = regexp_replace(transcript::text, '"tied": true', '"x": 0', 'g')::jsonb
"""


def test_the_same_transcript_of_a_day_is_the_same_paper(arms, api, monkeypatch):
    arms.published()
    student = arms.students[arms.first][0]

    first = transcript(api, student)

    assert transcript(api, student) == first
    assert len(issued(api, student)) == 1
    # Another day, another paper.
    tomorrow = now() + timedelta(days=1)
    monkeypatch.setattr(service, "now", lambda: tomorrow)
    assert transcript(api, student) != first
    assert len(set(issued(api, student))) == 2


def test_another_result_is_another_paper_and_the_one_before_is_replaced(arms, api, anyone, place):
    publications = arms.published()
    student, other = arms.students[arms.first]
    codes = {holder: issue(api, holder) for holder in (student, other)}
    before = verify(anyone, place.id, codes[student]).get_json()
    for publication in publications:
        api.ok(arms.reopen(publication))
    assert verify(anyone, place.id, codes[student]).get_json() == before

    arms.correct(student, 99)
    second, _ = api.ok(arms.publish())

    told = verify(anyone, place.id, codes[student]).get_json()
    # The figures of that paper, and that there are others.
    assert told == {**before, "state": "REPLACED", "replaced_at": second["published_at"]}
    assert verify(anyone, place.id, codes[other]).get_json()["state"] == "CURRENT"
    newer = verify(anyone, place.id, issue(api, student)).get_json()
    assert newer["state"] == "CURRENT"
    assert newer["sessions"][0]["average"] != before["sessions"][0]["average"]


def test_a_change_outside_transcripts_replaces_none(arms, api, anyone, place):
    (publication, _) = arms.published()
    student = arms.students[arms.first][0]
    code = issue(api, student)
    api.ok(arms.reopen(publication))
    comment = {"student": student, "form_teacher_comment": "Others."}
    api.ok(api.put("/comments", {"batch": arms.first, "term": "FIRST", "comments": [comment]}))
    api.ok(arms.publish(arms.first))

    assert verify(anyone, place.id, code).get_json()["state"] == "CURRENT"


def test_a_later_term_replaces_no_transcript_of_the_terms_before(arms, api, anyone, place):
    arms.published()
    student = arms.students[arms.first][0]
    code = issue(api, student)
    arms.mark("SECOND", first=50)
    arms.published(term="SECOND")

    told = verify(anyone, place.id, code).get_json()

    assert (told["state"], told["sessions"][0]["subjects"][0]["SECOND"]) == ("CURRENT", None)
    assert verify(anyone, place.id, issue(api, student)).get_json()["sessions"][0]["subjects"][0]["SECOND"]


def test_a_transcript_of_withdrawn_results_is_withdrawn(arms, api, anyone, place):
    (publication, _) = arms.published()
    student = arms.students[arms.first][0]
    code = issue(api, student)
    api.ok(arms.reopen(publication, withdraw=True))

    told = verify(anyone, place.id, code).get_json()

    assert told["state"] == "WITHDRAWN"
    assert {name for name, value in told.items() if value} == {"state", "school", "published_at"}
    page = verify(anyone, place.id, code, accept=HTML).get_data(as_text=True)
    assert "This transcript was withdrawn" in page
    assert "None" not in page
    # Published again as it was, it is current again.
    api.ok(arms.publish(arms.first))
    assert verify(anyone, place.id, code).get_json()["state"] == "CURRENT"


def test_a_phone_gets_a_page(arms, api, anyone, place):
    arms.published()
    student = arms.students[arms.first][0]
    shown = json.loads(api.get(f"/students/{student}/transcript").data, parse_float=str)

    page = verify(anyone, place.id, issue(api, student), accept=HTML).get_data(as_text=True)

    assert "This transcript is genuine" in page
    (session,) = shown["sessions"]
    for text in (
        session["session"]["name"],
        session["average"],
        *(subject["name"] for subject in session["subjects"]),
    ):
        assert text in page
    assert "None" not in page


def test_where_nothing_is_verified_no_code_is_told(arms, api, anyone, place):
    arms.published()
    student, other = arms.students[arms.first]
    code = issue(api, student)
    api.ok(api.patch("/result-settings", {"verification": False}))
    without = issue(api, other)
    assert verify(anyone, place.id, code).status_code == 404
    api.ok(api.patch("/result-settings", {"verification": True}))

    assert verify(anyone, place.id, code).status_code == 200
    assert verify(anyone, place.id, without).status_code == 404


def test_the_code_is_of_its_school_and_no_answer_has_it(arms, api, other_api, anyone, place):
    arms.published()
    student = arms.students[arms.first][0]
    code = issue(api, student)

    assert verify(anyone, other_api.school, code).status_code == 404
    assert verify(anyone, place.id, uuid4()).status_code == 404
    told = api.get(f"/students/{student}/data")
    assert str(code) not in told.get_data(as_text=True)
    assert len(api.ok(told)["issued_transcripts"]) == 1
    assert str(code) not in api.get(f"/students/{student}/transcript").get_data(as_text=True)


def test_a_transcript_printed_by_a_student_has_the_positions_that_are_shown(arms, make, api, anyone, place):
    api.ok(api.patch("/result-settings", {"positions": "NONE"}))
    arms.published()
    student = arms.students[arms.first][0]

    told = verify(anyone, place.id, issue(own(make, student), student)).get_json()
    of_staff = verify(anyone, place.id, issue(api, student)).get_json()

    assert [told["sessions"][0][name] for name in ("position", "of")] == [None, None]
    assert of_staff["sessions"][0]["position"] == 1
    assert len(issued(api, student)) == 2


def test_a_transcript_of_nothing_is_verified_too(arms, api, anyone, place):
    student = arms.students[arms.first][0]

    told = verify(anyone, place.id, issue(api, student)).get_json()

    assert (told["state"], told["sessions"]) == ("CURRENT", [])


def test_a_transcript_of_an_erased_student_has_neither_name_nor_number(arms, api, anyone, place):
    arms.published()
    student = arms.students[arms.first][0]
    code = issue(api, student)
    before = verify(anyone, place.id, code).get_json()["student"]
    api.ok(api.patch(f"/cohorts/{arms.cohort['id']}/remove_students", {"student_ids": [student]}))
    api.ok(api.delete(f"/students/{student}/data"))

    told = verify(anyone, place.id, code).get_json()

    assert told["state"] == "CURRENT"
    assert told["student"]["admission_number"].startswith("erased-")
    assert [text for text in before.values() if text in str(told)] == []


FACTS = {"admitted_on": "2020-09-14", "left_on": "2026-07-17", "former_school": "Corona School"}
PRINTED = {
    "admitted_on": "Date of admission 14 September 2020",
    "left_on": "Date of leaving 17 July 2026",
    "former_school": "Former school: Corona School",
    "leaving_reason": "Reason for leaving: Moves to Jos",
}


def facts_on(api, student):
    """The key to grades of a transcript, and its facts about the time at the school."""
    text = " ".join(text_of(transcript(api, student)).split())
    assert "Key to grades: A1 from 75 Excellent" in text
    assert (text.count("Date of"), text.count("eaving")) == (
        text.count("Date of admission") + text.count("Date of leaving"),
        text.count("of leaving") + text.count("for leaving"),
    )
    return {name for name, words in PRINTED.items() if words in text}


@needs_poppler
def test_a_transcript_says_days_of_coming_and_leaving_that_the_school_entered_and_of_no_row(arms, api):
    arms.published()
    student = arms.students[arms.first][0]
    path = f"/students/{student}"
    assert facts_on(api, student) == set()

    def facts():
        record = api.ok(api.get(f"{path}/transcript"))["student"]
        return {name: record[name] for name in FACTS}

    assert facts() == dict.fromkeys(FACTS)
    api.ok(api.post("/graduates", {"student": student}))
    assert facts_on(api, student) == set()
    api.ok(api.patch(path, {"left_on": FACTS["left_on"]}))
    assert facts_on(api, student) == {"left_on"}
    api.ok(api.patch(path, {**FACTS, "leaving_reason": "Moves to Jos"}))
    assert facts_on(api, student) == PRINTED.keys()
    assert facts() == FACTS


@needs_poppler
def test_the_reason_for_leaving_is_on_the_paper_of_the_school_alone(arms, api, make):
    arms.published()
    student = arms.students[arms.first][0]
    account = api.ok(api.get(f"/users/{api.ok(api.get(f'/students/{student}'))['user']}"))
    api.ok(api.put(f"/users/{account['id']}/password", {"password": "a password of their own"}))
    left = {**FACTS, "status": "WITHDRAWN", "leaving_reason": "Moves to Jos"}
    api.ok(api.patch(f"/students/{student}", left))
    own = make.signed_in(account, "a password of their own")

    assert facts_on(api, student) == PRINTED.keys()
    assert facts_on(own, student) == PRINTED.keys() - {"leaving_reason"}
    assert "leaving_reason" not in own.ok(own.get(f"/students/{student}/transcript"))["student"]


def test_erasing_takes_dates_and_texts_from_issued_transcripts(arms, api):
    arms.published()
    student = arms.students[arms.first][0]
    left = {**FACTS, "status": "WITHDRAWN", "leaving_reason": "Moves to Jos"}
    api.ok(api.patch(f"/students/{student}", left))
    issue(api, student)
    api.ok(api.patch(f"/cohorts/{arms.cohort['id']}/remove_students", {"student_ids": [student]}))

    def stored():
        (issued,) = api.ok(api.get(f"/students/{student}/data"))["issued_transcripts"]
        return {name: issued["transcript"]["student"][name] for name in PRINTED}

    assert stored() == {**FACTS, "leaving_reason": "Moves to Jos"}
    api.ok(api.delete(f"/students/{student}/data"))
    assert stored() == dict.fromkeys(PRINTED)


def test_transcripts_printed_at_once_are_the_same_paper(committing):
    arms = Arms(committing)
    arms.published()
    student, api = arms.students[arms.first][0], committing.api

    with ThreadPoolExecutor(4) as threads:
        papers = list(threads.map(lambda _: transcript(api.using(), student), range(4)))

    assert len(set(papers)) == 1
    with (
        api.app.app_context(),
        in_transaction(SchoolBinding(UUID(str(api.school)), read_only=True)),
    ):
        assert db.session.scalar(select(func.count()).select_from(IssuedTranscript)) == 1
