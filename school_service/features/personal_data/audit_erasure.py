"""Erasing values of erased people in the audit log: the operator's work, as requests can only add to it."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import text

from school_service.features.audit.service import Change, record_changes
from tenants.operator_connection import connected_to_school
from tenants.tenancy import Tenancy

ENTITY = "audit"
SPARED = (
    *("erased", "user", "contacts", "bank_account", "next_of_kin"),
    *("deleted", "password", "permissions", "role", "sessions"),
    *("batch", "changed", "cohort", "employee", "owner", "teacher"),
    *("cohort_subject", "publication", "register", "student", "term"),
    *("guardian", "primary", "receives_reports", "stopped"),
    *("client", "session", "ended", "photo"),
)
"""Members of `old` and `new` with values to keep: acts on an account, and ids and names of things, not of people."""

# Finds the people who were erased: the account and its name, and the ids of all records about them. The ids of deleted
# records are in the entry that says that the person was erased.
_ERASED = """
WITH erased AS (
    SELECT id AS user_id, first_name || ' ' || last_name AS name FROM users WHERE erased_at IS NOT NULL
), people AS (
    SELECT s.id, s.user_id FROM students s JOIN erased e ON e.user_id = s.user_id
    UNION ALL SELECT s.id, s.user_id FROM employees s JOIN erased e ON e.user_id = s.user_id
), entries AS (
    SELECT a.new FROM audit_entries a JOIN people p ON p.id = a.entity_id WHERE a.new @> '{"erased": true}'
), records AS (
    SELECT user_id AS id FROM erased
    UNION SELECT id FROM people
    UNION SELECT c.id FROM contacts c JOIN erased e ON e.user_id = c.owner_id
    UNION SELECT jsonb_array_elements_text(new -> 'contacts')::uuid FROM entries
    UNION SELECT (new ->> 'bank_account')::uuid FROM entries
    UNION SELECT (new ->> 'next_of_kin')::uuid FROM entries
)"""

_WITHOUT_VALUES = """
CASE WHEN jsonb_typeof({column}) = 'object' THEN coalesce(
    (SELECT jsonb_object_agg(key, CASE WHEN key = ANY(:spared) THEN value ELSE 'null' END) FROM jsonb_each({column})),
    '{{}}'
) END"""

_VALUES = text(f"""{_ERASED}, emptied AS (
    SELECT a.id, {_WITHOUT_VALUES.format(column="a.old")} AS old, {_WITHOUT_VALUES.format(column="a.new")} AS new
    FROM audit_entries a JOIN records r ON r.id = a.entity_id
)
UPDATE audit_entries a SET old = emptied.old, new = emptied.new
FROM emptied
WHERE emptied.id = a.id AND (a.old, a.new) IS DISTINCT FROM (emptied.old, emptied.new)
RETURNING a.id
""")  # noqa: S608 -- of constants

_ACTORS = text(f"""{_ERASED}
UPDATE audit_entries a SET actor_name = e.name, address = NULL FROM erased e
WHERE a.actor = e.user_id::text AND (a.actor_name <> e.name OR a.address IS NOT NULL)
RETURNING a.id
""")  # noqa: S608 -- of constants


def erase_audit(tenancy: Tenancy, school_id: UUID) -> int:
    """Empty the values of erased people in a school's audit log; returns the number of changed entries.

    The act, its time and its actor stay; an erased actor appears under the pseudonym. A second call changes nothing. If
    something changed, an entry says so. Raises UnknownSchool, SchoolDeleting, SchoolUpgrading.
    """
    with connected_to_school(tenancy, school_id, as_owner=True) as (connection, school):
        changed = set(connection.execute(_VALUES, {"spared": list(SPARED)}).scalars())
        changed |= set(connection.execute(_ACTORS).scalars())
        if changed:
            new = {"erased": True, "entries": len(changed)}
            record_changes(connection, ENTITY, [Change(school.id, {}, new)])
        return len(changed)
