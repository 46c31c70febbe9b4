"""Roles and the permissions they bundle."""
