"""Every operation that writes, and every export, leaves an entry with actor, address and request."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import Any

import pytest
from sqlalchemy import text

from school_service.core.database import db
from school_service.features.audit import service
from school_service.features.audit.deletions import DELETIONS
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.verification import named_rows
from tests.client import ApiClient
from tests.factories import PASSWORD, Factory
from tests.features.attendance.classes import Kept
from tests.features.attendance.sheets.weeks import Week
from tests.features.attendance.sheets.weeks import fill as fill_register
from tests.features.classes.student_imports.test_import import people
from tests.features.classes.student_imports.test_import import sheet as students_sheet
from tests.features.classes.student_imports.test_import import upload as import_students
from tests.features.exchange.copies.copies import changed
from tests.features.observations.comments.sheets import Said
from tests.features.observations.metrics.sheets import PSYCHOMOTOR, TRAITS, Observed
from tests.features.reach.conftest import this_session
from tests.features.results.promotions.ends import End
from tests.features.results.publications.arms import Arms
from tests.features.results.submissions.classes import Class
from tests.features.scores.marksheets.arms import Marked, fill
from tests.features.scores.scoresheets.sheets import sheet_of, upload
from tests.features.sign_in.rows import store_identity, store_session, store_ways_in
from tests.features.test_access_matrix import OPERATIONS
from tests.operations import measured
from tests.printing.pictures import png
from tests.sheets.workbooks import saved

WRITING = {"POST", "PUT", "PATCH", "DELETE"}
# Its tokens are of no school: there is no log that could have an entry.
OF_NO_SCHOOL = {("POST", "/auth/oauth/token")}
# They need an outside provider: tests/features/identities has their entries.
OF_OUTSIDE = {("POST", "/me/identities"), ("POST", "/users/{id}/identities")}


@dataclass
class Scene:
    """The school's administrator, who makes the records that an operation needs, and then does it."""

    api: ApiClient
    make: Factory

    def user(self):
        return self.make.user()["user"]["id"]

    def elective(self):
        """A cohort subject, and a student of the cohort who takes it."""
        cohort = self.make.cohort()
        (student,) = self.make.enrolled(cohort)
        subject = self.make.cohort_subject(cohort, elective=True)
        self.api.ok(self.api.patch(f"/cohort-subjects/{subject['id']}/students", [student]))
        return subject["id"], student

    def assessment(self, students=1):
        """An assessment, the ids of its students, and of their batch."""
        taught = self.make.taught(students)
        return self.make.assessment(taught.subject, taught.term), taught.students, taught.cohort["id"]

    def band(self):
        return self.make.without_grade_bands().grade_band(0, 10)["id"]

    def teacher(self):
        """A batch, and an employee."""
        return self.make.cohort()["id"], self.make.employee()["id"]


# How to do each operation, and the entities that are on record then.
Step = tuple[Any, set[str]]
WRITES: dict[tuple[str, str], Step] = {}


def writes(operation, *entities):
    """Note how an operation is done: the decorated function prepares, and returns the sending of the request."""

    def note(prepare):
        method, path = operation.split(" ")
        WRITES[method, path] = (prepare, set(entities))
        return prepare

    return note


def posting(path, body, *entities):
    """Note a POST that needs nothing made before."""

    @writes(f"POST {path}", *entities)
    def prepare(scene):
        return lambda: scene.api.post(path, body)


posting(
    "/users",
    {"username": "n", "first_name": "N", "last_name": "N", "password": "p", "gender": "FEMALE"},
    "user",
)
posting("/permissions", {"section": "canteen", "access": "read"}, "permission", "role")
posting("/roles", {"name": "Cook", "avatar": 1}, "role")
posting("/sessions", {"name": "1999/2000", "start_date": "1999-09-08", "end_date": "2000-07-24"}, "session")
posting("/classrooms", {"name": "JSS 0", "level": "Junior"}, "classroom")
posting("/templates", {"name": "Latin", "code": "LAT"}, "subject")
posting("/students", {"first_name": "A", "last_name": "B", "admission_number": "AU/1"}, "student", "user")
posting("/metric-definitions", {"name": "Whistling", "metric_type": PSYCHOMOTOR}, "metric-definition")
posting("/departments", {"name": "Latin"}, "department")
posting("/employee-categories", {"name": "Latin"}, "employee-category")
posting("/positions", {"name": "Latin"}, "position")


@writes("POST /users/login", "sign-in")
def _(scene):
    name = scene.make.user()["user"]["username"]
    return lambda: scene.api.post("/users/login", {"username": name, "password": PASSWORD})


@writes("DELETE /users/{id}/delete", "user")
def _(scene):
    user = scene.user()
    return lambda: scene.api.delete(f"/users/{user}/delete")


@writes("PUT /users/{id}/restore", "user")
def _(scene):
    user = scene.user()
    scene.api.ok(scene.api.delete(f"/users/{user}/delete"))
    return lambda: scene.api.put(f"/users/{user}/restore")


@writes("PUT /users/{id}/roles", "user")
def _(scene):
    user, role = scene.user(), scene.make.role()["id"]
    return lambda: scene.api.put(f"/users/{user}/roles", {"role": role})


