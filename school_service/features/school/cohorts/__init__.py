"""Cohorts: a classroom in an academic session, its arms (batches), and their students."""
