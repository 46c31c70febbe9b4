"""Tests of the command line and of serving."""
