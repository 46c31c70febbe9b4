"""Settings: each good, bad and missing; a wrong one is named with its reason, and no secret is repeated."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from school_service.app import create_app
from school_service.auth.signing_key import SigningKey
from school_service.config import ConfigError, Settings, with_secrets_of_files
from tenants.backups.encryption import new_identity
from tests.conftest import SETTINGS, forget_settings

SECRET = "hunter2"
DATABASE_URL = f"postgresql://school:{SECRET}@db.example.com:5432/schools"


def load(**environment):
    """Load good settings but for the given ones; None leaves a setting out."""
    settings = {"DATABASE_URL": DATABASE_URL, **environment}
    return Settings.load({name: value for name, value in settings.items() if value is not None})


def refusal(**environment):
    """Load settings with a bad one among them; answer the message, which must name it and repeat no secret."""
    with pytest.raises(ConfigError) as caught:
        load(**environment)
    message = str(caught.value)
    assert any(name in message for name in environment)
    assert SECRET not in message
    assert "\n" not in message
    # Nor does the exception that a traceback would show beneath it.
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return message


def pem(key, encryption=None):
    """Write a private key as PEM."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption()).decode()


P_256 = ec.generate_private_key(ec.SECP256R1())


def test_the_defaults():
    settings = load()

    assert settings.admin_database_url == settings.database_url
    assert (settings.auth_url, settings.auth_jwks_url, settings.auth_issuers) == (None, None, ())
    assert (settings.auth_audience, settings.auth_school_claim) == ("school-service", "school_id")
    assert (settings.signing_key, settings.docs) == (None, True)
    assert (settings.pool_size, settings.max_upload_bytes) == (10, 10 * 2**20)
    assert (settings.serving_logins, settings.schools_per_connection) == (1, 200)
    assert settings.tenant_distributed is False
    assert (settings.rate_limit_storage, settings.log_level) == ("memory://", "INFO")


@pytest.mark.parametrize(
    "name",
    [
        "ADMIN_DATABASE_URL",
        "AUTH_URL",
        "AUTH_JWKS_URL",
        "AUTH_ISSUER",
        "AUTH_AUDIENCE",
        "AUTH_SCHOOL_CLAIM",
        "AUTH_PERMISSION_CLAIM",
        "SIGNING_KEY",
        "SIGNING_KEY_FILE",
        "TENANT_DISTRIBUTED",
        "SERVING_LOGINS",
        "POOL_SIZE",
        "BACKUP_RECIPIENT",
        "SCHOOLS_PER_CONNECTION",
        "MAX_UPLOAD_BYTES",
        "PASSWORD_POLICY",
        "RATE_LIMIT_STORAGE",
        "METRICS_PORT",
        "METRICS_ADDRESS",
        "DOCS",
        "LOG_LEVEL",
    ],
)
@pytest.mark.parametrize("empty", ["", "  \n"])
def test_an_empty_setting_is_unset(name, empty):
    assert load(**{name: empty}) == load()


def test_space_around_a_value_does_not_count():
    settings = load(DATABASE_URL=f" {DATABASE_URL}\n", POOL_SIZE=" 7 ", DOCS=" off ", LOG_LEVEL=" debug ")

    assert (settings.pool_size, settings.docs, settings.log_level) == (7, False, "DEBUG")
    assert settings.database_url == load().database_url


def test_no_secret_appears_where_settings_are_printed():
    settings = load(SIGNING_KEY=pem(P_256), RATE_LIMIT_STORAGE=f"redis://:{SECRET}@cache/0")

    assert SECRET not in repr(settings)
    assert "PRIVATE" not in repr(settings)


# DATABASE_URL, ADMIN_DATABASE_URL


