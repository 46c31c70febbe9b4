"""Reference data in the registry, the same for every school: a school's tables never refer to it by foreign key."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, MetaData, String, Table, UniqueConstraint, Uuid

from tenants.registry.schools import NAMING_CONVENTION

metadata = MetaData(schema="registry", naming_convention=NAMING_CONVENTION)

nationalities = Table(
    "nationalities",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", String(120), nullable=False, unique=True),
    Column("code", String(2), nullable=False, unique=True),
)

states = Table(
    "states",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", String(120), nullable=False, unique=True),
    Column("code", String(3), nullable=False, unique=True),
)

lgas = Table(
    "lgas",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", String(120), nullable=False),
    Column("state_id", ForeignKey(states.c.id), nullable=False),
    UniqueConstraint("state_id", "name"),
)