@writes("DELETE /users/{id}/roles/{roleId}", "user")
def _(scene):
    user, role = scene.user(), scene.make.role()["id"]
    scene.api.ok(scene.api.put(f"/users/{user}/roles", {"role": role}))
    return lambda: scene.api.delete(f"/users/{user}/roles/{role}")


@writes("DELETE /users/{id}/sessions", "user")
def _(scene):
    user = scene.user()
    return lambda: scene.api.delete(f"/users/{user}/sessions")


@writes("DELETE /users/{id}/sessions/{session_id}", "user-session")
def _(scene):
    user = scene.user()
    session = store_session(scene.api.school, user)
    return lambda: scene.api.delete(f"/users/{user}/sessions/{session}")


@writes("PUT /users/{id}/photo", "user")
def _(scene):
    user = scene.user()
    return lambda: scene.api.put(
        f"/users/{user}/photo",
        data={"image": (BytesIO(png(100, 100)), "a.png")},
        content_type="multipart/form-data",
    )


@writes("DELETE /users/{id}/photo", "user")
def _(scene):
    user = scene.user()
    store_ways_in(scene.api.school, user)
    return lambda: scene.api.delete(f"/users/{user}/photo")


def invited(scene):
    """Invite a student, who has no password."""
    user = scene.make.student()["user"]
    [made] = scene.api.ok(scene.api.post("/invitations", {"users": [user]}))
    return made


@writes("POST /invitations", "invitation")
def _(scene):
    user = scene.make.student()["user"]
    return lambda: scene.api.post("/invitations", {"users": [user]})


@writes("POST /invitations/slips", "invitation")
def _(scene):
    user = scene.make.student()["user"]
    return lambda: scene.api.post("/invitations/slips?format=xlsx", {"users": [user]})


@writes("DELETE /invitations/{id}", "invitation")
def _(scene):
    made = invited(scene)
    return lambda: scene.api.delete(f"/invitations/{made['id']}")


@writes("POST /users/login/invitation", "invitation", "user", "sign-in")
def _(scene):
    taken = {"code": invited(scene)["code"], "password": "correct horse battery"}
    return lambda: scene.api.post("/users/login/invitation", taken)


@writes("DELETE /users/{id}/identities/{identity_id}", "identity")
def _(scene):
    user = scene.user()
    link = store_identity(scene.api.school, user)
    return lambda: scene.api.delete(f"/users/{user}/identities/{link}")


@writes("PUT /users/{id}/password", "user")
def _(scene):
    user = scene.user()
    return lambda: scene.api.put(f"/users/{user}/password", {"password": "another password"})


@writes("PATCH /roles/{id}/permissions", "role")
def _(scene):
    role = scene.make.role("read:users")["id"]
    return lambda: scene.api.patch(f"/roles/{role}/permissions", {"permissionIds": []})


@writes("PATCH /sessions/{id}", "session")
def _(scene):
    scene.make.session(current=True)
    session = scene.make.session()["id"]
    return lambda: scene.api.patch(f"/sessions/{session}", {"current": True})


@writes("POST /sessions/{id}/copy-from", "term", "cohort", "batch", "cohort-subject", "assessment")
def _(scene):
    taught, target = scene.make.taught(), scene.make.session()["id"]
    scene.make.assessment(taught.subject, taught.term)
    body = {"session": taught.cohort["session"]}
    return lambda: scene.api.post(f"/sessions/{target}/copy-from", body)


@writes("POST /terms", "term")
def _(scene):
    body = {"session_id": scene.make.session()["id"], "term": "FIRST", "display_name": "First"}
    return lambda: scene.api.post("/terms", body)


@writes("DELETE /templates/{id}", "subject")
def _(scene):
    subject = scene.make.subject()["id"]
    return lambda: scene.api.delete(f"/templates/{subject}")


@writes("PATCH /students/{id}", "student", "user")
def _(scene):
    student = scene.make.student()["id"]
    changes = {"last_name": "Changed", "dob": "2012-01-31", "status": "WITHDRAWN"}
    return lambda: scene.api.patch(f"/students/{student}", changes)


GUARDIAN = {"full_name": "Ngozi", "phone_number": "+2348030000021"}


@writes("POST /guardians", "guardian", "student-guardian")
def _(scene):
    students = [{"student": scene.make.student()["id"], "relationship": "mother", "primary": True}]
    return lambda: scene.api.post("/guardians", {**GUARDIAN, "students": students})


@writes("PATCH /guardians/{id}", "guardian")
def _(scene):
    guardian = scene.make.guardian()["id"]
    return lambda: scene.api.patch(f"/guardians/{guardian}", GUARDIAN)


@writes("DELETE /guardians/{id}", "guardian", "student-guardian")
def _(scene):
    guardian = scene.make.guardian(scene.make.student())["id"]
    return lambda: scene.api.delete(f"/guardians/{guardian}")


@writes("PUT /guardians/{id}/account", "guardian", "user")
def _(scene):
    guardian = scene.make.guardian()["id"]
    return lambda: scene.api.put(f"/guardians/{guardian}/account", {"username": "ngozi"})


@writes("POST /guardians/accounts", "guardian", "user", "invitation")
def _(scene):
    cohort, student = scene.make.cohort(), scene.make.student()
    scene.make.enrolled(cohort, student)
    scene.make.guardian(student)
    return lambda: scene.api.post("/guardians/accounts", {"batch": cohort["id"]})


