"""Contacts over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.core.statements import row_lock
from school_service.features.people.contacts import service
from school_service.features.people.contacts.schemas import (
    ContactChangesSchema,
    ContactFilterSchema,
    ContactSchema,
    NewContactSchema,
)
from school_service.features.people.models import Contact
from school_service.web.blueprint import Blueprint

blp = Blueprint("contacts", __name__, description="How users can be reached.")


@blp.route("/contacts")
class Contacts(MethodView):
    """The contacts of users."""

    @blp.requires(Permission.CONTACTS_READ, own=related("FM"))
    @blp.arguments(ContactFilterSchema, location="query")
    @blp.returns(ContactSchema, if_empty=service.check_contact_filter)
    def get(self, filters: dict[str, Any]) -> Any:
        """Show the newest contact of a user that has this e-mail address and phone number, where given."""
        return service.newest_contact(**filters)

    @blp.requires(Permission.CONTACTS_WRITE, own=related("M"), school_required=False)
    @blp.arguments(NewContactSchema)
    @blp.returns(ContactSchema)
    def post(self, contact: dict[str, Any]) -> Any:
        """Create a contact of a user, who has at most one for an e-mail address."""
        return service.contact(service.create_contact(**contact).id)


@blp.route("/contacts/<uuid:id>")
class OneContact(MethodView):
    """A contact of a user."""

    @blp.requires(Permission.CONTACTS_WRITE, own=related("M"))
    @blp.arguments(ContactChangesSchema(partial=True))
    @blp.returns(ContactSchema)
    @blp.if_match(service.contact, row_lock(Contact))
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Change the given members of a contact; the owner stays."""
        return service.contact(service.change_contact(contact_id=id, **changes))

    @blp.requires(Permission.CONTACTS_DELETE)
    @blp.returns_deleted()
    @blp.if_match(service.contact, service.DELETION.row_lock)
    def delete(self, id: UUID) -> Any:
        """Delete a contact that is not an employee's own."""
        return service.delete_contact(contact_id=id)
