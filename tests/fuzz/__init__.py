"""Arbitrary requests to every operation, by schemathesis: `tox -e fuzz`."""
