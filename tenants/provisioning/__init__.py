"""Creating and deleting schools.

`create`  a school in one statement batch and one transaction
`delete`  a school, after a backup, a few tables at a time
"""
