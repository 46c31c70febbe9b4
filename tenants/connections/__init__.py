"""Connections, and the statement batch that binds a transaction to a school.

`binding`   the batch that begins a transaction and confines it to a school, and what the registry refuses
`sessions`  sessions that refuse to work without a school
`engines`   engines whose transactions begin with that batch, and the operator's engine
`pool`      connections that know schools, and are replaced before they know too many
"""
