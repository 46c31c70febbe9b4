"""Contacts of users."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import InstrumentedAttribute

from school_service.core.database import db
from school_service.core.deletion import Deletion
from school_service.core.errors import Invalid, Unknown
from school_service.core.narrowing import judged_before, within
from school_service.core.reach import Reach
from school_service.core.read_models import Query, read_model
from school_service.core.records import change, get_referenced, not_found
from school_service.core.statements import NewRow, execute, new_row
from school_service.features.audit.service import audit_change
from school_service.features.people.models import Contact, User
from school_service.features.reach import scopes

ENTITY = "contact"

_owner_is_deleted = (
    select(User.deleted_at.is_not(None))
    .where(User.id == Contact.owner_id)
    .correlate(Contact)
    .scalar_subquery()
)
DELETION = Deletion(Contact, {"owner": Contact.owner_id, "owner_is_deleted": _owner_is_deleted})


def or_null(column: InstrumentedAttribute[str]) -> ColumnElement[str | None]:
    """Answer null for an empty text: a value that an import did not have."""
    return func.nullif(column, "").label(column.key)


@read_model
def contacts(reach: Reach | None = None) -> Query:
    """Read model of ContactSchema, the newest first."""
    query = select(
        Contact.id,
        Contact.owner_id.label("owner"),
        or_null(Contact.email_address),
        or_null(Contact.phone_number),
        or_null(Contact.physical_address),
    ).order_by(Contact.created_at.desc(), Contact.id.desc())
    return query if reach is None else query.where(scopes.accounts_in_reach(reach, Contact.owner_id))


@judged_before
def contact(contact_id: UUID) -> Query:
    """Read model of ContactSchema, for a written one."""
    return contacts.query().where(Contact.id == contact_id)


@read_model
def newest_contact(
    user_id: UUID,
    email_address: str | None = None,
    phone_number: str | None = None,
    reach: Reach | None = None,
) -> Query:
    """Read model of ContactSchema, for the newest of a user's with this e-mail address and phone number."""
    query = (
        contacts.query(reach)
        .join(User, User.id == Contact.owner_id)
        .where(Contact.owner_id == user_id, User.deleted_at.is_(None))
        .limit(1)
    )
    if email_address is not None:
        query = query.where(Contact.email_address == email_address)
    if phone_number is not None:
        query = query.where(Contact.phone_number == phone_number)
    return query


def create_contact(*, owner: UUID, email_address: str, phone_number: str, physical_address: str) -> NewRow:
    """Add a contact of a user, one for each e-mail address; a second is a conflict.

    Raises Invalid for an unknown or deleted owner.
    """
    _check_owner(owner, "owner", for_update=True)
    contact = new_contact(
        owner=owner, email_address=email_address, phone_number=phone_number, physical_address=physical_address
    )
    execute(contact)
    return contact


def new_contact(*, owner: UUID, email_address: str, phone_number: str, physical_address: str) -> NewRow:
    """Make a contact to insert, of an owner safe from deletion meanwhile, and its entry in the audit log."""
    contact = new_row(
        Contact,
        owner_id=owner,
        email_address=email_address,
        phone_number=phone_number,
        physical_address=physical_address,
    )
    # The log names the owner, and nothing that the contact says.
    audit_change("contact", contact.id, new={"owner": owner})
    return contact


def change_contact(*, contact_id: UUID, **changes: Any) -> UUID:
    """Change any of a contact's members but its owner; an e-mail address already among the owner's is a conflict.

    Raises NotFound, for the contact of a deleted owner too.
    """
    query = (
        select(Contact)
        .join(User, User.id == Contact.owner_id)
        .where(Contact.id == contact_id, User.deleted_at.is_(None))
        .with_for_update(key_share=True, of=Contact)
    )
    contact = db.session.scalars(within(query, scopes.accounts_in_reach, Contact.owner_id)).one_or_none()
    if contact is None:
        raise not_found(Contact)
    _old, new = change(contact, changes)
    if new:
        audit_change(ENTITY, contact.id, old={}, new={"changed": sorted(new)})
    return contact.id


def delete_contact(*, contact_id: UUID) -> UUID:
    """Delete a contact; an employee's stays with the employee, and is a conflict.

    Raises NotFound, for the contact of a deleted owner too.
    """
    record = DELETION.lock(contact_id)
    if record.values["owner_is_deleted"]:
        raise not_found(Contact)
    audit_change(ENTITY, contact_id, old={"owner": record.values["owner"]})
    return record.delete()


def check_contact_filter(*, user_id: UUID, **_others: str | None) -> None:
    """Check the existence of the user in a filter of contacts. Raises Invalid."""
    _check_owner(user_id, "user_id")


def _check_owner(user_id: UUID, field: str, *, for_update: bool = False) -> None:
    if get_referenced(User, user_id, field, for_update=for_update).deleted_at is not None:
        raise Invalid.field(field, Unknown("no such user"))
