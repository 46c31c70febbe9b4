"""The import of students over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView
from werkzeug.datastructures import FileStorage

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.classes.student_imports import sheet, update_sheet
from school_service.features.classes.student_imports.schemas import (
    ClassListSchema,
    ImportedSchema,
    StudentUpdateSchema,
    UpdatedSchema,
)
from school_service.features.people.students.schemas import validate_changes, validate_student
from school_service.web.app_state import current_principal
from school_service.web.blueprint import CSV, SPREADSHEET, Blueprint
from school_service.web.operations import Run
from school_service.web.schemas import ImportOptionsSchema

blp = Blueprint("student-imports", __name__, description="Students from a sheet, all of its rows or none.")


@blp.route("/students/import-template")
class ImportTemplate(MethodView):
    """The workbook to fill in for an import."""

    @blp.requires(Permission.STUDENTS_READ)
    @blp.returns_file()
    def get(self) -> Any:
        """Download the workbook to fill in; its sheet Help explains each column."""
        return sheet.template()


@blp.route("/students/import-sheet")
class ImportSheet(MethodView):
    """The import of students."""

    @blp.requires(Permission.STUDENTS_WRITE)
    @blp.arguments(ImportOptionsSchema, location="query")
    @blp.takes_file("sheet")
    @blp.returns(ImportedSchema)
    def post(self, options: dict[str, Any], file: FileStorage) -> Any:
        """Create the students of a workbook (.xlsx) like the template: all of its rows, or none.

        The column `class` enrolls the student of a row, and needs the permission `write:cohorts` too. A .csv file
        will do. Bad rows are 422: `errors.rows` names row, column, code (`required`, `invalid`, `duplicate` in the
        sheet, `taken` in the school) and message, of at most 200 rows. A sheet has at most 20,000 rows.
        Passwords need `read:results` for the whole school, and so does a guardian with an account. They make an import
        slower: each costs some 40 ms of computing, and a sheet may have 300.
        """
        upload = sheet.StudentUpload(validate=validate_student, principal=current_principal, **options)
        return upload.run(file.stream)


@blp.route("/students/update-sheet")
class UpdateSheet(MethodView):
    """The records of students who are there, as a sheet."""

    @blp.requires(Permission.STUDENTS_READ, run=Run.AUDITED, own=related("F"))
    @blp.arguments(ClassListSchema, location="query")
    @blp.returns_file(SPREADSHEET, CSV)
    def get(self, filters: dict[str, Any]) -> Any:
        """Download a class list: the records of the students of a batch, a cohort or a session, to read or correct."""
        return update_sheet.download(**filters)

    @blp.requires(Permission.STUDENTS_WRITE)
    @blp.takes_file("sheet")
    @blp.arguments(StudentUpdateSchema, location="query")
    @blp.answers(409)
    @blp.returns(UpdatedSchema)
    def post(self, file: FileStorage, options: dict[str, Any]) -> Any:
        """Correct the records of students by a class list that was filled in, all rows or none.

        A row is of the student with its `id`, or else its admission number; a blank cell leaves the value alone. Of a
        sheet that was downloaded, the cells that were changed since are entered. Values that somebody else has changed
        since the download are 409: `errors.rows` names each. A guardian with an account who gets a child needs
        `read:results`. Usernames, passwords and classes are not changed by it.
        """
        upload = update_sheet.StudentUpdate(
            validate=validate_changes, principal=current_principal(), **options
        )
        return upload.run(file.stream)
