"""Makes the golden files anew, of the answers, papers and documents of today's program.

    python -m tests.features.results.golden.make

Only where an answer, a paper or a stored document is meant to change: the test names each difference before.
"""

from __future__ import annotations

from school_service.app import create_app, tenancy_of
from tenants.registry.installation import install
from tests.conftest import Way, dispose, settings_of
from tests.features.results.golden.recordings import RECORDINGS, record, write_golden
from tests.postgres import test_database, test_server


def main() -> None:
    """Write all golden files."""
    with test_server() as server, test_database(server) as (admin, serving):
        settings = settings_of(admin, serving, Way())
        tenancy = tenancy_of(settings)
        install(tenancy)
        app = create_app(settings)
        for name in RECORDINGS:
            write_golden(name, record(name, app, tenancy))
        dispose(app)
        tenancy.admin.dispose()


if __name__ == "__main__":
    main()
