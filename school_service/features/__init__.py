"""The features of the service, in wings built on each other; in each wing, a package for each area.

An area has schemas, reads, service and views, and a sheet if it has one; a small one has a service and views. The
tables of a wing are in its `models`. `setup.cfg` orders the wings and the areas in each: higher ones use those below.

- `personal_data`: everything stored of a person, and its erasure
- `exchange`: the school's records for other systems
- `observations`: teachers' observations of a student's term beside scores
- `results`: results, report cards, transcripts, promotion
- `year`: a session is set up as another one was; when its terms begin and end
- `scores`: assessments, gradebooks, absences, score sheets, how results are computed
- `classes`: enrollment, the subjects of a cohort, imports of students
- `people`: users, roles, students, employees, contacts
- `school`: settings, letterhead, classrooms, subjects, sessions, cohorts
- `audit`: the audit log: author and moment of each change, the values before and after
- `auth_provider`: the built-in identity provider: tokens for machine clients
- `health`: whether the service and its database are up
"""
