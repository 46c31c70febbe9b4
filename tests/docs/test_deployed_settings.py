"""Settings that are set where the service is deployed: the tests' application has them, or a test that is named here.

A setting of a page that no test runs with may fail for everybody who follows the page.
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from school_service.config import FILE_SUFFIX, SECRETS, Settings
from tests.conftest import SETTINGS

ROOT = Path(__file__).parents[2]
PLACES = ("docs/deployment", "docs/proxies", "docs/servers", "compose.yaml", "Dockerfile")
# `NAME=value` of shells and units, `NAME: value` of Compose, `{name: NAME, value: …}` of Kubernetes, and Python's.
SET = re.compile(r"(?<![A-Z_])([A-Z]+(?:_[A-Z]+)+)(?:=|: |, value: |\", )|^(DOCS)=", re.MULTILINE)

RUN_BY = {
    "ADMIN_DATABASE_URL_FILE": "tests/features/sign_in/test_served.py",
    "AUTH_CLIENT_CLAIM": "tests/auth/test_outside_tokens.py",
    "AUTH_LINKED_USERS": "tests/features/identities/conftest.py",
    "AUTH_PERMISSION_CLAIM": "tests/auth/test_outside_tokens.py",
    "AUTH_SCHOOL_CLAIM": "tests/auth/test_outside_tokens.py",
    "AUTH_URL": "tests/auth/test_outside_tokens.py",
    "BACKUP_RECIPIENT": "tests/cli/test_backup_commands.py",
    "BUILT_IN_PROVIDER": "tests/features/sign_in/test_sessions.py",
    "CORS_ORIGINS": "tests/web/test_cors.py",
    "DATABASE_URL_FILE": "tests/features/sign_in/test_served.py",
    "METRICS_ADDRESS": "tests/features/sign_in/test_served.py",
    "PASSWORD_POLICY": "tests/features/sign_in/test_served.py",
    "POOL_SIZE": "tests/features/sign_in/test_served.py",
    "RATE_LIMIT_STORAGE": "tests/auth/test_login_throttle.py",
    "SIGNING_KEY_FILE": "tests/features/sign_in/test_served.py",
}
"""The module of tests that runs with a setting which the tests' application has not."""


def files() -> list[Path]:
    """List the files to look at."""
    paths = [
        path
        for place in PLACES
        for path in ([ROOT / place] if (ROOT / place).is_file() else sorted((ROOT / place).rglob("*")))
    ]
    return [path for path in paths if path.is_file() and path.suffix != ".pyc"]


def deployed() -> set[str]:
    """List the settings that are set there."""
    known = SETTINGS | {f"{name}{FILE_SUFFIX}" for name in SECRETS}
    texts = [path.read_text(encoding="utf-8") for path in files()]
    return {match[1] or match[2] for text in texts for match in SET.finditer(text)} & known


def names() -> dict[str, str]:
    """Map each setting to the member of Settings that it is in, as their documentation does."""
    written = re.findall(r"^ +`(\w+)` +([A-Z_]+)\b", Settings.__doc__ or "", re.MULTILINE)
    return {name: member for member, name in written}


def test_the_settings_of_the_pages_are_found():
    assert len(files()) > 15
    assert deployed() >= {
        *("DATABASE_URL", "DATABASE_URL_FILE", "METRICS_PORT", "METRICS_ADDRESS", "PUBLIC_URL"),
        *("TRUSTED_PROXIES", "PASSWORD_POLICY", "SCHOOL_REQUESTS", "AUTH_URL", "BACKUP_RECIPIENT"),
    }
    assert set(names().values()) <= {field.name for field in fields(Settings)}


def test_each_setting_that_is_deployed_is_one_that_tests_run_with(settings):
    by_default = Settings.load({"DATABASE_URL": "postgresql://user@host/database"})
    run_with = {
        name for name, member in names().items() if getattr(settings, member) != getattr(by_default, member)
    }

    assert {"METRICS_PORT", "PUBLIC_URL", "TRUSTED_PROXIES", "SCHOOL_REQUESTS"} <= run_with
    assert deployed() - run_with == RUN_BY.keys(), "give it to the tests' application, or name the test"


def test_each_module_that_is_named_has_the_setting():
    for name, module in RUN_BY.items():
        text = (ROOT / module).read_text(encoding="utf-8")
        either = (name, names().get(name, name), name.removesuffix(FILE_SUFFIX))
        assert re.search(rf"\b({'|'.join(either)})\b", text), (name, module)


def test_the_tests_application_counts_requests_as_the_pages_have_it(app):
    assert app.observe is not None