@pytest.mark.parametrize("missing", [None, "", " "])
def test_a_database_is_needed(missing):
    assert refusal(DATABASE_URL=missing).startswith("DATABASE_URL is not set")


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        (DATABASE_URL, ("school", SECRET, "db.example.com", 5432, "schools")),
        ("postgres://school@db/schools", ("school", None, "db", None, "schools")),
        ("postgresql+psycopg2://school@db/schools", ("school", None, "db", None, "schools")),
        ("postgresql://school:p%40ss%2Fword%25@db/schools", ("school", "p@ss/word%", "db", None, "schools")),
        ("postgresql://school@[::1]:5433/schools", ("school", None, "::1", 5433, "schools")),
        ("postgresql://school@/schools?host=/var/run/postgresql", ("school", None, None, None, "schools")),
    ],
)
def test_a_good_database_address(address, parts):
    url = load(DATABASE_URL=address).database_url

    assert (url.username, url.password, url.host, url.port, url.database) == parts


@pytest.mark.parametrize("name", ["DATABASE_URL", "ADMIN_DATABASE_URL"])
@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (SECRET, "is no database address"),
        (f"school:{SECRET}@db/schools", "is no database address"),
        (f"//school:{SECRET}@db/schools", "is no database address"),
        (f"postgresql://school:{SECRET}@db:port/schools", "is no database address"),
        (f"postgresql://school:word:{SECRET}/@db:{SECRET}/schools", "is no database address"),
        (f"postgresql://school:{SECRET}@db:0/schools", "names no port from 1 to 65535"),
        (f"postgresql://school:{SECRET}@db:65536/schools", "names no port from 1 to 65535"),
        (f"postgresql://school:{SECRET}@db:-1/schools", "names no port from 1 to 65535"),
        (f"mysql://school:{SECRET}@db/schools", "must be a PostgreSQL address"),
        (f"{SECRET}://school@db/schools", "must be a PostgreSQL address"),
        (f"https://school:{SECRET}@db/schools", "must be a PostgreSQL address"),
        ("mailto:school@example.com", "is no database address"),
        ("sqlite://", "must be a PostgreSQL address"),
        (f"postgresql://:{SECRET}@db/schools", "names no user"),
        ("postgresql://db/schools", "names no user"),
        (f"postgresql://school:{SECRET}@db", "names no database"),
        (f"postgresql://school:{SECRET}@db/", "names no database"),
    ],
)
def test_a_bad_database_address(name, address, reason):
    assert refusal(**{name: address}).startswith(f"{name} {reason}")


def test_the_provisioning_login_may_be_another():
    settings = load(ADMIN_DATABASE_URL="postgresql://postgres@db/schools")

    assert (settings.database_url.username, settings.admin_database_url.username) == ("school", "postgres")


# AUTH_URL, AUTH_JWKS_URL, AUTH_ISSUER, AUTH_AUDIENCE, AUTH_SCHOOL_CLAIM


def test_a_provider_gives_keys_and_issuers():
    settings = load(AUTH_URL="https://login.example.com/")

    assert settings.auth_url == "https://login.example.com/"
    assert settings.auth_jwks_url is None  # the provider says it
    assert settings.auth_issuers == ("https://login.example.com", "https://login.example.com/")


def test_a_provider_with_addresses_of_its_own():
    settings = load(
        AUTH_URL="http://localhost:8080/realms/x",
        AUTH_JWKS_URL="http://localhost:8080/keys?app=1",
        AUTH_ISSUER="urn:issuer",
        AUTH_AUDIENCE="schools",
        AUTH_SCHOOL_CLAIM="https://example.com/school",
    )

    assert settings.auth_jwks_url == "http://localhost:8080/keys?app=1"
    assert settings.auth_issuers == ("urn:issuer",)
    assert (settings.auth_audience, settings.auth_school_claim) == ("schools", "https://example.com/school")


