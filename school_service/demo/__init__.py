"""The demo: two sample schools on a PostgreSQL of its own.

`command`            the verb: everything made, shown, served
`demo_file`          demo.json, the secrets for a second start
`sample_schools`     the sample schools
`fill_school`        the records of a school, step by step
`sample`             a sample school on a real server, with passwords and a secret of its own
`context`            the people of a school, and the ids of the records made so far
`people`             names, and the people with these names
`students`           the students, each with a guardian, and the account of one guardian; last year's leavers
`staff`              employees, and the form teachers among them
`terms`              sessions, classrooms, subjects, classes; calendars, and absences and comments of the first term
`scores`             assessments of the current session, and the scores
`letterhead`         the texts of the school's paper, and its pictures
`results`            the scores of behaviour, and the first term of two classes, published
"""
