"""The golden files: readings of a school filled by random classes, and of a school of each release."""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch
from uuid import UUID, uuid4

from flask import Flask

from school_service.web.app_state import AppState
from tenants.backups.restore import restore
from tenants.provisioning.create import create_school
from tenants.registry.schools import School
from tenants.tenancy import Administrator, Tenancy
from tests.conftest import PASSWORD
from tests.features.results.golden.client import RepeatableClient, RepeatableFactory
from tests.features.results.golden.comparing import ACT, DOCUMENT, Reading
from tests.features.results.golden.reading import Reader, is_read
from tests.features.results.golden.released import COMMITS, backup_of
from tests.features.results.golden.repeatable import repeatable
from tests.features.results.golden.restored import restored
from tests.features.results.golden.rounds import Rounds
from tests.features.results.golden.school import GoldenSchool
from tests.features.results.golden.story import story
from tests.features.results.publications.test_restored import token_of

FOLDER = Path(__file__).parent
PUBLIC_URL = "https://school.example"


def record(name: str, app: Flask, tenancy: Tenancy, *, part: int = 1) -> list[Reading]:
    """Let the school of a golden file go on, and read it meanwhile: one of `part` of all readings (`in_part`)."""
    # Roles belong to the server: each run has a school of its own.
    school_id = uuid4()
    state: AppState = app.extensions["school-service"]
    settings = replace(state.settings, public_url=PUBLIC_URL)
    with repeatable() as repeating, patch.object(state, "settings", settings):
        make, go_on = RECORDINGS[name]
        made = make(tenancy, school_id)
        client = RepeatableClient(app, repeating, token_of(app, tenancy, made), made.id)
        reader = Reader(app, tenancy, made.id, part)
        school = GoldenSchool(RepeatableFactory(client), reader)
        rounds = Rounds(school, reader)
        for moment in go_on(school):
            rounds.read(moment)
        reader.documents()
    return reader.readings


def in_part(readings: Sequence[Reading], part: int) -> list[Reading]:
    """Find the readings of a run that has one of `part` of all: acts and stored documents are in each."""
    return [reading for reading in readings if reading.kind in (ACT, DOCUMENT) or is_read(reading.name, part)]


def _new(tenancy: Tenancy, school_id: UUID) -> School:
    administrator = Administrator("admin", PASSWORD)
    return create_school(tenancy, name="Golden School", administrator=administrator, school_id=school_id)


def _of_release(release: str, tenancy: Tenancy, school_id: UUID) -> School:
    return restore(tenancy, backup_of(release), school_id=school_id, name="Released School")


RECORDINGS = {
    "school": (_new, story),
    **{f"release-{release}": (partial(_of_release, release), restored) for release in COMMITS},
}
"""The golden files by name: the function that makes the school, and its story."""


def read_golden(name: str) -> list[Reading]:
    """Read a golden file."""
    with lzma.open(_file(name), "rt", encoding="utf-8") as lines:
        return [Reading(*json.loads(line)) for line in lines]


def write_golden(name: str, readings: Sequence[Reading]) -> None:
    """Write a golden file: compressed, a reading in each line."""
    with lzma.open(_file(name), "wt", encoding="utf-8", preset=9) as lines:
        lines.writelines(json.dumps(reading, ensure_ascii=False) + "\n" for reading in readings)


def _file(name: str) -> Path:
    return FOLDER / f"{name}.jsonl.xz"
