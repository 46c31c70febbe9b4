"""Read models of sums and absences, from registers."""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    Date,
    FromClause,
    Integer,
    Numeric,
    Text,
    and_,
    case,
    cast,
    column,
    false,
    func,
    literal_column,
    or_,
    select,
    true,
    union,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by, distinct_on

from school_service.core.reach import Reach
from school_service.core.read_models import Query, array_of, json_object, read_model
from school_service.features.attendance import calendar
from school_service.features.attendance.enrolled import began, is_in_register
from school_service.features.attendance.models import (
    ABSENT,
    EXCUSED,
    IS_DAY,
    LESSON,
    MARKS,
    NOT_TAKEN,
    NOTHING,
    SUBMITTED,
    Mark,
    Register,
)
from school_service.features.attendance.sums import COUNTS, SUMS, counted, percent, roll_up, roll_up_of, times
from school_service.features.classes.models import CohortSubject, SubjectEnrollment
from school_service.features.people.guardians import kin
from school_service.features.people.guardians.reads import notified_guardians
from school_service.features.people.models import (
    IS_THERE,
    WITHDRAWN,
    Employee,
    FormTeacher,
    Student,
    User,
)
from school_service.features.people.students.reads import BY_NAME, NAMED_STUDENT
from school_service.features.reach import scopes
from school_service.features.school.models import (
    CURRENT,
    AcademicSession,
    Batch,
    Classroom,
    Cohort,
    Enrollment,
    Term,
)
from school_service.features.school.sessions.service import is_term, is_term_id

LEAST_TIMES = 5
"""The least number of times opened for absence to be chronic."""


