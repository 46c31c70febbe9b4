"""The places of the parts of a card, made of its document."""

from __future__ import annotations

import json
from hashlib import sha256
from importlib import resources

import pytest

from school_service import printing
from school_service.core.texts import ordinal, position_text
from school_service.printing.card_documents import report_card
from school_service.printing.card_subjects import NOT_THERE
from school_service.printing.report_cards import compose_card
from school_service.printing.report_cards_1 import compose_card as compose_first_card
from school_service.printing.wording import age, long_date, mark, running_head, words
from tests.printing.samples import BARE, card, figures, first_card, letterhead, score, student, subject_result

POINTS = {"weighting": "POINTS", "weights": []}


def composed(document, *, rules=POINTS, address=None, **made):
    return compose_card(report_card(document, rules=rules, **made), address=address)


def compose_first(document, *, rules=POINTS, address=None, **made):
    return compose_first_card(report_card(document, rules=rules, **made), address=address)


def column(made, heading, group=None):
    """The cells of a column, by its heading."""
    (place,) = [
        number
        for number, column in enumerate(made["columns"])
        if column["heading"] == heading and group in (None, column["group"])
    ]
    return [row[place] for row in made["rows"]]


def headings(made):
    return [column["heading"] for column in made["columns"]]


def of_scores(*scores, **members):
    return card(1, subjects=[subject_result(1, "Mathematics", scores=list(scores), **members)])


def test_figures_stand_as_they_are_published():
    made = composed(card(12))

    assert column(made, "%") == [result["percent"] for result in card(12)["subjects"]]
    assert column(made, "Avg.") == ["61.07"] * 12
    assert dict(made["result"])["Total"] == f"{card(12)['total']} of 1200"
    assert dict(made["result"])["Average"] == card(12)["average"]
    assert dict(made["result"])["Position in class"] == "2nd = of 40"
    assert dict(made["result"])["Position in all arms"] == "5th of 120"


def test_a_category_is_one_column_with_its_points_above_where_all_have_the_same():
    first = subject_result(
        1, "Physics", scores=[score("CA1", 10, 4), score("CA1", 5, "3.5"), score("EXAM", 60, 50)]
    )
    second = subject_result(2, "Yorùbá", scores=[score("CA1", 15, 9), score("EXAM", 70, 61)])

    made = composed(card(2, subjects=[first, second]))

    assert column(made, "CA1") == ["7.5", "9"]
    assert column(made, "Exam") == ["50/60", "61/70"]
    assert {column["heading"]: column["below"] for column in made["columns"]}["CA1"] == "of 15"
    assert not {"CA2", "CA3"} & set(headings(made))


@pytest.mark.parametrize(
    ("scores", "cell"),
    [
        ([score("CA1", 10, 0)], "0"),
        ([score("CA1", 10, None, absence="ABSENT")], "ABS"),
        ([score("CA1", 10, None, absence="EXCUSED")], "EXC"),
        ([score("CA1", 10, 6), score("CA1", 10, None, absence="ABSENT")], "6 ABS"),
        ([score("CA1", 10, None, absence="ABSENT"), score("CA1", 10, None, absence="ABSENT")], "ABS"),
        ([score("CA1", 10, None)], ""),
    ],
    ids=["zero", "absent", "excused", "one-of-two", "both", "blank"],
)
def test_zero_absent_excused_and_blank_are_told_apart(scores, cell):
    assert column(composed(of_scores(*scores)), "CA1") == [cell]


def test_a_score_that_is_not_published_is_in_the_total_alone():
    hidden = score("CA1", 10, 9, publish=False)

    made = composed(of_scores(hidden, score("EXAM", 60, 50), score="59.00", points="70.00", percent="84.29"))

    assert "CA1" not in headings(made)
    assert column(made, "Total") == ["59"]
    assert column(made, "%") == ["84.29"]


