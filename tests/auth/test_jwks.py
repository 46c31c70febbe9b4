"""The outside provider's keys: which are taken, when they are fetched, and which requests wait for that."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from school_service.auth import jwks
from school_service.auth.jwks import (
    COOL_DOWN,
    DISCOVER_AFTER,
    FIRST_COOL_DOWN,
    REFRESH_AFTER,
    KeySet,
    Provider,
    ProviderUnavailable,
)
from tests.auth.conftest import Clock
from tests.auth.outside_provider import ALGORITHMS, private_key, public_jwk


@pytest.fixture
def clock():
    return Clock(1000.0)


@pytest.fixture
def key_set(provider, clock):
    return KeySet(provider.url + "/.well-known/jwks.json", clock=clock)


def replace_keys(provider, *kids):
    provider.keys = [public_jwk(private_key("ES256", kid), "ES256", kid=kid) for kid in kids]


def settle():
    """Wait for the fetches that nobody waits for."""
    for thread in threading.enumerate():
        if thread.name == "provider's keys":
            thread.join(60)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_providers_keys_are_found_by_their_ids(key_set, provider, algorithm):
    assert key_set.find(algorithm).algorithm_name == algorithm
    assert provider.requests == ["/.well-known/jwks.json"]


def test_known_keys_are_fetched_once(key_set, provider):
    for _ in range(100):
        assert key_set.find("ES256")

    assert len(provider.requests) == 1


def test_ten_thousand_unknown_key_ids_cause_one_fetch_in_half_a_minute(key_set, provider, clock):
    assert key_set.find("ES256")
    clock.now += COOL_DOWN
    for number in range(10_000):
        assert key_set.find(f"unknown {number}") is None
        clock.now += COOL_DOWN / 10_001

    assert len(provider.requests) == 2


def test_the_first_fetch_counts_too(key_set, provider, clock):
    assert key_set.find("unknown") is None
    clock.now += COOL_DOWN - 0.1
    assert key_set.find("unknown") is None
    assert len(provider.requests) == 1

    clock.now += 0.1
    assert key_set.find("unknown") is None
    assert len(provider.requests) == 2


def test_a_new_key_is_found_after_the_pause(key_set, provider, clock):
    assert key_set.find("ES256")
    replace_keys(provider, "new")
    assert key_set.find("new") is None

    clock.now += COOL_DOWN
    assert key_set.find("new")
    assert key_set.find("ES256") is None


def test_a_withdrawn_key_goes_when_the_keys_have_grown_stale(key_set, provider, clock):
    assert key_set.find("ES256")
    replace_keys(provider, "new")
    clock.now += REFRESH_AFTER + 1

    key_set.find("ES256")
    settle()

    assert key_set.find("ES256") is None
    assert key_set.find("new")


def test_known_keys_are_kept_while_the_provider_is_away(key_set, provider, clock):
    assert key_set.find("ES256")
    provider.stop()

    for _ in range(20):
        clock.now += REFRESH_AFTER + 1
        assert key_set.find("ES256")
        settle()
    assert key_set.find("unknown") is None


def test_a_provider_that_never_answered_is_away_and_soon_asked_again(key_set, provider, clock):
    provider.says(503)
    for _ in range(100):
        with pytest.raises(ProviderUnavailable):
            key_set.find("ES256")
    assert len(provider.requests) == 1

    provider.answer = provider.key_set
    clock.now += FIRST_COOL_DOWN
    assert key_set.find("ES256")


def test_nobody_at_the_address_is_a_provider_away(provider, key_set):
    provider.stop()

    with pytest.raises(ProviderUnavailable):
        key_set.find("ES256")


@pytest.mark.parametrize(
    "said",
    [
        (500, b"", {}),
        (404, b'{"keys": []}', {}),
        (204, b"", {}),
        (200, b"", {}),
        (200, b"<html><body>Sign in</body></html>", {"Content-Type": "text/html"}),
        (200, b"[]", {}),
        (200, b"null", {}),
        (200, b'"keys"', {}),
        (200, b"{}", {}),
        (200, b'{"keys": null}', {}),
        (200, b'{"keys": {"kty": "EC"}}', {}),
        (200, b'{"keys": [', {}),
        (200, b"\xff\xfe\x00", {}),
        (200, b"[" * 100_000, {}),
        (200, b'{"keys": []' + b" " * (jwks.ANSWER_LIMIT + 1) + b"}", {}),
        (200, b'{"keys": []}', {"Content-Length": "1000"}),
        (200, b"no gzip", {"Content-Encoding": "gzip"}),
    ],
    ids=lambda said: f"{said[0]} {said[1][:20]!r} {said[2]}",
)
def test_an_answer_that_is_no_key_set_changes_nothing(key_set, provider, clock, said):
    status, body, headers = said
    provider.says(status, body, **headers)
    with pytest.raises(ProviderUnavailable):
        key_set.find("ES256")

    provider.answer = provider.key_set
    clock.now += FIRST_COOL_DOWN
    assert key_set.find("ES256")

    provider.says(status, body, **headers)
    clock.now += COOL_DOWN
    assert key_set.find("unknown") is None
    assert key_set.find("ES256")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirections_are_not_followed(key_set, provider, status):
    provider.says(status, b"", Location=f"{provider.url}/elsewhere")

    with pytest.raises(ProviderUnavailable):
        key_set.find("ES256")

    assert provider.requests == ["/.well-known/jwks.json"]


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ([], "none of 0 keys"),
        ([{"kty": "oct", "k": "c2VjcmV0", "kid": "ES256"}], "none of 1 keys can be used: ES256"),
        ([None, 5], "none of 2 keys can be used: None, None"),
    ],
)
def test_a_key_set_without_a_usable_key_is_a_failed_fetch(key_set, provider, clock, logs, keys, named):
    sound, provider.keys = provider.keys, keys
    with pytest.raises(ProviderUnavailable):
        key_set.find("ES256")

    provider.keys = sound
    clock.now += FIRST_COOL_DOWN
    assert key_set.find("ES256")
    provider.keys = keys
    clock.now += REFRESH_AFTER + 1
    key_set.find("ES256")
    settle()

    assert key_set.find("ES256")
    warnings = [line for line in logs() if line["message"] == "the identity provider's keys can't be fetched"]
    assert len(warnings) == 2
    assert all(named in warning["reason"] for warning in warnings)


def test_keys_that_can_not_be_used_are_named_in_the_log(key_set, provider, logs):
    provider.keys += [{"kty": "oct", "k": "c2VjcmV0", "kid": "shared"}, {"kid": "x" * 500}]
    assert key_set.find("ES256")

    named = [
        line["keys"] for line in logs() if line["message"] == "the identity provider has keys of other kinds"
    ]
    assert named == [["shared", "x" * 80]]


def test_keys_that_were_withdrawn_are_named_in_the_log(key_set, provider, clock, logs):
    assert key_set.find("ES256")
    replace_keys(provider, "ES256")
    clock.now += COOL_DOWN
    assert key_set.find("unknown") is None

    withdrawn = [
        line["keys"] for line in logs() if line["message"] == "the identity provider has withdrawn keys"
    ]
    assert withdrawn == [["EdDSA", "RS256"]]


def test_the_pause_counts_from_the_end_of_a_fetch(key_set, provider, clock):
    def slow():
        clock.now += 4 * FIRST_COOL_DOWN
        return provider.key_set()

    provider.answer = slow
    for _ in range(5):
        with pytest.raises(ProviderUnavailable):
            key_set.find("ES256")
    assert len(provider.requests) == 1

    # Nobody waited for its end, which the pause counts from.
    for thread in threading.enumerate():
        if thread.name == "provider's keys":
            thread.join(60)
    clock.now += FIRST_COOL_DOWN
    provider.answer = provider.key_set
    assert key_set.find("ES256")


# The address of the keys


DESCRIBED = "/.well-known/openid-configuration"


@pytest.fixture
def describing(provider):
    """The provider, which describes itself."""
    provider.description = {"issuer": provider.url, "jwks_uri": f"{provider.url}/keys"}
    return provider


@pytest.fixture
def discovering(describing, clock):
    return KeySet(Provider(describing.url, (describing.url, f"{describing.url}/")), clock=clock)


def test_the_provider_is_asked_once_where_its_keys_are(discovering, describing, clock):
    assert discovering.find("ES256")
    clock.now += REFRESH_AFTER + 1
    discovering.find("ES256")
    settle()

    assert describing.requests == [DESCRIBED, "/keys", "/keys"]


def test_keys_that_have_moved_are_found_within_an_hour_or_when_they_are_gone(discovering, describing, clock):
    assert discovering.find("ES256")
    describing.description["jwks_uri"] = f"{describing.url}/moved"
    clock.now += DISCOVER_AFTER + 1
    discovering.find("ES256")
    settle()
    assert describing.requests[2:] == [DESCRIBED, "/moved"]

    describing.says(404)
    for _ in range(2):
        clock.now += COOL_DOWN
        assert discovering.find("unknown") is None
    assert describing.requests[4:] == ["/moved", DESCRIBED, "/moved"]
    assert discovering.find("ES256")


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_provider_without_a_description_has_its_keys_at_the_common_place(
    discovering, describing, monkeypatch, logs, status
):
    monkeypatch.setattr(describing, "describe", lambda: (status, {}, []))

    assert discovering.find("ES256")
    assert describing.requests == [DESCRIBED, "/.well-known/jwks.json"]
    (line,) = [line for line in logs() if line["message"] == "the identity provider does not describe itself"]
    assert (line["url"], line["status"]) == (describing.url + DESCRIBED, status)


@pytest.mark.parametrize("status", [204, 301, 302, 401, 429, 500, 503])
def test_any_other_status_is_a_failed_fetch(discovering, describing, monkeypatch, clock, status):
    describe = describing.describe
    monkeypatch.setattr(
        describing, "describe", lambda: (status, {"Location": f"{describing.url}/elsewhere"}, [])
    )
    with pytest.raises(ProviderUnavailable):
        discovering.find("ES256")
    assert describing.requests == [DESCRIBED]

    monkeypatch.setattr(describing, "describe", describe)
    clock.now += FIRST_COOL_DOWN
    assert discovering.find("ES256")


@pytest.mark.parametrize(
    "description",
    [
        None,
        [],
        {},
        {"issuer": "{url}"},
        {"issuer": "{url}", "jwks_uri": None},
        {"issuer": "{url}", "jwks_uri": ["{url}/keys"]},
        {"issuer": "{url}", "jwks_uri": "/keys"},
        {"issuer": "{url}", "jwks_uri": "keys"},
        {"issuer": "{url}", "jwks_uri": "file:///etc/passwd"},
        {"issuer": "{url}", "jwks_uri": "ftp://example.org/keys"},
        {"issuer": "{url}", "jwks_uri": "https://"},
        {"issuer": "{url}", "jwks_uri": "https://[::1/keys"},
        {"issuer": "{url}", "jwks_uri": "http://example.org:99999/keys"},
        {"issuer": "{url}", "jwks_uri": "http://user:word@example.org/keys"},
        {"issuer": "{url}", "jwks_uri": "{url}/keys#fragment"},
        {"issuer": "{url}", "jwks_uri": "{url}/a key"},
        {"issuer": "{url}", "jwks_uri": "{url}/keys\r\nX-Injected: 1"},
        {"issuer": "{url}", "jwks_uri": "{url}/kéys"},
        {"issuer": "{url}/ ", "jwks_uri": "{url}/keys"},
        {"issuer": "{url}".upper(), "jwks_uri": "{url}/keys"},
        {"issuer": None, "jwks_uri": "{url}/keys"},
        {"issuer": ["{url}"], "jwks_uri": "{url}/keys"},
        {"keys": [{"kty": "EC"}]},
    ],
    ids=str,
)
def test_a_description_that_can_not_be_trusted_is_a_failed_fetch(
    discovering, describing, monkeypatch, logs, description
):
    body = json.dumps(description).replace("{url}", describing.url).encode()
    monkeypatch.setattr(describing, "describe", lambda: (200, {}, [body]))

    with pytest.raises(ProviderUnavailable):
        discovering.find("ES256")

    assert describing.requests == [DESCRIBED]
    (warning,) = [
        line for line in logs() if line["message"] == "the identity provider's keys can't be fetched"
    ]
    assert warning["url"] == describing.url + DESCRIBED


def test_a_description_may_not_lead_from_https_to_http():
    def description(scheme):
        return json.dumps({"issuer": "https://a.example", "jwks_uri": f"{scheme}://b.example/keys"}).encode()

    described = Provider("https://a.example", ("https://a.example",))
    assert described.keys_url(description("https")) == "https://b.example/keys"
    with pytest.raises(ValueError, match="from https to http"):
        described.keys_url(description("http"))
    plain = Provider("http://a.example", ("https://a.example",))
    assert plain.keys_url(description("http")) == "http://b.example/keys"


def test_finding_the_keys_and_fetching_them_have_one_deadline(discovering, describing, monkeypatch, clock):
    describe = describing.describe

    def slow():
        clock.now += jwks.FETCH_TIMEOUT
        return describe()

    monkeypatch.setattr(describing, "describe", slow)
    with pytest.raises(ProviderUnavailable):
        discovering.find("ES256")
    settle()

    assert describing.requests == [DESCRIBED]


def test_the_log_says_which_address_failed_without_its_query(provider, clock, logs):
    provider.says(500)
    keys = KeySet(f"{provider.url}/keys?secret=hunter2", clock=clock)
    with pytest.raises(ProviderUnavailable):
        keys.find("ES256")
    settle()

    (warning,) = [
        line for line in logs() if line["message"] == "the identity provider's keys can't be fetched"
    ]
    assert (warning["url"], "status 500" in warning["reason"]) == (f"{provider.url}/keys", True)
    assert "hunter2" not in json.dumps(logs())


def test_the_age_of_the_keys_counts_from_the_last_fetch_that_succeeded(key_set, provider, clock):
    assert key_set.age() is None
    assert key_set.find("ES256")
    clock.now += 100
    assert key_set.age() == 100
    provider.says(500)
    assert key_set.find("unknown") is None
    assert key_set.age() == 100


SHARED = {"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA"}
RSA = public_jwk(private_key("RS256"), "RS256")
EC = public_jwk(private_key("ES256"), "ES256")
ED = public_jwk(private_key("EdDSA"), "EdDSA")


def private_jwk(algorithm):
    return ALGORITHMS[algorithm].to_jwk(private_key(algorithm), as_dict=True)


@pytest.mark.parametrize(
    "members",
    [
        SHARED,
        {**SHARED, "alg": "HS256"},
        {**SHARED, "alg": "RS256"},
        {**RSA, "alg": "HS256"},
        {**RSA, "alg": "none"},
        {**RSA, "alg": "PS256"},
        {**RSA, "alg": "RS512"},
        {**RSA, "alg": "ES256"},
        {**RSA, "alg": ["RS256"]},
        {**RSA, "alg": {"RS256": 1}},
        {**EC, "alg": "RS256"},
        {**EC, "crv": "P-384"},
        {**EC, "crv": "P-999"},
        {**EC, "x": "AAAA"},
        {**EC, "x": 5},
        {**ED, "alg": "ES256"},
        {**ED, "crv": "X25519"},
        {**ED, "x": "AAAA"},
        {**ED, "crv": None},
        {**RSA, "use": "enc"},
        {**RSA, "use": ["sig"]},
        {**RSA, "key_ops": ["encrypt"]},
        {**RSA, "n": ""},
        {**RSA, "n": "AQAB"},
        {**RSA, "n": 5},
        {**RSA, "e": "AQ"},
        {**RSA, "e": "AA"},
        {name: value for name, value in RSA.items() if name != "n"},
        {name: value for name, value in RSA.items() if name != "kty"},
        {**RSA, "kty": "XYZ"},
        {**RSA, "kty": ["RSA"]},
        private_jwk("RS256"),
        private_jwk("ES256"),
        private_jwk("EdDSA"),
        public_jwk(rsa.generate_private_key(public_exponent=65537, key_size=1024), "RS256"),
        public_jwk(ec.generate_private_key(ec.SECP384R1()), "ES256"),
        public_jwk(ec.generate_private_key(ec.SECP384R1()), "ES256", alg="ES256"),
        public_jwk(ec.generate_private_key(ec.SECP256K1()), "ES256"),
        {**EC, "key_ops": ["sign"]},
        {**EC, "key_ops": 5},
        {**EC, "key_ops": None},
    ],
    ids=lambda members: f"{members.get('kty')} {members.get('alg')} {members.get('crv')}",
)
def test_an_unusable_key_is_ignored_and_the_others_are_kept(key_set, provider, members):
    provider.keys = [*provider.keys, {**members, "kid": "unusable"}]

    assert key_set.find("unusable") is None
    assert key_set.find("ES256")


@pytest.mark.parametrize(
    "entry",
    [None, 5, "key", [], {}, {"kid": "x"}, {**EC, "kid": []}, {**EC, "kid": {"x": 1}}, {**EC, "kid": 5}],
)
def test_an_entry_that_is_no_key_is_ignored(key_set, provider, entry):
    provider.keys = [entry, *provider.keys, entry]

    assert key_set.find("ES256")
    assert key_set.find("x") is None


def test_a_key_needs_no_alg_and_no_use(key_set, provider):
    provider.keys = [{name: value for name, value in {**RSA, "kid": "bare"}.items() if name != "use"}]

    assert key_set.find("bare").algorithm_name == "RS256"


def test_a_token_may_name_no_key_where_there_is_one_alone(key_set, provider, clock):
    assert key_set.find(None) is None

    provider.keys = [EC]
    clock.now += COOL_DOWN
    assert key_set.find(None).algorithm_name == "ES256"


class Gate:
    """A provider's answer that waits until it is let go."""

    def __init__(self, provider):
        self.requested, self.go = threading.Event(), threading.Event()
        self.provider = provider
        provider.answer = self

    def __call__(self):
        self.requested.set()
        assert self.go.wait(60)
        return self.provider.key_set()