@writes("DELETE /guardians/{id}/account", "guardian", "user")
def _(scene):
    guardian = scene.make.guardian()["id"]
    scene.api.ok(scene.api.put(f"/guardians/{guardian}/account", {"user": scene.user()}))
    return lambda: scene.api.delete(f"/guardians/{guardian}/account")


def linked(scene):
    """The address of the link of a guardian and a student."""
    student = scene.make.student()
    return f"/students/{student['id']}/guardians/{scene.make.guardian(student)['id']}"


@writes("PUT /students/{id}/guardians/{guardian_id}", "student-guardian")
def _(scene):
    address = linked(scene)
    return lambda: scene.api.put(address, {"relationship": "aunt", "primary": True})


@writes("DELETE /students/{id}/guardians/{guardian_id}", "student-guardian")
def _(scene):
    address = linked(scene)
    return lambda: scene.api.delete(address)


@writes("PUT /students/{id}/guardians/{guardian_id}/stop", "student-guardian")
def _(scene):
    address = linked(scene)
    return lambda: scene.api.put(f"{address}/stop", {"reason": "A court order"})


@writes("DELETE /students/{id}/guardians/{guardian_id}/stop", "student-guardian")
def _(scene):
    address = linked(scene)
    scene.api.ok(scene.api.put(f"{address}/stop", {"reason": "A court order"}))
    return lambda: scene.api.delete(f"{address}/stop")


@writes("POST /students/update-sheet", "student", "user")
def _(scene):
    student = scene.make.student()["id"]
    content = f"id,first_name,dob\n{student},Ngozi,2014-05-27\n".encode()
    return lambda: scene.api.post(
        "/students/update-sheet", data={"sheet": (BytesIO(content), "students.csv")}
    )


@writes("GET /students/update-sheet", "export")
def _(scene):
    batch = scene.make.cohort()["id"]
    return lambda: scene.api.get(f"/students/update-sheet?batch={batch}")


@writes("POST /employees/import-sheet", "employee", "user", "contact", "bank-account", "next-of-kin")
def _(scene):
    content = b"first_name,last_name,gender,category\nAda,Obi,F,Teaching\nBisi,Obi,F,Teaching\n"
    return lambda: scene.api.post(
        "/employees/import-sheet", data={"sheet": (BytesIO(content), "employees.csv")}
    )


@writes("POST /students/import-sheet", "student", "user")
def _(scene):
    content = students_sheet(*people(3))
    return lambda: import_students(scene.api, content)


@writes("POST /cohorts", "cohort", "batch")
def _(scene):
    body = {"classroom": scene.make.classroom()["id"], "session_id": scene.make.session()["id"]}
    return lambda: scene.api.post("/cohorts", body)


@writes("PATCH /cohorts/{id}", "cohort")
def _(scene):
    cohort, room = scene.make.cohort(), scene.make.classroom()["id"]
    body = {"classroom": room, "session_id": cohort["session"]}
    return lambda: scene.api.patch(f"/cohorts/{cohort['id']}", body)


@writes("POST /cohorts/{id}/batches", "batch")
def _(scene):
    cohort = scene.make.cohort()["id"]
    return lambda: scene.api.post(f"/cohorts/{cohort}/batches", {"name": "B"})


@writes("POST /cohorts/{id}/enrollment", "enrollment")
def _(scene):
    cohort, student = scene.make.cohort()["id"], scene.make.student()["id"]
    return lambda: scene.api.post(f"/cohorts/{cohort}/enrollment", {"students": [student], "batch": cohort})


@writes("PATCH /cohorts/{cohortId}/remove_students", "enrollment")
def _(scene):
    cohort = scene.make.cohort()
    ids = scene.make.enrolled(cohort)
    return lambda: scene.api.patch(f"/cohorts/{cohort['id']}/remove_students", {"student_ids": ids})


@writes("POST /cohort-subjects", "cohort-subject")
def _(scene):
    body = {
        "cohort_id": scene.make.cohort()["id"],
        "subject_id": scene.make.subject()["id"],
        "elective": False,
    }
    return lambda: scene.api.post("/cohort-subjects", body)


@writes("PATCH /cohort-subjects/{id}", "cohort-subject")
def _(scene):
    subject = scene.make.cohort_subject()["id"]
    return lambda: scene.api.patch(f"/cohort-subjects/{subject}", {"elective": True})


@writes("PATCH /cohort-subjects/{id}/students", "subject-enrollment")
def _(scene):
    cohort = scene.make.cohort()
    ids, subject = scene.make.enrolled(cohort), scene.make.cohort_subject(cohort, elective=True)["id"]
    return lambda: scene.api.patch(f"/cohort-subjects/{subject}/students", ids)


@writes("DELETE /cohort-subjects/{id}/students/{student_id}", "subject-enrollment")
def _(scene):
    subject, student = scene.elective()
    return lambda: scene.api.delete(f"/cohort-subjects/{subject}/students/{student}")


@writes("PUT /role-reaches", "role")
def _(scene):
    body = {"roles": [{"role": scene.make.role("read:students")["id"], "reach": "OWN"}]}
    return lambda: scene.api.put("/role-reaches", body)


