"""Read models of results and broadsheets, live: made of the scores as they stand (`rules`).

The document of a student that publishing freezes has the columns of `term_results` as members, those of
TermResultSchema. What is published before a term is read from there by `rules`: `subjects[].subject.base` and
`subjects[].percent`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
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
    not_,
    null,
    select,
    union_all,
)

from school_service.core.json_texts import (
    NO_TEXTS,
    array_of,
    as_json,
    jsonb_members_of,
    jsonb_object_of,
    object_of,
)
from school_service.core.reach import Reach
from school_service.core.read_models import BoundQuery, Query, read_model, school_value
from school_service.features.classes.models import CohortSubject
from school_service.features.classes.subject_teachers.reads import teachers_in
from school_service.features.people.models import Student, User
from school_service.features.people.students.reads import BY_NAME
from school_service.features.reach import scopes
from school_service.features.results.figures import frozen, published
from school_service.features.results.figures.broadsheets import broadsheet_of
from school_service.features.results.figures.published import latest_of_session, latest_publication
from school_service.features.results.figures.rules import (
    OPTIMIZATION_FENCE,
    Computed,
    compute,
    one,
    scope_of_batch,
    scope_of_student,
    scope_of_subject,
)
from school_service.features.results.models import (
    DEFAULTS,
    GRADED,
    INCOMPLETE,
    PROVISIONAL,
    ResultSettings,
)
from school_service.features.school.cohorts.reads import class_name
from school_service.features.school.models import TERMS, Batch, Subject
from school_service.features.school.settings.service import time_zone
from school_service.features.scores.models import Absence, GradebookEntry, Submission

Column = ColumnElement[Any]
Write = Callable[..., Any]
"""What writes an object of named columns: `object_of`, or for what is read as JSONB `jsonb_object_of`."""


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
def subject_results(
    cohort_subject_id: UUID, term: str, batch_id: UUID | None = None, reach: Reach | None = None
) -> Query:
    """Read model of StudentSubjectResultSchema: as they were published, else live; `live_subject_results` otherwise."""
    computed, live = _subject_results(cohort_subject_id, term, batch_id, reach)
    return frozen.subject_results(computed.scope, computed.roster, cohort_subject_id, batch_id, live, reach)


@read_model
def live_subject_results(
    cohort_subject_id: UUID, term: str, batch_id: UUID | None = None, reach: Reach | None = None
) -> Query:
    """Read model of StudentSubjectResultSchema: of whoever takes a cohort subject, by position, then by name.

    `term` is the id of a term or its name in the cohort's session. With a batch, those who are in it, by their position
    there.
    """
    return _subject_results(cohort_subject_id, term, batch_id, reach)[1]


def _subject_results(
    cohort_subject_id: Any, term: Any, batch_id: Any, reach: Reach | None
) -> tuple[Computed, Query]:
    computed = compute(scope_of_subject(cohort_subject_id, term), cohort_subject_id=cohort_subject_id)
    found = computed.subjects
    if batch_id is None:
        position, scores = found.c.cohort_position, _scores(computed)
    else:
        of_batch = _whole_class(computed.roster.c.batch_id == batch_id)
        position, scores = found.c.batch_position, _scores(computed, of_batch)
    columns = _subject_result(found, _subject(computed, found.c.batch_id), scores.c.listed)
    listed_results = (
        select(
            STUDENT.label("student"),
            *(as_json(column).label(name) for name, column in columns.items()),
            *_LIVE[:2],
        )
        .select_from(found)
        .join(CohortSubject, CohortSubject.id == found.c.cohort_subject_id)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(Student, Student.id == found.c.student_id)
        .join(User, User.id == Student.user_id)
        .join(scores, _same(scores, found))
        .order_by(position.nulls_last(), *BY_NAME)
    )
    if reach is not None:
        # Who belongs to the batch in that term is in reach, also who has left since.
        belongs = select(computed.roster.c.student_id).where(
            scopes.results_in_reach(reach, cohort_subject_id, computed.roster.c.batch_id)
        )
        listed_results = listed_results.where(found.c.student_id.in_(belongs))
        if batch_id is not None:
            listed_results = listed_results.where(scopes.arms_in_reach(reach, batch_id))
    return computed, listed_results


@read_model
def term_results(batch_id: UUID, term: str) -> Query:
    """Read model of TermResultSchema: of everyone in a batch, by name.

    `term` is the id of a term or its name in the batch's session. No row without batch or term.
    """
    return _term_results(compute(scope_of_batch(batch_id, term)))


def term_results_in(computed: Computed, batches: FromClause) -> Query:
    """Select what `term_results` does, of what is computed already: from `computed.terms` and Student, by name.

    What is JSON there is text here (`core.json_texts`). Of these batches of the scope's cohort: `batch_id` and
    `batch_name`.
    """
    return _term_results(computed, batches=batches)


@read_model
def term_result(
    student_id: UUID,
    term: str,
    user_id: UUID | None = None,
    session: str | None = None,
    reach: Reach | None = None,
) -> Query:
    """Read model of TermResultSchema, for a student: as it was published, else live; `term` as in `live_term_result`.

    `user_id` is whose token asks: the student's own account is shown what is published of them, and no more.
    """
    staff_found = frozen.latest_card(student_id, term, session, withdrawn=True)
    live = _term_results(compute(scope_of_student(student_id, term, session)), student_id).order_by(None)
    unpublished = ~select(staff_found.c.state).exists()
    if user_id is None:
        return _in_reach(_either(frozen.term_result(staff_found), live.where(unpublished)), reach, student_id)
    is_own = frozen.is_own(student_id, user_id, reach)
    in_force = frozen.latest_card(student_id, term, session, withdrawn=False)
    found = _either(
        frozen.own_term_result(in_force).where(is_own),
        frozen.term_result(staff_found).where(~is_own),
        live.where(~is_own, unpublished),
    )
    return _in_reach(found, reach, student_id)


@read_model
def term_result_of_version(
    student_id: UUID,
    term: str,
    version: int,
    user_id: UUID | None = None,
    session: str | None = None,
    reach: Reach | None = None,
) -> Query:
    """Read model of TermResultSchema, for a student: as a version of their batch's results was published.

    `term` as in `live_term_result`. No row for their own account, `user_id`.
    """
    found = frozen.term_result(frozen.card_of_version(student_id, term, version, session))
    found = found if user_id is None else found.where(~frozen.is_own(student_id, user_id, reach))
    return _in_reach(found, reach, student_id)


@read_model
def live_term_result(
    student_id: UUID,
    term: str,
    user_id: UUID | None = None,
    session: str | None = None,
    reach: Reach | None = None,
) -> Query:
    """Read model of TermResultSchema, for a student in the batch that they belong to; no row for their own account.

    `term` is the id of a term or its name in the session, by default their latest that has such a term. No row where
    they are in no batch of that session.
    """
    live = _term_results(compute(scope_of_student(student_id, term, session)), student_id)
    live = live if user_id is None else live.where(~frozen.is_own(student_id, user_id, reach))
    return _in_reach(live, reach, student_id)


def _in_reach(query: Query, reach: Reach | None, student_id: Any) -> Query:
    """Select a term result where its student is in reach now, or was of a batch in reach in that term.

    The student themselves and guardians see of it what they see without a permission.
    """
    if reach is None:
        return query
    found = query.order_by(None).subquery("of_student")
    of_batch = scopes.is_form_batch(reach, found.c.batch)
    return select(found).where(scopes.students_in_reach(reach, student_id) | of_batch)


def _either(*queries: Query) -> Query:
    """Select what one of several queries finds, of which one at most has a row."""
    first, *others = queries
    return select(first.union_all(*others).subquery("either"))


@read_model
def broadsheet(batch_id: UUID, term: str, reach: Reach | None = None) -> Query:
    """Read model of BroadsheetSchema, of a term: as it was published last, else live; `term` as in `term_results`."""
    return _of_form_batch(_published_or_live(batch_id, term, printed=False), reach, batch_id)


@read_model
def live_broadsheet(batch_id: UUID, term: str, reach: Reach | None = None) -> Query:
    """Read model of BroadsheetSchema, of a term, live; `term` as in `term_results`."""
    return _of_form_batch(
        _broadsheet(compute(scope_of_batch(batch_id, term)), printed=False), reach, batch_id
    )


@read_model
def session_broadsheet(batch_id: UUID, session: str, reach: Reach | None = None) -> Query:
    """Read model of BroadsheetSchema, of a session until the latest term that is published; `session` by id or name.

    No row where no term of it is.
    """
    return _of_form_batch(
        published.session_broadsheet(latest_of_session(batch_id, session), printed=False), reach, batch_id
    )


@read_model
def printed_broadsheet(batch_id: UUID, term: str, reach: Reach | None = None) -> Query:
    """Select what the workbook of `broadsheet` says: `broadsheets.broadsheet_of`, printed, in texts of JSON.

    Beside it, the names of the school, of what is published as its cards have it, and of the term, the decimal places
    of percents, and the moment of the figures.
    """
    return _of_form_batch(_published_or_live(batch_id, term, printed=True), reach, batch_id)


@read_model
def printed_live_broadsheet(batch_id: UUID, term: str, reach: Reach | None = None) -> Query:
    """Select what the workbook of a term's figures as they are now says, in texts of JSON."""
    return _of_form_batch(_broadsheet(compute(scope_of_batch(batch_id, term)), printed=True), reach, batch_id)


