"""Connections, and the statement batch that binds a transaction to a school."""