def assignment_of(scene):
    return {"cohort_subject": scene.make.cohort_subject()["id"], "employee": scene.make.employee()["id"]}


@writes("PUT /subject-teachers", "subject-teacher")
def _(scene):
    body = {"assignments": [assignment_of(scene)]}
    return lambda: scene.api.put("/subject-teachers", body)


@writes("DELETE /subject-teachers/{id}", "subject-teacher")
def _(scene):
    body = {"assignments": [assignment_of(scene)]}
    (made,) = scene.api.ok(scene.api.put("/subject-teachers", body))
    return lambda: scene.api.delete(f"/subject-teachers/{made['id']}")


@writes("POST /subject-teachers/copy", "subject-teacher")
def _(scene):
    room, subject = scene.make.classroom(), scene.make.subject()
    before, after = scene.make.cohort(room), scene.make.cohort(room)
    taught = [scene.make.cohort_subject(cohort, subject) for cohort in (before, after)]
    row = {"cohort_subject": taught[0]["id"], "employee": scene.make.employee()["id"]}
    scene.api.ok(scene.api.put("/subject-teachers", {"assignments": [row]}))
    body = {"from_session": before["session"], "to_session": after["session"]}
    return lambda: scene.api.post("/subject-teachers/copy", body)


@writes("POST /assessments", "assessment")
def _(scene):
    taught = scene.make.taught()
    body = {
        "category": "CA1",
        "subject": taught.subject["id"],
        "name": "Test",
        "abbreviation": "T",
        "due_date": "2025-10-17",
        "total_points": 20,
        "term": taught.term["id"],
        "description": "x",
        "file_name": "test.xlsx",
        "include_in_final": True,
        "publish_scores": False,
    }
    return lambda: scene.api.post("/assessments", body)


@writes("POST /assessments/many", "assessment")
def _(scene):
    taught = scene.make.taught()
    body = {
        "category": "EXAM",
        "subjects": [taught.subject["id"]],
        "name": "Exam",
        "abbreviation": "E",
        "due_date": "2025-12-05",
        "total_points": 60,
        "term": "FIRST",
        "description": "x",
        "file_name": "exam.xlsx",
        "include_in_final": True,
        "publish_scores": True,
    }
    return lambda: scene.api.post("/assessments/many", body)


@writes("PUT /assessments/{id}/scores", "gradebook")
def _(scene):
    assessment, (student,), _ = scene.assessment()
    return lambda: scene.api.put(
        f"/assessments/{assessment['id']}/scores", [{"student": student, "score": 7}]
    )


@writes("DELETE /assessments/{id}", "assessment")
def _(scene):
    assessment, _, _ = scene.assessment()
    return lambda: scene.api.delete(f"/assessments/{assessment['id']}")


@writes("POST /gradebooks", "gradebook")
def _(scene):
    assessment, (student,), batch = scene.assessment()
    body = {"assessment": assessment["id"], "score": 7, "student": student, "batch": batch}
    return lambda: scene.api.post("/gradebooks", body)


@writes("DELETE /gradebooks/{id}", "gradebook")
def _(scene):
    assessment, (student,), batch = scene.assessment()
    entry = scene.make.entry(assessment, student, batch)["id"]
    return lambda: scene.api.delete(f"/gradebooks/{entry}")


@writes("PUT /assessments/{id}/absences", "absence")
def _(scene):
    assessment, (student,), _ = scene.assessment()
    return lambda: scene.make.absences(assessment, {student: "ABSENT"})


@writes("DELETE /assessments/{id}/absences/{student_id}", "absence")
def _(scene):
    assessment, (student,), _ = scene.assessment()
    scene.api.ok(scene.make.absences(assessment, {student: "ABSENT"}))
    return lambda: scene.api.delete(f"/assessments/{assessment['id']}/absences/{student}")


@writes("POST /assessments/{id}/scoresheet", "gradebook")
def _(scene):
    assessment, (student,), _ = scene.assessment()
    number = scene.api.ok(scene.api.get(f"/students/{student}"))["admission_number"]
    content = sheet_of((number, "A", "B", 7))
    return lambda: upload(scene.api, assessment, content)


@writes("POST /cohort-subjects/{id}/mark-sheet", "gradebook")
def _(scene):
    arm = Marked(scene.make)
    content = saved(fill(arm.download(), {"A/3": {"CA1 (20)": 7}}))
    return lambda: arm.send(content)


@writes("PUT /cohort-subjects/{id}/scores", "gradebook")
def _(scene):
    arm = Marked(scene.make)
    return lambda: arm.put(arm.record("A/3", 0, score=7))


@writes("POST /metrics/upload-sheet", "metric")
def _(scene):
    seen = Observed(scene.make, 2)
    content = seen.sheet({number: dict.fromkeys(TRAITS, 3) for number in seen.students})
    return lambda: seen.upload(content)


@writes("PUT /metrics", "metric")
def _(scene):
    seen = Observed(scene.make, 2)
    records = [
        {"student": student, "metric_type": PSYCHOMOTOR, "metric_scores": dict.fromkeys(TRAITS, 3)}
        for student in seen.students.values()
    ]
    return lambda: scene.api.put(f"/metrics?batch={seen.batch}&term=FIRST", records)


