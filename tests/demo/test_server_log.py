"""The log of the data folder's PostgreSQL."""

from __future__ import annotations

from contextlib import closing

import psycopg2
import pytest

from school_service.cli.data_folder import data_folder
from tests.demo.test_demo import working_directory

pytestmark = pytest.mark.program


def test_the_servers_log_holds_no_values_of_statements_that_failed():
    with working_directory() as cwd:
        path = cwd / "school-data"
        with data_folder(path, create=True) as folder:
            with closing(psycopg2.connect(folder.admin_database_url)) as connection:
                connection.autocommit = True
                cursor = connection.cursor()
                cursor.execute("CREATE TABLE accounts (number text UNIQUE, bank text NOT NULL)")
                cursor.execute("INSERT INTO accounts VALUES ('3012345678', 'First Bank')")
                for bank in ("First Bank", None):
                    with pytest.raises(psycopg2.IntegrityError) as refused:
                        cursor.execute("INSERT INTO accounts VALUES ('3012345678', %s)", (bank,))
                    assert "3012345678" in str(refused.value)
            log = (path / "postgres" / "server.log").read_text()

    assert "violates not-null constraint" in log
    assert "3012345678" not in log
