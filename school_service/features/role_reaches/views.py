"""Switching roles over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.features.role_reaches import service
from school_service.features.role_reaches.schemas import (
    RoleReachesSchema,
    RoleReachOptionsSchema,
    SwitchedRolesSchema,
)
from school_service.web.app_state import current_principal
from school_service.web.blueprint import SERVES_OWN, Blueprint

blp = Blueprint("role-reaches", __name__, description="To whose records roles reach.")


@blp.route("/role-reaches")
class RoleReaches(MethodView):
    """The reach of roles."""

    @blp.requires(Permission.ROLES_WRITE)
    @blp.arguments(RoleReachOptionsSchema, location="query")
    @blp.arguments(RoleReachesSchema)
    @blp.returns(SwitchedRolesSchema)
    def put(self, options: dict[str, Any], body: dict[str, Any]) -> Any:
        """Let roles reach the whole school's records, or one's own alone; answers the losses and gains of users.

        It works from each user's next request on. See it first: a dry run answers the same, and changes nothing.
        """
        return service.switch(
            roles=body["roles"],
            add_seeded=body["add_seeded"],
            **options,
            served=SERVES_OWN,
            principal=current_principal(),
        )