@writes("PUT /comments", "comment")
def _(scene):
    said = Said(scene.make, 2)
    return lambda: said.put(*({"student": student, "times_present": 3} for student in said.students.values()))


@writes("POST /comments/upload-sheet", "comment")
def _(scene):
    said = Said(scene.make, 2)
    content = said.sheet(*((number, 5, "Good") for number in said.students))
    return lambda: said.upload(content)


@writes("GET /comments/download-sheet", "export")
def _(scene):
    return Said(scene.make, 2).download


@writes("PATCH /teachers/{id}/add_to_batch", "form-teacher")
def _(scene):
    batch, teacher = scene.teacher()
    return lambda: scene.api.patch(f"/teachers/{batch}/add_to_batch", {"teacher_id": teacher})


@writes("DELETE /teachers/{id}/teachers/{teacherId}", "form-teacher")
def _(scene):
    batch, teacher = scene.teacher()
    scene.api.ok(scene.api.patch(f"/teachers/{batch}/add_to_batch", {"teacher_id": teacher}))
    return lambda: scene.api.delete(f"/teachers/{batch}/teachers/{teacher}")


@writes("POST /employees", "employee", "user", "contact", "bank-account", "next-of-kin")
def _(scene):
    body = scene.make.employee_body()
    return lambda: scene.api.post("/employees", body)


@writes("DELETE /employees/{id}", "employee", "user", "form-teacher", "subject-teacher")
def _(scene):
    cohort = scene.make.cohort(session=this_session(scene.make))
    teacher, heir = scene.make.employee()["id"], scene.make.employee()["id"]
    scene.api.ok(scene.api.patch(f"/teachers/{cohort['id']}/add_to_batch", {"teacher_id": teacher}))
    row = {"cohort_subject": scene.make.cohort_subject(cohort)["id"], "employee": teacher}
    scene.api.ok(scene.api.put("/subject-teachers", {"assignments": [row]}))
    return lambda: scene.api.delete(f"/employees/{teacher}?hand_over={heir}")


def deleting(path, kind):
    """Note the DELETE of a department, an employee category or a position."""

    @writes(f"DELETE {path}/{{id}}", path[1:-1].replace("categorie", "category"))
    def prepare(scene):
        made = getattr(scene.make, kind)()["id"]
        return lambda: scene.api.delete(f"{path}/{made}")


deleting("/departments", "department")
deleting("/employee-categories", "employee_category")
deleting("/positions", "position")


@writes("POST /grade-configs", "grade-config")
def _(scene):
    scene.make.without_grade_bands()
    body = {"lower_threshold": 0, "upper_threshold": 10, "letter_grade": "A1", "remarks": "x"}
    return lambda: scene.api.post("/grade-configs", body)


@writes("PUT /grade-configs", "grade-scale")
def _(scene):
    scene.make.classroom(level="Nursery")
    band = {"lower_threshold": 0, "upper_threshold": 100, "letter_grade": "P", "remarks": "x"}
    return lambda: scene.api.put("/grade-configs?level=Nursery", [band])


@writes("PATCH /grade-configs/{id}", "grade-config")
def _(scene):
    band = scene.band()
    return lambda: scene.api.patch(f"/grade-configs/{band}", {"remarks": "changed"})


@writes("DELETE /grade-configs/{id}", "grade-config")
def _(scene):
    band = scene.band()
    return lambda: scene.api.delete(f"/grade-configs/{band}")


@writes("POST /graduates", "graduate", "enrollment")
def _(scene):
    (student,) = scene.make.enrolled(scene.make.cohort())
    return lambda: scene.api.post("/graduates", {"student": student})


@writes("POST /contacts", "contact")
def _(scene):
    contact = {"email_address": "a@example.com", "phone_number": "1", "physical_address": "x"}
    body = {"owner": scene.user(), **contact}
    return lambda: scene.api.post("/contacts", body)


@writes("PATCH /settings", "settings")
def _(scene):
    return lambda: scene.api.patch("/settings", {"must_change_password": True})


@writes("PATCH /result-settings", "result-settings")
def _(scene):
    return lambda: scene.api.patch("/result-settings", {"pass_mark": 45})


@writes("PATCH /attendance-settings", "attendance-settings")
def _(scene):
    return lambda: scene.api.patch("/attendance-settings", {"lock_after": 3})


@writes("PUT /attendance-codes", "attendance-code")
def _(scene):
    codes = [{"code": code, "name": code, "kind": kind} for code, kind in (("X", "PRESENT"), ("O", "ABSENT"))]
    return lambda: scene.api.put("/attendance-codes", codes)


@writes("PUT /school-days", "school-day")
def _(scene):
    day = {"date": "2025-10-01", "status": "CLOSED", "name": "Independence Day"}
    return lambda: scene.api.put("/school-days", {"days": [day]})


@writes("PUT /registers", "register")
def _(scene):
    kept = Kept(scene.make, 2)
    return lambda: kept.put(default="P", submit=True)


@writes("PUT /registers/corrections", "attendance-correction")
def _(scene):
    kept = Kept(scene.make, 2)
    return lambda: kept.correct(codes={"R/1": "A"})


@writes("DELETE /registers/{id}", "register")
def _(scene):
    register = Kept(scene.make, 2).take()["id"]
    return lambda: scene.api.delete(f"/registers/{register}")


