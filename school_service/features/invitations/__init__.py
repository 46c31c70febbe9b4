"""Invitations: one-time codes, by which the owner of an account sets its password or links an outside identity."""
