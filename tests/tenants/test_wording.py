"""Words for people to read."""

from tenants.wording import counted


def test_one_is_told_in_the_singular():
    assert [counted(number, "school") for number in (0, 1, 2)] == ["0 schools", "1 school", "2 schools"]
