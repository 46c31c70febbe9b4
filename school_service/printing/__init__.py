"""Printing on paper: PDF files, made by typst in processes of their own.

The process that serves imports `printers` alone, and `messages`, which both sides speak. All else runs in the processes
that `printers` starts, from `worker` on, which imports nothing of what serves: neither flask, nor the database, nor a
secret.
"""
