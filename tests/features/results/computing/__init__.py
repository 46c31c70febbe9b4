"""Tests of how results are computed of values."""