@read_model
def printed_session_broadsheet(batch_id: UUID, session: str, reach: Reach | None = None) -> Query:
    """Select what the workbook of a session's figures says, in texts of JSON; its term has no name."""
    return _of_form_batch(
        published.session_broadsheet(latest_of_session(batch_id, session), printed=True), reach, batch_id
    )


def any_broadsheet(
    *,
    batch: UUID,
    term: str | None = None,
    session: str | None = None,
    live: bool = False,
    printed: bool = False,
) -> BoundQuery:
    """The read model of the broadsheet of a term or of a session, whichever is given; of a term live, if that is asked.

    `printed`: what its workbook says.
    """
    if session is not None:
        return (printed_session_broadsheet if printed else session_broadsheet)(batch, session)
    if term is None:
        raise TypeError("A broadsheet is of a term or of a session.")
    if live:
        return (printed_live_broadsheet if printed else live_broadsheet)(batch, term)
    return (printed_broadsheet if printed else broadsheet)(batch, term)


def _of_form_batch(query: Query, reach: Reach | None, batch_id: Any) -> Query:
    """Select a broadsheet where the caller looks after its batch."""
    return query if reach is None else query.where(scopes.is_form_batch(reach, batch_id))


def _published_or_live(batch_id: Any, term: Any, *, printed: bool) -> Query:
    """Select a published broadsheet, or the live one where there is none: which then is not computed."""
    publication = latest_publication(batch_id, term)
    frozen = published.published_broadsheet(publication, printed=printed)
    live = _broadsheet(compute(scope_of_batch(batch_id, term)), printed=printed)
    without = select(publication.c.id).exists()
    return select(union_all(frozen, live.where(not_(without))).subquery("either"))


