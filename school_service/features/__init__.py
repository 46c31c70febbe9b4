"""What the service does, in wings that build on each other; in each wing, a package for each area.

An area has schemas, reads, service and views, and a sheet where it has one; a small one has a service and views. The
tables of a wing are in its `models`. `setup.cfg` orders the wings and the areas in each: whoever is higher uses those
below.

- `personal_data`: everything that is stored of a person, and its erasure
- `exchange`: the school's records for other systems
- `observations`: what teachers say of a student's term beside scores
- `results`: results, report cards, transcripts, promotion
- `year`: a session is set up as another one was; when its terms begin and end
- `scores`: assessments, gradebooks, absences, score sheets, how results are computed
- `classes`: enrollment, the subjects of a cohort, imports of students
- `people`: users, roles, students, employees, contacts
- `school`: settings, letterhead, classrooms, subjects, sessions, cohorts
- `audit`: the audit log: who changed what, when, from what and to what
- `auth_provider`: the built-in identity provider: tokens for machine clients
- `health`: whether the service and its database are up
"""
