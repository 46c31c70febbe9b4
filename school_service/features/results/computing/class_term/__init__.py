"""The entries of a class in a term, and its members: one SELECT, and the loaded values."""
