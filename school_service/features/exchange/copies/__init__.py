"""Copies of a school that others keep: an export of all records, and the changes since."""
