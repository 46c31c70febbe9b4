"""Handing in the results of a subject, and reopening them: each row of the table of cases."""

from __future__ import annotations

from uuid import uuid4

import pytest

from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.results.stored_settings import store_settings
from tests.features.results.submissions.classes import Class, message
from tests.prepared import prepared_for_each

OF_ALL = {"batch": None, "batch_name": None}
"""The batch of a submission of all arms."""


original, taught = prepared_for_each(Class)


def logged(api, entity, entity_id):
    entries = api.ok(api.get("/audit", query_string={"entity": entity, "id": entity_id}))["data"]
    return [(entry["action"], entry["old"], entry["new"]) for entry in entries]


def settings(api, **values):
    with in_transaction(SchoolBinding(api.school)):
        store_settings(**values)


def absences(api, class_):
    """The absences of the assessment, by student, as the subject's results show them."""
    results = api.ok(api.get(f"/cohort-subjects/{class_.subject}/results?term=FIRST"))
    return {result["student"]["id"]: result["scores"][0]["absence"] for result in results}


# Submit


def test_results_are_submitted(api, taught):
    (listed,) = api.ok(taught.listed())

    submitted = api.ok(taught.submit())

    assert listed == {
        "cohort_subject": taught.subject,
        "base": listed["base"],
        "subject": taught.taught.subject["subject"],
        "batch": taught.cohort["id"],
        "batch_name": "A",
        "term": {"id": taught.term["id"], "term": "FIRST"},
        "state": "OPEN",
        "takers": 2,
        "assessments": 1,
        "blanks": 0,
        "submitted_at": None,
        "submitted_by": None,
        "submitted_by_name": None,
        "teachers": [],
    }
    by = {"submitted_by": str(api.ok(api.get("/users", query_string={"search": "admin"}))["data"][0]["id"])}
    at = {"submitted_at": submitted["submitted_at"], "submitted_by_name": submitted["submitted_by_name"]}
    assert submitted == {**listed, **OF_ALL, "state": "SUBMITTED", **by, **at}
    assert all(at.values())
    assert api.ok(taught.listed()) == [{**submitted, "batch": taught.cohort["id"], "batch_name": "A"}]


def test_a_submission_is_in_the_audit_log(api, taught):
    api.ok(taught.submit())

    new = {"state": "SUBMITTED", "term": taught.term["id"], "takers": 2, "assessments": 1, "absences": None}
    assert logged(api, "submission", taught.subject) == [("create", None, new)]


def test_the_term_may_be_named_by_its_id(api, taught):
    submitted = api.ok(taught.submit(term=taught.term["id"]))

    assert submitted["term"] == {"id": taught.term["id"], "term": "FIRST"}
    (listed,) = api.ok(taught.listed(term=taught.term["id"].upper()))
    assert {**listed, **OF_ALL} == submitted


def test_blanks_are_refused_and_named(api, make):
    taught = Class(make, 3, marked=1)
    second = make.assessment(taught.taught.subject, taught.term, abbreviation="Z2", category="EXAM")
    numbers = {pupil: api.ok(api.get(f"/students/{pupil}"))["admission_number"] for pupil in taught.students}

    answer = taught.submit()

    assert answer.status_code == 409
    assert message(answer).startswith("There are 5 blanks: ")
    assert answer.get_json()["errors"]["json"]["blanks"] == [
        {
            "assessment": taught.assessment["id"],
            "abbreviation": taught.assessment["abbreviation"],
            "students": sorted(numbers[pupil] for pupil in taught.students[1:]),
        },
        {"assessment": second["id"], "abbreviation": "Z2", "students": sorted(numbers.values())},
    ]
    assert [(row["state"], row["blanks"]) for row in api.ok(taught.listed())] == [("OPEN", 5)]
    assert logged(api, "submission", taught.subject) == []


def test_at_most_200_blanks_are_named(api, make):
    taught = Class(make, 21, marked=0)
    for _ in range(9):
        make.assessment(taught.taught.subject, taught.term)

    answer = taught.submit()

    assert message(answer).startswith("There are 210 blanks: ")
    named = [number for row in answer.get_json()["errors"]["json"]["blanks"] for number in row["students"]]
    assert len(named) == 200


