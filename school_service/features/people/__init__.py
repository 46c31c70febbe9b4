"""People: who has an account, and what the school has on record of them.

- `roles`: roles and the permissions they bundle
- `users`: user accounts, who can sign in to a school, and the roles that they have there
- `contacts`: how the owner of a user account can be reached
- `students`: their records, each with a user account
- `employees`: the staff, each with a user account, a bank account, a next of kin and a contact; form teachers
"""
