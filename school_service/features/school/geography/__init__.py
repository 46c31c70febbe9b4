"""Nationalities, states and local government areas: the same reference data for every school."""
