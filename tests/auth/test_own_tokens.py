"""The service's own tokens: which are refused, which are remembered, and for how long."""

from __future__ import annotations

import hashlib
import hmac
import json
import string
import time
from uuid import uuid4

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from school_service.auth import tokens
from school_service.auth.signing_key import SigningKey, SigningKeys
from school_service.auth.tokens import TokenVerifier, issue_user_token
from tenants.registry.clients import rotate_secret
from tests.auth.conftest import Clock, written
from tests.client import ApiClient
from tests.factories import UNKNOWN_ID

PEM = Encoding.PEM, PublicFormat.SubjectPublicKeyInfo


def status_of(api, token):
    return api.using(token=token).get("/roles").status_code


def test_a_sound_token_is_accepted(api, sign, own_claims):
    assert status_of(api, sign(own_claims)) == 200


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
def test_the_scheme_is_written_in_any_case(api, place, scheme):
    answer = api.using(token=None).get("/roles", headers={"Authorization": f"{scheme} {place.admin_token}"})

    assert answer.status_code == 200


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic YTpi", "bearer", "Token x", "x"])
def test_without_a_bearer_token_nobody_is_known(api, header):
    headers = {} if header is None else {"Authorization": header}

    answer = api.using(token=None).get("/roles", headers=headers)

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    body = answer.get_json()
    assert (body["code"], body["status"]) == (401, "Unauthorized")
    assert body["request_id"] == answer.headers["X-Request-ID"]


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Basic YTpi"}], ids=["none", "Basic"])
def test_a_missing_token_is_challenged_without_an_error(api, headers):
    answer = api.using(token=None).get("/roles", headers=headers)

    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_refused_token_is_challenged_with_the_error(api):
    answer = api.using(token="a.b.c").get("/roles")

    assert answer.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'


def test_an_expired_token_is_refused(api, sign, own_claims):
    expired = sign({**own_claims, "exp": int(time.time()) - 31})

    answer = api.using(token=expired).get("/roles")

    assert answer.status_code == 401
    assert answer.get_json()["message"] == "The token has expired."


def test_the_clocks_may_differ_by_half_a_minute(api, sign, own_claims):
    assert status_of(api, sign({**own_claims, "exp": int(time.time()) - 15})) == 200
    assert status_of(api, sign({**own_claims, "nbf": int(time.time()) + 15})) == 200


def test_a_token_of_tomorrow_is_refused(api, sign, own_claims):
    assert status_of(api, sign({**own_claims, "nbf": int(time.time()) + 3600})) == 401
    assert status_of(api, sign({**own_claims, "iat": int(time.time()) + 3600})) == 401


@pytest.mark.parametrize(
    "audience", ["another", "", None, [], ["another"], 5, {}, "school-service "], ids=repr
)
def test_a_token_for_another_audience_is_refused(api, sign, own_claims, audience):
    assert status_of(api, sign({**own_claims, "aud": audience})) == 401


def test_a_token_for_several_audiences_is_accepted(api, sign, own_claims):
    assert status_of(api, sign({**own_claims, "aud": ["another", "school-service"]})) == 200


@pytest.mark.parametrize(
    "issuer", ["another", "", "school-service", None, 5, [], f"urn:uuid:{UNKNOWN_ID}", "urn:uuid:", "URN"]
)
def test_a_token_of_another_issuer_is_refused(api, verifier, own_claims, issuer):
    issuer = own_claims["iss"].upper() if issuer == "URN" else issuer
    assert status_of(api, signed(verifier.key, json.dumps({**own_claims, "iss": issuer}))) == 401
    assert status_of(api, signed(verifier.key, json.dumps(own_claims))) == 200


@pytest.mark.parametrize("claim", ["iss", "aud", "exp", "sub"])
def test_a_token_without_a_needed_claim_is_refused(api, sign, own_claims, claim):
    del own_claims[claim]

    assert status_of(api, sign(own_claims)) == 401


