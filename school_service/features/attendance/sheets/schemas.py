"""Arguments of the sheets of registers."""

from __future__ import annotations

from school_service.features.school.sessions.schemas import term_text
from school_service.web.fields import Id, IsoDate
from school_service.web.schemas import Schema, UploadOptionsSchema, described


class RegisterWeekSchema(Schema):
    """The sheet to fill in."""

    batch = described(Id, "A cohort's id is its first batch.")
    week = described(IsoDate, "The Monday of the week.")


class RegisterUploadSchema(UploadOptionsSchema):
    """The batch of a sheet, and how to enter it."""

    batch = Id()
    week = described(
        IsoDate,
        "As for the download; of a sheet without a sheet Details, such as a .csv file. Without it "
        "the columns tell the days.",
        required=False,
    )


class RegisterTermSchema(Schema):
    """The register to print."""

    batch = described(Id, "A cohort's id is its first batch.")
    term = term_text("the batch's")
