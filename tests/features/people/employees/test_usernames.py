"""Usernames made of names, and no two the same."""

from __future__ import annotations

import pytest

from school_service.features.people.usernames import MAX_STEM_LENGTH
from tests.threads import run_concurrently


def usernames(make, count, **names):
    return [make.employee(**names)["username"] for _ in range(count)]


@pytest.mark.parametrize(
    ("first_name", "last_name", "username"),
    [
        ("Adaeze", "Òkáfọr", "adaeze.okafor"),
        ("ADA", "obi", "ada.obi"),
        ("Fátimà", "Yar'Adua", "fatima.yaradua"),
        ("Ɗan-Asabe", "Ƙofar Ɓaya", "danasabe.kofarbaya"),
        ("Mary Jane", "van der Ødegård-Łuk", "maryjane.vanderodegardluk"),
        ("Straße", "Æther 3", "strasse.aether3"),
        ("ﬁ", "\uff21\uff44\uff41", "fi.ada"),
        ("I\u0307pek", "I\u015f\u0131k", "ipek.isik"),
        ("王", "Obi", "obi"),
        ("Ada", "Ωμέγα", "ada"),
        ("王", "小明", "user"),
        ("🌍", "...", "user"),
        ("'", "%_", "user"),
    ],
)
def test_a_username_is_first_and_last_name_in_plain_letters(make, first_name, last_name, username):
    assert make.employee(first_name=first_name, last_name=last_name)["username"] == username


def test_a_taken_one_gets_a_number(make):
    assert usernames(make, 3, first_name="Ada", last_name="Obi") == ["ada.obi", "ada.obi2", "ada.obi3"]


def test_a_number_that_is_taken_is_passed_over(make):
    make.user(username="ada.obi2")
    make.user(username="ada.obi4")

    assert usernames(make, 3, first_name="Ada", last_name="Obi") == ["ada.obi", "ada.obi3", "ada.obi5"]


def test_names_that_only_begin_alike_take_nothing(make):
    make.user(username="ada.obi.okoro")
    make.user(username="ada_obi")

    assert usernames(make, 1, first_name="Ada", last_name="Obi") == ["ada.obi"]


def test_a_username_that_differs_in_case_alone_is_taken(make):
    make.user(username="Ada.OBI")

    assert usernames(make, 2, first_name="Ada", last_name="Obi") == ["ada.obi2", "ada.obi3"]


def test_a_deleted_users_name_stays_taken(api, make):
    user = make.user(username="ada.obi")["user"]
    api.ok(api.delete(f"/users/{user['id']}/delete"))

    assert usernames(make, 1, first_name="Ada", last_name="Obi") == ["ada.obi2"]


def test_the_nameless_get_numbers(make):
    assert usernames(make, 2, first_name="王", last_name="小明") == ["user", "user2"]


def test_the_longest_names_have_room_for_a_number(make):
    first, second = usernames(make, 2, first_name="a" * 120, last_name="b" * 120)

    assert (first, second) == ("a" * MAX_STEM_LENGTH, "a" * MAX_STEM_LENGTH + "2")
    assert len(second) <= 120
    cut_at_the_dot = make.employee(first_name="c" * (MAX_STEM_LENGTH - 1), last_name="d")["username"]
    assert cut_at_the_dot == "c" * (MAX_STEM_LENGTH - 1)


def test_the_other_schools_names_are_its_own(make, make_other):
    names = {"first_name": "Ada", "last_name": "Obi"}

    assert (usernames(make, 1, **names), usernames(make_other, 1, **names)) == (["ada.obi"], ["ada.obi"])


def test_employees_of_one_name_created_at_once_all_get_a_username(committing):
    body = committing.employee_body(first_name="Ada", last_name="Obi")

    made = run_concurrently(8, lambda _: committing.api.using().post("/employees", body))

    names = [committing.api.ok(answer)["username"] for answer in made]
    assert sorted(names) == ["ada.obi", *(f"ada.obi{number}" for number in range(2, 9))]
