"""Subject teachers: employees teaching a subject of a cohort, to one arm or to all."""
