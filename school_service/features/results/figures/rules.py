"""How results are computed: one set of SQL expressions, that every reading, publication and broadsheet stands on.

A *scope* is a SELECT of one row, a cohort and a term. `compute` makes of it, as CTEs that a statement contains where it
uses them,

`rules`     one row: the school's result settings or their defaults, the weights of the class's level, the grade bands
`roster`    who belongs to the cohort's batches in the term
`taking`    which of the cohort's subjects they take
`counting`  the assessments that count
`subjects`  subject results: percent, band, position and class figures in the batch and in the cohort
`terms`     term results of everyone on the roster
`sessions`  session results: this term and those published before it, and `session_subjects`, by base subject

So a statement is one round trip, whoever is asked for: positions need the whole cohort. The rules in words are in
decisions.md, "Results". Everything is `numeric`, and every figure is rounded once, half up (`_rounded`): what follows
from a figure follows from it as it is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    FromClause,
    Integer,
    Label,
    Numeric,
    Text,
    Uuid,
    and_,
    case,
    cast,
    column,
    except_,
    func,
    literal,
    literal_column,
    not_,
    null,
    or_,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by
from sqlalchemy.orm import aliased

from school_service.core.read_models import Query
from school_service.core.records import is_one_of
from school_service.features.classes.models import CohortSubject, SubjectEnrollment
from school_service.features.results.figures.roster import members, subjects_of_gone
from school_service.features.results.models import (
    BY_CATEGORY,
    COMPLETE,
    DEFAULTS,
    INCOMPLETE,
    NONE,
    TOO_FEW,
    TOTAL,
    Publication,
    ReportCard,
    ResultSettings,
)
from school_service.features.school.cohorts.reads import session_by_id_or_name
from school_service.features.school.models import (
    CURRENT,
    TERMS,
    AcademicSession,
    Batch,
    Classroom,
    Cohort,
    Enrollment,
    Term,
)
from school_service.features.school.sessions.service import is_term, is_term_id
from school_service.features.scores.models import (
    ABSENT,
    NOT_DELETED,
    Absence,
    Assessment,
    GradebookEntry,
    GradeConfiguration,
)

Column = ColumnElement[Any]

OF_A_TERM = ("CA1", "CA2", "CA3", "EXAM")
"""The categories of assessments that count in a term."""

BROUGHT_IN = {f"{term}_TERM": term for term in TERMS}
"""The categories that bring the result of a term in from another school, and the terms."""

AVERAGE_PLACES = 2

_ZERO: Column = literal_column("0", Numeric())
_NO_NUMBER: Column = literal_column("NULL::numeric", Numeric())
_NO_POINTS: Column = literal_column("0.00", Numeric())
OPTIMIZATION_FENCE: Column = literal_column("0", Integer())
"""As the OFFSET of a subquery, it keeps PostgreSQL's planner from merging it with the query around it.

