"""The parts of models, reads and services; free of HTTP.

`database`     the base of models, the session and its request context
`columns`      columns of many models, their bounds, the possible values of a text
`records`      records: get, find, lock, insert, delete; their names in messages
`texts`        the words of names, folding case, names of files, positions in words
`shares`       how much of a scarce thing each may have at once
`statements`   INSERT, UPDATE and DELETE, built and compiled once; several in one round trip
`read_models`  SELECTs, built and compiled once
`search`       parts of names, without regard to case and diacritics, and the indexes of them
`counters`     numbers within a school, without gaps
`idempotency`  answers stored by the Idempotency-Key of their request
`permissions`  the one list of permissions
`errors`       the errors of services
"""