BAD_ADDRESSES = [
    ("login.example.com", "must be an http or https address"),
    ("//login.example.com", "must be an http or https address"),
    (f"ftp://user:{SECRET}@login.example.com", "must be an http or https address"),
    (f"mailto:{SECRET}@example.com", "must be an http or https address"),
    ("file:///etc/passwd", "must be an http or https address"),
    ("javascript:alert(1)", "must be an http or https address"),
    ("https://", "must be an http or https address"),
    ("https:///keys", "must be an http or https address"),
    ("https://:8080", "must be an http or https address"),
    ("https://[login.example.com", "is no well-formed address"),
    ("https://login.example.com:port", "is no well-formed address"),
    ("https://login.example.com:65536", "is no well-formed address"),
    ("https://login.example.com:0", "is no well-formed address"),
    ("https://login example.com", "is no well-formed address"),
    (f"https://user:{SECRET}@login.example.com", "must be an address with no user or password"),
    ("https://login.example.com#fragment", "must be an address with no user or password"),
]


@pytest.mark.parametrize(
    ("address", "reason"), [*BAD_ADDRESSES, ("https://a.example.com?x=1", "must be an address")]
)
def test_a_bad_provider(address, reason):
    assert refusal(AUTH_URL=address).startswith(f"AUTH_URL {reason}")


@pytest.mark.parametrize(("address", "reason"), BAD_ADDRESSES)
def test_a_bad_address_of_keys(address, reason):
    message = refusal(AUTH_JWKS_URL=address)

    assert message.startswith(f"AUTH_JWKS_URL {reason}")


@pytest.mark.parametrize(
    "setting", [{"AUTH_JWKS_URL": "https://a.example.com/keys"}, {"AUTH_ISSUER": "issuer"}]
)
def test_keys_and_issuer_need_a_provider(setting):
    assert refusal(**setting).startswith("AUTH_URL is not set, yet")


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("permissions", ("permissions",)),
        ("realm_access.roles", ("realm_access", "roles")),
        ("https://example.org/roles", ("https://example.org/roles",)),
        (None, None),
    ],
)
def test_the_claim_of_permissions_is_a_path(value, path):
    assert load(AUTH_PERMISSION_CLAIM=value).auth_permission_claim == path


@pytest.mark.parametrize("value", [".", "a.", ".a", "a..b", "a b", "a\tb", "a.\u200bb"])
def test_a_bad_path_to_a_claim(value):
    assert refusal(AUTH_PERMISSION_CLAIM=value).startswith(
        "AUTH_PERMISSION_CLAIM must be the name of a claim"
    )


# SIGNING_KEY, SIGNING_KEY_FILE


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (rsa.generate_private_key(65537, 2048), "RS256"),
        (P_256, "ES256"),
        (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
    ],
    ids=["RSA", "P-256", "Ed25519"],
)
def test_a_good_key(tmp_path, key, algorithm):
    path = tmp_path / "key.pem"
    path.write_text(pem(key))
    path.chmod(0o600)

    for settings in (
        load(SIGNING_KEY=pem(key)),
        load(SIGNING_KEY=pem(key).replace("\n", "\\n")),  # on one line, as in files of settings
        load(SIGNING_KEY_FILE=str(path)),
    ):
        read = SigningKey.from_pem(settings.signing_key)
        assert read.algorithm == algorithm
        assert read.to_pem() == pem(key)


PUBLIC = P_256.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
BAD_KEYS = {
    "weak RSA": (pem(rsa.generate_private_key(65537, 1024)), "must be RSA of at least 2048 bits"),
    "P-384": (pem(ec.generate_private_key(ec.SECP384R1())), "must be RSA of at least 2048 bits"),
    "secp256k1": (pem(ec.generate_private_key(ec.SECP256K1())), "must be RSA of at least 2048 bits"),
    "DSA": (pem(dsa.generate_private_key(1024)), "must be RSA of at least 2048 bits"),
    "Ed448": (pem(ed448.Ed448PrivateKey.generate()), "must be RSA of at least 2048 bits"),
    "encrypted": (pem(P_256, BestAvailableEncryption(SECRET.encode())), "is no PEM private key"),
    "public alone": (PUBLIC, "is no PEM private key"),
    "no PEM": (SECRET, "is no PEM private key"),
    "cut short": (pem(P_256)[:80], "is no PEM private key"),
    "no text": ("-----BEGIN PRIVATE KEY-----\nÜ\n-----END PRIVATE KEY-----", "is no PEM"),
}


