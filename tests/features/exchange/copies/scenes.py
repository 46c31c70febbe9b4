"""Writes that change records without an entry of their id: each gives the request, and the resources it tells of."""

from __future__ import annotations

from io import BytesIO

from tests.features.attendance.classes import Kept
from tests.features.observations.comments.sheets import Said
from tests.features.personal_data.people import make_guardian
from tests.features.personal_data.test_erased import make_left
from tests.features.reach.conftest import this_session
from tests.features.results.promotions.ends import End
from tests.features.results.publications.arms import Arms
from tests.features.results.submissions.classes import Class
from tests.features.scores.marksheets.arms import Marked

SCENES = []


def scene(prepare):
    SCENES.append(prepare)
    return prepare


@scene
def moves_into_another_arm(api, make):
    taught = make.taught(2)
    arm = make.batch(taught.cohort)["id"]
    body = {"students": taught.students, "batch": arm}
    path = f"/cohorts/{taught.cohort['id']}/enrollment"
    return lambda: api.post(path, body), {"enrollments", "students"}


@scene
def enrolls_into_compulsory_subjects(api, make):
    taught, student = make.taught(1), make.student()["id"]
    body = {"students": [student], "batch": taught.cohort["id"]}
    path = f"/cohorts/{taught.cohort['id']}/enrollment"
    return lambda: api.post(path, body), {"enrollments", "subject-enrollments", "students"}


@scene
def leaves_a_cohort(api, make):
    taught = make.taught(2)
    body = {"student_ids": taught.students}
    path = f"/cohorts/{taught.cohort['id']}/remove_students"
    return lambda: api.patch(path, body), {"enrollments", "subject-enrollments", "students"}


@scene
def makes_a_subject_compulsory(api, make):
    cohort, subject = make.cohort(), make.subject()["id"]
    make.enrolled(cohort, make.student(), make.student())
    body = {"cohort_id": cohort["id"], "subject_id": subject, "elective": False}
    return lambda: api.post("/cohort-subjects", body), {"cohort-subjects", "subject-enrollments"}


@scene
def makes_an_elective_compulsory(api, make):
    cohort = make.cohort()
    make.enrolled(cohort, make.student(), make.student())
    subject = make.cohort_subject(cohort, elective=True)["id"]
    path = f"/cohort-subjects/{subject}"
    return lambda: api.patch(path, {"elective": False}), {"cohort-subjects", "subject-enrollments"}


@scene
def takes_a_compulsory_subject_away(api, make):
    cohort = make.cohort()
    make.enrolled(cohort, make.student(), make.student())
    subject = make.cohort_subject(cohort)["id"]
    return lambda: api.delete(f"/cohort-subjects/{subject}"), {"cohort-subjects"}


@scene
def withdraws_a_student(api, make):
    student = make.taught(1).students[0]
    return lambda: api.patch(f"/students/{student}", {"status": "WITHDRAWN"}), {"students"}


@scene
def withdraws_a_student_with_the_day(api, make):
    student = make.taught(1).students[0]
    body = {"status": "WITHDRAWN", "left_on": "2026-01-31"}
    return lambda: api.patch(f"/students/{student}", body), {"students", "enrollments"}


@scene
def takes_a_student_back(api, make):
    student = make.taught(1).students[0]
    api.ok(api.patch(f"/students/{student}", {"status": "WITHDRAWN", "left_on": "2026-01-31"}))
    return lambda: api.patch(f"/students/{student}", {"status": "ACTIVE"}), {"students", "enrollments"}


@scene
def notes_the_day_of_leaving_by_a_sheet(api, make):
    student = make.taught(1).students[0]
    api.ok(api.patch(f"/students/{student}", {"status": "WITHDRAWN"}))
    sheet = f"id,left_on\n{student},2026-01-31\n".encode()
    path = "/students/update-sheet"
    return lambda: api.post(path, data={"sheet": (BytesIO(sheet), "leavers.csv")}), {
        "students",
        "enrollments",
    }


@scene
def graduates_a_student_of_no_class(api, make):
    student = make.student()["id"]
    return lambda: api.post("/graduates", {"student": student}), {"graduates", "students"}


@scene
def gives_a_student_the_role_of_students(api, make):
    roles = {role["name"]: role["id"] for role in api.ok(api.get("/roles"))}
    student = api.ok(api.get(f"/students/{make.student()['id']}"))["user"]
    api.ok(api.delete(f"/users/{student}/roles/{roles['Student']}"))
    return lambda: api.put("/role-reaches", {"roles": [], "add_seeded": True}), {"users"}


@scene
def deletes_an_assessment(api, make):
    taught = make.taught(2)
    assessment = make.assessment(taught.subject, taught.term)
    make.entry(assessment, taught.students[0], taught.cohort["id"])
    api.ok(make.absences(assessment, {taught.students[1]: "ABSENT"}))
    return lambda: api.delete(f"/assessments/{assessment['id']}"), {"assessments", "scores", "absences"}


