"""How much an error tells: as many messages as a person reads, in an answer of bounded size.

Validation ends by these bounds while it goes on (`fields`, `schemas`), so that messages beyond them are never made. The
rest is cut here, of any error, as `error_responses` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from school_service.core.database import current_application
from school_service.core.errors import ANSWER_LIMIT

MOST_MESSAGES = 100
LONGEST_MESSAGE = 300  # characters
_ROOM = ANSWER_LIMIT - 2304  # bytes of the errors: status, message and request id stand beside them
_PLACE = 16  # bytes, at most, of the signs around a message in a list by place

LEFT_OUT = "left_out"


class _LeftOutHere:
    """The name, in a schema's errors, of the number of members left out of them.

    No member of a body is of this name, since it is no text.
    """


LEFT_OUT_HERE = _LeftOutHere()


def shortened(message: str) -> str:
    """Cut a message longer than LONGEST_MESSAGE."""
    return message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 1]}…"


def count_messages(errors: Any) -> int:
    """Count the messages in the errors of a member, at any depth."""
    if isinstance(errors, Mapping):
        return sum(map(count_messages, errors.values()))
    if isinstance(errors, list | tuple):
        return sum(map(count_messages, errors))
    return int(isinstance(errors, str))


def bounded(errors: Mapping[str, Any]) -> dict[str, Any]:
    """Cut the errors of an answer: each place of the request has MOST_MESSAGES, and together they have room.

    `left_out` counts the members with no message shown, beside those left out already; it is absent if all is told.
    """
    left_out = errors.get(LEFT_OUT, 0)
    told: dict[str, Any] = {}
    for place, of_place in errors.items():
        if place != LEFT_OUT:
            ending = _Ending()
            told[place] = ending.cut(of_place, ends=True)
            left_out += ending.left_out
    if _size(told) > _ROOM:
        told, without_room = _fitting(told, _ROOM)
        left_out += without_room
    return {**told, LEFT_OUT: left_out} if left_out else told


def bounded_rows(
    rows: Sequence[Mapping[str, Any]], bad_rows: int, list_name: str | None = None
) -> dict[str, Any]:
    """Give the errors of rows as an answer has them: as many as have room, of `bad_rows` bad ones.

    The errors of a list in the body, `list_name`, stand beside them by their place, too: list, number, field.
    """
    told: list[Mapping[str, Any]] = []
    places: dict[str, dict[str, list[str]]] = {}
    by_place = {} if list_name is None else {"json": {list_name: places}}
    room, messages = _ROOM - _size({**by_place, "rows": told}), 0
    for row in rows:
        number, column, message = str(row["row"]), str(row["column"]), shortened(str(row["message"]))
        cut = {**row, "message": message}
        room -= _size(cut) + 1
        placed = list_name is not None and (messages < MOST_MESSAGES or number in places)
        if placed:
            room -= _size([number, column, message]) + _PLACE
        if room < 0:
            break
        told.append(cut)
        if placed:
            messages += 1
            places.setdefault(number, {}).setdefault(column, []).append(message)
    left_out = bad_rows - len({row["row"] for row in told})
    return {**by_place, "rows": told, LEFT_OUT: left_out}


class _Ending:
    """Errors of one place of a request, ending after the member that reaches MOST_MESSAGES.

    A member is one of the body, or of a list in it.
    """

    def __init__(self) -> None:
        self._messages = 0
        self.left_out = 0

    def cut(self, errors: Any, *, ends: bool = False) -> Any:
        """Cut errors, and their messages. `ends`: they are by members, and may end before each."""
        if isinstance(errors, str):
            return shortened(errors)
        if isinstance(errors, list | tuple):
            self._messages += sum(isinstance(error, str) for error in errors)
            return [self.cut(error) for error in errors]
        if not isinstance(errors, Mapping):
            return errors
        ends = ends or all(isinstance(name, int) or str(name).isdigit() for name in errors)
        told: dict[Any, Any] = {}
        for name, of_member in errors.items():
            if name is LEFT_OUT_HERE:
                self.left_out += of_member
            elif ends and self._messages >= MOST_MESSAGES:
                self.left_out += 1
            else:
                told[name] = self.cut(of_member)
        return told


def _fitting(errors: Any, room: int) -> tuple[Any, int]:
    """Take as much of an object or a list as has room, in bytes: members without members first, then in its order.

    Of the first member without room a part is taken, except of an item behind others; then it ends. Returns it with the
    number of members left out.
    """
    of_object = isinstance(errors, Mapping)
    told: dict[Any, Any] = {}
    left_out = 0
    for name, member in sorted(errors.items() if of_object else enumerate(errors), key=_has_members):
        signs, size = _size({name: None}), _size(member)
        if signs + size <= room:
            told[name] = member
            room -= signs + size
            continue
        divided = _has_members((name, member)) and (of_object or not told)
        part, left_out_of_part = _fitting(member, room - signs) if divided else (None, 0)
        if part:
            told[name] = part
        left_out += left_out_of_part if part else 1
        room = 0
    if of_object:
        return {name: told[name] for name in errors if name in told}, left_out
    return [told[place] for place in sorted(told)], left_out


def _has_members(named: tuple[Any, Any]) -> bool:
    return isinstance(named[1], Mapping | list)


def _size(written: Any) -> int:
    """Count its bytes as JSON."""
    return len(current_application().json.dumps(written).encode())