def test_a_category_has_a_figure_of_its_own_only_with_all_its_assessments_published():
    hidden = score("CA1", 10, 9, publish=False)
    results = [
        subject_result(1, "Physics", scores=[score("CA1", 10, 4), score("CA2", 10, 7), hidden]),
        subject_result(2, "Art", scores=[score("CA1", 10, None, absence="ABSENT"), hidden]),
        subject_result(3, "Yorùbá", scores=[score("CA1", 10, 6), score("CA2", 10, 8)]),
    ]

    document = report_card(card(3, subjects=results, show_ca_total=True), rules=POINTS)
    made = compose_card(document, address=None)

    assert column(made, "CA1") == [NOT_THERE, "ABS", "6"]
    assert column(made, "CA") == ["7", NOT_THERE, "14"]
    assert [subject["percent"] for subject in document["subjects"]] == [
        result["percent"] for result in results
    ]
    assert document["subjects"][0]["marks"][0] == {
        "category": "CA1", "score": None, "points": None, "mark": None, "weight": None, "text": NOT_THERE,
    }  # fmt: skip
    # A card published before keeps the sum that it was printed with.
    assert column(composed(card(3, subjects=results)), "CA1") == ["13/20", "9/20 ABS", "6/10"]


def test_columns_are_as_wide_as_their_texts():
    def widths(**members):
        results = [subject_result(1, "Art", **members), subject_result(2, "Yorùbá")]
        made = composed(card(2, subjects=results))
        return {column["heading"]: column["share"] or column["width"] for column in made["columns"]}

    plain, wide = widths(), widths(grade="Distinction", remark="Unsatisfactory")

    assert wide["Grade"] > plain["Grade"]
    assert wide["Remark"] > plain["Remark"]
    assert wide["Subject"] == plain["Subject"]
    # No text takes the room of all others.
    assert widths(remark="Good " * 400)["Remark"] < plain["Subject"]


def test_the_total_is_left_out_where_the_percent_says_the_same_and_else_it_has_its_points():
    excused = subject_result(1, "Physics", score="52.00", points="90.00", percent="57.78")

    assert "Total" not in headings(composed(card(3)))
    assert column(composed(card(2, subjects=[excused, subject_result(2, "Yorùbá")])), "Total") == [
        "52/90",
        "65.5/100",
    ]
    assert column(composed(card(1, subjects=[excused])), "Total") == ["52"]


def test_columns_of_categories_have_their_weights_and_a_level_has_its_own():
    weights = [
        {"level": level, "category": category, "weight": weight}
        for level, of in ((None, ("30.00", "70.00")), ("JSS", ("40.00", "60.00")))
        for category, weight in zip(("CA1", "EXAM"), of, strict=True)
    ]
    rules = {"weighting": "CATEGORIES", "weights": weights}

    def weighed(made):
        return [column["below"] for column in made["columns"] if column["heading"] in {"CA1", "Exam"}]

    assert weighed(composed(card(2), rules=rules)) == ["of 10 → 40", "of 60 → 60"]
    assert weighed(composed(card(2, level="SSS"), rules=rules)) == ["of 10 → 30", "of 60 → 70"]
    assert weighed(composed(card(2), rules={**rules, "weighting": "POINTS"})) == ["of 10", "of 60"]
    # The first layout has no more than that.
    first = compose_first(first_card(2), rules=rules)
    assert weighed(first) == ["of 10\nweighs 40", "of 60\nweighs 60"]


def test_a_mark_is_followed_by_its_weighed_value():
    weights = [
        {"level": None, "category": name, "weight": of} for name, of in (("CA1", "30.00"), ("EXAM", "70.00"))
    ]
    results = [
        subject_result(1, "Physics", scores=[score("CA1", 10, 7), score("EXAM", 60, 44)]),
        # An absence counts 0; an excused mark is in neither sum.
        subject_result(2, "Yorùbá", scores=[score("CA1", 10, 8), score("CA1", 10, None, absence="ABSENT"),
                                            score("EXAM", 60, None, absence="EXCUSED")]),
        subject_result(3, "Art", scores=[score("CA1", 10, 8), score("CA1", 10, None, absence="EXCUSED"),
                                         score("EXAM", 60, 20, publish=False)]),
    ]  # fmt: skip
    rules = {"weighting": "CATEGORIES", "weights": weights}

    made = composed(card(3, subjects=results), rules=rules)

    assert column(made, "CA1") == ["7/10 → 21", "8/20 ABS → 12", "8/20 EXC → 24"]
    assert column(made, "Exam") == ["44 → 51.33", "EXC", "\N{EN DASH}"]
    # The sum of marks that weigh differently says nothing.
    assert "Total" not in headings(made)
    assert "8 → 32 a mark, and what it comes to by its weight" in made["legend"]
    rounded = composed(card(3, subjects=results, percent_places=0), rules=rules)
    assert column(rounded, "Exam")[0] == "44 → 51"


