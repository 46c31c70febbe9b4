"""The demo: two sample schools on a PostgreSQL of its own.

`command`            the verb: everything made, shown, served
`demo_file`          demo.json, the secrets that a second start finds again
`sample_schools`     which schools there are
`fill_school`        the records of a school, step by step
`context`            the people of a school, and the ids of what has been made
`people`             names, and the people who bear them
`school_structure`   sessions with their terms, classrooms, subjects
`staff`              employees, and the form teachers among them
`students`           the students, each with a guardian
`graduates`          last year's leavers
`cohorts`            the classes of the current session, and what they are taught
`scores`             their assessments, and the scores
`metrics`            the scores of their behaviour
`letterhead`         what stands on the school's paper
`drawing`            the pictures of it
`terms`              calendars, and absences and comments of the first term
`results`            the first term of two classes, published
"""
