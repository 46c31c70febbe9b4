"""Dates that are texts, day first or month first."""

from __future__ import annotations

import pytest

from school_service.sheets.days import read_days
from school_service.sheets.sheet_reader import Row


def read(*texts, order=None):
    rows = [Row(number, {"born": text}, frozenset()) for number, text in enumerate(texts, 2)]
    sheet = read_days(rows, "born", order)
    return [row.values.get("born") for row in rows], sheet


def problems(sheet):
    return [(error.row, error.problem) for error in sheet.errors]


def test_a_date_of_one_reading_is_read():
    days, sheet = read("31/05/2012", "5/31/2012", "1.1.2013", "29-2-2012")

    assert days == ["2012-05-31", "2012-05-31", "2013-01-01", "2012-02-29"]
    assert (sheet.errors, sheet.warnings("born")) == ([], [])


@pytest.mark.parametrize(
    ("texts", "days", "shown"),
    [
        (("05/06/2012", "13/06/2012"), ["2012-06-05", "2012-06-13"], "the day first, as row 3 shows"),
        (("06/13/2012", "05/06/2012"), ["2012-06-13", "2012-05-06"], "the month first, as row 2 shows"),
        (
            ("13/06/2012", "05/06/2012", "30.6.2012"),
            ["2012-06-13", "2012-06-05", "2012-06-30"],
            "as row 2 shows",
        ),
    ],
)
def test_a_date_beyond_doubt_shows_the_order_of_the_others(texts, days, shown):
    read_as, sheet = read(*texts)

    assert (read_as, sheet.errors) == (days, [])
    (warning,) = sheet.warnings("born")
    assert warning.startswith(f"born: {len(texts)} dates were read with ")
    assert shown in warning


@pytest.mark.parametrize("others", [(), ("31/05/2012", "5/31/2012")])
def test_a_date_that_can_be_read_in_two_ways_is_an_error(others):
    days, sheet = read("05/06/2012", "7/7/2012", *others)

    assert days[:2] == [None, "2012-07-07"]
    assert problems(sheet) == [(2, "is 2012-06-05 with the day first, and 2012-05-06 with the month first")]
    assert sheet.errors[0].remedy == (
        "send the sheet with dates=DMY or dates=MDY, or write it as year-month-day"
    )


def test_the_order_may_be_told():
    texts = ("05/06/2012", "7/7/2012")

    assert read(*texts, order="DMY")[0] == ["2012-06-05", "2012-07-07"]
    assert read(*texts, order="MDY")[0] == ["2012-05-06", "2012-07-07"]
    assert read(*texts, order="MDY")[1].warnings("born") == []


def test_a_date_of_another_order_than_the_one_asked_for_is_an_error():
    days, sheet = read("31/05/2012", "05/31/2012", order="MDY")

    assert days == [None, "2012-05-31"]
    assert problems(sheet) == [(2, "is no date with the month first")]
    assert sheet.errors[0].remedy == "write it as year-month-day: 2012-05-31"


@pytest.mark.parametrize("order", [None, "DMY", "MDY"])
@pytest.mark.parametrize("text", ["31/02/2012", "40/50/2012", "0/0/2012", "29/02/2013", "1/1/0000"])
def test_a_text_that_is_no_date_in_any_order_is_an_error(text, order):
    days, sheet = read(text, order=order)

    assert (days, problems(sheet)) == ([None], [(2, "is no date")])


@pytest.mark.parametrize("value", ["2012-05-31", "31 May 2012", "31/05/12", "", "x", 5, None])
def test_other_values_are_left(value):
    assert read(value) == ([value], read()[1])


def test_dates_beside_such_texts_are_told_where_day_and_month_may_be_exchanged():
    """A program that knows 05/31 alone makes the 6th of May of 05/06/2012, and leaves 31/05/2012 as a text."""
    days, sheet = read("2012-05-06", "31/05/2012", "2012-07-07", "2012-05-13", "2013-01-02")

    assert days == ["2012-05-06", "2012-05-31", "2012-07-07", "2012-05-13", "2013-01-02"]
    assert sheet.warnings("born") == [
        "born: 1 date was read with the day first, as row 3 shows.",
        "born: the sheet has dates and texts that look like dates. The spreadsheet program may have taken the month of "
        "the first for the day: compare rows 2, 6.",
    ]
    assert read("2012-05-06", "2012-05-13")[1].warnings("born") == []
