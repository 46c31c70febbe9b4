"""The letterhead over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView
from werkzeug.datastructures import FileStorage

from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING, REFUSED
from school_service.features.school.letterheads import reads, service
from school_service.features.school.letterheads.schemas import LetterheadChangesSchema, LetterheadSchema
from school_service.features.school.models import LOGO, MOST_BYTES, SIGNATURE
from school_service.features.school.settings.service import lock_settings
from school_service.printing.picture_format import JPEG, PNG
from school_service.web.blueprint import Blueprint

blp = Blueprint("letterheads", __name__, description="The head of the school's papers.")


@blp.route("/letterhead")
class Letterhead(MethodView):
    """The letterhead on the school's paper."""

    @blp.requires(Permission.SETTINGS_READ, own=EVERYTHING)
    @blp.returns(LetterheadSchema)
    def get(self) -> Any:
        """Show the letterhead of the school's paper; null where its registered details hold."""
        return reads.letterhead()

    @blp.requires(Permission.SETTINGS_WRITE)
    @blp.arguments(LetterheadChangesSchema)
    @blp.returns(LetterheadSchema)
    @blp.if_match(reads.letterhead, lock_settings)
    def patch(self, changes: dict[str, Any]) -> Any:
        """Change the letterhead of the school's paper; null takes it back. Published cards stay as they are."""
        return service.change_letterhead(**changes)


def _picture(which: str) -> None:
    """Make the view of the logo or the signature."""

    @blp.route(f"/letterhead/{which}", endpoint=f"Letterhead{which.title()}")
    class LetterheadPicture(MethodView):
        """A picture of the letterhead."""

        # A picture of the signature is enough to sign.
        @blp.requires(Permission.SETTINGS_READ, own=EVERYTHING if which == LOGO else REFUSED)
        @blp.summary(f"Show the {which}.")
        @blp.answers(404)
        @blp.returns_file(PNG, JPEG)
        def get(self) -> Any:
            """PNG or JPEG, as it was uploaded."""
            return service.read_picture(which)

        @blp.requires(Permission.SETTINGS_WRITE)
        @blp.summary(f"Set the {which}.")
        @blp.takes_file("image", most=MOST_BYTES, remedy=service.MAKE_SMALLER)
        @blp.returns(LetterheadSchema)
        def put(self, image: FileStorage) -> Any:
            """PNG or JPEG of at most 512 KiB, from 16 to 2,000 pixels a side.

            It is printed once, to see that it can be. Published cards keep their picture.
            """
            return service.put_picture(which, content=image.read())

        @blp.requires(Permission.SETTINGS_DELETE)
        @blp.summary(f"Take the {which} away.")
        @blp.answers(404)
        @blp.returns(LetterheadSchema)
        def delete(self) -> Any:
            """Published cards keep their picture."""
            return service.delete_picture(which)


_picture(LOGO)
_picture(SIGNATURE)
