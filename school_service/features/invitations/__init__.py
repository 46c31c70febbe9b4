"""Invitations: one-time codes for the owner of an account, to set its password or link an outside identity."""
