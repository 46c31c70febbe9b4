"""Metrics: what is seen of a student's behaviour in a term, trait by trait, and the sheets to enter it with."""
