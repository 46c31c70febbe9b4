"""Comments: remarks on a student's term for the card, in words, and on how many days they came."""
