"""Teaching a subject to a cohort no more: the records in the way, counted, and the records that go along."""

from __future__ import annotations

from tests.features.results.submissions.classes import Class
from tests.threads import run_concurrently


def message(answer):
    return answer.get_json()["message"]


def test_assessments_and_scores_are_counted(api, make):
    taught = make.taught(3)
    path = f"/cohort-subjects/{taught.subject['id']}"
    first, second = (make.assessment(taught.subject, taught.term) for _ in range(2))
    for assessment, students in ((first, taught.students), (second, taught.students[:2])):
        for student in students:
            make.entry(assessment, student, taught.cohort["id"])
    api.ok(make.absences(second, {taught.students[2]: "EXCUSED"}))

    answer = api.delete(path)

    words = "The cohort subject is in use by 1 absence, 2 assessments, 5 scores."
    assert (answer.status_code, message(answer)) == (409, words)
    assert api.ok(api.get(path)) == taught.subject


def test_a_submission_is_in_the_way(api, make):
    taught = Class(make)
    api.ok(taught.submit())

    answer = api.delete(f"/cohort-subjects/{taught.subject}")

    assert message(answer) == "The cohort subject is in use by 1 assessment, 2 scores, 1 submission."


def test_a_deleted_assessment_goes_along_with_its_scores_and_absences(api, make):
    taught = make.taught(2)
    assessment = make.assessment(taught.subject, taught.term)
    entry = make.entry(assessment, taught.students[0], taught.cohort["id"], 7.5)
    api.ok(make.absences(assessment, {taught.students[1]: "ABSENT"}))
    api.ok(api.delete(f"/assessments/{assessment['id']}"))

    api.ok(api.delete(f"/cohort-subjects/{taught.subject['id']}"))

    assert api.get(f"/cohort-subjects/{taught.subject['id']}").status_code == 404
    # The log keeps the entered score.
    for entity, id, old in (
        ("gradebook", entry["id"], {"score": 7.5, "source": "hand"}),
        ("absence", assessment["id"], {"student": taught.students[1], "status": "ABSENT"}),
    ):
        logged = api.ok(api.get("/audit", query_string={"entity": entity, "id": id}))["data"]
        assert [entry["old"] for entry in logged if entry["action"] == "delete"] == [old]


def test_scores_of_a_deleted_assessment_are_not_counted(api, make):
    taught = make.taught(1)
    kept, deleted = (make.assessment(taught.subject, taught.term) for _ in range(2))
    for assessment in (kept, deleted):
        make.entry(assessment, taught.students[0], taught.cohort["id"])
    api.ok(api.delete(f"/assessments/{deleted['id']}"))

    answer = api.delete(f"/cohort-subjects/{taught.subject['id']}")

    assert message(answer) == "The cohort subject is in use by 1 assessment, 1 score."


def test_a_deleted_assessment_without_any_goes_along(api, make):
    taught = make.taught(1)
    never, removed = (make.assessment(taught.subject, taught.term) for _ in range(2))
    entry = make.entry(removed, taught.students[0], taught.cohort["id"])
    api.ok(api.delete(f"/gradebooks/{entry['id']}"))
    for assessment in (never, removed):
        api.ok(api.delete(f"/assessments/{assessment['id']}"))

    api.ok(api.delete(f"/cohort-subjects/{taught.subject['id']}"))

    assert api.get(f"/cohort-subjects/{taught.subject['id']}").status_code == 404
    api.ok(api.delete(f"/terms/{taught.term['id']}"))


def test_an_assessment_is_in_the_way_beside_a_deleted_one(api, make):
    taught = make.taught(0)
    make.assessment(taught.subject, taught.term)
    deleted = make.assessment(taught.subject, taught.term)
    api.ok(api.delete(f"/assessments/{deleted['id']}"))

    for path in (f"/cohort-subjects/{taught.subject['id']}", f"/terms/{taught.term['id']}"):
        assert message(api.delete(path)).endswith("is in use by 1 assessment.")


def test_takers_of_a_compulsory_subject_go_along(api, make):
    taught = make.taught(2)

    api.ok(api.delete(f"/cohort-subjects/{taught.subject['id']}"))

    # Students enrolled from now on do not take it, and it can be taught again.
    make.enrolled(taught.cohort)
    again = make.cohort_subject(taught.cohort, subject_of(api, taught))
    assert len(api.ok(api.get(f"/scoresheets/{again['id']}/scoresheet"))) == 3


def subject_of(api, taught):
    return next(
        template
        for template in api.ok(api.get("/templates"))
        if template["name"] == taught.subject["subject"]
    )


def test_takers_of_an_elective_are_in_the_way(api, make):
    cohort = make.cohort()
    students = make.enrolled(cohort, make.student(), make.student())
    subject = make.cohort_subject(cohort, elective=True)["id"]
    api.ok(api.patch(f"/cohort-subjects/{subject}/students", students))

    answer = api.delete(f"/cohort-subjects/{subject}")

    assert message(answer) == "The cohort subject is in use by 2 subject enrollments."
    for student in students:
        api.ok(api.delete(f"/cohort-subjects/{subject}/students/{student}"))
    api.ok(api.delete(f"/cohort-subjects/{subject}"))


def test_students_enrolled_meanwhile_are_enrolled(committing):
    api, cohort = committing.api, committing.cohort()
    subjects = [committing.cohort_subject(cohort)["id"] for _ in range(4)]
    students = [committing.student()["id"] for _ in range(4)]

    def work(number):
        if number % 2:
            return api.using().delete(f"/cohort-subjects/{subjects[number // 2]}")
        body = {"students": [students[number // 2]], "batch": cohort["id"]}
        return api.using().post(f"/cohorts/{cohort['id']}/enrollment", body)

    assert {answer.status_code for answer in run_concurrently(8, work)} == {200}
    assert len(api.ok(api.get(f"/cohorts/{cohort['id']}/students"))) == 4