So what a column is computed of is planned and computed once, and not in each of the places that read the column; and
what the subquery joins is joined by itself.
"""


# Scopes: SELECTs of one row, or none: `batch_id`, `batch_name`, `cohort_id`, `classroom`, `level`, `session_id`,
# `session_name`, `term_id`, `term`, `term_name`.


def scope_of_batch(batch_id: Any, term: Any) -> Query:
    """Select the cohort of a batch and a term of its session, by id or as FIRST, SECOND or THIRD."""
    return _scope().where(Batch.id == batch_id, is_term(term))


def scope_of_subject(cohort_subject_id: Any, term: Any) -> Query:
    """Select the cohort of a cohort subject with its first batch, and a term of its session, by id or by name."""
    return (
        _scope()
        .join(CohortSubject, CohortSubject.cohort_id == Cohort.id)
        .where(CohortSubject.id == cohort_subject_id, Batch.id == Cohort.id, is_term(term))
    )


def scope_of_student(student_id: Any, term: Any, session: Any = None) -> Query:
    """Select a term of a student, by id or by name in a session, and the batch that the student belongs to in it.

    It is the one of their card in force, else the one that they are in.
    """
    carded = (
        select(Publication.batch_id)
        .join(ReportCard, ReportCard.publication_id == Publication.id)
        .where(ReportCard.student_id == student_id, ReportCard.term_id == Term.id, ReportCard.in_force)
        .correlate(Term)
        .scalar_subquery()
    )
    enrolled = (
        select(Enrollment.batch_id)
        .where(Enrollment.student_id == student_id, Enrollment.session_id == Term.session_id, CURRENT)
        .correlate(Term)
        .scalar_subquery()
    )
    return _scope().where(
        Batch.id == func.coalesce(carded, enrolled),
        is_term_id(term_of_student(student_id, term, session)),
    )


def term_of_student(student_id: Any, term: Any, session: Any = None) -> Column:
    """The id of the term that a text means for a student, as text: an id, or a name in a session of theirs.

    That is the `session`, by id or name, or else the latest that has a term of this name, of those in which the student
    is enrolled or has a report card.
    """
    of_session = aliased(Term)
    found = select(cast(of_session.id, Text))
    if session is not None:
        is_meant = or_(cast(of_session.id, Text) == func.lower(term), of_session.term == term)
        meant = session_by_id_or_name(session).scalar_subquery()
        return found.where(is_meant, of_session.session_id == meant).scalar_subquery()
    enrolled = select(Enrollment.session_id).where(Enrollment.student_id == student_id, CURRENT)
    published = (
        select(Publication.session_id)
        .join(ReportCard, ReportCard.publication_id == Publication.id)
        .where(ReportCard.student_id == student_id)
    )
    latest = (
        found.join(AcademicSession, AcademicSession.id == of_session.session_id)
        .where(of_session.term == term, of_session.session_id.in_(enrolled.union_all(published)))
        .order_by(AcademicSession.start_date.desc(), AcademicSession.id)
        .limit(1)
        .correlate(None)
    )
    return func.coalesce(latest.scalar_subquery(), term)


def _scope() -> Query:
    return (
        select(
            Batch.id.label("batch_id"),
            Batch.name.label("batch_name"),
            Cohort.id.label("cohort_id"),
            Classroom.name.label("classroom"),
            Classroom.level,
            AcademicSession.id.label("session_id"),
            AcademicSession.name.label("session_name"),
            Term.id.label("term_id"),
            Term.term,
            Term.display_name.label("term_name"),
        )
        .select_from(Batch)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .join(Term, Term.session_id == AcademicSession.id)
    )


# Computing


@dataclass(frozen=True, slots=True)
class Computed:
    """What is computed in a scope, as CTEs: see the module."""

    scope: CTE
    rules: CTE
    roster: CTE
    taking: CTE
    counting: CTE
    subjects: CTE
    terms: CTE
    session_subjects: CTE
    sessions: CTE


def compute(
    scope: Query,
    *,
    cohort_subject_id: Any = None,
    roster: Callable[[Any, Any], FromClause] = members,
    one_batch: bool = False,
) -> Computed:
    """Compute the results of a scope; of one cohort subject alone where that is given, without terms and sessions.

    `roster` tells who belongs to the batches of a cohort in a term, as `roster.members` does. With `one_batch` they all
    belong to the same: the figures of the cohort are those of the batch, and computed once.
    """
    of = scope.cte("scope")
    rules = _rules(of)
    cohort_id, term_id = one(of, "cohort_id"), one(of, "term_id")
    whose = roster(cohort_id, term_id).select().cte("roster")
    taking = _taking(of, whose)
    counting = _counting(of, rules, cohort_subject_id)
    subjects = _subjects(whose, _sums(counting, taking, rules), rules, one_batch=one_batch)
    terms = _terms(whose, subjects, rules, one_batch=one_batch)
    session_subjects = _session_subjects(of, whose, taking, subjects, rules)
    return Computed(
        of,
        rules,
        whose,
        taking,
        counting,
        subjects,
        terms,
        session_subjects,
        _sessions(terms, session_subjects, rules, one_batch=one_batch),
    )


def one(row: FromClause, name: str) -> Any:
    """A value of a CTE of one row: PostgreSQL looks it up once, before it plans for what depends on it."""
    return select(row.c[name]).scalar_subquery()


def _rules(scope: CTE) -> CTE:
    """The settings, the weight of each category in CATEGORIES, and the bands as arrays, the lowest first."""
    setting = {
        name: func.coalesce(getattr(ResultSettings, name), default) for name, default in _DEFAULTS.items()
    }
    weight = _weights_of_level(scope).lateral("weight")
    by_threshold = GradeConfiguration.lower_threshold
    bands = select(
        func.array_agg(aggregate_order_by(by_threshold, by_threshold)).label("thresholds"),
        func.array_agg(aggregate_order_by(GradeConfiguration.letter_grade, by_threshold)).label("letters"),
        func.array_agg(aggregate_order_by(GradeConfiguration.remarks, by_threshold)).label("remarks"),
    ).subquery("bands")
    return (
        select(
            *(value.label(name) for name, value in setting.items()),
            func.coalesce(ResultSettings.weighting == BY_CATEGORY, False).label("by_category"),
            *(weight.c[category] for category in OF_A_TERM),
            bands.c.thresholds,
            bands.c.letters,
            bands.c.remarks,
        )
        .select_from(scope)
        .outerjoin(ResultSettings, literal(True))
        .join(weight, literal(True))
        .join(bands, literal(True))
        .cte("rules")
    )


_DEFAULTS: dict[str, Any] = {
    name: DEFAULTS[name]
    for name in (
        "percent_places",
        "pass_mark",
        "minimum_subjects",
        "minimum_terms",
        "rank_by",
        "first_term_weight",
        "second_term_weight",
        "third_term_weight",
    )
}


def _weights_of_level(scope: CTE) -> Query:
    """Select the weights of categories, in a column of each: the level's own or, where it has none, those of all."""

    def listed(name: str) -> FromClause:
        rows = func.jsonb_to_recordset(ResultSettings.weights).table_valued(
            column("level", Text), column("category", Text), column("weight", Numeric)
        )
        return rows.render_derived(name=name, with_types=True)

    own, weights = listed("own"), listed("weights")
    # Of the row's own level: two queries in, `scope` would be read anew, and any row's level would do.
    has_own = select(literal(1)).where(own.c.level == scope.c.level).correlate_except(own).exists()
    level = case((has_own, scope.c.level))
    return (
        select(
            *(
                func.max(weights.c.weight).filter(weights.c.category == category).label(category)
                for category in OF_A_TERM
            )
        )
        .select_from(weights)
        .where(weights.c.level.is_not_distinct_from(level))
        .correlate(scope, ResultSettings)
    )


