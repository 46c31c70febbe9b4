"""The floor of `benchmarks.throughput`: the cost of a request with as little above PostgreSQL as can be.

A bare WSGI callable with the check of the token (remembered once it was verified), the binding, and SQL by hand on
psycopg2, in one round trip a request. It is served in two ways: by the HTTP server of `serve`, so that a comparison
shows the cost of the service's own layers, and by waitress as it comes.
"""

from __future__ import annotations

import gc
import os
import queue
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jwt
import orjson
import psycopg2
import waitress
from sqlalchemy import make_url

from benchmarks import gradebook_floor, read_floor, sheet_floor
from school_service.auth.signing_key import SigningKey
from school_service.config import Settings
from school_service.serving.admission import ConnectionLimits
from school_service.serving.channel import ChannelOptions
from school_service.serving.dispatcher import Dispatcher
from school_service.serving.listening import listen
from school_service.serving.loop import EventLoop
from school_service.serving.parts import WAITING
from school_service.serving.server import make_server, tune_interpreter

LARGEST_BODY = 1024 * 1024
WAIT = 1.0  # seconds that the loop waits for something to happen

Application = Callable[[dict[str, Any], Any], list[bytes]]
Execute = Callable[[str, dict[str, Any]], Any]


def serve_as_we_do(app: Application, settings: Settings, port: int, threads: int) -> None:
    """Serve with the loop, the parser and the dispatcher of `serve`, until killed."""
    tune_interpreter()
    loop = EventLoop()
    # As in `serve`, half of the threads work for one school.
    dispatcher = Dispatcher(threads, share=max(1, threads // 2), waiting=WAITING)
    make_server(
        app,
        listen("127.0.0.1", port),
        loop,
        dispatcher,
        ConnectionLimits(settings.connections_per_address, settings.trusted_proxies),
        ChannelOptions(lambda _authorization, school: school, lambda _authorization: None),
        largest_body=LARGEST_BODY,
    )
    while True:
        loop.run_once(WAIT)


def serve_with_waitress(app: Application, port: int, threads: int) -> None:
    """Serve with waitress alone, until killed."""
    gc.collect()
    gc.freeze()
    waitress.serve(app, host="127.0.0.1", port=port, threads=threads, _quiet=True)


def floor(environment: dict[str, str], connections: int) -> Application:
    """Make the bare WSGI callable, with a pool of so many connections."""
    key = SigningKey.from_pem(environment["SIGNING_KEY"])
    public = key.private.public_key()
    pool = _connected(environment["DATABASE_URL"], connections)
    sheets = sheet_floor.SheetFloor(Path(environment["SHEET"]).read_bytes())
    known: dict[str, dict[str, Any]] = {}
    school_text, issuer = environment["SCHOOL"], environment["ISSUER"]
    serves = [environment["REVISION"]]

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        token = environ["HTTP_AUTHORIZATION"].removeprefix("Bearer ")
        claims = known.get(token)
        if claims is None or claims["exp"] < time.time():
            claims = jwt.decode(
                token, public, algorithms=[key.algorithm], audience="school-service", issuer=issuer
            )
            known[token] = claims
        school = environ["HTTP_X_SCHOOL_ID"]
        if claims["school_id"] != school:
            return _refused(start_response)
        in_school = partial(execute, claims, school)
        if environ["PATH_INFO"].startswith("/assessments/"):
            return _answer_sheet(environ, start_response, in_school, sheets)
        if environ["PATH_INFO"] == gradebook_floor.PATH:
            entry = orjson.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            return _answer_json(start_response, in_school(gradebook_floor.ENTER, entry))
        read = read_floor.floor_of(environ, school_text)
        return _answer_json(start_response, in_school(*read) if read else None)

    def execute(claims: dict[str, Any], school: str, sql: str, parameters: dict[str, Any]) -> Any:
        """Run it in the school, in one round trip: PostgreSQL runs the batch in one implicit transaction."""
        schema = "school_" + school.replace("-", "")
        connection = pool.get()
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT registry.enter(%(school)s, %(serves)s::text[], NULL); SET LOCAL TIME ZONE 'UTC';"
                    f'SET LOCAL search_path TO "{schema}", pg_temp; SET LOCAL ROLE "{schema}";' + sql,
                    {
                        **parameters,
                        "school": school,
                        "serves": serves,
                        "user": claims["sub"],
                        "session": claims["session"],
                    },
                )
                return cursor.fetchone()
        finally:
            pool.put(connection)

    return app


def serve(name: str, port: int, threads: int) -> None:
    """Serve the floor of this name until killed: `floor` as we do, `waitress` with waitress alone."""
    app = floor(dict(os.environ), threads)
    if name == "waitress":
        serve_with_waitress(app, port, threads)
    else:
        serve_as_we_do(app, Settings.load(os.environ), port, threads)


def _connected(database_url: str, connections: int) -> queue.LifoQueue[Any]:
    url = make_url(database_url)
    pool: queue.LifoQueue[Any] = queue.LifoQueue()
    for _ in range(connections):
        connection = psycopg2.connect(
            user=url.username, host=url.query["host"], dbname=url.database, password=url.password
        )
        connection.autocommit = True
        pool.put(connection)
    return pool


def _answer_json(start_response: Any, row: Any) -> list[bytes]:
    if row is None:
        return _refused(start_response)
    body = row[0].encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


def _answer_sheet(
    environ: dict[str, Any], start_response: Any, in_school: Execute, sheets: sheet_floor.SheetFloor
) -> list[bytes]:
    assessment = environ["PATH_INFO"].split("/")[2]
    media_type, disposition = "application/json", "inline"
    if environ["REQUEST_METHOD"] == "POST":
        content = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        body = sheets.upload(in_school, assessment, content, environ["CONTENT_TYPE"])
    else:
        name, body = sheets.download(in_school, assessment) or ("", None)
        media_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
        disposition = f'attachment; filename="{name}"'
    if body is None:
        return _refused(start_response)
    fields = {
        "Content-Type": media_type,
        "Content-Length": str(len(body)),
        "Content-Disposition": disposition,
    }
    start_response("200 OK", list(fields.items()))
    return [body]


def _refused(start_response: Any) -> list[bytes]:
    start_response("403 Forbidden", [])
    return [b""]
