"""Comments over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView
from werkzeug.datastructures import FileStorage

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.observations.comments import reads, service, sheet
from school_service.features.observations.comments.schemas import (
    CommentFilterSchema,
    CommentUploadSchema,
    TermCommentSchema,
    TermCommentsSchema,
)
from school_service.web.app_state import current_principal
from school_service.web.blueprint import Blueprint
from school_service.web.operations import Run
from school_service.web.schemas import UploadedRowsSchema

blp = Blueprint("comments", __name__, description="Comments on students' terms, and times present.")


@blp.route("/comments")
class Comments(MethodView):
    """The comments on the students of a batch in a term."""

    @blp.requires(Permission.RESULTS_READ, own=related("F"))
    @blp.arguments(CommentFilterSchema, location="query")
    @blp.returns_list(TermCommentSchema, if_empty=service.check_comment_filter)
    def get(self, filters: dict[str, Any]) -> Any:
        """List the students of a batch by name, each with the comments of the term; the withdrawn are left out."""
        return reads.comments(filters["batch"], filters["term"])

    @blp.requires(Permission.METRICS_WRITE, own=related("F"))
    @blp.arguments(TermCommentsSchema)
    @blp.answers(409)
    @blp.returns_list(TermCommentSchema)
    def put(self, body: dict[str, Any]) -> Any:
        """Enter comments on students of a batch, all or none; answers the comments of the whole batch.

        A member that is left out stays, null clears it. To change a principal's comment needs `write:results`, too.
        Members not as `expected` are 409: `errors.rows` names each by its place in the list, from 0.
        """
        return service.enter_comments(**body, principal=current_principal())


@blp.route("/comments/download-sheet")
class SheetToFillIn(MethodView):
    """The comment sheet of a batch, to be filled in."""

    @blp.requires(Permission.RESULTS_READ, own=related("F"), run=Run.AUDITED)
    @blp.arguments(CommentFilterSchema, location="query")
    @blp.returns_file()
    def get(self, filters: dict[str, Any]) -> Any:
        """Download a comment sheet: an Excel workbook with everyone in the batch."""
        return sheet.download(**filters)


@blp.route("/comments/upload-sheet")
class FilledInSheet(MethodView):
    """The comment sheet of a batch, filled in."""

    @blp.requires(Permission.METRICS_WRITE, own=related("F"))
    @blp.takes_file("comments_sheet")
    @blp.arguments(CommentUploadSchema, location="query")
    @blp.answers(409)
    @blp.returns(UploadedRowsSchema)
    def post(self, file: FileStorage, options: dict[str, Any]) -> Any:
        """Enter the comments of a filled-in comment sheet, all or none; a blank cell changes nothing.

        The term is the one on the sheet Details, where there is one. To change a principal's comment needs
        `write:results`, too. Cells changed in the school since the download are 409: `errors.rows` names each, and its
        author.
        """
        upload = sheet.CommentUpload(file_name=file.filename or "", principal=current_principal(), **options)
        return upload.run(file.stream)
