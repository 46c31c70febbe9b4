"""Signing in by a client: sessions, and the exchange of codes and refresh tokens for tokens."""