@pytest.mark.parametrize(("key", "reason"), BAD_KEYS.values(), ids=BAD_KEYS)
def test_a_bad_key_stops_the_start(tmp_path, key, reason):
    path = tmp_path / "key.pem"
    path.write_text(key, encoding="utf-8")
    path.chmod(0o600)
    for name, value in (("SIGNING_KEY", key), ("SIGNING_KEY_FILE", str(path))):
        with pytest.raises(ConfigError) as caught:
            create_app(load(**{name: value}))

        assert str(caught.value).startswith(name)
        assert SECRET not in str(caught.value)
        assert reason in str(caught.value) or "it is no PEM text" in str(caught.value)


def test_no_key_stops_the_start():
    with pytest.raises(ConfigError, match="SIGNING_KEY is not set"):
        create_app(load())


def test_two_keys_are_one_too_many(tmp_path):
    message = refusal(SIGNING_KEY=SECRET, SIGNING_KEY_FILE=str(tmp_path / SECRET))

    assert message == "SIGNING_KEY and SIGNING_KEY_FILE are both set: give one."


def test_a_file_that_is_not_there(tmp_path):
    message = refusal(SIGNING_KEY_FILE=str(tmp_path / "key.pem"))

    assert message.endswith("key.pem can't be read: No such file or directory.")


def test_a_folder_is_no_file(tmp_path):
    assert refusal(SIGNING_KEY_FILE=str(tmp_path)).endswith("can't be read: Is a directory.")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read(tmp_path):
    path = tmp_path / "key.pem"
    path.write_text(pem(P_256))
    path.chmod(0)

    assert refusal(SIGNING_KEY_FILE=str(path)).endswith("can't be read: Permission denied.")


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "key.der"
    path.write_bytes(P_256.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()) + b"\xff")
    path.chmod(0o600)

    assert refusal(SIGNING_KEY_FILE=str(path)).endswith("can't be read: it is no PEM text.")


@pytest.fixture
def key_file(tmp_path):
    """A key file of a user, of a name that a shell would divide."""
    path = tmp_path / "the key.pem"

    def make(mode, owner=None):
        path.write_text(pem(P_256))
        path.chmod(mode)
        if owner is not None:
            os.chown(path, owner, -1)
        return str(path)

    return make


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_key_file_of_its_owner_alone_is_read(key_file, mode):
    settings = load(SIGNING_KEY_FILE=key_file(mode))

    assert (settings.signing_key, settings.signing_key_warning) == (pem(P_256), None)


@pytest.mark.parametrize("mode", [0o602, 0o620, 0o660, 0o666, 0o622, 0o440 | 0o002])
def test_a_key_file_that_others_may_change_stops_the_start(key_file, mode):
    path = key_file(mode)

    assert refusal(SIGNING_KEY_FILE=path) == (
        f"SIGNING_KEY_FILE {path} may be changed by other users of this machine. Run: chmod 600 '{path}'"
    )


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o444])
def test_of_a_key_file_that_others_may_read_the_start_warns(key_file, mode):
    path = key_file(mode)

    assert load(SIGNING_KEY_FILE=path).signing_key_warning == (
        f"SIGNING_KEY_FILE {path} may be read by other users of this machine. Run: chmod 600 '{path}'"
    )


def test_a_link_does_not_hide_a_key_file_that_others_may_change(key_file, tmp_path):
    link = tmp_path / "link.pem"
    link.symlink_to(key_file(0o646))

    assert "may be changed by other users" in refusal(SIGNING_KEY_FILE=str(link))


root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


@root_only
@pytest.mark.parametrize("mode", [0o640, 0o440])
def test_the_group_of_roots_file_may_read_it_and_no_other_users(key_file, mode):
    """As containers hand out secrets."""
    assert load(SIGNING_KEY_FILE=key_file(mode, owner=0)).signing_key_warning is None
    assert "chmod 600" in load(SIGNING_KEY_FILE=key_file(mode, owner=65534)).signing_key_warning


