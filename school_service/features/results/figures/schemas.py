"""Results and broadsheets as they are answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import marshmallow as ma
from marshmallow import fields, validate

from school_service.features.classes.subject_teachers.schemas import teacher_names
from school_service.features.results.figures.broadsheets import ORDERS, POSITION
from school_service.features.results.models import RESULT_STATES, SUBJECT_STATUSES, TERM_STATUSES
from school_service.features.school.models import TERMS
from school_service.features.school.sessions.schemas import term_text
from school_service.features.scores.models import ABSENCES, CATEGORIES, COUNTING
from school_service.web.fields import Id, QueryBoolean, QueryInteger, sought_text
from school_service.web.schemas import (
    NamedSchema,
    RecordSchema,
    Schema,
    described,
    list_of,
    record_of,
    text_of,
)

MOST_VERSIONS = 2**31 - 1


def figure(description: str, **options: Any) -> fields.Decimal:
    """Make the field of a figure, null where there is none."""
    return described(fields.Decimal, description, allow_none=True, **options)


def _percent(description: str) -> fields.Decimal:
    return figure(description, validate=validate.Range(0, 100))


def words(description: str) -> fields.String:
    """Make the field of a text, null where there is none."""
    return described(fields.String, description, allow_none=True)


def number(description: str) -> fields.Integer:
    """Make the field of a whole number, null where there is none."""
    return described(fields.Integer, description, allow_none=True)


def _position(description: str) -> fields.Integer:
    return described(fields.Integer, description, allow_none=True, validate=validate.Range(min=1))


class ResultStudentSchema(RecordSchema):
    """The student of a result."""

    id = fields.UUID()
    admission_number = fields.String()
    first_name = fields.String()
    middle_name = fields.String(allow_none=True)
    last_name = fields.String()
    gender = fields.String(allow_none=True)


class ResultSessionSchema(NamedSchema):
    """The session of a result."""


class ResultTermSchema(RecordSchema):
    """The term of a result."""

    id = fields.UUID()
    term = text_of(TERMS)


class ClassFiguresSchema(RecordSchema):
    """A position, and how the class did."""

    position = _position(
        "From 1; equal results share a position, and the next is behind them all. Null without a result to rank."
    )
    tied = described(fields.Boolean, "Whether another has the same position.")
    of = _position("How many are ranked; null without a position.")
    average = _percent(
        "Of the ranked students: with two decimal places or, where percent_from is MARKS, with percent_places."
    )
    lowest = _percent("Of the ranked students.")
    highest = _percent("Of the ranked students.")


class ResultScoreSchema(RecordSchema):
    """The mark of a student in an assessment that counts."""

    assessment = fields.UUID()
    category = text_of(CATEGORIES)
    abbreviation = fields.String()
    total_points = described(fields.Decimal, "The maximum score.")
    score = figure("Null where there is none.")
    absence = text_of(
        [*ABSENCES, None],
        "ABSENT counts 0, EXCUSED counts nowhere; null with a score, or where it is blank.",
        allow_none=True,
    )
    publish = described(fields.Boolean, "Whether cards and students see it singly; it counts in any case.")


class ResultSubjectSchema(RecordSchema):
    """The subject of a result; older publications, from before subjects had teachers, say nothing of them."""

    SOMETIMES = frozenset({"teachers"})

    id = described(fields.UUID, "The cohort subject.")
    base = described(fields.UUID, "The subject that is taught.")
    name = fields.String()
    code = fields.String()
    elective = fields.Boolean()
    teachers = teacher_names()


class CategoryMarkSchema(RecordSchema):
    """The mark of a category, as printed: its scores as a part of its weight."""

    category = text_of(COUNTING)
    score = described(fields.Decimal, "The sum of the scores.")
    points = described(fields.Decimal, "The points obtainable.")
    mark = described(
        fields.Decimal, "Their part of the weight, rounded half up to the places of the result settings."
    )
    weight = described(fields.Decimal, "The category's, of 100.")


class SubjectResultSchema(RecordSchema):
    """The result of a student in a subject and a term."""

    subject = fields.Nested(ResultSubjectSchema)
    scores = list_of(ResultScoreSchema, "By category, then by due date.")
    status = text_of(SUBJECT_STATUSES, "INCOMPLETE: something is not marked yet, and there is no percent.")
    score = figure("The sum of the scores; null where there is none.")
    points = figure("The points obtainable, without excused and blank papers.")
    marks = list_of(
        CategoryMarkSchema,
        "The marks of the categories with a paper that is neither excused nor blank; null where points count as "
        "they are, and in publications from before. Students and guardians see those of categories whose assessments "
        "are all published singly.",
        allow_none=True,
    )
    marks_sum = figure("The sum of these marks.")
    weights_present = figure("The sum of their weights: less than 100 where categories are excused.")
    percent = _percent("Rounded half up, to the places of the result settings.")
    grade = words(
        "The letter of the band that the percent is in; null without a percent, and below the lowest band."
    )
    remark = words("The remark of that band.")
    batch = record_of(ClassFiguresSchema, "Within the batch.")
    cohort = record_of(ClassFiguresSchema, "Within all batches of the cohort.")


class _StateSchema(RecordSchema):
    """Whether a result is live or published."""

    state = text_of(
        RESULT_STATES, "PROVISIONAL: live figures. All others: the last version, as it was published."
    )
    version = _position("Of the publication; null for live figures.")


class StudentSubjectResultSchema(SubjectResultSchema, _StateSchema):
    """The result of a student in a subject and a term, with the student."""

    student = fields.Nested(ResultStudentSchema)


class _ClassTermSchema(_StateSchema):
    """The class, session and term of a result, and whether it is published."""

    batch = fields.UUID()
    batch_name = described(fields.String, "The name of the batch, such as A.")
    cohort = fields.UUID()
    classroom = fields.String()
    session = fields.Nested(ResultSessionSchema)
    term = fields.Nested(ResultTermSchema)
    published_at = described(fields.DateTime, "Null for live figures.", allow_none=True)


class TermPercentsSchema(RecordSchema):
    """The percents of a subject, by term; null in a term without one."""

    FIRST = _percent("Of the first term.")
    SECOND = _percent("Of the second term.")
    THIRD = _percent("Of the third term.")


class SessionSubjectSchema(RecordSchema):
    """The result of a student in a subject over the terms of a session."""

    base = described(fields.UUID, "The subject that is taught: terms meet by it.")
    name = fields.String()
    code = fields.String()
    terms = record_of(TermPercentsSchema, "The percents of its terms.")
    percent = _percent("Of the terms that the student has it in, by the weights of the terms.")
    grade = words("The letter of the band that the percent is in.")


class SessionResultSchema(RecordSchema):
    """The result of a student over the terms of a session, until this one."""

    terms = described(
        fields.Integer, "In how many terms the student has a graded subject.", validate=validate.Range(0, 3)
    )
    average = _percent("Over the subjects of this term, with the places of averages.")
    grade = words("The letter of the band that the average is in.")
    remark = words("The remark of that band.")
    batch_figures = record_of(ClassFiguresSchema, "Of the average, in the batch.")
    cohort_figures = record_of(ClassFiguresSchema, "The same, in the cohort.")
    subjects = list_of(
        SessionSubjectSchema, "By name; one that was dropped earlier is shown, and not averaged."
    )


class TermResultSchema(_ClassTermSchema):
    """The result of a student in a term."""

    student = fields.Nested(ResultStudentSchema)
    subjects = list_of(SubjectResultSchema, "By name.")
    status = text_of(
        TERM_STATUSES,
        "INCOMPLETE: a subject is. TOO_FEW: fewer graded subjects than the result settings ask for. "
        "NONE: no graded subject. A COMPLETE result is ranked.",
    )
    total = described(fields.Decimal, "The sum of the percents of the graded subjects.")
    obtainable = described(fields.Integer, "100 for each of them.")
    average = _percent("The total by their number, with the places of averages.")
    grade = words("Of the average.")
    remark = words("The remark of that band.")
    passed = described(fields.Integer, "How many of them reach the pass mark.")
    failed = described(fields.Integer, "How many do not.")
    batch_figures = record_of(ClassFiguresSchema, "Of the average, in the batch.")
    cohort_figures = record_of(ClassFiguresSchema, "The same, in the cohort.")
    cumulative = record_of(SessionResultSchema, "The session until this term.")


class BroadsheetSubjectSchema(ResultSubjectSchema):
    """A column of a broadsheet."""

    SOMETIMES = frozenset()

    id = described(fields.UUID, "The cohort subject, by which `results` name it.")
    submitted = described(fields.Boolean, "Whether its results are submitted.")
    takers = described(fields.Integer, "How many of the batch have it.")
    graded = described(fields.Integer, "How many of them have a percent.")
    average = _percent("Of those, with the places of averages.")
    lowest = _percent("Of those.")
    highest = _percent("Of those.")


class BroadsheetResultSchema(RecordSchema):
    """A cell of a broadsheet: the result of a student in a subject."""

    percent = _percent("Null where it is incomplete.")
    grade = words("The letter of the band that the percent is in.")
    position = _position("In the batch; null in a session's broadsheet.")
    status = text_of(SUBJECT_STATUSES)


class BroadsheetStudentSchema(RecordSchema):
    """A row of a broadsheet."""

    student = fields.Nested(ResultStudentSchema)
    results = described(
        fields.Dict,
        "By the id of the subject; a subject that the student does not have is not there.",
        keys=fields.String(),
        values=fields.Nested(BroadsheetResultSchema),
    )
    total = described(fields.Decimal, "The sum of the percents.")
    average = _percent("With the places of averages.")
    grade = words("Of the average.")
    position = _position("In the batch.")
    tied = described(fields.Boolean, "Whether another of the batch has the same position.")
    cohort_position = _position("In all batches of the cohort.")
    graded = described(fields.Integer, "How many subjects the total is of.")
    status = text_of(TERM_STATUSES)


class BroadsheetSummarySchema(RecordSchema):
    """How a batch did."""

    students = described(fields.Integer, "How many there are.")
    ranked = described(fields.Integer, "How many of them have a position.")
    average = _percent("The average of the ranked students' averages.")
    highest = _percent("The highest of them.")
    lowest = _percent("The lowest of them.")
    passed = described(fields.Integer, "How many who are ranked reach the pass mark on average.")


class BroadsheetSchema(_ClassTermSchema):
    """The results of a batch: students by subjects."""

    term = record_of(ResultTermSchema, "Null in a session's broadsheet.", allow_none=True)
    subjects = list_of(BroadsheetSubjectSchema, "By name.")
    students = list_of(BroadsheetStudentSchema, "By position, then by name; those without a position last.")
    summary = record_of(BroadsheetSummarySchema, "How the batch did.")


class _LiveSchema(Schema):
    live = described(QueryBoolean, "Live figures where there is a publication, too.", load_default=False)


class StudentTermSchema(Schema):
    """A term of a student, `live` or as a `draft` if a filter asks for it; or in a version."""

    term = term_text("the student's current")
    session = described(
        sought_text,
        "The session that the term is of, by id or name. Without it the current one, where the "
        "student is or was enrolled in it, else the student's latest, of those that have such a term; of one's own "
        "the newest in which that term's report card is published.",
        required=False,
    )
    version = described(
        QueryInteger,
        "An older version of the batch's results, or the one in force by its number, as it was "
        "published: for staff.",
        1,
        MOST_VERSIONS,
        required=False,
    )

    @ma.validates_schema
    def _check_version(self, filters: dict[str, Any], **_options: Any) -> None:
        for name in ("live", "draft"):
            if filters.get(name) and "version" in filters:
                raise ma.ValidationError("A version is of what is published.", name)


class SubjectResultFilterSchema(_LiveSchema):
    """The results of a cohort subject to show."""

    term = term_text("the cohort's")
    batch = described(Id, "The results of a batch of the cohort alone, by its id.", required=False)


class TermResultFilterSchema(StudentTermSchema, _LiveSchema):
    """The results of a student to show."""


class BroadsheetFilterSchema(_LiveSchema):
    """The broadsheet to show."""

    batch = described(Id, "A batch; a cohort's id is its first batch.")
    term = term_text("the batch's", required=False)
    session = described(
        sought_text,
        "In place of a term: the session of the batch, by id or name, as published.",
        required=False,
    )
    order = text_of(
        ORDERS, "How the students stand: by position, then by name; or by name.", load_default=POSITION
    )

    @ma.validates_schema(skip_on_field_errors=False, pass_original=True)
    def _one_of_both(self, filters: dict[str, Any], sent: Mapping[str, Any], **_options: Any) -> None:
        # As sent: an invalid one was given, too.
        if ("term" in sent) == ("session" in sent):
            raise ma.ValidationError("Give a term or a session.", "term")
        if filters.get("live") and "session" in filters:
            raise ma.ValidationError("A session's broadsheet is made of publications.", "live")
