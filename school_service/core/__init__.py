"""What models, reads and services are made of; free of HTTP.

`database`     the base of models, the session and its request context
`columns`      columns that many models have, and their bounds
`records`      records: get, find, lock, insert, delete
`read_models`  SELECTs that are built and compiled once
`search`       parts of names, without regard to case and diacritics, and the indexes of them
`counters`     numbers within a school, without gaps
`idempotency`  answers stored by the Idempotency-Key of their request
`permissions`  the one list of permissions
`errors`       what a service refuses
`wording`      what records are called in messages
"""