@root_only
def test_a_reader_without_ownership_of_the_file_is_told_to_take_it(key_file, monkeypatch):
    path = key_file(0o666, owner=65534)
    monkeypatch.setattr(os, "geteuid", lambda: 1234)

    assert refusal(SIGNING_KEY_FILE=path).endswith(f"Run: chown 1234 '{path}' && chmod 600 '{path}'")


# Numbers, switches, choices


@pytest.mark.parametrize(
    ("name", "member", "least", "most"),
    [
        ("POOL_SIZE", "pool_size", 1, 500),
        ("MAX_UPLOAD_BYTES", "max_upload_bytes", 1000, 2**30),
        ("SERVING_LOGINS", "serving_logins", 1, 99),
        ("SCHOOLS_PER_CONNECTION", "schools_per_connection", 1, 100_000),
        ("PRINTERS", "printers", 1, 50),
    ],
)
def test_a_number_within_its_bounds(name, member, least, most):
    for value in (least, most):
        assert getattr(load(**{name: str(value)}), member) == value
    for value in (least - 1, most + 1):
        assert (
            refusal(**{name: str(value)})
            == f"{name} must be a whole number from {least} to {most}, not '{value}'."
        )


@pytest.mark.parametrize(
    "name", ["POOL_SIZE", "MAX_UPLOAD_BYTES", "SERVING_LOGINS", "SCHOOLS_PER_CONNECTION"]
)
@pytest.mark.parametrize(
    "value", ["-5", "+5", "1.5", "1e3", "5_000", "ten", "0x10", "\u0665", "10 MB", "9" * 5000]
)
def test_a_text_that_is_no_whole_number_is_refused(name, value):
    assert refusal(**{name: value}).startswith(f"{name} must be a whole number from")


@pytest.mark.parametrize(("name", "member"), [("TENANT_DISTRIBUTED", "tenant_distributed"), ("DOCS", "docs")])
def test_a_switch_is_on_or_off(name, member):
    for value, meant in {"on": True, "ON": True, "off": False, "Off": False}.items():
        assert getattr(load(**{name: value}), member) is meant
    for value in ("true", "false", "1", "0", "yes", "no", "onn"):
        assert refusal(**{name: value}) == f"{name} must be on or off, not '{value}'."


def test_several_logins_need_a_name_that_bears_a_number():
    longest = f"postgresql://{'x' * 57}@db/schools"
    assert load(SERVING_LOGINS="2", DATABASE_URL=longest).serving_logins == 2


def test_a_login_leaves_room_for_the_name_of_the_tables_owner():
    address = "postgresql://{}@db.example.com/schools".format
    assert load(DATABASE_URL=address("x" * 57)).database_url.username == "x" * 57
    assert "more than 63 bytes" in refusal(DATABASE_URL=address("x" * 58))
    assert "more than 63 bytes" in refusal(DATABASE_URL=address("%C3%A9" * 29))


def test_a_policy_of_passwords_is_one_that_there_is():
    assert load().password_policy is None
    for value in ("strict", "STRICT", " Strict "):
        assert load(PASSWORD_POLICY=value).password_policy == "strict"
    assert load(PASSWORD_POLICY="any").password_policy == "any"
    for value in ("on", "off", "stricter"):
        assert refusal(PASSWORD_POLICY=value) == f"PASSWORD_POLICY must be one of any, strict, not {value!r}."


def test_a_level_of_logs_is_one_that_there_is():
    for value in ("DEBUG", "info", "Warning", "ERROR", "critical"):
        assert load(LOG_LEVEL=value).log_level == value.upper()
    for value in ("verbose", "10", "NOTSET", "WARN"):
        assert refusal(LOG_LEVEL=value).startswith(
            "LOG_LEVEL must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL"
        )


