"""The sentence on a cell of a sheet, and on a member of a record in a list."""

from __future__ import annotations

from school_service.sheets.row_errors import INVALID, PERSON, UNKNOWN, RowError

NAME = "Ngọzi Eze (QAC/1)"


def test_of_a_sheet_the_cell_is_said_first_and_then_the_person():
    error = RowError(7, "score", INVALID, "is no number", "12,5", "write 12.5")

    assert error.message("D", NAME) == f'D7: "12,5" is no number for {NAME}: write 12.5'
    assert error.message(None, None) == 'row 7: "12,5" is no number: write 12.5'


def test_of_a_list_the_person_is_said_first_and_then_the_member():
    error = RowError(3, "times_present", INVALID, "is no number of times", "-1", "write a whole number")

    said = f'{NAME}, times present: "-1" is no number of times: write a whole number'
    assert error.message(None, NAME, "comments") == said


def test_of_a_list_the_person_alone_is_said_where_the_person_is_at_fault():
    error = RowError(3, PERSON, INVALID, "has withdrawn")

    assert error.message(None, NAME, "scores") == f"{NAME}: has withdrawn"


def test_of_a_list_the_place_is_said_where_nobody_is_known():
    error = RowError(3, PERSON, UNKNOWN, "is no student", "0b5f")

    assert error.message(None, None, "scores") == 'scores.3.student: "0b5f" is no student'
