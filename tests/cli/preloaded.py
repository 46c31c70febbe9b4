"""Runs the program again and again without importing it anew, which costs more than most of its verbs do.

An interpreter listens on a socket. It imports the program when somebody connects, and does nothing else but fork for
each request: the child gets the request's arguments, working directory, environment, standard input, output and
error, and runs the program as `python -m school_service` does, after a script that may change it. Tests of starting
itself and of other users start an interpreter of their own.
"""

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import threading
from contextlib import suppress

STATUS_SIZE = 4  # bytes: the status of waitpid, as a number
MODULES = (
    "school_service.cli.program",
    "school_service.app",
    "school_service.serving.server",
    "school_service.demo.command",
    "alembic.command",
)


def serve(listener: socket.socket) -> dict | None:
    """Fork for each request; returns the request in each child, None in the parent when its standard input ends."""
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, int] = {}  # the pipe on which each child's end is reported
    clients: list[socket.socket] = []
    while True:
        ready, _, _ = select.select([0, listener, *clients, wake], [], [])
        if 0 in ready:
            for client in clients:
                client.close()
            return None
        if wake in ready:
            os.read(wake, 4096)
            report_ends(running)
        if listener in ready:
            clients.append(listener.accept()[0])
        for client in [client for client in clients if client in ready]:
            message, descriptors, _, _ = socket.recv_fds(client, 2**20, 4)
            if not message:
                clients.remove(client)
                client.close()
                continue
            request = json.loads(message)
            child = os.fork()
            if child == 0:
                for ours in (listener, *clients):
                    ours.close()
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                become(request, descriptors)
                return request
            *standard, running[child] = descriptors
            for descriptor in standard:
                os.close(descriptor)
            client.send(json.dumps(child).encode())


def report_ends(running: dict[int, int]) -> None:
    """Say how children ended."""
    for child, pipe in list(running.items()):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            del running[child]
            # It may be that nobody waits for it any more.
            with suppress(BrokenPipeError):
                os.write(pipe, status.to_bytes(STATUS_SIZE, "little"))
            os.close(pipe)


def become(request: dict, descriptors: list[int]) -> None:
    """Take a request's place in the system, and nothing of ours along."""
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    os.closerange(3, 256)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])


def leave(status: int) -> None:
    """End the process as the interpreter does, but for taking all modules apart: for most verbs that is most of it."""
    threading._shutdown()
    atexit._run_exitfuncs()
    gc.collect()  # a file left open in a circle is warned of
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    del sys.path[0]  # this folder; the program is on the PYTHONPATH
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        if listener in select.select([0, listener], [], [])[0]:
            gc.disable()  # imported modules live on
            for module in MODULES:
                importlib.import_module(module)
            gc.freeze()
            gc.enable()
        given = serve(listener)
    if given is not None:
        exec(given["script"])
        status = 0
        try:
            sys.modules["school_service.cli.program"].main(given["arguments"])
        except SystemExit as end:
            if not isinstance(end.code, int):
                raise
            status = end.code
        leave(status)