def test_many_threads_with_an_unknown_key_cause_one_fetch_and_all_get_the_key(key_set, provider):
    gate = Gate(provider)
    with ThreadPoolExecutor(20) as threads:
        futures = [threads.submit(key_set.find, "ES256") for _ in range(20)]
        assert gate.requested.wait(60)
        gate.go.set()
        keys = [future.result() for future in futures]

    assert all(key is not None and key.key_id == "ES256" for key in keys)
    assert len(provider.requests) == 1


@pytest.mark.parametrize("age", [COOL_DOWN, REFRESH_AFTER + 1], ids=["fresh", "stale"])
def test_known_keys_do_not_wait_for_a_slow_provider(key_set, provider, clock, age):
    assert key_set.find("ES256")
    gate = Gate(provider)
    clock.now += age
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(key_set.find, "unknown")
        assert gate.requested.wait(60)
        # The provider will not answer before this thread lets it.
        assert key_set.find("ES256")
        assert not waiting.done()
        gate.go.set()
        assert waiting.result() is None

    assert len(provider.requests) == 2


def test_a_stale_key_does_not_wait_for_the_fetch_it_causes(key_set, provider, clock):
    assert key_set.find("ES256")
    gate = Gate(provider)
    clock.now += REFRESH_AFTER + 1

    assert key_set.find("ES256")
    assert gate.requested.wait(60)
    assert key_set.find("ES256")
    gate.go.set()
    settle()

    assert len(provider.requests) == 2


