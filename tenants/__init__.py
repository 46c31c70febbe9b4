"""Schools as tenants: a registry, and one PostgreSQL schema and role for each school.

Knows nothing of schools' records: the application hands over the seeding of a new school (`tenancy`). The parts:

`registry`       the table of schools, the clients and their grants, and how both are installed
`connections`    reading and writing in a school: the statement batch that binds a transaction, sessions, the pool
`provisioning`   creating a school in one transaction, and deleting one
`migrations`     the SQL of the schools' migrations, its rules, running it, drafting the next one
`backups`        one school in one file, and back
`placement`      the login and the server of each school
`distribution`   the placement on several servers; imported by installations with several servers
`tenancy`        the application's part in the operator's work: its seeds, settings and migrations
`commands`       the operator's verbs
`pg_programs`    PostgreSQL's own programs: finding and running them
`relations`      the relations of a schema, found by an index of the catalogue
`sql_scanner`    SQL text as tokens and statements
`progress`       reporting the progress of long work
`signals`        signals handled in another way for the length of a block
`atomic_file`    writing a file as a whole or not at all
`clock`          the present moment, bound from Python
`driver_errors`  the SQLSTATE and the first line of an error
`exceptions`     the refusals of this package, and their reasons
"""
