"""Observations: teachers' remarks on a student's term beside scores, until the results of the term are published.

- `metrics`: a student's behaviour in a term, scored trait by trait, and the sheets to enter it with
- `comments`: comments of form teacher and principal on a student's term, and how often the student came
"""
