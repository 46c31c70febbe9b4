"""Clients generated from the OpenAPI document, and the findings of linters."""
