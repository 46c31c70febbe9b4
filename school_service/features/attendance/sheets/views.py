"""Sheets of registers over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView
from werkzeug.datastructures import FileStorage

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.attendance.sheets import printed, week
from school_service.features.attendance.sheets.schemas import (
    RegisterTermSchema,
    RegisterUploadSchema,
    RegisterWeekSchema,
)
from school_service.web.app_state import current_principal
from school_service.web.blueprint import Blueprint
from school_service.web.operations import Run
from school_service.web.schemas import UploadedRowsSchema

blp = Blueprint(
    "register-sheets", __name__, description="Registers to fill in, a week at a time, and to print."
)


@blp.route("/registers/download-sheet")
class RegisterSheetToFillIn(MethodView):
    """The registers of a batch in a week, to be filled in."""

    @blp.requires(Permission.ATTENDANCE_READ, own=related("F"), run=Run.AUDITED)
    @blp.arguments(RegisterWeekSchema, location="query")
    @blp.answers(409)
    @blp.returns_file()
    def get(self, filters: dict[str, Any]) -> Any:
        """Download a week's registers: an Excel workbook with a column for each open part."""
        return week.download(**filters)


@blp.route("/registers/upload-sheet")
class FilledInRegisterSheet(MethodView):
    """The registers of a batch in a week, filled in."""

    @blp.requires(Permission.ATTENDANCE_WRITE, own=related("F"))
    @blp.takes_file("register_sheet")
    @blp.arguments(RegisterUploadSchema, location="query")
    @blp.answers(409)
    @blp.returns(UploadedRowsSchema)
    def post(self, file: FileStorage, options: dict[str, Any]) -> Any:
        """Mark registers by a filled-in sheet, all or none; a blank cell changes nothing.

        A register in which nobody is unmarked then is submitted. The week is the one on the sheet Details, where there
        is one. Marks changed since the download are 409: `errors.rows` names each, and its author.
        """
        upload = week.RegisterUpload(file_name=file.filename or "", principal=current_principal(), **options)
        return upload.run(file.stream)


@blp.route("/registers/download")
class RegisterToPrint(MethodView):
    """The register of a batch in a term, to be printed."""

    @blp.requires(Permission.ATTENDANCE_READ, own=related("F"), run=Run.AUDITED)
    @blp.arguments(RegisterTermSchema, location="query")
    @blp.returns_file()
    def get(self, filters: dict[str, Any]) -> Any:
        """Download the register of a term: an Excel workbook to be printed, with codes, totals and averages."""
        return printed.download(**filters)
