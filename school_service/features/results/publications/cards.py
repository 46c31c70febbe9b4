"""What a report card says: the term result of a student, and all else that stands on paper, as one document.

`cards` and `new_cards` make the document as results are now: a draft prints it, publishing freezes it. Once frozen it
is all that is read: a later change of a name, a grade band, a setting or an enrollment does not reach it.
docs/decisions.md, "Results", has its members.
"""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy import (
    CTE,
    ColumnElement,
    DateTime,
    FromClause,
    Integer,
    Numeric,
    Text,
    Uuid,
    and_,
    case,
    cast,
    column,
    func,
    literal,
    literal_column,
    not_,
    null,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by
from sqlalchemy.orm import aliased

from school_service.core.json_texts import jsonb_members_of, jsonb_object_of, object_of
from school_service.core.read_models import Query, school_value
from school_service.core.records import unnest_rows
from school_service.features.attendance.calendar import counts_registers
from school_service.features.attendance.models import Register
from school_service.features.attendance.sums import roll_up_of
from school_service.features.classes.models import CohortSubject
from school_service.features.classes.subject_teachers.reads import teachers_of
from school_service.features.people.employees.reads import TITLED_NAME
from school_service.features.people.models import Employee, FormTeacher, Student, User
from school_service.features.results.figures.reads import term_results_in
from school_service.features.results.figures.rules import (
    OPTIMIZATION_FENCE,
    Computed,
    compute,
    one,
    scope_of_batch,
)
from school_service.features.results.models import (
    BEST,
    DEFAULTS,
    LAYOUT,
    POOREST,
    Letterhead,
    Metric,
    MetricDefinition,
    MetricScore,
    Picture,
    Publication,
    ReportCard,
    ResultSettings,
    TermComment,
)
from school_service.features.results.publications.changes import class_figures, own_figures
from school_service.features.school.cohorts.reads import class_name
from school_service.features.school.models import Batch, TermCalendar
from school_service.features.school.settings.service import time_zone
from school_service.features.scores.models import GradeConfiguration, Submission

Column = ColumnElement[Any]

_REGISTERED = ("name", "address", "phone_number", "email_address", "motto")
_OWN = ("website", "principal_name", "principal_title")
_SETTINGS = (
    "positions", "pass_mark", "percent_places", "verification", "name_order", "signatures", "show_teachers",
)  # fmt: skip
_COMPARED = (
    "student", "subjects", "status", "total", "average", "grade", "remark", "passed", "failed", "batch_figures",
    "cohort_figures", "cumulative", "traits", "comments", "attendance", "positions", "number_in_class",
)  # fmt: skip
"""The members of a card that `changes` looks at."""
_TRAIT_KEY = [{"value": BEST, "meaning": "Excellent"}, {"value": POOREST, "meaning": "Poor"}]


def cards(batch_id: Any, term: Any) -> Query:
    """Select drafts of the cards of everyone in a batch, by name: `student_id`, `average`, `position` and `card`.

    `term` is the id of a term or its name in the batch's session. `version` and `published_at` are null in the document
    of a draft, and `state` is in none.
    """
    computed = compute(scope_of_batch(batch_id, term))
    draft = select(
        computed.scope.c.batch_id,
        computed.scope.c.batch_name,
        cast(null(), Integer).label("version"),
    ).cte("drafted_batches")
    return _cards(computed, draft, published_at=null())


def new_cards(
    batch_ids: Any, versions: Any, term_id: Any, published_at: Any, roster: FromClause, *, one_batch: bool
) -> Query:
    """Select the cards of the next versions of batches of one cohort, each with its batch and what changed.

    `versions` are the numbers of the versions, None where each is its batch's first. `roster` is who belongs to the
    cohort's batches in the term, as `figures.roster.members`; `one_batch` says that it is the same of all of them.
    `changed` tells whether a card says something else of its student than the one of the version before, or there was
    none; `class_figures_changed` whether it differs in the figures of the class alone: neither in the first version.
    """
    given = (
        unnest_rows("given", batch_id=(Uuid, batch_ids))
        if versions is None
        else unnest_rows("given", batch_id=(Uuid, batch_ids), version=(Integer, versions))
    )
    version: Any = literal_column("1", Integer()).label("version") if versions is None else given.c.version
    first = select(given.c.batch_id).limit(1).scalar_subquery()
    computed = compute(scope_of_batch(first, term_id), roster=lambda *_: roster, one_batch=one_batch)
    batches = (
        select(Batch.id.label("batch_id"), Batch.name.label("batch_name"), version)
        .join(given, given.c.batch_id == Batch.id)
        .cte("published_batches")
    )
    cards_to_be = _cards(computed, batches, published_at=published_at)
    return _new(cards_to_be) if versions is None else _compared(cards_to_be, batches, term_id)


def _new(cards_to_be: Query) -> Query:
    """Select cards of which there are none to be compared with."""
    found = cards_to_be.subquery("cards")
    return select(
        found.c.student_id,
        found.c.batch_id,
        found.c.average,
        found.c.position,
        literal(False).label("changed"),
        literal(False).label("class_figures_changed"),
        found.c.card,
    )


def _compared(cards_to_be: Query, batches: CTE, term_id: Any) -> Query:
    """Select cards, each compared with that of its student in the version before."""
    before = (
        select(ReportCard.student_id, Publication.batch_id, ReportCard.card)
        .join(Publication, Publication.id == ReportCard.publication_id)
        .join(batches, batches.c.batch_id == Publication.batch_id)
        .where(cast(Publication.term_id, Text) == term_id, Publication.version == batches.c.version - 1)
        .cte("before")
        .prefix_with("MATERIALIZED")
    )
    made = cards_to_be.selected_columns
    # Each document is made, or read and decompressed, once for all that is compared: with nothing added to it the one
    # of before is as it was.
    found = (
        cards_to_be.add_columns(
            before.c.student_id.is_not(None).label("was_there"),
            before.c.card.op("||", return_type=JSONB())(_constant({})).label("card_before"),
        )
        .outerjoin(before, and_(before.c.student_id == made.student_id, before.c.batch_id == made.batch_id))
        .offset(OPTIMIZATION_FENCE)
        .subquery("cards")
    )
    old, new = found.c.card_before, found.c.card
    same = and_(*(new[member] == old[member] for member in _COMPARED))
    compared = select(*found.c, same.label("same")).offset(OPTIMIZATION_FENCE).subquery("compared")
    old, new = compared.c.card_before, compared.c.card
    changed = case(
        (compared.c.version == 1, False),
        (not_(compared.c.was_there), True),
        (compared.c.same, False),
        else_=own_figures(new) != own_figures(old),
    )
    judged = select(*compared.c, changed.label("changed")).offset(OPTIMIZATION_FENCE).subquery("judged")
    old, new = judged.c.card_before, judged.c.card
    of_class = and_(
        judged.c.was_there,
        not_(judged.c.same),
        not_(judged.c.changed),
        class_figures(new) != class_figures(old),
    )
    return select(
        judged.c.student_id,
        judged.c.batch_id,
        judged.c.average,
        judged.c.position,
        judged.c.changed,
        of_class.label("class_figures_changed"),
        new,
    )


def _cards(computed: Computed, batches: CTE, *, published_at: Any) -> Query:
    """Select the cards of batches: `batch_id`, `batch_name` and the `version` to be."""
    paper = _paper(computed, batches, published_at)
    results = term_results_in(computed, batches).order_by(None)
    members = [column.name for column in results.selected_columns if column.name != "state"]
    result = results.add_columns(
        Student.id.label("student_id"), Student.dob, computed.terms.c.batch_position.label("position")
    ).subquery("result")
    rolled_up = _rolled_up(computed, batches)
    # Written at once, and read as JSON once: each change of a document makes it anew, of all that is in it.
    card = jsonb_object_of(
        paper.c.said,
        **{name: result.c[name] for name in members if name not in ("version", "published_at", "student")},
        student=object_of(result.c.student, dob=result.c.dob),
        attendance=_attendance(paper.c.by_registers, paper.c.times_opened, rolled_up),
        traits=_traits(result.c.student_id, paper.c.term_id),
        comments=jsonb_object_of(
            form_teacher=TermComment.form_teacher_comment,
            principal=func.coalesce(
                TermComment.principal_comment,
                _principal_comment(paper.c.principal_comments, result.c.average),
            ),
        ),
    )
    of_term = and_(TermComment.student_id == result.c.student_id, TermComment.term_id == paper.c.term_id)
    return (
        select(
            result.c.student_id,
            result.c.batch.label("batch_id"),
            paper.c.version,
            result.c.average,
            result.c.position,
            cast(card, JSONB).label("card"),
        )
        .select_from(result)
        .join(paper, paper.c.batch_id == result.c.batch)
        .outerjoin(TermComment, of_term)
        .outerjoin(rolled_up, rolled_up.c.student_id == result.c.student_id)
    )


def _rolled_up(computed: Computed, batches: CTE) -> CTE:
    """Roll up the registers of the term of everyone in these batches; no rows where what is typed in counts."""
    scope, roster = computed.scope, computed.roster
    of_batches = select(roster.c.student_id).join(batches, batches.c.batch_id == roster.c.batch_id)
    return roll_up_of(of_batches, counts_registers(), Register.term_id == one(scope, "term_id"))


def _attendance(by_registers: Column, times_opened: Column, rolled_up: CTE) -> Any:
    """How often school opened for a student, and how often they came: by the registers, or as it was typed in."""
    present = TermComment.times_present
    typed = {"opened": times_opened, "present": present, "absent": times_opened - present}
    members = {name: case((by_registers, rolled_up.c[name]), else_=figure) for name, figure in typed.items()}
    return jsonb_object_of(**members)


def _paper(computed: Computed, batches: CTE, published_at: Any) -> CTE:
    """What every card of a batch says: a row of each, with `said`, members of JSON, and what else they need."""
    scope, roster = computed.scope, computed.roster
    logo, signature = aliased(Picture), aliased(Picture)
    in_batch = select(func.count()).where(roster.c.batch_id == batches.c.batch_id).correlate(batches)
    said = jsonb_members_of(
        layout=literal(LAYOUT),
        version=batches.c.version,
        published_at=cast(published_at, DateTime(timezone=True)),
        trait_key=_constant(_TRAIT_KEY),
        number_in_class=in_batch.scalar_subquery(),
        class_name=class_name(scope.c.classroom, batches.c.batch_name, scope.c.cohort_id),
        term_name=scope.c.term_name,
        level=scope.c.level,
        letterhead=letterhead(logo, signature),
        calendar=jsonb_object_of(
            start_date=TermCalendar.start_date,
            end_date=TermCalendar.end_date,
            times_opened=TermCalendar.times_opened,
            next_term_begins=TermCalendar.next_term_begins,
            notice=TermCalendar.notice,
        ),
        form_teacher_name=_form_teacher(batches),
        bands=bands(),
        **{name: setting(name) for name in _SETTINGS},
        time_zone=time_zone(),
    )
    return (
        select(
            batches.c.batch_id,
            batches.c.version,
            scope.c.term_id,
            TermCalendar.times_opened,
            counts_registers().label("by_registers"),
            setting("principal_comments").label("principal_comments"),
            said.label("said"),
        )
        .select_from(scope)
        .join(batches, literal_column("true"))
        .outerjoin(ResultSettings, literal_column("true"))
        .outerjoin(Letterhead, literal_column("true"))
        .outerjoin(logo, logo.id == Letterhead.logo_id)
        .outerjoin(signature, signature.id == Letterhead.signature_id)
        .outerjoin(TermCalendar, TermCalendar.term_id == scope.c.term_id)
        .cte("paper")
        .prefix_with("MATERIALIZED")
    )


def rules(**more: Any) -> Column:
    """The settings and grade bands that results are made with, for an outer join of ResultSettings to any row.

    `more` is what a publication says that is on no card: see Publication.
    """
    members = {**{name: setting(name) for name in DEFAULTS}, "bands": bands(), **more}
    return func.jsonb_build_object(*(part for member in members.items() for part in member), type_=JSONB)


def subjects(batch_id: Any, cohort_id: Any, term_id: Any) -> Column:
    """The subjects of a cohort, who teaches them in an arm, and who submitted them for it in a term.

    An object by the cohort subject's id.
    """
    subject = func.jsonb_build_object(
        "base", CohortSubject.subject_id,
        "elective", CohortSubject.elective,
        "submitted_by", Submission.submitted_by,
        "submitted_by_name", Submission.submitted_by_name,
        "teachers", teachers_of(CohortSubject.id, batch_id),
    )  # fmt: skip
    of_term = and_(
        Submission.cohort_subject_id == CohortSubject.id,
        Submission.batch_id == batch_id,
        Submission.term_id == term_id,
    )
    return (
        select(func.coalesce(func.jsonb_object_agg(CohortSubject.id, subject), _constant({})))
        .select_from(CohortSubject)
        .outerjoin(Submission, of_term)
        .where(CohortSubject.cohort_id == cohort_id)
        .correlate_except(CohortSubject, Submission)
        .scalar_subquery()
    )


def setting(name: str) -> Column:
    """A result setting, or its default where the school has no row."""
    value, default = getattr(ResultSettings, name), DEFAULTS[name]
    return func.coalesce(value, _constant(default) if isinstance(default, list) else default)


def bands() -> Column:
    """The grade bands, from high to low."""
    band = func.jsonb_build_object(
        "grade", GradeConfiguration.letter_grade,
        "lower_threshold", GradeConfiguration.lower_threshold,
        "remark", GradeConfiguration.remarks,
    )  # fmt: skip
    from_high = aggregate_order_by(band, GradeConfiguration.lower_threshold.desc())
    return select(func.coalesce(func.jsonb_agg(from_high), _constant([]))).scalar_subquery()


def letterhead(logo: Any, signature: Any) -> Column:
    """The school's letterhead, the registry's details where it has none: for outer joins of it and its pictures."""
    registered = {name: school_value(f"school_{name}", _member(name)) for name in _REGISTERED}
    return func.jsonb_build_object(
        *(
            part
            for name, value in registered.items()
            for part in (name, func.coalesce(getattr(Letterhead, name), cast(value, Text)))
        ),
        *(part for name in _OWN for part in (name, getattr(Letterhead, name))),
        "logo",
        logo.sha256,
        "signature",
        signature.sha256,
    )


def _member(name: str) -> Any:
    return lambda school: getattr(school, name)


def _traits(student_id: Any, term_id: Any) -> Column:
    """What was seen of a student in the term, in the order of the metric sheets."""
    trait = func.jsonb_build_object(
        "type", MetricDefinition.metric_type, "name", MetricDefinition.name, "value", MetricScore.score
    )
    in_order = aggregate_order_by(trait, MetricDefinition.metric_type, MetricDefinition.position)
    return (
        select(func.coalesce(func.jsonb_agg(in_order), _constant([])))
        .select_from(Metric)
        .join(MetricScore, MetricScore.metric_id == Metric.id)
        .join(MetricDefinition, MetricDefinition.id == MetricScore.definition_id)
        .where(Metric.student_id == student_id, Metric.term_id == term_id)
        .correlate_except(Metric, MetricScore, MetricDefinition)
        .scalar_subquery()
    )


def _principal_comment(comments: Any, average: Any) -> Column:
    """The principal's comment for an average, of the settings: that of the highest threshold that it reaches."""
    rows = (
        func.jsonb_to_recordset(comments)
        .table_valued(column("lower_threshold", Numeric), column("comment", Text))
        .render_derived(name="by_average", with_types=True)
    )
    return (
        select(rows.c.comment)
        .where(rows.c.lower_threshold <= average)
        .order_by(rows.c.lower_threshold.desc())
        .limit(1)
        .correlate_except(rows)
        .scalar_subquery()
    )


def _form_teacher(batches: CTE) -> Column:
    """The name of a batch's latest form teacher, with the title."""
    return (
        select(TITLED_NAME)
        .select_from(FormTeacher)
        .join(Employee, Employee.id == FormTeacher.employee_id)
        .join(User, User.id == Employee.user_id)
        .where(FormTeacher.batch_id == batches.c.batch_id)
        .order_by(FormTeacher.created_at.desc(), FormTeacher.employee_id.desc())
        .limit(1)
        .correlate_except(FormTeacher, Employee, User)
        .scalar_subquery()
    )


def _text(document: Any, member: str) -> Column:
    found: Column = document.op("->>", return_type=Text())(member)
    return found


def _constant(value: Any) -> Column:
    return cast(literal(orjson.dumps(value).decode(), Text), JSONB)
