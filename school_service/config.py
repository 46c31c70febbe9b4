"""Every setting: read from the environment, validated at start, documented here once.

A secret may lie in a file instead, as Docker and Kubernetes hand them over: the setting's name with _FILE behind it
is then the file's path (SECRETS).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from stat import S_IRGRP, S_IROTH, S_IWGRP, S_IWOTH
from typing import ClassVar, NamedTuple
from urllib.parse import SplitResult, urlsplit

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from tenants.backups.encryption import parse_recipient
from tenants.connections.binding import STATEMENT_TIMEOUT
from tenants.connections.pool import SCHOOLS_PER_CONNECTION
from tenants.placement import MAX_LOGINS
from tenants.registry.schools import PASSWORD_POLICIES
from tenants.tenancy import OWNER_SUFFIX

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
# The settings that hold secrets: each may be given as the path of a file, by its name and FILE_SUFFIX.
SECRETS = ("DATABASE_URL", "ADMIN_DATABASE_URL", "RATE_LIMIT_STORAGE", "SIGNING_KEY")
FILE_SUFFIX = "_FILE"

IN_MEMORY = "memory://"
"""The storage of counted tries in the process itself."""
_REDIS = {"redis", "rediss", "redis+unix", "redis+sentinel", "redis+cluster"}
MAX_ROLE_NAME_BYTES = 63  # bytes of a role's name
ALL_ORIGINS = "*"
ISSUER_PATH = "/auth"
_BUILT_IN_PROVIDER = (_AUTO, _ON) = ("auto", "on")
JSON_LIMIT = 2**20  # bytes of a JSON body
# A host is a name in ASCII (an international one as xn--…), or an address of IPv4 or, in brackets, of IPv6. Apps have
# schemes of their own (capacitor://localhost).
_ORIGIN = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*+)://(?P<host>[a-z0-9_-]++(?>(?:\.[a-z0-9_-]++)*)|\[[0-9a-f:.]++\])(?::(?P<port>[0-9]{1,5}))?"
)
_DEFAULT_PORTS = {"http": "80", "https": "443"}
# The user and password, and the query, of an address.
_IN_ADDRESS = re.compile(r"(?<=://)[^/@\s]{1,1000}@|(?<=\?)\S++")
_DATABASE = "postgresql://user:password@host/database"


Networks = tuple[IPv4Network | IPv6Network, ...]


class ConfigError(Exception):
    """A setting is wrong or missing; the message names it and the reason."""


@dataclass(frozen=True)
class Settings:
    """The settings of a process, each named by its environment variable; empty is unset.

    DATABASE_URL_FILE, ADMIN_DATABASE_URL_FILE and RATE_LIMIT_STORAGE_FILE, each in place of the setting of the same
    name, are the paths of files with the address on one line; a file open to changes by other users is refused.

    `database_url`      DATABASE_URL: the login for requests, `postgresql://user:password@host/database`
    `admin_database_url`  ADMIN_DATABASE_URL: the login for provisioning schools; default: DATABASE_URL
    `auth_url`          AUTH_URL: the outside identity provider; default: none, and the built-in one is mounted
    `auth_jwks_url`     AUTH_JWKS_URL: its keys; default: None, and AUTH_URL/.well-known/openid-configuration has
                        their address
    `auth_issuers`      AUTH_ISSUER: the `iss` of its tokens; default: AUTH_URL, with or without a final slash
    `auth_audience`     AUTH_AUDIENCE: the required `aud` of tokens; default: school-service
    `auth_school_claim` AUTH_SCHOOL_CLAIM: the claim with the schools of a token; default: school_id
    `auth_client_claim` AUTH_CLIENT_CLAIM: the mark of an outside token as a client's own, beside its
                        `sub`: `claim=value`, or a claim with the client's id; default: none
    `auth_permission_claim`  AUTH_PERMISSION_CLAIM: the path of members to the claim with an outside token's
                        permissions, in place of `permissions` and `scope`: `realm_access.roles`; default: none
    `auth_user_claim`   AUTH_USER_CLAIM: the claim with the id of a user of the school; default: none
    `auth_linked_users` AUTH_LINKED_USERS: on (an end user's outside token is of the account linked to its
                        `iss` and `sub`) or off; default: off
    `built_in_provider` BUILT_IN_PROVIDER: on (beside an outside provider too) or auto (without an outside one);
                        default: auto
    `signing_key`       SIGNING_KEY or SIGNING_KEY_FILE: PEM private keys of its own tokens (RSA of at least
                        2048 bits, P-256 or Ed25519): the first signs, all verify; `signing_key_setting` names
                        their setting; a file open to changes by other users is refused, and `signing_key_warning`
                        tells of one open to their reading, with the remedy
    `tenant_distributed`  TENANT_DISTRIBUTED: on (Citus places each school on a node) or off; default: off
    `serving_logins`    SERVING_LOGINS: logins to divide the schools among, 1 to 99; default: 1, DATABASE_URL's
    `pool_size`         POOL_SIZE: database connections for requests, 1 to 500; default: 10
    `schools_per_connection`  SCHOOLS_PER_CONNECTION: schools served by a connection before its replacement,
                        1 to 100,000; default: 200
    `statement_timeout` STATEMENT_TIMEOUT: seconds for PostgreSQL to work on a statement of a request, 1 to 3600;
                        default: 15
    `school_requests`   SCHOOL_REQUESTS: requests of one school worked on at once, 1 to 500; default: half of
                        the threads of `serve`, elsewhere half of POOL_SIZE
    `connections_per_address`  CONNECTIONS_PER_ADDRESS: connections of one address, 1 to 500; default: 100
    `printers`          PRINTERS: processes printing at once, 1 to 50; default: 2
    `public_url`        PUBLIC_URL: the service's address for people: in the codes of report cards, and for signing
                        in, with PUBLIC_URL/auth as the issuer; default: none
    `max_upload_bytes`  MAX_UPLOAD_BYTES: largest upload, 1 kB to 1 GiB; default: 10 MiB
    `trusted_proxies`   TRUSTED_PROXIES: addresses or networks, separated by commas, of the proxies whose
                        X-Forwarded-For is believed; default: none
    `cors_origins`      CORS_ORIGINS: origins of web pages, separated by commas, whose scripts may read answers (CORS):
                        `https://app.example.com`, or `*` for all; default: none
    `backup_recipients` BACKUP_RECIPIENT: public keys of age (age1…), separated by commas, for the encryption of
                        every backup; default: none
    `password_policy`   PASSWORD_POLICY: the new passwords taken: any, or strict (10 characters or more, none of the
                        most common, not the username); default: the registry's, made strict by `tenants init` in a
                        new registry, else any
    `rate_limit_storage`  RATE_LIMIT_STORAGE: the storage of counted tries, memory:// or redis://host; default: memory://
    `metrics_port`      METRICS_PORT: the port of the metrics for Prometheus, 0 to 65535 (0: a free one); default: none
    `metrics_address`   METRICS_ADDRESS: the address to serve them on; default: 127.0.0.1
    `docs`              DOCS: on or off: the documents /openapi.json and /docs; default: on
    `log_level`         LOG_LEVEL: DEBUG, INFO, WARNING, ERROR or CRITICAL; default: INFO

    `given` are the values of the settings that the environment has, to be shown: of a secret that it is `set`, and
    nothing of a user, a password or a query in an address.
    """

    database_url: URL
    admin_database_url: URL
    auth_url: str | None
    auth_jwks_url: str | None
    auth_issuers: tuple[str, ...]
    auth_audience: str
    auth_school_claim: str
    auth_client_claim: str | None
    auth_permission_claim: tuple[str, ...] | None
    auth_user_claim: str | None
    auth_linked_users: bool
    built_in_provider: bool
    signing_key: str | None = field(repr=False)
    signing_key_setting: str
    signing_key_warning: str | None
    tenant_distributed: bool
    serving_logins: int
    pool_size: int
    schools_per_connection: int
    statement_timeout: int
    school_requests: int | None
    connections_per_address: int
    printers: int
    public_url: str | None
    max_upload_bytes: int
    trusted_proxies: Networks
    cors_origins: tuple[str, ...]
    backup_recipients: tuple[str, ...]
    password_policy: str | None
    rate_limit_storage: str = field(repr=False)
    metrics_port: int | None
    metrics_address: str
    docs: bool
    log_level: str
    given: dict[str, str] = field(compare=False, repr=False)

    @property
    def issuer(self) -> str | None:
        """The issuer for people's sign-in, PUBLIC_URL/auth; None without PUBLIC_URL or the built-in provider."""
        return f"{self.public_url}{ISSUER_PATH}" if self.public_url and self.built_in_provider else None

    REQUIRED: ClassVar[str] = f"DATABASE_URL is not set: give it as {_DATABASE}."

    @classmethod
    def load(cls, environment: Mapping[str, str]) -> Settings:
        """Read the settings; raises ConfigError for the first wrong one."""
        read = _Reader(with_secrets_of_files(environment))
        database_url = read.serving_address()
        provider = read.provider()
        return cls(
            database_url=database_url,
            admin_database_url=read.database_url("ADMIN_DATABASE_URL") or database_url,
            auth_url=provider.url,
            auth_jwks_url=provider.jwks_url,
            auth_issuers=provider.issuers,
            auth_audience=read.text("AUTH_AUDIENCE") or "school-service",
            auth_school_claim=read.text("AUTH_SCHOOL_CLAIM") or "school_id",
            auth_client_claim=read.text("AUTH_CLIENT_CLAIM"),
            auth_permission_claim=read.claim_path("AUTH_PERMISSION_CLAIM"),
            auth_user_claim=read.text("AUTH_USER_CLAIM"),
            auth_linked_users=provider.linked_users,
            built_in_provider=provider.built_in,
            signing_key=read.signing_key(),
            signing_key_setting="SIGNING_KEY" if read.text("SIGNING_KEY") else "SIGNING_KEY_FILE",
            signing_key_warning=read.signing_key_warning(),
            tenant_distributed=read.switch("TENANT_DISTRIBUTED", default=False),
            serving_logins=read.integer("SERVING_LOGINS", default=1, least=1, most=MAX_LOGINS),
            pool_size=read.integer("POOL_SIZE", default=10, least=1, most=500),
            schools_per_connection=read.integer(
                "SCHOOLS_PER_CONNECTION", default=SCHOOLS_PER_CONNECTION, least=1, most=100_000
            ),
            statement_timeout=read.integer(
                "STATEMENT_TIMEOUT", default=STATEMENT_TIMEOUT, least=1, most=3600
            ),
            school_requests=read.integer("SCHOOL_REQUESTS", default=0, least=1, most=500) or None,
            connections_per_address=read.integer("CONNECTIONS_PER_ADDRESS", default=100, least=1, most=500),
            printers=read.integer("PRINTERS", default=2, least=1, most=50),
            public_url=provider.public_url,
            max_upload_bytes=read.integer("MAX_UPLOAD_BYTES", default=10 * 2**20, least=1000, most=2**30),
            trusted_proxies=read.networks("TRUSTED_PROXIES"),
            cors_origins=read.origins("CORS_ORIGINS"),
            backup_recipients=read.recipients("BACKUP_RECIPIENT"),
            password_policy=read.choice("PASSWORD_POLICY", PASSWORD_POLICIES)
            if read.text("PASSWORD_POLICY")
            else None,
            rate_limit_storage=read.storage("RATE_LIMIT_STORAGE"),
            metrics_port=read.port("METRICS_PORT"),
            metrics_address=read.address("METRICS_ADDRESS", default="127.0.0.1"),
            docs=read.switch("DOCS", default=True),
            log_level=read.choice("LOG_LEVEL", LOG_LEVELS, default="INFO"),
            given=read.public_values(),
        )


