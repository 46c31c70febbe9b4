"""One rule for every operation that takes a term: an id, or FIRST, SECOND or THIRD of the session that it is about."""

from __future__ import annotations

from datetime import date
from io import BytesIO
from uuid import UUID, uuid4

import pytest

from school_service.core.statements import execute, new_row
from school_service.features.attendance.models import Mark, Register
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.results.publications.arms import Arms
from tests.features.results.publications.test_guardians import guardian_of
from tests.features.results.publications.test_published import as_student
from tests.prepared import prepared_for_each


def parameters(operation):
    return {parameter["name"] for parameter in operation.get("parameters", ()) if "name" in parameter}


def members(document, operation):
    """The members of an operation's body."""
    names = set()
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = content["schema"]
        while "$ref" in schema:
            schema = document.spec["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        names |= set(schema.get("properties", {}))
    return names


class School(Arms):
    """A cohort with two arms and results of two terms, the first one published."""

    def __init__(self, make):
        super().__init__(make, students=1, subjects=1)
        self.published()
        self.mark("SECOND")
        self.subject = self.subjects[0]["id"]
        self.student = self.students[self.first][0]
        self.paper = self.papers["FIRST", self.subject]
        self.be_away()

    def be_away(self):
        """Let the student be away from five lessons of the first term, and days: on whichever day the tests run."""
        common = {
            "batch_id": UUID(self.first),
            "cohort_id": UUID(self.cohort["id"]),
            "session_id": UUID(self.cohort["session"]),
            "term_id": UUID(self.terms["FIRST"]["id"]),
            "state": "SUBMITTED",
            "version": 1,
        }
        lesson = {"part": "LESSON", "period": 1, "cohort_subject_id": UUID(self.subject)}
        for number in range(5):
            for kind in ({"part": "DAY"}, lesson):
                register = new_row(Register, **common, **kind, date=date(2025, 10, 6 + number))
                mark = {"register_id": register.id, "student_id": UUID(self.student), "version": 1}
                with self.api.app.app_context(), in_transaction(SchoolBinding(self.api.school)):
                    execute(register, new_row(Mark, **mark, code="A", kind="ABSENT"))


def of_session(school, term):
    """The answer of each operation for a term of one session."""
    batch, session = school.first, school.cohort["session"]
    return {
        ("GET", "/assessments"): {"cohort": batch, "subject": school.subject, "term": term},
        ("GET", "/attendance/chronic"): {"cohort": school.cohort["id"], "term": term},
        ("GET", "/attendance/summary"): {"batch": batch, "term": term},
        ("GET", "/broadsheets"): {"batch": batch, "term": term},
        ("GET", "/broadsheets/download"): {"batch": batch, "term": term},
        ("GET", "/cohort-subjects/{id}/mark-sheet"): {"id": school.subject, "batch": batch, "term": term},
        ("GET", "/cohort-subjects/{id}/results"): {"id": school.subject, "term": term},
        ("GET", "/cohort-subjects/{id}/scores"): {"id": school.subject, "batch": batch, "term": term},
        ("GET", "/comments"): {"batch": batch, "term": term},
        ("GET", "/comments/download-sheet"): {"batch": batch, "term": term},
        ("GET", "/gradebooks"): {"batch": batch, "term": term},
        ("GET", "/mark-sheets"): {"batch": batch, "term": term},
        ("GET", "/metrics/download-sheet"): {"batchId": batch, "term": term, "metric_type": "AFFECTIVE"},
        ("GET", "/publications"): {"term": term, "session": session},
        ("GET", "/report-cards"): {"batch": batch, "term": term},
        ("GET", "/registers/download"): {"batch": batch, "term": term},
        ("GET", "/scoresheets/{id}/scoresheet"): {"id": school.subject, "term": term},
        ("GET", "/students/{id}/attendance"): {"id": school.student, "term": term},
        ("GET", "/students/{id}/report-card"): {"id": school.student, "term": term},
        ("GET", "/students/{id}/results"): {"id": school.student, "term": term},
        ("GET", "/submissions"): {"batch": batch, "term": term},
    }


# Each is sent with a body or a file: tested below.
WRITES = {
    ("PATCH", "/assessments/{id}"),
    ("POST", "/assessments"),
    ("POST", "/assessments/many"),
    ("POST", "/cohort-subjects/{id}/mark-sheet"),
    ("PUT", "/cohort-subjects/{id}/scores"),
    ("POST", "/cohort-subjects/{id}/reopening"),
    ("POST", "/cohort-subjects/{id}/submission"),
    ("POST", "/comments/upload-sheet"),
    ("POST", "/metrics/upload-sheet"),
    ("POST", "/publications"),
    ("PUT", "/comments"),
    ("PUT", "/metrics"),
}
# There the term is made, not referred to.
MADE = {("PATCH", "/terms/{termId}"), ("POST", "/terms")}


original, school = prepared_for_each(School)


def ask(api, operation, query):
    method, path = operation
    return api.request(method, path.replace("{id}", query.get("id", "")), query_string={
        name: value for name, value in query.items() if name != "id"})  # fmt: skip


def test_every_operation_that_takes_a_term_is_here(document, school):
    taking = {
        key
        for key, operation in document.operations().items()
        if "term" in parameters(operation) | members(document, operation)
    }

    assert taking == {*of_session(school, "FIRST"), *WRITES, *MADE}


def test_a_name_and_an_id_are_the_same(api, school):
    comment = {"student": school.student, "times_present": 3}
    api.ok(api.put("/comments", {"batch": school.first, "term": "SECOND", "comments": [comment]}))
    by_name, by_id = of_session(school, "FIRST"), of_session(school, school.terms["FIRST"]["id"].upper())
    for operation, query in by_name.items():
        named, given = ask(api, operation, query), ask(api, operation, by_id[operation])
        assert (named.status_code, given.status_code) == (200, 200), operation
        if named.mimetype == "application/json":
            assert named.get_json() == given.get_json(), operation
            other = ask(api, operation, of_session(school, "SECOND")[operation])
            assert other.status_code == 200
            assert other.get_json() != named.get_json(), operation


def test_a_term_that_there_is_not_is_named(api, school, make_other):
    theirs = make_other.term()["id"]
    of_all = {term: of_session(school, term) for term in ("THIRD", "FOURTH", theirs)}
    of_one = {
        term: {operation: of_session(school, term)[operation]}
        for term, operation in (("first", ("GET", "/submissions")), (str(uuid4()), ("GET", "/broadsheets")))
    }
    for term, asked in (of_all | of_one).items():
        for operation, query in asked.items():
            if term == "THIRD" and operation[1] in {"/gradebooks", "/publications"}:
                # A list: of no session, or there is nothing yet.
                answer = ask(api, operation, query)
                assert (answer.status_code, answer.get_json()["data"]) == (200, [])
                continue
            answer = ask(api, operation, query)
            assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, ["term"]), (
                operation,
                term,
            )