def _taking(scope: CTE, roster: CTE) -> CTE:
    """Who on the roster takes which subject of the cohort: now, or on their card where they have left it."""
    cohort_id = one(scope, "cohort_id")
    now = (
        select(SubjectEnrollment.student_id, SubjectEnrollment.cohort_subject_id)
        .join(CohortSubject, CohortSubject.id == SubjectEnrollment.cohort_subject_id)
        .join(roster, roster.c.student_id == SubjectEnrollment.student_id)
        .where(CohortSubject.cohort_id == cohort_id, roster.c.enrolled_in.is_not(None))
    )
    return union_all(now, subjects_of_gone(roster, cohort_id, one(scope, "term_id"))).cte("taking")


def _counting(scope: CTE, rules: CTE, cohort_subject_id: Any) -> CTE:
    """The assessments that count in the term, of one cohort subject where it is given."""
    found = (
        select(
            Assessment.id,
            Assessment.cohort_subject_id,
            Assessment.category,
            Assessment.abbreviation,
            Assessment.total_points,
            Assessment.due_date,
            Assessment.publish_scores,
        )
        .join(rules, literal(True))
        .where(
            Assessment.cohort_id == one(scope, "cohort_id"),
            Assessment.term_id == one(scope, "term_id"),
            NOT_DELETED,
            *counts(rules),
        )
    )
    if cohort_subject_id is not None:
        found = found.where(Assessment.cohort_subject_id == cohort_subject_id)
    return found.cte("counting")


def counts(rules: CTE) -> tuple[Any, ...]:
    """Tell whether an assessment that is not deleted counts in its term: all of these have to be so."""
    weight = case(*((Assessment.category == category, rules.c[category]) for category in OF_A_TERM))
    return (
        Assessment.include_in_final,
        is_one_of(Assessment.category, OF_A_TERM),
        or_(not_(rules.c.by_category), weight > 0),
    )


def counted_by(classes: CTE) -> CTE:
    """How categories count in classes, for `counts`: a row of each row of `classes`, which has `id` and `level`."""
    weight = _weights_of_level(classes).lateral("weight")
    return (
        select(
            classes.c.id,
            func.coalesce(ResultSettings.weighting == BY_CATEGORY, False).label("by_category"),
            *(weight.c[category] for category in OF_A_TERM),
        )
        .select_from(classes)
        .outerjoin(ResultSettings, literal(True))
        .join(weight, literal(True))
        .cte("counted_by")
    )


