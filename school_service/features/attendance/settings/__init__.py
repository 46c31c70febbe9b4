"""Attendance settings: how a school keeps registers, where it does not take the defaults."""
