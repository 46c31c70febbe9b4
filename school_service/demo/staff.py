"""The staff of a sample school: accounts with roles, to which nobody can sign in until a password is set."""

from __future__ import annotations

from sqlalchemy import select

from school_service.demo.filling import Filling
from school_service.extensions import db
from school_service.roles.models import Role
from school_service.users.service import create_user, give_role

STAFF = {"Registrar": 1, "Bursar": 1, "Teacher": 8, "Viewer": 1}


def make_staff(filling: Filling) -> None:
    """Make the staff, and give each their role."""
    roles = {role.name: role.id for role in db.session.scalars(select(Role))}
    for role, count in STAFF.items():
        for _ in range(count):
            person = filling.population.person()
            user = create_user(
                username=person.plain_name,
                first_name=person.first_name,
                last_name=person.last_name,
                gender=person.gender,
            )
            give_role(user_id=user.id, role=roles[role], principal=filling.principal)
            filling.staff.setdefault(role, []).append(user.id)
