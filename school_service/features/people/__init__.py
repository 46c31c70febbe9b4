"""People: the holders of accounts, and the school's records of people.

- `roles`: roles and the permissions they bundle
- `users`: user accounts, for signing in to a school, and their roles there
- `contacts`: how the owner of a user account can be reached
- `students`: their records, each with a user account
- `employees`: the staff, each with a user account, a bank account, a next of kin and a contact; form teachers
"""
