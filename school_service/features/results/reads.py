"""Read models of results and broadsheets, live: made of the scores as they stand (`rules`).

The document of a student that publishing freezes is a row of `term_results`, as JSON: `row_to_json` of
`term_results.query(batch_id, term).subquery()`, whose columns are the members of TermResultSchema. What is published
before a term is read from there by `rules`: `subjects[].subject.base` and `subjects[].percent`.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    JSON,
    ColumnElement,
    DateTime,
    FromClause,
    Integer,
    Text,
    and_,
    case,
    cast,
    func,
    literal,
    literal_column,
    null,
    select,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by

from school_service.core.read_models import Query, read_model
from school_service.features.absences.models import Absence
from school_service.features.assessments.models import Submission
from school_service.features.cohort_subjects.models import CohortSubject, SubjectEnrollment
from school_service.features.gradebooks.models import GradebookEntry
from school_service.features.results.models import GRADED, INCOMPLETE, PROVISIONAL
from school_service.features.results.rules import (
    Computed,
    compute,
    one,
    scope_of_batch,
    scope_of_student,
    scope_of_subject,
)
from school_service.features.sessions.models import TERMS
from school_service.features.students.models import Student
from school_service.features.students.reads import BY_NAME
from school_service.features.subjects.models import Subject
from school_service.features.users.models import User

Column = ColumnElement[Any]

_NONE_LISTED: Column = literal_column("'[]'::json")
_NO_MEMBERS: Column = literal_column("'{}'::json")

STUDENT = func.json_build_object(
    "id", Student.id,
    "admission_number", Student.admission_number,
    "first_name", User.first_name,
    "middle_name", Student.middle_name,
    "last_name", User.last_name,
    "gender", func.nullif(User.gender, ""),
)  # fmt: skip
"""A student, as results name them."""

_LIVE = (
    literal(PROVISIONAL, Text).label("state"),
    cast(null(), Integer).label("version"),
    cast(null(), DateTime(timezone=True)).label("published_at"),
)


@read_model
def subject_results(cohort_subject_id: UUID, term: str, batch_id: UUID | None = None) -> Query:
    """Read model of StudentSubjectResultSchema: of whoever takes a cohort subject, by position, then by name.

    `term` is the id of a term or its name in the cohort's session. With a batch, those who are in it, by their position
    there.
    """
    computed = compute(scope_of_subject(cohort_subject_id, term), cohort_subject_id=cohort_subject_id)
    found = computed.subjects
    if batch_id is None:
        position, scores = found.c.cohort_position, _scores(computed)
    else:
        position, scores = found.c.batch_position, _scores(computed, computed.roster.c.batch_id == batch_id)
    return (
        select(STUDENT.label("student"), *_subject_result(computed, scores), *_LIVE[:2])
        .select_from(found)
        .join(CohortSubject, CohortSubject.id == found.c.cohort_subject_id)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(Student, Student.id == found.c.student_id)
        .join(User, User.id == Student.user_id)
        .join(scores, _same(scores, found))
        .order_by(position.nulls_last(), *BY_NAME)
    )


@read_model
def term_results(batch_id: UUID, term: str) -> Query:
    """Read model of TermResultSchema: of everyone in a batch, by name.

    `term` is the id of a term or its name in the batch's session. No row without batch or term.
    """
    return _term_results(compute(scope_of_batch(batch_id, term)))


@read_model
def term_result(student_id: UUID, term: str) -> Query:
    """Read model of TermResultSchema, for a student in the batch that they are in.

    `term` is the id of a term or its name in their latest session. No row where they are in no batch of that session.
    """
    computed = compute(scope_of_student(student_id, term))
    return _term_results(computed, student_id)


@read_model
def broadsheet(batch_id: UUID, term: str) -> Query:
    """Read model of BroadsheetSchema, of a term; `term` as in `term_results`."""
    computed = compute(scope_of_batch(batch_id, term))
    scope, terms, subjects = computed.scope, computed.terms, computed.subjects
    batch = one(scope, "batch_id")
    students = (
        select(
            terms.c.student_id,
            STUDENT.label("student"),
            terms.c.total,
            terms.c.average,
            terms.c.grade,
            terms.c.batch_position.label("position"),
            terms.c.batch_tied.label("tied"),
            terms.c.cohort_position,
            terms.c.graded,
            terms.c.status,
            terms.c.batch_average.label("class_average"),
            terms.c.batch_lowest.label("class_lowest"),
            terms.c.batch_highest.label("class_highest"),
            (terms.c.average >= one(computed.rules, "pass_mark")).label("passed"),
            func.row_number().over(order_by=BY_NAME).label("by_name"),
        )
        .select_from(terms)
        .join(Student, Student.id == terms.c.student_id)
        .join(User, User.id == Student.user_id)
        .where(terms.c.batch_id == batch)
        .cte("students")
    )
    submitted = (
        select(Submission.id)
        .where(Submission.cohort_subject_id == CohortSubject.id, Submission.term_id == one(scope, "term_id"))
        .exists()
    )
    results = (
        select(
            subjects.c.student_id,
            subjects.c.cohort_subject_id.label("id"),
            subjects.c.percent,
            subjects.c.grade,
            subjects.c.batch_position.label("position"),
            _status(subjects).label("status"),
            subjects.c.batch_average.label("class_average"),
            subjects.c.batch_lowest.label("class_lowest"),
            subjects.c.batch_highest.label("class_highest"),
        )
        .where(subjects.c.batch_id == batch)
        .cte("results")
    )
    taught = (
        select(
            CohortSubject.id,
            CohortSubject.subject_id.label("base"),
            Subject.name,
            Subject.code,
            CohortSubject.elective,
            submitted.label("submitted"),
        )
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .where(CohortSubject.cohort_id == one(scope, "cohort_id"))
        .subquery("taught")
    )
    return select(
        *_head(scope), *_LIVE, *broadsheet_of(students=students, results=results, taught=taught)
    ).select_from(scope)


def broadsheet_of(*, students: CTE, results: CTE, taught: FromClause) -> tuple[Column, ...]:
    """Columns `subjects`, `students` and `summary` of a broadsheet, whatever its figures were read from.

    `students` has a row for each student: `student_id`, `student`, `total`, `average`, `grade`, `position`, `tied`,
    `cohort_position`, `graded`, `status`, `passed`, their order `by_name`, and the class figures of their averages;
    `results` one for each subject of a student: `student_id`, `id`, `percent`, `grade`, `position`, `status`, and the
    class figures of the subject; `taught` one for each subject: `id`, `base`, `name`, `code`, `elective`, `submitted`.
    """
    figures = (
        select(
            results.c.id,
            func.count().label("takers"),
            func.count(results.c.percent).label("graded"),
            func.max(results.c.class_average).label("average"),
            func.max(results.c.class_lowest).label("lowest"),
            func.max(results.c.class_highest).label("highest"),
        )
        .group_by(results.c.id)
        .cte("figures")
        .prefix_with("MATERIALIZED")
    )
    subject = func.json_build_object(
        *_members(taught, "id", "base", "name", "code", "elective", "submitted"),
        *_members(figures, "takers", "graded", "average", "lowest", "highest"),
    )
    subjects = (
        select(_listed(subject, taught.c.name, taught.c.id))
        .select_from(taught)
        .join(figures, figures.c.id == taught.c.id)
    )
    result = func.json_build_object(*_members(results, "percent", "grade", "position", "status"))
    of_student = (
        select(results.c.student_id, func.json_object_agg(results.c.id, result, type_=JSON).label("results"))
        .group_by(results.c.student_id)
        .cte("of_student")
        .prefix_with("MATERIALIZED")
    )
    row = func.json_build_object(
        "student", students.c.student,
        "results", func.coalesce(of_student.c.results, _NO_MEMBERS),
        *_members(
            students, "total", "average", "grade", "position", "tied", "cohort_position", "graded", "status"
        ),
    )  # fmt: skip
    rows = (
        select(_listed(row, students.c.position.nulls_last(), students.c.by_name))
        .select_from(students)
        .outerjoin(of_student, of_student.c.student_id == students.c.student_id)
    )
    is_ranked = students.c.position.is_not(None)
    summary = select(
        func.json_build_object(
            "students", func.count(),
            "ranked", func.count(students.c.position),
            "average", func.max(students.c.class_average),
            "highest", func.max(students.c.class_highest),
            "lowest", func.max(students.c.class_lowest),
            "passed", func.count().filter(is_ranked, students.c.passed),
            type_=JSON,
        )
    ).select_from(students)  # fmt: skip
    return (
        subjects.scalar_subquery().label("subjects"),
        rows.scalar_subquery().label("students"),
        summary.scalar_subquery().label("summary"),
    )


def _term_results(computed: Computed, student_id: Any = None) -> Query:
    """Select term results of the scope's batch, by name; or of a student in it."""
    scope, terms, sessions = computed.scope, computed.terms, computed.sessions
    whose = computed.roster.c.batch_id == one(scope, "batch_id")
    if student_id is not None:
        whose = computed.roster.c.student_id == student_id
    subjects = _subjects_by_student(computed, whose)
    cumulative = _session_subjects_by_student(computed)
    found = (
        select(
            STUDENT.label("student"),
            *_head(scope),
            *_LIVE,
            func.coalesce(subjects.c.listed, _NONE_LISTED).label("subjects"),
            terms.c.status,
            terms.c.total,
            (100 * terms.c.graded).label("obtainable"),
            terms.c.average,
            terms.c.grade,
            terms.c.remark,
            terms.c.passed,
            (terms.c.graded - terms.c.passed).label("failed"),
            _figures(terms, "batch").label("batch_figures"),
            _figures(terms, "cohort").label("cohort_figures"),
            func.json_build_object(
                "terms", sessions.c.terms,
                "average", sessions.c.average,
                "grade", sessions.c.grade,
                "remark", sessions.c.remark,
                "batch_figures", _figures(sessions, "batch"),
                "cohort_figures", _figures(sessions, "cohort"),
                "subjects", func.coalesce(cumulative.c.listed, _NONE_LISTED),
                type_=JSON,
            ).label("cumulative"),
        )
        .select_from(terms)
        .join(scope, scope.c.batch_id == terms.c.batch_id)
        .join(sessions, sessions.c.student_id == terms.c.student_id)
        .join(Student, Student.id == terms.c.student_id)
        .join(User, User.id == Student.user_id)
        .outerjoin(subjects, subjects.c.student_id == terms.c.student_id)
        .outerjoin(cumulative, cumulative.c.student_id == terms.c.student_id)
        .order_by(*BY_NAME)
    )  # fmt: skip
    return found if student_id is None else found.where(terms.c.student_id == student_id)


