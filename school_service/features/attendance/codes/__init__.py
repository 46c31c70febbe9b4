"""Attendance codes: the letters of marks, with the kind of presence or absence for each."""
