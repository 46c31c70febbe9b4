"""Score sheets: the scores of a cohort subject."""

from __future__ import annotations

from uuid import uuid4

import pytest


def sheet(api, subject, **query):
    return api.ok(api.get(f"/scoresheets/{subject['id']}/scoresheet", query_string=query))


def test_a_score_sheet_shows_the_takers_of_the_subject_by_name_with_their_scores(api, make):
    cohort = make.cohort()
    subject, term = make.cohort_subject(cohort), make.term({"id": cohort["session"]})
    people = [("Zainab", "Bello", "4"), ("Ada", "Eze", "3"), ("Ada", "Eze", "2"), ("Ada", "Bello", "1")]
    made = [make.student(first_name=f, last_name=n, admission_number=a) for f, n, a in people]
    make.enrolled(cohort, *made)
    assessment = make.assessment(subject, term)
    entry = make.entry(assessment, made[0]["id"], cohort["id"])

    shown = sheet(api, subject)

    assert shown == [
        {"student": identity(made[3]), "gradebooks": []},
        {"student": identity(made[0]), "gradebooks": [entry]},
        {"student": identity(made[2]), "gradebooks": []},
        {"student": identity(made[1]), "gradebooks": []},
    ]


def identity(student):
    return {name: student[name] for name in ("id", "first_name", "last_name", "admission_number")}


def test_scores_come_by_category_and_then_by_due_date(api, make):
    taught = make.taught()
    plan = [
        ("THIRD_TERM", "2025-09-01"),
        ("EXAM", "2025-09-02"),
        ("CA1", "2025-12-01"),
        ("FIRST_TERM", "2025-09-03"),
        ("CA1", "2025-10-01"),
        ("CA3", "2025-09-01"),
        ("CA2", "2025-09-01"),
        ("SECOND_TERM", "2025-09-01"),
    ]
    made = {}
    for category, day in plan:
        assessment = make.assessment(taught.subject, taught.term, category=category, due_date=day)
        made[category, day] = make.entry(assessment, taught.students[0], taught.cohort["id"])

    (line,) = sheet(api, taught.subject)

    order = ("CA1", "CA2", "CA3", "EXAM", "FIRST_TERM", "SECOND_TERM", "THIRD_TERM")
    in_order = sorted(made, key=lambda key: (order.index(key[0]), key[1]))
    assert line["gradebooks"] == [made[key] for key in in_order]


def test_a_score_sheet_has_all_arms_of_the_cohort(api, make):
    taught = make.taught()
    make.enrolled(taught.cohort, batch=make.batch(taught.cohort)["id"])

    assert len(sheet(api, taught.subject)) == 2


def test_a_term_shows_its_own_scores_and_still_everyone(api, make):
    taught = make.taught(2)
    second = make.term({"id": taught.cohort["session"]}, term="SECOND")
    entries = [
        make.entry(make.assessment(taught.subject, term), taught.students[0], taught.cohort["id"])
        for term in (taught.term, second)
    ]

    def entry_ids(**query):
        lines = sheet(api, taught.subject, **query)
        return sorted(entry["id"] for line in lines for entry in line["gradebooks"])

    assert entry_ids() == sorted(entry["id"] for entry in entries)
    assert entry_ids(term=taught.term["id"]) == [entries[0]["id"]]
    assert entry_ids(term=second["id"]) == [entries[1]["id"]]
    elsewhere = sheet(api, taught.subject, term=make.term()["id"])
    assert [line["gradebooks"] for line in elsewhere] == [[], []]


def test_a_score_sheet_shows_the_present_takers_of_the_subject(api, make):
    taught = make.taught(2)
    elective = make.cohort_subject(taught.cohort, elective=True)
    assessment = make.assessment(elective, taught.term)
    path = f"/cohort-subjects/{elective['id']}/students"
    stays, goes = taught.students

    def entries_by_student():
        return {line["student"]["id"]: line["gradebooks"] for line in sheet(api, elective)}

    assert entries_by_student() == {}
    api.ok(api.patch(path, [stays, goes]))
    entry = make.entry(assessment, goes, taught.cohort["id"])
    assert entries_by_student() == {stays: [], goes: [entry]}
    api.ok(api.delete(f"{path}/{goes}"))
    assert entries_by_student() == {stays: []}
    api.ok(api.patch(path, [goes]))
    assert entries_by_student() == {stays: [], goes: [entry]}


def test_scores_of_another_subject_are_not_on_it(api, make):
    taught = make.taught()
    other = make.cohort_subject(taught.cohort)
    make.entry(make.assessment(other, taught.term), taught.students[0], taught.cohort["id"])

    assert [line["gradebooks"] for line in sheet(api, taught.subject)] == [[]]


def test_an_unknown_cohort_subject_is_not_found(api, make):
    taught = make.taught()

    for unknown in (uuid4(), taught.cohort["id"], make.subject()["id"]):
        answer = api.get(f"/scoresheets/{unknown}/scoresheet")
        assert (answer.status_code, answer.get_json()["message"]) == (404, "No such cohort subject.")
    assert api.get(f"/scoresheets/{uuid4()}/scoresheet", query_string={"term": uuid4()}).status_code == 404


@pytest.mark.parametrize("students", [0, 1])
def test_an_unknown_term_is_refused(api, make, students):
    taught = make.taught(students)

    for term in (str(uuid4()), taught.cohort["session"], "x", ""):
        answer = api.get(f"/scoresheets/{taught.subject['id']}/scoresheet", query_string={"term": term})
        assert answer.status_code == 422
        assert list(answer.get_json()["errors"]["query"]) == ["term"]
    assert len(sheet(api, taught.subject, term=taught.term["id"])) == students


def test_a_score_sheet_of_any_length_costs_one_round_trip(api, make, messages):
    taught = make.taught(40)
    for count in (4, 5):
        for _ in range(count - len(sheet(api, taught.subject)[0]["gradebooks"])):
            assessment = make.assessment(taught.subject, taught.term)
            for student in taught.students:
                make.entry(assessment, student, taught.cohort["id"])
        for query in ({}, {"term": taught.term["id"]}):
            with messages() as sent:
                shown = sheet(api, taught.subject, **query)
            assert [len(line["gradebooks"]) for line in shown] == [count] * 40
            assert len(sent) == 1, sent


def test_the_other_school_has_its_own(api, make, other_api, make_other):
    mine, theirs = make.taught(), make_other.taught()

    assert other_api.get(f"/scoresheets/{mine.subject['id']}/scoresheet").status_code == 404
    path = f"/scoresheets/{theirs.subject['id']}/scoresheet"
    answer = other_api.get(path, query_string={"term": mine.term["id"]})
    assert list(answer.get_json()["errors"]["query"]) == ["term"]
    assert other_api.using(school=api.school).get(path).status_code == 403
    assert len(sheet(other_api, theirs.subject)) == 1