def _subjects_by_student(computed: Computed, whose: Column) -> FromClause:
    """The subject results of those on the roster who fit the condition: an array of each, by the subject's name."""
    found, scores = computed.subjects, _scores(computed, whose)
    columns = _subject_result(computed, scores)
    document = func.json_build_object(*(part for shown in columns for part in (shown.name, shown.element)))
    return (
        select(
            found.c.student_id,
            func.json_agg(aggregate_order_by(document, Subject.name, CohortSubject.id)).label("listed"),
        )
        .select_from(found)
        .join(CohortSubject, CohortSubject.id == found.c.cohort_subject_id)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(scores, _same(scores, found))
        .group_by(found.c.student_id)
        .cte("of_student")
        .prefix_with("MATERIALIZED")
    )


def _subject_result(computed: Computed, scores: FromClause) -> list[Any]:
    """The columns of a subject result, beside whose it is."""
    found = computed.subjects
    subject = func.json_build_object(
        "id", CohortSubject.id,
        "base", CohortSubject.subject_id,
        "name", Subject.name,
        "code", Subject.code,
        "elective", CohortSubject.elective,
    )  # fmt: skip
    return [
        subject.label("subject"),
        scores.c.listed.label("scores"),
        _status(found).label("status"),
        found.c.score.label("score"),
        found.c.points.label("points"),
        found.c.percent.label("percent"),
        found.c.grade.label("grade"),
        found.c.remark.label("remark"),
        _figures(found, "batch").label("batch"),
        _figures(found, "cohort").label("cohort"),
    ]


