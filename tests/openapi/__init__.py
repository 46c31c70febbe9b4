"""Clients generated from the OpenAPI document, and what linters say of it."""
