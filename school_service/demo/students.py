"""The students of a sample school, each with a guardian, the account of one guardian; and last year's leavers."""

from __future__ import annotations

from datetime import date
from uuid import UUID

from sqlalchemy import select

from school_service.core.database import db
from school_service.core.genders import FEMALE
from school_service.core.read_models import fetch_row
from school_service.demo.context import LAST_SESSION, THIS_YEAR, DemoContext, first_day
from school_service.features.classes.enrollments.service import enroll
from school_service.features.people.guardians.accounts import give_account
from school_service.features.people.guardians.service import put_link
from school_service.features.people.models import StudentGuardian
from school_service.features.people.students.service import create_student
from school_service.features.results.graduates.service import create_graduate
from school_service.features.school.cohorts.service import create_cohort

IN_A_CLASS = (10, 13)  # the fewest and the most
GUARDIAN = "guardian"
"""The username of a guardian."""
AGE_OF_ADMISSION = 11  # years, in the first class


def make_students(context: DemoContext) -> None:
    """Make the students of each class: admitted as many years ago as it takes to come to it."""
    for years, classroom in enumerate(context.classrooms):
        for number in range(1, context.population.random.randint(*IN_A_CLASS) + 1):
            student = make_student(context, admitted=THIS_YEAR - years, number=number)
            context.students.setdefault(classroom, []).append(student)


def make_student(context: DemoContext, *, admitted: int, number: int) -> UUID:
    """Make a student and a guardian; `number` counts those admitted in the same year."""
    people = context.population
    child = people.person()
    parent = people.parent(child)
    made = create_student(
        first_name=child.first_name,
        middle_name=child.middle_name,
        last_name=child.last_name,
        gender=child.gender,
        admission_number=f"{context.school.code}/{admitted}/{number:03}",
        dob=people.birthday(admitted - AGE_OF_ADMISSION),
        admitted_on=first_day(admitted),
        former_school="Corona School, Gbagada" if number == 1 else None,
        guardian={
            "full_name": parent.full_name,
            "relationship": "Mother" if parent.gender == FEMALE else "Father",
            "phone_number": people.phone_number(),
            "email_address": f"{parent.plain_name}@example.com",
        },
    )
    return made.id


def make_guardians(context: DemoContext) -> None:
    """Let a guardian look after a child in each of the first two classes, and have an account without a password."""
    child, other = (context.students[classroom][0] for classroom in list(context.classrooms)[:2])
    primary = select(StudentGuardian.guardian_id).where(StudentGuardian.student_id == child)
    guardian_id = db.session.scalars(primary).one()
    fetch_row(put_link(student_id=other, guardian_id=guardian_id, relationship="Aunt"))
    fetch_row(give_account(guardian_id=guardian_id, username=GUARDIAN))


LAST_CLASS = "SSS 3"
_YEARS_AT_SCHOOL = 6


def make_graduates(context: DemoContext) -> None:
    """Make the students of the last class a year ago, and let them graduate."""
    cohort_id = create_cohort(classroom=context.classrooms[LAST_CLASS], session_id=LAST_SESSION).id
    count = context.population.random.randint(*IN_A_CLASS)
    admitted = THIS_YEAR - _YEARS_AT_SCHOOL
    leavers = [make_student(context, admitted=admitted, number=number) for number in range(1, count + 1)]
    enroll(cohort_id=cohort_id, batch=cohort_id, students=leavers)
    for student_id in leavers:
        create_graduate(student=student_id, left_on=date(THIS_YEAR, 7, 24))
