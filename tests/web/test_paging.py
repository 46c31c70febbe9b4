"""Pages and searches, at the list of users."""

from __future__ import annotations

import pytest


@pytest.fixture
def users(api, make):
    """Twenty-five users beside the administrator; answers every username in the order of the list."""
    for number in range(25):
        make.user(username=f"pupil {(number * 7) % 25:02}", first_name="Adaeze", last_name="Okafor")
    return sorted(["admin", *(f"pupil {number:02}" for number in range(25))])


def page(api, **query):
    return api.ok(api.get("/users", query_string=query))


def usernames(api, search):
    return [user["username"] for user in page(api, search=search)["data"]]


def test_without_a_page_the_first_fifty_are_meant(api, users):
    answer = page(api)

    assert {**answer, "data": [user["username"] for user in answer["data"]]} == {
        "page_number": 0,
        "page_size": 50,
        "total_pages": 1,
        "total": 26,
        "data": users,
    }


def test_the_pages_hold_every_record_once_and_in_order(api, users):
    for size, pages in ((1, 26), (5, 6), (13, 2), (25, 2), (26, 1), (27, 1), (1000, 1)):
        names = []
        for number in range(pages):
            answer = page(api, pageNumber=number, pageSize=size)
            assert (answer["page_number"], answer["page_size"]) == (number, size)
            assert (answer["total_pages"], answer["total"]) == (pages, 26)
            names += [user["username"] for user in answer["data"]]

        assert names == users


def test_past_the_end_there_is_nothing_and_the_totals_hold(api, users):
    for number in (6, 7, 1000, 2**31 - 1):
        assert page(api, pageNumber=number, pageSize=5) == {
            "page_number": number,
            "page_size": 5,
            "total_pages": 6,
            "total": 26,
            "data": [],
        }
    assert page(api, pageNumber=2**31 - 1, pageSize=1000)["data"] == []


@pytest.mark.parametrize(
    "value", ["-1", str(2**31), "9" * 18, "9" * 400, "a", "", " ", "1.0", "1e1", "0x1", "+1", "NaN", "\0"]
)
def test_a_page_that_is_none_is_422(api, value):
    answer = api.get("/users", query_string={"pageNumber": value})

    assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, ["pageNumber"])


@pytest.mark.parametrize("value", ["0", "-1", "1001", "9" * 400, "all", "", "50.0"])
def test_a_size_that_is_none_is_422(api, value):
    answer = api.get("/users", query_string={"pageSize": value})

    assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, ["pageSize"])


def test_a_search_finds_parts_of_usernames_and_names(api, make):
    make.user(username="ngozi.a", first_name="Ngozi", last_name="Adichie")
    make.user(username="wole.s", first_name="Wole", last_name="Soyinka")

    assert usernames(api, "gozi.") == ["ngozi.a"]
    assert usernames(api, "adich") == ["ngozi.a"]
    assert usernames(api, "WOLE") == ["wole.s"]
    assert usernames(api, "i") == ["admin", "ngozi.a", "wole.s"]
    assert usernames(api, "  soyinka ") == ["wole.s"]
    assert usernames(api, "nobody") == []


def test_a_search_finds_first_and_last_name_together(api, make):
    make.user(username="ngozi.a", first_name="Ngozi", last_name="Adichie")

    assert usernames(api, "ngozi adichie") == ["ngozi.a"]
    assert usernames(api, "Adichie Ngọzi") == ["ngozi.a"]
    assert usernames(api, "adichie wole") == []


@pytest.mark.parametrize(
    "sign", ["%", "_", "\\", "*", "?", "'", '"', ".", "[a-z]", "%%", "\\%", "{}", "%(search)s", ":x"]
)
def test_signs_of_patterns_mean_themselves(api, make, sign):
    make.user(username=f"a{sign}b")
    make.user(username="axyzb")

    assert usernames(api, sign) == [f"a{sign}b"]
    assert usernames(api, f"a{sign}b") == [f"a{sign}b"]


@pytest.mark.parametrize(
    ("name", "search"),
    [
        ("Élodie", "élodie"),
        ("élodie", "ÉLODIE"),
        ("ỌLÁ", "ọlá"),
        ("Straße", "straße"),
        ("漢字", "漢"),
        ("😀", "😀"),
    ],
)
def test_a_search_knows_no_case_in_any_script(api, make, name, search):
    make.user(username="the one", first_name=name)

    assert usernames(api, search) == ["the one"]


@pytest.mark.parametrize("search", ["", "  "])
def test_a_search_for_nothing_finds_all(api, users, search):
    assert page(api, search=search)["total"] == 26


def test_the_totals_count_the_matches_of_the_search(api, users):
    assert page(api, search="PUPIL 1", pageSize=4) | {"data": []} == {
        "page_number": 0,
        "page_size": 4,
        "total_pages": 3,
        "total": 12,
        "data": [],
    }
    assert page(api, search="nobody") == {
        "page_number": 0,
        "page_size": 50,
        "total_pages": 0,
        "total": 0,
        "data": [],
    }


@pytest.mark.parametrize("search", ["\0", "a\0", "a" * 121])
def test_a_search_that_is_no_text_is_422(api, search):
    answer = api.get("/users", query_string={"search": search})

    assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, ["search"])


def test_a_page_costs_one_round_trip_however_long_it_is(api, users, messages):
    for size in (2, 25):
        page(api, pageSize=size)
        with messages() as sent:
            page(api, pageSize=size)
        assert len(sent) == 1, sent


def test_the_deleted_are_not_counted(api, make, users):
    user = make.user(username="pupil 99")["user"]
    api.ok(api.delete(f"/users/{user['id']}/delete"))

    assert page(api)["total"] == 26
    assert usernames(api, "pupil 99") == []


def test_the_other_schools_users_are_neither_listed_nor_counted(api, other_api, make_other, users):
    make_other.user(username="stranger")

    assert usernames(api, "stranger") == []
    assert page(api)["total"] == 26