@scene
def enters_a_score_in_place_of_an_absence(api, make):
    arm = Marked(make)
    return lambda: arm.put(arm.record("A/2", 0, score=7)), {"scores", "absences"}


@scene
def submits(api, make):
    taught = Class(make, 2, marked=1)
    return lambda: taught.submit(blanks="ABSENT"), {"submissions", "assessments", "absences"}


@scene
def reopens_a_subject(api, make):
    taught = Class(make)
    api.ok(taught.submit())
    return taught.reopen, {"submissions", "assessments"}


@scene
def publishes(api, make):
    arms = Arms(make, 1, 1)
    arms.mark()
    arms.submit()
    return arms.publish, {"publications", "report-cards"}


@scene
def publishes_another_version(api, make):
    arms = Arms(make, 2, 1)
    first, second = arms.published()
    for batch in (first, second):
        api.ok(arms.reopen(batch))
    arms.correct(arms.students[arms.first][0], 77)
    return arms.publish, {"publications", "report-cards"}


@scene
def publishes_another_version_without_a_leaver(api, make):
    arms = Arms(make, 2, 1)
    first, _ = arms.published()
    leaver = arms.students[arms.first][0]
    body = {"student_ids": [leaver]}
    api.ok(api.patch(f"/cohorts/{arms.cohort['id']}/remove_students", body))
    api.ok(arms.reopen(first))
    return lambda: arms.publish(arms.first), {"publications", "report-cards"}


@scene
def erases_a_student_left_out_by_a_version(api, make):
    send, _ = publishes_another_version_without_a_leaver(api, make)
    [version] = api.ok(send())
    [leaver] = version["left"]
    return lambda: api.delete(f"/students/{leaver}/data"), {"students", "publications"}


@scene
def withdraws_a_publication(api, make):
    arms = Arms(make, 1, 1)
    first, _ = arms.published()
    return lambda: arms.reopen(first, withdraw=True), {"publications", "report-cards"}


def promoted(make):
    end = End(make, 1, 1)
    end.published()
    return end, end.promoted()


@scene
def promotes(api, make):
    end = End(make, 1, 1)
    end.published()
    fingerprint = end.rehearsal()["fingerprint"]
    told = {"promotions", "enrollments", "subject-enrollments", "students"}
    return lambda: end.commit(fingerprint=fingerprint), told


@scene
def undoes_a_promotion(api, make):
    end, promotion = promoted(make)
    return lambda: end.undo(promotion), {"promotions", "enrollments", "subject-enrollments", "students"}


@scene
def amends_a_promotion(api, make):
    end, promotion = promoted(make)
    told = {"promotions", "enrollments", "students", "graduates", "subject-enrollments"}
    return lambda: end.amend(promotion, end.everybody[0], "GRADUATED"), told


@scene
def takes_an_amended_graduation_back(api, make):
    end, promotion = promoted(make)
    api.ok(end.amend(promotion, end.everybody[0], "GRADUATED"))
    return lambda: end.amend(promotion, end.everybody[0], "REPEATED", end.again["id"]), {
        "promotions",
        "graduates",
    }


@scene
def undoes_an_amended_promotion(api, make):
    end, promotion = promoted(make)
    api.ok(end.amend(promotion, end.everybody[0], "LEFT_OUT"))
    return lambda: end.undo(promotion), {"promotions", "enrollments"}


@scene
def corrects_a_register(api, make):
    kept = Kept(make, 2)
    kept.take()
    return lambda: kept.correct(codes={"R/1": "A"}), {"registers"}


@scene
def corrects_a_register_that_nobody_took(api, make):
    kept = Kept(make, 2)
    return lambda: kept.correct(codes={"R/1": "A"}), {"registers"}


@scene
def takes_a_correction_back(api, make):
    kept = Kept(make, 2)
    kept.take()
    api.ok(kept.correct(codes={"R/1": "A"}))
    return lambda: kept.correct(codes={"R/1": None}), {"registers"}


@scene
def comments_anew(api, make):
    said = Said(make, 2)
    comments = [{"student": student, "times_present": 3} for student in said.students.values()]
    api.ok(said.put(*comments))
    return lambda: said.put(*({**comment, "times_present": None} for comment in comments)), {"comments"}


@scene
def replaces_a_primary_guardian(api, make):
    student = make.student()
    make.guardian(student)
    body = {
        "full_name": "Ngozi",
        "phone_number": "+2348030000021",
        "students": [{"student": student["id"], "relationship": "mother", "primary": True}],
    }
    return lambda: api.post("/guardians", body), {"guardians", "student-guardians"}


