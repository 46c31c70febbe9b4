"""The factory: settings, extensions, the web's conventions, then the features."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from sqlalchemy import URL, create_engine
from sqlalchemy.engine import Engine

from school_service import __version__
from school_service.auth import passwords, tokens
from school_service.auth.login_throttle import limiter
from school_service.auth.signing_key import SigningKeys
from school_service.auth.tokens import TokenVerifier
from school_service.config import ConfigError, Settings
from school_service.core.database import HEALTH_BIND, METRICS_BIND, db
from school_service.core.shares import Shares
from school_service.features.attendance.codes.views import blp as attendance_codes
from school_service.features.attendance.overviews.views import blp as attendance
from school_service.features.attendance.registers.views import blp as registers
from school_service.features.attendance.school_days.views import blp as school_days
from school_service.features.attendance.settings.views import blp as attendance_settings
from school_service.features.attendance.sheets.views import blp as register_sheets
from school_service.features.audit.service import insertions
from school_service.features.audit.views import blp as audit
from school_service.features.auth_provider.service import TOKEN_CLIENTS, TokenClients
from school_service.features.auth_provider.views import blp as auth_provider
from school_service.features.auth_provider.views import people_blp
from school_service.features.classes.cohort_subjects.views import blp as cohort_subjects
from school_service.features.classes.enrollments.views import blp as enrollments
from school_service.features.classes.student_imports.views import blp as student_imports
from school_service.features.classes.subject_teachers.views import blp as subject_teachers
from school_service.features.exchange.copies.views import blp as copies
from school_service.features.exchange.oneroster.views import blp as exchange
from school_service.features.health.service import Check, LoginCountsCheck, database_answers
from school_service.features.health.views import blp as health
from school_service.features.identities.views import blp as identities
from school_service.features.invitations.views import blp as invitations
from school_service.features.me.views import blp as me
from school_service.features.observations.comments.views import blp as comments
from school_service.features.observations.metrics.views import blp as metrics
from school_service.features.people.contacts.views import blp as contacts
from school_service.features.people.employees.views import blp as employees
from school_service.features.people.employees.views import teachers
from school_service.features.people.guardians.views import blp as guardians
from school_service.features.people.roles.views import blp as roles
from school_service.features.people.students.views import blp as students
from school_service.features.people.users.reads import USER_STATE
from school_service.features.people.users.views import blp as users
from school_service.features.personal_data.views import blp as personal_data
from school_service.features.photos.views import blp as photos
from school_service.features.results.figures.views import blp as results
from school_service.features.results.graduates.views import blp as graduates
from school_service.features.results.promotions.views import blp as promotions
from school_service.features.results.publications.views import blp as publications
from school_service.features.results.report_cards.verification import blp as verification
from school_service.features.results.report_cards.views import blp as report_cards
from school_service.features.results.submissions.views import blp as submissions
from school_service.features.results.transcripts.views import blp as transcripts
from school_service.features.role_reaches.views import blp as role_reaches
from school_service.features.school.classrooms.views import blp as classrooms
from school_service.features.school.cohorts.views import blp as cohorts
from school_service.features.school.geography.views import blp as geography
from school_service.features.school.letterheads.views import blp as letterheads
from school_service.features.school.sessions.views import blp as sessions
from school_service.features.school.settings.views import blp as school_settings
from school_service.features.school.subjects.views import blp as subjects
from school_service.features.scores.absences.views import blp as absences
from school_service.features.scores.assessments.views import blp as assessments
from school_service.features.scores.grade_configs.views import blp as grade_configs
from school_service.features.scores.gradebooks.views import blp as gradebooks
from school_service.features.scores.marksheets.views import blp as mark_sheets
from school_service.features.scores.result_settings.views import blp as result_settings
from school_service.features.scores.scoresheets.views import blp as scoresheets
from school_service.features.sign_in.invitation_page.views import blp as invitation_page
from school_service.features.sign_in.pages.answers import KNOWN_CLIENTS
from school_service.features.sign_in.pages.clients import KnownClients
from school_service.features.sign_in.pages.views import blp as sign_in_pages
from school_service.features.sign_in.sign_out.views import blp as sign_out
from school_service.features.sign_in.views import blp as user_sessions
from school_service.features.sign_in.views import openid_blp as openid
from school_service.features.year.current_session.views import blp as current_session
from school_service.features.year.session_copies.views import blp as session_copies
from school_service.features.year.term_calendars.views import blp as term_calendars
from school_service.printing import printers
from school_service.tenancy import placement_of_settings
from school_service.tenancy import tenancy_of as tenancy_of  # for makers of the application, too
from school_service.web import error_responses, openapi, response_headers
from school_service.web.app_state import AppState
from school_service.web.application import OrjsonProvider, Service
from tenants.connections.binding import LOCK_TIMEOUT, BindingOptions
from tenants.connections.engines import registry_options, registry_url, school_url, serving_options
from tenants.connections.registry import RegistryConnections
from tenants.migrations.migration_sql import served_revisions
from tenants.placement import Placement

# In the order in which the document shows them.
FEATURES = (
    users,
    user_sessions,
    invitations,
    identities,
    photos,
    me,
    roles,
    role_reaches,
    sessions,
    current_session,
    session_copies,
    term_calendars,
    school_days,
    classrooms,
    subjects,
    students,
    guardians,
    student_imports,
    cohorts,
    enrollments,
    cohort_subjects,
    subject_teachers,
    assessments,
    gradebooks,
    absences,
    scoresheets,
    mark_sheets,
    registers,
    register_sheets,
    attendance,
    metrics,
    comments,
    results,
    submissions,
    report_cards,
    verification,
    publications,
    promotions,
    transcripts,
    teachers,
    employees,
    school_settings,
    grade_configs,
    result_settings,
    attendance_settings,
    attendance_codes,
    letterheads,
    graduates,
    contacts,
    personal_data,
    exchange,
    copies,
    audit,
    geography,
    health,
)

# Connections for the registry's own statements: they must not wait for one that a request has taken.
REGISTRY_POOL = 2
# The check of the database has a connection of its own, and little time: nobody waits long to hear that it is away.
HEALTH_DEADLINE = 2  # seconds
SHARE_PATIENCE = 10.0  # seconds that a request waits in its thread for its school's share
FORM_OVERHEAD = 64 * 1024  # bytes of a form around its file


def create_app(settings: Settings | None = None) -> Service:
    """Make the application; `settings` default to the environment's. Raises ConfigError."""
    settings = settings or Settings.load(os.environ)
    if settings.signing_key is None:
        raise ConfigError(
            "SIGNING_KEY is not set: give a PEM private key there, or its file as SIGNING_KEY_FILE."
        )
    keys = SigningKeys.from_pem(settings.signing_key, settings.signing_key_setting)

    placement = placement_of_settings(settings)

    app = Service("school_service", static_folder=None)
    app.json = OrjsonProvider(app)
    app.url_map.strict_slashes = True
    app.url_map.merge_slashes = False
    app.url_map.redirect_defaults = False
    app.config.update(
        MAX_CONTENT_LENGTH=settings.max_upload_bytes + FORM_OVERHEAD,
        MAX_FORM_PARTS=20,
        **_database(settings, placement),
        **_limits(settings),
    )
    tokens.configure(app, settings, keys.signing)
    passwords.configure(app, settings.password_policy)
    app.extensions["placement"] = placement
    db.init_app(app)
    app.extensions["registry"] = registry = RegistryConnections(lambda: db.engines["registry"], REGISTRY_POOL)
    with app.app_context():
        placement.serve(
            settings.database_url,
            db.engines,
            registry,
            partial(_make_engine, _serving_options(settings, placement)),
        )
    tokens.jwt_manager.init_app(app)
    limiter.init_app(app)
    options = BindingOptions(
        serves=served_revisions(),
        statement_timeout=settings.statement_timeout,
        lock_timeout=min(LOCK_TIMEOUT, settings.statement_timeout),
        entry=placement.entry,
    )
    share = settings.school_requests or max(1, settings.pool_size // 2)
    # A waiting request has a thread here, and some have to be left for other schools.
    shares = Shares(share, waiting=max(1, share // 2), patience=SHARE_PATIENCE, name="school")
    app.extensions["school-service"] = AppState(
        settings, TokenVerifier(settings, keys), USER_STATE, insertions, options, shares
    )
    app.extensions["health"] = Check(database_answers)
    app.extensions["login_counts"] = LoginCountsCheck()
    printers.init_app(app, settings.printers)

    response_headers.register(app, settings.cors_origins)
    error_responses.register(app)
    api = openapi.make_api(app, settings, __version__)
    provider = [auth_provider] if settings.built_in_provider else []
    if has_sign_in_pages(settings):
        provider += [people_blp, openid]
        app.extensions[TOKEN_CLIENTS] = TokenClients()
    for feature in (*provider, *FEATURES):
        api.register_blueprint(feature)
    if has_sign_in_pages(settings):
        app.extensions[KNOWN_CLIENTS] = KnownClients()
        app.register_blueprint(sign_in_pages)
        app.register_blueprint(invitation_page)
        app.register_blueprint(sign_out)
    return app


def has_sign_in_pages(settings: Settings) -> bool:
    """Tell whether people sign in here: with the built-in provider and a public address."""
    return settings.issuer is not None


def _database(settings: Settings, placement: Placement) -> dict[str, Any]:
    url = settings.database_url
    binds: dict[str, Any] = {
        "registry": {"url": registry_url(url), **registry_options(REGISTRY_POOL)},
        HEALTH_BIND: {
            "url": registry_url(url),
            **registry_options(1, deadline=HEALTH_DEADLINE, connect_timeout=HEALTH_DEADLINE),
        },
    }
    if settings.metrics_port is not None:
        # A reader of the metrics never waits for the check of health, nor the check for the metrics.
        binds[METRICS_BIND] = dict(binds[HEALTH_BIND])
    if placement.several_servers:
        # The engines of the schools are made as their servers are known.
        return {"SQLALCHEMY_BINDS": binds}
    options = _serving_options(settings, placement)
    if not placement.divided:
        return {
            "SQLALCHEMY_DATABASE_URI": school_url(url),
            "SQLALCHEMY_ENGINE_OPTIONS": options(),
            "SQLALCHEMY_BINDS": binds,
        }
    for login in placement.school_logins:
        binds[login] = {"url": school_url(url.set(username=login)), **options()}
    return {"SQLALCHEMY_BINDS": binds}


def _serving_options(settings: Settings, placement: Placement) -> Callable[[], dict[str, Any]]:
    """Make the options of a login's engine, anew for each engine: they are of one server alone."""
    idle = placement.idle_connections(settings.pool_size)
    return partial(
        serving_options,
        idle,
        max_overflow=settings.pool_size - idle,
        schools_per_connection=settings.schools_per_connection,
        statement_timeout=settings.statement_timeout,
    )


def _make_engine(options: Callable[[], dict[str, Any]], url: URL) -> Engine:
    return create_engine(school_url(url), **options())


def _limits(settings: Settings) -> dict[str, Any]:
    return {"RATELIMIT_STORAGE_URI": settings.rate_limit_storage}
