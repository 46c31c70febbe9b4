"""The sheets of registers: a week to fill in, and a term to print."""
