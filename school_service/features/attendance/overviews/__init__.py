"""What registers come to: those missing, a day of the school, the sums of a class or student, and who is away."""
