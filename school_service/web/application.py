"""Flask's application, with the way of a request through it cut short by the steps that nothing of ours looks at.

While a request takes time in Python, all threads wait, since one at a time has the interpreter. So a route without
parameters is looked up and not matched, a view's method is called without making its class anew, and an answer of JSON
rendered by PostgreSQL goes out without werkzeug's `Response` (`JsonAnswer`). All of it is by Flask's own methods, made
to be overridden; if an extension has a function for each answer, it gets a `Response`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any

import orjson
from flask import Flask, Request, Response
from flask.json.provider import JSONProvider
from flask.sessions import NullSession, SessionInterface
from flask.signals import request_finished, request_tearing_down
from flask.views import MethodView
from werkzeug.routing import Map, MapAdapter, Rule
from werkzeug.wsgi import get_host

from school_service.web import request_log, response_headers
from school_service.web.current import current_request
from school_service.web.rendering import JsonAnswer

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z


class OrjsonProvider(JSONProvider):
    """Writes and reads with orjson; request bodies are read by `web.body_parser`, with exact decimals."""

    def dumps(self, obj: Any, **_options: Any) -> str:
        """Write JSON text."""
        try:
            return orjson.dumps(obj, default=_plain, option=_OPTIONS).decode()
        except orjson.JSONEncodeError:
            # An error may have to repeat a name with a lone surrogate: the surrogate is shown as "?".
            text = json.dumps(obj, default=_plain, ensure_ascii=False, separators=(",", ":"))
            return text.encode(errors="replace").decode()

    def loads(self, s: str | bytes, **_options: Any) -> Any:
        """Read JSON text."""
        return orjson.loads(s)


def _plain(value: Any) -> Any:
    """Write values unknown to JSON: decimals (of at most 15 digits) as numbers, all else as text."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


HOSTS_REMEMBERED = 1000

View = Callable[..., Any]


class _NoSessions(SessionInterface):
    """The service has no sessions of cookies: every request has the same empty one."""

    _none = NullSession()

    def open_session(self, app: Flask, request: Request) -> NullSession:
        """Give the empty session."""
        return self._none


