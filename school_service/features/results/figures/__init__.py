"""Results: figures of students in subjects, terms and sessions, computed from their scores, and broadsheets."""
