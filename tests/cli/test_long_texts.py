"""No verb, and no file that one is given, takes half a second of a processor more where a text is long."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from school_service.auth.signing_key import SigningKeys
from school_service.cli.program import program
from school_service.config import ConfigError, Settings
from tenants.backups.archive import MANIFEST, SCRIPT, open_archive
from tenants.backups.encryption import read_identities
from tenants.backups.table_rows import read_tables
from tenants.commands.arguments import read_password
from tenants.exceptions import BackupRefused
from tenants.tenancy import Tenancy
from tests.factories import UNKNOWN_ID
from tests.long_texts import MIB, SHORT, TEXTS, Stopwatch

ARGUMENT = 100_000  # bytes; Linux takes 131,072
ID = UNKNOWN_ID
# Verbs that are wrong by the texts that they are given, before they look for a database.
VERBS: dict[str, Callable[[str], list[str]]] = {
    "name of a school": lambda text: ["tenants", "create", text, "--id", "none"],
    "new name": lambda text: ["tenants", "rename", "none", text],
    "address": lambda text: ["tenants", "edit", "none", "--address", text],
    "telephone": lambda text: ["tenants", "edit", "none", "--phone", text],
    "e-mail": lambda text: ["tenants", "edit", "none", "--email", text],
    "website": lambda text: ["tenants", "edit", "none", "--website", text],
    "short name": lambda text: ["tenants", "edit", "none", "--short-name", text],
    "client": lambda text: ["clients", "revoke", text, "none"],
    "permission": lambda text: ["clients", "create", "a", "--permission", text, "none"],
    "redirect URI": lambda text: ["clients", "create", "a", "--redirect-uri", text, "none"],
    "recipient": lambda text: ["tenants", "backup", "--encrypt-to", text, "--keep", "none"],
    "role": lambda text: ["tenants", "switch-roles", "none", "--own", text],
    "user": lambda text: ["tenants", "end-sessions", "none", "--user", text],
    "verb": lambda text: [text],
}


@pytest.mark.parametrize("what", VERBS)
def test_no_argument_of_a_verb_is_worked_on_where_it_is_long(what: str) -> None:
    def run(text: str) -> Callable[[], None]:
        def running() -> None:
            assert CliRunner().invoke(program, VERBS[what](text)).exit_code == 2

        return running

    watch = Stopwatch(run(SHORT))
    for kind, write in TEXTS.items():
        watch.judge(f"{what}: {kind}", run(write(ARGUMENT)))


def test_no_password_on_standard_input_is_worked_on_where_it_is_long(
    tenancy: Tenancy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(text: str) -> Callable[[], None]:
        def reading() -> None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
            with suppress(click.UsageError):
                read_password(tenancy, "admin")

        return reading

    watch = Stopwatch(read(SHORT))
    for kind, write in TEXTS.items():
        watch.judge(kind, read(write(MIB)))
        watch.judge(f"{kind}, just short enough", read(write(4000)[:1000]))


def _pem(text: str) -> str:
    return f"-----BEGIN {text}-----\n{text}\n-----END {text}-----\n"


PEMS: dict[str, Callable[[int], str]] = {
    **TEXTS,
    "labels": lambda size: "-----BEGIN A-----\n" * (size // 18),
    "dashes": lambda size: "-----BEGIN A-----" + "-" * size,
    "blocks": lambda size: "-----BEGIN A-----\n-----END A-----\n" * (size // 34),
    "one block": lambda size: _pem("A" * (size // 3)),
    "cut short": lambda size: _pem("A") + "-----BEGIN A-----\n" + "a" * size,
}


def test_no_file_of_signing_keys_is_worked_on_where_it_is_long() -> None:
    def read(text: str) -> Callable[[], None]:
        def reading() -> None:
            with pytest.raises(ConfigError):
                SigningKeys.from_pem(text)

        return reading

    watch = Stopwatch(read(SHORT))
    for kind, write in PEMS.items():
        watch.judge(kind, read(write(MIB)))


@pytest.mark.parametrize("name", ["DATABASE_URL", "ADMIN_DATABASE_URL", "RATE_LIMIT_STORAGE"])
def test_no_file_of_a_secret_is_worked_on_where_it_is_long(name: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    others = {"DATABASE_URL": "postgresql://a:b@c/d"} if name != "DATABASE_URL" else {}

    def read(text: str) -> Callable[[], None]:
        def reading() -> None:
            with suppress(ConfigError):
                Settings.load({**others, f"{name}_FILE": str(file)})

        file.write_text(text, encoding="utf-8")
        return reading

    for before in ("", "postgresql://", "postgresql://a:", "postgresql://a:b@"):
        watch = Stopwatch(read(f"{before}{SHORT}"))
        for kind, write in TEXTS.items():
            watch.judge(f"{before} {kind}", read(before + write(MIB)))


def test_no_file_of_private_keys_is_worked_on_where_it_is_long(tmp_path: Path) -> None:
    file = tmp_path / "key"

    def read(text: str) -> Callable[[], None]:
        def reading() -> None:
            with pytest.raises(BackupRefused):
                read_identities(file)

        file.write_text(text, encoding="utf-8")
        return reading

    watch = Stopwatch(read(SHORT))
    for kind, write in {**TEXTS, "lines": lambda size: "a\n" * (size // 2)}.items():
        watch.judge(kind, read(write(MIB)))


@pytest.mark.parametrize("written", ["manifest", "member of the manifest", "name of a member", "script"])
def test_no_text_of_a_backup_is_worked_on_where_it_is_long(written: str) -> None:
    def backup(text: str) -> bytes:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr(text[:15_000] if written == "name of a member" else SCRIPT, b"")
            archive.writestr(
                MANIFEST,
                text if written == "manifest" else f'{{"format": 2, "school": {{"name": "{text}"}}}}',
            )
        return content.getvalue()

    def read(text: str) -> Callable[[], None]:
        content = backup(text)

        def reading() -> None:
            with pytest.raises(BackupRefused), open_archive(io.BytesIO(content)):
                pass

        def reading_rows() -> None:
            with pytest.raises(BackupRefused):
                list(read_tables(io.BytesIO(text.encode()), "a", {}))

        return reading_rows if written == "script" else reading

    scripts: dict[str, Callable[[int], str]] = {
        "quotes of a table": lambda size: 'COPY "' + '""' * (size // 2),
        "columns": lambda size: f"COPY a.b ({'a, ' * (size // 3)}",
        "settings": lambda size: f"SET {'a' * size}",
    }
    watch = Stopwatch(read(SHORT))
    for kind, write in {**TEXTS, **scripts}.items():
        watch.judge(kind, read(write(60_000 if written == "script" else MIB)))