def test_a_write_is_of_the_term_that_it_names(api, make, school):
    subject, batch = school.subject, school.first
    paper = {**school.paper, "description": "x", "subject": subject, "term": "SECOND"}
    paper.pop("id")
    made = api.ok(api.post("/assessments", paper))
    assert made["term"] == school.terms["SECOND"]["id"]
    api.ok(api.delete(f"/assessments/{made['id']}"))

    comments = [{"student": school.student, "form_teacher_comment": "Well done"}]
    api.ok(api.put("/comments", {"batch": batch, "term": "SECOND", "comments": comments}))
    (comment,) = api.ok(api.get("/comments", query_string={"batch": batch, "term": "SECOND"}))
    assert comment["form_teacher_comment"] == "Well done"

    for kind, names in (
        ("comments", {"batch": batch}),
        ("metrics", {"batchId": batch, "metric_type": "AFFECTIVE"}),
    ):
        sheet = api.get(f"/{kind}/download-sheet", query_string={**names, "term": "SECOND"})
        form = {f"{kind}_sheet": (BytesIO(sheet.data), "sheet.xlsx")}
        query = {"batch" if kind == "comments" else "batchId": batch, "term": "SECOND"}
        assert api.post(f"/{kind}/upload-sheet", query_string=query, data=form).status_code in (200, 422)

    school.submit("SECOND")
    published = api.ok(school.publish(term="SECOND"))
    assert {publication["term"]["id"] for publication in published} == {school.terms["SECOND"]["id"]}


@pytest.mark.parametrize("term", ["THIRD", "FOURTH", "", None, 1, "x"])
def test_a_write_needs_an_existing_term(api, school, term):
    paper = {**school.paper, "description": "x", "subject": school.subject}
    paper.pop("id")
    for path, body in {
        "/assessments": paper,
        f"/cohort-subjects/{school.subject}/submission": {},
        f"/cohort-subjects/{school.subject}/reopening": {"reason": "x"},
        "/publications": {"batches": [school.first]},
    }.items():
        answer = api.post(path, {**body, "term": term})
        assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, ["term"]), path


# The session of a student's term


class TwoSessions:
    """A student with results of the third term of last year, who is in a session with a first term alone now."""

    def __init__(self, make):
        self.make, self.api = make, make.api
        self.last = make.session(name="2024/2025", start_date="2024-09-01", end_date="2025-07-31")
        self.now = make.session(name="2025/2026", start_date="2025-09-01", end_date="2026-07-31")
        self.student = make.student()
        for session, terms in ((self.last, ("FIRST", "SECOND", "THIRD")), (self.now, ("FIRST",))):
            cohort = make.cohort(make.classroom(), session)
            make.enrolled(cohort, self.student)
            for term in terms:
                name = f"{term.title()} of {session['name']}"
                make.term(session, term=term, display_name=name)

    def session_of(self, term, **query):
        answer = self.results(term, **query)
        return self.api.ok(answer)["session"]["name"]

    def results(self, term, **query):
        path = f"/students/{self.student['id']}/results"
        return self.api.get(path, query_string={"term": term, **query})


@pytest.fixture
def years(make):
    return TwoSessions(make)


def test_a_students_term_is_of_the_latest_session_that_has_it(years):
    assert [years.session_of(term) for term in ("FIRST", "SECOND", "THIRD")] == [
        "2025/2026",
        "2024/2025",
        "2024/2025",
    ]


