"""Metrics: a student's behaviour in a term, scored trait by trait, and the sheets to enter it with."""
