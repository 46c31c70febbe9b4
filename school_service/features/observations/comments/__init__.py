"""Comments: what a card says of a student's term in words, and on how many days they came."""
