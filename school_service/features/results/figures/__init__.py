"""Results: what students have in subjects, terms and sessions, computed from their scores, and broadsheets."""
