"""Serving over HTTP: `school-service serve` beyond waitress, the reader of requests and caller of the application.

A connection's way through the modules:

    listening   takes the address
    checks      looks at the database before anybody is let in, and warns of unwise settings
    server      lets connections in, keeps time, and stops without losing a request
    admission   the bounds of connections
    loop        waits until something happens on one of them
    parser      reads a request, and refuses an unsound, too large or too slow one
    refusals    the answers without need of the application
    channel     one connection: its deadlines, and how an answer leaves
    dispatcher  the next request for a thread
    monitoring  metrics of requests, and scraping, their service on a port of their own

and with several workers:

    supervisor      starts, replaces and stops them
    parts           the share of each in threads and connections
    worker          the words of a worker to its supervisor
    common_state    the supervisor's records for all of them: turns and counts of tries
    merged_metrics  their metrics as those of one service

docs/serving.md gives the guarantees of each, and its foundations in waitress.
"""

from __future__ import annotations


class ServingError(Exception):
    """The service can't start; the message says why."""