def test_a_students_term_is_of_the_current_session_they_are_or_were_in_also_before_a_later_one(
    years, make, api
):
    years.api.ok(years.api.patch(f"/sessions/{years.now['id']}", {"current": True}))
    later = make.session(name="2026/2027", start_date="2026-09-01", end_date="2027-07-31")
    for term in ("FIRST", "SECOND"):
        make.term(later, term=term, display_name=f"{term.title()} of 2026/2027")
    make.enrolled(make.cohort(make.classroom(), later), years.student)

    def sessions():
        return [years.session_of(term) for term in ("FIRST", "SECOND", "THIRD")]

    # The current session has no second term: the latest that has one is meant.
    assert sessions() == ["2025/2026", "2026/2027", "2024/2025"]
    years.api.ok(years.api.patch(f"/sessions/{years.last['id']}", {"current": True}))
    assert sessions() == ["2024/2025"] * 3
    # A student who left the class of the current session is meant in it, too.
    (cohort,) = api.ok(api.get("/cohorts", query_string={"session": years.last["id"]}))
    api.ok(api.patch(f"/cohorts/{cohort['id']}/remove_students", {"student_ids": [years.student["id"]]}))
    assert years.results("FIRST").status_code == 404
    assert years.session_of("FIRST", session="2025/2026") == "2025/2026"


def test_another_session_is_chosen_by_id_or_name(years, make, make_other):
    for session in (years.last["id"], years.last["name"]):
        assert years.session_of("FIRST", session=session) == "2024/2025"
    terms = years.api.ok(years.api.get("/terms", query_string={"session_id": years.last["id"]}))
    first = next(term["id"] for term in terms if term["term"] == "FIRST")
    assert years.session_of(first) == "2024/2025"
    assert years.session_of(first, session="2024/2025") == "2024/2025"

    theirs = make_other.session()["id"]
    for term, session, named in (
        ("THIRD", years.now["name"], {"term": ["no such term"]}),
        (first, years.now["name"], {"term": ["is not of that session"]}),
        ("FIRST", "2030/2031", {"session": ["no such session"]}),
        ("FIRST", str(uuid4()), {"session": ["no such session"]}),
        ("FIRST", theirs, {"session": ["no such session"]}),
    ):
        for live in ({}, {"live": "true"}):
            answer = years.results(term, session=session, **live)
            assert (answer.status_code, answer.get_json()["errors"]["query"]) == (422, named)
        for draft in ({}, {"draft": "true"}):
            path = f"/students/{years.student['id']}/report-card"
            answer = years.api.get(path, query_string={"term": term, "session": session, **draft})
            assert (answer.status_code, answer.get_json()["errors"]["query"]) == (422, named)


def test_a_session_that_is_not_the_students_has_no_results_of_them(years, make):
    other = make.session(name="2019/2020", start_date="2019-09-01", end_date="2020-07-31")
    make.term(other, term="FIRST", display_name="First")

    answer = years.results("FIRST", session="2019/2020")

    assert answer.status_code == 404


def test_the_card_of_a_session_is_printed(make, api, school):
    later = make.session(name="9500/9501", start_date="9500-09-01", end_date="9501-07-31")
    make.term(later, term="FIRST", display_name="First")
    make.enrolled(make.cohort(make.classroom(), later), {"id": school.student})
    path = f"/students/{school.student}/report-card"

    # The latest session has a first term: nothing of it is published.
    assert api.get(path, query_string={"term": "FIRST"}).status_code == 404
    answer = api.get(path, query_string={"term": "FIRST", "session": school.cohort["session"]})
    assert (answer.status_code, answer.mimetype) == (200, "application/pdf")
    # There is no second term in it: the one of the session before is meant.
    state = api.ok(api.get(f"/students/{school.student}/results", query_string={"term": "SECOND"}))["state"]
    assert state == "PROVISIONAL"


def test_the_next_session_changes_no_address_of_a_family(make, api, school):
    own = as_student(make, school.student)
    _, mother = guardian_of(make, school.student)
    path, query = f"/students/{school.student}", {"term": "FIRST"}

    def read():
        return [
            (client.ok(client.get(f"{path}/results", query_string=query)),
             client.get(f"{path}/report-card", query_string=query).status_code)
            for client in (own, mother)
        ]  # fmt: skip

    before = read()
    later = make.session(name="9500/9501", start_date="9500-09-01", end_date="9501-07-31")
    make.term(later, term="FIRST", display_name="First")
    make.enrolled(make.cohort(make.classroom(), later), {"id": school.student})
    for current in (school.cohort["session"], later["id"]):
        api.ok(api.patch(f"/sessions/{current}", {"current": True}))
        assert read() == before
    # Staff mean the session that is current by now.
    assert api.ok(api.get(f"{path}/results", query_string=query))["session"]["name"] == "9500/9501"
    assert (
        own.get(f"{path}/results", query_string={"term": "FIRST", "session": "9500/9501"}).status_code == 404
    )
    assert own.get(f"{path}/results", query_string={"term": "SECOND"}).status_code == 404