def _broadsheet(computed: Computed, *, printed: bool) -> Query:
    scope, terms, subjects = computed.scope, computed.terms, computed.subjects
    batch, pass_mark = one(scope, "batch_id"), one(computed.rules, "pass_mark")
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
            (terms.c.average >= pass_mark).label("passed"),
            func.row_number().over(order_by=BY_NAME).label("by_name"),
        )
        .select_from(terms)
        .join(Student, Student.id == terms.c.student_id)
        .join(User, User.id == Student.user_id)
        .where(terms.c.batch_id == batch)
        .cte("students")
    )
    results = (
        select(
            subjects.c.student_id,
            subjects.c.cohort_subject_id.label("id"),
            subjects.c.percent,
            subjects.c.grade,
            subjects.c.batch_position.label("position"),
            _status(subjects).label("status"),
            (subjects.c.percent >= pass_mark).label("passed"),
            subjects.c.batch_average.label("class_average"),
            subjects.c.batch_lowest.label("class_lowest"),
            subjects.c.batch_highest.label("class_highest"),
        )
        .where(subjects.c.batch_id == batch)
        .cte("results")
    )
    of_term = and_(
        Submission.cohort_subject_id == CohortSubject.id,
        Submission.batch_id == batch,
        Submission.term_id == one(scope, "term_id"),
    )
    taught = (
        select(
            CohortSubject.id,
            CohortSubject.subject_id.label("base"),
            Subject.name,
            Subject.code,
            CohortSubject.elective,
            Submission.id.is_not(None).label("submitted"),
            Submission.submitted_by_name.label("submitted_by"),
            teachers_in(one(scope, "cohort_id"), CohortSubject.id, batch).label("teachers"),
        )
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .outerjoin(Submission, of_term)
        .where(CohortSubject.cohort_id == one(scope, "cohort_id"))
        .subquery("taught")
    )
    columns: list[Any] = [*broadsheet_of(students=students, results=results, taught=taught, printed=printed)]
    if printed:
        columns += (
            school_value("school_name", lambda school: school.name).label("school_name"),
            scope.c.term_name,
            one(computed.rules, "percent_places").label("places"),
            func.statement_timestamp().label("moment"),
            class_name(scope.c.classroom, scope.c.batch_name, scope.c.cohort_id).label("class_name"),
            *(_chosen(name).label(name) for name in ("positions", "name_order")),
            time_zone().label("time_zone"),
        )
    return select(*_head(scope), *_LIVE, *columns).select_from(scope)


