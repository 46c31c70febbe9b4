"""The records of each entry of the audit log, and the statement of their changes.

An entry tells of the record of its id by its action (`Resource.entity`). The rules tell of others: a list with its row,
and records that are hidden, shown or changed with its record, found in the tables.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import starmap
from typing import Any, NamedTuple

from school_service.core.statements import stored_in
from school_service.features.exchange.copies.resources import RESOURCES, SETTINGS

CREATED, UPDATED, DELETED, ERASED = OPERATIONS = ("created", "updated", "deleted", "erased")

NOT_OF_RECORDS = frozenset(
    {
        *("sign-in", "refused-sign-in", "user-session", "invitation", "identity"),
        *("export", "backup", "restore", "audit", "audit-pruning", "permission", "school"),
    }
)
"""Entities of the audit log that tell of no record: of security, and of reading and keeping."""


class TellingRule(NamedTuple):
    """Entries `e` of an entity tell of the records whose ids a SELECT finds; `became` is SQL."""

    entity: str
    resource: str
    became: str
    ids: str = "SELECT e.entity_id"


# The operation on a record, in SQL: by the entry's action; updated; updated or created, as long as it is there.
_BY_ACTION = """
CASE WHEN {ERASED} THEN 'erased' WHEN e.old ->> 'deleted' = 'true' THEN 'created'
ELSE CASE e.action WHEN 'create' THEN 'created' WHEN 'update' THEN 'updated' ELSE 'deleted' END END"""
_UPDATED, _DELETED, _ERASED = "'updated'", "'deleted'", "'erased'"
_IF_THERE, _SHOWN = "'updated if there'", "'created if there'"
_STAYS = "CASE e.action WHEN 'create' THEN 'created' ELSE 'updated' END"

# Parts of statements, named in capitals; names in small letters are of tables.
_PARTS = {
    "ERASED": "coalesce(e.new ->> 'erased' = 'true', false)",
    "HIDES": "(e.action = 'delete' OR e.old ->> 'deleted' = 'true')",
    "VALUES": "coalesce(e.new, e.old)",
    "ITS_TERM": "coalesce(e.new, e.old) ->> 'term'",
    "OF_STUDENT": "WHERE student_id = e.entity_id AND {ERASED}",
    "OF_TEACHER": "t JOIN {employees} p ON p.id = t.employee_id WHERE p.user_id = e.entity_id",
    "OF_EMPLOYEE": "WHERE employee_id = e.entity_id AND {HIDES}",
    "OLDER": "{publications} o JOIN {publications} p ON p.id = e.entity_id AND o.batch_id = p.batch_id"
    " AND o.term_id = p.term_id AND o.version = p.version - 1",
}
_OF_COHORT = "SELECT student_id FROM {enrollments} WHERE cohort_id::text = {VALUES} ->> 'cohort'"
_MADE_COMPULSORY = (
    "SELECT student_id FROM {subject_enrollments}"
    " WHERE cohort_subject_id = e.entity_id AND e.action = 'update' AND e.new ->> 'elective' = 'false'"
)
_OF_SUBMISSION = (
    "SELECT id FROM {assessments}"
    " WHERE cohort_subject_id = e.entity_id AND deleted_at IS NULL AND term_id::text = {ITS_TERM}"
)
_ACCOUNT = "SELECT id FROM {users} WHERE id::text = e.new ->> 'user' AND erased_at IS NOT NULL AND {ERASED}"
_CONTACTS = "SELECT jsonb_array_elements_text(coalesce(e.new -> 'contacts', '[]')) WHERE {ERASED}"
_CARDS = "SELECT id FROM {report_cards} WHERE publication_id = e.entity_id"
_OLDER_CARDS = "SELECT c.id FROM {OLDER} JOIN {report_cards} c ON c.publication_id = o.id"
_LAST_DAY = (
    "SELECT student_id FROM {enrollments} WHERE student_id = e.entity_id AND e.new -> 'changed' ? 'left_on'"
)
_LEFT = "SELECT id FROM {publications} WHERE rules -> 'left' @> to_jsonb(e.entity_id) AND {ERASED}"

_RULES: tuple[tuple[str, ...], ...] = (
    ("settings", SETTINGS, _UPDATED, "SELECT 'settings'"),
    ("result-settings", SETTINGS, _UPDATED, "SELECT 'result-settings' WHERE NOT {VALUES} ? 'level'"),
    ("result-settings", SETTINGS, _UPDATED, "SELECT 'level-settings' WHERE {VALUES} ? 'level'"),
    ("attendance-settings", SETTINGS, _UPDATED, "SELECT 'attendance-settings'"),
    ("attendance-code", SETTINGS, _UPDATED, "SELECT 'attendance-codes'"),
    ("promotion-rules", SETTINGS, _UPDATED, "SELECT 'promotion-rules'"),
    ("letterhead", SETTINGS, _UPDATED, "SELECT 'letterhead'"),
    ("grade-config", SETTINGS, _UPDATED, "SELECT 'grade-configs'"),
    ("grade-scale", SETTINGS, _UPDATED, "SELECT 'grade-scales'"),
    ("department", SETTINGS, _UPDATED, "SELECT 'departments'"),
    ("employee-category", SETTINGS, _UPDATED, "SELECT 'employee-categories'"),
    ("position", SETTINGS, _UPDATED, "SELECT 'positions'"),
    ("term-calendar", "terms", _UPDATED),
    ("user", "students", _UPDATED, "SELECT id FROM {students} WHERE user_id = e.entity_id"),
    ("user", "employees", _IF_THERE, "SELECT id FROM {employees} WHERE user_id = e.entity_id"),
    ("user", "contacts", _SHOWN, "SELECT id FROM {contacts} WHERE owner_id = e.entity_id AND {HIDES}"),
    ("user", "form-teachers", _IF_THERE, "SELECT t.batch_id FROM {form_teachers} {OF_TEACHER}"),
    ("user", "subject-teachers", _IF_THERE, "SELECT cohort_subject_id FROM {subject_teachers} {OF_TEACHER}"),
    ("employee", "bank-accounts", _BY_ACTION, "SELECT id FROM {bank_accounts} {OF_EMPLOYEE}"),
    ("employee", "next-of-kin", _BY_ACTION, "SELECT id FROM {next_of_kin} {OF_EMPLOYEE}"),
    ("student", "enrollments", _IF_THERE, _LAST_DAY),
    ("student", "registers", _UPDATED, "SELECT register_id FROM {marks} {OF_STUDENT}"),
    ("student", "absences", _IF_THERE, "SELECT assessment_id FROM {absences} {OF_STUDENT}"),
    ("student", "promotions", _UPDATED, "SELECT promotion_id FROM {promotion_decisions} {OF_STUDENT}"),
    ("student", "publications", _UPDATED, _LEFT),
    *((person, "users", _ERASED, _ACCOUNT) for person in ("student", "employee", "guardian")),
    *((person, "contacts", _DELETED, _CONTACTS) for person in ("student", "employee", "guardian")),
    ("student-guardian", "student-guardians", _IF_THERE),
    ("form-teacher", "form-teachers", _IF_THERE),
    ("subject-teacher", "subject-teachers", _IF_THERE),
    ("enrollment", "enrollments", _IF_THERE),
    ("enrollment", "subject-enrollments", _IF_THERE),
    ("enrollment", "students", _UPDATED),
    ("subject-enrollment", "subject-enrollments", _IF_THERE),
    ("cohort-subject", "subject-enrollments", _IF_THERE, _OF_COHORT),
    ("cohort-subject", "subject-enrollments", _IF_THERE, _MADE_COMPULSORY),
    ("absence", "absences", _IF_THERE),
    ("submission", "submissions", _IF_THERE, "SELECT e.entity_id || ':' || ({ITS_TERM})"),
    ("submission", "assessments", _UPDATED, _OF_SUBMISSION),
    ("attendance-correction", "registers", _IF_THERE, "SELECT {VALUES} ->> 'register'"),
    ("comment", "comments", _BY_ACTION, "SELECT e.entity_id || ':' || ({ITS_TERM})"),
    ("publication", "publications", _BY_ACTION, "SELECT e.entity_id WHERE NOT {VALUES} ? 'publication'"),
    ("publication", "publications", _UPDATED, "SELECT o.id FROM {OLDER}"),
    ("publication", "report-cards", _BY_ACTION, _CARDS),
    ("publication", "report-cards", _UPDATED, _OLDER_CARDS),
    ("promotion", "promotions", _STAYS, "SELECT coalesce({VALUES} ->> 'promotion', e.entity_id::text)"),
    ("graduate", "students", _UPDATED, "SELECT {VALUES} ->> 'student'"),
)
RULES = tuple(starmap(TellingRule, _RULES))

_DIRECT = tuple((resource.entity, resource.name) for resource in RESOURCES if resource.entity is not None)
ENTITIES = {entity for entity, _ in _DIRECT} | {rule.entity for rule in RULES}
"""The entities of the audit log that tell of records."""

_RECORDS = {resource.name: resource for resource in RESOURCES if resource.only is None}

# Of one record several entries of a set are one change.
_ONE = """
CASE WHEN 'erased' = ANY (steps) THEN 'erased'
WHEN steps[1] = 'created' AND steps[cardinality(steps)] = 'deleted' THEN NULL
WHEN steps[cardinality(steps)] = 'deleted' THEN 'deleted'
WHEN steps[1] = 'deleted' THEN 'updated'
WHEN 'created' = ANY (steps) THEN 'created' ELSE 'updated' END"""

# The changes of each set; they end with the set that brings them to the limit.
_CHANGES = """
WITH told AS MATERIALIZED (
    SELECT number, at, resource, id, {ONE} AS operation
    FROM (
        SELECT s.number, s.at, t.resource, t.id, array_agg({BECAME} ORDER BY t.at, t.place) AS steps
        FROM {change_sets} s CROSS JOIN LATERAL (
{TOLD}
        ) AS t (resource, id, at, place, became)
        WHERE s.number > %s AND s.number <= %s AND t.id IS NOT NULL
        GROUP BY s.number, s.at, t.resource, t.id
    ) each
), ended AS (
    SELECT min(number) AS number FROM (
        SELECT number, sum(count(*)) OVER (ORDER BY number) AS so_far
        FROM told WHERE operation IS NOT NULL GROUP BY number
    ) counted WHERE so_far >= %s
)
SELECT json_build_object('number', s.number, 'id', s.id, 'changes', coalesce((
    SELECT json_agg(
        json_build_object('resource', resource, 'id', id, 'operation', operation, 'at', at)
        ORDER BY number, resource, id
    ) FROM told WHERE operation IS NOT NULL AND number <= s.number
), '[]'))::text AS body, NULL::boolean AS empty
FROM {change_sets} s WHERE s.number = coalesce((SELECT number FROM ended), %s)
    AND (%s OR EXISTS (SELECT FROM {change_sets} WHERE number = %s AND id = %s))
