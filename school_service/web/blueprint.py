"""The project's Blueprint: the wrapping of every view, and its appearance in the OpenAPI document."""

from __future__ import annotations

import gzip
import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial, wraps
from itertools import chain
from mimetypes import guess_type
from os import SEEK_END
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote
from uuid import UUID

import flask_smorest
import marshmallow as ma
from flask import Response, request
from werkzeug.wsgi import wrap_file

from school_service.auth.policies import Mine, Policy
from school_service.core.database import context_globals
from school_service.core.errors import Invalid, NotFound, TooLarge
from school_service.core.exact_json import write_json
from school_service.core.permissions import Permission
from school_service.core.reach import REFUSED, Own
from school_service.core.read_models import BoundQuery, MadeTogether, RenderedRow
from school_service.core.statements import Lock
from school_service.core.texts import plain_file_name
from school_service.web.app_state import app_state, current_user_id
from school_service.web.body_parser import BodyParser
from school_service.web.current import current_request
from school_service.web.entity_tags import IF_MATCH, check_if_match, tagged_picture, tagged_response
from school_service.web.error_responses import handle
from school_service.web.fields import MAX_IDS, File, ListOf, Nested, QueryBoolean, id_list
from school_service.web.interface_operations import check_query_names
from school_service.web.openapi import DocumentedError, ServiceApi, document_operation
from school_service.web.operations import Run, declare, declared
from school_service.web.pages import FORM, HTML, preferred_type, prefers_page, show_error, show_page
from school_service.web.paging import BarePageSchema, PageSchema, envelope
from school_service.web.rendering import (
    QUERY_TYPES,
    JsonAnswer,
    json_response,
    object_response,
    render_bare_page,
    render_bytes,
    render_list,
    render_one,
    render_page,
    with_members,
)
from school_service.web.request_scope import AfterTransaction, run_in_request_scope
from school_service.web.schemas import Array, DeletedSchema, Schema

View = TypeVar("View", bound=Callable[..., Any])
CheckFilters = Callable[..., None]

SPREADSHEET = "application/octet-stream"
_BINARY = {"schema": {"type": "string", "format": "binary"}}
PDF, ZIP, CSV = "application/pdf", "application/zip", "text/csv"
NDJSON = "application/x-ndjson"


SERVES_OWN: set[str] = set()
"""The permissions with some use as OWN: the permissions of views that do not refuse it."""


