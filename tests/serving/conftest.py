"""An installation of its own, as the command line's tests have, and the service that serves it."""

from tests.cli.conftest import cli, each_server, folder, installed, logins, service

__all__ = ["cli", "each_server", "folder", "installed", "logins", "service"]
