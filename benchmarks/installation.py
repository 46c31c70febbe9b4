"""An installation for the benchmarks: on a PostgreSQL of its own from the wheel, with its default settings."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from school_service.app import tenancy_of
from school_service.auth.signing_key import SigningKey
from school_service.config import Settings
from school_service.data_folder import data_folder
from tenants.registry.installation import install
from tenants.tenancy import Tenancy


@dataclass(frozen=True)
class Installation:
    """A registry without schools, the environment that leads to it, and a folder for what else is needed."""

    tenancy: Tenancy
    environment: dict[str, str]
    folder: Path

    @property
    def settings(self) -> Settings:
        """The settings of the environment."""
        return Settings.load(self.environment)


@contextmanager
def installation() -> Iterator[Installation]:
    """Start PostgreSQL and install the registry; nothing of it is left at the end."""
    with tempfile.TemporaryDirectory(prefix="school-benchmark-") as folder, ExitStack() as stack:
        # Where root runs this, PostgreSQL's own user must get to its data.
        Path(folder).chmod(0o711)
        used = stack.enter_context(data_folder(Path(folder) / "school-data", create=True))
        environment = {
            "DATABASE_URL": used.database_url,
            "ADMIN_DATABASE_URL": used.admin_database_url,
            "SIGNING_KEY": SigningKey.generate().to_pem(),
        }
        tenancy = tenancy_of(Settings.load(environment))
        install(tenancy)
        try:
            yield Installation(tenancy, environment, Path(folder))
        finally:
            tenancy.admin.dispose()
