"""Letterhead: the head of a school's printed papers, its logo and its signature."""
