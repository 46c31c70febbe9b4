"""Assessments: exams, tests and continuous assessments of a cohort subject in a term."""
