"""The key pair that signs the service's own tokens."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from school_service.auth.signing_key import SigningKey
from school_service.config import ConfigError

P_256 = ec.generate_private_key(ec.SECP256R1())


def pem(key, form=PrivateFormat.PKCS8, encryption=None):
    return key.private_bytes(Encoding.PEM, form, encryption or NoEncryption()).decode()


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (rsa.generate_private_key(public_exponent=65537, key_size=2048), "RS256"),
        (P_256, "ES256"),
        (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
    ],
    ids=["RSA", "P-256", "Ed25519"],
)
def test_each_kind_has_its_algorithm_and_survives_being_written(key, algorithm):
    read = SigningKey.from_pem(pem(key))

    assert read.algorithm == algorithm
    assert SigningKey.from_pem(read.to_pem()).public_jwk == read.public_jwk


@pytest.mark.parametrize(
    "key", [rsa.generate_private_key(public_exponent=65537, key_size=2048), P_256], ids=["RSA", "P-256"]
)
def test_the_older_form_of_pem_is_read_too(key):
    assert SigningKey.from_pem(pem(key, PrivateFormat.TraditionalOpenSSL)).key_id


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        pem(P_256, encryption=BestAvailableEncryption(b"a passphrase")),
        P_256.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode(),
    ],
    ids=["empty", "garbage", "broken", "with a passphrase", "public"],
)
def test_a_text_that_is_no_private_key_is_refused(text):
    with pytest.raises(ConfigError, match="SIGNING_KEY is no PEM private key"):
        SigningKey.from_pem(text)


@pytest.mark.parametrize(
    "key",
    [
        rsa.generate_private_key(public_exponent=65537, key_size=1024),
        ec.generate_private_key(ec.SECP384R1()),
        ec.generate_private_key(ec.SECP256K1()),
        ed448.Ed448PrivateKey.generate(),
        x25519.X25519PrivateKey.generate(),
        dsa.generate_private_key(1024),
    ],
    ids=["RSA 1024", "P-384", "secp256k1", "Ed448", "X25519", "DSA"],
)
def test_weak_and_other_keys_are_refused(key):
    with pytest.raises(ConfigError, match="SIGNING_KEY must be RSA of at least 2048 bits, P-256 or Ed25519"):
        SigningKey.from_pem(pem(key))


def test_the_key_id_is_the_thumbprint_of_rfc_7638():
    """The key and its thumbprint are in RFC 8037, appendix A."""
    private = base64.urlsafe_b64decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=")
    key = SigningKey(ed25519.Ed25519PrivateKey.from_private_bytes(private), "EdDSA")

    assert key.public_jwk == {
        "kty": "OKP",
        "crv": "Ed25519",
        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
        "use": "sig",
        "alg": "EdDSA",
        "kid": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
    }
