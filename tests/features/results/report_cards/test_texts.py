"""Texts of a school on its paper: each is printed as it is, also with markup in it."""

from __future__ import annotations

from html import unescape
from io import BytesIO

import pytest

from tests.features.observations.metrics.sheets import STUDENT, TRAITS
from tests.features.results.report_cards.papers import misplaced, needs_poppler, text_of
from tests.features.results.report_cards.test_verification import HTML, code_of, verify
from tests.features.scores.scoresheets.sheets import sheet_of

pytestmark = pytest.mark.program

# Typst's, HTML's and JSON's markup, parts that begin and never end, a backslash at the end.
MARKUP = "#let x=1 $x$ *b* _i_ `r` @a <b>&amp; // /* [( { \"' \\"
# Letters that no font of ours has, a word too long for a line, a letter with more marks than there are.
NAME = f"{MARKUP} 张😀 {'Ọ' * 20} {'o' + chr(0x301) * 24}"
# In longer texts: the direction of writing, no width, lines and a tab, and a word longer than a line of the page.
LONG = f"{MARKUP} \u202eabc\u202c a\u200bb\n- one\n+ two\tthree {'W' * 200}"

OF_LETTERHEAD = ("name", "motto", "phone_number", "website", "principal_name", "principal_title")
OF_STUDENT = ("first_name", "middle_name", "last_name", "admission_number")
ON_BOTH = (*OF_LETTERHEAD, *OF_STUDENT, "address", "letter_grade", "classroom", "session", "arm", "subject")
ON_CARD = (
    *ON_BOTH,
    "display_name",
    "remarks",
    "title",
    "Trait",
    "form_teacher_comment",
    "principal_comment",
    "notice",
)


def texts(field, **others):
    """A text that begins with the name of its field."""
    return {field: f"{field}: {NAME}"[:120], **others}


def long(field, **others):
    return {field: f"{field}: {LONG}", **others}


@pytest.fixture
def send(api):
    """Send a body; with NUL in any of its texts it is 422."""

    def send(method, path, body):
        for field, value in body.items():
            if MARKUP in str(value):
                refused = api.request(method, path, json={**body, field: f"{value[:20]}\0"})
                assert (refused.status_code, field in str(refused.get_json()["errors"])) == (422, True)
        return api.ok(api.request(method, path, json=body))

    return send


@needs_poppler
def test_every_text_is_printed_as_it_is(make, api, place, send):
    make.without_grade_bands()
    of_school = {name: text for key in OF_LETTERHEAD for name, text in texts(key).items()}
    send("PATCH", "/letterhead", {**of_school, **long("address")})
    band = {"lower_threshold": 0, "upper_threshold": 100}
    send("POST", "/grade-configs", {**band, **texts("letter_grade"), **long("remarks")})
    room = send("POST", "/classrooms", {"name": f"classroom: {NAME}"[:120], "level": f"level: {MARKUP}"})
    session = make.session(name=f"session: {NAME}"[:120])
    term = send("POST", "/terms", texts("display_name", session_id=session["id"], term="FIRST"))
    cohort = make.cohort(room, session)
    batch = send("POST", f"/cohorts/{cohort['id']}/batches", {"name": f"arm: {NAME}"[:120]})["id"]
    subject = send("POST", "/templates", {"name": f"subject: {NAME}"[:120], "code": f"code: {MARKUP}"})
    subject = make.cohort_subject(cohort, subject)
    names = {name: text for key in ("title", "first_name", "last_name") for name, text in texts(key).items()}
    teacher = make.employee(**names)
    api.ok(api.patch(f"/teachers/{batch}/add_to_batch", {"teacher_id": teacher["id"]}))
    student = send(
        "POST", "/students", {name: text for key in OF_STUDENT for name, text in texts(key).items()}
    )
    make.enrolled(cohort, student, batch=batch)
    exam = make.assessment(
        subject, term, category="EXAM", publish_scores=True, abbreviation=MARKUP, name=NAME
    )
    make.entry(exam, student["id"], batch, 15)
    trait = send(
        "POST", "/metric-definitions", {"name": f"Trait: {NAME}"[:120], "metric_type": "PSYCHOMOTOR"}
    )
    row = (*(student[column] for column in STUDENT), *([None] * len(TRAITS)), 4)
    details = [("Batch ID", batch), ("Term ID", term["id"]), ("Metric type", "PSYCHOMOTOR")]
    sheet = sheet_of(row, header=(*STUDENT, *TRAITS, trait["name"]), details=details, title="Metrics")
    form = {"metric_sheet": (BytesIO(sheet), "metrics.xlsx")}
    api.ok(api.post(f"/metrics/upload-sheet?batchId={batch}", data=form, content_type="multipart/form-data"))
    send("PUT", f"/terms/{term['id']}/calendar", long("notice"))
    comment = {"student": student["id"], **long("form_teacher_comment")}
    api.ok(api.put("/comments", {"batch": batch, "term": "FIRST", "comments": [comment]}))
    comments = [{"lower_threshold": 0, "comment": f"principal_comment: {LONG}"}]
    api.ok(api.patch("/result-settings", {"principal_comments": comments}))
    api.ok(api.post(f"/cohort-subjects/{subject['id']}/submission", {"term": "FIRST"}))
    api.ok(api.post("/publications", {"term": "FIRST", "batches": [batch]}))

    card = api.get(f"/students/{student['id']}/report-card?term=FIRST")
    transcript = api.get(f"/students/{student['id']}/transcript/download")
    anyone = api.using(token=None, school=None)
    page = verify(anyone, place.id, code_of(api, student["id"]), accept=HTML).get_data(as_text=True)

    for answer, fields in ((card, ON_CARD), (transcript, ON_BOTH)):
        assert answer.status_code == 200
        assert "filename*=UTF-8''" in answer.headers["Content-Disposition"]
        said = "".join(text_of(answer.data, "-raw").split())
        assert [field for field in fields if f"{field}:{''.join(MARKUP.split())}" not in said] == []
        assert misplaced(answer.data) == []
    shown = (
        "name",
        "first_name",
        "last_name",
        "admission_number",
        "classroom",
        "session",
        "subject",
        "letter_grade",
    )
    assert [field for field in shown if f"{field}: {MARKUP}" not in unescape(page)] == []
    assert "<b>" not in page