@writes("POST /registers/upload-sheet", "register")
def _(scene):
    week = Week(scene.make, 2)
    content = fill_register(week.workbook(), {"R/1": {week.column(0): "P"}})
    return lambda: week.upload(content)


@writes("GET /registers/download-sheet", "export")
def _(scene):
    return Week(scene.make, 2).download


@writes("GET /registers/download", "export")
def _(scene):
    kept = Kept(scene.make, 2)
    return lambda: scene.api.get(f"/registers/download?batch={kept.batch}&term=FIRST")


@writes("PUT /terms/{id}/calendar", "term-calendar")
def _(scene):
    term = scene.make.term()["id"]
    return lambda: scene.api.put(f"/terms/{term}/calendar", {"times_opened": 120})


@writes("PATCH /letterhead", "letterhead")
def _(scene):
    return lambda: scene.api.patch("/letterhead", {"motto": "Ẹ̀kọ́ ni ìmọ́lẹ̀"})


def drawing(which):
    """Note the PUT and the DELETE of a picture of the letterhead."""

    def put(scene):
        return scene.api.put(f"/letterhead/{which}", data={"image": (BytesIO(png()), "logo.png")})

    @writes(f"PUT /letterhead/{which}", "letterhead")
    def _(scene):
        return lambda: put(scene)

    @writes(f"DELETE /letterhead/{which}", "letterhead")
    def _(scene):
        scene.api.ok(put(scene))
        return lambda: scene.api.delete(f"/letterhead/{which}")


drawing("logo")
drawing("signature")


@writes("PATCH /users/{id}", "user")
def _(scene):
    user = scene.user()
    return lambda: scene.api.patch(f"/users/{user}", {"first_name": "Changed"})


@writes("PATCH /classrooms/{id}", "classroom")
def _(scene):
    room = scene.make.classroom()["id"]
    return lambda: scene.api.patch(f"/classrooms/{room}", {"name": "Changed"})


@writes("PATCH /contacts/{id}", "contact")
def _(scene):
    contact = scene.make.contact()["id"]
    return lambda: scene.api.patch(f"/contacts/{contact}", {"phone_number": "changed"})


@writes("PATCH /gradebooks/{id}", "gradebook")
def _(scene):
    assessment, (student,), batch = scene.assessment()
    entry = scene.make.entry(assessment, student, batch)["id"]
    return lambda: scene.api.patch(f"/gradebooks/{entry}", {"score": 3})


def correcting(path, body, *entities):
    """Note the PATCH of an employee, or of a part of the record."""

    @writes(f"PATCH /employees/{{id}}{path}", *entities)
    def prepare(scene):
        employee = scene.make.employee()["id"]
        return lambda: scene.api.patch(f"/employees/{employee}{path}", body)


correcting("", {"first_name": "Changed", "title": "Chief"}, "employee", "user")
correcting("/bank-account", {"bank_name": "Changed"}, "bank-account")
correcting("/nextofkin", {"full_name": "Changed"}, "next-of-kin")


@writes("DELETE /guardians/{id}/data", "guardian")
def _(scene):
    guardian = scene.make.guardian()["id"]
    return lambda: scene.api.delete(f"/guardians/{guardian}/data")


@writes("GET /guardians/{id}/data", "export")
def _(scene):
    guardian = scene.make.guardian()["id"]
    return lambda: scene.api.get(f"/guardians/{guardian}/data")


@writes("DELETE /students/{id}/data", "student")
def _(scene):
    student = scene.make.student()["id"]
    return lambda: scene.api.delete(f"/students/{student}/data")


@writes("DELETE /employees/{id}/data", "employee")
def _(scene):
    employee = scene.make.employee()["id"]
    scene.api.ok(scene.api.delete(f"/employees/{employee}"))
    return lambda: scene.api.delete(f"/employees/{employee}/data")


@writes("POST /cohort-subjects/{id}/submission", "submission", "absence")
def _(scene):
    taught = Class(scene.make, marked=1)
    return lambda: taught.submit(blanks="ABSENT")


@writes("POST /cohort-subjects/{id}/reopening", "submission")
def _(scene):
    taught = Class(scene.make)
    scene.api.ok(taught.submit())
    return taught.reopen


@writes("POST /publications", "publication")
def _(scene):
    arms = Arms(scene.make, 1, 1)
    arms.mark()
    arms.submit()
    return arms.publish


@writes("POST /publications/{id}/reopening", "publication")
def _(scene):
    arms = Arms(scene.make, 1, 1)
    first, _ = arms.published()
    return lambda: arms.reopen(first)


@writes("PUT /promotion-rules", "promotion-rules")
def _(scene):
    return lambda: scene.api.put("/promotion-rules", [{"minimum_average": 45}])


@writes("POST /promotions", "promotion", "enrollment", "graduate")
def _(scene):
    end = End(scene.make, 1, 1)
    end.published()
    moves = [end.move(end.first, promote_to=None), end.move(end.second)]
    fingerprint = end.rehearsal(*moves)["fingerprint"]
    return lambda: end.commit(*moves, fingerprint=fingerprint)