class Blueprint(flask_smorest.Blueprint):
    """A blueprint with the conventions in its decorators: 200 only, one envelope, one commit, documented by itself.

    `school_required`: whether X-SCHOOL-ID is required on its operations, or may come from the token.
    """

    ARGUMENTS_PARSER = BodyParser()

    def __init__(self, name: str, import_name: str, *, school_required: bool = True, **options: Any) -> None:
        super().__init__(name, import_name, **options)
        self._school_required = school_required
        self._prepare_doc_cbks.append(document_operation)

    def register_views_in_doc(self, api: ServiceApi, *arguments: Any, **options: Any) -> None:
        """Let the views be documented when the document is first read."""
        api.document_later(partial(super().register_views_in_doc, api, *arguments, **options))

    def requires(
        self,
        who: Permission | Policy | None,
        *others: Permission,
        own: Own = REFUSED,
        run: Run = Run.BY_METHOD,
        school_required: bool | None = None,
    ) -> Callable[[View], View]:
        """Require a token, a school and a permission, or several, or a policy; None: any token of the school.

        Outermost of a view's decorators: the order token, school, permission, validation, work is fixed here. `own` is
        the meaning of the operation for callers with the permissions, but not all of them for the whole school, `run`
        the way the view runs. `mine=true` in the query, if the operation takes it, lets `own` hold for every user.
        """
        policy = who if isinstance(who, Policy) else Policy(() if who is None else (who, *others))
        policy = replace(policy, own=own)
        of_mine = Mine(policy.permissions, own)
        required = self._school_required if school_required is None else school_required
        if not own.refused:
            SERVES_OWN.update(map(str, policy.permissions))

        def decorate(view: View) -> View:
            known = declared(view).query

            @wraps(view)
            def scoped(*arguments: Any, **parameters: Any) -> Any:
                context_globals().__dict__["arguments"] = dict(parameters)
                asked = "mine" in known and request.args.get("mine") in QueryBoolean.truthy_texts

                def worked() -> Any:
                    if current_request().environ.get("QUERY_STRING"):
                        check_query_names(known)
                    if asked and current_user_id() is None:
                        raise Invalid.field("mine", "a client has no records of its own")
                    return view(*arguments, **parameters)

                of_request = (of_mine if asked else policy).at(parameters)
                return run_in_request_scope(worked, of_request, run, school_required=required)

            declare(scoped, policy=policy, run=run, school_required=required)
            return scoped  # type: ignore[return-value]

        return decorate

    def arguments(
        self, schema: type[ma.Schema] | ma.Schema, *, location: str = "json", **options: Any
    ) -> Callable[[View], View]:
        """Validate the body or the query; the valid input becomes the view's next argument."""
        instance = schema() if isinstance(schema, type) else schema
        documented = super().arguments(instance, location=location, **options)

        def decorate(view: View) -> View:
            @wraps(view)
            def noted(*arguments: Any, **parameters: Any) -> Any:
                if isinstance(arguments[-1], dict):
                    context_globals().setdefault("arguments", {}).update(arguments[-1])
                return view(*arguments, **parameters)

            validated = documented(noted)
            query = _names(instance) if location == "query" else ()
            declare(validated, locations={location}, query=query)
            return validated  # type: ignore[no-any-return]

        return decorate

    def takes_file(
        self, name: str, *, most: int | None = None, remedy: str | None = None
    ) -> Callable[[View], View]:
        """Take one uploaded file, named `name` in the form; it becomes the view's next argument, a FileStorage.

        A file of more than MAX_UPLOAD_BYTES, or than `most` bytes, is refused: the limit of the request allows for the
        form around it; `remedy` is a sentence on how to make it smaller. So are two files: one of them would be dropped
        without a word.
        """
        documented = self.arguments(_upload(name), location="files", content_type="multipart/form-data")

        def decorate(view: View) -> View:
            @wraps(view)
            def with_file(*arguments: Any, **parameters: Any) -> Any:
                *before, files = arguments
                if len(request.files.getlist(name)) > 1:
                    raise Invalid(f"The form has more than one file {name}.")
                limit = app_state().settings.max_upload_bytes
                limit = limit if most is None else min(limit, most)
                size = files[name].stream.seek(0, SEEK_END)
                if size > limit:
                    allowed = f"The file has {size:,} bytes; {limit:,} are allowed."
                    raise TooLarge(allowed if remedy is None else f"{allowed} {remedy}")
                files[name].stream.seek(0)
                return view(*before, files[name], **parameters)

            return documented(with_file)  # type: ignore[return-value]

        return decorate

    def takes_ids(self) -> Callable[[View], View]:
        """Take a body of a bare array of uuids; it becomes the view's next argument, a list."""
        ids = {"type": "string", "format": "uuid"}
        return self._takes_array(Array(id_list()), {"type": "array", "items": ids, "maxItems": MAX_IDS})

    def takes_list(
        self, schema: type[Schema], *, most: int, member: str | None = None
    ) -> Callable[[View], View]:
        """Take a body of a bare array of at most `most` objects; it becomes the view's next argument, a list.

        With a `member` errors name the places in the array after it, as in `scores.3.score`; the array has one object
        at least, and may also stand in an object, as its member of this name.
        """
        documented = {"type": "array", "items": schema, "maxItems": most}
        if member is None:
            records = ListOf(Nested(schema), most=most)
            return self._takes_array(Array(records, whole="_schema"), documented)
        takes = self._takes_array(_named_list(schema, most, member)(), {**documented, "minItems": 1})

        def decorate(view: View) -> View:
            @wraps(view)
            def unnamed(*arguments: Any, **parameters: Any) -> Any:
                *before, body = arguments
                return view(*before, body[member], **parameters)

            return takes(unnamed)  # type: ignore[return-value]

        return decorate

    def _takes_array(self, schema: Schema, documented: dict[str, Any]) -> Callable[[View], View]:
        takes = self.arguments(schema)

        def decorate(view: View) -> View:
            validated: Any = takes(view)
            for parameter in validated._apidoc["arguments"]["parameters"]:
                if isinstance(parameter["schema"], type(schema)):
                    parameter["schema"] = documented
            return validated  # type: ignore[no-any-return]

        return decorate

    def returns(
        self,
        schema: type[ma.Schema],
        *,
        if_empty: CheckFilters | None = None,
        max_age: int | None = None,
        tagged: bool | None = None,
    ) -> Callable[[View], View]:
        """Answer one record: the row of the select() returned by the view (404 if there is none), or an object.

        A RenderedRow is answered as it is.

        `if_empty` checks the filters before the 404: it is called with the view's own arguments, all by name, and
        raises if one of them refers to no record. `max_age`: seconds for any cache to store a public object; all else
        is stored by none. `tagged`: whether a row has an ETag; by default the row of a GET has one, and of an operation
        with If-Match.
        """

        dumper = schema()

        def decorate(view: View) -> View:
            by_itself = max_age is None and (view.__name__ == "get" or declared(view).matches)
            tag = by_itself if tagged is None else tagged

            def render(result: Any, check: Callable[[], None]) -> Response | JsonAnswer:
                if isinstance(result, RenderedRow):
                    return JsonAnswer(result.body)
                if not isinstance(result, QUERY_TYPES):
                    response = object_response(dumper.dump(result))
                    if max_age is not None:
                        response.cache_control.public = True
                        response.cache_control.max_age = max_age
                    return response
                body = render_one(result)
                if body is None:
                    check()
                    raise NotFound(f"No such {_record_name(schema)}.")
                besides = result.besides if isinstance(result, BoundQuery) else None
                return tagged_response(body, besides) if tag else JsonAnswer(with_members(body, besides))

            if tag:
                declare(view, tagged=True)
            return self._responds(schema, render, if_empty)(view)

        return decorate

    def if_match(
        self,
        read: Callable[..., BoundQuery],
        *locks: Lock,
        render: Callable[[BoundQuery], bytes | None] = render_one,
    ) -> Callable[[View], View]:
        """Refuse a change of a record unless it is as the request's If-Match says, innermost of a view's decorators.

        `read` is the read model of the record's GET; the `locks` are the locks of the view's service, in its order.
        Each gets the ids of the path. `render` makes the answer of the GET, of a picture its bytes. Without the header
        nothing is read.
        """

        def decorate(view: View) -> View:
            @wraps(view)
            def matching(*arguments: Any, **parameters: Any) -> Any:
                if IF_MATCH in request.environ:
                    ids = tuple(parameters.values())
                    by_get = declared(getattr(arguments[0], "get", view)).policy
                    check_if_match(
                        read(*ids), *(lock(*ids) for lock in locks), render=render, shown_by=by_get
                    )
                return view(*arguments, **parameters)

            declare(matching, matches=True)
            return matching  # type: ignore[return-value]

        return decorate

    def returns_list(
        self, schema: type[ma.Schema], *, if_empty: CheckFilters | None = None
    ) -> Callable[[View], View]:
        """Answer a bare array: the rows of the select() returned by the view, or a list of objects.

        `if_empty` checks the filters of a list without rows: it is called with the view's own arguments, all by name,
        those of the query as its schema names them, and raises if one of them refers to no record. For a list with rows
        it is not called: the list is then one statement.
        """

        def render(result: Any, check: Callable[[], None]) -> Response | JsonAnswer:
            if not isinstance(result, (*QUERY_TYPES, MadeTogether)):
                return object_response(dumper.dump(result))
            body, empty = render_list(result)
            if empty:
                check()
            return JsonAnswer(body)

        dumper = schema(many=True)
        return self._responds(dumper, render, if_empty)

    def returns_page(
        self,
        schema: type[ma.Schema],
        *,
        bare: bool = False,
        if_empty: CheckFilters | None = None,
    ) -> Callable[[View], View]:
        """Answer a page of the select() returned by the view, in the paged envelope; takes pageNumber and pageSize.

        With `bare` it is a bare array, and takes page and size. `if_empty` checks the filters of an empty page: it is
        called with the view's own arguments, all by name, and raises if one refers to no record. The page is no
        argument of the view.
        """
        answered = schema(many=True) if bare else envelope(schema)
        page_schema = BarePageSchema() if bare else PageSchema()
        render = render_bare_page if bare else render_page

        def decorate(view: View) -> View:
            @wraps(view)
            def paged(*arguments: Any, **parameters: Any) -> JsonAnswer:
                page = self.ARGUMENTS_PARSER.parse(page_schema, location="query")
                body, empty = render(view(*arguments, **parameters), **page)
                if empty:
                    _check_filters(if_empty)
                return JsonAnswer(body)

            _document_like(paged, flask_smorest.Blueprint.arguments(self, page_schema, location="query"))
            declare(paged, locations={"query"}, query=_names(page_schema))
            return _document_like(paged, flask_smorest.Blueprint.response(self, 200, answered))  # type: ignore[no-any-return]

        return decorate

    def returns_deleted(self) -> Callable[[View], View]:
        """Answer `{"id": …, "deleted": true}` with the id returned by the view."""

        def render(result: UUID, _check: Callable[[], None]) -> Response:
            return object_response({"id": str(result), "deleted": True})

        return self._responds(DeletedSchema, render)

    def returns_file(
        self, *media_types: str, schema: type[ma.Schema] | None = None
    ) -> Callable[[View], View]:
        """Answer a file: the view returns its name, any text, and its content. With a `schema`, it may return a record.

        The content is bytes, or a file of bytes to read, closed when it has been sent, or a function making either.
        Such a function is called when the transaction has ended and no connection is taken. Without `media_types` it is
        a workbook, to be saved, as a zip is. With others the ending of its name decides its type, and a browser shows
        it; a client preferring application/octet-stream gets it as this type, since generated clients know no other
        type of files.
        """
        types = media_types or (SPREADSHEET,)
        documented = self.response(200, {"type": "string", "format": "binary"}, content_type=types[0])
        dumper = None if schema is None else schema()

        def answer(name: str, content: bytes | BinaryIO) -> Response:
            guess = guess_type(name)[0]
            media_type = guess if guess in types else types[0]
            if preferred_type((media_type, SPREADSHEET)) == SPREADSHEET:
                media_type = SPREADSHEET
            response = _response_of(content, media_type)
            disposition = "attachment" if media_type in (SPREADSHEET, ZIP) else "inline"
            response.headers["Content-Disposition"] = _disposition(disposition, plain_file_name(name))
            if media_types:
                response.vary.add("Accept")
            return response

        def decorate(view: View) -> View:
            @wraps(view)
            def sent(*arguments: Any, **parameters: Any) -> Any:
                result = view(*arguments, **parameters)
                if dumper is not None and isinstance(result, dict):
                    return json_response(write_json(dumper.dump(result)))
                name, content = result
                if callable(content):
                    return AfterTransaction(lambda: answer(name, content()))
                return answer(name, content)

            _document_like(sent, documented)
            others: dict[str, Any] = dict.fromkeys(
                (*types[1:], *([SPREADSHEET] if media_types else [])), _BINARY
            )
            if schema is not None:
                # Last, since generated clients take the first type that they know.
                others["application/json"] = {"schema": schema}
            declare(sent, other_content=others)
            return sent  # type: ignore[return-value]

        return decorate

    def returns_lines(self) -> Callable[[View], View]:
        """Answer lines of JSON: the view returns bytes, or a function making a first line and a file by gzip.

        The function is called when the transaction has ended and no connection is taken. The lines are sent by gzip to
        clients taking it. Its route has `head=False`: to make the answer is all of the work.
        """
        documented = self.response(200, {"type": "string", "format": "binary"}, content_type=NDJSON)

        def decorate(view: View) -> View:
            @wraps(view)
            def sent(*arguments: Any, **parameters: Any) -> Any:
                content = view(*arguments, **parameters)
                if callable(content):
                    return AfterTransaction(lambda: _lines_of(*content()))
                return Response(content, mimetype=NDJSON)

            return _document_like(sent, documented)  # type: ignore[no-any-return]

        return decorate

    def returns_picture(self, media_type: str) -> Callable[[View], View]:
        """Answer a picture: `content`, the one column of the row of the read model returned by the view, or 404.

        It has an ETag, and may be kept by its reader's own cache; the cache asks each time whether the picture is still
        the same. A client preferring application/octet-stream gets it as this type.
        """
        documented = self.response(200, {"type": "string", "format": "binary"}, content_type=media_type)

        def decorate(view: View) -> View:
            @wraps(view)
            def picture(*arguments: Any, **parameters: Any) -> Response:
                content = render_bytes(view(*arguments, **parameters))
                if content is None:
                    raise NotFound("There is no such picture.")
                response = tagged_picture(content, preferred_type((media_type, SPREADSHEET)) or media_type)
                response.vary.add("Accept")
                return response

            _document_like(picture, documented)
            declare(picture, tagged=True, other_content={SPREADSHEET: _BINARY})
            return picture  # type: ignore[return-value]

        return decorate

    def returns_health(self, schema: type[ma.Schema], *, ok: str, retry_after: int) -> Callable[[View], View]:
        """Answer how the service is: 200 if the object's `status` is `ok`, else 503 with Retry-After in seconds."""

        def render(result: Any, _check: Callable[[], None]) -> Response:
            response = object_response(dumper.dump(result))
            if result["status"] != ok:
                response.status_code = 503
                response.headers["Retry-After"] = str(retry_after)
            return response

        dumper = schema()
        unavailable = self.alt_response(503, schema=schema, description="The database is unreachable.")
        responds = self._responds(schema, render)
        return lambda view: unavailable(responds(view))

    def returns_or_shows(
        self, schema: type[ma.Schema], *, template: str, error_template: str
    ) -> Callable[[View], View]:
        """Answer one record as JSON or, to clients preferring text/html, as a page; its template gets the members.

        The view returns the record as JSON in UTF-8. Numbers are texts in the template, as they are written. Every
        error of the blueprint is a page, too; its template gets the values of `show_error`.
        """

        def render(body: bytes, _check: Callable[[], None]) -> Response:
            if prefers_page():
                response = show_page(template, **json.loads(body, parse_float=str))
            else:
                response = json_response(body)
            response.vary.add("Accept")
            return response

        def handle_error(error: Exception) -> Response:
            response = handle(error)
            if prefers_page():
                response = show_error(response, error_template)
            response.vary.add("Accept")
            return response

        self.register_error_handler(Exception, handle_error)
        responds = self._responds(schema, render)

        def decorate(view: View) -> View:
            shown = responds(view)
            page = {HTML: {"schema": {"type": "string"}}}
            declare(shown, other_content=page, other_error_content=page)
            return shown

        return decorate

    def public(self, view: View) -> View:
        """Mark a view without need of a token."""
        declare(view, policy=None)
        return view

    def answers(self, *statuses: int) -> Callable[[View], View]:
        """Name further statuses of the operation's answers, for the document."""

        def decorate(view: View) -> View:
            declare(view, statuses=statuses)
            return view

        return decorate

    def errors_as(
        self, schema: type[ma.Schema], errors: Mapping[int, DocumentedError]
    ) -> Callable[[View], View]:
        """Document errors of the operation that are other than everywhere, by their statuses, and their schema."""

        def decorate(view: View) -> View:
            for status, documented in errors.items():
                view = self.alt_response(
                    status,
                    schema=schema,
                    description=documented.meaning,
                    headers=dict(documented.headers),
                    example=documented.example(status),
                )(view)
            return view

        return decorate

    def describes_form(self, schema: type[ma.Schema]) -> Callable[[View], View]:
        """Describe the form of a request, by its parameters, for the document; the view reads it itself."""
        body = {"required": True, "content": {FORM: {"schema": schema}}}
        return self.doc(requestBody=body)  # type: ignore[no-any-return]

    def summary(self, words: str) -> Callable[[View], View]:
        """Give the summary of the operation, for the document, if the view serves several kinds of record."""
        return self.doc(summary=words)  # type: ignore[no-any-return]

    def _responds(
        self,
        schema: Any,
        render: Callable[[Any, Callable[[], None]], Response | JsonAnswer],
        if_empty: CheckFilters | None = None,
    ) -> Callable[[View], View]:
        check = partial(_check_filters, if_empty)

        def decorate(view: View) -> View:
            @wraps(view)
            def responding(*arguments: Any, **parameters: Any) -> Response | JsonAnswer:
                return render(view(*arguments, **parameters), check)

            return _document_like(responding, flask_smorest.Blueprint.response(self, 200, schema))  # type: ignore[no-any-return]

        return decorate