def _chosen(name: str) -> Any:
    """A result setting of now, or its default where the school has no row."""
    chosen = select(getattr(ResultSettings, name)).limit(1).scalar_subquery()
    return func.coalesce(chosen, literal(DEFAULTS[name], Text))


def _term_results(computed: Computed, student_id: Any = None, *, batches: FromClause | None = None) -> Query:
    """Select term results of the scope's batch, by name, or of a student in it.

    Or, with `batches`, of several batches of its cohort: then what is JSON is text that is to be read as JSONB
    (`core.json_texts`).
    """
    scope, terms, sessions = computed.scope, computed.terms, computed.sessions
    of_cards = batches is not None
    write = _write_of(of_cards)
    of: FromClause = scope if batches is None else batches
    whose = _whole_class(computed.roster.c.batch_id.in_(select(of.c.batch_id)))
    if student_id is not None:
        whose = computed.roster.c.student_id == student_id
    subjects = _subjects_by_student(computed, whose, of_class=student_id is None, of_cards=of_cards)
    cumulative = _session_subjects_by_student(computed, whose, write)
    columns = (
        func.coalesce(subjects.c.listed, NO_TEXTS).label("subjects"),
        terms.c.status,
        terms.c.total,
        (100 * terms.c.graded).label("obtainable"),
        terms.c.average,
        terms.c.grade,
        terms.c.remark,
        terms.c.passed,
        (terms.c.graded - terms.c.passed).label("failed"),
        _figures(terms, "batch", write).label("batch_figures"),
        _figures(terms, "cohort", write).label("cohort_figures"),
        write(
            terms=sessions.c.terms,
            average=sessions.c.average,
            grade=sessions.c.grade,
            remark=sessions.c.remark,
            batch_figures=_figures(sessions, "batch", write),
            cohort_figures=_figures(sessions, "cohort", write),
            subjects=func.coalesce(cumulative.c.listed, NO_TEXTS),
        ).label("cumulative"),
    )
    shown = columns if batches is not None else [as_json(column).label(column.name) for column in columns]
    found = (
        select(STUDENT.label("student"), *_head(scope, of), *_LIVE, *shown)
        .select_from(terms)
        .join(of, _whole_class(of.c.batch_id == terms.c.batch_id))
        .join(sessions, sessions.c.student_id == terms.c.student_id)
        .join(Student, Student.id == terms.c.student_id)
        .join(User, User.id == Student.user_id)
        .outerjoin(subjects, subjects.c.student_id == terms.c.student_id)
        .outerjoin(cumulative, cumulative.c.student_id == terms.c.student_id)
        .order_by(*BY_NAME)
    )
    if batches is not None:
        found = found.join(scope, literal(True))
    return found if student_id is None else found.where(terms.c.student_id == student_id)


