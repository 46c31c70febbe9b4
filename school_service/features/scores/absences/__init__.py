"""Absences: who was away from an assessment, with leave or without, instead of a score."""
