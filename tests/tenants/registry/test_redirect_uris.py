"""The addresses that a client may register."""

import pytest

from tenants.registry.redirect_uris import check_redirect_uri, origin_of

GOOD = (
    "https://app.example.com/back",
    "https://app.example.com:8443/back?kept=yes&b=1",
    "https://app.example.com/code/state?scopes=1&Code=2&x=code&error_description=1",
    "https://app.example.com",
    "http://127.0.0.1/back",
    "http://127.0.0.1:49152/back",
    "http://[::1]/back",
    "http://localhost:3000/back",
    "org.example.app:/callback",
    "org.example.app://callback",
    f"https://app.example.com/{'a' * 1900}",
)
BAD = (
    "",
    "app.example.com/back",
    "/back",
    "//app.example.com/back",
    "https:app.example.com/back",
    "https:///back",
    "https://app.example.com:0/back",
    "https://app.example.com:99999/back",
    "https://[::1/back",
    "http://app.example.com/back",
    "http://127.0.0.1.example.com/back",
    "http://127.0.0.2/back",
    "http://user@127.0.0.1/back",
    "https://user:pass@app.example.com/back",
    "https://app.example.com/back#part",
    "https://app.example.com/back#",
    "https://*.example.com/back",
    "https://app.example.com/*",
    "https://app.example.com/a b",
    "https://app.example.com/a\\b",
    "https://app.example.com/a\tb",
    "https://app.example.com/a\nb",
    "https://app.example.com/\x7f",
    "https://ọjà.example.com/back",
    "https://app.example.com/../back",
    "https://app.example.com/./back",
    "https://app.example.com/%2e%2E/back",
    "https://app.example.com/a/.%2e",
    "myapp:/callback",
    "myapp://callback",
    "javascript:alert(1)",
    "data:text/html,x",
    "org.example.app://user@host/callback",
    ".app:/callback",
    "https://app.example.com/back?code=1",
    "https://app.example.com/back?x=1&state",
    "https://app.example.com/back?%73tate=1",
    "https://app.example.com/back?iss=",
    "http://127.0.0.1/back?error=a&error=b",
    "org.example.app:/callback?s%63ope=x",
    f"https://app.example.com/{'a' * 2000}",
)


@pytest.mark.parametrize("uri", GOOD)
def test_a_sound_redirect_uri_may_be_registered(uri):
    assert check_redirect_uri(uri) == uri


@pytest.mark.parametrize("uri", BAD)
def test_any_other_redirect_uri_may_not_be_registered(uri):
    with pytest.raises(ValueError, match=r"^(has|is|names) "):
        check_redirect_uri(uri)


def test_the_origin_of_a_page_on_the_web():
    assert origin_of("https://App.example.com/back?x=1") == "https://app.example.com"
    assert origin_of("https://app.example.com:443/") == "https://app.example.com"
    assert origin_of("https://[2001:db8::1]:8443/") == "https://[2001:db8::1]:8443"
    for other in ("http://127.0.0.1/back", "org.example.app:/callback"):
        assert origin_of(other) is None