def _scores(computed: Computed, *conditions: Column) -> FromClause:
    """What those on the roster who fit the conditions have in each assessment of what they take: an array by subject.

    Scores are looked up in their table, and not among those that were summed: no index leads there.
    """
    roster, counting = computed.roster, computed.counting
    score = func.json_build_object(
        "assessment", counting.c.id,
        "category", counting.c.category,
        "abbreviation", counting.c.abbreviation,
        "total_points", counting.c.total_points,
        "score", GradebookEntry.score,
        "absence", Absence.status,
        "publish", counting.c.publish_scores,
    )  # fmt: skip
    entry = and_(
        GradebookEntry.assessment_id == counting.c.id,
        GradebookEntry.student_id == SubjectEnrollment.student_id,
    )
    absence = and_(Absence.assessment_id == counting.c.id, Absence.student_id == SubjectEnrollment.student_id)
    whose = (SubjectEnrollment.student_id, SubjectEnrollment.cohort_subject_id)
    return (
        select(
            *whose, _listed(score, counting.c.category, counting.c.due_date, counting.c.id).label("listed")
        )
        .select_from(roster)
        .join(SubjectEnrollment, SubjectEnrollment.student_id == roster.c.student_id)
        .join(counting, counting.c.cohort_subject_id == SubjectEnrollment.cohort_subject_id)
        .outerjoin(GradebookEntry, entry)
        .outerjoin(Absence, absence)
        .where(*conditions)
        .group_by(*whose)
        .cte("scores")
        .prefix_with("MATERIALIZED")
    )


