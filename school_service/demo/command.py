"""The verb `demo`: everything made, shown, and served until stopped."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import click
from sqlalchemy import Connection, delete, select

from school_service import __version__
from school_service.app import create_app, tenancy_of
from school_service.auth.passwords import hash_password
from school_service.auth.tokens import LIFETIME, issue_client_token, issue_user_token
from school_service.cli.data_folder import DataFolderError, data_folder, delete_data_folder, lock
from school_service.config import ALL_ORIGINS, Settings
from school_service.core.database import db
from school_service.demo import demo_file
from school_service.demo.context import CLIENT_ID
from school_service.demo.demo_file import DemoFile, DemoSchool, Login
from school_service.demo.fill_school import fill_school
from school_service.demo.sample_schools import SCHOOLS, SampleSchool
from school_service.features.people.models import User
from school_service.features.results.models import PUBLISHED, Publication, ReportCard
from school_service.serving.listening import base_address, listen
from school_service.serving.server import serve
from school_service.web.app_state import app_state
from school_service.web.request_log import configure_logging
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.exceptions import TenancyError, UnknownSchool
from tenants.migrations.migrate import migrate_schools
from tenants.provisioning.create import create_school
from tenants.registry.clients import PeoplesOptions, check_secret, create_client
from tenants.registry.installation import install
from tenants.registry.schools import School, change_school, clients, find_school
from tenants.tenancy import Administrator, Tenancy

ADMIN = "admin"
LOCK = "demo.lock"
DOCS, EXAMPLE = "docs", "example"
"""The clients for people's sign-in: the docs page's, and the sample app's."""
APP_ORIGINS = ("http://127.0.0.1:8080", "http://localhost:8080")
"""The origins of the sample app of examples/single-page-app."""
BACK = "/docs/oauth2-redirect.html"
"""The path from the sign-in page back to the docs page."""
# The path of the printed curl line.
TRY = "/students?pageNumber=0&pageSize=3"


def run(path: Path, host: str, port: int) -> None:
    """Serve the demo of a data folder until stopped; makes missing parts first.

    Raises ConfigError, DataFolderError, ServingError.
    """
    with listen(host, port) as listener, data_folder(path, create=True) as folder, _only_demo_of(folder.path):
        settings = folder.settings(_with_quiet_logs(os.environ))
        settings = _for_people(settings, base_address(listener))
        configure_logging(settings.log_level)
        app, tenancy = create_app(settings), tenancy_of(settings)
        with app.app_context():
            demo = _prepare(tenancy, settings, folder.path, base_address(listener))
            token = _token(settings, demo)
            card = _card(settings, demo)

        def announce() -> None:
            _show(settings, demo, demo_file.write(folder.path, demo), card, *token)

        serve(app, settings, listener, announce=announce)
        click.echo(f"\nStopped. The data stays in {folder.path}.")


def _for_people(settings: Settings, base_url: str) -> Settings:
    """Let people sign in at the demo's own address unless PUBLIC_URL says another, and by the sample app."""
    origins = settings.cors_origins
    if ALL_ORIGINS not in origins:
        origins = tuple(dict.fromkeys((*origins, *APP_ORIGINS)))
    return replace(settings, public_url=settings.public_url or base_url, cors_origins=origins)


def delete_demo(path: Path, *, ask: bool) -> None:
    """Delete all data of the demo in a data folder, with every school in it; files of others stay.

    Asks on the terminal first if `ask` is set. Raises DataFolderError if the folder is none of a demo, or is in use.
    """
    path = path.expanduser().resolve()
    if not (path / demo_file.FILE).is_file():
        raise DataFolderError(f"There is no demo in {path}. Name its data folder with --data-dir.")
    if ask:
        click.confirm(f"Delete the data folder {path}, with every school in it?", abort=True)
    delete_data_folder(path, [demo_file.FILE, LOCK])
    click.echo(f"Deleted the demo's data{'' if path.exists() else f' and the folder {path}'}.")


