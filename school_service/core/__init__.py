"""What models, reads and services are made of; free of HTTP.

`database`     the base of models, the session and its request context
`columns`      columns that many models have, their bounds, the values that a text can have
`records`      records: get, find, lock, insert, delete; what they are called in messages
`texts`        the words of names, folding case, names of files, positions in words
`shares`       who may do how much at once of what is scarce
`statements`   INSERT, UPDATE and DELETE that are built and compiled once; several in one round trip
`read_models`  SELECTs that are built and compiled once
`search`       parts of names, without regard to case and diacritics, and the indexes of them
`counters`     numbers within a school, without gaps
`idempotency`  answers stored by the Idempotency-Key of their request
`permissions`  the one list of permissions
`errors`       what a service refuses
"""