def _write_of(of_cards: bool) -> Write:
    return jsonb_object_of if of_cards else object_of


def _whole_class(condition: Column) -> Column:
    """A condition that many rows fit: half of them, as far as PostgreSQL expects.

    It has no statistics of what is computed. Of a plain comparison it would expect a row, and compare each student with
    each, and each score.
    """
    return func.coalesce(condition, False)


def _subjects_by_student(computed: Computed, whose: Column, *, of_class: bool, of_cards: bool) -> FromClause:
    """The subject results of those on the roster who fit the condition: an array of each, by the subject's name."""
    results, write = computed.subjects, _write_of(of_cards)
    scores = _scores(computed, whose, of_class=of_class, of_cards=of_cards)
    # Joined by themselves: with the subjects beside them, all that students have in a subject would be compared.
    # And by an outer join, of which PostgreSQL expects as many rows as there are results: else it expects one.
    found = (
        select(*results.c, scores.c.listed.label("scores"))
        .outerjoin(scores, _same(scores, results))
        .offset(OPTIMIZATION_FENCE)
        .subquery("scored")
    )
    of_arms = computed.roster.c.batch_id
    taught = (
        select(
            CohortSubject.id,
            Batch.id.label("batch_id"),
            Subject.name,
            _subject(computed, Batch.id, write).label("subject"),
        )
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(Batch, Batch.cohort_id == CohortSubject.cohort_id)
        .where(
            CohortSubject.cohort_id == one(computed.scope, "cohort_id"),
            Batch.id.in_(select(of_arms).where(whose)),
        )
        .cte("taught_in_arms")
        .prefix_with("MATERIALIZED")
    )
    document = write(**_subject_result(found, taught.c.subject, found.c.scores, write))
    return (
        select(found.c.student_id, array_of(document, taught.c.name, taught.c.id).label("listed"))
        .select_from(found)
        .join(taught, and_(taught.c.id == found.c.cohort_subject_id, taught.c.batch_id == found.c.batch_id))
        .where(found.c.scores.is_not(None))
        .group_by(found.c.student_id)
        .cte("of_student")
        .prefix_with("MATERIALIZED")
    )


def _subject(computed: Computed, batch_id: Any, write: Write = object_of) -> Any:
    """The cohort subject of a row, with who teaches it to a batch of the scope's cohort."""
    return write(
        id=CohortSubject.id,
        base=CohortSubject.subject_id,
        name=Subject.name,
        code=Subject.code,
        elective=CohortSubject.elective,
        teachers=teachers_in(one(computed.scope, "cohort_id"), CohortSubject.id, batch_id),
    )


def _subject_result(found: FromClause, subject: Any, scores: Any, write: Write = object_of) -> dict[str, Any]:
    """The columns of a subject result by their names, beside whose it is."""
    return {
        "subject": subject,
        "scores": scores,
        "status": _status(found),
        **{name: found.c[name] for name in ("score", "points", "percent", "grade", "remark")},
        "batch": _figures(found, "batch", write),
        "cohort": _figures(found, "cohort", write),
    }


