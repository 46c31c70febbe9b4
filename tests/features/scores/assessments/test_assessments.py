"""Assessments of a cohort subject in a term."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.threads import run_concurrently

BODY = {
    "category": "EXAM",
    "name": "Ìdánwò àkọ́kọ́",
    "abbreviation": "EX",
    "due_date": "2025-12-05",
    "total_points": 60,
    "description": "Everything up to fractions",
    "file_name": "exam.xlsx",
    "include_in_final": True,
    "publish_scores": False,
}


def body(taught, **fields):
    return {**BODY, "subject": taught.subject["id"], "term": taught.term["id"], **fields}


def filters(taught, **fields):
    names = {"cohort": taught.cohort["id"], "subject": taught.subject["id"], "term": taught.term["id"]}
    return {**names, **fields}


def page(api, query):
    return api.ok(api.get("/assessments", query_string=query))


def ids(api, query):
    return [assessment["id"] for assessment in page(api, query)["data"]]


def reasons(answer, place="json"):
    assert answer.status_code == 422, answer.get_data(as_text=True)
    return answer.get_json()["errors"][place]


def test_an_assessment_is_created_and_shown_without_its_description(api, make):
    taught = make.taught(0)

    made = api.ok(api.post("/assessments", body(taught)))

    shown = {name: value for name, value in body(taught).items() if name != "description"}
    assert made == {"id": made["id"], **shown}
    assert api.ok(api.get(f"/assessments/{made['id']}")) == made
    assert page(api, filters(taught)) == {
        "page_number": 0,
        "page_size": 50,
        "total_pages": 1,
        "total": 1,
        "data": [made],
    }


def test_the_same_again_is_another_assessment(api, make):
    taught = make.taught(0)

    first, second = (api.ok(api.post("/assessments", body(taught))) for _ in range(2))

    assert ids(api, filters(taught)) == [first["id"], second["id"]]


@pytest.mark.parametrize("points", [1, 0.01, 12.5, 99999.99, 1e2])
def test_total_points_have_two_places(api, make, points):
    taught = make.taught(0)

    assert api.ok(api.post("/assessments", body(taught, total_points=points)))["total_points"] == points


@pytest.mark.parametrize(
    "points",
    [
        "0",
        "-1",
        "0.001",
        "12.345",
        "12.50000000000000000000000000000001",
        "99999.991",
        "100000",
        "1e9",
        "1e999999999",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "NaN",
        "Infinity",
        "-Infinity",
        "true",
        "null",
        '"60"',
        "[60]",
    ],
)
def test_other_points_are_refused_and_not_rounded(api, make, points):
    taught = make.taught(0)
    text = api.app.json.dumps(body(taught, total_points="POINTS")).replace('"POINTS"', points)

    answer = api.request("POST", "/assessments", data=text, content_type="application/json")

    assert list(reasons(answer)) == ["total_points"]
    assert ids(api, filters(taught)) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("category", "CA4"),
        ("category", "exam"),
        ("name", ""),
        ("name", " "),
        ("name", "x" * 121),
        ("name", "\0"),
        ("name", "\ud800"),
        ("name", 1),
        ("abbreviation", None),
        ("due_date", "05-12-2025"),
        ("due_date", "2025-02-30"),
        ("due_date", "2025-12-05T00:00:00"),
        ("description", "x" * 2001),
        ("file_name", "x" * 256),
        ("include_in_final", "true"),
        ("publish_scores", 1),
        ("subject", "x"),
        ("term", 1),
        ("deleted_at", None),
    ],
)
def test_a_body_that_is_no_assessment_is_refused(api, make, field, value):
    assert list(reasons(api.post("/assessments", body(make.taught(0), **{field: value})))) == [field]


def test_a_description_may_be_empty(api, make):
    assessment = api.ok(api.post("/assessments", body(make.taught(0), description="")))

    api.ok(api.patch(f"/assessments/{assessment['id']}", {"description": " "}))


@pytest.mark.parametrize("field", ["subject", "term", *BODY])
def test_every_member_is_needed(api, make, field):
    sent = body(make.taught(0))
    del sent[field]

    assert list(reasons(api.post("/assessments", sent))) == [field]


def test_unknown_ids_in_the_body_are_named(api, make):
    taught = make.taught(0)
    base = make.subject()

    for subject in (uuid4(), base["id"], taught.cohort["id"]):
        answer = api.post("/assessments", body(taught, subject=str(subject)))
        assert reasons(answer) == {"subject": ["no such cohort subject"]}
    answer = api.post("/assessments", body(taught, term=str(uuid4())))
    assert reasons(answer) == {"term": ["no such term"]}


def test_the_term_must_be_of_the_cohorts_session(api, make):
    taught = make.taught(0)

    answer = api.post("/assessments", body(taught, term=make.term()["id"]))

    assert reasons(answer) == {"term": ["is not of the cohort's session"]}


def test_a_cohort_with_assessments_keeps_its_session(api, make):
    taught = make.taught(0)
    make.assessment(taught.subject, taught.term)
    change = {"classroom": make.classroom()["id"], "session_id": make.session()["id"]}

    assert api.patch(f"/cohorts/{taught.cohort['id']}", change).status_code == 409


def test_a_cohort_with_a_deleted_assessment_keeps_its_session_too(api, make):
    taught = make.taught(0)
    assessment = make.assessment(taught.subject, taught.term)
    api.ok(api.delete(f"/assessments/{assessment['id']}"))
    change = {"classroom": make.classroom()["id"], "session_id": make.session()["id"]}

    assert api.patch(f"/cohorts/{taught.cohort['id']}", change).status_code == 409


def test_assessments_are_found_by_any_batch_and_by_either_subject(api, make):
    cohort, base = make.cohort(), make.subject()
    subject, term = make.cohort_subject(cohort, base), make.term({"id": cohort["session"]})
    arm = make.batch(cohort)
    made = make.assessment(subject, term)

    for batch in (cohort["id"], arm["id"]):
        for either in (subject["id"], base["id"]):
            assert ids(api, {"cohort": batch, "subject": either, "term": term["id"]}) == [made["id"]]


def test_assessments_of_other_terms_and_subjects_are_not_listed(api, make):
    taught = make.taught(0)
    session = {"id": taught.cohort["session"]}
    second, other_subject = make.term(session, term="SECOND"), make.cohort_subject(taught.cohort)
    make.assessment(taught.subject, second)
    make.assessment(other_subject, taught.term)

    assert ids(api, filters(taught)) == []
    assert ids(api, filters(taught, cohort=make.cohort()["id"])) == []
    assert ids(api, filters(taught, subject=make.subject()["id"])) == []


def test_assessments_come_by_due_date_and_by_page(api, make):
    taught = make.taught(0)
    days = ["2025-11-03", "2025-10-01", "2025-12-24"]
    made = {day: make.assessment(taught.subject, taught.term, due_date=day) for day in days}

    first = page(api, filters(taught, pageSize=2))
    last = page(api, filters(taught, pageSize=2, pageNumber=1))
    beyond = page(api, filters(taught, pageSize=2, pageNumber=2))

    assert [assessment["id"] for assessment in first["data"] + last["data"]] == [
        made[day]["id"] for day in sorted(days)
    ]
    assert (first["total"], first["total_pages"], beyond["total"], beyond["data"]) == (3, 2, 3, [])


@pytest.mark.parametrize("name", ["cohort", "subject", "term"])
def test_a_filter_is_needed_and_must_name_an_existing_record(api, make, name):
    taught = make.taught(0)
    query = filters(taught)
    del query[name]

    assert list(reasons(api.get("/assessments", query_string=query), "query")) == [name]
    for value in (str(uuid4()), "x", ""):
        answer = api.get("/assessments", query_string={**query, name: value})
        assert list(reasons(answer, "query")) == [name]


def test_the_list_costs_one_round_trip_however_long_it_is(api, make, messages):
    taught = make.taught(0)
    for size in (2, 20):
        for _ in range(size):
            make.assessment(taught.subject, taught.term)
        page(api, filters(taught))
        with messages() as sent:
            page(api, filters(taught))
        assert len(sent) == 1, sent


def test_a_deleted_assessment_is_gone_from_every_answer(api, make):
    taught = make.taught()
    remaining, gone = (make.assessment(taught.subject, taught.term) for _ in range(2))
    entries = {
        assessment["id"]: make.entry(assessment, taught.students[0], taught.cohort["id"])
        for assessment in (remaining, gone)
    }
    left, lost = entries[remaining["id"]], entries[gone["id"]]

    assert api.ok(api.delete(f"/assessments/{gone['id']}")) == {"id": gone["id"], "deleted": True}

    assert ids(api, filters(taught)) == [remaining["id"]]
    assert api.ok(api.get("/gradebooks"))["data"] == [left]
    (line,) = api.ok(api.get(f"/scoresheets/{taught.subject['id']}/scoresheet"))
    assert line["gradebooks"] == [left]
    for path in (f"/assessments/{gone['id']}", f"/assessments/{gone['id']}/download-sheet"):
        assert api.get(path).status_code == 404
    assert api.get(f"/gradebooks/{lost['id']}").status_code == 404
    assert api.delete(f"/gradebooks/{lost['id']}").status_code == 404
    assert api.delete(f"/assessments/{gone['id']}").status_code == 404
    ids_of_body = {"student": taught.students[0], "batch": taught.cohort["id"]}
    again = {"assessment": gone["id"], "score": 1, **ids_of_body}
    assert reasons(api.post("/gradebooks", again)) == {"assessment": ["no such assessment"]}


def test_making_and_deleting_it_are_in_the_audit_log(api, make):
    taught = make.taught(0)
    made = api.ok(api.post("/assessments", body(taught)))
    api.ok(api.delete(f"/assessments/{made['id']}"))

    log = api.ok(api.get("/audit", query_string={"entity": "assessment"}))["data"]

    shown = {"name": made["name"], "category": "EXAM", "total_points": 60}
    assert [(change["entity_id"], change["old"], change["new"]) for change in log] == [
        (made["id"], shown, None),
        (made["id"], None, shown),
    ]


def test_an_unknown_assessment_is_not_found(api):
    for answer in (api.get(f"/assessments/{uuid4()}"), api.delete(f"/assessments/{uuid4()}")):
        assert (answer.status_code, answer.get_json()["message"]) == (404, "No such assessment.")


def test_two_deletes_at_once_delete_once(committing):
    taught = committing.taught(0)
    made = committing.assessment(taught.subject, taught.term)

    answers = run_concurrently(
        2, lambda _: committing.api.using().delete(f"/assessments/{made['id']}").status_code
    )

    assert sorted(answers) == [200, 404]


def test_the_school_may_come_from_the_token(api, make):
    taught = make.taught(0)
    made = make.assessment(taught.subject, taught.term)

    assert ids(api.using(school=None), filters(taught)) == [made["id"]]


def test_the_other_school_has_its_own(api, make, other_api, make_other):
    mine, theirs = make.taught(0), make_other.taught(0)
    made = make.assessment(mine.subject, mine.term)

    assert other_api.get(f"/assessments/{made['id']}").status_code == 404
    assert other_api.delete(f"/assessments/{made['id']}").status_code == 404
    for field, value in (("subject", mine.subject["id"]), ("term", mine.term["id"])):
        assert list(reasons(other_api.post("/assessments", body(theirs, **{field: value})))) == [field]
    for name, value in filters(mine).items():
        answer = other_api.get("/assessments", query_string=filters(theirs, **{name: value}))
        assert list(reasons(answer, "query")) == [name]
    assert other_api.using(school=api.school).get(f"/assessments/{made['id']}").status_code == 403
    assert api.ok(api.get(f"/assessments/{made['id']}")) == made
