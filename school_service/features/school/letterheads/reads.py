"""Read models of letterheads."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Select, case, delete, func, select, true
from sqlalchemy.orm import aliased

from school_service.core.deletion import unreferred
from school_service.core.read_models import Query, json_object, one_row, read_model
from school_service.core.statements import statement
from school_service.features.school.models import LETTERHEAD_TEXTS, LOGO, SIGNATURE, Letterhead, Picture

_LOGO, _SIGNATURE = aliased(Picture), aliased(Picture)


@read_model
def letterhead() -> Query:
    """Read model of LetterheadSchema: of nothing but nulls while the school has set none."""
    return _of_school(_about(_LOGO).label(LOGO), _about(_SIGNATURE).label(SIGNATURE))


@read_model
def stored_letterhead(sha256: str | None = None) -> Query:
    """Select the columns of the letterhead, nulls while the school has set none, and the hashes of its pictures.

    `picture_id` is the id of the picture with a hash, null if there is none yet.
    """
    named = select(Picture.id).where(Picture.sha256 == sha256).scalar_subquery()
    return _of_school(
        Letterhead.logo_id,
        Letterhead.signature_id,
        _LOGO.sha256.label(LOGO),
        _SIGNATURE.sha256.label(SIGNATURE),
        named.label("picture_id"),
    )


@read_model
def logo() -> Query:
    """Select the logo: media type and bytes; no row without one."""
    return select(Picture.media_type, Picture.image).join(Letterhead, Letterhead.logo_id == Picture.id)


@read_model
def signature() -> Query:
    """Select the signature: media type and bytes; no row without one."""
    return select(Picture.media_type, Picture.image).join(Letterhead, Letterhead.signature_id == Picture.id)


PICTURES = {LOGO: logo, SIGNATURE: signature}


@statement
def delete_unused_picture(picture_id: UUID) -> Any:
    """Make the DELETE of a picture without any reference to it, of the letterhead or of a publication."""
    return delete(Picture).where(Picture.id == picture_id, unreferred(Picture.__table__))


def _of_school(*columns: Any) -> Select[Any]:
    """Select the texts of the school's row, and more of it and its pictures; of a row of nulls if it has none."""
    return (
        select(*(getattr(Letterhead, name) for name in LETTERHEAD_TEXTS), *columns)
        .select_from(one_row())
        .outerjoin(Letterhead, true())
        .outerjoin(_LOGO, _LOGO.id == Letterhead.logo_id)
        .outerjoin(_SIGNATURE, _SIGNATURE.id == Letterhead.signature_id)
    )


def _about(picture: Any) -> Any:
    about = json_object(
        media_type=picture.media_type,
        bytes=func.octet_length(picture.image),
        width=picture.width,
        height=picture.height,
    )
    return case((picture.id.is_not(None), about))
