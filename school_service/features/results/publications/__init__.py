"""Publications: the released results of a batch in a term, and the cards frozen in them."""
