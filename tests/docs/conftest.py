"""An installation of its own, as that of the command line's tests."""

from tests.cli.conftest import folder, installed, logins

__all__ = ["folder", "installed", "logins"]
