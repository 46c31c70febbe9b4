"""Photos of users."""
