"""Classrooms: the structure of the school, such as JSS 1."""
