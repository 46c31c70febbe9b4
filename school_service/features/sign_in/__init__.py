"""How people sign in by a client: sessions, codes, refresh tokens and what they are exchanged for."""
