"""Cohort subjects: what is taught to a cohort, and who takes it."""
