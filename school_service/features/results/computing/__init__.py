"""Results as values: the entries of a class in a term are loaded once, and figures and cards are made of them."""
