"""Enrolling students into cohorts, and taking them out again."""
