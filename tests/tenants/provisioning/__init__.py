"""Tests of provisioning."""
