"""The people of the sample schools."""

import unicodedata
from random import Random

from school_service.demo.people import EDO, EFIK, FEMALE, GENDERS, HAUSA, IGBO, MALE, TIV, YORUBA, Population
from school_service.demo.sample_schools import SCHOOLS

PEOPLES = (YORUBA, IGBO, HAUSA, TIV, EFIK, EDO)


def population():
    return Population(Random(1), [(names, 1) for names in PEOPLES])


def test_the_same_people_come_for_the_same_seed():
    first, second = population(), population()

    assert [first.person() for _ in range(50)] == [second.person() for _ in range(50)]


def test_no_two_have_the_same_name_and_all_names_are_plain_enough_for_an_address():
    plain = [person.plain_name for person in (population().person() for _ in range(1))]
    people = population()
    plain = [people.person().plain_name for _ in range(500)]

    assert len(set(plain)) == 500
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz.") for name in plain)
    assert all(len(part) > 1 for name in plain for part in name.split("."))


def test_names_are_written_with_composed_letters():
    for names in PEOPLES:
        for name in (*names.female, *names.male, *names.family):
            assert name == unicodedata.normalize("NFC", name)


def test_a_parent_bears_the_childs_family_name_and_another_first_name():
    people = population()
    for _ in range(200):
        child = people.person()
        parent = people.parent(child)
        assert parent.last_name == child.last_name
        assert parent.first_name != child.first_name


def test_a_gender_can_be_asked_for():
    people = population()

    assert {people.person(MALE).gender for _ in range(20)} == {MALE}
    assert {people.person(FEMALE).gender for _ in range(20)} == {FEMALE}
    assert {people.person().gender for _ in range(50)} == set(GENDERS)


def test_the_sample_schools_have_ids_of_their_own_that_never_change():
    assert [str(school.id) for school in SCHOOLS] == [
        "66766149-352a-51a2-93d6-3f54437b5ec2",
        "9466a7b3-a57f-537e-9252-0eb334ca74d1",
    ]
