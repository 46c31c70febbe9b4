"""Guardians read published results of their children without a permission, and nothing once they are stopped."""

from __future__ import annotations

import shutil
from threading import Event
from uuid import uuid4

import pytest

from tenants.clock import now
from tests.factories import PASSWORD
from tests.features.results.publications.arms import Arms
from tests.features.results.publications.test_published import as_student, of_student, settings
from tests.features.results.report_cards.papers import text_of
from tests.features.results.submissions.classes import message
from tests.threads import run_concurrently

REFUSED = "This needs the permission read:results."


@pytest.fixture(scope="module", autouse=True)
def made_arms(prepared):
    return prepared(Arms.with_results)


def link(api, student, guardian, **link):
    address = f"/students/{student}/guardians/{guardian['id']}"
    return api.put(address, {"relationship": "mother", **link})


def stop(api, student, guardian):
    return api.put(f"/students/{student}/guardians/{guardian['id']}/stop", {"reason": "A court order"})


def guardian_of(make, *students, full_name="Ngozi Bello"):
    """A guardian of these students, and a client with the account."""
    children = [{"student": student, "relationship": "mother"} for student in students]
    guardian = make.guardian(full_name=full_name, students=children)
    account = {"username": f"guardian.{guardian['id']}", "password": PASSWORD}
    user = make.api.ok(make.api.put(f"/guardians/{guardian['id']}/account", account))["user"]
    return guardian, make.signed_in(make.api.ok(make.api.get(f"/users/{user}")))


PATHS = ("results?term=FIRST", "report-card?term=FIRST", "transcript", "transcript/download")


def statuses(client, student):
    return [client.get(f"/students/{student}/{path}").status_code for path in PATHS]


def test_a_guardian_of_two_reads_the_same_as_each_child(api, make, unmarked):
    settings(api, positions="NONE")
    unmarked.mark(publish_scores=False)
    unmarked.published()
    children = unmarked.students[unmarked.first][0], unmarked.students[unmarked.second][1]
    _, own = guardian_of(make, *children)

    for child in children:
        student = as_student(make, child)
        shown = own.ok(of_student(own, child))
        assert shown == student.ok(of_student(student, child)) != api.ok(of_student(api, child))
        transcripts = [client.ok(client.get(f"/students/{child}/transcript")) for client in (own, student)]
        assert transcripts[0] == {**transcripts[1], "generated_at": transcripts[0]["generated_at"]}
        assert statuses(own, child) == [200] * 4
        if shutil.which("pdftotext"):
            card = text_of(own.get(f"/students/{child}/report-card?term=FIRST").data)
            assert api.ok(api.get(f"/students/{child}"))["admission_number"] in card


def test_a_guardian_reads_nothing_live_no_draft_no_version_and_of_nobody_else(api, make, arms):
    child, classmate = arms.students[arms.first]
    _, own = guardian_of(make, child)
    assert statuses(own, child) == [404] * 4
    assert message(of_student(own, child)) == "Nothing is published."

    (first,) = api.ok(arms.publish(arms.first))

    for query in ({"live": "true"}, {"version": 1}):
        answer = of_student(own, child, **query)
        assert (answer.status_code, message(answer)) == (403, "Guardians see what is published alone.")
    for query in ("draft=true", "version=1"):
        answer = own.get(f"/students/{child}/report-card?term=FIRST&{query}")
        assert (answer.status_code, message(answer)) == (403, "Guardians see what is published alone.")
    for other in (classmate, arms.students[arms.second][0], str(uuid4())):
        for path in PATHS:
            answer = own.get(f"/students/{other}/{path}")
            assert (answer.status_code, message(answer)) == (403, REFUSED)
    assert own.get(f"/broadsheets?batch={arms.first}&term=FIRST").status_code == 403
    api.ok(arms.reopen(first, withdraw=True))
    assert statuses(own, child) == [404] * 4


def test_a_guardian_with_the_permission_for_all_results_reads_as_staff(api, make, unmarked):
    unmarked.mark(publish_scores=False)
    unmarked.published(unmarked.first)
    child = unmarked.students[unmarked.first][0]
    teacher = make.caller("read:results")
    guardian = make.guardian(students=[{"student": child, "relationship": "father"}])
    api.ok(api.put(f"/guardians/{guardian['id']}/account", {"user": teacher.user["id"]}))

    assert teacher.ok(of_student(teacher, child)) == api.ok(of_student(api, child))
    assert teacher.get(f"/students/{child}/results?term=FIRST&live=true").status_code == 200


def test_a_parent_with_other_permissions_for_the_whole_school_reads_as_a_guardian(api, make, arms):
    arms.published()
    child = arms.students[arms.first][0]
    guardian, own = guardian_of(make, child)
    user = api.ok(api.get(f"/guardians/{guardian['id']}"))["user"]
    for held in api.ok(api.get(f"/users/{user}"))["roles"]:
        api.ok(api.delete(f"/users/{user}/roles/{held['roleId']}"))
    api.ok(api.put(f"/users/{user}/roles", {"role": make.role("read:classrooms")["id"]}))
    own.ok(own.get("/classrooms"))

    assert statuses(own, child) == [200] * len(PATHS)
    api.ok(stop(api, child, guardian))
    assert statuses(own, child) == [403] * len(PATHS)


