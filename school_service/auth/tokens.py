"""Verifying tokens of the outside provider and of the service itself, and issuing the service's own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import jwt
from flask import Flask, current_app
from flask_jwt_extended import JWTManager, create_access_token

from school_service.auth.jwks import KeySet, Provider, ProviderKey
from school_service.auth.principal import (
    VerifiedToken,
    client_claim,
    email_claim,
    identity_claims,
    is_access_token,
    is_clients_own,
    permissions_claim,
    schools_claim,
    user_claim,
)
from school_service.auth.signing_key import ALGORITHMS, SigningKey, SigningKeys
from school_service.config import Settings
from school_service.core.database import registry_connection
from school_service.core.errors import TokenRefused
from tenants.registry.schools import installation_id

LEEWAY = 30  # seconds
LIFETIME = 86400  # seconds, as the interface shows
CACHE_SIZE = 10_000  # verified tokens
MAX_TOKEN_LENGTH = 16_384  # characters
NESTING_LIMIT = 32  # arrays and objects within each other

_REFUSED = "The token is invalid."
_MALFORMED = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)

# Which check a token failed, in words for the log; the first that fits.
_CHECKS: tuple[tuple[type[Exception], str], ...] = (
    (jwt.ExpiredSignatureError, "expiry"),
    (jwt.ImmatureSignatureError, "not valid yet"),
    (jwt.InvalidIssuerError, "issuer"),
    (jwt.InvalidAudienceError, "audience"),
    (jwt.MissingRequiredClaimError, "required claim"),
    (jwt.InvalidSignatureError, "signature"),
    (jwt.InvalidAlgorithmError, "algorithm"),
    (jwt.InvalidKeyError, "key"),
    (jwt.DecodeError, "form"),
    (jwt.InvalidTokenError, "claims"),
)
_LOGGED_LENGTH = 200  # characters of a token's header


jwt_manager = JWTManager()


def configure(app: Flask, settings: Settings, key: SigningKey) -> None:
    """Set flask-jwt-extended up to issue the service's own tokens, signed with a key."""
    app.config.update(
        JWT_ALGORITHM=key.algorithm,
        JWT_PRIVATE_KEY=key.private,
        JWT_ENCODE_AUDIENCE=settings.auth_audience,
        JWT_ENCODE_ISSUER=None,  # until own_issuer() has read it
        JWT_ENCODE_NBF=False,
        JWT_COOKIE_CSRF_PROTECT=False,
        JWT_ACCESS_TOKEN_EXPIRES=timedelta(seconds=LIFETIME),
    )


def own_issuer() -> str:
    """The `iss` of the service's own tokens: the id of this installation, as a URN.

    All processes on one registry have it in common, and no others. It is read once in the life of an application.
    Raises NotInstalled.
    """
    issuer: str | None = current_app.config["JWT_ENCODE_ISSUER"]
    if issuer is None:
        with registry_connection() as connection:
            issuer = current_app.config["JWT_ENCODE_ISSUER"] = installation_id(connection).urn
    return issuer


@dataclass(frozen=True, slots=True)
class _CachedToken:
    """A token verified before: valid until then (seconds since 1970), and as long as its key is."""

    token: VerifiedToken
    until: float
    outside_key: ProviderKey | None = None