def test_a_provider_that_never_ends_its_answer_is_given_up(provider, clock, monkeypatch):
    monkeypatch.setattr(jwks, "FETCH_TIMEOUT", 0.2)
    key_set = KeySet(provider.url, clock=clock)
    gate = Gate(provider)

    with pytest.raises(ProviderUnavailable):
        key_set.find("ES256")

    gate.go.set()
    settle()


def test_a_late_request_does_not_wait_anew(key_set, provider, clock):
    gate = Gate(provider)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(key_set.find, "ES256")
        assert gate.requested.wait(60)
        clock.now += jwks.FETCH_TIMEOUT
        with pytest.raises(ProviderUnavailable):
            key_set.find("ES256")
        # The answer has not come yet. Whether it will be in time for the first is not the question.
        gate.go.set()
        with suppress(ProviderUnavailable):
            waiting.result()


@contextmanager
def dripping(beginning, drip):
    """A provider that sends the beginning of an answer, and then a little of it every 20 ms, without an end."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            connection, _ = listener.accept()
            with connection, suppress(ConnectionError):
                connection.recv(65536)
                connection.sendall(beginning)
                while not over.wait(0.02):
                    connection.sendall(drip)

        with ThreadPoolExecutor(1) as threads:
            threads.submit(answer)
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}/keys"
            finally:
                over.set()


@pytest.mark.parametrize(
    ("beginning", "drip"),
    [
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
        (b"HTTP/1.1 200 OK\r\nX-Long: ", b"a"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1", b"0"),
    ],
    ids=["status line", "fields", "one field", "continue", "body", "chunks", "size of a chunk"],
)
def test_a_provider_that_drips_holds_one_thread_until_the_deadline(monkeypatch, beginning, drip):
    monkeypatch.setattr(jwks, "FETCH_TIMEOUT", 0.2)
    with dripping(beginning, drip) as url:
        key_set = KeySet(url)
        for _ in range(3):
            with pytest.raises(ProviderUnavailable):
                key_set.find("ES256")
        fetching = [thread for thread in threading.enumerate() if thread.name == "provider's keys"]
        for thread in fetching:
            thread.join(60)

    assert len(fetching) <= 1
    assert not any(thread.is_alive() for thread in fetching)


def test_an_answer_that_trickles_in_is_given_up(key_set, provider, clock):
    def trickle():
        for byte in provider.key_set()[2][0]:
            clock.now += 1
            yield bytes([byte])

    provider.answer = lambda: (200, {}, trickle())

    with pytest.raises(ProviderUnavailable):
        key_set.find("ES256")