def takers(computed: Computed) -> FromClause:
    """Who of the scope's cohort takes which of its subjects: `cohort_subject_id`, `student_id`."""
    return computed.taking


def blanks(computed: Computed) -> FromClause:
    """What is blank of what counts, each with its taker: `cohort_subject_id`, `assessment_id`, `student_id`.

    Who has one is INCOMPLETE in the subject.
    """
    counting, taking = computed.counting, computed.taking
    scored = select(GradebookEntry.assessment_id, GradebookEntry.student_id).join(
        counting, counting.c.id == GradebookEntry.assessment_id
    )
    away = select(Absence.assessment_id, Absence.student_id).join(
        counting, counting.c.id == Absence.assessment_id
    )
    expected = select(counting.c.id.label("assessment_id"), taking.c.student_id).join(
        taking, taking.c.cohort_subject_id == counting.c.cohort_subject_id
    )
    missing = except_(expected, scored, away).subquery("missing")
    return (
        select(counting.c.cohort_subject_id, missing.c.assessment_id, missing.c.student_id)
        .join(counting, counting.c.id == missing.c.assessment_id)
        .subquery("blanks")
    )


def _sums(counting: CTE, taking: CTE, rules: CTE) -> FromClause:
    """What students have in the assessments that count, by student and cohort subject: of whoever takes the subject.

    Takers, scores and absences are rows of one UNION ALL, that is grouped: what is not in it is blank. Joined, each
    taker with each assessment, they would be compared one by one wherever PostgreSQL expects few.
    """
    taught = (
        select(counting.c.cohort_subject_id, func.count().label("assessments"))
        .group_by(counting.c.cohort_subject_id)
        .subquery("taught")
    )
    of = (counting.c.cohort_subject_id, counting.c.category, counting.c.total_points)
    counted = case((Absence.status == ABSENT, _NO_POINTS))
    rows = union_all(
        select(
            taking.c.student_id,
            taught.c.cohort_subject_id,
            cast(null(), Text).label("category"),
            _NO_NUMBER.label("total_points"),
            _NO_NUMBER.label("counted"),
            taught.c.assessments,
        ).join(taught, taught.c.cohort_subject_id == taking.c.cohort_subject_id),
        select(GradebookEntry.student_id, *of, GradebookEntry.score, null()).join(
            counting, counting.c.id == GradebookEntry.assessment_id
        ),
        select(Absence.student_id, *of, counted, null()).join(
            counting, counting.c.id == Absence.assessment_id
        ),
    ).subquery("rows")
    by_weight = one(rules, "by_category")
    by_category = []
    for category in OF_A_TERM:
        # Looked at one after the other: without weights of categories, each row once.
        of_category = and_(by_weight, rows.c.category == category)
        by_category += [
            func.sum(rows.c.counted).filter(of_category).label(f"{category}_score"),
            func.sum(rows.c.total_points)
            .filter(of_category, rows.c.counted.is_not(None))
            .label(f"{category}_points"),
        ]
    assessments = func.max(rows.c.assessments)
    blanks = assessments - func.count(rows.c.category)
    return (
        select(
            rows.c.student_id,
            rows.c.cohort_subject_id,
            blanks.label("blanks"),
            func.sum(rows.c.counted).label("score"),
            func.sum(rows.c.total_points).filter(rows.c.counted.is_not(None)).label("points"),
            *by_category,
        )
        .group_by(rows.c.student_id, rows.c.cohort_subject_id)
        # Null where nobody takes it. All excused: no subject of the term.
        .having(and_(assessments > 0, or_(blanks > 0, func.count(rows.c.counted) > 0)))
        .subquery("sums")
    )


