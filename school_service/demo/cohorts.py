"""The classes of the current session: cohorts of two arms, who is in them, and what they are taught."""

from __future__ import annotations

from school_service.demo.context import THIS_SESSION, DemoContext
from school_service.features.classes.cohort_subjects.service import create_cohort_subject, take_subject
from school_service.features.classes.enrollments.service import enroll
from school_service.features.school.cohorts.service import create_batch, create_cohort

SECOND_ARM = "B"
# Compulsory for juniors; seniors choose.
ELECTIVES = {"Economics", "Agricultural Science"}


def make_cohorts(context: DemoContext) -> None:
    """Make a cohort of each classroom, and enroll its students into the two arms in turn."""
    for classroom, room_id in context.classrooms.items():
        cohort_id = create_cohort(classroom=room_id, session_id=THIS_SESSION).id
        # A cohort's first arm bears its id.
        arms = (cohort_id, create_batch(cohort_id=cohort_id, name=SECOND_ARM).id)
        students = context.students[classroom]
        for number, arm in enumerate(arms):
            enroll(cohort_id=cohort_id, batch=arm, students=students[number::2])
        context.cohorts[classroom] = cohort_id
        context.arms[classroom] = arms


def make_cohort_subjects(context: DemoContext) -> None:
    """Teach every subject to every cohort; of the electives, which seniors have, half of them take each."""
    for classroom, cohort_id in context.cohorts.items():
        for name, subject_id in context.subjects.items():
            elective = classroom.startswith("SSS") and name in ELECTIVES
            made = create_cohort_subject(cohort_id=cohort_id, subject_id=subject_id, elective=elective)
            if elective:
                students = context.students[classroom]
                takers = context.population.random.sample(students, len(students) // 2)
                take_subject(cohort_subject_id=made.id, student_ids=takers)
            context.cohort_subjects[classroom, name] = made.id
