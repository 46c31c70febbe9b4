"""The document of a report card: screens show all that its paper says, and nothing else."""

from __future__ import annotations

import random
from decimal import Decimal
from unicodedata import normalize

import pytest
from sqlalchemy import text

from school_service.core.database import db
from school_service.printing.card_documents import report_card
from school_service.printing.class_tables import class_table
from school_service.printing.papers import print_cards
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.factories import UNKNOWN_ID
from tests.features.reach.conftest import Own
from tests.features.results.promotions.ends import End
from tests.features.results.publications.arms import Arms
from tests.features.results.publications.test_guardians import guardian_of
from tests.features.results.publications.test_published import as_student
from tests.features.results.report_cards.papers import needs_poppler, text_of
from tests.printing.samples import card as sample
from tests.printing.samples import score, subject_result

pytestmark = pytest.mark.program

MEMBERS = [
    "student", "class", "session", "term", "version", "published_at", "replaces", "draft", "issued", "subjects",
    "totals", "figures", "traits", "comments", "signatures", "attendance", "cumulative", "outcome", "next_term_begins",
    "notice", "keys", "letterhead", "photo",
]  # fmt: skip

IN_WORDS = {
    "text", "total_text", "percent_text", "position_text", "issued", "heading", "name", "meaning", "remark", "grade",
    "title", "notice", "motto", "admission_number",
}  # fmt: skip
"""Members of a document that its paper has in the same words."""


@pytest.fixture(scope="module", autouse=True)
def made_arms(prepared):
    return prepared(Arms.with_results)


def card(api, student, term="FIRST", **query):
    return api.get(f"/students/{student}/report-card", query_string={"term": term, **query})


def document_of(api, student, term="FIRST", **query):
    return api.ok(card(api, student, term, format="json", **query))


def words_of(pdf):
    return " ".join(normalize("NFC", text_of(pdf, "-layout")).split())


def texts_in(value, name=None):
    """Every text of a document that its paper has in the same words."""
    if isinstance(value, dict):
        for member, part in value.items():
            yield from texts_in(part, member)
    elif isinstance(value, list):
        for part in value:
            yield from texts_in(part, name)
    elif name in IN_WORDS and value:
        yield value


def texts_missing(document, pdf):
    """Find texts of a document that its paper lacks: by word, since a line may break between two."""
    paper = words_of(pdf)
    texts = texts_in({**document, "keys": {**document["keys"], "columns": []}})
    return [text for text in texts if any(word not in paper for word in normalize("NFC", text).split())]


def check(document, pdf):
    """Assert that a paper has each text of its document, and rows with its figures."""
    assert texts_missing(document, pdf) == []
    lines = [" ".join(line.split()) for line in normalize("NFC", text_of(pdf, "-layout")).splitlines()]
    for subject in document["subjects"]:
        (row,) = (line for line in lines if line.startswith(f"{subject['name']} "))
        cells = [mark["text"] for mark in subject["marks"]] + [subject["percent_text"], subject["grade"]]
        cells += [subject["position_text"], subject["remark"]]
        cells += [f"{subject['class'][name]:.2f}" for name in ("average", "lowest", "highest")]
        assert " ".join(filter(None, cells)) in row


@needs_poppler
@pytest.mark.parametrize("positions", ["BOTH", "BATCH", "COHORT", "NONE"])
def test_a_card_on_a_screen_has_the_content_of_its_paper(arms, api, positions):
    settings = {"positions": positions, "show_teachers": True}
    api.ok(api.patch("/result-settings", settings))
    arms.published()

    for student, _ in arms.everyone:
        document = document_of(api, student)
        assert [*document] == MEMBERS
        check(document, card(api, student).data)
        figures = document["figures"]
        assert (figures["batch"] is not None) == (positions in {"BOTH", "BATCH"})
        assert (figures["cohort"] is not None) == (positions in {"BOTH", "COHORT"})
        assert [subject["position"] is None for subject in document["subjects"]] == [positions == "NONE"] * 2
        assert all(subject["teachers"] == [] for subject in document["subjects"])
        # The address of verification is on the paper alone.
        assert "verify" not in str(document)


def test_teachers_are_null_where_cards_do_not_show_them(arms, api):
    arms.published()
    document = document_of(api, arms.students[arms.first][0])

    assert [subject["teachers"] for subject in document["subjects"]] == [None, None]
    assert document["photo"] is None


