"""Switching roles, as it is taken and answered."""

from __future__ import annotations

from marshmallow import fields

from school_service.features.people.gains.schemas import PlantedSchema
from school_service.features.people.models import REACHES
from school_service.features.role_reaches.judging import MOST
from school_service.web.fields import Choice, Id, ListOf, Nested, QueryBoolean, StrictBoolean
from school_service.web.schemas import (
    NamedSchema,
    RecordSchema,
    Schema,
    described,
    list_of,
    record_of,
    text_of,
    texts,
)

MAX_ROLES = 100
_ALL = f"How many there are: the list has {MOST:,} at most."


class NewRoleReachSchema(Schema):
    """A role, and its intended reach."""

    role = described(Id, "The id of the role.")
    reach = described(Choice, "SCHOOL: the whole school's records; OWN: one's own.", REACHES)


class RoleReachesSchema(Schema):
    """The roles to switch."""

    roles = described(ListOf, "The others stay as they are.", Nested(NewRoleReachSchema), most=MAX_ROLES)
    add_seeded = described(
        StrictBoolean,
        "Make the roles of a new school that this one has none of the name of, and give the one for "
        "students to the accounts that are there.",
        load_default=False,
    )
    fingerprint = fields.Raw(
        allow_none=True,
        metadata={"description": "Taken in this release, and not looked at.", "deprecated": True},
    )


class RoleReachOptionsSchema(Schema):
    """Whether to switch at all."""

    dry_run = described(QueryBoolean, "Answers the changes to come, and changes nothing.", load_default=False)


class SwitchedRoleSchema(NamedSchema):
    """A switched role."""

    before = text_of(REACHES, "The reach that it had.")
    reach = text_of(REACHES, "The reach that it has then.")


class AffectedUserSchema(RecordSchema):
    """A user with changed answers."""

    user = described(fields.UUID, "The id of the user.")
    username = fields.String()
    name = described(fields.String, "First and last name.")
    narrowed = texts("Permissions that reach one's own records alone then.")
    refused = texts("Permissions by which nothing can be done any more then.")
    widened = texts("Permissions that are new, or reach the whole school then.")
    subjects = described(fields.Integer, "How many cohort subjects they teach.")
    classes = described(fields.Integer, "How many batches they look after.")
    children = described(fields.Integer, "Of how many students they are a guardian.")


class UncoveredSubjectSchema(RecordSchema):
    """A subject without a teacher in an arm."""

    cohort_subject = described(fields.UUID, "The id of the cohort subject.")
    classroom = described(fields.String, "The classroom's name.")
    subject = described(fields.String, "The subject's name.")
    batch_name = described(fields.String, "The arm's name.")


class UncoveredBatchSchema(RecordSchema):
    """A batch without a form teacher."""

    batch = fields.UUID()
    classroom = described(fields.String, "The classroom's name.")
    batch_name = described(fields.String, "The arm's name.")


class UncoveredSchema(RecordSchema):
    """Subjects and batches of the current session within nobody's own reach."""

    subjects = list_of(UncoveredSubjectSchema, "Subjects and arms without a teacher.")
    subjects_total = described(fields.Integer, _ALL)
    batches = list_of(UncoveredBatchSchema, "Batches without a form teacher.")
    batches_total = described(fields.Integer, _ALL)


class DifferingRoleSchema(RecordSchema):
    """A role with other permissions than the role of the same name of a new school.

    So have the roles of a school older than such permissions. They stay as they are.
    """

    role = described(fields.UUID, "The id of the role.")
    name = fields.String()
    more = texts("Permissions beyond a new school's.")
    less = texts("A new school's permissions that it lacks.")


class SwitchedRolesSchema(PlantedSchema):
    """The changes by a switch of roles, made or foreseen."""

    roles = list_of(SwitchedRoleSchema, "The roles that were named.")
    added = texts("The names of roles that are new.")
    users = list_of(
        AffectedUserSchema,
        "Whose answers change, by username: first all who lose something, then others up to "
        f"{MOST:,} in all.",
    )
    users_total = described(fields.Integer, "How many there are.")
    users_losing = described(fields.Integer, "How many of them lose something: all are named.")
    differs = list_of(
        DifferingRoleSchema, "Roles with other permissions than those of the same name of a new school."
    )
    uncovered = record_of(UncoveredSchema, "Records that nobody would reach as their own.")