@pytest.mark.parametrize("status", ["ABSENT", "EXCUSED"])
def test_blanks_become_absences_and_are_audited(api, make, status):
    taught = Class(make, 3, marked=1)
    scored, *blank = taught.students

    submitted = api.ok(taught.submit(blanks=status))

    assert (submitted["state"], submitted["blanks"]) == ("SUBMITTED", 0)
    # A student excused from all that counts has no result in the subject.
    shown = {scored: None} if status == "EXCUSED" else {scored: None, **dict.fromkeys(blank, status)}
    assert absences(api, taught) == shown
    entries = logged(api, "absence", taught.assessment["id"])
    new = [{"student": student, "status": status, "source": "submission"} for student in blank]
    assert sorted(entries, key=str) == sorted((("create", None, absence) for absence in new), key=str)
    ((_, _, said),) = logged(api, "submission", taught.subject)
    assert said["absences"] == {"status": status, "number": 2}


def test_where_nothing_counts_there_is_nothing_to_submit(api, make):
    taught = Class(make, category="FIRST_TERM")
    without = Class(make, include_in_final=False)

    for class_ in (taught, without):
        answer = class_.submit(blanks="ABSENT")

        assert (answer.status_code, message(answer)) == (
            409,
            "Nothing counts in this subject and term: there is nothing to submit.",
        )
        (listed,) = api.ok(class_.listed())
        shown = (listed["state"], listed["takers"], listed["assessments"], listed["blanks"])
        assert shown == ("NOTHING_COUNTS", len(class_.students), 0, 0)


def test_with_categories_something_needs_a_weight(api, make, taught):
    exam = {"level": None, "category": "EXAM", "weight": 100}
    settings(api, weighting="CATEGORIES", weights=[exam])

    assert taught.submit().status_code == 409

    paper = make.assessment(taught.taught.subject, taught.term, category="EXAM")
    for student in taught.students:
        taught.score(student, assessment=paper)
    assert api.ok(taught.submit())["assessments"] == 1


def test_a_result_from_elsewhere_is_never_blank(api, make, taught):
    make.assessment(taught.taught.subject, taught.term, category="FIRST_TERM")

    assert api.ok(taught.submit())["blanks"] == 0


def test_submitting_again_changes_nothing(api, make):
    taught = Class(make, 2, marked=1)
    submitted = api.ok(taught.submit(blanks="ABSENT"))

    assert api.ok(taught.submit()) == submitted
    assert api.ok(taught.submit(blanks="EXCUSED")) == submitted
    assert len(logged(api, "submission", taught.subject)) == 1
    assert len(logged(api, "absence", taught.assessment["id"])) == 1


def test_each_term_is_submitted_by_itself(api, make, taught):
    second = make.term({"id": taught.cohort["session"]}, term="SECOND", display_name="Second term")
    paper = make.assessment(taught.taught.subject, second)

    api.ok(taught.submit())

    (listed,) = api.ok(taught.listed(term="SECOND"))
    assert (listed["state"], listed["blanks"]) == ("OPEN", 2)
    for student in taught.students:
        taught.score(student, assessment=paper)
    assert api.ok(taught.submit(term="SECOND"))["state"] == "SUBMITTED"


def test_withdrawn_students_are_no_blanks(api, make):
    taught = Class(make, 2, marked=1)
    api.ok(api.patch(f"/students/{taught.students[1]}", {"status": "WITHDRAWN"}))

    assert api.ok(taught.submit())["takers"] == 1


# Reopen


def test_results_are_reopened_with_a_reason(api, taught):
    api.ok(taught.submit())
    paper, student = taught.assessment["id"], taught.students[0]

    opened = api.ok(taught.reopen(reason="A paper was found\nin a drawer"))

    assert (opened["state"], opened["submitted_at"], opened["submitted_by"]) == ("OPEN", None, None)
    (listed,) = api.ok(taught.listed())
    assert {**listed, **OF_ALL} == opened
    term = taught.term["id"]
    old = {"state": "SUBMITTED", "term": term}
    new = {"state": "OPEN", "term": term, "reason": "A paper was found\nin a drawer"}
    assert logged(api, "submission", taught.subject)[0] == ("update", old, new)
    (entry,) = api.ok(api.get("/gradebooks", query_string={"assessment": paper, "student": student}))["data"]
    assert api.ok(api.patch(f"/gradebooks/{entry['id']}", {"score": 13}))["score"] == 13
    assert api.ok(taught.submit())["state"] == "SUBMITTED"


def test_reopening_an_open_submission_changes_nothing(api, taught):
    api.ok(taught.submit())
    opened = api.ok(taught.reopen())

    assert api.ok(taught.reopen(reason="Once more")) == opened
    assert len(logged(api, "submission", taught.subject)) == 2