def _lines_of(head: bytes, lines: BinaryIO) -> Response:
    """Answer a first line, and lines of a file by gzip, which is closed when it has been sent."""
    zipped = request.accept_encodings.quality("gzip") > 0
    content: Any = lines if zipped else gzip.open(lines)  # noqa: SIM115 -- closed with the file
    parts: Iterable[bytes] = wrap_file(request.environ, content)
    response = Response(chain([gzip.compress(head) if zipped else head], parts), mimetype=NDJSON)
    if zipped:
        response.headers["Content-Encoding"] = "gzip"
    response.vary.add("Accept-Encoding")
    response.call_on_close(lines.close)
    return response


def _response_of(content: bytes | BinaryIO, media_type: str) -> Response:
    if isinstance(content, bytes):
        return Response(content, mimetype=media_type)
    size = content.seek(0, SEEK_END)
    content.seek(0)
    response = Response(wrap_file(request.environ, content), mimetype=media_type, direct_passthrough=True)
    response.content_length = size
    return response


def _check_filters(if_empty: CheckFilters | None) -> None:
    """Call a check of filters with the arguments of the view, in any order of its decorators."""
    if if_empty is not None:
        if_empty(**context_globals().arguments)


def _document_like(view: Any, decorator: Callable[[Any], Any]) -> Any:
    """Document a view as a decorator of flask-smorest does, without its wrapper: the view answers a Response."""
    view._apidoc = decorator(view)._apidoc
    return view


