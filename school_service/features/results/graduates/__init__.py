"""Graduates: students after the school's last class."""