def test_results_that_were_never_submitted_cant_be_reopened(api, make, taught):
    other = make.term({"id": taught.cohort["session"]}, term="SECOND", display_name="Second term")
    api.ok(taught.submit())

    for term in ("SECOND", other["id"]):
        answer = taught.reopen(term=term)

        assert (answer.status_code, message(answer)) == (
            409,
            "The results of this subject and term were never submitted.",
        )


def test_results_that_count_no_more_since_they_were_submitted_can_be_reopened(api, taught):
    api.ok(taught.submit())
    settings(api, weighting="CATEGORIES", weights=[{"level": None, "category": "EXAM", "weight": 100}])

    (listed,) = api.ok(taught.listed())

    assert (listed["state"], listed["assessments"]) == ("SUBMITTED", 0)
    assert api.ok(taught.reopen())["state"] == "NOTHING_COUNTS"


# Input


@pytest.mark.parametrize("act", ["submit", "reopen"])
def test_unknown_ids_are_named(api, make, taught, act):
    elsewhere = make.term()
    answers = [
        getattr(taught, act)(term=term)
        for term in (str(uuid4()), "FOURTH", "first", elsewhere["id"], "THIRD", "x\u202ey")
    ]

    assert {(answer.status_code, *answer.get_json()["errors"]["json"]) for answer in answers} == {
        (422, "term")
    }
    assert answers[3].get_json()["errors"]["json"]["term"] == ["is not of the cohort's session"]
    taught.subject = str(uuid4())
    answer = getattr(taught, act)()
    assert (answer.status_code, message(answer)) == (404, "No such cohort subject.")


@pytest.mark.parametrize("blanks", ["absent", "", None, 1, ["ABSENT"], "ABS"])
def test_blanks_become_one_of_three_things(api, taught, blanks):
    answer = taught.submit(blanks=blanks)

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, ["blanks"])
    assert api.ok(taught.listed())[0]["state"] == "OPEN"


@pytest.mark.parametrize("reason", ["", "  ", None, 1, "x" * 2001, "a\0b"])
def test_a_reason_is_needed(api, taught, reason):
    api.ok(taught.submit())

    answer = taught.reopen(reason=reason)

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, ["reason"])
    assert api.ok(taught.listed())[0]["state"] == "SUBMITTED"
    assert api.ok(taught.reopen(reason="ọ" * 2000))["state"] == "OPEN"


def test_a_list_names_an_unknown_batch_or_term(api, taught):
    for query in ({"batch": str(uuid4())}, {"term": "SECOND"}, {"term": str(uuid4())}):
        answer = taught.listed(**query)

        assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, list(query))


# The other school


def test_point_10_another_schools_ids_are_unknown(api, other_api, make, make_other):
    mine, theirs = Class(make), Class(make_other)
    others = theirs.subject

    for act in (mine.submit, mine.reopen):
        mine.subject = others
        answer = act()
        assert (answer.status_code, message(answer)) == (404, "No such cohort subject.")
        mine.subject = mine.taught.subject["id"]
        answer = act(term=theirs.term["id"])
        assert answer.get_json()["errors"]["json"] == {"term": ["no such term"]}
    for query in ({"batch": theirs.cohort["id"]}, {"term": theirs.term["id"]}):
        assert list(mine.listed(**query).get_json()["errors"]["query"]) == list(query)
    assert other_api.ok(theirs.listed())[0]["state"] == "OPEN"
    assert other_api.ok(theirs.submit())["state"] == "SUBMITTED"
    assert api.ok(mine.listed())[0]["state"] == "OPEN"


# Permissions


def test_submitting_needs_the_permission_to_enter_scores_and_reopening_the_one_to_write_results(
    api, make, taught
):
    submit, reopen = (f"/cohort-subjects/{taught.subject}/{act}" for act in ("submission", "reopening"))

    make.check_permission("POST", submit, "write:gradebooks", others={"write:results"}, json={"x": 1})
    make.check_permission("POST", reopen, "write:results", others={"write:gradebooks"}, json={"x": 1})


# Messages


@pytest.mark.parametrize("students", [1, 12])
def test_point_11_a_submission_takes_few_messages_however_many_students(api, make, messages, students):
    taught = Class(make, students, marked=0)

    with messages() as submitted:
        api.ok(taught.submit(blanks="ABSENT"))
    with messages() as reopened:
        api.ok(taught.reopen())
    with messages() as listed:
        api.ok(taught.listed())

    # Binding; locks and the decision; writes and the answer; the audit log and the commit.
    assert (len(submitted), len(reopened), len(listed)) == (4, 4, 1)
    # Of statements, binding and end apart: three locks and the decision, three writes and the answer.
    assert sum(sent.count(";\n") + 1 for sent in submitted[1:-1]) == 8
