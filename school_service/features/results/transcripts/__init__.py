"""Transcripts: everything that was published of a student, session by session."""
