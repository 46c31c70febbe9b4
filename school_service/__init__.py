"""School Service: a multi-tenant school administration API on one PostgreSQL schema for each school."""

__version__ = "0.4.0"
