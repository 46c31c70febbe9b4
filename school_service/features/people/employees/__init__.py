"""Employees, each with a user account, a bank account, a next of kin and a contact; and form teachers."""
