"""Cohorts: a classroom in an academic session, its arms (batches), and who is in them."""
