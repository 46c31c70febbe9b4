"""Submissions: teachers hand in the results of a subject in a term; so they are held until they are reopened."""
