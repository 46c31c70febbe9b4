"""Printing on paper: PDF files, made by typst in a process of their own.

The process that serves imports `printers` alone. All else runs in the process that `printers` starts, `python -m
school_service.printing`, which imports nothing of what serves: neither flask, nor the database, nor a secret.
"""
