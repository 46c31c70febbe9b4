"""Schools as tenants: a registry, and one PostgreSQL schema and role for each school.

Knows nothing of schools' records: whoever uses it hands it the seeding of a new school (`tenancy`). The parts:

`registry`       the table of schools, the clients and their grants, and how both are installed
`connections`    reading and writing in a school: the statement batch that binds a transaction, sessions, the pool
`provisioning`   creating a school in one transaction, and deleting one
`migrations`     the SQL of the schools' migrations, its rules, running it, drafting the next one
`backups`        one school in one file, and back
`placement`      which login serves a school, and which server has it
`distribution`   the placement on several servers; imported where an installation has them
`tenancy`        what the operator's work needs to know of an installation
`commands`       the operator's verbs
`pg_programs`    PostgreSQL's own programs: finding and running them
`relations`      what is in a schema, found by an index of the catalogue
`sql_scanner`    SQL text as tokens and statements
`progress`       reporting the progress of long work
`atomic_file`    writing a file as a whole or not at all
`clock`          the present moment, bound from Python
`driver_errors`  the SQLSTATE and the first line of an error
`exceptions`     what this package refuses, and why
"""
