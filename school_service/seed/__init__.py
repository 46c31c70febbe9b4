"""The first content of a new school."""
