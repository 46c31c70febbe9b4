"""Subject teachers: who teaches which subject of a cohort, to one arm or to all."""
