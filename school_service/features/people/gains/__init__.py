"""Credentials planted in an account, ended when the account gains: invitations, links and passwords by others."""
