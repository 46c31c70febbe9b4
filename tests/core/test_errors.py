"""The words of refusals that name people and records."""

from __future__ import annotations

import pytest

from school_service.core.error_types import ErrorType
from school_service.core.errors import Invalid, Unknown, names_in_words, refuse_named


def test_of_many_names_the_first_are_in_words():
    names = [f"A{number}" for number in range(8)]

    assert names_in_words(names[:2]) == "A0, A1"
    assert names_in_words(names[:7]) == "A0, A1, A2, A3, A4, A5, A6"
    assert names_in_words(names) == "A0, A1, A2, A3, A4, A5 and 2 others"


def test_a_refusal_begins_with_the_names_and_its_errors_have_each_name():
    with pytest.raises(Invalid) as refused:
        refuse_named(
            {
                "students": {"withdrawn": ["Ada Obi (1)", "Bisi Eze (2)"], "not there": []},
                "days": {"late": ["x"]},
            }
        )

    assert refused.value.message == "Ada Obi (1), Bisi Eze (2): withdrawn; x: late"
    assert refused.value.errors == {
        "students": ["Ada Obi (1): withdrawn", "Bisi Eze (2): withdrawn"],
        "days": ["x: late"],
    }
    assert refused.value.type is ErrorType.VALIDATION


def test_a_refusal_of_unknown_records_alone_is_of_the_unknown():
    unknown = Unknown("no such student")
    for others, of_type in (([], ErrorType.UNKNOWN_ID), (["Ada Obi (1)"], ErrorType.VALIDATION)):
        with pytest.raises(Invalid) as refused:
            refuse_named({"students": {unknown: ["x"], "withdrawn": others}})
        assert refused.value.type is of_type


def test_nothing_is_refused_where_nobody_is_named():
    refuse_named({"students": {"withdrawn": []}})
