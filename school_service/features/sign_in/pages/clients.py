"""The clients for signing people in, as the pages know them: remembered for a moment, as a page only shows them."""

from __future__ import annotations

from school_service.core.database import registry_connection
from school_service.core.remembered import Remembered
from tenants.names import is_storable
from tenants.registry.sign_in import PeoplesClient, find_peoples_client, name_of_school

REMEMBERED = 1_000  # clients with the school that was asked for
SECONDS = 5.0
_LONGEST = 120  # characters of an id


class KnownClients:
    """Finds clients in the registry, each with a school; a found one is remembered for SECONDS."""

    def __init__(self) -> None:
        self._found: Remembered[tuple[str, str | None], PeoplesClient] = Remembered(REMEMBERED, SECONDS)

    def find(self, client_id: str, school: str | None, *, anew: bool) -> PeoplesClient | None:
        """Find a client, unless it is revoked, with the school of an id or short name; None if there is none.

        `anew` reads the registry, for a decision. Raises RegistrySilent.
        """
        if len(client_id) > _LONGEST or not is_storable(client_id):
            return None
        school = None if school is None else name_of_school(school)
        key = client_id, school
        found = None if anew else self._found.find(key)
        if found is None:
            with registry_connection() as connection:
                found = find_peoples_client(connection, client_id, school)
            if found is not None:
                self._found.remember(key, found)
        return found
