"""Schools as tenants: a registry, and one PostgreSQL schema and role for each school.

Knows nothing of schools' records: whoever uses it hands it the seeding of a new school. The parts:

`registry`      the table of schools, and the clients that may enter them
`binding`       one message that begins a transaction and confines it to a school
`database`      engines, and the sessions that refuse to work without a school
`placing`       which login serves a school
`pooling`       connections that know schools, and are replaced before they know too many
`provisioning`  creating a school in one message and one transaction
`migrating`     the SQL of the migrations, from any revision to any later one
`installing`    the registry's own schema and the login role that serves
`backup`        one school in one file; `restoring` it, here or elsewhere
`deleting`      a school, after a backup, in pieces
"""
