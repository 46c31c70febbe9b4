"""Scores of students, assessment by assessment.

- `grade_configs`: the bands of percentages to grade scores by
- `result_settings`: how results are computed of scores: weights, rounding, the pass mark
- `assessments`: exams, tests and continuous assessments of a cohort subject in a term
- `absences`: absences from assessments, with leave or without
- `gradebooks`: the score of a student in an assessment
- `scoresheets`: the scores of a cohort subject, and the sheets to enter them with
"""
