"""The tests: over HTTP first, on a real PostgreSQL."""