def with_secrets_of_files(environment: Mapping[str, str]) -> dict[str, str]:
    """Read the secrets given as files (DATABASE_URL_FILE and so on) into an environment's copy.

    SIGNING_KEY_FILE stays as it is: a key is read where it is needed. Raises ConfigError if a setting is given in both
    ways, or its file can't be read, is empty or open to changes by other users.
    """
    variables = dict(environment)
    for name in SECRETS:
        setting = f"{name}{FILE_SUFFIX}"
        path = environment.get(setting, "").strip()
        if not path:
            continue
        if environment.get(name, "").strip():
            raise ConfigError(f"{name} and {setting} are both set: give one.")
        if name != "SIGNING_KEY":
            variables[name] = _secret_of_file(setting, path)
            del variables[setting]
    return variables


def _secret_of_file(setting: str, path: str) -> str:
    """Read a text file with a secret as its content; no message repeats a part of it."""
    content = _read_unchanged(setting, path, "utf-8", "text in UTF-8").strip()
    if not content or "\n" in content:
        raise ConfigError(
            f"{setting} {path} must hold one line, which is the value of {setting[: -len(FILE_SUFFIX)]}."
        )
    return content


def _read_unchanged(setting: str, path: str, encoding: str, kind: str) -> str:
    """Read a file with a secret of this kind; raises ConfigError if it can't be read, or changed by other users."""
    try:
        with open(path, encoding=encoding) as file:
            status = os.fstat(file.fileno())
            if os.name == "posix" and status.st_mode & (S_IWGRP | S_IWOTH):
                raise ConfigError(_exposed(setting, path, "changed", status))
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"it is no {kind}"
        raise ConfigError(f"{setting} {path} can't be read: {reason}.") from None


