"""Result settings: how results are computed from now on, and changes of the settings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from sqlalchemy import exists, select

from school_service.core.database import db, request_context
from school_service.core.errors import Invalid, Unknown
from school_service.core.read_models import BoundQuery
from school_service.core.statements import fetch_one, in_one_round_trip, put_row
from school_service.features.audit.service import audit_change, audit_member_changes
from school_service.features.school.models import Classroom
from school_service.features.school.settings.service import lock_settings
from school_service.features.scores.models import FULL, OF_LEVEL, LevelSettings, ResultSettings
from school_service.features.scores.result_settings import reads
from tenants.connections.engines import json_text

ENTITY = "result-settings"
_DOCUMENTS = ("weights", "principal_comments")


def check_level(*, level: str | None = None) -> None:
    """Tell whether a classroom has a level. Raises Invalid."""
    if level is not None and not db.session.scalar(select(exists().where(Classroom.level == level))):
        raise _unknown_level(level)


def _unknown_level(level: str) -> Invalid:
    return Invalid.field("level", Unknown(f'no classroom has the level "{level}"'))


def change_level_settings(*, level: str, **changes: Any) -> BoundQuery:
    """Change the settings that a level has of its own; null takes one back.

    Returns the read model of the settings, stored and read in one round trip. Raises Invalid for a level of no
    classroom, and for settings that are the school's alone.
    """
    others = [name for name in changes if name not in OF_LEVEL]
    if others:
        raise Invalid.fields(dict.fromkeys(others, "is of the whole school"))
    row = fetch_one(lock_settings(), reads.stored_of_level(level))
    if not row["known"]:
        raise _unknown_level(level)
    old = {name: row[name] for name in OF_LEVEL}
    new, read = {**old, **changes}, reads.level_settings(level)
    if new == old:
        return read
    differing = {name for name in OF_LEVEL if new[name] != old[name]}
    audit_change(
        ENTITY,
        request_context().school_id,
        old={"level": level, **{name: old[name] for name in OF_LEVEL if name in differing}},
        new={"level": level, **{name: new[name] for name in OF_LEVEL if name in differing}},
    )
    return in_one_round_trip(put_row(LevelSettings, "level", level=level, **new), read=read)


def change_result_settings(**changes: Any) -> BoundQuery:
    """Change any member of the settings; an array or an object is replaced as a whole.

    Returns the read model of the settings, stored and read in one round trip. Raises Invalid for weights of a level
    with another sum than 100, a level of no classroom, term weights of 0 alone, duplicates, and members of levels
    alone.
    """
    nulls = [name for name, value in changes.items() if value is None]
    if nulls:
        raise Invalid.fields(dict.fromkeys(nulls, "Field may not be null."))
    if "marks" in changes:
        raise Invalid.field("marks", "is of a level alone")
    read = reads.result_settings()
    old = fetch_one(lock_settings(), reads.stored_settings())
    if "weights" in changes:
        changes["weights"] = _checked_weights(changes["weights"])
    if "principal_comments" in changes:
        changes["principal_comments"] = _checked_comments(changes["principal_comments"])
    for term, weight in changes.pop("term_weights", {}).items():
        changes[reads.TERM_WEIGHTS[term]] = weight
    new = {**old, **changes}
    if not any(new[name] for name in reads.TERM_WEIGHTS.values()):
        raise Invalid.field("term_weights", "one of them must be more than 0")
    if new == old:
        return read
    audit_member_changes(ENTITY, request_context().school_id, old, new)
    values = {**new, **{name: json_text(new[name]) for name in _DOCUMENTS}}
    return in_one_round_trip(put_row(ResultSettings, "singleton", **values), read=read)


def _checked_weights(weights: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Put the weights in order: those for every level first. Raises Invalid."""
    of_level: dict[str | None, list[Decimal]] = defaultdict(list)
    for row in weights:
        of_level[row["level"]].append(row["weight"])
    twice = _twice((row["level"], row["category"]) for row in weights)
    wrong = [
        *(f"{category} is there twice for {_level(level)}" for level, category in twice),
        *(
            f"those of {_level(level)} sum to {sum(each, Decimal(0)).normalize():f} and not to 100"
            for level, each in of_level.items()
            if sum(each) != FULL
        ),
    ]
    named = {level for level in of_level if level is not None}
    if named:
        known = set(db.session.scalars(select(Classroom.level).where(Classroom.level.in_(named)).distinct()))
        wrong += [f'no classroom has the level "{level}"' for level in sorted(named - known)]
    if wrong:
        raise Invalid.field("weights", "; ".join(wrong))
    rows = [{**row, "weight": float(row["weight"])} for row in weights]
    return sorted(rows, key=lambda row: (row["level"] or "", row["category"]))


def _checked_comments(comments: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Put the comments in order, the highest threshold first. Raises Invalid."""
    twice = _twice(row["lower_threshold"] for row in comments)
    if twice:
        raise Invalid.field("principal_comments", f"the threshold {twice[0].normalize():f} is there twice")
    rows = [{**row, "lower_threshold": float(row["lower_threshold"])} for row in comments]
    return sorted(rows, key=lambda row: -row["lower_threshold"])


def _twice(values: Iterable[Any]) -> list[Any]:
    return [value for value, times in Counter(values).items() if times > 1]


def _level(level: str | None) -> str:
    return "every level" if level is None else f'the level "{level}"'
