"""The rows of each OneRoster file, of one academic session.

The columns bear the standard's names. If the school has no record with an id for a row of the standard, the id is made
of several others: the select gives these with `/` between them, and the service makes a UUID of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import (
    CompoundSelect,
    Date,
    Integer,
    Numeric,
    Select,
    Subquery,
    Text,
    Uuid,
    and_,
    case,
    cast,
    column,
    exists,
    func,
    literal,
    null,
    or_,
    select,
    true,
    union,
    union_all,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by

from school_service.core.genders import FEMALE, MALE, WORDS
from school_service.core.permissions import Permission
from school_service.core.records import unnest_rows
from school_service.features.classes.models import CohortSubject, SubjectEnrollment, SubjectTeacher
from school_service.features.exchange.oneroster import standard
from school_service.features.people.models import (
    ACTIVE,
    ADMINISTRATOR,
    IS_THERE,
    Contact,
    Employee,
    FormTeacher,
    Role,
    Student,
    User,
    UserRole,
)
from school_service.features.results.models import Publication, ReportCard
from school_service.features.school.models import (
    CURRENT,
    TERMS,
    AcademicSession,
    Batch,
    Classroom,
    Cohort,
    EmployeeCategory,
    Enrollment,
    Subject,
    Term,
    TermCalendar,
)
from school_service.features.scores.models import (
    ABSENT,
    BY_CATEGORY,
    CATEGORIES,
    NOT_DELETED,
    Absence,
    Assessment,
    GradebookEntry,
    ResultSettings,
)

Rows = Select[*tuple[Any, ...]] | CompoundSelect[Any]

TEACHING = "Teaching"
"""The category of the teaching employees."""
TERM_RESULT = "Term result"
PERCENT = 100


GRADEBOOKS, RESULTS = Permission.GRADEBOOKS_READ, Permission.RESULTS_READ
STUDENTS, COHORTS = Permission.STUDENTS_READ, Permission.COHORTS_READ


@dataclass(frozen=True)
class ExportScope:
    """The scope of an export: a session of a school, and of it the records allowed by these permissions."""

    school_id: UUID
    school_name: str
    session_id: UUID
    permissions: Collection[Permission]

    def may(self, permission: Permission) -> bool:
        """Tell whether the permission is among those of the export."""
        return permission in self.permissions

    def has(self, file: str) -> bool:
        """Tell whether the file is exported."""
        return file in files_of(self.permissions)

    def if_allowed(self, permission: Permission, value: Any) -> Any:
        """Give the value of a column with a permission of its own; blank without it."""
        return value if self.may(permission) else null()


def files_of(permissions: Collection[Permission]) -> list[str]:
    """Name the files of an export with these permissions: the allowed ones with all files they refer to."""
    present: list[str] = []
    for name, file in _FILES.items():
        allowed = all(not need.isdisjoint(permissions) for need in file.needs)
        if allowed and set(file.refers_to) <= set(present):
            present.append(name)
    return present


def rows_of(file: str, exported: ExportScope) -> Rows:
    """Select the rows of a file, with the columns named by the standard."""
    return _FILES[file].rows(exported)


def _row(file: str, **given: Any) -> Select[*tuple[Any, ...]]:
    """Select the columns of a file in the standard's order; the others are blank."""
    columns = standard.COLUMNS[file]
    if not given.keys() <= set(columns):
        raise KeyError(f"{file} has no such column: {given.keys() - set(columns)}")
    return select(
        *(cast(given[name], Text).label(name) if name in given else null().label(name) for name in columns)
    )


def _made_of(*ids: Any) -> Any:
    """Join the ids for making one id of them."""
    return func.concat_ws("/", *ids)


def _list(text: Any) -> Any:
    """Write a list of one text: without commas, the separators of texts in a list of the standard."""
    return func.replace(text, ",", "")


def _line(text: Any) -> Any:
    """Write a text in one line: the standard allows no line breaks within a field."""
    return func.regexp_replace(text, "[\r\n]+", " ", "g")


