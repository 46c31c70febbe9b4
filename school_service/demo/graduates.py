"""Last year's leavers of a sample school: the last class of the session before, who graduated from it."""

from __future__ import annotations

from school_service.demo.context import LAST_SESSION, THIS_YEAR, DemoContext
from school_service.demo.students import IN_A_CLASS, make_student
from school_service.features.classes.enrollments.service import enroll
from school_service.features.results.graduates.service import create_graduate
from school_service.features.school.cohorts.service import create_cohort

LAST_CLASS = "SSS 3"
_YEARS_AT_SCHOOL = 6


def make_graduates(context: DemoContext) -> None:
    """Make the students who were in the last class a year ago, and let them graduate."""
    cohort_id = create_cohort(classroom=context.classrooms[LAST_CLASS], session_id=LAST_SESSION).id
    count = context.population.random.randint(*IN_A_CLASS)
    admitted = THIS_YEAR - _YEARS_AT_SCHOOL
    leavers = [make_student(context, admitted=admitted, number=number) for number in range(1, count + 1)]
    enroll(cohort_id=cohort_id, batch=cohort_id, students=leavers)
    for student_id in leavers:
        create_graduate(student=student_id)
