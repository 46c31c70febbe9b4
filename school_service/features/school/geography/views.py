"""Reference data over HTTP: needs a token of the school, and no permission."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView
from marshmallow import fields

from school_service.features.school.geography import service
from school_service.web.blueprint import Blueprint
from school_service.web.fields import Id
from school_service.web.schemas import NamedSchema, Schema, described


class NationalitySchema(NamedSchema):
    """A country, as a nationality."""

    code = described(fields.String, "ISO 3166-1 alpha-2.")


class StateSchema(NamedSchema):
    """A state of Nigeria."""

    code = described(fields.String, "ISO 3166-2, without the country.")


class LgaSchema(NamedSchema):
    """A local government area of a state."""

    state = fields.UUID()


class LgaFilterSchema(Schema):
    """The filter of a list of local government areas."""

    state = Id(required=False)


blp = Blueprint("geography", __name__, description="Nationalities, states and local government areas.")


@blp.route("/nationalities")
class Nationalities(MethodView):
    """The nationalities."""

    @blp.requires(None)
    @blp.returns_list(NationalitySchema)
    def get(self) -> Any:
        """List the nationalities."""
        return service.list_nationalities()


@blp.route("/states")
class States(MethodView):
    """The states of Nigeria."""

    @blp.requires(None)
    @blp.returns_list(StateSchema)
    def get(self) -> Any:
        """List Nigeria's states and the Federal Capital Territory."""
        return service.list_states()


@blp.route("/lgas")
class Lgas(MethodView):
    """The local government areas."""

    @blp.requires(None)
    @blp.arguments(LgaFilterSchema, location="query")
    @blp.returns_list(LgaSchema)
    def get(self, filters: dict[str, Any]) -> Any:
        """List the local government areas, all or those of a state."""
        return service.list_lgas(state=filters.get("state"))
