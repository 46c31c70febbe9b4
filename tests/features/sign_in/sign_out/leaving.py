"""Signing out, as a client leads a browser to it."""

from __future__ import annotations


def signed_out(entrance, **parameters):
    return entrance.app.test_client().get("/auth/logout", query_string=parameters)
