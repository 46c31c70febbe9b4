"""Copies of sessions: the next academic session is set up as another one was."""
