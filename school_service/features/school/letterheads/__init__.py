"""Letterhead: what stands at the head of what a school prints, its logo and its signature."""