def _orgs(exported: ExportScope) -> Rows:
    return _row(
        "orgs", sourcedId=_id(exported.school_id), name=literal(exported.school_name), type=literal("school")
    )


def _id(value: UUID) -> Any:
    return literal(value, Uuid)


def _after(day: Any) -> Any:
    """Give the day after: an end in the standard is the first day outside the period."""
    return day + literal(1, Integer)


def _academic_sessions(exported: ExportScope) -> Rows:
    year = cast(func.extract("year", AcademicSession.end_date), Integer)
    session = _row(
        "academicSessions",
        sourcedId=AcademicSession.id,
        title=AcademicSession.name,
        type=literal(standard.SCHOOL_YEAR),
        startDate=AcademicSession.start_date,
        endDate=_after(AcademicSession.end_date),
        schoolYear=year,
    ).where(AcademicSession.id == exported.session_id)
    terms = (
        _row(
            "academicSessions",
            sourcedId=Term.id,
            title=Term.display_name,
            type=literal(standard.TERM),
            startDate=func.coalesce(TermCalendar.start_date, AcademicSession.start_date),
            endDate=_after(_end_of_term()),
            parentSourcedId=AcademicSession.id,
            schoolYear=year,
        )
        .join_from(Term, AcademicSession, AcademicSession.id == Term.session_id)
        .outerjoin(TermCalendar, TermCalendar.term_id == Term.id)
        .where(Term.session_id == exported.session_id)
    )
    return union_all(session, terms)


def _end_of_term() -> Any:
    return func.coalesce(TermCalendar.end_date, AcademicSession.end_date)


def _courses(exported: ExportScope) -> Rows:
    subjects = _row(
        "courses",
        sourcedId=Subject.id,
        title=Subject.name,
        courseCode=Subject.code,
        orgSourcedId=_id(exported.school_id),
    ).select_from(Subject)
    # The courses that homerooms are classes of.
    classrooms = _row(
        "courses",
        sourcedId=Classroom.id,
        title=Classroom.name,
        grades=_list(Classroom.name),
        orgSourcedId=_id(exported.school_id),
    ).select_from(Classroom)
    return union_all(subjects, classrooms)


