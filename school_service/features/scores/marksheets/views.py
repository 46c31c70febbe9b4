"""Mark sheets over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView
from werkzeug.datastructures import FileStorage

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.scores.marksheets import service, sheet
from school_service.features.scores.marksheets.schemas import (
    MarksFilterSchema,
    MarkSheetUploadSchema,
    NewMarksFilterSchema,
    NewSubjectMarkSchema,
    SubjectMarksSchema,
    UploadedMarksSchema,
)
from school_service.web.app_state import current_principal
from school_service.web.blueprint import ZIP, Blueprint
from school_service.web.operations import Run

blp = Blueprint(
    "mark-sheets",
    __name__,
    description="The scores of an arm in a subject and a term, all assessments at once.",
)


@blp.route("/cohort-subjects/<uuid:id>/mark-sheet")
class MarkSheet(MethodView):
    """The mark sheet of a cohort subject."""

    @blp.requires(Permission.GRADEBOOKS_READ, own=related("TF"), run=Run.AUDITED)
    @blp.arguments(MarksFilterSchema, location="query")
    @blp.returns_file()
    def get(self, filters: dict[str, Any], id: UUID) -> Any:
        """Download a mark sheet: an arm's students and all assessments of a subject in a term, as an Excel workbook."""
        return sheet.download(cohort_subject_id=id, **filters)

    @blp.requires(Permission.GRADEBOOKS_WRITE, own=related("T"))
    @blp.takes_file("mark_sheet")
    @blp.arguments(MarkSheetUploadSchema, location="query")
    @blp.answers(409)
    @blp.returns(UploadedMarksSchema)
    def post(self, file: FileStorage, options: dict[str, Any], id: UUID) -> Any:
        """Enter the cells of a mark sheet that were changed since its download, all or none.

        A cell has a score, ABSENT or EXCUSED. One that was emptied takes away its mark, which needs
        `delete:gradebooks`, too. Marks that somebody else has changed since the download are 409: `errors.rows` names
        each. Of a sheet that was not downloaded, such as a .csv file, every cell that is filled in is entered.
        """
        upload = sheet.MarkUpload(
            cohort_subject_id=id, file_name=file.filename or "", principal=current_principal(), **options
        )
        return upload.run(file.stream)


@blp.route("/cohort-subjects/<uuid:id>/scores")
class Marks(MethodView):
    """The marks of a cohort subject."""

    @blp.requires(Permission.GRADEBOOKS_READ, own=related("TF"))
    @blp.arguments(MarksFilterSchema, location="query")
    @blp.returns(SubjectMarksSchema, if_empty=service.check_marks, tagged=False)
    def get(self, filters: dict[str, Any], id: UUID) -> Any:
        """Show the scores and absences of an arm in all assessments of a subject in a term, with their totals."""
        return service.shown_marks(id, **filters)

    @blp.requires(Permission.GRADEBOOKS_WRITE, own=related("T"))
    @blp.takes_list(NewSubjectMarkSchema, most=service.MAX_MARKS, member=service.SCORES)
    @blp.arguments(NewMarksFilterSchema, location="query")
    @blp.answers(409)
    @blp.returns(SubjectMarksSchema)
    def put(self, scores: list[dict[str, Any]], options: dict[str, Any], id: UUID) -> Any:
        """Enter scores and absences of an arm in any assessments of a subject in a term, all or none; answers all.

        Marks that are not named stay. To take a score or an absence away, by null, needs `delete:gradebooks`, too.
        Records that are wrong are 422, and those that are not as `expected` 409: `errors.rows` names each by its place
        in the list, from 0.
        """
        return service.enter_marks(
            cohort_subject_id=id, scores=scores, principal=current_principal(), **options
        )


@blp.route("/mark-sheets")
class MarkSheetsOfArm(MethodView):
    """The mark sheets of an arm."""

    @blp.requires(Permission.GRADEBOOKS_READ, own=related("TF"), run=Run.AUDITED)
    @blp.arguments(MarksFilterSchema, location="query")
    @blp.answers(409)
    @blp.returns_file(ZIP)
    def get(self, filters: dict[str, Any]) -> Any:
        """Download the mark sheets of an arm in a term, a workbook for each subject, as a zip."""
        return sheet.download_of_arm(**filters)
