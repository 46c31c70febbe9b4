"""The areas of the service, a package each: models, schemas, reads, service, views, and a sheet where it has one.

`setup.cfg` orders them: an area uses those below it, and the models of every area.

- `metrics`: what is seen of a student's behaviour in a term, trait by trait, and the sheets to enter it with
- `scoresheets`: the scores of a cohort subject, and the sheets to enter them with
- `graduates`: students who left the school with its last class
- `employees`: the staff, each with a user account, a bank account, a next of kin and a contact; form teachers
- `settings`: departments, employee categories, positions, grade configurations
- `contacts`: how the owner of a user account can be reached
- `gradebooks`: the score of a student in an assessment
- `assessments`: exams, tests and continuous assessments of a cohort subject in a term
- `enrollments`: enrolling students into cohorts, and taking them out again
- `cohort_subjects`: what is taught to a cohort, and who takes it
- `students`: their records, each with a user account, and their import from a sheet
- `cohorts`: a classroom in an academic session, its arms (batches), and who is in them
- `users`: user accounts, who can sign in to a school, and the roles that they have there
- `roles`: roles and the permissions they bundle
- `classrooms`: the structure of the school, such as JSS 1
- `subjects`: subjects such as Mathematics, under the path `/templates`
- `sessions`: academic sessions (years) and their terms
- `geography`: nationalities, states and local government areas, the same for every school
- `audit`: the audit log: who changed what, when, from what and to what
- `auth_provider`: the built-in identity provider: tokens for machine clients
- `health`: whether the service and its database are up
"""