@writes("PATCH /promotions/{id}/decisions/{student}", "promotion", "enrollment", "graduate")
def _(scene):
    end = End(scene.make, 1, 1)
    end.published()
    promotion = end.promoted()
    return lambda: end.amend(promotion, end.everybody[0], "GRADUATED")


@writes("DELETE /promotions/{id}", "promotion", "enrollment", "graduate")
def _(scene):
    end = End(scene.make, 1, 1)
    end.published()
    promotion = end.promoted(end.move(end.first, promote_to=None), end.move(end.second))
    return lambda: end.undo(promotion)


def renaming(path, kind):
    """Note the PATCH of a department, an employee category or a position."""

    @writes(f"PATCH {path}/{{id}}", path[1:-1].replace("categorie", "category"))
    def prepare(scene):
        made = getattr(scene.make, kind)()["id"]
        return lambda: scene.api.patch(f"{path}/{made}", {"name": "Changed"})


renaming("/departments", "department")
renaming("/employee-categories", "employee_category")
renaming("/positions", "position")


def deleting_new(path, kind, *entities):
    """Note the DELETE of a record to which nothing refers."""

    @writes(f"DELETE {path}/{{id}}", *entities)
    def prepare(scene):
        made = getattr(scene.make, kind)()["id"]
        return lambda: scene.api.delete(f"{path}/{made}")


deleting_new("/sessions", "session", "session")
deleting_new("/classrooms", "classroom", "classroom")
deleting_new("/cohorts", "cohort", "cohort", "batch")
deleting_new("/cohort-subjects", "cohort_subject", "cohort-subject")
deleting_new("/roles", "role", "role")
deleting_new("/contacts", "contact", "contact")


@writes("PATCH /terms/{termId}", "term")
def _(scene):
    term = scene.make.term()["id"]
    return lambda: scene.api.patch(f"/terms/{term}", {"display_name": "Changed"})


@writes("DELETE /terms/{termId}", "term")
def _(scene):
    term = scene.make.term()["id"]
    return lambda: scene.api.delete(f"/terms/{term}")


@writes("PATCH /templates/{id}", "subject")
def _(scene):
    subject = scene.make.subject()["id"]
    return lambda: scene.api.patch(f"/templates/{subject}", {"name": "Changed"})


@writes("PATCH /batches/{id}", "batch")
def _(scene):
    batch = scene.make.cohort()["id"]
    return lambda: scene.api.patch(f"/batches/{batch}", {"name": "Changed"})


@writes("DELETE /batches/{id}", "batch")
def _(scene):
    batch = scene.make.batch(scene.make.cohort())["id"]
    return lambda: scene.api.delete(f"/batches/{batch}")


@writes("PATCH /assessments/{id}", "assessment")
def _(scene):
    assessment, _, _ = scene.assessment()
    return lambda: scene.api.patch(f"/assessments/{assessment['id']}", {"name": "Changed"})


@writes("PATCH /roles/{id}", "role")
def _(scene):
    role = scene.make.role()["id"]
    return lambda: scene.api.patch(f"/roles/{role}", {"name": "Changed"})


def trait(scene):
    body = {"name": "Whistling", "metric_type": PSYCHOMOTOR}
    return scene.api.ok(scene.api.post("/metric-definitions", body))["id"]


@writes("PATCH /metric-definitions/{id}", "metric-definition")
def _(scene):
    made = trait(scene)
    return lambda: scene.api.patch(f"/metric-definitions/{made}", {"name": "Changed"})


@writes("DELETE /metric-definitions/{id}", "metric-definition")
def _(scene):
    made = trait(scene)
    return lambda: scene.api.delete(f"/metric-definitions/{made}")


@writes("DELETE /metrics/{id}", "metric")
def _(scene):
    seen = Observed(scene.make, 1)
    content = seen.sheet({number: dict.fromkeys(TRAITS, 3) for number in seen.students})
    scene.api.ok(seen.upload(content))
    (record,) = scene.api.ok(scene.api.get("/metrics", query_string={"batchId": seen.batch}))
    return lambda: scene.api.delete(f"/metrics/{record['id']}")


@writes("DELETE /students/{id}", "student", "user", "contact")
def _(scene):
    student = scene.make.student()
    scene.make.contact({"id": student["user"]})
    return lambda: scene.api.delete(f"/students/{student['id']}")


# Exports read, and are on record too.


@writes("GET /assessments/{id}/download-sheet", "export")
def _(scene):
    assessment, _, _ = scene.assessment()
    return lambda: scene.api.get(f"/assessments/{assessment['id']}/download-sheet")


@writes("GET /metrics/download-sheet", "export")
def _(scene):
    return Observed(scene.make, 2).download


@writes("GET /cohort-subjects/{id}/mark-sheet", "export")
def _(scene):
    arm = Marked(scene.make)
    return lambda: scene.api.get(arm.path())


@writes("GET /mark-sheets", "export")
def _(scene):
    arm = Marked(scene.make)
    return lambda: scene.api.get(f"/mark-sheets?batch={arm.batch}&term=FIRST")


@writes("GET /students/{id}/data", "export")
def _(scene):
    student = scene.make.student()["id"]
    return lambda: scene.api.get(f"/students/{student}/data")


@writes("GET /employees/{id}/data", "export")
def _(scene):
    employee = scene.make.employee()["id"]
    return lambda: scene.api.get(f"/employees/{employee}/data")


