"""What a new school starts with."""