@pytest.mark.parametrize(
    "expiry",
    ['"tomorrow"', '"99999999999"', "null", "true", "[]", "{}", "NaN", "Infinity", "-1", "-Infinity"],
)
def test_a_token_with_a_strange_expiry_is_refused(api, verifier, own_claims, expiry):
    own_claims["exp"] = "EXPIRY"
    payload = json.dumps(own_claims).replace('"EXPIRY"', expiry)

    assert status_of(api, signed(verifier.key, payload)) == 401


def test_a_token_may_expire_at_a_fraction_of_a_second(api, sign, own_claims):
    assert status_of(api, sign({**own_claims, "exp": time.time() + 60.5})) == 200


@pytest.mark.parametrize(
    "subject", [5, None, [], {}, "", "admin", "123e4567e89b12d3a456426614174000x"], ids=repr
)
def test_a_token_with_a_strange_subject_is_refused(api, verifier, own_claims, subject):
    assert status_of(api, signed(verifier.key, json.dumps({**own_claims, "sub": subject}))) == 401


@pytest.mark.parametrize(
    "payload", ["[]", "[1]", "5", "null", '"text"', "", "{", "{'a': 1}", "[" * 9000 + "]" * 9000]
)
def test_a_payload_that_is_no_object_is_refused(api, verifier, payload):
    assert status_of(api, signed(verifier.key, payload)) == 401


@pytest.mark.parametrize(("levels", "status"), [(31, 200), (32, 401), (900, 401), (5000, 401)])
def test_a_payload_nested_too_deep_is_refused(api, verifier, own_claims, levels, status):
    """The claims are one level themselves."""
    payload = json.dumps({**own_claims, "deep": "DEEP"}).replace('"DEEP"', "[" * levels + "]" * levels)

    assert status_of(api, signed(verifier.key, payload)) == status


@pytest.mark.parametrize(
    "token",
    [
        "x",
        ".",
        "..",
        "...",
        "a.b",
        "a.b.c",
        "a.b.c.d",
        "....." * 50,
        "é.è.ê",
        "\u00a0",
        "null",
        "{}",
        "e30.e30.e30",
        "e30.e30.",
        ".e30.e30",
        "A" * 1_000_000,
        ".".join(["A" * 100_000] * 3),
        "%00.%00.%00",
        "a b c",
        "bnVsbA.bnVsbA.bnVsbA",
        "W10.W10.W10",
        "=.=.=",
        "-_-_.-_-_.-_-_",
    ],
    ids=lambda token: token[:12],
)
def test_garbage_is_refused(api, token):
    answer = api.using(token=None).get(
        "/roles", headers={"Authorization": f"Bearer {token}".encode().decode("latin-1")}
    )

    assert answer.status_code == 401
    assert answer.get_json()["message"] == "The token is invalid."


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"alg": None},
        {"alg": ""},
        {"alg": 5},
        {"alg": ["ES256"]},
        {"alg": "ES256", "kid": 5},
        {"alg": "ES256", "kid": None},
        {"alg": "ES256", "kid": ["x"]},
        {"alg": "ES256", "kid": {"x": 1}},
        {"alg": "ES256", "crit": ["x"]},
        {"alg": "ES256", "b64": False, "crit": ["b64"]},
        {"alg": "ES256", "typ": 5},
        {"alg": "es256"},
        {"alg": "ES384"},
        [],
        "text",
        None,
    ],
    ids=repr,
)
def test_a_strange_header_is_refused(api, verifier, own_claims, header):
    known = {"kid": verifier.key.key_id} if isinstance(header, dict) else None
    merged = {**known, **header} if known else header
    token = f"{written(merged)}.{written(own_claims)}.{written(b'0' * 64)}"

    assert status_of(api, token) == 401