@pytest.mark.parametrize(
    "value",
    [
        "memory://",
        "redis://cache",
        f"redis://:{SECRET}@cache:6379/0",
        "rediss://cache/1",
        "redis+unix:///run/redis.sock",
        "redis+sentinel://one:26379,two:26379/main",
        "redis+cluster://one:7000,two:7000",
    ],
)
def test_a_good_place_to_count_tries(value):
    assert load(RATE_LIMIT_STORAGE=value).rate_limit_storage == value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("redis", "must be memory:// or a Redis address"),
        ("memory", "must be memory:// or a Redis address"),
        ("memory://x", "must be memory:// or a Redis address"),
        ("redis://", "must be memory:// or a Redis address"),
        ("mailto:cache@example.com", "must be memory:// or a Redis address"),
        (f"memcached://:{SECRET}@cache", "must be memory:// or a Redis address"),
        (f"mongodb://user:{SECRET}@cache", "must be memory:// or a Redis address"),
        (f"redis://:{SECRET}@cache:port", "is no well-formed address"),
        (f"redis://:{SECRET}@cache:65536", "is no well-formed address"),
    ],
)
def test_a_bad_place_to_count_tries(value, reason):
    assert refusal(RATE_LIMIT_STORAGE=value).startswith(f"RATE_LIMIT_STORAGE {reason}")


def test_every_setting_is_documented():
    for setting in fields(Settings):
        assert f"`{setting.name}`" in Settings.__doc__


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_every_setting_is_told_to_operators(name):
    told = (Path(__file__).parents[1] / "docs" / "operators.md").read_text(encoding="utf-8")

    assert f"`{name}`" in told


def test_trusted_proxies_are_addresses_and_networks():
    loaded = load(TRUSTED_PROXIES="10.0.0.0/8, 192.0.2.1,fd00::/8")

    assert [str(network) for network in loaded.trusted_proxies] == ["10.0.0.0/8", "192.0.2.1/32", "fd00::/8"]
    assert load().trusted_proxies == ()


@pytest.mark.parametrize("value", ["proxy.example", "10.0.0.0/8,", "10.0.0.1/8", "10.0.0.0/33"])
def test_a_text_that_is_no_network_is_refused(value):
    with pytest.raises(ConfigError, match="TRUSTED_PROXIES must be addresses or networks"):
        load(TRUSTED_PROXIES=value)


# CORS_ORIGINS


@pytest.mark.parametrize(
    ("value", "origins"),
    [
        ("*", ("*",)),
        (" * ", ("*",)),
        ("https://app.example.com", ("https://app.example.com",)),
        (
            "HTTPS://App.Example.com:443 , http://localhost:05173",
            ("https://app.example.com", "http://localhost:5173"),
        ),
        ("http://[::1]:3000,http://10.0.0.7:80", ("http://[::1]:3000", "http://10.0.0.7")),
        ("https://a.example,https://a.example:443", ("https://a.example",)),
        ("capacitor://localhost", ("capacitor://localhost",)),
        ("https://xn--fiqs8s.example:80", ("https://xn--fiqs8s.example:80",)),
        ("", ()),
    ],
)
def test_origins_are_as_browsers_send_them(value, origins):
    assert load(CORS_ORIGINS=value).cors_origins == origins


@pytest.mark.parametrize(
    "value",
    [
        "app.example.com",
        "https://app.example.com/",
        "https://app.example.com/app",
        "https://*.example.com",
        "*,https://app.example.com",
        "https://app.example.com,",
        "https://user@app.example.com",
        "https://app.example.com:0",
        "https://app.example.com:65536",
        "https://écoles.example",
        "https://app.example.com https://b.example.com",
        "https://",
        "null",
        "file://",
        ".*",
        "https://.*",
    ],
)
def test_a_text_that_is_no_origin_is_refused(value):
    said = refusal(CORS_ORIGINS=value)

    assert said.startswith("CORS_ORIGINS must be * alone, or origins separated by commas.")
    assert "such as https://app.example.com" in said


