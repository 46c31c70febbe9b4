"""What was entered of a class in a term, and who belongs to it: one SELECT, and the values that it loads."""
