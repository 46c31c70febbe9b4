"""Tests of serving over HTTP."""
