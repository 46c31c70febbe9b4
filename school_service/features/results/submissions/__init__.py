"""Submissions: teachers hand in the results of a subject in a term, which holds them until they are reopened."""