@read_model
def missing_registers(first: date, last: date, reach: Reach | None = None) -> Query:
    """Read model of MissingRegisterSchema: between two days, until today, by date, class and part.

    Each open part of a day and batch with somebody in it and no submitted register.
    """
    open_times, teachers = _open_times(first, func.least(last, scopes.today())), _form_teachers()
    # The days are said once more, so that registers are sought by them.
    of_time = and_(_of_time(open_times), Register.date.between(first, last))
    query = (
        select(
            open_times.c.date,
            open_times.c.part,
            Batch.id.label("batch"),
            Batch.name.label("batch_name"),
            Classroom.name.label("classroom"),
            func.coalesce(teachers.c.names, literal_column("ARRAY[]::text[]")).label("form_teachers"),
            func.coalesce(Register.state, NOT_TAKEN).label("state"),
        )
        .select_from(open_times)
        .join(Cohort, Cohort.session_id == open_times.c.session_id)
        .join(Batch, Batch.cohort_id == Cohort.id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .outerjoin(Register, of_time)
        .outerjoin(teachers, teachers.c.batch_id == Batch.id)
        .where(func.coalesce(Register.state, NOT_TAKEN) != SUBMITTED, _has_students(open_times.c.date))
        .order_by(open_times.c.date, *_BY_CLASS, open_times.c.number)
    )
    return query if reach is None else query.where(scopes.is_form_batch(reach, Batch.id))


@read_model
def attendance_of_day(day: date, cohort: UUID | None = None, reach: Reach | None = None) -> Query:
    """Read model of AttendanceOfDaySchema: each batch with somebody in it, and each open part of the day.

    By class and part. A register counts once it is submitted; before, everyone is unmarked.
    """
    open_times = _open_times(cast(day, Date), cast(day, Date))
    of_day = cast(day, Date)
    enrolled = (
        select(Enrollment.batch_id, func.count().filter(began() <= of_day).label("enrolled"))
        .join(Student, Student.id == Enrollment.student_id)
        .where(Enrollment.session_id.in_(select(open_times.c.session_id)), is_in_register(of_day))
        .group_by(Enrollment.batch_id)
        .subquery("enrolled")
    )
    counts = _counts_of_registers(Register.date == day).subquery("counts")
    query = (
        select(
            Batch.id.label("batch"),
            Batch.name.label("batch_name"),
            Classroom.name.label("classroom"),
            open_times.c.part,
            func.coalesce(Register.state, NOT_TAKEN).label("state"),
            enrolled.c.enrolled,
            *(func.coalesce(counts.c[name], 0).label(name) for name in SUMS if name != "opened"),
            (enrolled.c.enrolled - func.coalesce(counts.c.of_class, 0)).label("unmarked"),
        )
        .select_from(open_times)
        .join(Cohort, Cohort.session_id == open_times.c.session_id)
        .join(Batch, Batch.cohort_id == Cohort.id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(enrolled, enrolled.c.batch_id == Batch.id)
        .outerjoin(Register, _of_time(open_times))
        .outerjoin(counts, counts.c.register_id == Register.id)
        .order_by(*_BY_CLASS, open_times.c.number)
    )
    if cohort is not None:
        query = query.where(Cohort.id == cohort)
    return query if reach is None else query.where(scopes.is_form_batch(reach, Batch.id))


@read_model
def absences_of_day(day: date | None = None, reach: Reach | None = None) -> Query:
    """Read model of AbsenceOfDaySchema: by name, then by part; of the school's today without a day.

    Of a student's registers of one date and part that one counts by which they were there, as in sums. Guardians are
    those that the caller may read of.
    """
    today = scopes.today()
    counting = (
        select(
            Mark.student_id,
            Register.batch_id,
            Register.part,
            func.coalesce(Mark.correction_code, Mark.code).label("code"),
            COUNTS.label("kind"),
        )
        .ext(distinct_on(Mark.student_id, Register.part))
        .join(Register, Register.id == Mark.register_id)
        .where(
            Register.date == (today if day is None else day),
            Register.date <= today,
            Register.state == SUBMITTED,
            IS_DAY,
        )
        .order_by(Mark.student_id, Register.part, COUNTS.collate("C").desc(), Register.id)
        .subquery("counting")
    )
    query = (
        select(
            NAMED_STUDENT.label("student"),
            Batch.id.label("batch"),
            Batch.name.label("batch_name"),
            counting.c.part,
            counting.c.code,
            counting.c.kind,
            notified_guardians(reach).label("guardians"),
        )
        .select_from(counting)
        .join(Batch, Batch.id == counting.c.batch_id)
        .join(Student, Student.id == counting.c.student_id)
        .join(User, User.id == Student.user_id)
        .where(or_(counting.c.kind == ABSENT, counting.c.kind == EXCUSED))
        .order_by(*BY_NAME, counting.c.part.desc())
    )
    return query if reach is None else query.where(scopes.is_form_batch(reach, counting.c.batch_id))


@read_model
def attendance_of_class(batch: UUID, term: str, reach: Reach | None = None) -> Query:
    """Read model of AttendanceSummarySchema: a batch in a term of its session, by name.

    Of the students in it at the end of the term, and of all with a mark in a register of it; a student's sums take in
    all batches. No row if the term is of another session.
    """
    meant = (
        select(Term.id)
        .join(Cohort, Cohort.session_id == Term.session_id)
        .join(Batch, Batch.cohort_id == Cohort.id)
        .where(Batch.id == batch, is_term(term))
        .cte("meant")
    )
    term_id = select(meant.c.id).scalar_subquery()
    # Who has a mark was in the batch at some time.
    ever = (
        select(
            Enrollment.student_id,
            func.bool_or(is_in_register(calendar.last_day(term_id))).label("is_there"),
        )
        .join(Student, Student.id == Enrollment.student_id)
        .where(Enrollment.batch_id == batch)
        .group_by(Enrollment.student_id)
        .subquery("ever")
    )
    marked = (
        select(Mark.student_id)
        .join(Register, Register.id == Mark.register_id)
        .where(Mark.student_id == ever.c.student_id, Register.batch_id == batch, Register.term_id == term_id)
        .where(Register.state == SUBMITTED, IS_DAY)
        .correlate(ever)
    )
    people = select(ever.c.student_id).where(or_(ever.c.is_there, marked.exists())).cte("people")
    sums = roll_up_of(select(people.c.student_id), Register.term_id == term_id)
    query = _summary(people, sums).where(select(meant.c.id).exists())
    return query if reach is None else query.where(scopes.is_form_batch(reach, batch))


@read_model
def attendance_of_subject(cohort_subject: UUID, term: str, reach: Reach | None = None) -> Query:
    """Read model of AttendanceSummarySchema: the lessons of a cohort subject in a term of its session, by name.

    Of the students with the subject now in a batch of the cohort, and of all with a mark in a lesson. No row if the
    term is of another session.
    """
    lessons = and_(Register.cohort_subject_id == cohort_subject, Register.part == LESSON)
    meant = (
        select(Term.id)
        .join(Cohort, Cohort.session_id == Term.session_id)
        .join(_SUBJECT, _SUBJECT.c.cohort_id == Cohort.id)
        .where(_SUBJECT.c.id == cohort_subject, is_term(term))
        .cte("meant")
    )
    term_id = select(meant.c.id).scalar_subquery()
    takers = (
        select(SubjectEnrollment.student_id)
        .join(Student, Student.id == SubjectEnrollment.student_id)
        .join(_SUBJECT, _SUBJECT.c.id == SubjectEnrollment.cohort_subject_id)
        .join(
            Enrollment,
            and_(Enrollment.student_id == Student.id, Enrollment.cohort_id == _SUBJECT.c.cohort_id, CURRENT),
        )
        .where(SubjectEnrollment.cohort_subject_id == cohort_subject, Student.status != WITHDRAWN)
    )
    marked = (
        select(Mark.student_id)
        .join(Register, Register.id == Mark.register_id)
        .where(lessons, Register.term_id == term_id, Register.state == SUBMITTED)
    )
    people = union(takers, marked).cte("people")
    sums = _together(roll_up(lessons, Register.term_id == term_id, period=True))
    query = _summary(people, sums).where(select(meant.c.id).exists())
    return query if reach is None else query.where(scopes.scores_in_reach(reach, cohort_subject, Student.id))


@read_model
def chronic_absence(
    term: str, cohort: UUID | None = None, percentage: int | None = None, reach: Reach | None = None
) -> Query:
    """Read model of ChronicAbsenceSchema: students away too often in a term, the most absent first, then by name.

    `term` is of the cohort's session, without a cohort of the current one, or an id. Of students in a class now, called
    LEAST_TIMES times at least; without a percentage the settings' bound applies.
    """
    session_id: Any = select(AcademicSession.id).where(AcademicSession.current).scalar_subquery()
    if cohort is not None:
        session_id = select(Cohort.session_id).where(Cohort.id == cohort).scalar_subquery()
    by_name = and_(Term.term == term, Term.session_id == session_id)
    meant = (
        select(Term.id, Term.session_id)
        .where(or_(cast(Term.id, Text) == func.lower(term), by_name))
        .cte("meant")
    )
    term_id = select(meant.c.id).scalar_subquery()
    of_term = [Register.term_id == term_id]
    if cohort is not None:
        members = select(Enrollment.student_id).where(Enrollment.cohort_id == cohort, CURRENT)
        of_term.append(Mark.student_id.in_(members))
    sums = _together(roll_up(*of_term))
    limit: Any = calendar.setting("chronic_percent") if percentage is None else percentage
    enrolled = and_(
        Enrollment.student_id == sums.c.student_id, Enrollment.session_id == meant.c.session_id, CURRENT
    )
    # One join: the page counts its rows by other columns, which must not make it join anew.
    joined = (
        sums.join(meant, true())
        .join(Enrollment, enrolled)
        .join(Student, Student.id == Enrollment.student_id)
        .join(User, User.id == Student.user_id)
    )
    query = (
        select(*_shown_sums(sums), NAMED_STUDENT.label("student"), Enrollment.batch_id.label("batch"))
        .select_from(joined)
        .where(
            Student.status != WITHDRAWN,
            sums.c.opened >= LEAST_TIMES,
            sums.c.absent * 100 >= sums.c.opened * limit,
        )
        .order_by((cast(sums.c.absent, Numeric) / sums.c.opened).desc(), *BY_NAME)
    )
    if cohort is not None:
        query = query.where(Enrollment.cohort_id == cohort)
    return query if reach is None else query.where(scopes.is_form_batch(reach, Enrollment.batch_id))


@read_model
def attendance_of_student(
    student_id: UUID, term: str, user_id: UUID | None = None, reach: Reach | None = None
) -> Query:
    """Read model of StudentAttendanceSchema: a student in a term, of the submitted registers of days.

    `term` is the id of a term or its name in the student's current session, else their latest, with such a term.
    `user_id` is the caller's: the student's own account and a guardian are shown the share open to families by the
    settings, and no row if they open nothing.
    """
    sessions = select(Enrollment.session_id).where(Enrollment.student_id == student_id)
    latest = (
        select(cast(Term.id, Text))
        .join(AcademicSession, AcademicSession.id == Term.session_id)
        .where(Term.term == term, Term.session_id.in_(sessions))
        .order_by(AcademicSession.current.desc(), AcademicSession.start_date.desc(), AcademicSession.id)
        .limit(1)
        .correlate(None)
        .scalar_subquery()
    )
    meant = select(Term.id).where(is_term_id(func.coalesce(latest, term))).cte("meant")
    of_term = Register.term_id == select(meant.c.id).scalar_subquery()
    each = times(Mark.student_id == student_id, of_term).cte("times")
    monday = (each.c.date - cast(func.date_part("isodow", each.c.date), Integer) + 1).label("monday")
    by_week = (
        select(monday, *(count for count in counted(each.c.kind) if count.name in ("opened", "present")))
        .group_by(monday)
        .subquery("by_week")
    )
    week = json_object(monday=by_week.c.monday, opened=by_week.c.opened, present=by_week.c.present)
    weeks = select(array_of(week, by_week.c.monday))
    mark = json_object(date=each.c.date, part=each.c.part, kind=each.c.kind)
    # DAY, MORNING, AFTERNOON: the alphabet backwards, but for the whole day, which has no halves beside it.
    marks = array_of(mark, each.c.date, each.c.part.desc())
    sums = select(*counted(each.c.kind), marks.label("marks")).subquery("sums")
    families_read = calendar.setting("families_read")
    is_family: Any = false() if user_id is None else kin.is_own(student_id, user_id, "attendance", reach)
    query = (
        select(
            *_shown_sums(sums),
            weeks.scalar_subquery().label("weeks"),
            case((and_(is_family, families_read != MARKS), _NONE), else_=sums.c.marks).label("marks"),
        )
        .select_from(Student)
        .join(meant, true())
        .join(sums, true())
        .where(Student.id == student_id, or_(~is_family, families_read != NOTHING))
    )
    return query if reach is None else query.where(scopes.students_in_reach(reach, Student.id))


_NONE: Any = literal_column("'[]'::json")
_BY_CLASS = (Classroom.name, Classroom.id, Batch.name, Batch.id)
_SUBJECT = CohortSubject.__table__.alias("subject")


def _open_times(first: Any, last: Any) -> CTE:
    """Make the table of the open parts of days of each session: `date`, `session_id`, `part`, and its `number`."""
    settings, days = calendar.settings().cte("settings"), calendar.days_of_terms(first, last)
    each = select(days.c.date, days.c.session_id).distinct().subquery("each")
    parts = (
        func.unnest(calendar.open_parts(each.c.date, settings.c.parts, settings.c.weekdays))
        .table_valued(column("part", Text), with_ordinality="number", joins_implicitly=True)
        .render_derived("parts")
    )
    return (
        select(each.c.date, each.c.session_id, parts.c.part, parts.c.number)
        .select_from(each)
        .join(settings, true())
        .join(parts, true())
        .cte("open_times")
        # Planned by itself: of all these tables together there are too many ways to join them.
        .prefix_with("MATERIALIZED")
    )


def _of_time(open_times: Any) -> Any:
    """Whether a register is the batch's of a day and part."""
    return and_(
        Register.batch_id == Batch.id,
        Register.date == open_times.c.date,
        Register.part == open_times.c.part,
        IS_DAY,
    )


def _has_students(day: Any) -> Any:
    """Whether somebody is in a batch's registers of a day."""
    return (
        select(Enrollment.id)
        .join(Student, Student.id == Enrollment.student_id)
        .where(Enrollment.batch_id == Batch.id, is_in_register(day))
        .correlate_except(Enrollment, Student)
        .exists()
    )


def _form_teachers() -> FromClause:
    """Make the table of form teachers by batch: its id, and their names, an array, the latest first."""
    name = User.first_name.concat(" ").concat(User.last_name)
    latest = (FormTeacher.created_at.desc(), FormTeacher.employee_id.desc())
    return (
        select(FormTeacher.batch_id, func.array_agg(aggregate_order_by(name, *latest)).label("names"))
        .join(Employee, Employee.id == FormTeacher.employee_id)
        .join(User, User.id == Employee.user_id)
        .where(IS_THERE)
        .group_by(FormTeacher.batch_id)
        .subquery("teachers")
    )


def _counts_of_registers(*conditions: Any) -> Query:
    """Select the counts of submitted registers of days: `register_id`, the kinds, and `of_class`.

    The last counts the students in the class that day with a mark or a correction.
    """
    in_batch = and_(
        Enrollment.student_id == Mark.student_id,
        Enrollment.batch_id == Register.batch_id,
        is_in_register(Register.date),
        began() <= Register.date,
    )
    query: Query = (
        select(Mark.register_id, *counted(COUNTS), func.count(Enrollment.id).label("of_class"))
        .select_from(Mark)
        .join(Register, Register.id == Mark.register_id)
        .join(Student, Student.id == Mark.student_id)
        .outerjoin(Enrollment, in_batch)
        .where(Register.state == SUBMITTED, IS_DAY, *conditions)
        .group_by(Mark.register_id)
    )
    return query


def _shown_sums(sums: Any) -> list[Any]:
    """Show sums, 0 for a student without any, and the percentage of times present."""
    shown = [func.coalesce(sums.c[name], 0).label(name) for name in SUMS]
    return [*shown, percent(sums.c.present, sums.c.opened).label("percent")]


def _together(sums: Query) -> CTE:
    """Compute the sums of all students once: PostgreSQL expects few, and may else do so for each of them."""
    return sums.cte("sums").prefix_with("MATERIALIZED")


def _summary(people: CTE, sums: Any) -> Query:
    return (
        select(*_shown_sums(sums), NAMED_STUDENT.label("student"))
        .select_from(people)
        .join(Student, Student.id == people.c.student_id)
        .join(User, User.id == Student.user_id)
        .outerjoin(sums, sums.c.student_id == Student.id)
        .order_by(*BY_NAME)
    )