def test_scores_that_are_not_published_are_in_percent_and_total_alone(unmarked, api):
    unmarked.mark(publish_scores=False)
    unmarked.published()

    document = document_of(api, unmarked.students[unmarked.first][0])

    assert [subject["marks"] for subject in document["subjects"]] == [[], []]
    assert [subject["percent"] for subject in document["subjects"]] == [90, 90]
    assert not [column for column in document["keys"]["columns"] if column["member"].startswith("marks")]


@needs_poppler
def test_a_draft_on_a_screen_has_the_content_of_its_paper_and_is_for_staff(unmarked, api, make):
    unmarked.mark()
    student = unmarked.students[unmarked.first][0]
    _, guardian = guardian_of(make, student)

    draft = document_of(api, student, draft="true")

    assert (draft["draft"], draft["version"], draft["published_at"]) == (True, None, None)
    check(draft, card(api, student, draft="true").data)
    assert card(api, student, format="json").status_code == 404
    for family in (as_student(make, student), guardian):
        for query in ({"draft": "true"}, {"version": 1}):
            assert card(family, student, format="json", **query).status_code == 403
        assert card(family, student, format="json").status_code == 404


def test_families_see_the_same_document_as_staff_and_of_nobody_else(arms, api, make):
    (publication,) = arms.published(arms.first)
    student, classmate = arms.students[arms.first]
    _, guardian = guardian_of(make, student)

    for family in (as_student(make, student), guardian):
        assert document_of(family, student) == document_of(api, student)
        assert card(family, classmate, format="json").status_code == 403
    assert card(make.caller("read:students"), student, format="json").status_code == 403
    assert document_of(make.caller("read:results"), student) == document_of(api, student)
    api.ok(arms.reopen(publication, withdraw=True))
    assert card(guardian, student, format="json").status_code == 404


@needs_poppler
def test_an_older_version_is_shown_as_it_was_printed(arms, api):
    publications = arms.published()
    student = arms.students[arms.first][0]
    first = document_of(api, student)
    for publication in publications:
        api.ok(arms.reopen(publication))
    arms.correct(student, 40)
    api.ok(arms.publish())

    newer = document_of(api, student)

    assert (newer["version"], newer["replaces"], first["replaces"]) == (2, 1, None)
    assert document_of(api, student, version=1) == first
    assert newer["subjects"] != first["subjects"]
    check(newer, card(api, student).data)


def test_the_format_decides_and_accept_does_not(arms, api):
    arms.published()
    student = arms.students[arms.first][0]
    path = f"/students/{student}/report-card?term=FIRST"

    assert card(api, student, format="pdf").data == card(api, student).data
    assert api.get(path, headers={"Accept": "application/json"}).mimetype == "application/pdf"
    asked = api.get(f"{path}&format=json", headers={"Accept": "application/pdf"})
    assert asked.mimetype == "application/json"
    for wrong in ("zip", "JSON", ""):
        assert card(api, student, format=wrong).status_code == 422
    assert card(api, UNKNOWN_ID, format="json").status_code == 404


def test_the_photo_is_the_address_of_the_present_one_where_cards_show_it(arms, api):
    arms.published()
    student = arms.students[arms.first][0]
    photo = "https://photos.example.org/1.jpg"
    changed = "UPDATE users SET photo = :photo WHERE id = (SELECT user_id FROM students WHERE id = :student)"
    with in_transaction(SchoolBinding(api.school)):
        db.session.execute(text(changed), {"photo": photo, "student": student})

    assert document_of(api, student)["photo"] is None
    with in_transaction(SchoolBinding(api.school)):
        db.session.execute(text("""UPDATE report_cards SET card = card || '{"show_photo": true}'"""))
    assert document_of(api, student)["photo"] == photo


def test_a_student_of_another_school_is_unknown_and_a_token_opens_no_other_school(arms, api, other_api, make):
    arms.published()
    student = arms.students[arms.first][0]
    _, guardian = guardian_of(make, student)

    assert card(other_api, student, format="json").status_code == 404
    for caller, other in ((api, other_api), (guardian, other_api), (other_api, api)):
        assert card(caller.using(school=other.school), student, format="json").status_code == 403
    assert card(api.using(token=None), student, format="json").status_code == 401