"""


# The records that entries of one entity tell of by a rule, and those that entries tell of by their ids.
_BY_RULE = """
SELECT '{RESOURCE}', x.id::text, e.at, e.id, {BECAME}
FROM {audit_entries} e CROSS JOIN LATERAL ({IDS}) AS x (id)
WHERE e.change_set = s.id AND e.entity = '{ENTITY}'"""
_BY_ID = """
SELECT m.resource, e.entity_id::text, e.at, e.id, {BECAME}
FROM {audit_entries} e JOIN (VALUES {PAIRS}) AS m (entity, resource) ON m.entity = e.entity
WHERE e.change_set = s.id"""


class _Names(dict[str, str]):
    """Gives parts by their names, and tables as they are on the school's server."""

    def __missing__(self, name: str) -> str:
        return with_table_names(_PARTS[name]) if name.isupper() else stored_in(name)


def with_table_names(sql: str, **parts: str) -> str:
    """Write a statement with the names of its tables, given in braces, and its parts."""
    return sql.format_map(_Names(parts))


def entities_of(names: Collection[str]) -> list[str]:
    """Name the entities of the log that tell of these resources."""
    return sorted(
        {entity for entity, resource in (*_DIRECT, *(rule[:2] for rule in RULES)) if resource in names}
    )


