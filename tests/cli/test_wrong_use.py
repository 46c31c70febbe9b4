"""Exit status 2 for wrong use; 1, and one line that says which setting and why, for a wrong setting."""

import json
import re
import socket
import sys

import click
import pytest

from school_service import __version__
from school_service.cli.program import program
from tenants.migrations.migration_sql import head, registry_head
from tests.cli.program import PROGRAM, run

pytestmark = pytest.mark.program


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such-verb",),
        ("tenants",),
        ("tenants", "create"),
        ("tenants", "create", " "),
        ("tenants", "create", "x" * 121),
        ("tenants", "create", "a\nb"),
        ("tenants", "create", "Name", "--id", "7"),
        ("tenants", "show", "no-uuid"),
        ("tenants", "list", "--no-such-option"),
        ("tenants", "edit", "5a1d2f4e-54a5-4f4a-9d3c-111111111111"),
        ("clients", "create", "x", "--permission", "everything"),
        ("clients", "create", "x", "--all-schools", "--school", "5a1d2f4e-54a5-4f4a-9d3c-111111111111"),
        ("clients", "create", "x", "--all-permissions", "--permission", "read:users"),
        ("serve", "--port", "65536"),
        ("serve", "--threads", "0"),
    ],
    ids=" ".join,
)
def test_wrong_use(cli, arguments):
    result = cli(*arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: school-service" in result.stderr


@pytest.mark.parametrize(
    "password",
    [b"", b"\n", b"a\0b", b"x" * 1001, b"\xff"],
    ids=["empty", "blank line", "NUL", "too long", "no text"],
)
def test_a_password_that_could_never_sign_in_is_refused(cli, password):
    result = cli("tenants", "create", "Name", "--password-stdin", stdin=password)

    assert result.exit_code == 2
    assert "password" in result.stderr


@pytest.mark.parametrize(
    ("password", "fault"),
    [
        ("secret 42", "must have at least 10 characters"),
        ("1234567890", "is one of the most common passwords"),
        ("Head.Mistress1\n", "must be more than the username"),
        ("123456", "must have at least 10 characters, and is one of the most common passwords"),
    ],
)
def test_a_weak_password_is_refused_by_any_policy(cli, password, fault):
    arguments = ("tenants", "create", "Name", "--admin", "head.mistress", "--password-stdin")

    result = cli(*arguments, stdin=password.encode(), PASSWORD_POLICY="any")

    assert result.exit_code == 2
    assert f"The password on standard input {fault}." in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    "name", ["Que\u200ben's College", "Queen's\x1b College", "\u202eQueen's", " "], ids=ascii
)
def test_a_name_that_is_not_seen_as_it_is_is_refused(cli, name):
    for arguments in ((name,), ("Name", "--admin", name)):
        result = cli("tenants", "create", *arguments)

        assert result.exit_code == 2
        assert "a name has 1 to 120 characters that can be seen" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("DATABASE_URL", "no address"),
        ("DATABASE_URL", "mysql://u@h/d"),
        ("DATABASE_URL", "postgresql://host/db"),
        ("ADMIN_DATABASE_URL", "no address"),
        ("AUTH_URL", "no address"),
        ("AUTH_JWKS_URL", "ftp://keys"),
        ("AUTH_ISSUER", "https://issuer.example.org"),
        ("TENANT_DISTRIBUTED", "maybe"),
        ("POOL_SIZE", "0"),
        ("POOL_SIZE", "many"),
        ("MAX_UPLOAD_BYTES", "10MiB"),
        ("RATE_LIMIT_STORAGE", "file://tries"),
        ("PASSWORD_POLICY", "on"),
        ("DOCS", "yes"),
        ("CORS_ORIGINS", "app.example.com"),
        ("LOG_LEVEL", "LOUD"),
    ],
)
@pytest.mark.parametrize("verb", [("tenants", "list"), ("openapi", "print")], ids=" ".join)
def test_a_wrong_setting_is_named(cli, verb, setting, value):
    result = cli(*verb, **{setting: value})

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")
    assert setting in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"SIGNING_KEY": None}, "SIGNING_KEY is not set"),
        ({"SIGNING_KEY": "no key"}, "SIGNING_KEY is no PEM private key"),
        (
            {"SIGNING_KEY": None, "SIGNING_KEY_FILE": "/no/such/file"},
            "SIGNING_KEY_FILE /no/such/file can't be read",
        ),
        ({"SIGNING_KEY_FILE": "/no/such/file"}, "SIGNING_KEY and SIGNING_KEY_FILE are both set"),
    ],
)
def test_only_verbs_with_an_application_need_the_signing_key(cli, settings, named):
    result = cli("openapi", "print", **settings)

    assert result.exit_code == 1
    assert named in result.stderr
    assert cli("tenants", "list", **settings).exit_code == 0
    assert cli("clients", "list", **settings).exit_code == 0


def test_an_operators_address_alone_is_not_enough(cli):
    result = cli("tenants", "list", DATABASE_URL=None)

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ADMIN_DATABASE_URL is set, but DATABASE_URL is not set")


def test_without_a_database_and_a_data_folder_there_is_nothing_to_work_on(cli, folder):
    for arguments in (
        ("tenants", "list"),
        ("tenants", "list", "--data-dir", "elsewhere"),
        ("openapi", "print"),
    ):
        result = cli(*arguments, DATABASE_URL=None, ADMIN_DATABASE_URL=None)
        assert (result.exit_code, result.stdout) == (1, "")
        place = "elsewhere" if "--data-dir" in arguments else "school-data"
        assert result.stderr.startswith(f"Error: There is no database in the data folder {folder / place}.")
        assert not (folder / place).exists()


