"""Schools lent to tests that commit, with the rows of a new one: to put those back costs a tenth of another school."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from tenants.registry.schools import schema_name
from tenants.tenancy import Tenancy
from tests.postgres import on_citus

_COLUMNS = """
    SELECT c.relname, array_agg(quote_ident(a.attname) ORDER BY a.attnum) FILTER (WHERE a.attgenerated = '')
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = %s::regnamespace AND c.relkind = 'r' GROUP BY c.relname
"""
# The traces of a change of a school's tables, of the rights on them, or of its row of the registry.
_CATALOGUE = """
    SELECT count(*), max(xmin::text::bigint), string_agg(DISTINCT registered, '') FROM (
        SELECT xmin, NULL AS registered FROM pg_class WHERE relnamespace = %(schema)s::regnamespace
        UNION ALL SELECT xmin, NULL FROM pg_constraint WHERE connamespace = %(schema)s::regnamespace
        UNION ALL SELECT a.xmin, NULL FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
        WHERE relnamespace = %(schema)s::regnamespace
        UNION ALL SELECT NULL, s::text FROM registry.schools s WHERE id = %(id)s
    ) AS found
"""


class CommittedRows:
    """The first rows of a school's tables, in a schema beside it."""

    def __init__(self, tenancy: Tenancy, school_id: UUID) -> None:
        """Copy the rows of a school."""
        self._tenancy = tenancy
        self._school_id = school_id
        self._schema = schema = schema_name(school_id)
        copies = f"rows_{school_id.hex}"
        with tenancy.admin.begin() as connection:
            listed = connection.exec_driver_sql(_COLUMNS, (schema,)).all()
            connection.exec_driver_sql(f"CREATE SCHEMA {copies}")
            statements = ["SET LOCAL lock_timeout TO '60s'", "SET LOCAL session_replication_role TO replica"]
            for table, columns in listed:
                statements.append(f"DELETE FROM {schema}.{table}")
                copy = f"CREATE TABLE {copies}.{table} AS TABLE {schema}.{table}"
                if connection.exec_driver_sql(copy).rowcount:
                    names = ", ".join(columns)
                    rows = f"SELECT {names} FROM {copies}.{table}"
                    statements.append(f"INSERT INTO {schema}.{table} ({names}) {rows}")
        self._restore = "; ".join(statements)
        self._catalogue = self._read_catalogue()

    def restore(self) -> bool:
        """Put the rows back; answers False, and does nothing, where the school is another in more than its rows."""
        if self._read_catalogue() != self._catalogue:
            return False
        with self._tenancy.admin.begin() as connection:
            # No foreign key is checked, so the tables are filled in any order.
            connection.exec_driver_sql(self._restore)
        return True

    def _read_catalogue(self) -> tuple[Any, ...] | None:
        with self._tenancy.admin.connect() as connection:
            if connection.exec_driver_sql("SELECT to_regnamespace(%s)", (self._schema,)).scalar() is None:
                return None
            parameters = {"schema": self._schema, "id": self._school_id}
            return tuple(connection.exec_driver_sql(_CATALOGUE, parameters).one())


class HasId(Protocol):
    """A school as tests know it."""

    @property
    def id(self) -> UUID: ...


Lent = TypeVar("Lent", bound=HasId)


class Lender(Generic[Lent]):
    """Lends a school to one test after the other."""

    def __init__(self, tenancy: Tenancy, make: Callable[[], Lent]) -> None:
        """Take how a school is made."""
        self._tenancy = tenancy
        self._make = make
        self._lent: tuple[Lent, CommittedRows] | None = None

    def lend(self) -> Lent:
        """Give a school with the rows of a new one, and nobody at work in it.

        It is the school of the test before, unless more than its rows has changed. On Citus each test has a new one.
        """
        if on_citus():
            return self._make()
        if self._lent is None or not self._lent[1].restore():
            school = self._make()
            self._lent = school, CommittedRows(self._tenancy, school.id)
        return self._lent[0]