def test_a_parent_whose_permission_is_own_reads_as_a_guardian(api, make, arms):
    arms.published(arms.first)
    child, classmate = arms.students[arms.first]
    role = make.role("read:results", reach="OWN")
    user = make.user()["user"]
    api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))
    parent = make.signed_in(user)
    guardian = make.guardian(students=[{"student": child, "relationship": "father"}])
    api.ok(api.put(f"/guardians/{guardian['id']}/account", {"user": user["id"]}))

    for _ in range(2):
        assert statuses(parent, child) == [200] * 4
        assert statuses(parent, classmate) == [404] * 4
    assert of_student(parent, child, live="true").status_code == 403
    api.ok(stop(api, child, guardian))
    assert statuses(parent, child) == [404] * 4


def test_a_form_teacher_reads_of_their_own_child_as_of_every_pupil(api, make, unmarked):
    settings(api, positions="NONE")
    unmarked.mark(publish_scores=False)
    unmarked.published(unmarked.first)
    child, (other, _) = unmarked.students[unmarked.first][0], unmarked.students[unmarked.second]
    role = make.role("read:results", reach="OWN")
    employee = make.employee()
    api.ok(api.patch(f"/teachers/{unmarked.first}/add_to_batch", {"teacher_id": employee["id"]}))
    user = make.account_of(employee)
    api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))
    api.ok(api.put(f"/users/{user['id']}/password", {"password": PASSWORD}))
    teacher = make.signed_in(user)
    guardian = make.guardian(
        students=[{"student": student, "relationship": "mother"} for student in (child, other)]
    )
    api.ok(api.put(f"/guardians/{guardian['id']}/account", {"user": user["id"]}))

    year = now().year
    dates = {"start_date": f"{year}-01-01", "end_date": f"{year}-12-31"}
    api.ok(api.patch(f"/sessions/{unmarked.cohort['session']}", dates))

    for _ in range(2):
        assert teacher.ok(of_student(teacher, child)) == api.ok(of_student(api, child))
        assert statuses(teacher, child) == [200] * 4
    transcripts = [client.ok(client.get(f"/students/{child}/transcript")) for client in (teacher, api)]
    assert transcripts[0] == {**transcripts[1], "generated_at": transcripts[0]["generated_at"]}
    for query in ({"live": "true"}, {"version": 1}):
        assert of_student(teacher, child, **query).status_code == 200
    assert teacher.get(f"/students/{child}/report-card?term=FIRST&draft=true").status_code == 200
    # Of a child in another class they are answered as guardians; nothing of it is published.
    assert statuses(teacher, other) == [404] * 4
    assert of_student(teacher, other, live="true").status_code == 403


def test_a_stop_ends_a_guardians_readings_and_lifting_it_alone_brings_them_back(api, make, arms):
    arms.published(arms.first)
    child, sister = arms.students[arms.first]
    guardian, own = guardian_of(make, child, sister, full_name="Emeka Obi")
    results = f"/students/{child}/results?term=FIRST"
    tag = own.get(results).headers["ETag"]
    assert own.get(results, headers={"If-None-Match": tag}).status_code == 304

    api.ok(stop(api, child, guardian))

    def is_cut_off():
        assert statuses(own, child) == [403] * 4
        again = own.get(results, headers={"If-None-Match": tag})
        assert (again.status_code, message(again)) == (403, REFUSED)
        assert message(own.get(results)) == message(own.get(f"/students/{uuid4()}/results?term=FIRST"))

    is_cut_off()
    assert statuses(own, sister) == [200] * 4
    api.ok(link(api, child, guardian, receives_reports=True))
    is_cut_off()
    named = {"full_name": "Emeka Obi", "phone_number": "0803"}
    assert api.patch(f"/students/{child}", {"guardian": named}).status_code == 409
    assert api.delete(f"/students/{child}/guardians/{guardian['id']}").status_code == 409
    is_cut_off()
    api.ok(api.delete(f"/students/{child}/guardians/{guardian['id']}/stop"))
    assert statuses(own, child) == [200] * 4
    # Without the link, or the account, nothing is left either.
    api.ok(api.delete(f"/students/{child}/guardians/{guardian['id']}"))
    assert statuses(own, child) == [403] * 4
    api.ok(api.delete(f"/guardians/{guardian['id']}/account"))
    assert own.get(results).status_code == 401


def test_no_request_begun_after_a_stop_shows_the_child(committing):
    arms = Arms(committing)
    arms.published(arms.first)
    api, child = committing.api, arms.students[arms.first][0]
    guardian, own = guardian_of(committing, child)
    stopped = Event()

    def read(number):
        if number == 0:
            api.ok(stop(api.using(), child, guardian))
            stopped.set()
            return []
        answers, client = [], own.using()
        while len([answer for answer in answers if answer[0]]) < 3:
            begun_after = stopped.is_set()
            path = "transcript" if number % 2 else "results?term=FIRST"
            answers.append((begun_after, client.get(f"/students/{child}/{path}").status_code))
        return answers

    readings = run_concurrently(8, read)

    for answers in readings[1:]:
        assert {status for begun_after, status in answers if begun_after} == {403}
        assert {status for _, status in answers} <= {200, 403}


def test_a_reading_costs_one_round_trip(make, arms, messages):
    arms.published(arms.first)
    child = arms.students[arms.first][0]
    _, own = guardian_of(make, child)
    for path in ("results?term=FIRST", "transcript"):
        own.ok(own.get(f"/students/{child}/{path}"))
        with messages() as sent:
            own.ok(own.get(f"/students/{child}/{path}"))
        assert len(sent) == 1, sent
