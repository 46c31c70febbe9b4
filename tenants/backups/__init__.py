"""One school in one file, and back."""
