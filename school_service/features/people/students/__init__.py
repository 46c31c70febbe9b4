"""Students: their records, each with a user account, and their import from a sheet."""
