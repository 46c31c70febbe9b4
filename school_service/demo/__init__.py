"""The demo: two sample schools on a PostgreSQL of its own.

`command`            the verb: everything made, shown, served
`demo_file`          demo.json, the secrets that a second start finds again
`sample_schools`     which schools there are
`fill_school`        the records of a school, step by step
`context`            the people of a school, and the ids of what has been made
`people`             names, and the people who bear them
`students`           the students, each with a guardian, one of whom has an account; last year's leavers
`staff`              employees, and the form teachers among them
`terms`              sessions, classrooms, subjects, classes; calendars, and absences and comments of the first term
`scores`             assessments of the current session, and the scores
`letterhead`         what stands on the school's paper, and the pictures of it
`results`            the scores of behaviour, and the first term of two classes, published
"""
