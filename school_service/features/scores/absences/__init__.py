"""Absences from assessments, with leave or without, instead of a score."""