def _subjects(roster: CTE, sums: FromClause, rules: CTE, *, one_batch: bool) -> CTE:
    """Subject results, without what is NOT_GRADED; `percent` is null where one is INCOMPLETE."""
    percent = case(
        (sums.c.blanks > 0, None),
        (rules.c.by_category, _weighed_percent(sums, rules)),
        else_=_rounded(100 * sums.c.score, sums.c.points, rules.c.percent_places),
    )
    graded = (
        select(
            *(sums.c[name] for name in ("student_id", "cohort_subject_id", "score", "points")),
            roster.c.batch_id,
            percent.label("percent"),
        )
        .select_from(sums)
        .join(roster, roster.c.student_id == sums.c.student_id)
        .join(rules, literal(True))
        .offset(OPTIMIZATION_FENCE)
        .subquery("graded")
    )
    of_cohort = (graded.c.cohort_subject_id,)
    of_batch = (*of_cohort, graded.c.batch_id)
    return (
        select(
            *graded.c,
            *_grade(graded.c.percent, rules),
            *_ranks("batch", graded.c.percent, graded.c.percent, *of_batch),
            *_ranks("cohort", graded.c.percent, graded.c.percent, *(of_batch if one_batch else of_cohort)),
        )
        .select_from(graded)
        .join(rules, literal(True))
        .cte("subject_results")
        # Where it is read once, PostgreSQL would compute it anew for each row that it joins.
        .prefix_with("MATERIALIZED")
    )


def _weighed_percent(sums: FromClause, rules: CTE) -> Column:
    """The percent by the weights of categories: of those in which there is something that is not EXCUSED.

    The sum of weight by score over points, over the sum of weights. Quotients have 80 decimal places, and their sum is
    rounded to 60 before it is rounded to what is shown: three thirds are a whole, and what is no half is further from
    one, however many points there are.
    """
    shares: Column = _ZERO
    weights: Column = _ZERO
    for category in OF_A_TERM:
        score, points, weight = sums.c[f"{category}_score"], sums.c[f"{category}_points"], rules.c[category]
        shares += func.coalesce(func.round(weight * score, 80, type_=Numeric()) / points, _ZERO)
        weights += case((points.is_not(None), weight), else_=_ZERO)
    percent = func.round(100 * shares / func.nullif(weights, _ZERO), 60)
    return func.round(percent, rules.c.percent_places, type_=Numeric())


def _terms(roster: CTE, subjects: CTE, rules: CTE, *, one_batch: bool) -> CTE:
    """Term results of everyone on the roster; `average` is null without a GRADED subject."""
    whose = (roster.c.student_id, roster.c.batch_id)
    percent = subjects.c.percent
    sums = (
        select(
            *whose,
            func.coalesce(func.sum(percent), _ZERO).label("total"),
            func.count(percent).label("graded"),
            (func.count(subjects.c.student_id) - func.count(percent)).label("incomplete"),
            func.count().filter(percent >= rules.c.pass_mark).label("passed"),
        )
        .select_from(roster)
        .join(rules, literal(True))
        .outerjoin(subjects, subjects.c.student_id == roster.c.student_id)
        .group_by(*whose)
        .subquery("sums")
    )
    status = case(
        (sums.c.incomplete > 0, INCOMPLETE),
        (sums.c.graded == 0, NONE),
        (sums.c.graded < rules.c.minimum_subjects, TOO_FEW),
        else_=COMPLETE,
    )
    averaged = (
        select(
            *sums.c,
            mean(sums.c.total, sums.c.graded).label("average"),
            status.label("status"),
            (rules.c.rank_by == TOTAL).label("by_total"),
        )
        .select_from(sums)
        .join(rules, literal(True))
        .offset(OPTIMIZATION_FENCE)
        .subquery("averaged")
    )
    average = averaged.c.average
    is_ranked = averaged.c.status == COMPLETE
    key = case((not_(is_ranked), None), (averaged.c.by_total, averaged.c.total), else_=average)
    shown = case((is_ranked, average))
    return (
        select(
            *averaged.c,
            *_grade(average, rules),
            *_ranks("batch", key, shown, averaged.c.batch_id),
            *_ranks("cohort", key, shown, *([averaged.c.batch_id] if one_batch else [])),
        )
        .select_from(averaged)
        .join(rules, literal(True))
        .cte("term_results")
    )


