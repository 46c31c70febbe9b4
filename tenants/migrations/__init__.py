"""The migrations of schools' schemas: their SQL, their rules, and running them."""
