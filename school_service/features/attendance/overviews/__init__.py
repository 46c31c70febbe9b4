"""Overviews of registers: missing ones, a day of the school, the sums of a class or student, and chronic absence."""