def _scores(
    computed: Computed, *conditions: Column, of_class: bool = False, of_cards: bool = False
) -> FromClause:
    """What those on the roster who fit the conditions have in each assessment of what they take: an array by subject.

    Scores are looked up in their table, and not among those that were summed: no index leads there. Of a whole class
    (`of_class`) all of the cohort's are read at once: with an index of students each would be compared with each.
    For its cards (`of_cards`), read as JSONB, what is the same in all scores of an assessment is written once.
    """
    roster, taking = computed.roster, computed.taking
    assessments: FromClause = _written_assessments(computed.counting) if of_cards else computed.counting
    entered: FromClause = GradebookEntry.__table__
    if of_class:
        entered = (
            select(GradebookEntry.assessment_id, GradebookEntry.student_id, GradebookEntry.score)
            .join(computed.counting, computed.counting.c.id == GradebookEntry.assessment_id)
            .cte("entered")
            .prefix_with("MATERIALIZED")
        )
    order: tuple[Any, ...]
    if of_cards:
        score = jsonb_object_of(assessments.c.written, score=entered.c.score, absence=Absence.status)
        order = (assessments.c.number,)
    else:
        score = object_of(
            assessment=assessments.c.id,
            category=assessments.c.category,
            abbreviation=assessments.c.abbreviation,
            total_points=assessments.c.total_points,
            score=entered.c.score,
            absence=Absence.status,
            publish=assessments.c.publish_scores,
        )
        order = _order(assessments)
    entry = and_(entered.c.assessment_id == assessments.c.id, entered.c.student_id == taking.c.student_id)
    absence = and_(Absence.assessment_id == assessments.c.id, Absence.student_id == taking.c.student_id)
    whose = (taking.c.student_id, taking.c.cohort_subject_id)
    return (
        select(*whose, array_of(score, *order).label("listed"))
        .select_from(roster)
        .join(taking, taking.c.student_id == roster.c.student_id)
        .join(assessments, assessments.c.cohort_subject_id == taking.c.cohort_subject_id)
        .outerjoin(entered, entry)
        .outerjoin(Absence, absence)
        .where(*conditions)
        .group_by(*whose)
        .cte("scores")
        .prefix_with("MATERIALIZED")
    )


def _written_assessments(counting: CTE) -> CTE:
    """The assessments that count, with their `number` in the order of scores, and what each of their scores says."""
    return (
        select(
            counting.c.id,
            counting.c.cohort_subject_id,
            func.row_number().over(order_by=_order(counting)).label("number"),
            jsonb_members_of(
                assessment=counting.c.id,
                category=counting.c.category,
                abbreviation=counting.c.abbreviation,
                total_points=counting.c.total_points,
                publish=counting.c.publish_scores,
            ).label("written"),
        )
        .cte("written_assessments")
        .prefix_with("MATERIALIZED")
    )


def _order(assessments: FromClause) -> tuple[Any, ...]:
    return assessments.c.category, assessments.c.due_date, assessments.c.id


def _same(scores: FromClause, found: FromClause) -> Column:
    return and_(
        scores.c.student_id == found.c.student_id,
        scores.c.cohort_subject_id == found.c.cohort_subject_id,
    )


def _session_subjects_by_student(computed: Computed, whose: Column, write: Write) -> FromClause:
    """The session percents of those on the roster who fit the condition: an array of each, by the subject's name."""
    found, roster = computed.session_subjects, computed.roster
    document = write(
        base=Subject.id,
        name=Subject.name,
        code=Subject.code,
        terms=write(**{name: found.c[name] for name in TERMS}),
        percent=found.c.percent,
        grade=found.c.grade,
    )
    return (
        select(
            found.c.student_id,
            array_of(document, Subject.name, Subject.id).label("listed"),
        )
        .select_from(found)
        .join(roster, roster.c.student_id == found.c.student_id)
        .join(Subject, Subject.id == found.c.base)
        .where(whose)
        .group_by(found.c.student_id)
        .cte("of_session")
        .prefix_with("MATERIALIZED")
    )


def _head(scope: FromClause, batches: FromClause | None = None) -> tuple[Any, ...]:
    """The columns that say of which batch and term something is: the batch of the scope, or one of others."""
    batch = scope if batches is None else batches
    return (
        batch.c.batch_id.label("batch"),
        batch.c.batch_name,
        scope.c.cohort_id.label("cohort"),
        scope.c.classroom,
        func.json_build_object("id", scope.c.session_id, "name", scope.c.session_name).label("session"),
        func.json_build_object("id", scope.c.term_id, "term", scope.c.term).label("term"),
    )


def _status(subjects: FromClause) -> Column:
    return case((subjects.c.percent.is_(None), INCOMPLETE), else_=GRADED)


def _figures(found: FromClause, name: str, write: Write) -> Any:
    """A position with the class figures, in the batch or in the cohort."""
    names = ("position", "tied", "of", "average", "lowest", "highest")
    return write(**{member: found.c[f"{name}_{member}"] for member in names})
