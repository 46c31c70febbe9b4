"""What stands on the school's paper: its principal, a badge drawn in its colour, and a signature."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from sqlalchemy import select

from school_service.core.database import db
from school_service.core.statements import execute
from school_service.demo.context import DemoContext
from school_service.demo.drawing import draw_badge, draw_signature
from school_service.features.audit.service import audit_change
from school_service.features.people.models import Employee, User
from school_service.features.results.letterheads.picture_format import read_format
from school_service.features.results.letterheads.service import ENTITY, change_letterhead
from school_service.features.results.models import LOGO, PNG, SIGNATURE, Letterhead, Picture
from school_service.features.school.models import Position


def make_letterhead(context: DemoContext) -> None:
    """Write the principal and the motto on the school's paper, with a badge and the principal's signature."""
    school = context.school
    execute(
        change_letterhead(
            principal_name=_principal(),
            principal_title="Principal",
            website=f"https://{school.email_address.partition('@')[2]}",
        )
    )
    # Pictures that this program drew need no proof that they can be printed.
    logo, signature = _store(draw_badge(*school.colour)), _store(draw_signature())
    letterhead = db.session.scalars(select(Letterhead)).one()
    letterhead.logo_id, letterhead.signature_id = logo.id, signature.id
    db.session.flush()
    pictures: dict[str, Any] = {LOGO: logo.sha256, SIGNATURE: signature.sha256}
    audit_change(ENTITY, school.id, old=dict.fromkeys(pictures), new=pictures)


def _store(content: bytes) -> Picture:
    about = read_format(content)
    picture = Picture(
        sha256=sha256(content).hexdigest(),
        media_type=PNG,
        width=about.width,
        height=about.height,
        image=content,
    )
    db.session.add(picture)
    db.session.flush()
    return picture


def _principal() -> str:
    title, first_name, last_name = db.session.execute(
        select(Employee.title, User.first_name, User.last_name)
        .join(User, User.id == Employee.user_id)
        .join(Position, Position.id == Employee.position_id)
        .where(Position.name == "Principal")
    ).one()
    return f"{title} {first_name} {last_name}"
