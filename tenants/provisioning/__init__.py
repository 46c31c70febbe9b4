"""Creating and deleting schools."""
