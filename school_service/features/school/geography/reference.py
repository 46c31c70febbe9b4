"""Give the rows of the geography tables, with the same ids in every installation.

Sources: ISO 3166-1 and ISO 3166-2 through pycountry; the local government areas and area councils of
the First Schedule of the Constitution of Nigeria 1999, in their common present spelling (``lgas.json``).
"""

import json
from importlib.resources import files
from typing import TypedDict
from uuid import NAMESPACE_URL, UUID, uuid5

import pycountry

Row = dict[str, str | UUID]

# Records of every school point at these ids: changing the namespace, or the spelling of an LGA, gives
# the row another id and needs a migration.
GEOGRAPHY = uuid5(NAMESPACE_URL, "urn:school-service:geography")


class _State(TypedDict):
    name: str
    lgas: list[str]


def nationalities() -> list[Row]:
    """List the countries of ISO 3166-1 (pycountry), each with its id, name and alpha-2 code."""
    countries = sorted(pycountry.countries, key=lambda country: country.alpha_2)
    return [
        {
            "id": _id(f"country:{country.alpha_2}"),
            # "Tanzania" rather than "Tanzania, United Republic of", where ISO has a common name.
            "name": getattr(country, "common_name", country.name),
            "code": country.alpha_2,
        }
        for country in countries
    ]


def states() -> list[Row]:
    """List the states of Nigeria and its capital territory, each with its id, name and ISO 3166-2 code."""
    return [
        {"id": _state_id(code), "name": state["name"], "code": code} for code, state in _schedule().items()
    ]


def lgas() -> list[Row]:
    """List the local government areas of the First Schedule, each with its id, name and state's id."""
    return [
        # Six names belong to two states each, so an LGA's id is made of its state's code too.
        {"id": _id(f"lga:NG-{code}:{name}"), "name": name, "state_id": _state_id(code)}
        for code, state in _schedule().items()
        for name in state["lgas"]
    ]


def _schedule() -> dict[str, _State]:
    text = files(__package__).joinpath("lgas.json").read_text(encoding="utf-8")
    schedule: dict[str, _State] = json.loads(text)
    return schedule


def _state_id(code: str) -> UUID:
    return _id(f"state:NG-{code}")


def _id(name: str) -> UUID:
    return uuid5(GEOGRAPHY, name)