@contextmanager
def _only_demo_of(folder: Path) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(lock(folder / LOCK, wait=False))
        except BlockingIOError:
            address = demo_file.read(folder).base_url
            raise DataFolderError(
                f"A demo of the data folder {folder} is running already"
                f"{f', at {address}' if address else ''}. "
                "Stop that one first, or name another folder with --data-dir."
            ) from None
        yield


def _with_quiet_logs(environment: Mapping[str, str]) -> dict[str, str]:
    """Log warnings alone unless LOG_LEVEL is set: a line for each request would bury the demo's own output."""
    level = environment.get("LOG_LEVEL", "").strip() or "WARNING"
    return {**environment, "LOG_LEVEL": level}


def _prepare(tenancy: Tenancy, settings: Settings, folder: Path, base_url: str) -> DemoFile:
    """Make the missing parts, also those left unfinished by an earlier start; returns the content of demo.json."""
    known = demo_file.read(folder)
    with click.progressbar(
        length=2 + len(SCHOOLS),
        label="Preparing the demo",
        item_show_func=lambda what: what or "",
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as bar:
        bar.update(0, "registry")
        install(tenancy)
        _upgrade(tenancy)
        bar.update(1, "client")
        with tenancy.admin.begin() as connection:
            secret = _client(connection, known.client_secret) if settings.auth_url is None else None
            if secret is None:
                # A client of the provider's own may have the id of ours.
                _remove_client(connection)
            for client_id in (DOCS, EXAMPLE):
                _remove_client(connection, client_id)
            if settings.issuer is not None:
                _register_apps(connection, {f"{settings.public_url}{BACK}", f"{base_url}{BACK}"})
        schools = []
        for sample in SCHOOLS:
            bar.update(1, sample.name)
            try:
                schools.append(_school(tenancy, sample, known.login(str(sample.id))))
            except TenancyError as error:
                raise DataFolderError(f"{sample.name}: {error}") from None
        bar.update(1, "")
    tenancy.admin.dispose()
    return DemoFile(
        base_url=base_url,
        auth_url=settings.auth_url or f"{base_url}/auth",
        audience=settings.auth_audience,
        client_id=None if secret is None else CLIENT_ID,
        client_secret=secret,
        schools=schools,
    )


def _upgrade(tenancy: Tenancy) -> None:
    """Bring the schools made by an earlier version to the newest revision."""
    for school, error in migrate_schools(tenancy).failed:
        raise DataFolderError(f"{school.name} can't be upgraded: {error}")


def _client(connection: Connection, secret: str | None) -> str:
    """Keep the demo's client if this is its secret; else create it again, with a new secret."""
    if secret is not None and check_secret(connection, CLIENT_ID, secret):
        return secret
    _remove_client(connection)
    return create_client(connection, client_id=CLIENT_ID, all_schools=True, all_permissions=True)


def _register_apps(connection: Connection, docs_uris: Collection[str]) -> None:
    """Register the docs page and the sample app, for people to sign in to every school."""
    app_uris = ("http://127.0.0.1/", *(f"{origin}/" for origin in APP_ORIGINS if "localhost" in origin))
    for client_id, name, uris, logout_uris in (
        (DOCS, "the docs page", tuple(sorted(docs_uris)), ()),
        (EXAMPLE, "the sample app", app_uris, tuple(f"{origin}/" for origin in APP_ORIGINS)),
    ):
        of_people = PeoplesOptions(
            name=name, is_public=True, redirect_uris=uris, post_logout_uris=logout_uris
        )
        create_client(connection, client_id=client_id, all_schools=True, of_people=of_people)


def _remove_client(connection: Connection, client_id: str = CLIENT_ID) -> None:
    connection.execute(delete(clients).where(clients.c.id == client_id))


def _school(tenancy: Tenancy, sample: SampleSchool, known: Login | None) -> DemoSchool:
    """Create a sample school and fill it, unless this is done.

    If the password of its administrator is not known (demo.json was lost, or never written), they get a new one.
    """
    login = known or Login(ADMIN, secrets.token_urlsafe(12))
    with tenancy.admin.connect() as connection:
        school = _find(connection, sample)
    if school is None:
        administrator = Administrator(login.username, login.password)
        school = create_school(tenancy, name=sample.name, administrator=administrator, school_id=sample.id)
    elif known is None:
        _set_password(sample, login)
    if school.short_name is None:
        with tenancy.admin.begin() as connection:
            change_school(connection, sample.id, **sample.details)
    if school.status == "active":
        fill_school(sample)
    return DemoSchool(str(school.id), school.name, login)


def _find(connection: Connection, sample: SampleSchool) -> School | None:
    try:
        return find_school(connection, sample.id)
    except UnknownSchool:
        return None


def _set_password(sample: SampleSchool, login: Login) -> None:
    with in_transaction(SchoolBinding(sample.id)):
        _administrator(login).password_hash = hash_password(login.password)


def _administrator(login: Login) -> User:
    return db.session.scalars(select(User).where(User.username == login.username)).one()


def _token(settings: Settings, demo: DemoFile) -> tuple[str, str]:
    """Issue a token to try the service with; returns its purpose, and the token.

    With an outside provider, without a client for the demo, it is the token of the first school's administrator.
    """
    key = app_state().verifier.key
    if settings.auth_url is None:
        return "every school, every permission", issue_client_token(key, CLIENT_ID, [])["access_token"]
    first = demo.schools[0]
    with in_transaction(SchoolBinding(UUID(first.id), read_only=True)):
        user = _administrator(first.admin)
    token = issue_user_token(key, user.id, UUID(first.id), user.session_number)
    return f"the administrator of {first.name}", token["access_token"]


def _card(settings: Settings, demo: DemoFile) -> tuple[str, str] | None:
    """Find a report card of the first school: the addresses of its PDF, and of its verification.

    None if none is published, as in a demo made by an older release.
    """
    school_id = UUID(demo.schools[0].id)
    newest = (
        select(ReportCard.student_id, ReportCard.code, Publication.term_id)
        .join(Publication, Publication.id == ReportCard.publication_id)
        .where(Publication.state == PUBLISHED)
        .order_by(Publication.published_at.desc(), Publication.id, ReportCard.position, ReportCard.id)
        .limit(1)
    )
    with in_transaction(SchoolBinding(school_id, read_only=True)):
        card = db.session.execute(newest).one_or_none()
    if card is None:
        return None
    paper = f"{demo.base_url}/students/{card.student_id}/report-card?term={card.term_id}"
    return paper, f"{settings.public_url}/verify/{school_id}/{card.code}"


def _show(
    settings: Settings, demo: DemoFile, path: Path, card: tuple[str, str] | None, purpose: str, token: str
) -> None:
    """Print the addresses, accounts and token for a person to try the service."""
    headers = (f"Authorization: Bearer {token}", f"X-SCHOOL-ID: {demo.schools[0].id}")
    options = " ".join(f"-H {shlex.quote(header)}" for header in headers)
    say = click.echo
    say(f"\n{_bold(f'School Service {__version__}')} is running at {_bold(demo.base_url)}\n")
    if settings.docs:
        say(f"  Docs page   {demo.base_url}/docs")
    if settings.docs and settings.issuer is not None:
        say(f"  Sign in     {settings.public_url}/docs  (Authorize, oauth2; as an administrator below)")
    if settings.auth_url is not None:
        say(f"  Provider    {settings.auth_url}  (let its clients in with `school-service clients create`)")
    if card is not None:
        say(f"  A card      {card[0]}  (a PDF)")
        say(f"  verified    {card[1]}  (needs no token)")
    say(f"  Details     {path}\n")
    for school in demo.schools:
        say(f"  {_bold(school.name)}")
        say(f"    X-SCHOOL-ID     {school.id}")
        say(f"    Administrator   {school.admin.username}")
        say(f"    Password        {school.admin.password}\n")
    say(f"{_bold('Token')}  for {purpose}, for {LIFETIME // 3600} hours\n\n{token}\n")
    say(f"{_bold('Try it')}\n\ncurl {options} {shlex.quote(f'{demo.base_url}{TRY}')}\n")
    say("Ctrl-C stops the service and its PostgreSQL; the next start finds everything again.")


def _bold(text: str | None) -> str:
    return click.style(text, bold=True)