def _session_subjects(scope: CTE, roster: CTE, taking: CTE, subjects: CTE, rules: CTE) -> CTE:
    """Session percents by student and base subject.

    `FIRST`, `SECOND` and `THIRD` are the percents of the terms; `has_FIRST` and so on tell whether the subject was
    GRADED in that term, and not brought in; `latest` whether the student has it in this term.
    """
    of_terms = union_all(
        select(
            subjects.c.student_id,
            CohortSubject.subject_id.label("base"),
            one(scope, "term").label("term"),
            subjects.c.percent,
            literal(True).label("own"),
            literal(True).label("latest"),
        ).join(CohortSubject, CohortSubject.id == subjects.c.cohort_subject_id),
        _published(scope, roster),
        _brought_in(scope, taking, rules),
    ).subquery("of_terms")
    columns: list[Column] = []
    for term in TERMS:
        of_term = of_terms.c.term == term
        own = func.max(of_terms.c.percent).filter(of_term, of_terms.c.own)
        columns += [
            func.coalesce(own, func.max(of_terms.c.percent).filter(of_term)).label(term),
            own.is_not(None).label(f"has_{term}"),
        ]
    whose = (of_terms.c.student_id, of_terms.c.base)
    by_subject = (
        select(*whose, *columns, func.bool_or(of_terms.c.latest).label("latest"))
        .group_by(*whose)
        .having(func.count(of_terms.c.percent) > 0)
        .subquery("by_subject")
    )
    percents = [by_subject.c[term] for term in TERMS]
    weights = [
        case((by_subject.c[term].is_not(None), rules.c[f"{term.lower()}_term_weight"]), else_=_ZERO)
        for term in TERMS
    ]
    of_all = sum(weights, start=_ZERO)
    weighed = sum(
        (weight * func.coalesce(percent, _ZERO) for weight, percent in zip(weights, percents, strict=True)),
        start=_ZERO,
    )
    plain = sum((func.coalesce(percent, _ZERO) for percent in percents), start=_ZERO)
    places = rules.c.percent_places
    percent = case(
        (of_all > 0, _rounded(weighed, of_all, places)),
        # Where all of its terms weigh nothing, they weigh the same.
        else_=_rounded(plain, func.num_nonnulls(*percents), places),
    )
    averaged = (
        select(*by_subject.c, percent.label("percent"))
        .select_from(by_subject)
        .join(rules, literal(True))
        .offset(OPTIMIZATION_FENCE)
        .subquery("weighed")
    )
    return (
        select(*averaged.c, *_grade(averaged.c.percent, rules))
        .select_from(averaged)
        .join(rules, literal(True))
        .cte("session_subject_results")
    )


def _published(scope: CTE, roster: CTE) -> Query:
    """Select the percents of the session's earlier terms, from the cards in force of those on the roster.

    They may be of another arm, or of another cohort.
    """
    cards = (
        select(ReportCard.student_id, Term.term, ReportCard.card)
        .select_from(roster)
        .join(ReportCard, ReportCard.student_id == roster.c.student_id)
        .join(Term, Term.id == ReportCard.term_id)
        .where(
            Term.session_id == one(scope, "session_id"),
            # The terms' own order is that of the alphabet: FIRST, SECOND, THIRD.
            Term.term < one(scope, "term"),
            ReportCard.in_force,
        )
        .subquery("cards")
    )
    listed = (
        func.jsonb_array_elements(cards.c.card["subjects"])
        .table_valued(column("subject", JSONB))
        .render_derived(name="listed")
    )
    subject = listed.c.subject
    return select(
        cards.c.student_id,
        cast(subject["subject"]["base"].astext, Uuid),
        cards.c.term,
        cast(subject["percent"].astext, Numeric),
        literal(True),
        literal(False),
    ).select_from(cards.join(listed, literal(True)))


def _brought_in(scope: CTE, taking: CTE, rules: CTE) -> Query:
    """Select what students bring in from elsewhere for terms until this one, as percents."""
    term = case(*((Assessment.category == category, name) for category, name in BROUGHT_IN.items()))
    takes = and_(
        taking.c.cohort_subject_id == Assessment.cohort_subject_id,
        taking.c.student_id == GradebookEntry.student_id,
    )
    whose = (GradebookEntry.student_id, CohortSubject.subject_id)
    return (
        select(
            *whose,
            term,
            _rounded(
                100 * func.sum(GradebookEntry.score),
                func.sum(Assessment.total_points),
                one(rules, "percent_places"),
            ),
            literal(False),
            literal(False),
        )
        .select_from(Assessment)
        .join(CohortSubject, CohortSubject.id == Assessment.cohort_subject_id)
        .join(GradebookEntry, GradebookEntry.assessment_id == Assessment.id)
        .join(taking, takes)
        .where(
            Assessment.cohort_id == one(scope, "cohort_id"),
            NOT_DELETED,
            Assessment.include_in_final,
            is_one_of(Assessment.category, BROUGHT_IN),
            term <= one(scope, "term"),
        )
        .group_by(*whose, Assessment.category)
    )