# BACKUP_RECIPIENT


def test_backups_are_encrypted_to_one_key_or_several():
    first, second = (str(new_identity().to_public()) for _ in range(2))

    assert load().backup_recipients == ()
    assert load(BACKUP_RECIPIENT=first).backup_recipients == (first,)
    assert load(BACKUP_RECIPIENT=f" {first} , {second}, ").backup_recipients == (first, second)


def test_a_key_that_is_none_is_refused_and_not_repeated():
    key = new_identity()
    good, private = str(key.to_public()), str(key)

    for wrong in ("age1x", f"{good} {good}", f"{good},x", private, f"{good},{private}"):
        message = refusal(BACKUP_RECIPIENT=wrong)
        assert wrong not in message
        assert private not in message
    assert "private key" in refusal(BACKUP_RECIPIENT=private)


def test_settings_of_the_environment_do_not_reach_the_tests(monkeypatch):
    for name in ("TENANT_DISTRIBUTED", "DATABASE_URL", "PGOPTIONS", "DOCS", "SIGNING_KEY_FILE"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("TEST_DATABASE_URL", "y")

    forget_settings()

    left = {
        "TENANT_DISTRIBUTED",
        "DATABASE_URL",
        "PGOPTIONS",
        "DOCS",
        "SIGNING_KEY_FILE",
        "TEST_DATABASE_URL",
    }
    assert left & set(os.environ) == {"TEST_DATABASE_URL"}
    assert {"TENANT_DISTRIBUTED", "POOL_SIZE", "LOG_LEVEL"} < SETTINGS


# Secrets in files


@pytest.mark.parametrize("name", ["DATABASE_URL", "ADMIN_DATABASE_URL", "RATE_LIMIT_STORAGE"])
def test_a_secret_may_lie_in_a_file(tmp_path, name):
    value = "redis://:p@cache/0" if name == "RATE_LIMIT_STORAGE" else "postgresql://u:p%40ss@host/schools"
    path = tmp_path / "secret"
    path.write_text(f"{value}\n")

    in_file = load(**{name: "", f"{name}_FILE": f" {path} "})

    assert in_file == load(**{name: value})
    assert with_secrets_of_files({f"{name}_FILE": str(path)}) == {name: value}


def test_a_secret_in_two_places_is_refused(tmp_path):
    said = refusal(DATABASE_URL="postgresql://u@h/d", DATABASE_URL_FILE=str(tmp_path / "x"))

    assert said == "DATABASE_URL and DATABASE_URL_FILE are both set: give one."


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "can't be read: No such file or directory."),
        (b"\xff\xfe", "can't be read: it is no text in UTF-8."),
        (b" \n", "must hold one line, which is the value of DATABASE_URL."),
        (
            SECRET.encode() + b"\n" + SECRET.encode(),
            "must hold one line, which is the value of DATABASE_URL.",
        ),
    ],
    ids=["absent", "no text", "empty", "two lines"],
)
def test_a_file_without_a_secret_is_refused_and_not_repeated(tmp_path, content, reason):
    path = tmp_path / "url"
    if content is not None:
        path.write_bytes(content)

    said = refusal(DATABASE_URL="", DATABASE_URL_FILE=str(path))

    assert said == f"DATABASE_URL_FILE {path} {reason}"


def test_a_file_of_a_secret_that_others_may_change_stops_the_start(tmp_path):
    path = tmp_path / "url"
    path.write_text(f"postgresql://u:{SECRET}@h/d")

    for mode in (0o620, 0o602, 0o666):
        path.chmod(mode)
        said = refusal(DATABASE_URL="", DATABASE_URL_FILE=str(path))
        assert (
            said
            == f"DATABASE_URL_FILE {path} may be changed by other users of this machine. Run: chmod 600 {path}"
        )
    # Docker hands secrets over that all may read.
    path.chmod(0o444)
    assert load(DATABASE_URL="", DATABASE_URL_FILE=str(path)).database_url.password == SECRET


