"""Registers: presence in a class at one time, as marked by the teacher and corrected by the office."""
