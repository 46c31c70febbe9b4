"""Graduates: students who have left the school with its last class."""
