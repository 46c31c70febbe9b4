"""The reference data: every state with its LGAs as the Constitution lists them, under ids that never move."""

from collections import Counter
from uuid import UUID

import pycountry
import pytest

from school_service.features.school.geography.reference import lgas, nationalities, states

LGAS_PER_STATE = {
    "Abia": 17,
    "Adamawa": 21,
    "Akwa Ibom": 31,
    "Anambra": 21,
    "Bauchi": 20,
    "Bayelsa": 8,
    "Benue": 23,
    "Borno": 27,
    "Cross River": 18,
    "Delta": 25,
    "Ebonyi": 13,
    "Edo": 18,
    "Ekiti": 16,
    "Enugu": 17,
    "Federal Capital Territory": 6,
    "Gombe": 11,
    "Imo": 27,
    "Jigawa": 27,
    "Kaduna": 23,
    "Kano": 44,
    "Katsina": 34,
    "Kebbi": 21,
    "Kogi": 21,
    "Kwara": 16,
    "Lagos": 20,
    "Nasarawa": 13,
    "Niger": 25,
    "Ogun": 20,
    "Ondo": 18,
    "Osun": 30,
    "Oyo": 33,
    "Plateau": 17,
    "Rivers": 23,
    "Sokoto": 23,
    "Taraba": 16,
    "Yobe": 17,
    "Zamfara": 14,
}

REPEATED_NAMES = {
    "Bassa": {"Kogi", "Plateau"},
    "Ifelodun": {"Kwara", "Osun"},
    "Irepodun": {"Kwara", "Osun"},
    "Nasarawa": {"Kano", "Nasarawa"},
    "Obi": {"Benue", "Nasarawa"},
    "Surulere": {"Lagos", "Oyo"},
}


@pytest.fixture(scope="module")
def lgas_by_state() -> dict[str, list[str]]:
    state_names = {state["id"]: str(state["name"]) for state in states()}
    by_state: dict[str, list[str]] = {name: [] for name in state_names.values()}
    for lga in lgas():
        by_state[state_names[lga["state_id"]]].append(str(lga["name"]))
    return by_state


def test_there_are_37_states_and_774_lgas() -> None:
    assert len(states()) == 37
    assert len(lgas()) == 774


def test_each_state_has_its_number_of_lgas(lgas_by_state: dict[str, list[str]]) -> None:
    assert {state: len(names) for state, names in lgas_by_state.items()} == LGAS_PER_STATE


def test_state_codes_are_iso_3166_2s() -> None:
    iso = {part.code: part.name for part in pycountry.subdivisions if part.country_code == "NG"}
    ours = {f"NG-{state['code']}": state["name"] for state in states()}
    # ISO's name for the territory is "Abuja Federal Capital Territory"; the Constitution's has no "Abuja".
    assert ours == iso | {"NG-FC": "Federal Capital Territory"}


def test_only_the_six_known_names_repeat(lgas_by_state: dict[str, list[str]]) -> None:
    times = Counter(name for names in lgas_by_state.values() for name in names)
    repeated = {
        name: {state for state, names in lgas_by_state.items() if name in names}
        for name, count in times.items()
        if count > 1
    }
    assert repeated == REPEATED_NAMES


def test_no_lga_is_listed_twice_in_a_state(lgas_by_state: dict[str, list[str]]) -> None:
    for names in lgas_by_state.values():
        assert len({name.casefold() for name in names}) == len(names)


def test_lgas_are_sorted_by_name_within_a_state(lgas_by_state: dict[str, list[str]]) -> None:
    for names in lgas_by_state.values():
        assert names == sorted(names)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        # Often missing from lists.
        ("Onuimo", "Imo"),
        ("Bassa", "Plateau"),
        ("Olorunsogo", "Oyo"),
        ("Kaugama", "Jigawa"),
        ("Kazaure", "Jigawa"),
        ("Bakassi", "Cross River"),
        ("Udenu", "Enugu"),
        # Often under another state.
        ("Ifedayo", "Osun"),
        ("Ifelodun", "Osun"),
        # Often split in two, or merged, at the slash or the hyphen.
        ("Ado-Odo/Ota", "Ogun"),
        ("Arewa Dandi", "Kebbi"),
        ("Ogba/Egbema/Ndoni", "Rivers"),
        ("Urue-Offong/Oruko", "Akwa Ibom"),
        ("Ifako-Ijaiye", "Lagos"),
        ("Abuja Municipal Area Council", "Federal Capital Territory"),
        # Often misspelt or under a former name.
        ("Girei", "Adamawa"),
        ("Guyuk", "Adamawa"),
        ("Kurmi", "Taraba"),
        ("Munya", "Niger"),
        ("Tsafe", "Zamfara"),
        ("Yewa North", "Ogun"),
        ("Yewa South", "Ogun"),
    ],
)
def test_lgas_that_lists_get_wrong(lgas_by_state: dict[str, list[str]], name: str, state: str) -> None:
    assert name in lgas_by_state[state]


def test_oyo_has_none_of_osuns_lgas(lgas_by_state: dict[str, list[str]]) -> None:
    assert not {"Ifedayo", "Ifelodun"} & set(lgas_by_state["Oyo"])


def test_nationalities_are_the_countries_of_iso_3166_1() -> None:
    names = {row["code"]: row["name"] for row in nationalities()}
    assert names.keys() == {country.alpha_2 for country in pycountry.countries}
    assert names["NG"] == "Nigeria"


def test_a_nationality_has_its_common_name_where_there_is_one() -> None:
    names = {row["code"]: row["name"] for row in nationalities()}
    assert names["TZ"] == "Tanzania"
    assert names["BO"] == "Bolivia"


def test_names_have_no_surrounding_or_doubled_space() -> None:
    for row in nationalities() + states() + lgas():
        name = str(row["name"])
        assert name
        assert name == " ".join(name.split())


def test_rows_have_just_the_columns_of_their_table() -> None:
    assert {frozenset(row) for row in nationalities()} == {frozenset({"id", "name", "code"})}
    assert {frozenset(row) for row in states()} == {frozenset({"id", "name", "code"})}
    assert {frozenset(row) for row in lgas()} == {frozenset({"id", "name", "state_id"})}


def test_ids_are_unique() -> None:
    ids = [row["id"] for row in nationalities() + states() + lgas()]
    assert len(set(ids)) == len(ids)


def test_ids_never_move() -> None:
    """Records of every school point at these ids: if this fails, change the code and not the literals."""
    nigeria = next(row for row in nationalities() if row["code"] == "NG")
    lagos = next(row for row in states() if row["code"] == "LA")
    surulere = next(row for row in lgas() if row["name"] == "Surulere" and row["state_id"] == lagos["id"])
    assert nigeria["id"] == UUID("e1605096-bece-51b5-9d8a-bb4f4eacde6a")
    assert lagos["id"] == UUID("b24e9dee-e6fa-50b2-9d04-008e55cdef37")
    assert surulere["id"] == UUID("180bf54a-a072-5fcf-ae4c-f7a33b902cbc")