class TokenVerifier:
    """Verifies tokens, and caches the verified ones until they expire (at most CACHE_SIZE, the last verified)."""

    def __init__(
        self, settings: Settings, keys: SigningKeys, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._clock = clock
        self.keys = keys
        self.outside_keys = _keys_of_provider(settings)
        # In order of age, the newest last. Looking something up in a dict needs no lock.
        self._cache: dict[str, _CachedToken] = {}
        self._size = CACHE_SIZE
        self._lock = threading.Lock()

    @property
    def key(self) -> SigningKey:
        """The key for signing."""
        return self.keys.signing

    def find_verified(self, token: str | None) -> VerifiedToken | None:
        """Find a token verified before and not expired since; None for any other."""
        cached = self._cache.get(token) if token else None
        return cached.token if cached is not None and self._clock() < cached.until else None

    def verify(self, token: str) -> VerifiedToken:
        """Verify a token: signature, algorithm, audience, issuer and expiry.

        Raises TokenRefused, and ProviderUnavailable if the outside provider's keys have never been fetched.
        """
        cached = self._cache.get(token)
        if cached is not None and self._is_valid(cached):
            return cached.token
        verified = self._verify(token)
        with self._lock:
            self._cache.pop(token, None)
            if len(self._cache) >= self._size:
                del self._cache[next(iter(self._cache))]
            self._cache[token] = verified
        return verified.token

    def _is_valid(self, cached: _CachedToken) -> bool:
        if self._clock() >= cached.until:
            return False
        key = cached.outside_key
        return key is None or self.outside_keys is None or self.outside_keys.find(key.key_id) is key

    def _verify(self, token: str) -> _CachedToken:
        # One token is written in one way, without padding (RFC 7515, section 2): PyJWT lets padding pass.
        if len(token) > MAX_TOKEN_LENGTH or "=" in token:
            raise TokenRefused(_REFUSED, "form")
        header: Any = {}
        payload: Any = {}
        try:
            decoded: Any = jwt.decode_complete(token, options={"verify_signature": False})
            header, payload = decoded["header"], decoded["payload"]
            _check_nesting((header, payload))
            issuer = payload.get("iss")
            if issuer in self._settings.auth_issuers:
                return self._outside(token, header)
            if issuer == own_issuer():
                return self._own(token, header)
            raise jwt.InvalidIssuerError
        except (jwt.PyJWTError, *_MALFORMED) as error:
            # The answer is the same for every way in which a forged token is malformed.
            expired = isinstance(error, jwt.ExpiredSignatureError)
            raise TokenRefused(
                "The token has expired." if expired else _REFUSED,
                next((check for kind, check in _CHECKS if isinstance(error, kind)), "form"),
                key_id=_logged(header.get("kid")),
                issuer=_logged(payload.get("iss")),
            ) from None

    def _own(self, token: str, header: dict[str, Any]) -> _CachedToken:
        key = self.keys.find(header.get("kid"), header.get("alg"))
        if key is None:
            raise jwt.InvalidKeyError
        claims: dict[str, Any] = jwt.decode(
            token,
            key.private.public_key(),
            algorithms=[key.algorithm],
            audience=self._settings.auth_audience,
            issuer=own_issuer(),
            leeway=LEEWAY,
            options={"require": ["exp", "aud", "iss", "sub"]},
        )
        # An `exp` that is no number fails here.
        return _CachedToken(_own_token(claims), claims["exp"] + LEEWAY)

    def _outside(self, token: str, header: dict[str, Any]) -> _CachedToken:
        key_id, algorithm = header.get("kid"), header.get("alg")
        if algorithm not in ALGORITHMS:
            raise jwt.InvalidAlgorithmError
        if self.outside_keys is None or not isinstance(key_id, str | None):
            raise jwt.InvalidKeyError
        key = self.outside_keys.find(key_id)
        if key is None:
            raise jwt.InvalidKeyError
        if algorithm not in key.algorithms:
            raise jwt.InvalidAlgorithmError
        claims: dict[str, Any] = jwt.decode(
            token,
            key.called(algorithm),
            algorithms=[algorithm],
            audience=self._settings.auth_audience,
            issuer=self._settings.auth_issuers,
            leeway=LEEWAY,
            options={"require": ["exp", "aud", "iss"], "verify_sub": False},
        )
        if not is_access_token(header, claims):
            raise jwt.InvalidTokenError
        return _CachedToken(self._outside_token(claims), claims["exp"] + LEEWAY, key)

    def _outside_token(self, claims: dict[str, Any]) -> VerifiedToken:
        settings = self._settings
        schools = schools_claim(claims.get(settings.auth_school_claim))
        client_id = client_claim(claims)
        if settings.auth_user_claim and settings.auth_user_claim in claims:
            # An end user who is a user of the school: with the permissions of their roles, and none of the token's.
            return VerifiedToken(
                user_id=user_claim(claims[settings.auth_user_claim]),
                client_id=client_id,
                own=False,
                schools=schools or frozenset(),
                granted=False,
                permissions=None,
            )
        permissions = permissions_claim(claims, settings.auth_permission_claim)
        if not is_clients_own(claims, client_id, settings.auth_client_claim):
            # The token was issued to an end user by way of the client, whose grant is not the end user's.
            if settings.auth_linked_users and (identity := identity_claims(claims)) is not None:
                # Of a user of the school, found by the identity: with the permissions of their roles.
                return VerifiedToken(
                    user_id=None,
                    client_id=client_id,
                    own=False,
                    schools=schools,
                    granted=False,
                    permissions=frozenset(),
                    identity=identity,
                    email=email_claim(claims),
                )
            schools, permissions = schools or frozenset(), permissions or frozenset()
        return VerifiedToken(
            user_id=None,
            client_id=client_id,
            own=False,
            schools=schools,
            granted=schools is None,
            permissions=permissions,
        )


def _logged(value: Any) -> str | None:
    """Shorten a value of a token for the log; None for any other value than text."""
    return value[:_LOGGED_LENGTH] if isinstance(value, str) else None


def _keys_of_provider(settings: Settings) -> KeySet | None:
    if settings.auth_url is None:
        return None
    return KeySet(settings.auth_jwks_url or Provider(settings.auth_url, settings.auth_issuers))


def _check_nesting(containers: Iterable[dict[str, Any] | list[Any]]) -> None:
    """Refuse containers nested too deep with a ValueError; Python's own limit depends on its version."""
    for _ in range(NESTING_LIMIT):
        containers = [
            member
            for container in containers
            for member in (container.values() if isinstance(container, dict) else container)
            if isinstance(member, dict | list)
        ]
        if not containers:
            return
    raise ValueError(f"nested more than {NESTING_LIMIT} levels deep")


def _of_session(claims: dict[str, Any]) -> dict[str, Any]:
    """Read the session in the token of somebody signed in by a client; nothing of any other token."""
    if "sid" not in claims:
        return {}
    return {
        "session_id": UUID(claims["sid"]),
        "client_id": claims["azp"],
        "client_session": claims["client_session"],
        "scope": frozenset(claims["scope"].split()),
        "ceiling": _ceiling(claims),
    }


def _ceiling(claims: dict[str, Any]) -> frozenset[str] | None:
    permissions = claims.get("permissions")
    return None if permissions is None else frozenset(permissions)


def _own_token(claims: dict[str, Any]) -> VerifiedToken:
    schools = schools_claim(claims.get("school_id"))
    if "client_id" in claims:
        # A client's grant is read in every request, so that a revocation works at once.
        return VerifiedToken(
            None,
            claims["client_id"],
            own=True,
            schools=schools,
            granted=True,
            permissions=None,
            # Tokens of earlier versions have none; the clients of that time have the number 0.
            session_number=claims.get("session", 0),
            ceiling=_ceiling(claims),
        )
    return VerifiedToken(
        UUID(claims["sub"]),
        own=True,
        schools=schools or frozenset(),
        granted=False,
        permissions=None,
        session_number=claims.get("session"),
        **{"client_id": None, **_of_session(claims)},
    )


def issue_user_token(key: SigningKey, user_id: UUID, school_id: UUID, session_number: int) -> dict[str, Any]:
    """Issue a token for a user of a school, for the member `access_token` of AuthUser.

    It is valid as long as the user's session number is this one.
    """
    return _issue(key, str(user_id), {"school_id": str(school_id), "session": session_number})


def issue_client_token(
    key: SigningKey,
    client_id: str,
    schools: list[UUID],
    *,
    session_number: int = 0,
    permissions: Collection[str] | None = None,
) -> dict[str, Any]:
    """Issue a token for a machine client; `schools` are those its grant names, none if it has them all.

    It is valid as long as the client's session number is this one; the number of a new client is 0. `permissions` are
    those it may have of the grant's (None: all of them).
    """
    claims: dict[str, Any] = {"client_id": client_id, "session": session_number}
    if schools:
        claims["school_id"] = [str(school) for school in schools]
    if permissions is not None:
        claims["permissions"] = sorted(permissions)
    return _issue(key, client_id, claims)


def issue_session_token(
    key: SigningKey,
    user_id: UUID,
    school_id: UUID,
    *,
    session_id: UUID,
    session_number: int,
    client_id: str,
    client_session: int,
    scope: str,
    permissions: Collection[str] | None,
    lifetime: int,
) -> dict[str, Any]:
    """Issue an access token of a session: of a user signed in to a school by a client.

    It is valid as long as the session is there and the session numbers of user and client are these. `permissions` are
    those it may have of the roles' (None: all of them), `lifetime` is in seconds.
    """
    claims: dict[str, Any] = {
        "school_id": str(school_id),
        "session": session_number,
        "sid": str(session_id),
        "azp": client_id,
        "client_session": client_session,
        "scope": scope,
    }
    if permissions is not None:
        claims["permissions"] = sorted(permissions)
    return _issue(key, str(user_id), claims, lifetime)


def _issue(key: SigningKey, subject: str, claims: dict[str, Any], lifetime: int = LIFETIME) -> dict[str, Any]:
    own_issuer()
    token = create_access_token(
        subject,
        additional_claims=claims,
        additional_headers={"kid": key.key_id},
        expires_delta=timedelta(seconds=lifetime),
    )
    return {"access_token": token, "token_type": "Bearer", "expires_in": lifetime}