@scene
def writes_the_guardian_of_a_student(api, make):
    student = make.student()["id"]
    guardian = {
        "full_name": "Ngozi",
        "relationship": "mother",
        "phone_number": "1",
        "email_address": "a@b.example",
    }
    return lambda: api.patch(f"/students/{student}", {"guardian": guardian}), {
        "guardians",
        "student-guardians",
    }


def teacher(api, make):
    """An employee with a form class, a subject and a contact."""
    cohort = make.cohort(session=this_session(make))
    employee = make.employee()
    account = make.account_of(employee)
    make.contact(account)
    api.ok(api.patch(f"/teachers/{cohort['id']}/add_to_batch", {"teacher_id": employee["id"]}))
    row = {"cohort_subject": make.cohort_subject(cohort)["id"], "employee": employee["id"]}
    api.ok(api.put("/subject-teachers", {"assignments": [row]}))
    return employee["id"], account["id"]


@scene
def deletes_the_account_of_a_teacher(api, make):
    _, account = teacher(api, make)
    return lambda: api.delete(f"/users/{account}/delete"), {
        *("users", "employees", "contacts", "form-teachers", "subject-teachers")
    }


@scene
def restores_the_account_of_a_teacher(api, make):
    _, account = teacher(api, make)
    api.ok(api.delete(f"/users/{account}/delete"))
    return lambda: api.put(f"/users/{account}/restore"), {
        *("users", "employees", "contacts", "form-teachers", "subject-teachers")
    }


@scene
def releases_a_teacher(api, make):
    employee, _ = teacher(api, make)
    return lambda: api.delete(f"/employees/{employee}?release=true"), {
        *(
            "users",
            "employees",
            "contacts",
            "form-teachers",
            "subject-teachers",
            "bank-accounts",
            "next-of-kin",
        )
    }


@scene
def renames_the_account_of_a_student(api, make):
    user = make.student()["user"]
    return lambda: api.patch(f"/users/{user}", {"last_name": "Changed"}), {"users", "students"}


@scene
def gives_a_level_settings_of_its_own(api, make):
    make.classroom(level="Nursery")
    return lambda: api.patch("/result-settings?level=Nursery", {"pass_mark": 50}), {"settings"}


@scene
def takes_the_bands_of_a_level_back(api, make):
    make.classroom(level="Nursery")
    band = {"lower_threshold": 0, "upper_threshold": 100, "letter_grade": "P", "remarks": "x"}
    api.ok(api.put("/grade-configs?level=Nursery", [band]))
    return lambda: api.put("/grade-configs?level=Nursery", []), {"settings"}


@scene
def copies_a_session(api, make):
    taught, target = make.taught(), make.session()["id"]
    make.assessment(taught.subject, taught.term)
    employee = make.employee()["id"]
    api.ok(api.patch(f"/teachers/{taught.cohort['id']}/add_to_batch", {"teacher_id": employee}))
    row = {"cohort_subject": taught.subject["id"], "employee": employee}
    api.ok(api.put("/subject-teachers", {"assignments": [row]}))
    day = api.ok(api.get(f"/sessions/{taught.cohort['session']}"))["start_date"]
    calendar = {"start_date": day, "end_date": day}
    api.ok(api.put(f"/terms/{taught.term['id']}/calendar", calendar))
    body = {"session": taught.cohort["session"]}
    return lambda: api.post(f"/sessions/{target}/copy-from", body), {
        *("terms", "cohorts", "batches", "cohort-subjects", "assessments", "form-teachers")
    }


@scene
def imports_students_with_guardians_and_a_class(api, make):
    cohort = make.cohort(session=make.session(current=True))
    make.cohort_subject(cohort)
    row = f"Ada,Obi,I/1,Ngozi,mother,08030000021,{cohort['classroom']}"
    header = (
        "first_name,last_name,admission_number,guardian_full_name,guardian_relationship,guardian_phone_number"
    )
    content = f"{header},class\n{row}\n".encode()
    return (
        lambda: api.post("/students/import-sheet", data={"sheet": (BytesIO(content), "students.csv")}),
        {"students", "users", "guardians", "student-guardians"},
    )


@scene
def deletes_a_session_with_its_parts(api, make):
    term = make.term()
    return lambda: api.delete(f"/terms/{term['id']}"), {"terms"}


@scene
def erases_a_student_with_all_records(api, make):
    student = make_left(make, "students")
    return lambda: api.delete(f"/students/{student['id']}/data"), {
        *("students", "users", "registers", "promotions", "absences")
    }


@scene
def erases_a_guardian_of_two(api, make):
    guardian = make_guardian(make)
    return lambda: api.delete(f"/guardians/{guardian['id']}/data"), {
        "guardians",
        "student-guardians",
        "users",
    }


@scene
def erases_an_employee_with_all_records(api, make):
    employee = make_left(make, "employees")
    return lambda: api.delete(f"/employees/{employee['id']}/data"), {"employees"}