def _same(scores: FromClause, found: FromClause) -> Column:
    return and_(
        scores.c.student_id == found.c.student_id,
        scores.c.cohort_subject_id == found.c.cohort_subject_id,
    )


def _session_subjects_by_student(computed: Computed) -> FromClause:
    """The session percents of each student: an array, by the subject's name."""
    found = computed.session_subjects
    document = func.json_build_object(
        "base", Subject.id,
        "name", Subject.name,
        "code", Subject.code,
        "terms", func.json_build_object(*_members(found, *TERMS)),
        "percent", found.c.percent,
        "grade", found.c.grade,
    )  # fmt: skip
    return (
        select(
            found.c.student_id,
            func.json_agg(aggregate_order_by(document, Subject.name, Subject.id)).label("listed"),
        )
        .select_from(found)
        .join(Subject, Subject.id == found.c.base)
        .group_by(found.c.student_id)
        .cte("of_session")
        .prefix_with("MATERIALIZED")
    )


def _head(scope: FromClause) -> tuple[Any, ...]:
    """The columns that say of which batch and term something is."""
    return (
        scope.c.batch_id.label("batch"),
        scope.c.batch_name,
        scope.c.cohort_id.label("cohort"),
        scope.c.classroom,
        func.json_build_object("id", scope.c.session_id, "name", scope.c.session_name).label("session"),
        func.json_build_object("id", scope.c.term_id, "term", scope.c.term).label("term"),
    )


def _status(subjects: FromClause) -> Column:
    return case((subjects.c.percent.is_(None), INCOMPLETE), else_=GRADED)


def _figures(found: FromClause, name: str) -> Any:
    """A position with the class figures, in the batch or in the cohort."""
    members = ("position", "tied", "of", "average", "lowest", "highest")
    return func.json_build_object(
        *(part for member in members for part in (member, found.c[f"{name}_{member}"])), type_=JSON
    )


def _members(found: FromClause, *names: str) -> list[Any]:
    return [part for name in names for part in (name, found.c[name])]


def _listed(document: Any, *order: Any) -> Any:
    return func.coalesce(func.json_agg(aggregate_order_by(document, *order)), _NONE_LISTED)
