"""Clients of the built-in provider."""

from __future__ import annotations

from tests.auth.conftest import grant, load, own_claims, provider, sign, start, verifier

__all__ = ["grant", "load", "own_claims", "provider", "sign", "start", "verifier"]
