"""No text of a report card reaches into another, and none is broken within a word: poppler tells the box of each word.

Cards of 3, 8 and 18 subjects, of each term, with four weighed assessments, half marks and long names.
"""

from __future__ import annotations

import re
import subprocess
from base64 import b64encode
from decimal import Decimal
from itertools import product

import pytest

from school_service.printing.printers import Printers
from school_service.printing.table_fit import pieces_of
from tests.features.results.report_cards.papers import misplaced, needs_poppler, pages_of, places_of
from tests.printing.pictures import png
from tests.printing.samples import card, score, student, subject_result, task

pytestmark = pytest.mark.program

NAMES = (
    "Literature-in-English", "Entrepreneurship", "Christian Religious Studies", "Physical and Health Education",
    "Agricultural Science", "Government", "Cultural and Creative Arts", "Mathematics", "English Language",
    "Yorùbá", "Further Mathematics", "Data Processing", "Catering Craft Practice", "Civic Education",
    "Financial Accounting", "Commerce", "Geography", "Computer Studies",
)  # fmt: skip
WEIGHTS = {"CA1": 10, "CA2": 15, "CA3": 15, "EXAM": 60}
RULES = {
    "weighting": "CATEGORIES",
    "weights": [
        {"level": None, "category": name, "weight": f"{weight}.00"} for name, weight in WEIGHTS.items()
    ],
}
HEADINGS = ("Subject", "CA1", "CA2", "CA3", "Exam", "%", "Remark", "Avg.", "Low", "High", "Cum.", NAMES[0])
TEACHERS = ["Mrs. Oluwatobilobami Adébáyọ̀-Fágbénlé", "Mr. Chukwuemeka Nwachukwu"]


def results(number, *, mixed):
    """Subject results with half marks; `mixed`: the points of an assessment differ between subjects."""
    rows = []
    for place, name in enumerate(NAMES[:number]):
        points = {"CA1": 20, "CA2": 20, "CA3": 30, "EXAM": 100 if mixed and place % 2 else 70}
        scores = [
            score(category, of, Decimal(of) - place - Decimal("0.5")) for category, of in points.items()
        ]
        if place == 1:
            scores.append(score("CA2", 20, None, absence="ABSENT"))
        result = subject_result(
            place, name, scores=scores, remark="Very Good" if place % 3 else "Satisfactory"
        )
        result["subject"]["teachers"] = TEACHERS[: place % 3]
        rows.append(result)
    return rows


def long_card(number, term, *, mixed=False, **members):
    subjects = results(number, mixed=mixed)
    so_far = card(0, term)["cumulative"]
    names = {"FIRST": "First Term", "SECOND": "Second Term", "THIRD": "Third Term 2025/2026"}
    terms = {"FIRST": "68.25", "SECOND": "100.00" if term != "FIRST" else None, "THIRD": "57.75"}
    so_far["subjects"] = [
        {
            **{member: subject["subject"][member] for member in ("base", "name", "code")},
            "terms": terms,
            "percent": "100.00",
            "grade": "A1",
        }
        for subject in subjects
    ]
    so_far |= {"terms": 2, "average": "68.25", "grade": "B3", "remark": "Satisfactory"}
    comment = (
        "Her conscientiousness and trustworthiness are exemplary; she should, nevertheless, concentrate. " * 2
    )
    made = {
        "subjects": subjects,
        "cumulative": so_far,
        "term_name": names[term],
        "student": student(last_name="Oluwafunmilayo-Adebayo", first_name="Oluwatobilobami"),
        "form_teacher_name": "Mrs. Oluwatobilobami Adébáyọ̀-Fágbénlé",
        "comments": {"form_teacher": comment, "principal": comment},
        "obtainable": 100 * number,
        "total": "1234.50",
        "average": "68.58",
    }
    return card(number, term, **made, **members)


@pytest.fixture(scope="module")
def printed():
    printers = Printers(1)
    yield printers.print
    printers.close()


def of_class(*cards):
    return task(
        *cards,
        rules=RULES,
        pictures={"logo": b64encode(png(120, 120)).decode(), "signature": b64encode(png(200, 60)).decode()},
    )


def print_cards(printed, *cards):
    return printed(of_class(*cards))


def words_of(pdf):
    """The words of a PDF, each as it stands in a line."""
    listed = subprocess.run(
        ["pdftotext", "-bbox", "-", "-"], input=pdf, capture_output=True, check=True
    ).stdout
    return set(re.findall(r"<word [^>]*>(.*?)</word>", listed.decode()))


LENGTHS = (3, 8, 18)


def lengths(of_all, *others):
    """Choose how many subjects the cards have: one number, the next beside the next of each of the others; or all.

    So each number is printed with each pair of a term and another choice.
    """
    return LENGTHS if of_all else (LENGTHS[sum(others) % len(LENGTHS)],)


CHOICES = [
    pytest.param(*choice, of_all, marks=pytest.mark.release if of_all else ())
    for choice in product(("FIRST", "SECOND", "THIRD"), (False, True), ("LINES", "PICTURES"), (0, 2))
    for of_all in (False, True)
    # Half of them have each term with each pair of the others.
    if of_all or (choice[1] + (choice[2] == "LINES") + (choice[3] == 0)) % 2 == 0
]


@needs_poppler
@pytest.mark.parametrize(("term", "mixed", "signatures", "places", "of_all"), CHOICES)
def test_no_text_is_over_another_and_no_word_is_broken(printed, term, mixed, signatures, places, of_all):
    chosen = ("FIRST", "SECOND", "THIRD").index(term), mixed, signatures == "LINES", places == 0
    for number in lengths(of_all, *chosen):
        for teachers in (False, True):
            made = long_card(
                number,
                term,
                mixed=mixed,
                signatures=signatures,
                show_teachers=teachers,
                percent_places=places,
                show_photo=not teachers,
            )
            pdf = print_cards(printed, made)

            assert misplaced(pdf) == []
            words = words_of(pdf)
            texts = [
                *NAMES[:number], *made["comments"].values(), made["form_teacher_name"], *made["student"].values(),
                *(subject["remark"] for subject in made["subjects"]), *(TEACHERS if teachers else ()),
            ]  # fmt: skip
            pieces = {piece for text in texts for piece in as_printed(text)}
            read = {piece for word in words for piece in as_printed(word)}
            assert pieces - read == set(_not_shown(made))


def as_printed(text):
    return [piece.strip("();.,") for piece in pieces_of(text)]


def _not_shown(made):
    known = made["student"]
    return {piece for name in ("id", "gender", "dob") for piece in as_printed(known[name])}


@needs_poppler
def test_a_card_of_eighteen_subjects_is_one_page(printed):
    for term in ("FIRST", "SECOND", "THIRD"):
        assert pages_of(print_cards(printed, long_card(18, term))) == 1


@needs_poppler
@pytest.mark.parametrize("term", ["FIRST", "THIRD"])
def test_all_cards_of_a_class_look_alike(printed, term):
    cards = [long_card(3, term), long_card(8, term, mixed=True), long_card(18, term, show_teachers=True)]
    first, *others = places_of(print_cards(printed, *cards), HEADINGS)
    alone = of_class(*cards)

    assert len(first) > 9
    assert others == [first, first]
    for card_alone in alone["cards"]:
        assert places_of(printed({**alone, "cards": [card_alone]}), HEADINGS) == [first]
