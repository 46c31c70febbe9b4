"""Observations: what teachers say of a student's term beside scores, until the results of the term are published.

- `metrics`: what is seen of a student's behaviour in a term, trait by trait, and the sheets to enter it with
- `comments`: what form teacher and principal say of a student's term, and how often the student came
"""