def test_an_unsigned_token_is_refused(api, verifier, own_claims):
    for algorithm in ("none", "None", "NONE"):
        header = written({"alg": algorithm, "kid": verifier.key.key_id})
        assert status_of(api, f"{header}.{written(own_claims)}.") == 401


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_the_public_key_is_no_shared_secret(api, verifier, own_claims, algorithm):
    public = verifier.key.private.public_key()
    secrets = [public.public_bytes(*PEM), json.dumps(verifier.key.public_jwk).encode(), b"", b"secret"]
    for secret in secrets:
        content = f"{written({'alg': algorithm, 'kid': verifier.key.key_id})}.{written(own_claims)}"
        signature = hmac.new(
            secret, content.encode(), hashlib.new(algorithm.replace("HS", "SHA")).name
        ).digest()
        assert status_of(api, f"{content}.{written(signature)}") == 401


def test_a_changed_payload_is_refused(api, place, other_place, sign, own_claims):
    header, _, signature = place.admin_token.split(".")
    for changed in ({"sub": str(other_place.admin_id)}, {"school_id": str(other_place.id)}, {"exp": 2**33}):
        assert status_of(api, f"{header}.{written({**own_claims, **changed})}.{signature}") == 401


def test_a_changed_signature_is_refused(api, place, other_place):
    header, payload, signature = place.admin_token.split(".")
    other_signature = other_place.admin_token.split(".")[2]
    flipped = ("A" if signature[10] != "A" else "B").join([signature[:10], signature[11:]])
    for changed in (
        "",
        signature[:-4],
        flipped,
        signature + "AAAA",
        other_signature,
        signature[::-1],
        "A" * 86,
    ):
        assert status_of(api, f"{header}.{payload}.{changed}") == 401


ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"


@pytest.mark.parametrize("part", [0, 1, 2], ids=["header", "payload", "signature"])
@pytest.mark.parametrize("more", ["=", "==", "===", "*", "\u00a0", "."])
def test_a_token_is_written_without_padding_and_additions(api, place, part, more):
    parts = place.admin_token.split(".")
    parts[part] += more

    assert status_of(api, place.admin_token) == 200
    assert status_of(api, ".".join(parts)) == 401


def test_a_part_that_is_padded_as_base64_would_be_is_refused(api, sign, own_claims):
    # 64 bytes of a signature are 86 characters, which "==" completes.
    token = sign(own_claims)

    assert len(token.rpartition(".")[2]) == 86
    assert status_of(api, f"{token}==") == 401
    assert status_of(api, token) == 200
    assert status_of(api, f"{token}==") == 401


def test_the_unused_bits_of_the_last_character_are_none(api, sign, own_claims):
    """Of the last of 86 characters two bits count: 15 others would mean the same signature."""
    token = sign(own_claims)
    last = ALPHABET.index(token[-1])

    statuses = {character: status_of(api, token[:-1] + character) for character in ALPHABET[last : last + 16]}

    assert statuses == {character: 200 if character == token[-1] else 401 for character in statuses}
    assert len(statuses) == 16


def test_an_unknown_key_is_refused(api, sign, own_claims):
    assert status_of(api, sign(own_claims, kid="another")) == 401


def test_a_token_that_names_no_key_is_refused(api, verifier, own_claims):
    assert status_of(api, jwt.encode(own_claims, verifier.key.private, verifier.key.algorithm)) == 401


def test_another_key_of_the_same_kind_is_refused(api, verifier, own_claims):
    another = SigningKey.generate()

    token = jwt.encode(own_claims, another.private, "ES256", headers={"kid": verifier.key.key_id})
    assert status_of(api, token) == 401


def test_the_key_that_a_token_brings_along_is_not_trusted(api, verifier, own_claims):
    another = SigningKey.generate()
    for brought in (
        {"jwk": another.public_jwk},
        {"jku": "http://127.0.0.1:1/keys"},
        {"x5u": "http://127.0.0.1:1/x"},
    ):
        headers = {"kid": verifier.key.key_id, **brought}
        assert status_of(api, jwt.encode(own_claims, another.private, "ES256", headers=headers)) == 401


