"""The doors of the database: `read`, `write` and `transaction`, and their foundations.

`statements`  reading in a round trip of its own, writing in the transaction under way, COPY
`sessions`    sessions that refuse to work without a school, and the beginning of their transactions
`binding`     the batch that begins a transaction and confines it to a school, and the registry's refusals
`dialect`     how SQLAlchemy begins and ends the transactions of sessions, and gets its connections from the pool
`engines`     the engines of a process that serves, of the registry, and of the operator
`pool`        connections and the schools served by each, replaced before those are too many
`deadline`    the end of a statement left without an answer by the server
"""
