"""Switching roles, as it is taken and answered."""

from __future__ import annotations

from typing import Any

from marshmallow import fields, validate

from school_service.features.people.gains.schemas import PlantedSchema
from school_service.features.people.models import REACHES
from school_service.features.role_reaches.judging import MOST
from school_service.web.fields import Choice, Id, ListOf, Nested, QueryBoolean, StrictBoolean
from school_service.web.schemas import RecordSchema, Schema

MAX_ROLES = 100
_ALL = f"How many there are: the list has {MOST:,} at most."


class NewRoleReachSchema(Schema):
    """A role, and its intended reach."""

    role = Id(metadata={"description": "The id of the role."})
    reach = Choice(REACHES, metadata={"description": "SCHOOL: the whole school's records; OWN: one's own."})


class RoleReachesSchema(Schema):
    """The roles to switch."""

    roles = ListOf(
        Nested(NewRoleReachSchema),
        validate=validate.Length(max=MAX_ROLES),
        metadata={"description": "The others stay as they are."},
    )
    add_seeded = StrictBoolean(
        load_default=False,
        metadata={
            "description": "Make the roles of a new school that this one has none of the name of, and give the one for "
            "students to the accounts that are there."
        },
    )
    fingerprint = fields.Raw(
        allow_none=True,
        metadata={"description": "Taken in this release, and not looked at.", "deprecated": True},
    )


class RoleReachOptionsSchema(Schema):
    """Whether to switch at all."""

    dry_run = QueryBoolean(
        load_default=False, metadata={"description": "Answers what would change, and changes nothing."}
    )


class SwitchedRoleSchema(RecordSchema):
    """A switched role."""

    id = fields.UUID()
    name = fields.String()
    before = fields.String(
        validate=validate.OneOf(REACHES), metadata={"description": "The reach that it had."}
    )
    reach = fields.String(
        validate=validate.OneOf(REACHES), metadata={"description": "The reach that it has then."}
    )


def _permissions(description: str) -> fields.List[Any]:
    return fields.List(fields.String(), metadata={"description": description})


class AffectedUserSchema(RecordSchema):
    """A user with changed answers."""

    user = fields.UUID(metadata={"description": "The id of the user."})
    username = fields.String()
    name = fields.String(metadata={"description": "First and last name."})
    narrowed = _permissions("Permissions that reach one's own records alone then.")
    refused = _permissions("Permissions by which nothing can be done any more then.")
    widened = _permissions("Permissions that are new, or reach the whole school then.")
    subjects = fields.Integer(metadata={"description": "How many cohort subjects they teach."})
    classes = fields.Integer(metadata={"description": "How many batches they look after."})
    children = fields.Integer(metadata={"description": "Of how many students they are a guardian."})


class UncoveredSubjectSchema(RecordSchema):
    """A subject without a teacher in an arm."""

    cohort_subject = fields.UUID(metadata={"description": "The id of the cohort subject."})
    classroom = fields.String(metadata={"description": "The classroom's name."})
    subject = fields.String(metadata={"description": "The subject's name."})
    batch_name = fields.String(metadata={"description": "The arm's name."})


class UncoveredBatchSchema(RecordSchema):
    """A batch without a form teacher."""

    batch = fields.UUID()
    classroom = fields.String(metadata={"description": "The classroom's name."})
    batch_name = fields.String(metadata={"description": "The arm's name."})


class UncoveredSchema(RecordSchema):
    """Subjects and batches of the current session within nobody's own reach."""

    subjects = fields.List(
        fields.Nested(UncoveredSubjectSchema),
        metadata={"description": "Subjects and arms without a teacher."},
    )
    subjects_total = fields.Integer(metadata={"description": _ALL})
    batches = fields.List(
        fields.Nested(UncoveredBatchSchema), metadata={"description": "Batches without a form teacher."}
    )
    batches_total = fields.Integer(metadata={"description": _ALL})


class DifferingRoleSchema(RecordSchema):
    """A role with other permissions than the role of the same name of a new school.

    So have the roles of a school older than such permissions. They stay as they are.
    """

    role = fields.UUID(metadata={"description": "The id of the role."})
    name = fields.String()
    more = _permissions("What it has beside those of a new school.")
    less = _permissions("What it lacks of those of a new school.")


class SwitchedRolesSchema(PlantedSchema):
    """The changes by a switch of roles, made or foreseen."""

    roles = fields.List(
        fields.Nested(SwitchedRoleSchema), metadata={"description": "The roles that were named."}
    )
    added = fields.List(fields.String(), metadata={"description": "The names of roles that are new."})
    users = fields.List(
        fields.Nested(AffectedUserSchema),
        metadata={
            "description": "Whose answers change, by username: first all who lose something, then others up to "
            f"{MOST:,} in all."
        },
    )
    users_total = fields.Integer(metadata={"description": "How many there are."})
    users_losing = fields.Integer(metadata={"description": "How many of them lose something: all are named."})
    differs = fields.List(
        fields.Nested(DifferingRoleSchema),
        metadata={"description": "Roles with other permissions than those of the same name of a new school."},
    )
    uncovered = fields.Nested(
        UncoveredSchema, metadata={"description": "What nobody would reach as their own."}
    )