@pytest.mark.parametrize(
    ("private", "algorithm"),
    [
        (rsa.generate_private_key(public_exponent=65537, key_size=2048), "RS256"),
        (ec.generate_private_key(ec.SECP256R1()), "ES256"),
        (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
    ],
    ids=["RSA", "P-256", "Ed25519"],
)
def test_any_kind_of_signing_key_serves(start, document, place, own_claims, private, algorithm):
    key = SigningKey(private, algorithm)
    app = start(SIGNING_KEY=key.to_pem())
    with app.app_context():
        token = issue_user_token(app.extensions["school-service"].verifier.key, place.admin_id, place.id, 1)
    api = ApiClient(app, document, token["access_token"], place.id)

    assert api.get("/roles").status_code == 200
    assert api.using(token=place.admin_token).get("/roles").status_code == 401
    # An outsider checks the token with nothing but the published key.
    [published] = api.using(token=None, school=None).get("/auth/.well-known/jwks.json").get_json()["keys"]
    assert (published["alg"], published["use"]) == (algorithm, "sig")
    assert "d" not in published
    header = jwt.get_unverified_header(token["access_token"])
    assert (header["kid"], header["alg"]) == (published["kid"], algorithm)
    claims = jwt.decode(
        token["access_token"],
        jwt.PyJWK(published),
        [algorithm],
        audience="school-service",
        issuer=own_claims["iss"],
    )
    assert (claims["sub"], claims["school_id"]) == (str(place.admin_id), str(place.id))
    assert claims["exp"] - claims["iat"] == token["expires_in"] == 86400


def test_a_user_of_the_other_school_can_not_enter(api, other_api, place, other_place):
    for school, stranger in ((place, other_api), (other_place, api)):
        answer = stranger.using(school=school.id).get("/roles")
        assert answer.status_code == 403
        assert school.name not in answer.get_data(as_text=True)


def test_a_forged_school_leads_to_no_user(api, sign, own_claims, other_place):
    """The administrator's id is not known in the other school, were it signed by mistake."""
    token = sign({**own_claims, "school_id": str(other_place.id)})

    assert api.using(token=token, school=other_place.id).get("/roles").status_code == 401


@pytest.mark.parametrize("school", [None, "", "x", 5, [], {}, ["x"]], ids=repr)
def test_a_users_token_without_a_school_enters_none(api, sign, own_claims, school):
    assert status_of(api, sign({**own_claims, "school_id": school})) == 403


def test_the_roles_of_a_user_decide_and_not_the_claims_of_the_token(api, make, sign, own_claims, grant):
    client_id, _ = grant(all_schools=True, all_permissions=True)
    user = make.caller().user
    claims = {**own_claims, "sub": user["id"], "azp": client_id}

    for carried in ({"permissions": ["read:roles"]}, {"scope": "read:roles"}, {}):
        assert status_of(api, sign({**claims, **carried})) == 403


def test_the_token_of_an_unknown_user_is_refused(api, sign, own_claims):
    assert status_of(api, sign({**own_claims, "sub": str(uuid4())})) == 401


def test_a_deleted_users_token_stops_at_once_and_for_good(api, make):
    caller = make.caller("read:roles")
    assert caller.get("/roles").status_code == 200

    api.ok(api.delete(f"/users/{caller.user['id']}/delete"))
    answer = caller.get("/roles")
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'
    assert answer.get_json()["message"] == "The token's user does not exist any more."

    api.ok(api.put(f"/users/{caller.user['id']}/restore"))
    answer = caller.get("/roles")
    assert (answer.status_code, answer.get_json()["message"]) == (401, "The token's session has ended.")
    assert make.signed_in(caller.user).get("/roles").status_code == 200


def test_a_role_taken_away_works_at_once(api, make):
    caller = make.caller()
    role = make.role("read:roles")
    assert caller.get("/roles").status_code == 403

    api.ok(api.put(f"/users/{caller.user['id']}/roles", {"role": role["id"]}))
    assert caller.get("/roles").status_code == 200

    api.ok(api.delete(f"/users/{caller.user['id']}/roles/{role['id']}"))
    answer = caller.get("/roles")
    assert (answer.status_code, answer.get_json()["message"]) == (
        403,
        "This needs the permission read:roles.",
    )


def test_a_permission_taken_from_a_role_works_at_once(api, make):
    caller = make.caller()
    role = make.role("read:roles")
    api.ok(api.put(f"/users/{caller.user['id']}/roles", {"role": role["id"]}))
    assert caller.get("/roles").status_code == 200

    api.ok(api.patch(f"/roles/{role['id']}/permissions", {"permissionIds": []}))
    assert caller.get("/roles").status_code == 403


@pytest.fixture
def timed(rehearsed, settings, verifier, monkeypatch):
    """The application's verifier and the clock that it goes by."""
    clock = Clock(time.time())
    made = TokenVerifier(settings, verifier.keys, clock=clock)
    monkeypatch.setattr(rehearsed.extensions["school-service"], "verifier", made)
    return made, clock


def test_a_verified_token_is_remembered_until_it_expires(api, timed, sign, own_claims):
    verifier, clock = timed
    token = sign(own_claims)
    assert status_of(api, token) == 200

    # With another key the token can't be verified any more: it is accepted from memory.
    verifier.keys = SigningKeys((SigningKey.generate(),))
    clock.now = own_claims["exp"] + 29.9
    assert status_of(api, token) == 200
    clock.now = own_claims["exp"] + 30
    assert status_of(api, token) == 401


def test_a_remembered_token_of_a_deleted_user_is_refused(api, timed, make):
    caller = make.caller("read:roles")
    assert caller.get("/roles").status_code == 200

    api.ok(api.delete(f"/users/{caller.user['id']}/delete"))

    assert caller.get("/roles").status_code == 401


def test_a_refused_token_is_not_remembered(api, timed, sign, own_claims):
    verifier, _ = timed
    keys, verifier.keys = verifier.keys, SigningKeys((SigningKey.generate(),))
    token = sign(own_claims)
    assert status_of(api, token) == 401

    verifier.keys = keys
    assert status_of(api, token) == 200


def test_only_so_many_tokens_are_remembered(app, settings, verifier, sign, own_claims, monkeypatch):
    monkeypatch.setattr(tokens, "CACHE_SIZE", 3)
    small = TokenVerifier(settings, verifier.keys)
    signed_tokens = [sign({**own_claims, "jti": str(number)}) for number in range(5)]
    with app.app_context():
        for token in signed_tokens:
            small.verify(token)
        small.keys = SigningKeys((SigningKey.generate(),))
        remembered = [token for token in signed_tokens if is_valid(small, token)]

    assert remembered == signed_tokens[-3:]


def is_valid(verifier, token):
    try:
        verifier.verify(token)
    except tokens.TokenRefused:
        return False
    return True


def signed(key, payload):
    """Sign any text as a payload, as PyJWT would not."""
    return jwt.PyJWS().encode(payload.encode(), key.private, key.algorithm, headers={"kid": key.key_id})


def test_a_clients_token_of_before_there_were_sessions_is_of_the_first(
    api, sign, own_claims, grant, tenancy, place
):
    client_id, _ = grant(school_ids=[place.id], permissions=["read:roles"])
    claims = {**own_claims, "sub": client_id, "client_id": client_id}
    del claims["session"]
    without, first = sign(claims), sign({**claims, "session": 0})
    status = [api.using(token=token).get("/roles").status_code for token in (without, first)]
    assert status == [200, 200]
    for forged in (1, -1, "0", None, [0], True):
        answer = api.using(token=sign({**claims, "session": forged})).get("/roles")
        assert answer.status_code == 401, forged

    with tenancy.admin.begin() as connection:
        rotate_secret(connection, client_id, end_tokens=True)

    second = sign({**claims, "session": 1})
    tokens = (without, first, second)
    assert [api.using(token=token).get("/roles").status_code for token in tokens] == [401, 401, 200]
    # Writing is refused as reading is, and signing in, which needs no permission.
    body = {"username": "admin", "password": "wrong"}
    assert api.using(token=first).post("/users/login", body).status_code == 401
    assert "has no" not in api.using(token=first).post("/classrooms", {}).get_json()["message"]