def _sessions(terms: CTE, session_subjects: CTE, rules: CTE, *, one_batch: bool) -> CTE:
    """Session results of everyone on the roster: over the subjects of this term."""
    percent = case((session_subjects.c.latest, session_subjects.c.percent))
    whose = (terms.c.student_id, terms.c.batch_id, terms.c.status)
    has = [func.bool_or(session_subjects.c[f"has_{term}"]) for term in TERMS]
    sums = (
        select(
            *whose,
            sum((func.coalesce(cast(one, Integer), 0) for one in has), start=literal(0)).label("terms"),
            func.coalesce(func.sum(percent), _ZERO).label("total"),
            func.count(percent).label("averaged"),
        )
        .select_from(terms)
        .outerjoin(session_subjects, session_subjects.c.student_id == terms.c.student_id)
        .group_by(*whose)
        .subquery("sums")
    )
    averaged = (
        select(
            *sums.c,
            mean(sums.c.total, sums.c.averaged).label("average"),
            and_(sums.c.status == COMPLETE, sums.c.terms >= rules.c.minimum_terms).label("is_ranked"),
        )
        .select_from(sums)
        .join(rules, literal(True))
        .offset(OPTIMIZATION_FENCE)
        .subquery("averaged")
    )
    key = case((averaged.c.is_ranked, averaged.c.average))
    return (
        select(
            *averaged.c,
            *_grade(averaged.c.average, rules),
            *_ranks("batch", key, key, averaged.c.batch_id),
            *_ranks("cohort", key, key, *([averaged.c.batch_id] if one_batch else [])),
        )
        .select_from(averaged)
        .join(rules, literal(True))
        .cte("session_results")
    )


# What all of them are made of


def _rounded(numerator: Any, denominator: Any, places: Any) -> Column:
    """Divide and round half up to `places`; null where the denominator is 0.

    The quotient has 16 digits at least: of scores and points it is either a half of the last place, which is written
    in full, or further from one than the digits that are left out.
    """
    return func.round(cast(numerator, Numeric) / func.nullif(denominator, 0), places, type_=Numeric())


def mean(total: Any, number: Any) -> Column:
    """The average of so many figures, with two places; null of none."""
    return _rounded(total, number, AVERAGE_PLACES)


def mean_over(figure: Any, *partition: Any) -> Column:
    """The average of a figure within a partition, with two places; null of none."""
    return func.round(func.avg(figure).over(partition_by=partition), AVERAGE_PLACES, type_=Numeric())


def _grade(percent: Any, rules: CTE) -> tuple[Label[Any], Label[Any]]:
    """Columns `grade` and `remark`: of the band with the highest lower threshold that is not above a percent.

    The number of the band is 0 below the lowest, and an array has nothing there.
    """
    band = func.width_bucket(percent, rules.c.thresholds, type_=Integer())
    return rules.c.letters[band].label("grade"), rules.c.remarks[band].label("remark")


def _ranks(name: str, key: Any, figure: Any, *partition: Any) -> list[Label[Any]]:
    """Rank within a partition by a key, the highest first, and tell the class figures of those who have a key.

    Standard competition ranking: who share a key share a position, and the next is behind them all.
    """
    in_order: dict[str, Any] = {"partition_by": partition, "order_by": key.desc().nulls_last()}
    whole: dict[str, Any] = {"partition_by": partition}
    is_ranked = key.is_not(None)
    number = func.count(key).over(**whole)
    return [
        case((is_ranked, func.rank().over(**in_order))).label(f"{name}_position"),
        # All until the last of those who share the key: more than the position, where there is another.
        and_(is_ranked, func.count(key).over(**in_order) > func.rank().over(**in_order)).label(
            f"{name}_tied"
        ),
        case((is_ranked, number)).label(f"{name}_of"),
        mean_over(figure, *partition).label(f"{name}_average"),
        func.min(figure).over(**whole).label(f"{name}_lowest"),
        func.max(figure).over(**whole).label(f"{name}_highest"),
    ]