def test_a_percent_of_printed_marks_names_their_sum_and_weights():
    weights = [
        {"level": None, "category": name, "weight": of} for name, of in (("CA1", "20.00"), ("EXAM", "80.00"))
    ]
    part = {"marks": [], "marks_sum": "73.30", "weights_present": "80.00"}
    results = [
        subject_result(1, "Physics", percent="91.63", **part),
        subject_result(2, "Yorùbá", percent="55.50", marks=[], marks_sum="55.50", weights_present="100.00"),
    ]
    rules = {"weighting": "CATEGORIES", "weights": weights, "percent_from": "MARKS"}

    made = composed(card(2, subjects=results), rules=rules)

    assert column(made, "%") == ["91.63\n73.3 of 80", "55.50"]
    assert "73.3 of 80 the sum of the marks, and of their weights" in made["legend"]
    for others in ({**rules, "percent_from": "EXACT"}, {"weighting": "CATEGORIES", "weights": weights}):
        assert column(composed(card(2, subjects=results), rules=others), "%") == ["91.63", "55.50"]


def test_the_sum_of_ca_stands_behind_them_if_the_school_shows_it():
    weights = [
        {"level": None, "category": name, "weight": of}
        for name, of in (("CA1", "20.00"), ("CA2", "20.00"), ("EXAM", "60.00"))
    ]
    scores = [score("CA1", 10, 6), score("CA2", 10, None, absence="ABSENT"), score("EXAM", 60, 44)]
    shown = card(1, show_ca_total=True, subjects=[subject_result(1, "Physics", scores=scores)])

    made = composed(shown)

    assert headings(made)[1:5] == ["CA1", "CA2", "CA", "Exam"]
    assert column(made, "CA") == ["6"]
    assert column(composed(shown, rules={"weighting": "CATEGORIES", "weights": weights}), "CA") == ["12"]
    assert "CA" not in headings(composed({**shown, "show_ca_total": False}))


def test_a_card_without_marks_has_no_key_to_them():
    made = composed(card(0, "SECOND", marks=False, cumulative=card(3, "SECOND")["cumulative"]))

    assert (made["bands"], made["legend"], made["rows"], made["session"]) == ([], [], [], [])
    assert made["traits"]
    assert made["attendance"]


def test_beside_a_picture_of_a_signature_there_is_room_for_the_stamp():
    signed = card(1, signatures="PICTURES")
    signed["letterhead"] = {**signed["letterhead"], "signature": "0" * 64}

    assert composed({**signed, "has_stamp": True})["signatures"]["stamp"]
    # Papers from before stay as they are.
    assert not composed(signed)["signatures"]["stamp"]


def test_percents_have_the_places_that_the_school_has_chosen():
    results = [
        subject_result(1, "Physics", percent="77", batch={**figures(), "lowest": "5", "highest": "90.5"})
    ]
    made = composed(card(1, subjects=results, percent_places=1))

    assert (column(made, "%"), column(made, "Low"), column(made, "High")) == (["77.0"], ["5.0"], ["90.5"])
    assert column(made, "Avg.") == ["61.1"]
    whole = composed(card(1, "THIRD", percent_places=0))
    assert column(whole, "Avg.") == ["61"]
    # Published percents of earlier terms are not rounded: the session's percent follows from them.
    assert column(whole, "1st") == column(composed(card(1, "THIRD")), "1st")


def test_the_outcome_of_a_student_is_in_words():
    def outcome(*of):
        name, to = of
        return composed(card(1, "THIRD"), outcome=name, outcome_class=to)["outcome"]

    assert outcome("PROMOTED", "SSS 2") == "Promoted to SSS 2"
    assert outcome("PROMOTED_ON_TRIAL", "SSS 2") == "Promoted on trial to SSS 2"
    assert outcome("REPEATED", "SSS 1") == "Repeats SSS 1"
    assert outcome("GRADUATED", None) == "Graduated"
    assert outcome(None, None) is None


