"""Operations: the statements of a view's decorators, once; the document, the tests' matrix and the scope read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

from flask import Flask

from school_service.auth.policies import Policy
from school_service.web.request_log import route_template

_NOTED = "conventions"


class Run(Enum):
    """How a view runs in its request's transaction."""

    BY_METHOD = auto()
    """A GET runs read-only, all else in a writing transaction."""
    AUDITED = auto()
    """A GET with an entry for the audit log, such as an export."""
    AT_ONE_MOMENT = auto()
    """The same, and all its statements see the database as committed when it began."""
    COMPUTES = auto()
    """The results of a class, in a writing transaction, waiting for its turn before it begins."""
    READS = auto()
    """A POST without writes."""
    ANSWERS_TOKEN = auto()
    """A POST with a token in its answer, stored nowhere: so it takes no Idempotency-Key."""

    def is_read_only(self, method: str) -> bool:
        """Tell whether a request of this method writes nothing."""
        return self is Run.READS or (method in {"GET", "HEAD"} and self in {Run.BY_METHOD, Run.ANSWERS_TOKEN})

    def is_done_once(self, method: str) -> bool:
        """Tell whether a request of this method with an Idempotency-Key is done once."""
        return method == "POST" and self not in {Run.READS, Run.ANSWERS_TOKEN}


@dataclass(frozen=True, slots=True)
class Operation:
    """The statements of a view's decorators.

    `policy` is None if no token is needed. `tagged`: its answer has an ETag. `matches`: it takes If-Match. `locations`
    are those of its input, `query` its known parameters, `statuses` further ones of its answers; `other_content` and
    `other_error_content` are media types beside those of its schema. `method` and `path` are known once it is
    registered, `matched` is the path of the GET with the ETag for If-Match.
    """

    policy: Policy | None = None
    run: Run = Run.BY_METHOD
    school_required: bool = True
    tagged: bool = False
    matches: bool = False
    locations: frozenset[str] = frozenset()
    query: frozenset[str] = frozenset()
    statuses: frozenset[int] = frozenset()
    other_content: Mapping[str, Any] = field(default_factory=dict)
    other_error_content: Mapping[str, Any] = field(default_factory=dict)
    method: str = ""
    path: str = ""
    matched: str | None = None

    @property
    def has_tag(self) -> bool:
        """Whether its answer has an ETag: operations without a token answer objects, without an ETag."""
        return self.tagged and self.policy is not None

    @property
    def is_idempotent(self) -> bool:
        """Whether it takes an Idempotency-Key."""
        return self.policy is not None and self.run.is_done_once(self.method)


_NOTHING = Operation()


def declared(view: Callable[..., Any]) -> Operation:
    """Return the statements of the decorators of a view so far."""
    operation: Operation = getattr(view, "_apidoc", {}).get(_NOTED, _NOTHING)
    return operation


def declare(view: Callable[..., Any], **said: Any) -> None:
    """Say something of a view; members of sets are added to those before."""
    before = declared(view)
    for name in ("locations", "query", "statuses"):
        if name in said:
            said[name] = getattr(before, name) | frozenset(said[name])
    # A copy, since another view may have the same notes.
    documented = {**getattr(view, "_apidoc", {}), _NOTED: replace(before, **said)}
    view._apidoc = documented  # type: ignore[attr-defined]


def declared_in(doc_info: Mapping[str, Any], method: str) -> Operation:
    """Return the statements about the view of a document's operation."""
    operation: Operation = doc_info.get(_NOTED, _NOTHING)
    return replace(operation, method=method.upper())


def operations_of(app: Flask) -> dict[str, Operation]:
    """Find the operations of an application, by method and path as the document writes them."""
    operations = {f"{operation.method} {operation.path}": operation for operation in _operations(app)}
    paths = {operation.path for operation in operations.values() if operation.method == "GET"}
    return {
        name: replace(operation, matched=_get_of(operation.path, paths)) if operation.matches else operation
        for name, operation in sorted(operations.items())
    }


def _operations(app: Flask) -> Iterator[Operation]:
    for rule in app.url_map.iter_rules():
        kind = getattr(app.view_functions[rule.endpoint], "view_class", None)
        for method in rule.methods or ():
            view = getattr(kind, method.lower(), None)
            if view is not None and _NOTED in getattr(view, "_apidoc", {}):
                yield replace(declared(view), method=method, path=route_template(rule.rule))


def _get_of(path: str, paths: set[str]) -> str:
    """Find the GET of the record of a path: its own, or the nearest above."""
    while path not in paths:
        path = path.rpartition("/")[0]
    return path