def test_a_file_with_a_wrong_address_is_told_by_the_settings_name(tmp_path):
    path = tmp_path / "url"
    path.write_text(f"mysql://u:{SECRET}@h/d")

    said = refusal(DATABASE_URL="", DATABASE_URL_FILE=str(path))

    assert said.startswith("DATABASE_URL must be a PostgreSQL address")
    assert SECRET not in said


# METRICS_PORT, METRICS_ADDRESS


def test_metrics_are_off_and_for_this_machine_alone_unless_said_otherwise():
    assert (load().metrics_port, load().metrics_address) == (None, "127.0.0.1")
    assert load(METRICS_PORT="9100").metrics_port == 9100
    assert load(METRICS_PORT="0").metrics_port == 0
    assert load(METRICS_ADDRESS="0.0.0.0").metrics_address == "0.0.0.0"
    assert load(METRICS_ADDRESS="::").metrics_address == "::"


@pytest.mark.parametrize("value", ["65536", "-1", "on", "0x10", "9100.0", "127.0.0.1:9100"])
def test_a_bad_port_of_metrics(value):
    assert refusal(METRICS_PORT=value).startswith("METRICS_PORT must be a whole number from 0 to 65535")


@pytest.mark.parametrize("value", ["all", "localhost", "10.0.0.0/8", "1.2.3", "[::1]", "127.0.0.1:9100"])
def test_a_bad_address_of_metrics(value):
    assert refusal(METRICS_ADDRESS=value).startswith("METRICS_ADDRESS must be an address")


# The public address


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("https://schools.example.org", "https://schools.example.org"),
        ("https://example.org/schools/", "https://example.org/schools"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("", None),
    ],
)
def test_the_public_address_has_no_slash_at_its_end(address, url):
    assert load(PUBLIC_URL=address).public_url == url


@pytest.mark.parametrize(
    "address", ["schools.example.org", "ftp://a.example", "https://a.example?x=1", "https://u:p@a.example"]
)
def test_an_address_that_is_not_public_is_refused(address):
    assert refusal(PUBLIC_URL=address).startswith("PUBLIC_URL must be")


# The built-in provider, beside an outside one


def test_the_built_in_provider_is_there_where_there_is_no_other_or_it_is_on():
    outside = {"AUTH_URL": "https://login.example.com"}
    assert load().built_in_provider is True
    assert load(**outside).built_in_provider is False
    assert load(**outside, BUILT_IN_PROVIDER="auto").built_in_provider is False
    assert load(**outside, BUILT_IN_PROVIDER="on").built_in_provider is True
    assert refusal(BUILT_IN_PROVIDER="off") == "BUILT_IN_PROVIDER must be one of auto, on, not 'off'."


def test_people_sign_in_at_the_public_address_of_the_built_in_provider():
    address = "https://schools.example.org/api/"
    assert load().issuer is None
    assert load(PUBLIC_URL=address).issuer == "https://schools.example.org/api/auth"
    assert load(PUBLIC_URL=address, AUTH_URL="https://login.example.com").issuer is None


def test_two_providers_with_one_name_are_refused():
    both = {"PUBLIC_URL": "https://schools.example.org", "BUILT_IN_PROVIDER": "on"}
    assert "built-in provider" in refusal(**both, AUTH_URL="https://schools.example.org/auth")
    named = {"AUTH_URL": "https://login.example.com", "AUTH_ISSUER": "https://schools.example.org/auth"}
    assert "built-in provider" in refusal(**both, **named)
    assert load(**{**both, **named, "BUILT_IN_PROVIDER": "auto"}).issuer is None


def test_linked_users_need_an_outside_provider():
    assert load().auth_linked_users is False
    assert load(AUTH_URL="https://login.example.com", AUTH_LINKED_USERS="on").auth_linked_users is True
    assert "AUTH_URL is not set" in refusal(AUTH_LINKED_USERS="on")