def test_the_session_is_so_far_until_it_is_complete():
    def heading(term, outcome=None):
        return composed(card(1, term), outcome=outcome)["session_heading"]

    assert [heading(term) for term in ("SECOND", "THIRD")] == ["Session so far", "Session"]
    # A class may end with its second term.
    assert heading("SECOND", "GRADUATED") == "Session"


def test_a_signatory_has_a_picture_or_a_line():
    def signatures(setting, **of_letterhead):
        return composed(card(1, signatures=setting, letterhead=letterhead(**of_letterhead)))["signatures"]

    with_picture, without = signatures("PICTURES"), signatures("PICTURES", signature=None)
    assert [signatory["signature"] for signatory in with_picture["signed"]] == [None, "signature"]
    assert [signatory["signature"] for signatory in without["signed"]] == [None, None]
    assert (with_picture["stamp"], without["stamp"]) == (False, True)
    assert signatures("LINES") == without
    assert signatures("NONE") is None
    assert [(signatory["title"], signatory["name"]) for signatory in without["signed"]] == [
        ("Form teacher", "Ṣadé Bàlógun"),
        ("Principal", "Mrs Ngọzi Ọkáfọ̀"),
    ]


def test_names_stand_in_the_order_that_the_school_has_chosen():
    assert composed(card(1))["name"] == "Ẹniọlá Temitọ́pẹ́ Ògúnlẹ́yẹ"
    assert composed(card(1, name_order="SURNAME_FIRST"))["name"] == "Ògúnlẹ́yẹ Ẹniọlá Temitọ́pẹ́"
    alone = student(middle_name=None)
    assert composed(card(1, name_order="SURNAME_FIRST", student=alone))["name"] == "Ògúnlẹ́yẹ Ẹniọlá"


def test_days_follow_the_time_zone_of_the_school():
    late = "2025-12-19T23:30:00+00:00"

    assert composed(card(1, published_at=late))["issued"] == "Published 20 December 2025  ·  version 1"
    assert composed(card(1, published_at=late, time_zone="America/Lima"))["issued"].startswith(
        "Published 19 "
    )
    born = student(dob="2012-12-20")
    ages = {
        zone: dict(
            composed(card(1, published_at=late, time_zone=zone, calendar=BARE["calendar"], student=born))[
                "student"
            ]
        )
        for zone in ("Africa/Lagos", "UTC")
    }
    assert [ages[zone]["Age"] for zone in ages] == ["13", "12"]


def test_a_class_without_another_arm_is_called_by_its_classroom():
    assert dict(composed(card(1, class_name="JSS 1"))["student"])["Class"] == "JSS 1"


# Cards of the first layout

FIRST_CONTENT = {
    "3 FIRST None": "8275bec46422f54e",
    "18 SECOND None": "5d2a768305695686",
    "12 THIRD PROMOTED": "2e8cc85eb671c51e",
}
FIRST_TEMPLATES = {"report-cards-1": "218ca456ebdfd972", "common-1": "8d208a31bc9ef58d"}


def digest(content):
    return sha256(content).hexdigest()[:16]


def test_cards_of_the_first_layout_and_their_templates_stay_the_same():
    """Bytes of paper follow from the content and the template: neither is to change."""
    made = {
        f"{number} {term} {outcome}": compose_first(
            first_card(number, term), address="https://x.example/1", outcome=outcome
        )
        for number, term, outcome in ((3, "FIRST", None), (18, "SECOND", None), (12, "THIRD", "PROMOTED"))
    }
    content = {name: digest(json.dumps(document, sort_keys=True).encode()) for name, document in made.items()}
    templates = {name: digest(resources.files(printing).joinpath(f"templates/{name}.typ").read_bytes())
                 for name in ("report-cards-1", "common-1")}  # fmt: skip

    assert content == FIRST_CONTENT
    assert templates == FIRST_TEMPLATES


