"""An installation of its own, as that of the command line's tests, and the service that serves it."""

from tests.cli.conftest import cli, each_server, folder, installed, logins, service

__all__ = ["cli", "each_server", "folder", "installed", "logins", "service"]
