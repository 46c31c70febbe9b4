"""A sample school on a real server: filled as the demo's, with passwords and a secret of its own."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from sqlalchemy import select

from school_service.app import create_app
from school_service.auth.passwords import hash_password
from school_service.auth.signing_key import SigningKey
from school_service.config import Settings
from school_service.core.database import db
from school_service.demo.context import DemoContext
from school_service.demo.fill_school import STEPS, fill_school
from school_service.demo.sample_schools import SCHOOLS
from school_service.demo.students import GUARDIAN
from school_service.features.audit.service import audit_change
from school_service.features.people.models import Employee, Student, User
from school_service.features.people.users.service import ENTITY, user_named
from tenants.progress import Progress
from tenants.registry.clients import create_client
from tenants.registry.schools import School, change_school
from tenants.tenancy import Tenancy


def fill_sample(tenancy: Tenancy, settings: Settings, school: School, progress: Progress) -> dict[str, str]:
    """Fill a new school as a school of the demo, and let people and a client in; returns their names and secrets.

    A teacher, a guardian and a student get a password. The client may do everything in this school alone; there is none
    if an outside provider has the clients. The details that the school has stay.
    """
    model = replace(SCHOOLS[0], school_id=school.id, name=school.name)
    lacking = {name: value for name, value in model.details.items() if getattr(school, name) is None}
    lacking.pop("short_name", None)
    with tenancy.admin.begin() as connection:
        change_school(connection, school.id, **lacking)
    entered: dict[str, str] = {}
    # Nothing is signed by this application, which nobody serves.
    app = create_app(replace(settings, signing_key=SigningKey.generate().to_pem()))
    steps: list[Callable[[DemoContext], None]] = [*STEPS, partial(_let_in, entered)]
    with app.app_context(), progress(len(steps)) as advance:
        fill_school(model, steps, advance)
        db.session.remove()
    if not settings.built_in_provider:
        return entered
    client_id = f"sample-{school.id}"
    with tenancy.admin.begin() as connection:
        secret = create_client(connection, client_id=client_id, school_ids=[school.id], all_permissions=True)
    return {**entered, "client_id": client_id, "client_secret": secret}


def _let_in(entered: dict[str, str], context: DemoContext) -> None:
    """Give a form teacher, the guardian and one of the guardian's children a password."""
    teacher, child = context.teachers[0], context.students[next(iter(context.classrooms))][0]
    for role, query in {
        "teacher": select(User).join(Employee, Employee.user_id == User.id).where(Employee.id == teacher),
        "guardian": user_named(GUARDIAN),
        "student": select(User).join(Student, Student.user_id == User.id).where(Student.id == child),
    }.items():
        user, password = db.session.scalars(query).one(), secrets.token_urlsafe(12)
        user.password_hash = hash_password(password)
        audit_change(ENTITY, user.id, old={}, new={"password": "set"})
        entered |= {role: user.username, f"{role}_password": password}
    db.session.flush()