def test_the_first_term_has_no_session_and_the_third_has_every_term():
    assert composed(card(3))["session"] == []
    assert "Cum." not in headings(composed(card(3)))

    made = composed(card(3, term="THIRD"))

    so_far = card(3, term="THIRD")["cumulative"]
    assert headings(made)[-4:] == ["1st", "2nd", "3rd", "Cum."]
    assert column(made, "3rd") == column(made, "%")
    assert column(made, "Cum.") == [subject["percent"] for subject in so_far["subjects"]]
    assert dict(made["session"]) == {
        "Terms": "3",
        "Average": so_far["average"],
        "Grade": f"{so_far['grade']}  ·  {so_far['remark']}",
        "Position in class": "3rd of 40",
        "Position in all arms": "7th of 120",
    }


def test_a_subject_of_an_earlier_term_is_shown_with_its_terms_alone():
    document = card(3, term="SECOND")
    dropped = document["subjects"].pop(1)

    made = composed(document)

    assert column(made, "Subject") == [
        *(subject["subject"]["name"] for subject in document["subjects"]),
        dropped["subject"]["name"],
    ]
    assert column(made, "%")[-1] == ""
    assert column(made, "1st")[-1] != ""
    assert column(made, "Cum.")[-1] == document["cumulative"]["subjects"][1]["percent"]


@pytest.mark.parametrize(
    ("positions", "in_table", "in_result"),
    [
        ("BOTH", ["8th"], {"Position in class", "Position in all arms"}),
        ("BATCH", ["8th"], {"Position in class"}),
        ("COHORT", ["12th"], {"Position in all arms"}),
        ("NONE", None, set()),
    ],
)
def test_positions_are_on_a_card_as_the_school_shows_them(positions, in_table, in_result):
    made = composed(card(1, positions=positions))

    assert (column(made, "Pos.") if "Pos." in headings(made) else None) == in_table
    assert {label for label, _ in made["result"] if label.startswith("Position")} == in_result


def test_the_position_in_all_arms_is_left_out_where_the_class_is_the_only_one():
    made = card(1, positions="BOTH")
    alone = {**made, "cohort_figures": made["batch_figures"]}

    assert {label for label, _ in composed(alone)["result"] if label.startswith("Position")} == {
        "Position in class"
    }


def test_a_student_without_position_has_no_label_for_it():
    made = composed(card(2, batch_figures=figures(None, None), cohort_figures=figures(None, None)))

    assert not [label for label, _ in made["result"] if label.startswith("Position")]


def test_absent_parts_of_a_card_are_left_out():
    made = composed(card(2, **BARE, student=student(middle_name=None, gender=None, dob=None)))

    assert made["student"] == [
        ("Admission number", "UHS-2023-001"),
        ("Class", "JSS 1 A"),
        ("Number in class", "40"),
    ]
    assert (made["traits"], made["attendance"], made["comments"], made["notes"], made["bands"]) == ([],) * 5
    assert (made["letterhead"]["motto"], made["letterhead"]["contacts"], made["trait_key"]) == (None,) * 3


def test_a_card_of_nothing_but_a_name():
    made = composed(card(0))

    assert made["rows"] == []
    assert dict(made["result"]) == {"Position in class": "2nd = of 40", "Position in all arms": "5th of 120"}


def test_a_comment_names_its_writer():
    form_teacher, principal = composed(card(1))["comments"]

    assert (form_teacher["title"], form_teacher["name"]) == ("Form teacher", "Ṣadé Bàlógun")
    assert (principal["title"], principal["name"]) == ("Principal", "Mrs Ngọzi Ọkáfọ̀")
    unsigned = letterhead(principal_name=None, signature=None)
    said = {"form_teacher": "Good", "principal": None}
    (alone,) = composed(card(1, letterhead=unsigned, comments=said))["comments"]
    assert alone["text"] == "Good"


def test_a_card_names_its_version_and_the_replaced_one():
    assert composed(card(1))["issued"] == "Published 19 December 2025  ·  version 1"
    assert composed(card(1, version=3))["issued"].endswith("version 3 (replaces version 2)")
    draft = composed(card(1, version=None, published_at=None), drafted_at="2026-01-02T00:00:00+00:00")
    assert draft["draft"]
    assert draft["issued"] == "Draft of 2 January 2026. These results are not published."


