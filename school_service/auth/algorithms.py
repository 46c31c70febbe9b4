"""Which algorithms tokens may be signed with: here alone, and in docs/operators.md.

None of them is symmetric, so that no public key can pass for a secret, and none is `none`.
"""

from __future__ import annotations

from itertools import chain

# By the kind of key (`kty`); the first is the one that PyJWT knows such a key by. RS256 and ES256 are of RFC 7518,
# EdDSA of RFC 8037. Ed25519 is what RFC 9864 calls EdDSA with the one curve that we take anyway.
ALGORITHMS_OF_KEYS = {"RSA": ("RS256",), "EC": ("ES256",), "OKP": ("EdDSA", "Ed25519")}
ALGORITHMS = tuple(chain.from_iterable(ALGORITHMS_OF_KEYS.values()))