class _Route(Rule):
    """A route; with `head=False` it has no HEAD, which werkzeug gives to each with GET."""

    def __init__(self, *arguments: Any, head: bool = True, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if self.methods and not head:
            self.methods.discard("HEAD")


class _Routes(MapAdapter):
    """The routes of a request; a route without parameters is found once and then looked up."""

    def __init__(self, known: dict[tuple[str, str], Rule], *arguments: Any) -> None:
        super().__init__(*arguments)
        self._known = known

    def match(self, *arguments: Any, **options: Any) -> Any:
        """Find the route of the request's own path and method, with its rule."""
        if arguments or options != {"return_rule": True}:
            return super().match(*arguments, **options)
        key = (self.default_method, self.path_info)
        rule = self._known.get(key)
        if rule is not None:
            return rule, {}
        rule, values = super().match(return_rule=True)
        if not values and rule.rule == self.path_info:
            # It can grow to the number of routes without parameters.
            self._known[key] = rule
        return rule, values


class WsgiAnswer:
    """An answer as the WSGI server takes it: status 200, header fields and body."""

    __slots__ = ("_body", "_fields")

    def __init__(self, body: list[bytes], fields: list[tuple[str, str]]) -> None:
        self._body, self._fields = body, fields

    def __call__(self, _environ: Any, start_response: Any) -> Iterable[bytes]:
        """Answer."""
        start_response("200 OK", self._fields)
        return self._body


class Service(Flask):
    """The application. `observe` has every answer, as the log has."""

    session_interface = _NoSessions()
    url_rule_class = _Route
    observe: request_log.Observe | None = None

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._known_routes: dict[tuple[str, str], Rule] = {}
        self._known_views: dict[tuple[str, str], View | None] = {}
        self._looked_at: dict[str, bool] = {}

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Bind the routes to a request; its host, without effect on them, is read once and remembered."""
        if request is None or "HTTP_UPGRADE" in request.environ:
            return super().create_url_adapter(request)
        environ = request.environ
        scheme = environ["wsgi.url_scheme"]
        host = _read_host(scheme, environ.get("HTTP_HOST"), environ["SERVER_NAME"], environ["SERVER_PORT"])
        return _Routes(
            self._known_routes,
            self.url_map,
            host,
            _wsgi_text(environ.get("SCRIPT_NAME", "")),
            self.url_map.default_subdomain,
            scheme,
            _wsgi_text(environ["PATH_INFO"]),
            environ["REQUEST_METHOD"],
            _wsgi_text(environ.get("QUERY_STRING", "")),
        )

    def preprocess_request(self) -> Any:
        """Begin a request."""
        request_log.begin()
        if self.before_request_funcs or self.url_value_preprocessors:
            return super().preprocess_request()
        return None

    def dispatch_request(self) -> Any:
        """Call the view of a request."""
        current = current_request()
        rule = current.url_rule
        if rule is not None and current.routing_exception is None:
            key = (rule.endpoint, current.environ["REQUEST_METHOD"])
            view = self._known_views.get(key, _UNKNOWN)
            if view is _UNKNOWN:
                view = self._known_views[key] = self._view_of(*key)
            if view is not None:
                return view(**(current.view_args or {}))
        return super().dispatch_request()

    def _view_of(self, endpoint: str, method: str) -> View | None:
        """Find the method of a view's class for a request; None if Flask has to choose it."""
        kind = getattr(self.view_functions[endpoint], "view_class", None)
        if kind is None or not issubclass(kind, MethodView) or kind.decorators:
            return None
        if kind.dispatch_request is not MethodView.dispatch_request or kind.__init__ is not object.__init__:
            return None
        # One object serves all requests: it has no state.
        return getattr(kind(), method.lower(), None)

    def finalize_request(self, rv: Any, from_error_handler: bool = False) -> Any:
        """Make the answer of a view's result: add the fields common to all answers, and write the log's line."""
        if isinstance(rv, JsonAnswer):
            current = current_request()
            if current.environ["REQUEST_METHOD"] != "HEAD" and not self._is_looked_at(current):
                fields = [*rv.fields, *response_headers.FIELDS, ("X-Request-ID", request_log.request_id())]
                request_log.end(current, 200, self.observe)
                return WsgiAnswer(rv.portions, fields)
            rv = rv.to_response()
        return super().finalize_request(rv, from_error_handler)

    def _is_looked_at(self, current: Request) -> bool:
        """Tell whether an extension or a blueprint has a function to call with the answer."""
        endpoint = current.endpoint or ""
        is_looked_at = self._looked_at.get(endpoint)
        if is_looked_at is None:
            functions = self.after_request_funcs
            is_looked_at = None in functions or any(name in functions for name in current.blueprints)
            self._looked_at[endpoint] = is_looked_at
        return is_looked_at or bool(request_finished.receivers)

    def process_response(self, response: Response) -> Response:
        """Add the fields common to all answers, and write the line of the log."""
        response = super().process_response(response)
        headers = response.headers
        for name, value in response_headers.FIELDS:
            if name not in headers:
                headers[name] = value
        headers["X-Request-ID"] = request_log.request_id()
        request_log.end(current_request(), response.status_code, self.observe)
        return response

    def do_teardown_request(self, *arguments: Any, **options: Any) -> None:
        """Call the functions registered for the end of a request, if there are any."""
        if self.teardown_request_funcs or request_tearing_down.receivers:
            super().do_teardown_request(*arguments, **options)


_UNKNOWN: Any = object()


@lru_cache(HOSTS_REMEMBERED)
def _read_host(scheme: str, host: str | None, server_name: str, server_port: str) -> str:
    """Read the host of a request, as werkzeug does; raises BadHost."""
    environ = {"wsgi.url_scheme": scheme, "SERVER_NAME": server_name, "SERVER_PORT": server_port}
    if host is not None:
        environ["HTTP_HOST"] = host
    return Map().bind(get_host(environ)).server_name


def _wsgi_text(text: str) -> str:
    """Read a text of a WSGI environment, with the bytes of UTF-8 as its characters (PEP 3333)."""
    return text if text.isascii() else text.encode("latin-1").decode(errors="replace")
