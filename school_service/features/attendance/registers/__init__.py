"""Registers: who was there in a class at one time, as the teacher marked and the office corrected it."""
