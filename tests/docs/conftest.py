"""An installation of its own, as the command line's tests have."""

from tests.cli.conftest import folder, installed, logins

__all__ = ["folder", "installed", "logins"]
