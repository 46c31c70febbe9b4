"""Requests for papers, the document of a card, and its verification."""

from __future__ import annotations

from typing import ClassVar

from marshmallow import fields, validate

from school_service.features.results.figures.schemas import (
    ResultSessionSchema,
    ResultTermSchema,
    StudentTermSchema,
    TermPercentsSchema,
    figure,
    number,
    words,
)
from school_service.features.results.models import (
    CARD_FORMATS,
    CARD_STATES,
    FORMATS,
    MAX_CARDS,
    OUTCOMES,
    PDF,
)
from school_service.features.school.models import TERMS
from school_service.features.school.sessions.schemas import term_text
from school_service.features.scores.models import COUNTING
from school_service.web.fields import Choice, Id, QueryBoolean, id_list
from school_service.web.schemas import (
    NamedSchema,
    RecordSchema,
    Schema,
    described,
    list_of,
    record_of,
    text_of,
    texts,
)


class _DraftSchema(Schema):
    draft = described(
        QueryBoolean,
        "Live figures in place of published ones, with DRAFT across the page and nothing to verify.",
        load_default=False,
    )


class ReportCardFilterSchema(StudentTermSchema, _DraftSchema):
    """The card of a student, and whether it is printed or shown."""

    format = described(
        Choice,
        "`pdf`: the paper. `json`: its contents, for a screen. `Accept` decides neither.",
        CARD_FORMATS,
        load_default=PDF,
    )


class ReportCardsFilterSchema(_DraftSchema):
    """The cards of a batch to print, and their file format."""

    batch_id = described(Id, "A batch; a cohort's id is its first batch.", data_key="batch")
    term = term_text("the batch's")
    students = described(
        id_list,
        "Theirs alone: the parameter once for each student.",
        least=1,
        most=MAX_CARDS,
        load_default=None,
    )
    format = described(Choice, "`pdf`: one file for all. `zip`: one for each.", FORMATS, load_default=PDF)


class BatchOfCardSchema(NamedSchema):
    """The arm of a card, with the name that it had."""


class StudentCardSchema(RecordSchema):
    """A report card in force of a student."""

    session = fields.Nested(ResultSessionSchema)
    term = fields.Nested(ResultTermSchema)
    batch = fields.Nested(BatchOfCardSchema)
    version = described(fields.Integer, "Of the batch's results in the term.", validate=validate.Range(min=1))
    average = figure("Of the term.")
    position = number("In the batch; null for families where the school does not show it.")
    published_at = described(fields.AwareDateTime, "When this version was.")


class VerifiedStudentSchema(RecordSchema):
    """The student of a card."""

    name = described(fields.String, "First, middle and last name.")
    admission_number = described(fields.String, "The admission number.")


class VerifiedSubjectSchema(RecordSchema):
    """A subject on the card."""

    name = described(fields.String, "The subject.")
    percent = figure("As it is printed.")
    grade = words("Of the percent.")


class VerifiedSessionSubjectSchema(RecordSchema):
    """A subject of a session on a transcript."""

    name = described(fields.String, "The subject.")
    FIRST = figure("Percent of the first term.")
    SECOND = figure("Percent of the second term.")
    THIRD = figure("Percent of the third term.")
    percent = figure("Of the session.")
    grade = words("Of the session's percent.")


class VerifiedSessionSchema(RecordSchema):
    """A session on a transcript."""

    session = described(fields.String, "The academic session.")
    class_ = described(fields.String, "The class.", data_key="class", attribute="class")
    average = figure("Of the session.")
    grade = words("Of the average.")
    position = number("In the class, where the paper has it.")
    of = number("How many have a position.")
    subjects = list_of(VerifiedSessionSubjectSchema, "In the order of the paper.")


class VerifiedPaperSchema(RecordSchema):
    """The contents of a report card or a transcript, for its holder. Of a withdrawn one: its withdrawal.

    A transcript has `sessions`, and null for members of a single term.
    """

    SOMETIMES: ClassVar[frozenset[str]] = frozenset({"sessions"})

    state = text_of(
        CARD_STATES,
        "CURRENT: the student's figures on this paper hold. REPLACED: there is a newer one that "
        "says something else, and these are the figures of this paper. WITHDRAWN: the school does not stand by it "
        "any more.",
    )
    school = described(fields.String, "The name of the school, as on the paper.")
    student = record_of(VerifiedStudentSchema, "Whose card it is.", allow_none=True)
    class_ = described(fields.String, "Class and arm.", data_key="class", attribute="class", allow_none=True)
    session = words("The academic session.")
    term = text_of([*TERMS, None], "The term.", allow_none=True)
    version = number("Of this class's results in the term.")
    published_at = described(
        fields.DateTime, "When this version was published; of a transcript, when it was issued."
    )
    replaced_at = described(fields.DateTime, "When the newer one was published.", allow_none=True)
    note = words(
        "Of a CURRENT paper: that figures of the class have been corrected since its version, or that the promotion "
        "was changed."
    )
    average = figure("Of the term.")
    grade = words("Of the average.")
    position = number("In the class, where the school shows it.")
    of = number("How many have a position.")
    subjects = list_of(VerifiedSubjectSchema, "In the order of the card.", allow_none=True)
    sessions = list_of(VerifiedSessionSchema, "Of a transcript alone: its sessions, the oldest first.")


