"""A student and an employee with rows in every table there is."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import String, update

from school_service.core.database import db
from school_service.core.facts import emptied, headed
from school_service.core.statements import execute, new_row
from school_service.features.attendance.models import Mark, Register
from school_service.features.people.models import Student
from school_service.features.people.students.leaving import OF_LEAVING
from school_service.features.results.computing.stored import OF_STUDENT
from school_service.features.results.models import (
    LEFT_OUT,
    PROMOTED,
    PUBLISHED,
    IssuedTranscript,
    LeftOut,
    Promotion,
    PromotionAmendment,
    PromotionBatch,
    PromotionDecision,
    Publication,
    ReportCard,
)
from school_service.features.school.models import Enrollment
from school_service.web.transactions import in_transaction
from tenants.clock import now
from tenants.connections.binding import SchoolBinding
from tests.factories import Factory
from tests.features.observations.metrics.sheets import TRAITS, Observed
from tests.features.sign_in.rows import store_session, store_ways_in

PRIVATE_OF_STUDENT = {
    # Texts that nobody thought of.
    **{
        column.name: f"{column.name}-Zxqvjk"[: column.type.length]
        for column, _ in headed(Student)
        if column.name in emptied(Student) and isinstance(column.type, String)
        if column.name not in OF_LEAVING
    },
    "first_name": "Chidinma-Zxqvjk",
    "middle_name": "Oluwaseun-Zxqvjk",
    "last_name": "Bàlógun-Zxqvjk",
    "gender": "FEMALE-Zxqvjk",
    "dob": "2011-03-29",
    "admitted_on": "2022-02-03",
}
GUARDIAN = {
    "full_name": "Emeka-Zxqvjk",
    "relationship": "father-Zxqvjk",
    "phone_number": "0803-Zxqvjk",
    "email_address": "emeka@zxqvjk.example.com",
}
MARK = "zxqvjk"
"""In every private text that is made here."""


def make_student(make: Factory) -> dict[str, Any]:
    """Make a student who is enrolled, has scores, metrics, contacts and a role, and was corrected."""
    seen = Observed(make, 0)
    body = {
        **PRIVATE_OF_STUDENT,
        "admission_number": "QC/ZXQVJK",
        "username": "chidinma.zxqvjk",
        "guardian": GUARDIAN,
    }
    # Of a student's form it would have to be one of two; an account has any.
    student = make.student(password="a password", **{**body, "gender": "FEMALE"})
    gender = {"gender": PRIVATE_OF_STUDENT["gender"]}
    make.api.ok(make.api.patch(f"/users/{student['user']}", gender))
    student |= gender
    make.enrolled(seen.cohort, student)
    subject = make.cohort_subject(seen.cohort)
    make.entry(make.assessment(subject, seen.term), student["id"], seen.batch, 12.5)
    assert seen.send({"QC/ZXQVJK": {TRAITS[0]: 5, TRAITS[1]: 3}}).status_code == 200
    missed = make.assessment(subject, seen.term)
    make.api.ok(make.absences(missed, {student["id"]: "EXCUSED"}, note="ill-Zxqvjk"))
    mark_register(make, seen, student)
    said = {
        "student": student["id"],
        "form_teacher_comment": "shy-Zxqvjk",
        "principal_comment": "good-Zxqvjk",
    }
    about = {"batch": seen.batch, "term": "FIRST", "comments": [{**said, "times_present": 90}]}
    make.api.ok(make.api.put("/comments", about))
    publish_card(make, seen, student)
    decide_promotion(make, seen, student)
    complete_account(make, {"id": student["user"]})
    make.api.ok(make.api.patch(f"/users/{student['user']}", {"last_name": "Bello-Zxqvjk"}))
    date_student(make, student)
    student["cohort_id"] = seen.cohort["id"]
    return student


def date_student(make: Factory, student: dict[str, Any]) -> None:
    """Store when a student left, and why, and their days in the class, however their status is now."""
    student_id = UUID(student["id"])
    with make.api.app.app_context(), in_transaction(SchoolBinding(make.api.school)):
        row = db.session.get(Student, student_id)
        row.left_on, row.leaving_reason = date(2026, 3, 27), "moves to Jos-Zxqvjk"
        theirs = update(Enrollment).where(Enrollment.student_id == student_id)
        db.session.execute(theirs.values(started_on=date(2022, 2, 4), ended_on=date(2026, 3, 27)))


def mark_register(make: Factory, seen: Observed, student: dict[str, Any]) -> None:
    """Store a mark with a note in a register, and a correction that the student themselves made."""
    register = new_row(
        Register,
        batch_id=UUID(seen.batch),
        cohort_id=UUID(seen.cohort["id"]),
        session_id=UUID(make.api.ok(make.api.get(f"/terms/{seen.term['id']}"))["sessionId"]),
        term_id=UUID(seen.term["id"]),
        date=date(2025, 10, 6),
        part="DAY",
        state="SUBMITTED",
        version=1,
    )
    mark = new_row(
        Mark,
        register_id=register.id,
        student_id=UUID(student["id"]),
        code="A",
        kind="ABSENT",
        note="ill-Zxqvjk",
        version=1,
        correction_code="E",
        correction_kind="EXCUSED",
        reason="her mother called-Zxqvjk",
        corrected_at=now(),
        corrected_by=student["user"],
        corrected_by_name="Chidinma-Zxqvjk",
    )
    with make.api.app.app_context(), in_transaction(SchoolBinding(make.api.school)):
        execute(register, mark)


OF_ANOTHER = {"submitted_by": "another", "submitted_by_name": "Somebody Else"}


def publish_card(make: Factory, seen: Observed, student: dict[str, Any]) -> None:
    """Store a card of a student as it is frozen, in a publication that they themselves made."""
    who = {name: student[name] for name in OF_STUDENT}
    comments = {"form_teacher": "shy-Zxqvjk", "principal": "good-Zxqvjk"}
    session = make.api.ok(make.api.get(f"/terms/{seen.term['id']}"))["sessionId"]
    submitted = {"submitted_by": student["user"], "submitted_by_name": "Chidinma-Zxqvjk"}
    publication = Publication(
        batch_id=UUID(seen.batch),
        cohort_id=UUID(seen.cohort["id"]),
        session_id=UUID(session),
        term_id=UUID(seen.term["id"]),
        version=1,
        state=PUBLISHED,
        rules={"subjects": {str(uuid4()): submitted, str(uuid4()): OF_ANOTHER}},
        published_at=now(),
        published_by=student["user"],
        published_by_name="Chidinma-Zxqvjk",
    )
    card = {"student": who, "comments": comments, "average": 62.5}
    with make.api.app.app_context(), in_transaction(SchoolBinding(make.api.school)):
        db.session.add(publication)
        db.session.flush()
        db.session.add(
            ReportCard(
                publication_id=publication.id,
                student_id=UUID(student["id"]),
                code=uuid4(),
                average=Decimal("62.50"),
                changed=False,
                class_figures_changed=False,
                term_id=publication.term_id,
                in_force=True,
                card=card,
            )
        )
        db.session.add(
            LeftOut(student_id=UUID(student["id"]), batch_id=UUID(seen.batch), term_id=UUID(seen.term["id"]))
        )
        db.session.add(
            IssuedTranscript(
                student_id=UUID(student["id"]),
                code=uuid4(),
                digest="0" * 64,
                issued_at=now(),
                card_ids=[],
                transcript={"student": who, "sessions": []},
            )
        )


def decide_promotion(make: Factory, seen: Observed, student: dict[str, Any]) -> None:
    """Store the decision on a student in a promotion, which they themselves made and undid."""
    session = UUID(make.api.ok(make.api.get(f"/terms/{seen.term['id']}"))["sessionId"])
    signatures = {
        f"{act}_{name}": value
        for act in ("committed", "undone")
        for name, value in (("at", now()), ("by", student["user"]), ("by_name", "Chidinma-Zxqvjk"))
    }
    promotion = Promotion(session_id=session, fingerprint="0" * 64, **signatures)
    with make.api.app.app_context(), in_transaction(SchoolBinding(make.api.school)):
        db.session.add(promotion)
        db.session.flush()
        batch = {"promotion_id": promotion.id, "batch_id": UUID(seen.batch)}
        db.session.add(PromotionBatch(**batch, number=1, live=False))
        db.session.flush()
        db.session.add(
            PromotionDecision(
                promotion_id=promotion.id,
                student_id=UUID(student["id"]),
                from_batch_id=UUID(seen.batch),
                average=Decimal("62.50"),
                terms=1,
                by_rule=PROMOTED,
                outcome=LEFT_OUT,
                reasons=[],
                reason="moves to Jos-Zxqvjk",
            )
        )
        db.session.flush()
        db.session.add(
            PromotionAmendment(
                promotion_id=promotion.id,
                student_id=UUID(student["id"]),
                outcome=LEFT_OUT,
                reason="to her uncle-Zxqvjk",
                ended=[],
                amended_at=now(),
                amended_by=student["user"],
                amended_by_name="Chidinma-Zxqvjk",
            )
        )


def make_graduate(make: Factory) -> dict[str, Any]:
    """Make a student who graduated."""
    student = make.student()
    make.graduate(student)
    return student


def make_employee(make: Factory) -> dict[str, Any]:
    """Make an employee who is a form teacher, has a role, two contacts and a password, and was corrected."""
    body = make.employee_body(
        first_name="Adaeze-Zxqvjk",
        middle_name="Ife-Zxqvjk",
        last_name="Okafor-Zxqvjk",
        title="Mrs-Zxqvjk",
        gender="FEMALE-Zxqvjk",
        marital_status="MARRIED-Zxqvjk",
        blood_group="O-Zxqvjk",
        religion="R-Zxqvjk",
        status="ACTIVE-Zxqvjk",
    )
    for part in ("bank_details", "next_of_kin", "contact"):
        texts = {name: f"{value}-Zxqvjk" for name, value in body[part].items() if isinstance(value, str)}
        body[part] |= texts
    body["contact"]["email_address"] = "adaeze@zxqvjk.example.com"
    employee = make.employee(**body)
    account = make.account_of(employee)
    make.api.ok(make.api.put(f"/users/{account['id']}/password", {"password": "a password"}))
    complete_account(make, account)
    teacher = {"teacher_id": employee["id"]}
    cohort = make.cohort()
    make.api.ok(make.api.patch(f"/teachers/{cohort['id']}/add_to_batch", teacher))
    taught = {"cohort_subject": make.cohort_subject(cohort)["id"], "employee": employee["id"]}
    make.api.ok(make.api.put("/subject-teachers", {"assignments": [{**taught, "batch": cohort["id"]}]}))
    make.api.ok(make.api.patch(f"/employees/{employee['id']}/bank-account", {"account_number": "12-Zxqvjk"}))
    employee["user"] = account["id"]
    return employee


PRIVATE_OF_GUARDIAN = {
    "full_name": "Halima-Zxqvjk Sule-Zxqvjk",
    "phone_number": "0806-Zxqvjk",
    "email_address": "halima@zxqvjk.example.com",
    "physical_address": "Yaba-Zxqvjk",
}


def make_guardian(make: Factory) -> dict[str, Any]:
    """Make a guardian of two students, stopped for one of them, with an account that has a role and a contact."""
    children = [make.student(), make.student()]
    guardian = make.guardian(*children, **PRIVATE_OF_GUARDIAN)
    path = f"/guardians/{guardian['id']}"
    named = {"username": "halima.zxqvjk", "password": "a password"}
    user = make.api.ok(make.api.put(f"{path}/account", named))["user"]
    complete_account(make, {"id": user})
    stop = f"/students/{children[1]['id']}{path}/stop"
    make.api.ok(make.api.put(stop, {"reason": "fights-Zxqvjk"}))
    make.api.ok(make.api.patch(path, {"phone_number": "0807-Zxqvjk"}))
    return {**guardian, "user": user, "students": [child["id"] for child in children]}


def complete_account(make: Factory, account: dict[str, Any]) -> None:
    """Give an account a role, another contact, a session, an identity, an invitation and a photo."""
    role = make.role("read:classrooms")
    make.api.ok(make.api.put(f"/users/{account['id']}/roles", {"role": role["id"]}))
    make.contact(
        account, email_address=f"{UUID(account['id']).hex}@zxqvjk.example.com", phone_number="0805-Zxqvjk"
    )
    with make.api.app.app_context():
        store_session(make.api.school, account["id"])
        store_ways_in(make.api.school, account["id"])
