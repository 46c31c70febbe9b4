"""Classes: their students, and the subjects of these.

- `cohort_subjects`: the subjects taught to a cohort, and the students of each
- `enrollments`: enrolling students into cohorts, and taking them out again
- `student_imports`: students from a workbook or a .csv file, enrolled as the file says
"""