# The document of a card: members, figures and words of the paper


def _text(description: str) -> fields.String:
    return described(fields.String, description)


class CardStudentSchema(RecordSchema):
    """The student of a card."""

    id = fields.UUID()
    admission_number = fields.String()
    first_name = fields.String()
    middle_name = fields.String(allow_none=True)
    last_name = fields.String()
    name = _text("The whole name, in the order of the paper.")
    gender = words("In words, such as Female.")
    age = number("In years, at the end of the term.")


class CardClassSchema(RecordSchema):
    """The class of a card."""

    id = described(fields.UUID, "The batch.")
    name = _text("The class, with its arm where there are several.")
    students = described(fields.Integer, "The number in class.")


class CardTermSchema(RecordSchema):
    """The term of a card."""

    id = fields.UUID()
    term = text_of(TERMS)
    name = _text("The school's name for it.")
    text = _text("The term with its session, as it heads the paper.")


class CardMarkSchema(RecordSchema):
    """The score of a student in the assessments of a category."""

    category = text_of(COUNTING)
    score = figure("The sum of the scores; null where the category has no figure of its own.")
    points = figure("The points obtainable.")
    mark = figure("Their part of the weight, where categories are weighed.")
    weight = figure("The weight of the category, of 100.")
    text = _text("The cell: scores, ABS and EXC, and the part of the weight, such as 7 EXC → 21.")


class CardSubjectFiguresSchema(RecordSchema):
    """How the class did in a subject."""

    average = figure("Of the ranked students.")
    lowest = figure("Of the ranked students.")
    highest = figure("Of the ranked students.")


class CardSubjectSchema(RecordSchema):
    """A subject on a card; one dropped in an earlier term has the percents of the session alone."""

    base = described(fields.UUID, "The subject that is taught.")
    name = fields.String()
    code = fields.String()
    teachers = texts("Their names; null where cards do not show them.", allow_none=True)
    marks = list_of(CardMarkSchema, "One for each category of the columns.", allow_none=True)
    ca_total = figure("The sum of the printed CA1, CA2 and CA3, where cards show it.")
    total = figure("The sum of the scores; null without a column for it.")
    total_text = _text("The same, with its points where they differ from most subjects': 52/90.")
    percent = figure("Null where something is not marked yet.")
    percent_text = _text(
        "The same, or inc; below it the marks that it is of, where some are excused: 73.3 of 80."
    )
    grade = words("The letter of the percent.")
    remark = words("The remark of the percent.")
    position = number(
        "In the class or, where the column says so, in all arms; null where cards do not show it."
    )
    of = number("How many are ranked.")
    tied = described(fields.Boolean, "Whether another has the same position.")
    position_text = _text("The position in words: 2nd =.")
    class_ = record_of(
        CardSubjectFiguresSchema, "How the class did.", data_key="class", attribute="class", allow_none=True
    )
    terms = record_of(
        TermPercentsSchema, "The percents of the session's terms; null in the first.", allow_none=True
    )
    cumulative = figure("The percent of the session so far; null in the first term.")


class CardTotalsSchema(RecordSchema):
    """The result of the term."""

    total = figure("The sum of the percents.")
    obtainable = number("The percents obtainable.")
    average = figure("The total by the number of graded subjects.")
    grade = words("Of the average.")
    remark = words("Of the average.")
    passed = number("How many subjects are passed.")
    failed = number("How many are not.")


class CardPositionSchema(RecordSchema):
    """A position of a student."""

    position = described(fields.Integer, "From 1.")
    tied = described(fields.Boolean, "Whether another has it, too.")
    of = described(fields.Integer, "How many are ranked.")
    text = _text("The same in words: 2nd = of 40.")


class CardFiguresSchema(RecordSchema):
    """The positions of an average, as the school shows them."""

    batch = record_of(CardPositionSchema, "In the class.", allow_none=True)
    cohort = record_of(CardPositionSchema, "In all arms.", allow_none=True)


class CardTraitSchema(RecordSchema):
    """A trait of a student."""

    type = _text("AFFECTIVE or PSYCHOMOTOR.")
    name = fields.String()
    value = described(fields.Integer, "By the key of traits.")


