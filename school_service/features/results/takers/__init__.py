"""Takers of cohort subjects, all of the cohort or those who choose; reopened results change with them."""
