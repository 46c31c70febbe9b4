"""Score sheets over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView
from werkzeug.datastructures import FileStorage

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.people.students.list_rows import MAX_RECORDS
from school_service.features.school.sessions.schemas import id_and_name
from school_service.features.scores.assessments.service import check_assessment
from school_service.features.scores.scoresheets import reads, service, sheet
from school_service.features.scores.scoresheets.schemas import (
    ClassScoreSchema,
    NewClassScoreSchema,
    ScoresheetEntrySchema,
    ScoresheetFilterSchema,
    ScoreSheetOptionsSchema,
    ScoreSheetUploadSchema,
)
from school_service.web.app_state import current_principal
from school_service.web.blueprint import Blueprint
from school_service.web.operations import Run
from school_service.web.schemas import UploadedRowsSchema

blp = Blueprint(
    "scoresheets", __name__, description="The scores of a cohort subject, and sheets to enter them with."
)


@blp.route("/scoresheets/<uuid:id>/scoresheet")
class Scoresheet(MethodView):
    """The scores of a cohort subject."""

    @blp.requires(Permission.SCORESHEETS_READ, own=related("TF"))
    @blp.arguments(ScoresheetFilterSchema, location="query")
    @blp.returns_list(ScoresheetEntrySchema, if_empty=service.check_scoresheet)
    def get(self, filters: dict[str, Any], id: UUID) -> Any:
        """List the students of a cohort subject, by name, each with their scores."""
        return reads.scoresheet(id, *id_and_name(filters.get("term")))


@blp.route("/assessments/<uuid:id>/scores")
class ClassScores(MethodView):
    """The scores and absences of a class in an assessment."""

    @blp.requires(Permission.GRADEBOOKS_READ, own=related("TF"))
    @blp.returns_list(ClassScoreSchema, if_empty=check_assessment)
    def get(self, id: UUID) -> Any:
        """List the students of an assessment's subject, by name, each with the score or the absence."""
        return reads.class_scores(id)

    @blp.requires(Permission.GRADEBOOKS_WRITE, own=related("T"))
    @blp.takes_list(NewClassScoreSchema, most=MAX_RECORDS, member=service.SCORES)
    @blp.answers(409)
    @blp.returns_list(ClassScoreSchema)
    def put(self, scores: list[dict[str, Any]], id: UUID) -> Any:
        """Enter scores and absences of a class in an assessment, all or none; answers the marks of the whole class.

        The rules are those of score sheets; students not named stay. To take a score or an absence away, by null, needs
        `delete:gradebooks`, too. Records that are wrong are 422, and those that are not as `expected` 409:
        `errors.rows` names each by its place in the list, from 0.
        """
        return service.enter_scores(assessment_id=id, scores=scores, principal=current_principal())


@blp.route("/assessments/<uuid:id>/download-sheet")
class SheetToFillIn(MethodView):
    """The score sheet of an assessment, to be filled in."""

    @blp.requires(Permission.ASSESSMENTS_READ, own=related("TF"), school_required=False, run=Run.AUDITED)
    @blp.arguments(ScoreSheetOptionsSchema, location="query")
    @blp.returns_file()
    def get(self, options: dict[str, Any], id: UUID) -> Any:
        """Download an assessment's score sheet: an Excel workbook with the subject's students, of one arm or all."""
        return sheet.download(assessment_id=id, **options)


@blp.route("/assessments/<uuid:id>/scoresheet")
class FilledInSheet(MethodView):
    """The score sheet of an assessment, filled in."""

    @blp.requires(Permission.GRADEBOOKS_WRITE, own=related("T"), school_required=False)
    @blp.arguments(ScoreSheetUploadSchema, location="query")
    @blp.takes_file("scoresheet")
    @blp.answers(409)
    @blp.returns(UploadedRowsSchema)
    def post(self, options: dict[str, Any], file: FileStorage, id: UUID) -> Any:
        """Enter the scores of a filled-in score sheet, all or none; a blank score leaves the entry alone.

        A column `absence`, where there is one, has ABSENT or EXCUSED for students without a score. The sheet is an
        Excel workbook (.xlsx) or a .csv file. Rows of an arm whose results are submitted may only repeat stored marks.
        Scores changed since the download are 409: `errors.rows` names each, and its author.
        """
        upload = sheet.ScoreUpload(assessment_id=id, file_name=file.filename or "", **options)
        return upload.run(file.stream)