def _names(schema: ma.Schema) -> set[str]:
    """The names of a schema's fields in a query."""
    return {field.data_key or name for name, field in schema.fields.items()}


def _record_name(schema: type[ma.Schema]) -> str:
    words = schema.__name__.removesuffix("Schema")
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in words).strip()


def _disposition(disposition: str, name: str) -> str:
    """Name a file to be shown or saved, in ASCII and, if the name has other letters, in UTF-8 too (RFC 6266)."""
    ascii_name = plain_file_name(unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode())
    header = f'{disposition}; filename="{ascii_name}"'
    return header if ascii_name == name else f"{header}; filename*=UTF-8''{quote(name, safe='')}"


@cache
def _named_list(schema: type[Schema], most: int, member: str) -> type[Schema]:
    """Make the schema of an array, or of an object with the array as its one member."""

    class NamedList(Schema):
        @ma.pre_load
        def name_list(self, body: Any, **_options: Any) -> Any:
            return {member: body} if isinstance(body, list) else body

    records = ListOf(Nested(schema), least=1, most=most)
    return NamedList.from_dict({member: records}, name=f"{member.title()}List")  # type: ignore[return-value]


@cache
def _upload(name: str) -> type[ma.Schema]:
    # Made once for each name, since the document names a schema once.
    return Schema.from_dict({name: File()}, name=f"{name.title().replace('_', '')}Upload")
