"""Graduates: students leaving the school with its last class."""
