"""Submissions as they are answered."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import ValidationError, fields, validates_schema

from school_service.features.classes.subject_teachers.schemas import teacher_names
from school_service.features.results.figures.schemas import ResultTermSchema, words
from school_service.features.results.models import BLANKS, REFUSE, SUBMISSION_STATES
from school_service.features.school.sessions.schemas import term_text
from school_service.web.fields import Choice, Id, free_text
from school_service.web.schemas import MineSchema, RecordSchema, Schema, described, text_of


class SubmissionSchema(RecordSchema):
    """The results of an arm in a cohort subject and a term: their progress, and their submitter."""

    cohort_subject = described(fields.UUID, "The id of the cohort subject.")
    base = described(fields.UUID, "The subject that is taught.")
    subject = described(fields.String, "Its name.")
    batch = described(
        fields.UUID,
        "The arm; null where it is of all arms, which is SUBMITTED when all of them are.",
        allow_none=True,
    )
    batch_name = words("The arm's name.")
    term = fields.Nested(ResultTermSchema)
    state = text_of(
        SUBMISSION_STATES,
        "SUBMITTED: scores, absences and assessments are held until it is reopened. NOTHING_COUNTS: it has takers, and "
        "no assessment that counts.",
    )
    takers = described(fields.Integer, "How many take it.")
    assessments = described(fields.Integer, "How many assessments count.")
    blanks = described(fields.Integer, "How many scores of its takers are missing in assessments that count.")
    submitted_at = described(
        fields.AwareDateTime, "When it was submitted; null while it is open.", allow_none=True
    )
    submitted_by = words("The user's id, or the client's; null while open.")
    submitted_by_name = words("The submitter's name at that time; null while it is open.")
    teachers = teacher_names()


class ListedSubmissionSchema(SubmissionSchema):
    """A submission in a list of them."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset({"cohort", "classroom"})

    cohort = described(fields.UUID, "Where neither `batch` nor `cohort` is given: the class.")
    classroom = described(
        fields.String, "Where neither `batch` nor `cohort` is given: the name of the class."
    )


class SubmissionFilterSchema(MineSchema):
    """The submissions to list: those of a batch, of all batches of a cohort, or of all of the current session."""

    batch = described(Id, "A batch: one for each subject. A cohort's id is its first batch.", required=False)
    cohort = described(Id, "In place of a batch, a cohort: one for each subject and batch.", required=False)
    term = term_text("the batch's, or the current", required=False)
    state = described(Choice, "Those in this state alone.", SUBMISSION_STATES, required=False)

    @validates_schema
    def check_one(self, filters: dict[str, Any], **_options: Any) -> None:
        """Let it be a batch or a cohort at most, and with a term."""
        given = filters.keys() & {"batch", "cohort"}
        if len(given) > 1:
            raise ValidationError("Give either a batch or a cohort.", "batch")
        if given and "term" not in filters:
            raise ValidationError("Missing data for required field.", "term")


def _batch() -> Id:
    return described(
        Id, "An arm of the cohort, by its id, alone; without it, every arm that takes it.", required=False
    )


class NewSubmissionSchema(Schema):
    """The results to hand in."""

    term = term_text("the cohort's")
    batch = _batch()
    blanks = described(
        Choice,
        "REFUSE: blanks are named by a 409. ABSENT, EXCUSED: each blank becomes such an absence.",
        BLANKS,
        load_default=REFUSE,
    )


class ReopeningSchema(Schema):
    """The results to reopen, and the reason."""

    term = term_text("the cohort's")
    batch = _batch()
    reason = described(free_text, "The audit log keeps it.")
