"""The migrations of schools' schemas.

`migration_sql`    their SQL, from any revision to any later one, and the baseline
`migration_rules`  the prohibitions for migrations
`migrate`          bringing every school to the newest revision
`new_revision`     drafting the next migration from the models
"""
