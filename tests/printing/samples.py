"""Cards of the tests, in the form of `report_cards.card`, as a publication freezes them."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from school_service.printing.class_tables import class_table

SUBJECTS = (
    "Mathematics", "English Language", "Basic Science", "Basic Technology", "Social Studies", "Civic Education",
    "Agricultural Science", "Yorùbá", "French", "Computer Studies", "Physical and Health Education",
    "Christian Religious Studies", "Business Studies", "Home Economics", "Cultural and Creative Arts", "History",
    "Hausa", "Igbo", "Music", "Arabic", "Security Education", "Literature in English", "Further Mathematics",
    "Entrepreneurship",
)  # fmt: skip
AFFECTIVE = (
    "punctuality", "neatness", "honesty", "reliability", "relationship with others", "politeness", "alertness",
    "self control", "attentiveness", "perseverance",
)  # fmt: skip
PSYCHOMOTOR = (
    "handwriting", "games and sports", "drawing and arts", "painting", "construction", "musical skills",
    "flexibility", "handling tools", "fluency", "dexterity",
)  # fmt: skip
BANDS = (
    ("A1", 75, "Excellent"), ("B2", 70, "Very Good"), ("B3", 65, "Good"), ("C4", 60, "Credit"), ("C5", 55, "Credit"),
    ("C6", 50, "Credit"), ("D7", 45, "Pass"), ("E8", 40, "Pass"), ("F9", 0, "Fail"),
)  # fmt: skip
TEACHERS: tuple[tuple[str, ...], ...] = (
    ("Mr. Chinedu Okafor",), ("Mrs. Ẹniọlá Adébáyọ̀", "Dr. Ngozi Eze"), (), ("Ms. Amina Bello",),
)  # fmt: skip
POINTS = {"CA1": 10, "CA2": 10, "CA3": 20, "EXAM": 60}
TERMS = ("FIRST", "SECOND", "THIRD")
NAMES = {"FIRST": "First Term", "SECOND": "Second Term", "THIRD": "Third Term"}


def identify(*parts: Any) -> str:
    """An id that is the same in each run."""
    return str(uuid5(NAMESPACE_URL, "/".join(map(str, parts))))


def hundredths(value: Any) -> Decimal:
    """Round half up to two places."""
    return Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP)


def band(percent: Any) -> tuple[str, str]:
    """The grade and remark of a percent."""
    return next((letter, remark) for letter, lowest, remark in BANDS if Decimal(percent) >= lowest)


def figures(position: int | None = 4, of: int | None = 40, *, tied: bool = False) -> dict[str, Any]:
    """A position, and how the class did."""
    place = {"position": position, "tied": tied, "of": of}
    return {**place, "average": "61.07", "lowest": "23.50", "highest": "96.25"}


def subject_result(number: int, name: str, **members: Any) -> dict[str, Any]:
    """A subject result: scores that differ by number."""
    scores = {
        "CA1": Decimal(number * 7 % 11),
        "CA2": Decimal(number * 5 % 11),
        "CA3": Decimal(number * 3 % 20) + Decimal("0.5"),
        "EXAM": Decimal(20 + number * 13 % 41),
    }
    total = sum(scores.values())
    letter, remark = band(total)
    made = {
        "subject": {
            "id": identify("cohort subject", name),
            "base": identify("subject", name),
            "name": name,
            "code": name[:3].upper(),
            "elective": False,
            "teachers": list(TEACHERS[number % len(TEACHERS)]),
        },
        "scores": [
            score(category, points, scores[category], name=name) for category, points in POINTS.items()
        ],
        "status": "GRADED",
        "score": str(hundredths(total)),
        "points": "100.00",
        "percent": str(hundredths(total)),
        "grade": letter,
        "remark": remark,
        "batch": figures(1 + number * 7 % 40, tied=number % 5 == 2),
        "cohort": figures(1 + number * 11 % 120, 120),
    }
    return {**made, **members}


def score(category: str, points: Any, entered: Any, **members: Any) -> dict[str, Any]:
    """The score of a student in an assessment."""
    name = members.pop("name", "")
    made = {
        "assessment": identify(category, name),
        "category": category,
        "abbreviation": category,
        "total_points": str(hundredths(points)),
        "score": None if entered is None else str(hundredths(entered)),
        "absence": None,
        "publish": True,
    }
    return {**made, **members}


def card(number: int = 12, term: str = "FIRST", **members: Any) -> dict[str, Any]:
    """A card with everything on it; `members` replace its own. Figures are texts."""
    results = [subject_result(place, name) for place, name in enumerate(sorted(SUBJECTS[:number]), start=1)]
    total = sum(Decimal(result["percent"]) for result in results)
    average = hundredths(total / len(results)) if results else None
    grade, remark = band(average) if results else (None, None)
    passed = sum(Decimal(result["percent"]) >= 40 for result in results)
    made = {
        "layout": 3,
        "student": student(),
        "batch": identify("batch"),
        "batch_name": "A",
        "class_name": "JSS 1 A",
        "cohort": identify("cohort"),
        "classroom": "JSS 1",
        "level": "JSS",
        "session": {"id": identify("session"), "name": "2025/2026"},
        "term": {"id": identify("term", term), "term": term},
        "term_name": NAMES[term],
        "version": 1,
        "published_at": "2025-12-19T14:30:00+00:00",
        "number_in_class": 40,
        "subjects": results,
        "status": "COMPLETE" if results else "NONE",
        "total": str(hundredths(total)),
        "obtainable": 100 * len(results),
        "average": None if average is None else str(average),
        "grade": grade,
        "remark": remark,
        "passed": passed,
        "failed": len(results) - passed,
        "batch_figures": figures(2, tied=True),
        "cohort_figures": figures(5, 120),
        "cumulative": cumulative(results, term),
        "letterhead": letterhead(),
        "calendar": {
            "start_date": "2025-09-15",
            "end_date": "2025-12-19",
            "times_opened": 118,
            "next_term_begins": "2026-01-12",
            "notice": "School fees of the next term are due by 16 January. Bring a mathematical set and two novels.",
        },
        "attendance": {"opened": 118, "present": 112, "absent": 6},
        "traits": [
            {"type": kind, "name": name, "value": 1 + number * 3 % 5}
            for kind, names in (("AFFECTIVE", AFFECTIVE), ("PSYCHOMOTOR", PSYCHOMOTOR))
            for number, name in enumerate(names)
        ],
        "trait_key": [
            {"value": value, "meaning": meaning}
            for value, meaning in ((5, "Excellent"), (4, "Good"), (3, "Fair"), (2, "Weak"), (1, "Poor"))
        ],
        "comments": {
            "form_teacher": "Ẹniọlá is attentive and helps others. She should write more carefully in Mathematics.",
            "principal": "A very good result. Keep it up.",
        },
        "form_teacher_name": "Ṣadé Bàlógun",
        "bands": [
            {"grade": letter, "lower_threshold": str(lowest), "remark": words} for letter, lowest, words in BANDS
        ],
        "positions": "BOTH",
        "pass_mark": "40.00",
        "percent_places": 2,
        "verification": True,
        "name_order": "GIVEN_FIRST",
        "signatures": "PICTURES",
        "show_teachers": False,
        "time_zone": "Africa/Lagos",
    }  # fmt: skip
    return {**made, **members}


def first_card(number: int = 12, term: str = "FIRST", **members: Any) -> dict[str, Any]:
    """A card as it was frozen while there was one layout."""
    made = card(number, term, **members)
    since = ("layout", "class_name", "name_order", "signatures", "show_teachers", "time_zone")
    for result in made["subjects"]:
        result["subject"].pop("teachers")
    return {name: value for name, value in made.items() if name not in since}


def cumulative(results: list[dict[str, Any]], term: str) -> dict[str, Any]:
    """A session result until a term: each earlier term had a few percents more or less."""
    terms = TERMS[: TERMS.index(term) + 1]
    subjects = []
    for number, result in enumerate(results):
        own = Decimal(result["percent"])
        percents = {
            name: str(own if name == term else hundredths(min(max(own + number % 7 * place - 9, 0), 100)))
            for place, name in enumerate(terms, start=1)
        }
        percent = hundredths(sum(map(Decimal, percents.values())) / len(percents))
        subjects.append(
            {
                **{name: result["subject"][name] for name in ("base", "name", "code")},
                "terms": {name: percents.get(name) for name in TERMS},
                "percent": str(percent),
                "grade": band(percent)[0],
            }
        )
    average = (
        hundredths(sum(Decimal(subject["percent"]) for subject in subjects) / len(subjects))
        if subjects
        else None
    )
    grade, remark = band(average) if subjects else (None, None)
    return {
        "terms": len(terms),
        "average": None if average is None else str(average),
        "grade": grade,
        "remark": remark,
        "batch_figures": figures(3),
        "cohort_figures": figures(7, 120),
        "subjects": subjects,
    }


def student(**members: Any) -> dict[str, Any]:
    """The student of a card."""
    made = {
        "id": identify("student"),
        "admission_number": "UHS-2023-001",
        "first_name": "Ẹniọlá",
        "middle_name": "Temitọ́pẹ́",
        "last_name": "Ògúnlẹ́yẹ",
        "gender": "FEMALE",
        "dob": "2012-03-04",
    }
    return {**made, **members}


def letterhead(**members: Any) -> dict[str, Any]:
    """The head of the paper."""
    made = {
        "name": "Unity High School",
        "address": "12 Awólọ́wọ̀ Road, Ìbàdàn, Ọ̀yọ́ State",
        "phone_number": "+234 803 000 0000",
        "email_address": "office@unity.example",
        "website": "https://unity.example",
        "motto": "Knowledge and Character",
        "principal_name": "Mrs Ngọzi Ọkáfọ̀",
        "principal_title": "Principal",
        "logo": "logo",
        "signature": "signature",
    }
    return {**made, **members}


BARE: dict[str, Any] = {
    "letterhead": {
        **dict.fromkeys(letterhead()),
        "name": "Unity High School",
    },
    "calendar": dict.fromkeys(("start_date", "end_date", "times_opened", "next_term_begins", "notice")),
    "attendance": dict.fromkeys(("opened", "present", "absent")),
    "traits": [],
    "trait_key": [],
    "comments": {"form_teacher": None, "principal": None},
    "form_teacher_name": None,
    "bands": [],
    "positions": "NONE",
    "verification": False,
}
"""Members of a card on which everything optional is missing."""


def task(*cards: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A task of printing cards, as of a class."""
    rules: dict[str, Any] = {"weighting": "POINTS", "weights": [], **members.pop("rules", {})}
    rules["table"] = class_table(cards, rules) if cards[0].get("layout") == 3 else None
    made = {
        "paper": "report-cards",
        "cards": [
            {"card": card, "code": identify("code", number), "rules": rules}
            for number, card in enumerate(cards)
        ],
        "pictures": {},
        "title": "Report cards: JSS 1 A",
        "verify_at": f"https://schools.example.org/verify/{identify('school')}",
        "drafted_at": None,
        "archive": False,
    }
    return {**made, **members}


