"""Switching roles between the whole school's records and their bearers' own, with a look at the changes."""
