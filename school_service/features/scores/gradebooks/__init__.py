"""Gradebook entries: the score of a student in an assessment."""
