"""What was planted in an account, and ends when the account gains: invitations, links and passwords made by others."""
