"""Graduating from many threads at once, in a school whose requests commit."""

from __future__ import annotations

from tests.client import ApiClient
from tests.conftest import make_place
from tests.factories import Factory
from tests.threads import run_concurrently


def graduate(api, student):
    return api.using().post("/graduates", {"student": student})


def numbers(api):
    return [row["id"] for row in api.ok(api.get("/graduates"))]


def test_twenty_students_have_the_numbers_one_to_twenty(committing):
    api, cohort = committing.api, committing.cohort()
    committing.cohort_subject(cohort)
    students = committing.enrolled(cohort, *(committing.student() for _ in range(20)))

    answers = run_concurrently(20, lambda number: graduate(api, students[number]))

    assert {answer.status_code for answer in answers} == {200}
    assert sorted(answer.get_json()["id"] for answer in answers) == list(range(1, 21))
    assert numbers(api) == list(range(1, 21))
    assert api.ok(api.get(f"/cohorts/{cohort['id']}/students")) == []


def test_a_student_graduates_once(committing):
    api = committing.api
    student = committing.student()["id"]

    answers = run_concurrently(20, lambda _: graduate(api, student))

    refused = [answer.get_json()["message"] for answer in answers if answer.status_code == 409]
    assert refused == ["The student has graduated already."] * 19
    assert committing.graduate()["id"] == 2


def test_refused_graduations_leave_no_gap(committing):
    api = committing.api
    graduated = committing.student()
    committing.graduate(graduated)
    students = [committing.student()["id"] for _ in range(10)]

    answers = run_concurrently(
        20, lambda number: graduate(api, graduated["id"] if number % 2 else students[number // 2])
    )

    assert {answer.status_code for answer in answers[1::2]} == {409}
    assert {answer.status_code for answer in answers[::2]} == {200}
    assert numbers(api) == list(range(1, 12))


def test_schools_do_not_wait_for_each_other_nor_share_numbers(committing, app, tenancy, document):
    place = make_place(app, tenancy, "Loyola Jesuit College, Abuja")
    schools = [committing, Factory(ApiClient(app, document, place.admin_token, place.id))]
    students = [[make.student()["id"] for _ in range(10)] for make in schools]

    answers = run_concurrently(
        20, lambda number: graduate(schools[number % 2].api, students[number % 2][number // 2])
    )

    assert {answer.status_code for answer in answers} == {200}
    assert [numbers(make.api) for make in schools] == [list(range(1, 11))] * 2


def test_graduating_enrolling_removing_and_new_subjects_follow_each_other(committing):
    """Whichever comes first: a graduate is in no cohort and takes no subject, and nothing waits in a circle."""
    api, session = committing.api, committing.session()
    cohorts = [committing.cohort(session=session) for _ in range(2)]
    students = committing.enrolled(cohorts[0], *(committing.student() for _ in range(4)))
    subjects = [committing.subject()["id"] for _ in range(5)]

    def work(number):
        client, step = api.using(), number // 5
        student = students[number % 4]
        if step == 0:
            return client.post("/graduates", {"student": student})
        if step == 1:
            body = {"students": [student], "batch": cohorts[0]["id"]}
            return client.post(f"/cohorts/{cohorts[0]['id']}/enrollment", body)
        if step == 2:
            body = {"cohort_id": cohorts[0]["id"], "subject_id": subjects[number % 5], "elective": False}
            return client.post("/cohort-subjects", body)
        return client.patch(f"/cohorts/{cohorts[0]['id']}/remove_students", {"student_ids": [student]})

    answers = run_concurrently(20, work)

    assert {answer.status_code for answer in answers} <= {200, 409, 422}
    assert {answer.status_code for answer in answers[10:15]} == {200}
    assert sorted(answer.status_code for answer in answers[:5]) == [200] * 4 + [409]
    assert api.ok(api.get(f"/cohorts/{cohorts[0]['id']}/students")) == []
    taken = [answer.get_json()["id"] for answer in answers[10:15]]
    for subject in taken:
        for student in students:
            assert api.delete(f"/cohort-subjects/{subject}/students/{student}").status_code == 404
