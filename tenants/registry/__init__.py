"""The registry.

`schools`       its tables, and which schools there are
`details`       what a school says of itself, and how it must be written
`clients`       machine clients, their grants and secrets
`installation`  its schema, and the logins that serve
"""
