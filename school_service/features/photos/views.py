"""Photos over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView
from werkzeug.datastructures import FileStorage

from school_service.auth.policies import by_relation
from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.core.statements import row_lock
from school_service.features.people.models import User
from school_service.features.people.users.schemas import UserSchema
from school_service.features.photos import reads, service
from school_service.web.app_state import current_principal
from school_service.web.blueprint import Blueprint
from school_service.web.fields import sought_text
from school_service.web.rendering import render_bytes
from school_service.web.schemas import Schema, described

blp = Blueprint("photos", __name__, description="Photos of users.")

JPEG = "image/jpeg"


class PhotoVersionSchema(Schema):
    """The version of the photo in its address."""

    v = described(
        sought_text,
        "In addresses, so that another photo has another one. It chooses nothing.",
        required=False,
    )


@blp.route("/users/<uuid:id>/photo")
class Photo(MethodView):
    """The photo of a user."""

    @blp.requires(by_relation(Permission.USERS_READ), own=related("TFSGM"))
    @blp.arguments(PhotoVersionSchema, location="query")
    @blp.answers(404)
    @blp.returns_picture(JPEG)
    def get(self, version: dict[str, Any], id: UUID) -> Any:
        """Show the photo of a user.

        Users need no permission for their own, and for photos of students and form teachers related to them.
        """
        return reads.photo(id)

    @blp.requires(Permission.USERS_WRITE)
    @blp.takes_file("image", most=service.MOST_BYTES, remedy=service.MAKE_SMALLER)
    @blp.returns(UserSchema)
    def put(self, image: FileStorage, id: UUID) -> Any:
        """Set the photo of a user: a JPEG or PNG of at most 8 MiB; needs every permission that the user has.

        From 64 to 8,000 pixels a side, and 24 million in all. It is made anew: upright, within 480 by 600 pixels,
        without the camera's metadata, such as the place.
        """
        return service.put_photo(user_id=id, content=image.read(), principal=current_principal())

    @blp.requires(Permission.USERS_WRITE)
    @blp.answers(404)
    @blp.returns(UserSchema, tagged=False)
    @blp.if_match(reads.photo, row_lock(User), render=render_bytes)
    def delete(self, id: UUID) -> Any:
        """Take the photo of a user away; needs every permission that the user has."""
        return service.delete_photo(user_id=id, principal=current_principal())
