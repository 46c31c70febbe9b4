"""The one SELECT of all entries for the results of a class in a term.

`entered` makes the document for `loaded.Loaded`, a JSON object: people, subjects and papers are numbered in
PostgreSQL's order, and scores, absences and the takers of subjects name them by their numbers. Scores are whole
hundredths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy import (
    CTE,
    JSON,
    BigInteger,
    ColumnElement,
    FromClause,
    Integer,
    and_,
    case,
    cast,
    false,
    func,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy import Uuid as UuidType
from sqlalchemy.dialects.postgresql import aggregate_order_by

from school_service.core.reach import Reach
from school_service.core.read_models import Query, array_of, json_object
from school_service.core.records import is_one_of
from school_service.features.classes.models import CohortSubject
from school_service.features.classes.subject_teachers.reads import teachers_by_arm
from school_service.features.people.models import Student, User
from school_service.features.people.students.reads import BY_NAME
from school_service.features.results.computing.class_term.roster import members, taking
from school_service.features.results.computing.class_term.scopes import subjects_of, value_of
from school_service.features.results.computing.compute import BROUGHT_IN, OF_A_TERM
from school_service.features.results.models import ReportCard
from school_service.features.school.models import IN_ORDER, Subject, Term
from school_service.features.scores.models import (
    NOT_DELETED,
    Absence,
    Assessment,
    GradebookEntry,
    GradeConfiguration,
    LevelSettings,
    ResultSettings,
    Submission,
)
from school_service.features.scores.result_settings.reads import bands_of_level

Column = ColumnElement[Any]
Roster = Callable[[Any, Any], FromClause]
"""Selects the members of the batches of a cohort in a term, as `roster.members` does."""
InReach = Callable[[Reach, FromClause], Column]
"""Tells whether a row of a roster is in reach."""

STUDENT = json_object(
    id=Student.id,
    admission_number=Student.admission_number,
    first_name=User.first_name,
    middle_name=Student.middle_name,
    last_name=User.last_name,
    gender=func.nullif(User.gender, ""),
)
"""A student, as results name them."""

SORT_KEYS = ("by_name", "by_admission_number", "by_id")
"""The columns for the order of the people of a class."""

_NONE: Column = literal_column("'[]'::json", JSON())


class ClassTerm(NamedTuple):
    """A class in a term: its scope, the people on its roster, and the document of the entries."""

    scope: CTE
    people: CTE
    document: Column

    def columns(self, condition: Any = None) -> tuple[Any, ...]:
        """Give the columns for `Loaded.of`: `scope` and `entered`, null unless the condition is met."""
        scope = select(func.row_to_json(literal_column("scope"), type_=JSON)).select_from(self.scope)
        entered = self.document if condition is None else case((condition, self.document))
        return scope.scalar_subquery().label("scope"), entered.label("entered")


def class_term(
    scope: Query,
    *,
    cohort_subject_id: Any = None,
    roster: Roster = members,
    reach: Reach | None = None,
    in_reach: InReach | None = None,
    session: bool = True,
) -> ClassTerm:
    """Select the entries of a scope; if a cohort subject is given, of this one alone.

    `in_reach` tells whether a row of the roster is in `reach`, the caller's; without either no row is in reach, unless
    the caller reaches the whole school. `session`: with the basis of the session's results, too.
    """
    of = scope.cte("scope")
    cohort_id, term_id = value_of(of, "cohort_id"), value_of(of, "term_id")
    whose = roster(cohort_id, term_id).select().cte("roster").prefix_with("MATERIALIZED")
    people = _people(whose, false() if reach is None or in_reach is None else in_reach(reach, whose))
    subjects = _subjects(cohort_id, cohort_subject_id)
    taken = taking(whose, cohort_id, term_id)
    papers = _papers(subjects, term_id)
    parts: dict[str, Any] = {
        "settings": _settings(),
        "of_level": _of_level(value_of(of, "level")),
        "bands": _bands(value_of(of, "level")),
        "people": _numbered(
            people, "student", "batch_id", "enrolled_in", "dob", "place", "in_reach", "belongs"
        ),
        "subjects": _numbered(subjects, "id", "base", "name", "code", "elective", "position"),
        "teachers": teachers_by_arm(cohort_id),
        "papers": _numbered(
            papers, "id", "subject", "category", "abbreviation", "total_points", "publish_scores", "place"
        ),
        "taking": _pairs(taken, people, subjects),
        "scores": _marks(GradebookEntry, papers, people, cast(GradebookEntry.score * 100, Integer)),
        "absences": _marks(Absence, papers, people, Absence.status),
    }
    if session:
        published = _published(of, people)
        parts |= {
            "published": rows_of(published),
            "brought_in": _brought_in(of, people, subjects, taken),
            "bases": _bases(subjects, published),
        }
    return ClassTerm(of, people, json_object(**parts))


def _people(roster: CTE, is_reached: Column) -> CTE:
    belongs = roster.c.belongs if "belongs" in roster.c else true()
    return (
        select(
            roster.c.student_id,
            roster.c.batch_id,
            roster.c.enrolled_in,
            STUDENT.label("student"),
            Student.dob,
            (func.row_number().over(order_by=BY_NAME) - 1).label("number"),
            func.row_number().over(order_by=Student.admission_number).label("place"),
            *(part.label(name) for name, part in zip(SORT_KEYS, BY_NAME, strict=True)),
            is_reached.label("in_reach"),
            belongs.label("belongs"),
        )
        .select_from(roster)
        .join(Student, Student.id == roster.c.student_id)
        .join(User, User.id == Student.user_id)
        .cte("people")
        .prefix_with("MATERIALIZED")
    )


def _subjects(cohort_id: Any, cohort_subject_id: Any) -> CTE:
    query = (
        select(
            CohortSubject.id,
            CohortSubject.subject_id.label("base"),
            Subject.name,
            Subject.code,
            CohortSubject.elective,
            Subject.position,
            (func.row_number().over(order_by=(*IN_ORDER, CohortSubject.id)) - 1).label("number"),
        )
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .where(CohortSubject.cohort_id == cohort_id)
    )
    if cohort_subject_id is not None:
        query = query.where(CohortSubject.id == cohort_subject_id)
    return query.cte("taught").prefix_with("MATERIALIZED")


def _papers(subjects: CTE, term_id: Any) -> CTE:
    """The assessments of the term in every category; the rules say which categories count."""
    order = (Assessment.category, Assessment.due_date, Assessment.id)
    return (
        select(
            Assessment.id,
            subjects.c.number.label("subject"),
            Assessment.category,
            Assessment.abbreviation,
            Assessment.total_points,
            Assessment.publish_scores,
            (func.row_number().over(order_by=order) - 1).label("number"),
            func.row_number().over(order_by=(Assessment.abbreviation, Assessment.id)).label("place"),
        )
        .join(subjects, subjects.c.id == Assessment.cohort_subject_id)
        .where(
            Assessment.term_id == term_id,
            NOT_DELETED,
            Assessment.include_in_final,
            is_one_of(Assessment.category, OF_A_TERM),
        )
        .cte("papers")
        .prefix_with("MATERIALIZED")
    )


def _pairs(taking: CTE, people: CTE, subjects: CTE) -> Any:
    query = (
        select(subjects.c.number.label("subject"), people.c.number.label("person"))
        .select_from(taking)
        .join(people, people.c.student_id == taking.c.student_id)
        .join(subjects, subjects.c.id == taking.c.cohort_subject_id)
        .subquery("pairs")
    )
    return _grouped(query)


def _marks(table: Any, papers: CTE, people: CTE, mark: Any) -> Any:
    """List the marks of people in the papers: by paper, person and mark."""
    query = (
        select(papers.c.number.label("paper"), people.c.number.label("person"), mark.label("mark"))
        .select_from(table)
        .join(papers, papers.c.id == table.assessment_id)
        .join(people, people.c.student_id == table.student_id)
        .subquery("marks")
    )
    return _grouped(query)


def _published(scope: CTE, people: CTE) -> CTE:
    """The percents of the session's earlier terms, from the cards in force of the people on the roster.

    They may be of another arm, or of another cohort.
    """
    cards = (
        select(people.c.number.label("person"), Term.term, ReportCard.card)
        .select_from(people)
        .join(ReportCard, ReportCard.student_id == people.c.student_id)
        .join(Term, Term.id == ReportCard.term_id)
        .where(
            Term.session_id == value_of(scope, "session_id"),
            # The alphabet has the terms in their order: FIRST, SECOND, THIRD.
            Term.term < value_of(scope, "term"),
            ReportCard.in_force,
        )
        .subquery("cards")
    )
    listed = subjects_of(cards.c.card["subjects"])
    subject = listed.c.subject
    return (
        select(
            cards.c.person,
            cast(subject["subject"]["base"].astext, UuidType).label("base"),
            cards.c.term,
            subject["percent"].label("percent"),
        )
        .select_from(cards.join(listed, literal_column("true")))
        .cte("published_percents")
        .prefix_with("MATERIALIZED")
    )


def _brought_in(scope: CTE, people: CTE, subjects: CTE, taking: CTE) -> Any:
    """List the scores brought in from other schools for terms until this one: each with the points."""
    until = or_(
        *(
            and_(Assessment.category == category, value_of(scope, "term") >= term)
            for category, term in BROUGHT_IN.items()
        )
    )
    takes = and_(
        taking.c.cohort_subject_id == Assessment.cohort_subject_id,
        taking.c.student_id == GradebookEntry.student_id,
    )
    query = (
        select(
            people.c.number.label("person"),
            subjects.c.base,
            Assessment.category,
            cast(GradebookEntry.score * 100, Integer).label("score"),
            cast(Assessment.total_points * 100, Integer).label("points"),
        )
        .select_from(Assessment)
        .join(subjects, subjects.c.id == Assessment.cohort_subject_id)
        .join(GradebookEntry, GradebookEntry.assessment_id == Assessment.id)
        .join(taking, takes)
        .join(people, people.c.student_id == GradebookEntry.student_id)
        .where(NOT_DELETED, Assessment.include_in_final, until)
        .subquery("brought_in")
    )
    return rows_of(query)


def _bases(subjects: CTE, published: CTE) -> Any:
    """List the base subjects of the session's percents, by position, then by name."""
    is_there = or_(Subject.id.in_(select(subjects.c.base)), Subject.id.in_(select(published.c.base)))
    bases = select(Subject.id, Subject.name, Subject.code, Subject.position).where(is_there).subquery("bases")
    base = json_object(base=bases.c.id, name=bases.c.name, code=bases.c.code)
    return listed(base, bases.c.position, bases.c.name, bases.c.id, of=bases)


