"""Read models of contacts."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select

from school_service.core.read_models import Query, read_model
from school_service.features.people.models import Contact, User


@read_model
def contacts() -> Query:
    """Read model of ContactSchema, the newest first."""
    return select(
        Contact.id,
        Contact.owner_id.label("owner"),
        Contact.email_address,
        Contact.phone_number,
        Contact.physical_address,
    ).order_by(Contact.created_at.desc(), Contact.id.desc())


@read_model
def contact(contact_id: UUID) -> Query:
    """Read model of ContactSchema, for one."""
    return contacts.query().where(Contact.id == contact_id)


@read_model
def newest_contact(user_id: UUID, email_address: str | None = None, phone_number: str | None = None) -> Query:
    """Read model of ContactSchema, for the newest of a user's with this e-mail address and phone number."""
    found = (
        contacts.query()
        .join(User, User.id == Contact.owner_id)
        .where(Contact.owner_id == user_id, User.deleted_at.is_(None))
        .limit(1)
    )
    if email_address is not None:
        found = found.where(Contact.email_address == email_address)
    if phone_number is not None:
        found = found.where(Contact.phone_number == phone_number)
    return found
