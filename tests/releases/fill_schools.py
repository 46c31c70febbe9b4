"""Fills two schools with all that the demo's have; run by the program of an earlier release, on its modules.

    python fill_schools.py PASSWORD

Prints a JSON array: the ids of the schools. It imports the modules of release 0.2.0 under these names.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace

from school_service.app import create_app, tenancy_of
from school_service.config import Settings
from school_service.demo.fill_school import fill_school
from school_service.demo.sample_schools import SCHOOLS
from tenants.provisioning.create import create_school
from tenants.tenancy import Administrator


def main(password: str) -> None:
    settings = Settings.load(os.environ)
    tenancy = tenancy_of(settings)
    # Ids of their own: roles belong to the server, where tests of the demo make theirs.
    samples = [replace(sample, code=f"{sample.code}-{os.getpid()}") for sample in SCHOOLS]
    with create_app(settings).app_context():
        for sample in samples:
            create_school(
                tenancy,
                name=sample.name,
                administrator=Administrator("admin", password),
                school_id=sample.id,
                details=sample.details,
            )
            fill_school(sample)
    sys.stdout.write(json.dumps([str(sample.id) for sample in samples]))


main(*sys.argv[1:])
