"""Guardians: people looking after students, their accounts for reading of them, and stops of this access."""
