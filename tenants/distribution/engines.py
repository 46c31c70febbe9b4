"""Engines on the nodes: each school's is the one of its login on its node, which is asked of the coordinator once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from uuid import UUID

from sqlalchemy.engine import Engine

from tenants.distribution.nodes import Location, Node
from tenants.placement import Placement


class NodeEngines:
    """The engines of a process that serves, by node and login, and where each school is as far as that is known.

    `locate` asks the coordinator where a school is, `make` makes an engine of a login on a node; None stands for the
    coordinator. Where a school is may be outdated: a node tells each transaction whether the school is there
    (`registry.enter_node`), and who hears that it is not forgets it and asks once more.
    """

    def __init__(
        self,
        placement: Placement,
        locate: Callable[[UUID], Location | None],
        make: Callable[[Node | None, str], Engine],
    ) -> None:
        self._placement = placement
        self.locate = locate
        self._make = make
        self._locations: dict[UUID, Location] = {}
        self._engines: dict[tuple[Node | None, str], Engine] = {}
        self._lock = threading.Lock()

    def engine_of(self, school_id: UUID) -> Engine:
        """Find the engine of a school; of one that Citus does not have, or nobody, the coordinator's."""
        location = self._locate(school_id)
        place = (None if location is None else location.node, self._placement.login_of(school_id))
        engine = self._engines.get(place)
        if engine is None:
            with self._lock:
                engine = self._engines.get(place)
                if engine is None:
                    engine = self._engines[place] = self._make(*place)
        return engine

    def first_shard(self, school_id: UUID) -> int | None:
        """Tell the number by which the school's node knows it; None for one that Citus does not have."""
        location = self._locate(school_id)
        return None if location is None else location.first_shard

    def shard_names(self, school_id: UUID, tables: Collection[str]) -> dict[str, str] | None:
        """Name the shards of a school's tables; None for a school or a table that Citus does not have.

        Which they are changes with a migration alone: where one is not known, the coordinator is asked again.
        """
        for _ in range(2):
            location = self._locate(school_id)
            if location is None:
                return None
            found = location.shards.names(tables)
            if found is not None:
                return found
            self.forget(school_id)
        return None

    def known_node(self, school_id: UUID) -> Node | None:
        """Name the node of a school without asking anybody; None where it is not known."""
        location = self._locations.get(school_id)
        return None if location is None else location.node

    def forget(self, school_id: UUID) -> None:
        """Forget where a school is; who wants to know it next asks the coordinator."""
        self._locations.pop(school_id, None)

    def engines(self) -> dict[str, Engine]:
        """Give the engines that have been made, by node, and by login where there are several."""
        with self._lock:
            made = list(self._engines.items())
        return {
            f"{node or 'coordinator'}{f' {login}' * self._placement.divided}": engine
            for (node, login), engine in made
        }

    def _locate(self, school_id: UUID) -> Location | None:
        location = self._locations.get(school_id)
        if location is None:
            location = self.locate(school_id)
            # What is not there may come at any moment, and is not remembered.
            if location is not None:
                self._locations[school_id] = location
        return location
