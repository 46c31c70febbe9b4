"""How results are computed: one set of SQL expressions, that every reading, publication and broadsheet stands on.

A *scope* is a SELECT of one row, a cohort and a term. `compute` makes of it, as CTEs that a statement contains where it
uses them,

`rules`     one row: the school's result settings or their defaults, the weights of the class's level, the grade bands
`roster`    who is in the cohort now and not withdrawn
`takers`    which of them takes which subject
`counting`  the assessments that count in the term
`marks`     each of them in each assessment that counts: a score, an absence, or neither
`subjects`  subject results: percent, band, position and class figures in the batch and in the cohort
`terms`     term results of everyone on the roster
`sessions`  session results: this term and those published before it, and `session_subjects`, by base subject

So a statement is one round trip, whoever is asked for: positions need the whole cohort. The rules in words are in
decisions.md, "Results". Everything is `numeric`, and every figure is rounded once, half up (`_rounded`): what follows
from a figure follows from it as it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ARRAY,
    CTE,
    ColumnElement,
    FromClause,
    Integer,
    Label,
    Numeric,
    String,
    Text,
    Uuid,
    and_,
    any_,
    case,
    cast,
    column,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by, distinct_on

from school_service.core.read_models import Query
from school_service.features.absences.models import ABSENT, Absence
from school_service.features.assessments.models import NOT_DELETED, Assessment
from school_service.features.classrooms.models import Classroom
from school_service.features.cohort_subjects.models import CohortSubject, SubjectEnrollment
from school_service.features.cohorts.models import CURRENT, Batch, Cohort, Enrollment
from school_service.features.gradebooks.models import GradebookEntry
from school_service.features.publications.models import PUBLISHED, REOPENED, Publication, ReportCard
from school_service.features.result_settings.models import CATEGORIES, DEFAULTS, TOTAL, ResultSettings
from school_service.features.results.models import COMPLETE, INCOMPLETE, NONE, TOO_FEW
from school_service.features.sessions.models import TERMS, AcademicSession, Term
from school_service.features.settings.models import GradeConfiguration
from school_service.features.students.models import WITHDRAWN, Student

Column = ColumnElement[Any]

OF_A_TERM = ("CA1", "CA2", "CA3", "EXAM")
"""The categories of assessments that count in a term."""

BROUGHT_IN = {f"{term}_TERM": term for term in TERMS}
"""The categories that bring the result of a term in from another school, and the terms."""

AVERAGE_PLACES = 2

_ZERO: Column = literal_column("0", Numeric())


# Scopes: SELECTs of one row, or none: `batch_id`, `batch_name`, `cohort_id`, `classroom`, `level`, `session_id`,
# `session_name`, `term_id`, `term`.


def scope_of_batch(batch_id: Any, term: Any) -> Query:
    """Select the cohort of a batch and a term of its session, by id or as FIRST, SECOND or THIRD."""
    return _scope().where(Batch.id == batch_id, is_term(term))


def scope_of_subject(cohort_subject_id: Any, term: Any) -> Query:
    """Select the cohort of a cohort subject with its first batch, and a term of its session, as `scope_of_batch`."""
    return (
        _scope()
        .join(CohortSubject, CohortSubject.cohort_id == Cohort.id)
        .where(CohortSubject.id == cohort_subject_id, Batch.id == Cohort.id, is_term(term))
    )


def scope_of_student(student_id: Any, term: Any) -> Query:
    """Select the batch that a student is in and a term of its session: by id, or by name in their latest session."""
    latest = (
        select(Enrollment.id)
        .where(Enrollment.student_id == student_id, CURRENT)
        .order_by(Enrollment.started_at.desc(), Enrollment.id.desc())
        .limit(1)
    )
    return (
        _scope()
        .join(Enrollment, Enrollment.batch_id == Batch.id)
        .where(
            Enrollment.student_id == student_id,
            CURRENT,
            or_(is_term_id(term), and_(Term.term == term, Enrollment.id == latest.scalar_subquery())),
        )
    )


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
        )
        .select_from(Batch)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .join(Term, Term.session_id == AcademicSession.id)
    )


def is_term(term: Any) -> Column:
    """Tell whether a row of Term is the one of this id or name."""
    return or_(is_term_id(term), Term.term == term)


def is_term_id(term: Any) -> Column:
    """Tell whether a row of Term is the one of this id."""
    return cast(Term.id, Text) == func.lower(term)


# Computing


@dataclass(frozen=True, slots=True)
class Computed:
    """What is computed in a scope, as CTEs: see the module."""

    scope: CTE
    rules: CTE
    roster: CTE
    takers: CTE
    counting: CTE
    marks: CTE
    subjects: CTE
    terms: CTE
    session_subjects: CTE
    sessions: CTE


def compute(scope: Query, *, cohort_subject_id: Any = None) -> Computed:
    """Compute the results of a scope; of one cohort subject alone where that is given, without terms and sessions."""
    of = scope.cte("scope")
    rules = _rules(of)
    roster = _roster(of)
    takers = _takers(of, roster, cohort_subject_id)
    counting = _counting(of, rules)
    marks = _marks(takers, counting)
    subjects = _subjects(marks, rules)
    terms = _terms(roster, subjects, rules)
    session_subjects = _session_subjects(of, roster, takers, subjects, rules)
    sessions = _sessions(terms, session_subjects, rules)
    return Computed(of, rules, roster, takers, counting, marks, subjects, terms, session_subjects, sessions)


def _rules(scope: CTE) -> CTE:
    """The settings, the weight of each category in CATEGORIES, and the bands as arrays, the lowest first."""
    setting = {
        name: func.coalesce(getattr(ResultSettings, name), default) for name, default in _DEFAULTS.items()
    }
    places = setting["percent_places"]
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
            func.coalesce(ResultSettings.weighting == CATEGORIES, False).label("by_category"),
            cast(func.power(10, places), Numeric).label("shift"),
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
    has_own = select(literal(1)).select_from(own).where(own.c.level == scope.c.level).exists()
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


def _roster(scope: CTE) -> CTE:
    return (
        select(Enrollment.student_id, Enrollment.batch_id)
        .join(scope, scope.c.cohort_id == Enrollment.cohort_id)
        .join(Student, Student.id == Enrollment.student_id)
        .where(CURRENT, Student.status != WITHDRAWN)
        .cte("roster")
    )


def _takers(scope: CTE, roster: CTE, cohort_subject_id: Any) -> CTE:
    """Who takes which subject of the cohort."""
    found = (
        select(
            roster.c.student_id,
            roster.c.batch_id,
            CohortSubject.id.label("cohort_subject_id"),
            CohortSubject.subject_id.label("base"),
        )
        .select_from(scope)
        .join(CohortSubject, CohortSubject.cohort_id == scope.c.cohort_id)
        .join(SubjectEnrollment, SubjectEnrollment.cohort_subject_id == CohortSubject.id)
        .join(roster, roster.c.student_id == SubjectEnrollment.student_id)
    )
    if cohort_subject_id is not None:
        found = found.where(CohortSubject.id == cohort_subject_id)
    return found.cte("takers")


def _counting(scope: CTE, rules: CTE) -> CTE:
    """The assessments that count in the term."""
    return (
        select(
            Assessment.id,
            Assessment.cohort_subject_id,
            Assessment.category,
            Assessment.abbreviation,
            Assessment.total_points,
            Assessment.due_date,
        )
        .select_from(scope)
        .join(rules, literal(True))
        .join(
            Assessment,
            and_(Assessment.cohort_id == scope.c.cohort_id, Assessment.term_id == scope.c.term_id),
        )
        .where(
            NOT_DELETED,
            *counts(rules),
        )
        .cte("counting")
    )


def counts(rules: CTE) -> tuple[Column, ...]:
    """Tell whether an assessment that is not deleted counts in its term: all of these have to be so."""
    weight = case(*((Assessment.category == category, rules.c[category]) for category in OF_A_TERM))
    return (
        Assessment.include_in_final,
        _is_one_of(Assessment.category, OF_A_TERM),
        or_(not_(rules.c.by_category), weight > 0),
    )


def _marks(takers: CTE, counting: CTE) -> CTE:
    """Each taker in each assessment of the subject: `counted` is null for a blank, and for EXCUSED."""
    entries = (
        select(GradebookEntry.assessment_id, GradebookEntry.student_id, GradebookEntry.score)
        .join(counting, counting.c.id == GradebookEntry.assessment_id)
        .subquery("entries")
    )
    absences = (
        select(Absence.assessment_id, Absence.student_id, Absence.status)
        .join(counting, counting.c.id == Absence.assessment_id)
        .subquery("away")
    )
    return (
        select(
            takers.c.student_id,
            takers.c.batch_id,
            takers.c.cohort_subject_id,
            takers.c.base,
            counting.c.id,
            counting.c.category,
            counting.c.abbreviation,
            counting.c.total_points,
            counting.c.due_date,
            entries.c.score,
            absences.c.status.label("absence"),
            func.coalesce(entries.c.score, case((absences.c.status == ABSENT, _ZERO))).label("counted"),
        )
        .select_from(takers)
        .join(counting, counting.c.cohort_subject_id == takers.c.cohort_subject_id)
        .outerjoin(
            entries,
            and_(entries.c.assessment_id == counting.c.id, entries.c.student_id == takers.c.student_id),
        )
        .outerjoin(
            absences,
            and_(absences.c.assessment_id == counting.c.id, absences.c.student_id == takers.c.student_id),
        )
        .cte("marks")
    )


def is_blank_mark(marks: CTE) -> Column:
    """Tell whether a mark is blank: neither a score nor an absence."""
    return and_(marks.c.counted.is_(None), marks.c.absence.is_(None))


def _subjects(marks: CTE, rules: CTE) -> CTE:
    """Subject results, without what is NOT_GRADED; `percent` is null where one is INCOMPLETE."""
    is_counted = marks.c.counted.is_not(None)
    whose = (marks.c.student_id, marks.c.batch_id, marks.c.cohort_subject_id, marks.c.base)
    by_category = []
    for category in OF_A_TERM:
        of_category = marks.c.category == category
        by_category += [
            func.sum(marks.c.counted).filter(of_category).label(f"{category}_score"),
            func.sum(marks.c.total_points).filter(of_category, is_counted).label(f"{category}_points"),
        ]
    is_blank = is_blank_mark(marks)
    sums = (
        select(
            *whose,
            func.count().filter(is_blank).label("blanks"),
            func.sum(marks.c.counted).label("score"),
            func.sum(marks.c.total_points).filter(is_counted).label("points"),
            *by_category,
        )
        .group_by(*whose)
        .having(or_(func.count().filter(is_blank) > 0, func.count(marks.c.counted) > 0))
        .subquery("sums")
    )
    percent = case(
        (sums.c.blanks > 0, None),
        (rules.c.by_category, _weighed_percent(sums, rules)),
        else_=_rounded(100 * sums.c.score, sums.c.points, rules.c.percent_places, rules.c.shift),
    )
    graded = (
        select(
            *(
                sums.c[name]
                for name in ("student_id", "batch_id", "cohort_subject_id", "base", "score", "points")
            ),
            percent.label("percent"),
        )
        .select_from(sums)
        .join(rules, literal(True))
        .subquery("graded")
    )
    return (
        select(
            *graded.c,
            _band(graded.c.percent, rules).label("band"),
            *_ranks(
                "batch", graded.c.percent, graded.c.percent, graded.c.cohort_subject_id, graded.c.batch_id
            ),
            *_ranks("cohort", graded.c.percent, graded.c.percent, graded.c.cohort_subject_id),
        )
        .select_from(graded)
        .join(rules, literal(True))
        .cte("subject_results")
    )


def _weighed_percent(sums: FromClause, rules: CTE) -> Column:
    """The percent by the weights of categories: of those in which there is something that is not EXCUSED.

    The sum of weight by score over points, over the sum of weights, is brought to one denominator: so it is divided,
    and rounded, once.
    """
    points = {category: func.coalesce(sums.c[f"{category}_points"], literal(1)) for category in OF_A_TERM}
    weights = {
        category: case((sums.c[f"{category}_points"].is_not(None), rules.c[category]), else_=_ZERO)
        for category in OF_A_TERM
    }
    numerator: Column = _ZERO
    denominator: Column = _ZERO
    for category in OF_A_TERM:
        part = weights[category] * func.coalesce(sums.c[f"{category}_score"], _ZERO)
        for other in OF_A_TERM:
            if other != category:
                part = part * points[other]
        numerator, denominator = numerator + part, denominator + weights[category]
    for category in OF_A_TERM:
        denominator = denominator * points[category]
    return _rounded(100 * numerator, denominator, rules.c.percent_places, rules.c.shift)


def _terms(roster: CTE, subjects: CTE, rules: CTE) -> CTE:
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
            _mean(sums.c.total, sums.c.graded).label("average"),
            status.label("status"),
            (rules.c.rank_by == TOTAL).label("by_total"),
        )
        .select_from(sums)
        .join(rules, literal(True))
        .subquery("averaged")
    )
    average = averaged.c.average
    is_ranked = averaged.c.status == COMPLETE
    key = case((not_(is_ranked), None), (averaged.c.by_total, averaged.c.total), else_=average)
    shown = case((is_ranked, average))
    return (
        select(
            *averaged.c,
            _band(average, rules).label("band"),
            *_ranks("batch", key, shown, averaged.c.batch_id),
            *_ranks("cohort", key, shown),
        )
        .select_from(averaged)
        .join(rules, literal(True))
        .cte("term_results")
    )


def _session_subjects(scope: CTE, roster: CTE, takers: CTE, subjects: CTE, rules: CTE) -> CTE:
    """Session percents by student and base subject.

    `FIRST`, `SECOND` and `THIRD` are the percents of the terms; `has_FIRST` and so on tell whether the subject was
    GRADED in that term, and not brought in; `latest` whether the student has it in this term.
    """
    of_terms = union_all(
        select(
            subjects.c.student_id,
            subjects.c.base,
            scope.c.term,
            subjects.c.percent,
            literal(True).label("own"),
            literal(True).label("latest"),
        ).select_from(subjects.join(scope, literal(True))),
        _published(scope, roster),
        _brought_in(scope, takers, rules),
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
    places, shift = rules.c.percent_places, rules.c.shift
    percent = case(
        (of_all > 0, _rounded(weighed, of_all, places, shift)),
        # Where all of its terms weigh nothing, they weigh the same.
        else_=_rounded(plain, func.num_nonnulls(*percents), places, shift),
    )
    averaged = (
        select(*by_subject.c, percent.label("percent"))
        .select_from(by_subject)
        .join(rules, literal(True))
        .subquery("weighed")
    )
    return (
        select(*averaged.c, _band(averaged.c.percent, rules).label("band"))
        .select_from(averaged)
        .join(rules, literal(True))
        .cte("session_subject_results")
    )


def _published(scope: CTE, roster: CTE) -> Query:
    """Select the percents of the session's earlier terms, from the frozen cards of those on the roster."""
    cards = (
        select(ReportCard.student_id, Term.term, ReportCard.card)
        # A student who came from another batch may have two cards of a term: the later one counts.
        .ext(distinct_on(ReportCard.student_id, Term.term))
        .select_from(scope)
        .join(Publication, Publication.session_id == scope.c.session_id)
        .join(Term, Term.id == Publication.term_id)
        .join(ReportCard, ReportCard.publication_id == Publication.id)
        .join(roster, roster.c.student_id == ReportCard.student_id)
        # The terms' own order is that of the alphabet: FIRST, SECOND, THIRD.
        .where(_is_one_of(Publication.state, (PUBLISHED, REOPENED)), Term.term < scope.c.term)
        .order_by(ReportCard.student_id, Term.term, Publication.published_at.desc(), Publication.id)
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


def _brought_in(scope: CTE, takers: CTE, rules: CTE) -> Query:
    """Select what students bring in from elsewhere for terms until this one, as percents."""
    term = case(*((Assessment.category == category, name) for category, name in BROUGHT_IN.items()))
    return (
        select(
            takers.c.student_id,
            takers.c.base,
            term,
            _rounded(
                100 * func.sum(GradebookEntry.score),
                func.sum(Assessment.total_points),
                func.max(rules.c.percent_places),
                func.max(rules.c.shift),
            ),
            literal(False),
            literal(False),
        )
        .select_from(scope)
        .join(rules, literal(True))
        .join(Assessment, Assessment.cohort_id == scope.c.cohort_id)
        .join(takers, takers.c.cohort_subject_id == Assessment.cohort_subject_id)
        .join(
            GradebookEntry,
            and_(
                GradebookEntry.assessment_id == Assessment.id,
                GradebookEntry.student_id == takers.c.student_id,
            ),
        )
        .where(
            NOT_DELETED,
            Assessment.include_in_final,
            _is_one_of(Assessment.category, tuple(BROUGHT_IN)),
            term <= scope.c.term,
        )
        .group_by(takers.c.student_id, takers.c.base, Assessment.category)
    )


def _sessions(terms: CTE, session_subjects: CTE, rules: CTE) -> CTE:
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
            _mean(sums.c.total, sums.c.averaged).label("average"),
            and_(sums.c.status == COMPLETE, sums.c.terms >= rules.c.minimum_terms).label("is_ranked"),
        )
        .select_from(sums)
        .join(rules, literal(True))
        .subquery("averaged")
    )
    key = case((averaged.c.is_ranked, averaged.c.average))
    return (
        select(
            *averaged.c,
            _band(averaged.c.average, rules).label("band"),
            *_ranks("batch", key, key, averaged.c.batch_id),
            *_ranks("cohort", key, key),
        )
        .select_from(averaged)
        .join(rules, literal(True))
        .cte("session_results")
    )


# What all of them are made of


def _is_one_of(text: Any, texts: tuple[str, ...]) -> Any:
    return text == any_(literal(list(texts), ARRAY(String)))


def _rounded(numerator: Any, denominator: Any, places: Any, shift: Any) -> Column:
    """Divide and round half up to `places`, exactly: `shift` is 10 to the power of them.

    `div` is the quotient without its fraction, of numbers of any length; null where the denominator is 0.
    """
    doubled = 2 * denominator
    whole = func.div(2 * shift * numerator + denominator, func.nullif(doubled, 0))
    return func.round(whole / shift, places, type_=Numeric())


def _mean(total: Any, number: Any) -> Column:
    """The average of so many figures, with two places; null of none."""
    return _rounded(total, number, AVERAGE_PLACES, 10**AVERAGE_PLACES)


def _band(percent: Any, rules: CTE) -> Column:
    """The number of the band with the highest lower threshold that is not above a percent; 0 below the lowest."""
    return func.width_bucket(percent, rules.c.thresholds, type_=Integer())


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
        _mean(func.sum(figure).over(**whole), number).label(f"{name}_average"),
        func.min(figure).over(**whole).label(f"{name}_lowest"),
        func.max(figure).over(**whole).label(f"{name}_highest"),
    ]
