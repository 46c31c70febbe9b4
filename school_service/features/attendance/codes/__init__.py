"""Attendance codes: what a mark says, and what it counts."""
