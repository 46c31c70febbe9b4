"""The registry.

`schools`       its tables, and the list of schools
`details`       the details of a school, and how each must be written
`clients`       machine clients, their grants and secrets
`installation`  its schema, and the logins that serve
"""
