"""User accounts, for signing in to a school, and their roles there."""
