"""Transcripts: everything published of a student, session by session."""
