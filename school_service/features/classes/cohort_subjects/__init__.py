"""Cohort subjects: the subjects taught to a cohort, and the students of each."""
