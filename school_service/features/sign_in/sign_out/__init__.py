"""Signing out by a browser."""