class _Provider(NamedTuple):
    """The signer of tokens: an outside provider, our own or both, as the settings of these names say."""

    url: str | None
    jwks_url: str | None
    issuers: tuple[str, ...]
    linked_users: bool
    built_in: bool
    public_url: str | None


class _Reader:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._names: set[str] = set()

    def text(self, name: str) -> str | None:
        self._names.add(name)
        value = self._environment.get(name, "").strip()
        return value or None

    def public_values(self) -> dict[str, str]:
        values = {name: value for name in sorted(self._names) if (value := self.text(name))}
        return {
            name: "set" if name in SECRETS else _IN_ADDRESS.sub("…", value) for name, value in values.items()
        }

    # Addresses hold passwords: no message repeats one, or a part of one.

    def serving_address(self) -> URL:
        """Read DATABASE_URL; raises ConfigError without it."""
        url = self.database_url("DATABASE_URL")
        if url is None:
            raise ConfigError(Settings.REQUIRED)
        # The owner's name is longer than the logins of SERVING_LOGINS, which have a number behind the user's name.
        if len(f"{url.username}{OWNER_SUFFIX}".encode()) > MAX_ROLE_NAME_BYTES:
            raise ConfigError(
                f"DATABASE_URL names a user too long for the owner of the schools' tables: with {OWNER_SUFFIX} behind "
                f"it, more than {MAX_ROLE_NAME_BYTES} bytes."
            )
        return url

    def database_url(self, name: str) -> URL | None:
        value = self.text(name)
        if value is None:
            return None
        try:
            url = make_url(re.sub(r"^postgres://", "postgresql://", value))
            port_fits = url.port is None or 1 <= url.port <= 65535
        except (ArgumentError, ValueError):
            raise ConfigError(f"{name} is no database address; its form is {_DATABASE}.") from None
        if url.get_backend_name() != "postgresql":
            raise ConfigError(f"{name} must be a PostgreSQL address; its form is {_DATABASE}.")
        parts = {"user": url.username, "database": url.database, "port from 1 to 65535": port_fits}
        for part, there in parts.items():
            if not there:
                raise ConfigError(f"{name} names no {part}; its form is {_DATABASE}.")
        return url

    def web_address(self, name: str, *, with_query: bool = False) -> str | None:
        value = self.text(name)
        if value is None:
            return None
        parts = _split(name, value)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError(f"{name} must be an http or https address, such as https://login.example.com.")
        if parts.username is not None or parts.fragment or (parts.query and not with_query):
            query = "" if with_query else ", no query"
            raise ConfigError(f"{name} must be an address with no user or password{query} and no fragment.")
        return value

    def provider(self) -> _Provider:
        url = self.web_address("AUTH_URL")
        jwks_url = self.web_address("AUTH_JWKS_URL", with_query=True)
        issuer = self.text("AUTH_ISSUER")
        linked_users = self.switch("AUTH_LINKED_USERS", default=False)
        if url is None:
            self._refuse_without_provider(jwks_url or issuer, linked_users)
        built_in = self.choice("BUILT_IN_PROVIDER", _BUILT_IN_PROVIDER, default=_AUTO) == _ON or url is None
        base = (url or "").rstrip("/")
        issuers = (issuer,) if issuer else (base, f"{base}/") if base else ()
        public_url = (self.web_address("PUBLIC_URL") or "").rstrip("/") or None
        if built_in and public_url and f"{public_url}{ISSUER_PATH}" in issuers:
            raise ConfigError(
                "AUTH_URL or AUTH_ISSUER names the built-in provider, PUBLIC_URL/auth: nobody could tell the tokens of "
                "the two apart."
            )
        return _Provider(url, jwks_url, issuers, linked_users, built_in, public_url)

    def _refuse_without_provider(self, address: str | None, linked_users: bool) -> None:
        if address:
            raise ConfigError(
                "AUTH_URL is not set, yet AUTH_JWKS_URL or AUTH_ISSUER is: name the provider with AUTH_URL."
            )
        if linked_users:
            raise ConfigError(
                "AUTH_LINKED_USERS is on, yet AUTH_URL is not set: name the provider with AUTH_URL."
            )

    def claim_path(self, name: str) -> tuple[str, ...] | None:
        value = self.text(name)
        if value is None:
            return None
        # A name that is an address, as some providers ask for, has dots of its own.
        path = (value,) if "://" in value else tuple(value.split("."))
        if not all(path) or not value.isprintable() or " " in value:
            raise ConfigError(
                f"{name} must be the name of a claim, or names with dots between them, such as realm_access.roles, "
                f"not {value!r}."
            )
        return path

    def integer(self, name: str, *, default: int, least: int, most: int) -> int:
        value = self.text(name)
        if value is None:
            return default
        if not re.fullmatch(r"[0-9]{1,12}", value) or not least <= int(value) <= most:
            raise ConfigError(f"{name} must be a whole number from {least} to {most}, not {value!r}.")
        return int(value)

    def port(self, name: str) -> int | None:
        return self.integer(name, default=0, least=0, most=65535) if self.text(name) else None

    def address(self, name: str, *, default: str) -> str:
        value = self.text(name) or default
        try:
            return str(ip_address(value))
        except ValueError:
            raise ConfigError(
                f"{name} must be an address of IPv4 or IPv6, such as 127.0.0.1 or 0.0.0.0, not {value!r}."
            ) from None

    def networks(self, name: str) -> Networks:
        value = self.text(name)
        try:
            return tuple(ip_network(part.strip()) for part in value.split(",")) if value else ()
        except ValueError:
            raise ConfigError(
                f"{name} must be addresses or networks separated by commas, such as 10.0.0.0/8, not {value!r}."
            ) from None

    def origins(self, name: str) -> tuple[str, ...]:
        value = self.text(name)
        if value is None or value == ALL_ORIGINS:
            return (value,) if value else ()
        return tuple(dict.fromkeys(_origin(name, part.strip()) for part in value.split(",")))

    def recipients(self, name: str) -> tuple[str, ...]:
        # No message repeats a key: it could be a private one.
        keys = tuple(key.strip() for key in (self.text(name) or "").split(",") if key.strip())
        for key in keys:
            try:
                parse_recipient(key)
            except ValueError as error:
                raise ConfigError(
                    f"{name} must be public keys of age separated by commas; one of them is wrong: {error}."
                ) from None
        return keys

    def switch(self, name: str, *, default: bool) -> bool:
        value = (self.text(name) or ("on" if default else "off")).lower()
        if value not in {"on", "off"}:
            raise ConfigError(f"{name} must be on or off, not {value!r}.")
        return value == "on"

    def choice(self, name: str, choices: tuple[str, ...], *, default: str = "") -> str:
        value = self.text(name) or default
        chosen = next((choice for choice in choices if choice.lower() == value.lower()), None)
        if chosen is None:
            raise ConfigError(f"{name} must be one of {', '.join(choices)}, not {value!r}.")
        return chosen

    def storage(self, name: str) -> str:
        value = self.text(name) or IN_MEMORY
        scheme, _, rest = value.partition("://")
        if value != IN_MEMORY and (scheme not in _REDIS or not rest):
            raise ConfigError(f"{name} must be memory:// or a Redis address, such as redis://host:6379/0.")
        if scheme in {"redis", "rediss"}:
            _split(name, value)
        return value

    def signing_key_warning(self) -> str | None:
        """Warn of a key file open to reading by other users; a file of root's may be read by its group.

        So containers hand secrets to a process of another user than root.
        """
        path = self.text("SIGNING_KEY_FILE")
        if not path or os.name != "posix":
            return None
        status = os.stat(path)
        group_reads = S_IRGRP if status.st_uid else 0
        return (
            _exposed("SIGNING_KEY_FILE", path, "read", status)
            if status.st_mode & (S_IROTH | group_reads)
            else None
        )

    def signing_key(self) -> str | None:
        inline, path = self.text("SIGNING_KEY"), self.text("SIGNING_KEY_FILE")
        if inline:
            # Environment files often hold a PEM on one line.
            return inline.replace("\\n", "\n")
        return _read_unchanged("SIGNING_KEY_FILE", path, "ascii", "PEM text") if path else None