def test_a_data_folder_is_preferred_to_database_url(cli):
    for arguments in (
        ("--data-dir", "elsewhere", "tenants", "list"),
        ("tenants", "list", "--data-dir", "elsewhere"),
    ):
        result = cli(*arguments)
        assert result.exit_code == 1
        assert "elsewhere" in result.stderr


def test_a_file_is_no_data_folder(cli, folder):
    (folder / "file").write_text("")

    assert cli("tenants", "list", "--data-dir", "file").exit_code == 2
    under = cli("tenants", "init", "--data-dir", "file/below")
    assert under.exit_code == 1
    assert under.stderr.startswith(
        f"Error: The data folder {folder}/file/below can't be used: Not a directory"
    )


def leaves(command, path=()):
    if isinstance(command, click.Group):
        for name, verb in command.commands.items():
            yield from leaves(verb, (*path, name))
    else:
        yield path, command


def test_every_verb_takes_the_data_folder():
    without = [
        path for path, verb in leaves(program) if "--data-dir" not in {o for p in verb.params for o in p.opts}
    ]

    assert without == []


def test_every_verb_that_prints_records_takes_json():
    printing = {
        ("tenants", verb) for verb in ("create", "list", "show", "status", "suspend", "resume", "rename")
    } | {("clients", verb) for verb in ("create", "list", "revoke")}

    paths = {path for path, verb in leaves(program) if "--json" in {o for p in verb.params for o in p.opts}}

    assert printing <= paths


def test_an_unreachable_database_is_said_in_one_line(cli):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"postgresql://someone:secret@127.0.0.1:{closed.getsockname()[1]}/db"
        result = cli("tenants", "list", DATABASE_URL=address, ADMIN_DATABASE_URL=address)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: The database can't be reached: ")
    assert len(result.stderr.splitlines()) == 1
    assert "secret" not in result.stderr


def test_a_database_without_a_registry_is_said_in_one_line(cli, installed):
    empty = installed["ADMIN_DATABASE_URL"].replace("/school_tests_", "/postgres?x=").split("?x=")[0]
    empty += (
        f"?{installed['ADMIN_DATABASE_URL'].split('?')[1]}" if "?" in installed["ADMIN_DATABASE_URL"] else ""
    )

    for arguments in (("tenants", "list"), ("tenants", "create", "Name"), ("clients", "list")):
        # Nor has it Citus, which is said first where it should.
        result = cli(*arguments, DATABASE_URL=empty, ADMIN_DATABASE_URL=empty, TENANT_DISTRIBUTED="off")
        assert (result.exit_code, result.stdout) == (1, "")
        assert "school-service tenants init" in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_the_program_itself_ends_with_these_statuses(folder):
    version = run("--version", cwd=folder, command=PROGRAM)
    assert (version.returncode, version.stdout.splitlines()) == (
        0,
        [
            f"school-service {__version__}",
            "commit    unknown",
            f"registry  {registry_head()}",
            f"schools   {head()}",
        ],
    )
    wrong = run("tenants", "list", cwd=folder, settings={"DATABASE_URL": "no address"}, command=PROGRAM)
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr.startswith("Error: DATABASE_URL is no database address")


IMPORTED = """
import sys
from school_service.cli.program import main
try:
    main(sys.argv[1:])
finally:
    print(*sys.modules, sep="\\n", file=sys.stderr)
"""
APPLICATION = {"openpyxl", "flask_smorest", "marshmallow", "school_service.features.people.users.views"}


def test_the_operators_verbs_import_no_views_and_nothing_for_sheets(installed, folder):
    command = (sys.executable, "-c", IMPORTED)
    done = run("tenants", "migrate", cwd=folder, settings=installed, command=command)
    assert done.returncode == 0, done.stderr
    modules = done.stderr.splitlines()

    assert "school_service.tenancy" in modules
    views = [name for name in modules if name.startswith("school_service.") and name.endswith(".views")]
    assert (views, APPLICATION & set(modules)) == ([], set())
    assert "prometheus_client" not in modules
    # Here, where the application is made, they are.
    assert set(sys.modules) >= APPLICATION


def test_the_help_of_serve_says_where_tls_ends(cli):
    said = " ".join(cli("serve", "--help").stdout.split())

    assert "TLS ends at a proxy in front of it, which TRUSTED_PROXIES names" in said


def test_help_names_every_command_without_any_setting(cli):
    result = cli("--help", DATABASE_URL="no address")

    assert result.exit_code == 0
    listed = result.stdout.partition("Commands:\n")[2]
    assert re.findall(r"^  (\w+) ", listed, re.M) == [
        "demo",
        "serve",
        "check",
        "tenants",
        "clients",
        "openapi",
    ]


def test_the_document_is_printed(cli):
    assert json.loads(cli("openapi", "print").stdout)["openapi"].startswith("3.")


@pytest.mark.parametrize("verb", ["routes", "shell"])
def test_flasks_own_verbs_are_none_of_the_service(cli, verb):
    result = cli(verb)

    assert (result.exit_code, result.stdout) == (2, "")
    assert f"No such command '{verb}'" in result.stderr