def test_the_age_is_of_the_last_day_of_the_term():
    assert dict(composed(card(1))["student"])["Age"] == "13"
    # Where the school has not said when the term ends, the day of the publication counts.
    assert dict(composed(card(1, calendar=BARE["calendar"]))["student"])["Age"] == "13"
    assert age("2012-12-20", "2025-12-19") == 12
    assert age("2012-12-19", "2025-12-19T23:00:00+00:00") == 13
    assert age("2012-02-29", "2025-02-28") == 12


def test_ordinals():
    told = {1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 31: "31st",
            102: "102nd", 111: "111th", 113: "113th"}  # fmt: skip

    assert {number: ordinal(number) for number in told} == told
    assert position_text(2, tied=True) == "2nd ="


def test_marks_lose_zeros_that_say_nothing():
    assert [mark(figure) for figure in ("8.00", "15.50", "0.00", 20, "100.00", "0.05")] == [
        "8", "15.5", "0", "20", "100", "0.05",
    ]  # fmt: skip


def test_dates_in_words():
    assert long_date("2026-01-02") == "2 January 2026"
    assert long_date("2025-12-19T23:59:59.12345+00:00") == "19 December 2025"
    assert long_date(None) is None


@pytest.mark.parametrize("text", ["Ògúnlẹ́yẹ", "Two words", "line\nline", "  spaced  out "])
def test_ordinary_words_are_left_as_they_are(text):
    assert words(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "Ọ" + "lẹ́" * 30,
        "A very " + "long" * 40 + " word among others",
        "o\u0323\u0301" * 40,
        "क\u094d\u200dष" * 20,
        "x" * 15 + "\n" + "y" * 15,
    ],
)
def test_a_long_word_is_divided_without_losing_a_letter_or_a_mark(text):
    parts = words(text)

    assert "".join(parts) == text
    assert all(len(part) < 60 for part in parts)
    assert not [part for part in parts[1:] if part[0] in "\u0301\u0323\u200d\u094d"]
    assert "A very " in parts or not text.startswith("A")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("o\u0323\u0300\u0301", "o\u0323\u0300\u0301"),
        ("o" + "\u0301" * 7 + "l", "o" + "\u0301" * 3 + "◌" + "\u0301" * 3 + "◌\u0301l"),
        ("\u0301" * 4, "\u0301" * 3 + "◌\u0301"),
    ],
    ids=range(3),
)
def test_more_marks_than_a_letter_has_stand_beside_it(text, written):
    assert words(text) == written


def test_the_head_of_a_further_page_has_two_lines_at_most():
    long = "n\u0300" * 120

    head = "".join(running_head([long, None, "UHS/1\n2"]))

    assert len(head) <= 140
    assert head.endswith("n\u0300…")
    assert running_head(["Ẹniọlá", None, "UHS/1\n2"]) == "Ẹniọlá  ·  UHS/1 2"


def test_blank_texts_are_nothing():
    assert [words(text) for text in (None, "", "  ", "\n")] == [None] * 4


def test_the_points_of_most_subjects_are_above_the_total():
    excused = subject_result(1, "Physics", score="52.00", points="90.00", percent="57.78")
    others = [subject_result(number, f"Subject {number}") for number in (2, 3)]

    made = composed(card(3, subjects=[excused, *others]))

    assert {column["heading"]: column["below"] for column in made["columns"]}["Total"] == "of 100"
    assert column(made, "Total") == ["52/90", *(mark(subject["score"]) for subject in others)]


def test_a_term_that_is_named_with_its_session_is_not_named_twice():
    assert composed(card(1))["heading"] == "First Term  ·  2025/2026"
    assert composed(card(1, term_name="First Term 2025/2026"))["heading"] == "First Term 2025/2026"


def test_teachers_of_a_subject_stand_below_it_where_the_school_shows_them():
    shown = composed(card(4, show_teachers=True))
    of_before = card(4)
    del of_before["show_teachers"]

    assert shown["teachers"] == [
        ", ".join(result["subject"]["teachers"]) or None for result in card(4)["subjects"]
    ]
    assert shown["teachers"][:2] == ["Mrs. Ẹniọlá Adébáyọ̀, Dr. Ngozi Eze", None]
    assert composed(card(4))["teachers"] == composed(of_before)["teachers"] == []
