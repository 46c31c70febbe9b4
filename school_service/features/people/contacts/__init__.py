"""Contacts: how the owner of a user account can be reached."""
