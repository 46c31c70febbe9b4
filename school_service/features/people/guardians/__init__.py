"""Guardians: who looks after students, by which account they read, and who may no longer."""
