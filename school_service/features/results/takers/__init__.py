"""Takers of cohort subjects, all students of the cohort or some by choice; reopened results change with them."""
