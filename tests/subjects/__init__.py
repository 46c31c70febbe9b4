"""Subjects."""
