"""The key pairs of the service's own tokens: the first signs, all verify; and the permitted algorithms of tokens."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from school_service.config import ConfigError

# Which algorithms tokens may be signed with. None is symmetric, so that no public key can pass for a secret, and none
# is `none`. By the kind of key (`kty`); the first is the one that PyJWT knows such a key by. RS256 and ES256 are of RFC
# 7518, EdDSA of RFC 8037. Ed25519 is RFC 9864's name for EdDSA with the one curve that we take anyway.
ALGORITHMS_OF_KEYS = {"RSA": ("RS256",), "EC": ("ES256",), "OKP": ("EdDSA", "Ed25519")}
ALGORITHMS = tuple(chain.from_iterable(ALGORITHMS_OF_KEYS.values()))

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def algorithm_of(public: object) -> str | None:
    """Name the algorithm of a public key: of RSA with at least 2048 bits, P-256 or Ed25519; None for any other key."""
    if isinstance(public, rsa.RSAPublicKey) and public.key_size >= 2048:
        return "RS256"
    if isinstance(public, ec.EllipticCurvePublicKey) and isinstance(public.curve, ec.SECP256R1):
        return "ES256"
    return "EdDSA" if isinstance(public, ed25519.Ed25519PublicKey) else None


# The members of a public key that make its thumbprint (RFC 7638).
_THUMBPRINT_MEMBERS = {"RSA": ("e", "kty", "n"), "EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x")}


_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]++)-----(?>(?:[^-]|-(?!----))*)-----END \1-----")
# Older programs write it before a key; it says nothing beside the key.
_PARAMETERS = "EC PARAMETERS"


@dataclass(frozen=True)
class SigningKey:
    """A private key with the JWS algorithm of its kind: RS256, ES256 or EdDSA."""

    private: PrivateKey
    algorithm: str

    @classmethod
    def from_pem(cls, pem: str, setting: str = "SIGNING_KEY") -> SigningKey:
        """Read a PEM private key (RSA of at least 2048 bits, P-256 or Ed25519) from a setting.

        Raises ConfigError.
        """
        try:
            key = load_pem_private_key(pem.encode(), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise ConfigError(f"{setting} is no PEM private key without a passphrase.") from None
        algorithm = algorithm_of(key.public_key())
        if isinstance(key, PrivateKey) and algorithm is not None:
            return cls(key, algorithm)
        raise ConfigError(f"{setting} must be RSA of at least 2048 bits, P-256 or Ed25519.")

    @classmethod
    def generate(cls) -> SigningKey:
        """Make a new P-256 key."""
        return cls(ec.generate_private_key(ec.SECP256R1()), "ES256")

    def to_pem(self) -> str:
        """Write the private key as PEM (PKCS #8)."""
        return self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    def derive(self, purpose: str) -> bytes:
        """Derive a secret of 32 bytes for a purpose (HKDF with SHA-256, RFC 5869); the same for the same key."""
        secret = self.private.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        return HKDF(SHA256(), length=32, salt=None, info=purpose.encode()).derive(secret)

    @cached_property
    def public_jwk(self) -> dict[str, Any]:
        """The public key as a JSON Web Key (RFC 7517)."""
        public = self.private.public_key()
        if isinstance(public, rsa.RSAPublicKey):
            members = RSAAlgorithm.to_jwk(public, as_dict=True)
        elif isinstance(public, ec.EllipticCurvePublicKey):
            members = ECAlgorithm.to_jwk(public, as_dict=True)
        else:
            members = OKPAlgorithm.to_jwk(public, as_dict=True)
        members.pop("key_ops", None)
        return {**members, "use": "sig", "alg": self.algorithm, "kid": _thumbprint(members)}

    @property
    def key_id(self) -> str:
        """The `kid` of the key: its RFC 7638 thumbprint."""
        return str(self.public_jwk["kid"])


@dataclass(frozen=True)
class SigningKeys:
    """The keys of an installation, each once: the first signs, all verify."""

    keys: tuple[SigningKey, ...]

    @classmethod
    def from_pem(cls, pem: str, setting: str = "SIGNING_KEY") -> SigningKeys:
        """Read one or more PEM private keys, one after the other, from a setting.

        Raises ConfigError if one of them can't sign, or if there is anything else in PEM.
        """
        blocks = [block for block in _PEM_BLOCK.finditer(pem) if block[1] != _PARAMETERS]
        begun = pem.count("-----BEGIN ") - pem.count(f"-----BEGIN {_PARAMETERS}-----")
        if len(blocks) < 2 and begun < 2:
            return cls((SigningKey.from_pem(pem, setting),))
        if len(blocks) != begun:
            raise ConfigError(f"{setting} has a key that is cut short.")
        keys = [
            SigningKey.from_pem(block[0], f"Key {number} of {setting}")
            for number, block in enumerate(blocks, start=1)
        ]
        return cls(tuple({key.key_id: key for key in keys}.values()))

    @property
    def signing(self) -> SigningKey:
        """The key for signing."""
        return self.keys[0]

    def find(self, key_id: Any, algorithm: Any) -> SigningKey | None:
        """Find the key named by a token's header; None if there is no such key of that algorithm."""
        return next((key for key in self.keys if key.key_id == key_id and key.algorithm == algorithm), None)

    @property
    def public_jwks(self) -> list[dict[str, Any]]:
        """The public keys, as a JSON Web Key Set lists them (RFC 7517)."""
        return [key.public_jwk for key in self.keys]


def _thumbprint(members: dict[str, Any]) -> str:
    chosen = {name: members[name] for name in _THUMBPRINT_MEMBERS[members["kty"]]}
    digest = hashlib.sha256(json.dumps(chosen, separators=(",", ":"), sort_keys=True).encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
