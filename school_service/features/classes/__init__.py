"""Classes: who is in which class, and takes which subject.

- `cohort_subjects`: what is taught to a cohort, and who takes it
- `enrollments`: enrolling students into cohorts, and taking them out again
- `student_imports`: students from a workbook or a .csv file, enrolled as the file says
"""
