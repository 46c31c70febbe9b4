"""The audit log: who changed what, when, from what and to what."""