def _classes(exported: ExportScope) -> Rows:
    order = case({term: number for number, term in enumerate(TERMS)}, value=Term.term)
    terms = (
        select(func.string_agg(cast(Term.id, Text), aggregate_order_by(literal(","), order)))
        .where(Term.session_id == exported.session_id)
        .scalar_subquery()
    )
    common = {
        "grades": _list(Classroom.name),
        "schoolSourcedId": _id(exported.school_id),
        # A session without terms stands for itself.
        "termSourcedIds": func.coalesce(terms, cast(_id(exported.session_id), Text)),
    }
    subjects = (
        _row(
            "classes",
            sourcedId=CohortSubject.id,
            title=Subject.name + " " + Classroom.name,
            courseSourcedId=Subject.id,
            classType=literal(standard.SCHEDULED),
            **common,
        )
        .join_from(CohortSubject, Subject, Subject.id == CohortSubject.subject_id)
        .join(Cohort, Cohort.id == CohortSubject.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .where(Cohort.session_id == exported.session_id)
    )
    batches = (
        _row(
            "classes",
            sourcedId=Batch.id,
            title=Classroom.name + " " + Batch.name,
            courseSourcedId=Classroom.id,
            classType=literal(standard.HOMEROOM),
            **common,
        )
        .join_from(Batch, Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .where(Cohort.session_id == exported.session_id)
    )
    return union_all(subjects, batches)


def _people(exported: ExportScope) -> Subquery:
    """Select the people with a role in the school: account, role, and the role's rank; the first is the primary one."""

    def with_role(user_id: Any, role: str, rank: int) -> Select[*tuple[Any, ...]]:
        return select(
            user_id.label("user_id"), literal(role).label("role"), literal(rank, Integer).label("rank")
        )

    # People named by another file are there, also when they have left; others who have left are not.
    in_session: list[Any] = []
    if exported.has("enrollments") or exported.has("results"):
        in_session += [
            exists().where(
                Enrollment.student_id == Student.id, Enrollment.session_id == exported.session_id, CURRENT
            ),
            _takes_subject(exported),
        ]
    if exported.has("results"):
        in_session.append(
            exists()
            .where(ReportCard.student_id == Student.id, ReportCard.publication_id == Publication.id)
            .where(*_in_force(exported))
        )
    students = (
        with_role(Student.user_id, standard.STUDENT, 1)
        .join_from(Student, User, User.id == Student.user_id)
        .where(or_(and_(Student.status == ACTIVE, User.deleted_at.is_(None)), *in_session))
    )
    is_form_teacher = (
        select(FormTeacher.employee_id)
        .join(Batch, Batch.id == FormTeacher.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .where(FormTeacher.employee_id == Employee.id, Cohort.session_id == exported.session_id)
        .correlate(Employee)
        .exists()
    )
    assigned = _assigned(exported)
    teaches = select(assigned.c.employee_id).where(assigned.c.employee_id == Employee.id).exists()
    teachers = (
        with_role(Employee.user_id, standard.TEACHER, 2)
        .join_from(Employee, EmployeeCategory, EmployeeCategory.id == Employee.category_id)
        .where(
            or_(
                and_(EmployeeCategory.name == TEACHING, Employee.deleted_at.is_(None)),
                is_form_teacher,
                teaches,
            )
        )
    )
    administrators = (
        with_role(User.id, standard.SITE_ADMINISTRATOR, 3)
        .join_from(User, UserRole, UserRole.user_id == User.id)
        .join(Role, Role.id == UserRole.role_id)
        .where(Role.name == ADMINISTRATOR, User.deleted_at.is_(None))
    )
    return union(students, teachers, administrators).subquery("people")


def _takes_subject(exported: ExportScope) -> Any:
    return (
        select(SubjectEnrollment.student_id)
        .join(CohortSubject, CohortSubject.id == SubjectEnrollment.cohort_subject_id)
        .join(Cohort, Cohort.id == CohortSubject.cohort_id)
        .where(SubjectEnrollment.student_id == Student.id, Cohort.session_id == exported.session_id)
        .correlate(Student)
        .exists()
    )


def _assigned(exported: ExportScope) -> Subquery:
    """Select teachers with their subjects in the session, once each, with the first and the last day of the teaching.

    These are null if no bound is set, and within the session. `place` is 1 for the primary teacher of a subject: the
    oldest assignment to all of its arms is theirs, or else the oldest. Deleted employees are left out.
    """
    key = SubjectTeacher.cohort_subject_id, SubjectTeacher.employee_id

    starts_on, ends_on = SubjectTeacher.starts_on, SubjectTeacher.ends_on
    first, last = func.max(AcademicSession.start_date), func.max(AcademicSession.end_date)

    def bound(day: Any, within_session: Any) -> Any:
        """A day of the session, if none of the assignments is without such a bound."""
        return case((func.count(day) == func.count(), within_session))

    to_all = SubjectTeacher.batch_id.is_(None)
    taught = (
        select(
            *key,
            bound(starts_on, func.greatest(func.min(starts_on), first)).label("starts_on"),
            bound(ends_on, func.least(func.max(ends_on), last)).label("ends_on"),
            func.min(SubjectTeacher.created_at).filter(to_all).label("to_all_since"),
            func.min(SubjectTeacher.created_at).label("since"),
        )
        .join(Cohort, Cohort.id == SubjectTeacher.cohort_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .join(Employee, Employee.id == SubjectTeacher.employee_id)
        .join(User, User.id == Employee.user_id)
        .where(
            Cohort.session_id == exported.session_id,
            IS_THERE,
            func.coalesce(starts_on <= AcademicSession.end_date, True),
            func.coalesce(ends_on >= AcademicSession.start_date, True),
        )
        .group_by(*key)
        .subquery("taught")
    )
    oldest = [taught.c.to_all_since.nulls_last(), taught.c.since, taught.c.employee_id]
    place = func.row_number().over(partition_by=taught.c.cohort_subject_id, order_by=oldest)
    return select(taught, place.label("place")).subquery("assigned")


def _in_force(exported: ExportScope) -> list[Any]:
    return [Publication.session_id == exported.session_id, ReportCard.in_force]


def _users(exported: ExportScope) -> Rows:
    people = _people(exported)
    newest = (
        select(Contact.email_address)
        .where(Contact.owner_id == User.id)
        .order_by(Contact.created_at.desc(), Contact.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    enabled = and_(User.deleted_at.is_(None), or_(Student.id.is_(None), Student.status == ACTIVE))
    return (
        _row(
            "users",
            sourcedId=User.id,
            enabledUser=case((enabled, standard.TRUE), else_=standard.FALSE),
            username=User.username,
            givenName=User.first_name,
            familyName=User.last_name,
            middleName=func.nullif(
                func.coalesce(
                    exported.if_allowed(STUDENTS, Student.middle_name),
                    exported.if_allowed(Permission.EMPLOYEES_READ, Employee.middle_name),
                ),
                "",
            ),
            identifier=Student.admission_number,
            email=exported.if_allowed(Permission.CONTACTS_READ, newest),
            grades=exported.if_allowed(COHORTS, _list(Classroom.name)),
            primaryOrgSourcedId=_id(exported.school_id),
        )
        .select_from(User)
        .outerjoin(Student, Student.user_id == User.id)
        .outerjoin(Employee, Employee.user_id == User.id)
        .outerjoin(
            Enrollment,
            and_(Enrollment.student_id == Student.id, Enrollment.session_id == exported.session_id, CURRENT),
        )
        .outerjoin(Cohort, Cohort.id == Enrollment.cohort_id)
        .outerjoin(Classroom, Classroom.id == Cohort.classroom_id)
        .where(User.id.in_(select(people.c.user_id)))
    )


def _roles(exported: ExportScope) -> Rows:
    people = _people(exported)
    first = func.row_number().over(partition_by=people.c.user_id, order_by=people.c.rank) == 1
    return _row(
        "roles",
        sourcedId=_made_of(people.c.user_id, people.c.role),
        userSourcedId=people.c.user_id,
        roleType=case((first, standard.PRIMARY), else_=standard.SECONDARY),
        role=people.c.role,
        orgSourcedId=_id(exported.school_id),
    ).select_from(people)


def _enrollments(exported: ExportScope) -> Rows:
    school = _id(exported.school_id)
    homerooms = (
        _row(
            "enrollments",
            sourcedId=Enrollment.id,
            classSourcedId=Enrollment.batch_id,
            schoolSourcedId=school,
            userSourcedId=Student.user_id,
            role=literal(standard.STUDENT),
            primary=literal(standard.FALSE),
            # Who was promoted is enrolled before the session begins, and is in the class from its first day on.
            beginDate=func.greatest(cast(Enrollment.started_at, Date), AcademicSession.start_date),
        )
        .join_from(Enrollment, Student, Student.id == Enrollment.student_id)
        .join(AcademicSession, AcademicSession.id == Enrollment.session_id)
        .where(Enrollment.session_id == exported.session_id, CURRENT)
    )
    subjects = (
        _row(
            "enrollments",
            sourcedId=_made_of(CohortSubject.id, Student.id),
            classSourcedId=CohortSubject.id,
            schoolSourcedId=school,
            userSourcedId=Student.user_id,
            role=literal(standard.STUDENT),
            primary=literal(standard.FALSE),
        )
        .join_from(SubjectEnrollment, CohortSubject, CohortSubject.id == SubjectEnrollment.cohort_subject_id)
        .join(Cohort, Cohort.id == CohortSubject.cohort_id)
        .join(Student, Student.id == SubjectEnrollment.student_id)
        .where(Cohort.session_id == exported.session_id)
    )
    # A class has one primary teacher: the form teacher who has looked after it for the longest time.
    since = func.row_number().over(
        partition_by=FormTeacher.batch_id, order_by=[FormTeacher.created_at, FormTeacher.employee_id]
    )
    form_teachers = (
        _row(
            "enrollments",
            sourcedId=_made_of(FormTeacher.batch_id, FormTeacher.employee_id),
            classSourcedId=FormTeacher.batch_id,
            schoolSourcedId=school,
            userSourcedId=Employee.user_id,
            role=literal(standard.TEACHER),
            primary=case((since == 1, standard.TRUE), else_=standard.FALSE),
        )
        .join_from(FormTeacher, Employee, Employee.id == FormTeacher.employee_id)
        .join(Batch, Batch.id == FormTeacher.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .where(Cohort.session_id == exported.session_id)
    )
    assigned = _assigned(exported)
    subject_teachers = _row(
        "enrollments",
        sourcedId=_made_of(assigned.c.cohort_subject_id, assigned.c.employee_id),
        classSourcedId=assigned.c.cohort_subject_id,
        schoolSourcedId=school,
        userSourcedId=Employee.user_id,
        role=literal(standard.TEACHER),
        primary=case((assigned.c.place == 1, standard.TRUE), else_=standard.FALSE),
        beginDate=assigned.c.starts_on,
        endDate=_after(assigned.c.ends_on),
    ).join_from(assigned, Employee, Employee.id == assigned.c.employee_id)
    return union_all(homerooms, subjects, form_teachers, subject_teachers)


def _demographics(exported: ExportScope) -> Rows:
    people = _people(exported)
    sexes = {word: {MALE: standard.MALE, FEMALE: standard.FEMALE}[gender] for word, gender in WORDS.items()}
    return (
        _row(
            "demographics",
            sourcedId=User.id,
            birthDate=Student.dob,
            sex=case(sexes, value=func.lower(func.rtrim(func.trim(User.gender), "."))),
        )
        .join_from(Student, User, User.id == Student.user_id)
        .where(User.id.in_(select(people.c.user_id)))
    )


def _category_id(exported: ExportScope, category: str) -> UUID:
    return uuid5(exported.school_id, category)


def _categories(exported: ExportScope) -> Rows:
    titles = [*(CATEGORIES if exported.may(GRADEBOOKS) else ()), TERM_RESULT]
    if not exported.may(RESULTS):
        titles.remove(TERM_RESULT)
    listed = unnest_rows(id=(Uuid, [_category_id(exported, title) for title in titles]), title=(Text, titles))
    shares = _whole_weights()
    return (
        _row("categories", sourcedId=listed.c.id, title=listed.c.title, weight=shares.c.weight)
        .select_from(listed)
        .outerjoin(shares, shares.c.category == listed.c.title)
    )


def _whole_weights() -> Any:
    """Round the weights of categories to whole numbers with the same sum, by the largest remainder.

    Percents are whole numbers in the standard. A category of it has one weight for the whole school: so weights of
    single levels are left out.
    """
    element = (
        func.jsonb_array_elements(ResultSettings.weights)
        .table_valued(column("value", JSONB))
        .render_derived()
    )
    given = (
        select(
            element.c.value["category"].astext.label("category"),
            cast(element.c.value["weight"].astext, Numeric).label("weight"),
        )
        .select_from(ResultSettings)
        .join(element, true())
        .where(ResultSettings.weighting == BY_CATEGORY, element.c.value["level"].astext.is_(None))
        .subquery("given")
    )
    whole = func.floor(given.c.weight)
    rank = func.row_number().over(order_by=[(given.c.weight - whole).desc(), given.c.category])
    lacking = func.round(func.sum(given.c.weight).over()) - func.sum(whole).over()
    return select(given.c.category, (whole + case((rank <= lacking, 1), else_=0)).label("weight")).subquery(
        "shares"
    )


def _line_items(exported: ExportScope) -> Rows:
    school = _id(exported.school_id)
    rows: list[Select[*tuple[Any, ...]]] = []
    if exported.may(GRADEBOOKS):
        category = case(
            {name: cast(_id(_category_id(exported, name)), Text) for name in CATEGORIES},
            value=Assessment.category,
        )
        rows.append(
            _row(
                "lineItems",
                sourcedId=Assessment.id,
                title=Assessment.name,
                description=func.nullif(_line(Assessment.description), ""),
                # An assessment created after its due date was assigned by that date.
                assignDate=func.least(cast(Assessment.created_at, Date), Assessment.due_date),
                dueDate=Assessment.due_date,
                classSourcedId=Assessment.cohort_subject_id,
                categorySourcedId=category,
                resultValueMin=literal(0, Integer),
                resultValueMax=func.trim_scale(Assessment.total_points),
                academicSessionSourcedId=Assessment.term_id,
                schoolSourcedId=school,
            ).where(Assessment.session_id == exported.session_id, NOT_DELETED)
        )
    if exported.may(RESULTS):
        published = _published_results(exported)
        items = (
            select(
                published.c.class_id,
                published.c.term_id,
                func.min(published.c.published_at).label("published_at"),
            )
            .group_by(published.c.class_id, published.c.term_id)
            .subquery("items")
        )
        rows.append(
            _row(
                "lineItems",
                sourcedId=_made_of(items.c.class_id, items.c.term_id),
                title=literal(TERM_RESULT),
                assignDate=func.least(cast(items.c.published_at, Date), _end_of_term()),
                dueDate=_end_of_term(),
                classSourcedId=items.c.class_id,
                categorySourcedId=_id(_category_id(exported, TERM_RESULT)),
                resultValueMin=literal(0, Integer),
                resultValueMax=literal(PERCENT, Integer),
                academicSessionSourcedId=items.c.term_id,
                schoolSourcedId=school,
            )
            .join_from(items, Term, Term.id == items.c.term_id)
            .join(AcademicSession, AcademicSession.id == Term.session_id)
            .outerjoin(TermCalendar, TermCalendar.term_id == Term.id)
        )
    return union_all(*rows)


def _published_results(exported: ExportScope) -> Subquery:
    """Select the graded subjects of the published cards, as far as the cohort subjects still exist."""
    cards = (
        select(ReportCard.student_id, ReportCard.card, Publication.term_id, Publication.published_at)
        .join(Publication, Publication.id == ReportCard.publication_id)
        .where(*_in_force(exported))
        .subquery("cards")
    )
    subject = (
        func.jsonb_array_elements(cards.c.card["subjects"])
        .table_valued(column("value", JSONB), name="subject")
        .render_derived()
    )
    return (
        select(
            CohortSubject.id.label("class_id"),
            cards.c.term_id,
            cards.c.published_at,
            Student.id.label("student_id"),
            Student.user_id,
            subject.c.value["percent"].astext.label("percent"),
            subject.c.value["grade"].astext.label("grade"),
        )
        .select_from(cards)
        .join(Student, Student.id == cards.c.student_id)
        .join(subject, true())
        .join(CohortSubject, CohortSubject.id == cast(subject.c.value["subject"]["id"].astext, Uuid))
        .where(subject.c.value["percent"].astext.is_not(None))
        .subquery("published")
    )


def _results(exported: ExportScope) -> Rows:
    rows: list[Select[*tuple[Any, ...]]] = []
    if exported.may(GRADEBOOKS):
        common = {
            "lineItemSourcedId": Assessment.id,
            "studentSourcedId": Student.user_id,
            "classSourcedId": Assessment.cohort_subject_id,
        }
        entries = _row(
            "results",
            sourcedId=GradebookEntry.id,
            scoreStatus=literal(standard.FULLY_GRADED),
            score=func.trim_scale(GradebookEntry.score),
            scoreDate=cast(GradebookEntry.updated_at, Date),
            **common,
        )
        absences = _row(
            "results",
            sourcedId=_made_of(Assessment.id, Student.id),
            scoreStatus=case((Absence.status == ABSENT, standard.NOT_SUBMITTED), else_=standard.EXEMPT),
            scoreDate=cast(Absence.created_at, Date),
            missing=case((Absence.status == ABSENT, standard.TRUE), else_=null()),
            **common,
        )
        for selected, judged in ((entries, GradebookEntry), (absences, Absence)):
            rows.append(
                selected.join_from(Assessment, judged, judged.assessment_id == Assessment.id)
                .join(Student, Student.id == judged.student_id)
                .where(
                    Assessment.session_id == exported.session_id,
                    NOT_DELETED,
                    or_(_takes(judged.student_id), _has_on_card(judged.student_id)),
                )
            )
    if exported.may(RESULTS):
        published = _published_results(exported)
        rows.append(
            _row(
                "results",
                sourcedId=_made_of(published.c.class_id, published.c.term_id, published.c.student_id),
                lineItemSourcedId=_made_of(published.c.class_id, published.c.term_id),
                studentSourcedId=published.c.user_id,
                scoreStatus=literal(standard.FULLY_GRADED),
                score=published.c.percent,
                scoreDate=cast(published.c.published_at, Date),
                textScore=published.c.grade,
                classSourcedId=published.c.class_id,
            ).select_from(published)
        )
    return union_all(*rows)


def _takes(student_id: Any) -> Any:
    """Tell whether a student takes the subject of an assessment now."""
    return (
        select(SubjectEnrollment.student_id)
        .where(
            SubjectEnrollment.cohort_subject_id == Assessment.cohort_subject_id,
            SubjectEnrollment.student_id == student_id,
        )
        .correlate_except(SubjectEnrollment)
        .exists()
    )


def _has_on_card(student_id: Any) -> Any:
    """Tell whether the card in force of a student has the subject of an assessment in its term: they may have left."""
    subject = func.jsonb_build_object("subject", func.jsonb_build_object("id", Assessment.cohort_subject_id))
    return (
        select(ReportCard.id)
        .where(
            ReportCard.student_id == student_id,
            ReportCard.term_id == Assessment.term_id,
            ReportCard.in_force,
            ReportCard.card["subjects"].contains(func.jsonb_build_array(subject, type_=JSONB)),
        )
        .correlate_except(ReportCard)
        .exists()
    )


@dataclass(frozen=True)
class _File:
    """A file: its rows, the files it refers to, and its needs: one permission of each set."""

    rows: Callable[[ExportScope], Rows]
    refers_to: Collection[str] = ()
    needs: Collection[frozenset[Permission]] = ()


_SCORES = frozenset({GRADEBOOKS, RESULTS})
_FILES = {
    "orgs": _File(_orgs),
    "academicSessions": _File(_academic_sessions, needs=[frozenset({Permission.TERMS_READ})]),
    "courses": _File(_courses, ["orgs"], [frozenset({COHORTS})]),
    "classes": _File(_classes, ["courses", "orgs", "academicSessions"], [frozenset({COHORTS})]),
    "users": _File(_users, ["orgs"]),
    "roles": _File(_roles, ["users", "orgs"]),
    "enrollments": _File(
        _enrollments, ["classes", "orgs", "users"], [frozenset({COHORTS}), frozenset({STUDENTS})]
    ),
    "demographics": _File(_demographics, ["users"], [frozenset({STUDENTS})]),
    "categories": _File(_categories, needs=[_SCORES]),
    "lineItems": _File(_line_items, ["classes", "categories", "academicSessions", "orgs"], needs=[_SCORES]),
    "results": _File(_results, ["lineItems", "users", "classes"], needs=[_SCORES]),
}
"""Each file, after the files it refers to. A file without needs is part of every export."""

PERMISSIONS = frozenset(
    {Permission.CONTACTS_READ, Permission.EMPLOYEES_READ}.union(
        *(need for file in _FILES.values() for need in file.needs)
    )
)
"""All permissions for parts of an export, of files and of single columns."""
