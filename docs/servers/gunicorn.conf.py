"""Settings of gunicorn for the service: gunicorn --config docs/servers/gunicorn.conf.py wsgi:app."""

import os
import sys

bind = "127.0.0.1:8000"
worker_class = "gthread"
# Each process has a pool of POOL_SIZE connections to PostgreSQL, and counts a school's share for itself.
workers = 1
threads = 8
# A school has half of the threads, as with `serve`; half as many more wait, in threads, and the rest is for others.
os.environ.setdefault("SCHOOL_REQUESTS", str(threads // 2))
# Longer than the proxy in front lets an idle connection be: it must not send a request while we close.
keepalive = 65
graceful_timeout = 30
# A token may have 16,384 characters; the default of 8,190 would refuse its header field.
limit_request_field_size = 32 * 1024


def post_worker_init(_worker):
    """Let a short request wait less for its turn beside one that computes, as `serve` does."""
    sys.setswitchinterval(0.0002)
