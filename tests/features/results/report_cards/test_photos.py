"""The students' photos on report cards: as they were when the cards were published."""

from __future__ import annotations

import io
from base64 import b64decode

import pytest

from tests.features.results.publications.arms import Arms
from tests.features.results.report_cards.papers import images_of, needs_poppler, places_of, text_of
from tests.prepared import prepared_for_each
from tests.printing.pictures import png

pytestmark = pytest.mark.program

FIRST, SECOND = (200, 250), (240, 300)  # pixels
HEADINGS = ("Subject", "Exam", "%", "Remark", "Avg.", "Low", "High")


original, without_photos = prepared_for_each(Arms.with_results)


@pytest.fixture
def arms(api, without_photos):
    api.ok(api.patch("/result-settings", {"show_photo": True}))
    return without_photos


def user_of(api, student):
    return api.ok(api.get(f"/students/{student}"))["user"]


def put(api, student, size=FIRST):
    body = {"image": (io.BytesIO(png(*size)), "photo.png")}
    return api.ok(
        api.put(f"/users/{user_of(api, student)}/photo", data=body, content_type="multipart/form-data")
    )


def card(api, student, term="FIRST", **query):
    return api.get(f"/students/{student}/report-card", query_string={"term": term, **query})


def cards(api, batch, **query):
    return api.get("/report-cards", query_string={"batch": batch, "term": "FIRST", **query})


@needs_poppler
def test_a_card_has_the_photo_of_its_publication(arms, api):
    student, other = arms.students[arms.first]
    put(api, student)
    arms.published()

    before = card(api, student).data
    user = put(api, student, SECOND)

    assert images_of(before) == {FIRST}
    assert card(api, student).data == before
    assert api.ok(card(api, student, format="json"))["photo"] == user["photo"]
    assert images_of(cards(api, arms.first).data) == {FIRST}
    assert images_of(card(api, other).data) == set()
    assert api.ok(card(api, other, format="json"))["photo"] is None


@needs_poppler
def test_cards_show_no_photo_unless_the_school_wants_it(without_photos, api):
    arms = without_photos
    (student, _) = arms.students[arms.first]
    put(api, student)
    (publication,) = arms.published(arms.first)

    plain = card(api, student).data
    api.ok(api.patch("/result-settings", {"show_photo": True}))

    assert images_of(plain) == set()
    assert "Photo" not in text_of(plain).split()
    assert card(api, student).data == plain
    arms.reopen(publication)
    arms.publish(arms.first)
    assert images_of(card(api, student).data) == {FIRST}


@needs_poppler
def test_cards_of_a_class_look_alike_with_a_photo_and_without(arms, api):
    student, other = arms.students[arms.first]
    put(api, student)
    arms.published()

    pages = [places_of(card(api, holder).data, HEADINGS) for holder in (student, other)]

    assert pages[0] == pages[1]
    assert "Photo" in text_of(card(api, other).data).split()


@needs_poppler
def test_a_draft_has_the_present_photo(arms, api):
    student, other = arms.students[arms.first]
    put(api, student, SECOND)

    drafts = [card(api, holder, draft="true").data for holder in (student, other)]

    assert [images_of(draft) for draft in drafts] == [{SECOND}, set()]
    assert images_of(cards(api, arms.first, draft="true").data) == {SECOND}
    assert images_of(cards(api, arms.second, draft="true").data) == set()


@needs_poppler
def test_the_next_version_has_the_photo_of_its_own_day_and_nothing_else_changed(arms, api):
    student, _ = arms.students[arms.first]
    put(api, student)
    (publication,) = arms.published(arms.first)
    put(api, student, SECOND)

    arms.reopen(publication)
    (second,) = api.ok(arms.publish(arms.first))

    assert (second["version"], second["changed"], second["class_figures_changed"]) == (2, 0, 0)
    assert images_of(card(api, student).data) == {SECOND}
    assert images_of(card(api, student, version=1).data) == {FIRST}


@needs_poppler
def test_erasing_a_student_takes_the_photo_off_every_card(arms, api):
    student, _ = arms.students[arms.first]
    put(api, student)
    (publication,) = arms.published(arms.first)
    arms.reopen(publication)
    arms.publish(arms.first)
    told = api.ok(api.get(f"/students/{student}/data"))["report_cards"]
    term = arms.terms["FIRST"]["id"]
    api.ok(api.patch(f"/cohorts/{arms.cohort['id']}/remove_students", {"student_ids": [student]}))

    api.ok(api.delete(f"/students/{student}/data"))

    assert [b64decode(answer["photo"])[:3] for answer in told] == [b"\xff\xd8\xff"] * 2
    for version in (1, 2):
        assert images_of(card(api, student, term=term, version=version).data) == set()
    assert {row["photo"] for row in api.ok(api.get(f"/students/{student}/data"))["report_cards"]} == {None}


def test_a_dry_run_names_the_students_without_a_photo(without_photos, api):
    arms = without_photos
    student, other = arms.students[arms.first]
    put(api, student)

    (silent,) = api.ok(arms.publish(arms.first, query="?dry_run=true"))
    api.ok(api.patch("/result-settings", {"show_photo": True}))
    (asked, second) = api.ok(arms.publish(query="?dry_run=true"))

    assert silent["photos_missing"] is None
    assert asked["photos_missing"] == {"count": 1, "students": [other]}
    assert second["photos_missing"]["count"] == 2


def test_photos_take_no_statement_of_their_own(arms, api, messages):
    for student in arms.students[arms.first]:
        put(api, student)
    arms.published()

    with messages() as sent:
        cards(api, arms.first)

    # Bound; read; the entry of the audit log with the end.
    assert len(sent) <= 4