def _exposed(setting: str, path: str, how: str, status: os.stat_result) -> str:
    """Write the message on a file exposed to other users, with the command to mend it."""
    user, file = os.geteuid(), shlex.quote(path)
    mend = f"chmod 600 {file}" if user in (0, status.st_uid) else f"chown {user} {file} && chmod 600 {file}"
    return f"{setting} {path} may be {how} by other users of this machine. Run: {mend}"


def _origin(name: str, value: str) -> str:
    """Write an origin as browsers send it: in small letters, without the default port of its scheme."""
    match = _ORIGIN.fullmatch(value.lower())
    if match is None or int(match["port"] or 1) not in range(1, 2**16):
        raise ConfigError(
            f"{name} must be {ALL_ORIGINS} alone, or origins separated by commas. An origin is a scheme, a host as "
            f"browsers send it and perhaps a port, such as https://app.example.com; {value!r} is none."
        )
    scheme, host, port = match.groups()
    return (
        f"{scheme}://{host}"
        if port in {None, _DEFAULT_PORTS.get(scheme)}
        else f"{scheme}://{host}:{int(port)}"
    )


def _split(name: str, value: str) -> SplitResult:
    try:
        parts = urlsplit(value)
        well_formed = parts.port != 0 and not re.search(r"\s", value)
    except ValueError:
        well_formed = False
    if not well_formed:
        raise ConfigError(f"{name} is no well-formed address.")
    return parts