def changes_between(
    after: tuple[int, str], until: int, limit: int, entities: Collection[str], names: Collection[str]
) -> tuple[str, tuple[Any, ...]] | None:
    """Write the statement of the changes of resources told by entries of some entities, and its parameters.

    It is of the sets behind `after`, number and id of one, up to `until`, and ends with the set that brings it to the
    limit. It has no row if the set `after` is not there any more. None if no entry tells of the resources.
    """
    direct = [pair for pair in _DIRECT if pair[0] in entities and pair[1] in names]
    rules = [rule for rule in RULES if rule.entity in entities and rule.resource in names]
    branches = [
        with_table_names(
            _BY_RULE,
            RESOURCE=rule.resource,
            ENTITY=rule.entity,
            BECAME=with_table_names(rule.became),
            IDS=with_table_names(rule.ids),
        )
        for rule in rules
    ]
    if direct:
        pairs = ", ".join(f"('{entity}', '{resource}')" for entity, resource in direct)
        branches.append(with_table_names(_BY_ID, PAIRS=pairs, BECAME=with_table_names(_BY_ACTION)))
    if not branches:
        return None
    became, parameters = _became(
        sorted({rule.resource for rule in rules if rule.became in (_IF_THERE, _SHOWN)})
    )
    sql = with_table_names(_CHANGES, ONE=_ONE, TOLD="\nUNION ALL".join(branches), BECAME=became)
    number, set_id = after
    return sql, (*parameters, number, until, limit, until, not number, number, set_id)


def _became(resources: Sequence[str]) -> tuple[str, tuple[Any, ...]]:
    """Write the operation on a record: of one of these resources by whether it is there now."""
    if not resources:
        return "t.became", ()
    cases = " ".join(f"WHEN '{name}' THEN ({_RECORDS[name].there.sql})" for name in resources)
    there = f"CASE t.resource {cases} END"
    sql = f"CASE WHEN t.became NOT LIKE '%% if there' THEN t.became WHEN {there} THEN split_part(t.became, ' ', 1)"
    return f"{sql} ELSE 'deleted' END", tuple(
        value for name in resources for value in _RECORDS[name].there.parameters({})
    )
