"""User accounts: who can sign in to a school, and the roles they have there."""
