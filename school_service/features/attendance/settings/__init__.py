"""Attendance settings: how a school keeps registers, apart from the defaults."""
