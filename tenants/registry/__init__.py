"""The registry.

`schools`       its tables, and which schools there are
`clients`       machine clients, their grants and secrets
`installation`  its schema, and the logins that serve
"""