def transcript(sessions: int = 6, subjects: int = 14, **members: Any) -> dict[str, Any]:
    """A transcript, as the API answers it: from JSS 1 on."""
    made = {
        "school": letterhead(),
        "sessions": [transcript_session(number, subjects) for number in range(sessions)],
        "graduation_class": "SSS 3 A",
        "own": False,
        "verification": True,
        "name_order": "GIVEN_FIRST",
        "signatures": "PICTURES",
        "time_zone": "Africa/Lagos",
        "bands": [
            {"grade": letter, "lower_threshold": str(lowest), "remark": words}
            for letter, lowest, words in BANDS
        ],
        "issued_on": "2026-07-24",
    }
    facts = {
        "admitted_on": "2020-09-14",
        "former_school": "Corona School, Apapa",
        "left_on": "2026-07-24",
        "leaving_reason": "Has finished school.",
    }
    return {**made, **members, "student": {**facts, **members.get("student", student())}}


def transcript_session(number: int, subjects: int) -> dict[str, Any]:
    """A session of a transcript; its terms have a few percents less or more."""
    names = enumerate(sorted(SUBJECTS[:subjects]), start=1)
    results = cumulative([subject_result(number, name) for number, name in names], "THIRD")
    place = {"position": 2 + number, "of": 40}
    return {
        "session": {"id": identify("session", number), "name": f"{2020 + number}/{2021 + number}"},
        "classroom": f"{'JSS' if number < 3 else 'SSS'} {number % 3 + 1}",
        "batch_name": "A",
        "class_name": f"{'JSS' if number < 3 else 'SSS'} {number % 3 + 1} A",
        "terms": [
            {
                "term": {"id": identify("term", number, term), "term": term},
                "average": "61.25",
                "grade": "C4",
                **place,
                "version": 1,
                "published_at": "2025-12-19T14:30:00+00:00",
            }
            for term in TERMS
        ],
        "subjects": [
            {
                "name": result["name"],
                "code": result["code"],
                **result["terms"],
                "percent": result["percent"],
                "grade": result["grade"],
            }
            for result in results["subjects"]
        ],
        "average": results["average"],
        "grade": results["grade"],
        **place,
        "outcome": "GRADUATED" if number == 5 else "PROMOTED",
        "outcome_class": None if number == 5 else f"{'JSS' if number < 2 else 'SSS'} {(number + 1) % 3 + 1}",
    }


def transcript_task(**members: Any) -> dict[str, Any]:
    """A task of printing a transcript."""
    return {
        "paper": "transcript",
        "transcript": transcript(),
        "issued_at": "2026-07-24T09:00:00+00:00",
        "code": identify("code", "transcript"),
        "verify_at": f"https://schools.example.org/verify/{identify('school')}",
        "pictures": {},
        **members,
    }