class CardSignatorySchema(RecordSchema):
    """An office and its holder."""

    title = _text("Form teacher, or the principal's title.")
    name = words("The name.")
    signature = words("The SHA-256 of the printed picture of a signature.")


class CardCommentSchema(CardSignatorySchema):
    """A comment with its author."""

    text = words("The comment.")


class CardSignaturesSchema(RecordSchema):
    """The signatures on the paper."""

    signed = list_of(CardSignatorySchema, "Form teacher and principal.")
    stamp = described(fields.Boolean, "Whether there is room for the stamp.")


class CardAttendanceSchema(RecordSchema):
    """How often school was open for a student, and how often they came."""

    opened = number("How often school opened.")
    present = number("How often the student came.")
    absent = number("How often they did not.")


class CardCumulativeSchema(RecordSchema):
    """The result of the session so far."""

    heading = _text("Session, or Session so far.")
    terms = described(fields.Integer, "How many terms it is of.")
    average = figure("Of the session.")
    grade = words("Of the average.")
    remark = words("Of the average.")
    figures = record_of(CardFiguresSchema, "The positions.")


class CardOutcomeSchema(RecordSchema):
    """The outcome of a student at the session's end."""

    outcome = text_of(OUTCOMES, "The promotion's.")
    class_ = described(
        fields.String, "The class they go to.", data_key="class", attribute="class", allow_none=True
    )
    text = _text("Both in words: Promoted to SSS 2.")


class CardColumnSchema(RecordSchema):
    """A column of the table of subjects."""

    member = _text("The member of a subject that it shows, such as marks.CA1, percent or class.average.")
    heading = _text("The heading.")
    below = _text("The second line of the heading, such as of 10 → 40; else empty.")
    group = _text("The heading above this column and its neighbours; else empty.")


class CardGradeSchema(RecordSchema):
    """A band of grades."""

    grade = _text("The letter.")
    lower_threshold = described(fields.Decimal, "The lowest percent with it.")
    remark = words("The meaning.")


class CardValueSchema(RecordSchema):
    """A value of traits."""

    value = described(fields.Integer, "A value.")
    meaning = _text("The meaning.")


class CardSignSchema(RecordSchema):
    """A sign on the card."""

    sign = _text("A sign or a word.")
    meaning = _text("The meaning.")


class CardKeysSchema(RecordSchema):
    """The explanations on a card."""

    columns = list_of(CardColumnSchema, "The columns of the table, from left to right.")
    grades = list_of(CardGradeSchema, "From high to low.")
    traits = list_of(CardValueSchema, "The values of traits.")
    signs = list_of(CardSignSchema, "The signs in the table.")


class CardLetterheadSchema(RecordSchema):
    """The head of a paper."""

    name = fields.String()
    motto = fields.String(allow_none=True)
    address = fields.String(allow_none=True)
    phone_number = fields.String(allow_none=True)
    email_address = fields.String(allow_none=True)
    website = fields.String(allow_none=True)
    logo = words("The SHA-256 of the printed picture.")


class ReportCardSchema(RecordSchema):
    """All that a report card says on paper, and nothing else; null for members that its layout lacks."""

    student = fields.Nested(CardStudentSchema)
    class_ = record_of(CardClassSchema, "The class.", data_key="class", attribute="class")
    session = fields.Nested(ResultSessionSchema)
    term = fields.Nested(CardTermSchema)
    version = number("Of the publication; null of a draft.")
    published_at = described(fields.DateTime, "Null of a draft.", allow_none=True)
    replaces = number("The version that it replaces.")
    draft = described(fields.Boolean, "Whether it is a draft.")
    issued = _text("The line at the foot: when it was published, and its version.")
    subjects = list_of(CardSubjectSchema, "The subjects of the term, then subjects dropped earlier.")
    totals = record_of(CardTotalsSchema, "The result of the term.")
    figures = record_of(CardFiguresSchema, "The positions.")
    traits = list_of(CardTraitSchema, "Affective and psychomotor.")
    comments = list_of(CardCommentSchema, "Those that were written.")
    signatures = record_of(CardSignaturesSchema, "Null where nobody signs.", allow_none=True)
    attendance = record_of(CardAttendanceSchema, "Of the term.")
    cumulative = record_of(CardCumulativeSchema, "The session; null in its first term.", allow_none=True)
    outcome = record_of(CardOutcomeSchema, "Null before a promotion.", allow_none=True)
    next_term_begins = described(fields.Date, "Null where nobody said.", allow_none=True)
    notice = words("The school's notice to families.")
    keys = record_of(CardKeysSchema, "The explanations.")
    letterhead = record_of(CardLetterheadSchema, "The head of the paper.")
    photo = described(
        fields.Url,
        "The address of the student's present photo, where cards show one; paper has the photo of its day.",
        allow_none=True,
    )
