"""The clients for signing people in, as the pages know them: remembered for a moment, as a page only shows them."""

from __future__ import annotations

from functools import partial

from school_service.core.remembered import KnownByRegistry
from tenants.names import is_storable
from tenants.registry.sign_in import PeoplesClient, find_peoples_client, name_of_school

REMEMBERED = 1_000  # clients with the school that was asked for
SECONDS = 5.0
_LONGEST = 120  # characters of an id


class KnownClients:
    """Finds clients in the registry, each with a school; a found one is remembered for SECONDS."""

    def __init__(self) -> None:
        self._known: KnownByRegistry[tuple[str, str | None], PeoplesClient | None] = KnownByRegistry(
            REMEMBERED, SECONDS
        )

    def find(self, client_id: str, school: str | None, *, anew: bool) -> PeoplesClient | None:
        """Find a client, unless it is revoked, with the school of an id or short name; None if there is none.

        `anew` reads the registry, for a decision. Raises RegistrySilent for one that was never found.
        """
        if len(client_id) > _LONGEST or not is_storable(client_id):
            return None
        school = None if school is None else name_of_school(school)
        read = partial(find_peoples_client, client_id=client_id, school=school)
        return self._known.find((client_id, school), read, anew=anew)