def test_a_form_teacher_sees_the_cards_of_their_arm_alone(arms, api, make):
    arms.published()
    (mine, _), (other, *_) = arms.students[arms.first], arms.students[arms.second]
    api.ok(api.patch(f"/sessions/{arms.cohort['session']}", {"current": True}))
    teacher = Own(make).form_teacher(arms.first, "read:results")

    assert document_of(teacher, mine) == document_of(api, mine)
    assert document_of(teacher, mine, draft="true")["draft"]
    for query in ({}, {"draft": "true"}, {"version": 1}):
        assert card(teacher, other, format="json", **query).status_code == 404


def test_a_card_on_a_screen_is_one_statement(arms, api, messages):
    arms.published()

    with messages() as sent:
        document_of(api, arms.students[arms.first][0])

    # Bound; read; the end.
    assert len(sent) <= 3


CATEGORIES = (("CA1", "20.00"), ("CA2", "20.00"), ("EXAM", "60.00"))
WEIGHTS = [{"level": None, "category": category, "weight": weight} for category, weight in CATEGORIES]


def random_subject(number, name):
    """A subject with some assessments of each category: scored, absent, excused or blank; some not published."""
    scores = []
    for category, _ in CATEGORIES:
        for _ in range(random.choice((1, 1, 2))):
            absence = random.choice((None, None, None, "ABSENT", "EXCUSED"))
            entered = None if absence else Decimal(random.randrange(0, 2_001)) / 100
            publish = random.random() < 0.8
            scores.append(score(category, 20, entered, absence=absence, publish=publish, name=name))
    return subject_result(number, name, scores=scores, percent=str(Decimal(random.randrange(10_001)) / 100))


@needs_poppler
@pytest.mark.parametrize("seed", range(8))
def test_papers_of_random_cards_have_every_figure_of_their_documents(seed):
    random.seed(seed)
    subjects = [
        random_subject(number, name) for number, name in enumerate(("Art", "Igbo", "Music", "French"), 1)
    ]
    frozen = sample(
        4,
        random.choice(("FIRST", "SECOND", "THIRD")),
        subjects=subjects,
        positions=random.choice(("BOTH", "BATCH", "COHORT", "NONE")),
        show_teachers=random.random() < 0.5,
        show_ca_total=random.random() < 0.5,
        percent_places=random.choice((0, 1, 2)),
    )
    weighted = {"weighting": "CATEGORIES", "weights": WEIGHTS}
    rules = random.choice(({"weighting": "POINTS", "weights": []}, weighted))
    frozen["letterhead"] |= {"logo": None, "signature": None}
    rules["table"] = class_table([frozen], rules)
    document = report_card(frozen, rules=rules)
    row = {"card": frozen, "code": None, "rules": rules}

    made = print_cards(cards=[row], pictures={}, title=None, verify_at=None, drafted_at=None, archive=False)

    printed = [*words_of(made).split()]
    figures = [
        figure
        for subject in document["subjects"]
        for figure in (
            *(mark["text"] for mark in subject["marks"] or ()),
            subject["ca_total"],
            subject["total_text"],
            subject["percent_text"],
            subject["position_text"],
            *(subject["class"] or {}).values(),
            *(subject["terms"] or {}).values(),
            subject["cumulative"],
        )
        if figure
    ]
    assert {word for figure in figures for word in figure.split()} <= {*printed}
    assert texts_missing(document, made) == []
    hidden = {
        (subject["subject"]["name"], score["category"])
        for subject in subjects
        for score in subject["scores"]
        if not score["publish"]
    }
    for subject in document["subjects"]:
        for mark in subject["marks"] or ():
            assert (subject["name"], mark["category"]) not in hidden or mark["score"] is mark["mark"] is None


@needs_poppler
def test_a_guardian_reads_the_content_of_the_paper_by_two_requests_also_after_the_promotion(make, api):
    end = End(make)
    end.published()
    student = end.students[end.first][0]
    _, mother = guardian_of(make, student)

    def readings():
        (listed,) = mother.ok(mother.get(f"/students/{student}/report-cards"))
        return listed, document_of(mother, student, listed["term"]["id"])

    listed, document = readings()
    check(document, card(api, student).data)
    assert (listed["version"], listed["average"]) == (document["version"], document["totals"]["average"])

    end.promoted()

    # The outcome alone is new, on paper too.
    listed_since, since = readings()
    assert since["outcome"]["outcome"] == "PROMOTED"
    assert (listed_since, {**since, "outcome": None}) == (listed, document)
    assert document_of(mother, student) == document_of(mother, student, listed["term"]["id"])
    check(document_of(mother, student), card(mother, student).data)
