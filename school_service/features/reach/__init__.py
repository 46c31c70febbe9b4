"""Reach: the conditions under which records are in reach of a caller whose permission is OWN."""
