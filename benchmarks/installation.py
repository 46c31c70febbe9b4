"""An installation for the benchmarks: on a PostgreSQL of its own from the wheel, with its default settings."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from school_service.app import tenancy_of
from school_service.auth.signing_key import SigningKey
from school_service.cli.data_folder import data_folder
from school_service.config import Settings
from tenants.migrations.migration_sql import TENANT
from tenants.registry.installation import install
from tenants.tenancy import Tenancy

# Nothing waits for the disk; committed rows are lost where the machine stops.
NOT_ON_DISK = ("fsync", "synchronous_commit", "full_page_writes")


@dataclass(frozen=True)
class Installation:
    """A registry without schools, the environment that leads to it, and a folder for other files."""

    tenancy: Tenancy
    environment: dict[str, str]
    folder: Path

    @property
    def settings(self) -> Settings:
        """The settings of the environment."""
        return Settings.load(self.environment)


@contextmanager
def installation(
    folder: Path | None = None, *, logins: int = 1, on_disk: bool = True
) -> Iterator[Installation]:
    """Start PostgreSQL and install the registry; nothing of it is left at the end.

    Unless `folder` is given: its schools are found again, and stay. `logins` serve the schools. Without `on_disk`
    PostgreSQL does not wait until commits are on the disk.
    """
    with ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="school-benchmark-")))
        folder.mkdir(exist_ok=True)
        # Where root runs this, PostgreSQL's own user must get to its data.
        folder.chmod(0o711)
        used = stack.enter_context(data_folder(folder / "school-data", create=True))
        environment = {
            "DATABASE_URL": used.database_url,
            "ADMIN_DATABASE_URL": used.admin_database_url,
            "SIGNING_KEY": SigningKey.generate().to_pem(),
            "SERVING_LOGINS": str(logins),
        }
        tenancy = tenancy_of(Settings.load(environment))
        if not on_disk:
            with tenancy.admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                for setting in NOT_ON_DISK:
                    connection.exec_driver_sql(f"ALTER SYSTEM SET {setting} TO off")
                connection.exec_driver_sql("SELECT pg_reload_conf()")
        install(tenancy)
        try:
            yield Installation(tenancy, environment, folder)
        finally:
            tenancy.admin.dispose()


def path_of_program(history: Path) -> str:
    """Give the PYTHONPATH that makes a later history that of the program."""
    return os.pathsep.join([str(history.parents[1]), str(TENANT.parents[1])])
