"""Results as values: what was entered of a class in a term is loaded once, and figures and cards are made of it."""