# The statement that writes so many records writes their entries in the log, too.
WITH_THE_RECORDS = {
    ("POST", "/assessments/{id}/scoresheet"): "INSERT INTO gradebook_entries",
    ("PUT", "/assessments/{id}/scores"): "INSERT INTO gradebook_entries",
    ("POST", "/cohort-subjects/{id}/mark-sheet"): "INSERT INTO gradebook_entries",
    ("PUT", "/cohort-subjects/{id}/scores"): "INSERT INTO gradebook_entries",
}

# Operations of security, and those that read: they tell of nothing.
SILENT = {operation for operation in WRITES if operation[0] == "GET"} | {
    ("POST", "/users/login"),
    ("DELETE", "/users/{id}/sessions/{session_id}"),
    ("POST", "/invitations"),
    ("POST", "/invitations/slips"),
    ("DELETE", "/invitations/{id}"),
    ("DELETE", "/users/{id}/identities/{identity_id}"),
}


def test_no_writing_operation_is_forgotten():
    operations = {(operation.method, operation.path) for operation in OPERATIONS}
    writing = {operation for operation in operations if operation[0] in WRITING}

    assert WRITES.keys() <= operations
    assert writing - OF_NO_SCHOOL - OF_OUTSIDE == {
        operation for operation in WRITES if operation[0] in WRITING
    }


def log(place):
    """Read a school's log as it is stored."""
    with in_transaction(SchoolBinding(place.id)):
        return _log()


def _log():
    return db.session.scalars(text("SELECT to_jsonb(entry) FROM audit_entries AS entry ORDER BY id")).all()


def log_and_rows(place):
    """Read a school's log, and count its rows by table."""
    each = " UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in DELETIONS)
    with in_transaction(SchoolBinding(place.id)):
        return _log(), {row[0]: row[1] for row in db.session.execute(text(each))}


def unnamed(before, after, made):
    """List the tables that lose more rows than their entries say, as `tenants verify` tells lost rows from deleted."""
    entries = [
        (
            entity,
            sum((each["entity"], each["action"]) == (entity, "delete") for each in made),
            sum(each["entity"] == entity and each["action"] != "create" for each in made),
        )
        for entity in {each["entity"] for each in made}
    ]
    named = named_rows(DELETIONS, entries)
    return [
        table for table, rows in named.items() if rows is not None and before[table] - after[table] > rows
    ]


@pytest.fixture(scope="module")
def elsewhere(app, other_place):
    """The log of the other school, which no test of this one changes."""
    with app.app_context():
        return log(other_place)


@pytest.mark.parametrize("operation", WRITES, ids=" ".join)
def test_a_write_is_on_record_with_actor_address_and_request_and_a_failed_one_is_not(
    operation, api, other_place, elsewhere, make, place, messages, monkeypatch
):
    prepare, entities = WRITES[operation]
    send = prepare(Scene(api, make))
    entries = log(place)

    with_records = operation in WITH_THE_RECORDS
    if with_records:  # who acted must not be null
        monkeypatch.setattr(service, "_author", lambda _context: dict.fromkeys(service._AUTHOR))
    else:
        monkeypatch.setattr(service, "_INSERT", "SELECT no_such_function(%(entries)s)")
    # The end fails: neither the change nor its entry is there.
    assert send().status_code == (422 if with_records else 500)
    monkeypatch.undo()

    sent: list[str] = []

    def send_and_look() -> Any:
        known, rows = log_and_rows(place)
        # There is nothing of the failed request, and the export of before.
        assert [entry["entity"] for entry in known if entry not in entries] == ["export"]
        with messages() as taken:
            answer = send()
        sent.extend(taken)
        entries_since, rows_since = log_and_rows(place)
        made = [entry for entry in entries_since if entry not in known]
        assert {entry["entity"] for entry in made} == entities, answer.get_data(as_text=True)
        assert unnamed(rows, rows_since, made) == []
        for entry in made:
            assert entry["request_id"] == answer.headers["X-Request-ID"]
            assert (entry["actor"], entry["address"]) == (str(place.admin_id), "127.0.0.1")
        return answer

    # Copies of the school are told of it.
    assert bool(changed(api, place, send_and_look)) != (operation in SILENT)
    measured(" ".join(operation), entities=sorted(entities), messages={"SCHOOL": len(sent)})
    assert log(other_place) == elsewhere
    # In the transaction of the change, and without a round trip of its own: together with the commit.
    writing = [index for index, message in enumerate(sent) if "INSERT INTO audit_entries" in message]
    if with_records:
        assert [WITH_THE_RECORDS[operation] in sent[index] for index in writing] == [True], sent
    else:
        assert writing == [len(sent) - 1], sent
    assert "RELEASE SAVEPOINT" in sent[-1]


def test_a_reading_operation_that_is_no_export_runs_read_only(api, make, messages):
    make.student()
    with messages() as sent:
        api.ok(api.get("/students"))

    assert "transaction_read_only TO on" in sent[0]
    assert not any("audit_entries" in message for message in sent)


def test_the_import_template_is_no_export(api, place):
    entries = log(place)

    assert api.get("/students/import-template").status_code == 200

    assert log(place) == entries
