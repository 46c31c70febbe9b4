"""The history of the schema `registry`."""
