"""Tests of the sheets of registers."""