def submissions(scope: CTE) -> Any:
    """A column: the submissions of the cohort in the term.

    Each is an array of the subject, the batch, the moment in microseconds and as it is written, the submitter, and
    their name.
    """
    of = Submission
    row = func.json_build_array(
        of.cohort_subject_id,
        of.batch_id,
        microseconds(of.submitted_at),
        of.submitted_at,
        of.submitted_by,
        of.submitted_by_name,
    )
    query = select(array_of(row)).where(
        of.cohort_id == value_of(scope, "cohort_id"), of.term_id == value_of(scope, "term_id")
    )
    return query.scalar_subquery()


def microseconds(moment: Any) -> Any:
    """A moment as a whole number, for comparisons in Python."""
    return cast(func.extract("epoch", moment) * 1_000_000, BigInteger)


def _settings() -> Any:
    query = select(func.row_to_json(literal_column("result_settings"))).select_from(ResultSettings)
    return query.scalar_subquery()


def _of_level(level: Any) -> Any:
    query = select(func.row_to_json(literal_column("level_settings"))).select_from(LevelSettings)
    return query.where(LevelSettings.level == level).scalar_subquery()


def _bands(level: Any) -> Any:
    """List the grade bands, from low to high: the level's own or, without any, the school's."""
    of = GradeConfiguration
    band = func.json_build_array(of.lower_threshold, of.letter_grade, of.remarks)
    own = bands_of_level(level).subquery("bands_of_level")
    of_level = func.json_build_array(own.c.lower_threshold, own.c.letter_grade, own.c.remarks)
    bands = select(func.json_agg(aggregate_order_by(of_level, own.c.lower_threshold))).scalar_subquery()
    return func.coalesce(bands, listed(band, of.lower_threshold, of=of))


def listed(document: Any, *order: Any, of: Any) -> Any:
    """A column: the rows of something as an array of documents, in order."""
    return select(array_of(document, *order)).select_from(of).scalar_subquery()


def _numbered(rows: CTE, *columns: str) -> Any:
    """A column: the rows of something by their numbers, each an array of some columns."""
    return listed(func.json_build_array(*(rows.c[name] for name in columns)), rows.c.number, of=rows)


def _grouped(table: FromClause) -> Any:
    """A column: the rows of something by their first column: with it, an array of each of the others."""
    key, *others = table.c
    arrays = [func.array_to_json(func.array_agg(each)) for each in others]
    of_key = select(func.json_build_array(key, *arrays).label("row")).group_by(key).subquery("of_keys")
    return select(array_of(of_key.c.row)).select_from(of_key).scalar_subquery()


def rows_of(table: FromClause) -> Any:
    """A column: the rows of something as arrays of one length, one for each of its columns."""
    arrays = (func.coalesce(func.array_to_json(func.array_agg(each)), _NONE) for each in table.c)
    return select(func.json_build_array(*arrays, type_=JSON)).select_from(table).scalar_subquery()
