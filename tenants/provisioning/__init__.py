"""Creating and deleting schools.

`create`     a school in one statement batch and one transaction
`ownership`  the owner of its schema and tables, and the serving role's rights to them
`delete`     a school, after a backup, a few tables at a time
"""
