"""The demo: two sample schools on a PostgreSQL of its own.

`running`   the verb: everything made, shown, served
`kept`      demo.json, the secrets that a second start finds again
`schools`   which schools there are
`people`    names, and the people who bear them
`filling`   the records of a school, step by step
"""
