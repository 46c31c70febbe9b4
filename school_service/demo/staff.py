"""The staff of a sample school: employees with roles; nobody can sign in to their accounts until a password is set."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from itertools import cycle
from typing import Any
from uuid import UUID

from sqlalchemy import select

from school_service.core.database import db
from school_service.core.genders import FEMALE
from school_service.core.statements import execute
from school_service.demo.context import THIS_YEAR, DemoContext, first_day
from school_service.demo.people import Person
from school_service.features.classes.models import CohortSubject
from school_service.features.classes.subject_teachers.service import put_subject_teachers
from school_service.features.people.employees.service import add_form_teacher, create_employee
from school_service.features.people.models import Role
from school_service.features.people.users.service import give_role
from school_service.features.school.geography.service import list_lgas, list_nationalities, list_states
from school_service.features.school.models import Department, EmployeeCategory, Position


@dataclass(frozen=True)
class Post:
    """The post of an employee; `role` is the role of their account."""

    role: str
    position: str
    department: str
    category: str = "Teaching"


TEACHING = tuple(
    Post("Teacher", position, department)
    for department in ("Languages", "Mathematics", "Sciences", "Humanities")
    for position in ("Head of Department", "Teacher", "Teacher")
)
POSTS = (
    Post("Viewer", "Principal", "Administration"),
    Post("Registrar", "Registrar", "Administration", "Non-teaching"),
    Post("Bursar", "Bursar", "Bursary", "Non-teaching"),
    *TEACHING,
)
_BANKS = (("First Bank", "011"), ("Zenith Bank", "057"), ("Access Bank", "044"), ("UBA", "033"))
_BLOOD_GROUPS = ("O+", "O+", "O+", "A+", "A+", "B+", "AB+", "O-", "A-")


def make_staff(context: DemoContext) -> None:
    """Make the staff, all from the school's own state, and give each their role."""
    roles, departments = _by_name(Role), _by_name(Department)
    categories, positions = _by_name(EmployeeCategory), _by_name(Position)
    nigeria = next(country["id"] for country in list_nationalities() if country["code"] == "NG")
    state = next(row["id"] for row in list_states() if row["name"] == context.school.state)
    lgas = [lga["id"] for lga in list_lgas(state=state)]
    for number, post in enumerate(POSTS, 1):
        person = context.population.person()
        employee = create_employee(
            **_employee_fields(person, post),
            department=departments[post.department],
            category=categories[post.category],
            position=positions[post.position],
            lga=context.population.random.choice(lgas),
            state=state,
            nationality=nigeria,
            **_personal_records(context, person, number),
        )
        give_role(user_id=employee.values["user_id"], role=roles[post.role], principal=context.principal)
        if post in TEACHING:
            context.teachers.append(employee.id)


def make_form_teachers(context: DemoContext) -> None:
    """Give each arm of every cohort a form teacher."""
    arms = [arm for arms in context.arms.values() for arm in arms]
    for arm, teacher_id in zip(arms, context.teachers, strict=True):
        add_form_teacher(batch_id=arm, teacher_id=teacher_id)


def make_subject_teachers(context: DemoContext) -> None:
    """Let somebody teach each subject of every cohort, to all of its arms."""
    subjects = db.session.scalars(
        select(CohortSubject.id).order_by(CohortSubject.cohort_id, CohortSubject.id)
    ).all()
    taught = [
        {"cohort_subject": subject, "employee": teacher, "batch": None, "starts_on": None, "ends_on": None}
        for subject, teacher in zip(subjects, cycle(context.teachers), strict=False)
    ]
    execute(put_subject_teachers(assignments=taught))


def _by_name(model: Any) -> dict[str, UUID]:
    return {record.name: record.id for record in db.session.scalars(select(model))}


def _employee_fields(person: Person, post: Post) -> dict[str, Any]:
    title = "Dr" if post.position == "Principal" else "Mrs" if person.gender == FEMALE else "Mr"
    return {
        "first_name": person.first_name,
        "middle_name": person.middle_name,
        "last_name": person.last_name,
        "gender": person.gender,
        "title": title,
    }


def _personal_records(context: DemoContext, person: Person, number: int) -> dict[str, Any]:
    """Make up dates, bank details, next of kin and contact of an employee."""
    people = context.population
    random, address = people.random, context.school.address
    born = people.birthday(random.randint(THIS_YEAR - 58, THIS_YEAR - 28))
    joined: date = first_day(random.randint(born.year + 24, THIS_YEAR))
    bank, code = random.choice(_BANKS)
    spouse = people.spouse(person)
    return {
        "dob": born,
        "join_date": joined,
        "marital_status": "Married",
        "blood_group": random.choice(_BLOOD_GROUPS),
        "religion": random.choice(("Christianity", "Islam")),
        "status": "ACTIVE",
        "bank_details": {
            "bank_name": bank,
            "account_name": person.full_name,
            "account_number": f"{random.randrange(10**10):010d}",
            "bank_sort_code": f"{code}{random.randrange(10**6):06d}",
            "account_type": "Savings",
            "employee_no": f"{context.school.code}/S{number:03}",
            "employee_ref": number,
        },
        "next_of_kin": {
            "full_name": spouse.full_name,
            "relationship": "Wife" if spouse.gender == FEMALE else "Husband",
            "phone_number": people.phone_number(),
            "physical_address": address,
            "employee_ref": number,
        },
        "contact": {
            "email_address": f"{person.plain_name}@example.com",
            "phone_number": people.phone_number(),
            "physical_address": address,
        },
    }
