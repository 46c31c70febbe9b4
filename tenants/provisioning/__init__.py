"""Creating and deleting schools.

`create`     a school in one statement batch and one transaction
`ownership`  who owns its schema and tables, and what the role that serves may do with them
`delete`     a school, after a backup, a few tables at a time
"""
