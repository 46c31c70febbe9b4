"""The history of a school's schema, and `baseline.sql`: the SQL of its newest revision."""
