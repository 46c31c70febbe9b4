"""Serving over HTTP: what `school-service serve` does beyond waitress, which reads requests and calls the application.

A connection's way through the modules:

    listening   takes the address
    checks      looks at the database before anybody is let in, and warns of what is unwise
    server      lets connections in, keeps time, and stops without losing a request
    admission   which connections there may be
    loop        waits until something happens on one of them
    parser      reads a request, and refuses what is unsound, too large or too slow
    refusals    the answers that need no application
    channel     one connection: its deadlines, and how an answer leaves
    dispatcher  which request a thread works on next
    monitoring  metrics of requests, and scraping, which serves them on a port of their own

and with several workers:

    supervisor      starts, replaces and stops them
    parts           what each of them gets of threads and connections
    worker          what a worker says to its supervisor
    common_state    what the supervisor keeps for all of them: turns and counts of tries
    merged_metrics  their metrics as those of one service

docs/serving.md says what each of them guarantees, and what of waitress it rests on.
"""

from __future__ import annotations


class ServingError(Exception):
    """The service can't start; the message says why."""
